#pragma once
#include <initializer_list>
#include <string_view>

#include "api/http/query_parameters.h"
#include "engine/base/status.h"

namespace partita {

// kInvalidArgument: one that is not `known`, whose message lists those. One that is misspelt must not be
// taken for one that is not given.
Status CheckParameterNames(const http::QueryParameters& parameters,
                           std::initializer_list<std::string_view> known);

}  // namespace partita

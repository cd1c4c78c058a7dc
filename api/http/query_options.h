#pragma once
#include <cstdint>
#include <optional>

#include "api/filter.h"
#include "api/http/query_parameters.h"
#include "api/http/service_error.h"

namespace partita::http {

// `$filter`; empty when absent. Refusals are early and carry the parser's own message: InvalidInput, or
// NotImplemented for what is parsed but not run (spec 11.1).
std::optional<ServiceError> ReadFilter(const QueryParameters& query, Filter* filter);

// `$top`: 0 to 1,000; nothing when absent. InvalidInput otherwise.
std::optional<ServiceError> ReadTop(const QueryParameters& query, std::optional<uint32_t>* top);

}  // namespace partita::http

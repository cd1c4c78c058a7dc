#include "api/cli/admin_parameters.h"

#include <algorithm>
#include <string>

#include "engine/inspect_text.h"

namespace partita {

Status CheckParameterNames(const http::QueryParameters& parameters,
                           std::initializer_list<std::string_view> known) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (std::find(known.begin(), known.end(), parameters.name(i)) != known.end()) continue;
    std::string names;
    for (const std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
    return Status::InvalidArgument("there is no parameter '" + SafeText(parameters.name(i)) +
                                   "'; there are: " + names);
  }
  return Status();
}

}  // namespace partita

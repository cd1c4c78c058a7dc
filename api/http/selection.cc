#include "api/http/selection.h"

#include <algorithm>

#include "api/ascii.h"
#include "api/limits.h"

namespace partita::http {
std::optional<ServiceError> Selection::Parse(std::optional<std::string_view> text, Selection* selection) {
  *selection = Selection();
  if (!text) return std::nullopt;
  selection->asked_ = true;
  selection->text_ = std::string(*text);
  std::string_view rest = TrimBlanks(*text);
  if (rest.empty() || rest == "*") return std::nullopt;

  std::vector<std::string>& names = selection->names_;
  for (bool more = true; more;) {
    const size_t size = std::min(rest.find(','), rest.size());
    const std::string_view name = TrimBlanks(rest.substr(0, size));
    more = size < rest.size();
    rest.remove_prefix(size + (more ? 1 : 0));
    if (name.empty()) return ServiceError(ErrorCode::kInvalidInput).Early();
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (names.size() == kSelectNamesMax) return ServiceError(ErrorCode::kInvalidInput).Early();
    names.emplace_back(name);
  }
  return std::nullopt;
}

}  // namespace partita::http

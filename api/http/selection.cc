#include "api/http/selection.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "api/ascii.h"
#include "api/limits.h"

namespace partita::http {
std::optional<ServiceError> Selection::Parse(std::optional<std::string_view> text, Selection* selection) {
  *selection = Selection();
  if (!text) return std::nullopt;
  selection->asked_ = true;
  selection->text_ = std::string(*text);
  std::string_view rest = TrimBlanks(*text);
  if (rest.empty()) return std::nullopt;

  std::vector<std::string>& names = selection->names_;
  // Their indices, in the order of their text: a target has room for thousands of names that stand there
  // before.
  std::array<uint8_t, kSelectNamesMax> sorted;
  static_assert(kSelectNamesMax <= UINT8_MAX);
  bool all = false;
  for (bool more = true; more;) {
    const size_t size = std::min(rest.find(','), rest.size());
    const std::string_view name = TrimBlanks(rest.substr(0, size));
    more = size < rest.size();
    rest.remove_prefix(size + (more ? 1 : 0));
    if (name.empty()) return ServiceError(ErrorCode::kInvalidInput).Early();
    if (name == "*") {
      all = true;
      continue;
    }
    const auto end = sorted.begin() + names.size();
    const auto at = std::lower_bound(sorted.begin(), end, name,
                                     [&](uint8_t i, std::string_view text) { return names[i] < text; });
    if (at != end && names[*at] == name) continue;
    if (names.size() == kSelectNamesMax) return ServiceError(ErrorCode::kInvalidInput).Early();
    std::move_backward(at, end, end + 1);
    *at = static_cast<uint8_t>(names.size());
    names.emplace_back(name);
  }
  if (all) names.clear();
  return std::nullopt;
}

}  // namespace partita::http

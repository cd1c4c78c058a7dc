#pragma once
#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

namespace partita {

// The one of `ranges` that holds the key, or null. REQUIRES: they are sorted by lower, and disjoint.
template <typename Range>
const Range* RangeHolding(std::string_view user_key, const std::vector<Range>& ranges) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), user_key,
                       [](std::string_view key, const Range& range) { return key < range.lower; });
  if (after == ranges.begin()) return nullptr;
  const Range& range = *std::prev(after);
  return range.upper.empty() || user_key < range.upper ? &range : nullptr;
}

}  // namespace partita

#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/key_head.h"

namespace partita {

// Searches among keys that lie apart, as those of a level's files do, by their heads side by side: a search
// among the keys themselves waits for memory at each step. Immutable.
class KeyFences {
 public:
  KeyFences() = default;
  // `key_at(i)` is the i-th of `count`, here and in CountUpTo. REQUIRES: they rise.
  template <typename KeyAt>
  KeyFences(size_t count, KeyAt key_at) {
    if (count == 0) return;
    const std::string_view first = key_at(0);
    prefix_ = first.substr(0, CommonPrefix(first, key_at(count - 1)));
    heads_.reserve(count);
    for (size_t i = 0; i < count; ++i) heads_.push_back(HeadOf(key_at(i), prefix_.size()));
  }

  // How many of the keys are at or below `key`.
  template <typename KeyAt>
  size_t CountUpTo(std::string_view key, KeyAt key_at) const {
    const int order = key.compare(0, prefix_.size(), prefix_);
    if (order != 0) return order < 0 ? 0 : heads_.size();
    const auto [begin, end] = std::equal_range(heads_.begin(), heads_.end(), HeadOf(key, prefix_.size()));
    size_t low = static_cast<size_t>(begin - heads_.begin()),
           high = static_cast<size_t>(end - heads_.begin());
    while (low < high) {  // Of those with the key's head.
      const size_t middle = low + (high - low) / 2;
      if (key_at(middle) <= key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  friend bool operator==(const KeyFences&, const KeyFences&) = default;

 private:
  std::string prefix_;  // Of all of them.
  std::vector<uint64_t> heads_;
};

}  // namespace partita

#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/heap_bytes.h"
#include "engine/base/key_head.h"

namespace partita {

// Searches among keys that lie apart, as those of a level's files do, by their heads side by side: a search
// among the keys themselves waits for memory at each step. Immutable.
class KeyFences {
 public:
  KeyFences() = default;
  // `key_at(i)` is the i-th of `count`. REQUIRES: they do not fall.
  template <typename KeyAt>
  KeyFences(size_t count, KeyAt key_at) {
    if (count == 0) return;
    const std::string_view first = key_at(0);
    if (count > 1) prefix_ = first.substr(0, CommonPrefix(first, key_at(count - 1)));
    heads_.reserve(count);
    for (size_t i = 0; i < count; ++i) heads_.push_back(HeadOf(key_at(i), prefix_.size()));
  }

  // How many are at or below `key`; `is_up_to(i)`: whether the i-th is. Of one that lies just behind its key
  // it says no for that key.
  template <typename IsUpTo>
  size_t CountUpTo(std::string_view key, IsUpTo is_up_to) const {
    const int order = key.compare(0, prefix_.size(), prefix_);
    if (order != 0) return order < 0 ? 0 : heads_.size();
    const auto [begin, end] = std::equal_range(heads_.begin(), heads_.end(), HeadOf(key, prefix_.size()));
    size_t low = static_cast<size_t>(begin - heads_.begin()),
           high = static_cast<size_t>(end - heads_.begin());
    while (low < high) {  // Of those with the key's head.
      const size_t middle = low + (high - low) / 2;
      if (is_up_to(middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // Of the heap.
  size_t memory_bytes() const { return HeapBytes(prefix_) + HeapBytes(heads_); }

  friend bool operator==(const KeyFences&, const KeyFences&) = default;

 private:
  std::string prefix_;  // Of all of them.
  std::vector<uint64_t> heads_;
};

}  // namespace partita

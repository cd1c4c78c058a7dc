#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/coding.h"

namespace partita {

// The 8 bytes of `key` from `prefix_size` on as a number that orders as they do: big-endian, padded with
// zeros. Of keys that share the prefix one compare of numbers decides nearly every step of a search; equal
// heads leave it to the whole keys, as "a" and "a\0" have the same.
inline uint64_t HeadOf(std::string_view key, size_t prefix_size = 0) {
  if (prefix_size >= key.size()) return 0;
  const size_t rest = key.size() - prefix_size;
  if (rest >= 8) return LoadBe64(key.data() + prefix_size);
  if (key.size() >= 8) return LoadBe64(key.data() + key.size() - 8) << (8 * (8 - rest));
  uint64_t head = 0;
  for (size_t i = 0; i < rest; ++i) {
    head |= static_cast<uint64_t>(static_cast<uint8_t>(key[prefix_size + i])) << (8 * (7 - i));
  }
  return head;
}

// The number of bytes that both begin with.
inline size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const uint64_t difference = LoadLe64(a.data() + i) ^ LoadLe64(b.data() + i);
    if (difference != 0) return i + static_cast<size_t>(std::countr_zero(difference)) / 8;
  }
  while (i < size && a[i] == b[i]) ++i;
  return i;
}

}  // namespace partita

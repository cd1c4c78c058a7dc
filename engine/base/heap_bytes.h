#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace partita {

// What an allocation of so many bytes takes of the heap: malloc keeps a word beside it, and rounds up.
constexpr size_t HeapBytes(size_t bytes) {
  constexpr size_t kWord = 8, kUnit = 16, kLeast = 32;
  return bytes == 0 ? 0 : std::max((bytes + kWord + kUnit - 1) / kUnit * kUnit, kLeast);
}

// What these hold beside themselves.
inline size_t HeapBytes(const std::string& text) {
  return text.capacity() <= std::string().capacity() ? 0 : HeapBytes(text.capacity() + 1);
}
template <typename T>
size_t HeapBytes(const std::vector<T>& items) {
  return HeapBytes(items.capacity() * sizeof(T));
}

// Beside an object that make_shared made: its two counts and what is called when they are 0.
inline constexpr size_t kSharedCounts = 16;

}  // namespace partita

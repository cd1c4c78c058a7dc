#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace partita {

// Asks for the cache lines of the first `bytes_max` of `bytes`, all at once: who reads them one after the
// other would wait for memory at each. They may be nobody's memory any more.
inline void PrefetchLines(std::string_view bytes, size_t bytes_max) {
  constexpr uintptr_t kLine = 64;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t end = begin + std::min(bytes.size(), bytes_max);
  for (uintptr_t line = begin / kLine * kLine; line < end; line += kLine)
    __builtin_prefetch(reinterpret_cast<const void*>(line));
}

}  // namespace partita

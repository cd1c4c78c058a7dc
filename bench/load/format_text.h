#pragma once
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace partita::bench {

// printf into a string; at most 1,023 bytes.
template <typename... Arguments>
std::string Format(const char* format, Arguments... arguments) {
  std::array<char, 1024> buffer;
  const int size = std::snprintf(buffer.data(), buffer.size(), format, arguments...);
  return {buffer.data(), std::min(buffer.size() - 1, static_cast<size_t>(size))};
}

}  // namespace partita::bench

#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace partita {

// Hexadecimal digits, in lower case.
inline void AppendHex(std::string* out, std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char c : bytes) {
    out->push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    out->push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
}

// All 16 of a number, as ids of stores are written.
inline std::string HexText(uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 0; i < text.size(); ++i) text[15 - i] = kDigits[(value >> (4 * i)) & 15];
  return text;
}

}  // namespace partita

#include "engine/base/text.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/coding.h"

namespace partita {
namespace {

constexpr uint64_t kHighBits = 0x8080'8080'8080'8080;

// Where EE and EF may stand as lead bytes, or F5 and F6 in their place.
enum class TextForm { kUtf8, kOrdered };

// Most text is ASCII, and long. One compare and branch for all of them.
template <size_t kBytes>
bool IsAscii(const uint8_t* bytes) {
  uint64_t all = 0;
  for (size_t i = 0; i < kBytes; i += 8) all |= LoadLe64(bytes + i);
  return (all & kHighBits) == 0;
}
constexpr size_t kAsciiStride = 128;
constexpr size_t kAsciiStep = 32;

// Bytes at the front that are ASCII: whole steps and words, or all. The last word may overlap the one before.
size_t AsciiPrefix(const uint8_t* bytes, size_t size) {
  size_t at = 0;
  while (size - at >= kAsciiStride && IsAscii<kAsciiStride>(bytes + at)) at += kAsciiStride;
  while (size - at >= kAsciiStep && IsAscii<kAsciiStep>(bytes + at)) at += kAsciiStep;
  while (size - at >= 8 && (LoadLe64(bytes + at) & kHighBits) == 0) at += 8;
  if (size - at >= 8) return at;
  if (size >= 8) return (LoadLe64(bytes + size - 8) & kHighBits) == 0 ? size : at;
  for (; at < size; ++at) {
    if (bytes[at] >= 0x80) break;
  }
  return at;
}

bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Bytes of the character that starts with `text[0]`, 0 when it is not well-formed. Follows the table
// of well-formed byte sequences of the Unicode standard (3-7): only the second byte has special bounds.
template <TextForm kForm>
size_t CharacterSize(const uint8_t* text, size_t available) {
  uint8_t lead = text[0];
  if (lead < 0x80) return 1;
  if constexpr (kForm == TextForm::kOrdered) {
    if (lead == 0xEE || lead == 0xEF) return 0;
    if (lead == 0xF5 || lead == 0xF6) lead = static_cast<uint8_t>(lead - 7);
  }
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (available < size) return 0;
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
  if (lead == 0xE0) second_min = 0xA0;  // Overlong.
  if (lead == 0xED) second_max = 0x9F;  // Surrogates.
  if (lead == 0xF0) second_min = 0x90;  // Overlong.
  if (lead == 0xF4) second_max = 0x8F;  // Above U+10FFFF.
  if (text[1] < second_min || text[1] > second_max) return 0;
  for (size_t i = 2; i < size; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  return size;
}

template <TextForm kForm>
size_t ErrorOffset(std::string_view text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  size_t at = 0;
  while (at < text.size()) {
    at += AsciiPrefix(bytes + at, text.size() - at);
    if (at == text.size()) break;
    const size_t size = CharacterSize<kForm>(bytes + at, text.size() - at);
    if (size == 0) return at;
    at += size;
  }
  return text.size();
}

}  // namespace

size_t Utf8ErrorOffset(std::string_view text) { return ErrorOffset<TextForm::kUtf8>(text); }

bool IsValidUtf8(std::string_view text) { return Utf8ErrorOffset(text) == text.size(); }

bool IsValidOrderedText(std::string_view text) {
  return ErrorOffset<TextForm::kOrdered>(text) == text.size();
}

size_t Utf16Units(std::string_view text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  size_t at = AsciiPrefix(bytes, text.size());
  size_t units = at;
  while (at < text.size()) {
    if (text.size() - at >= kAsciiStep && IsAscii<kAsciiStep>(bytes + at)) {
      units += kAsciiStep;
      at += kAsciiStep;
      continue;
    }
    for (const size_t end = std::min(text.size(), at + kAsciiStep); at < end; ++at) {
      const uint8_t byte = bytes[at];
      // Each lead byte is a unit; the leads of four-byte characters are two (F5, F6 lead three bytes).
      units += static_cast<size_t>((byte & 0xC0) != 0x80) + static_cast<size_t>(byte >= 0xF0 && byte <= 0xF4);
    }
  }
  return units;
}

std::optional<DecodedCharacter> DecodeUtf8(std::string_view text, size_t offset) {
  PARTITA_ASSERT(offset < text.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data()) + offset;
  const size_t size = CharacterSize<TextForm::kUtf8>(bytes, text.size() - offset);
  if (size == 0) return std::nullopt;
  if (size == 1) return DecodedCharacter{bytes[0], 1};
  char32_t character = bytes[0] & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) character = (character << 6) | (bytes[i] & 0x3Fu);
  return DecodedCharacter{character, size};
}

void AppendUtf8Character(std::string* out, char32_t character) {
  PARTITA_ASSERT(character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF));
  auto push = [out](char32_t byte) { out->push_back(static_cast<char>(static_cast<uint8_t>(byte))); };
  if (character < 0x80) return push(character);
  if (character < 0x800) {
    push(0xC0 | (character >> 6));
  } else if (character < 0x10000) {
    push(0xE0 | (character >> 12));
    push(0x80 | ((character >> 6) & 0x3F));
  } else {
    push(0xF0 | (character >> 18));
    push(0x80 | ((character >> 12) & 0x3F));
    push(0x80 | ((character >> 6) & 0x3F));
  }
  push(0x80 | (character & 0x3F));
}

std::string_view Utf16Prefix(std::string_view text, size_t units) {
  size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<uint8_t>(text[at]);
    const size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    const size_t cost = size == 4 ? 2 : 1;
    if (cost > units) break;
    units -= cost;
    at += size;
  }
  return text.substr(0, at);
}

void CopyAsOrderedText(char* to, std::string_view utf8) {
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<uint8_t>(utf8[i]);
    to[i] = static_cast<char>(static_cast<uint8_t>(byte + ((byte & 0xFE) == 0xEE ? 7 : 0)));
  }
}

void CopyAsUtf8(char* to, std::string_view ordered) {
  for (size_t i = 0; i < ordered.size(); ++i) {
    const auto byte = static_cast<uint8_t>(ordered[i]);
    to[i] = static_cast<char>(static_cast<uint8_t>(byte - (static_cast<uint8_t>(byte - 0xF5) < 2 ? 7 : 0)));
  }
}

}  // namespace partita

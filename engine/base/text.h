#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace partita {

// Text of the table model: UTF-8 in memory, measured in UTF-16 code units, because the service's
// limits and order are defined on those. Plain functions; ASCII takes a fast path of 32 bytes a step.

// True for well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
bool IsValidUtf8(std::string_view text);

// The offset of the first byte that breaks the rules of UTF-8; text.size() when none does.
size_t Utf8ErrorOffset(std::string_view text);

// True for the ordered form of well-formed UTF-8 (user_key.h): lead bytes F5 and F6 stand for EE
// and EF, which therefore must not occur.
bool IsValidOrderedText(std::string_view text);

// UTF-16 code units of `text`: a character beyond U+FFFF counts as two. Takes UTF-8 or its ordered
// form. REQUIRES: well-formed.
size_t Utf16Units(std::string_view text);

// One decoded character and the bytes it took.
struct DecodedCharacter {
  char32_t character;
  size_t size;
};

// Decodes the character that starts at `offset`; nothing when the bytes there are not well-formed.
// REQUIRES: offset < text.size().
std::optional<DecodedCharacter> DecodeUtf8(std::string_view text, size_t offset);

// REQUIRES: a Unicode scalar value (not a surrogate, at most U+10FFFF).
void AppendUtf8Character(std::string* out, char32_t character);

// The longest prefix of `text` of at most `units` UTF-16 code units that does not cut a character.
// REQUIRES: well-formed UTF-8.
std::string_view Utf16Prefix(std::string_view text, size_t units);

// OrderedText and Utf8FromOrdered (user_key.h) into memory the caller has: as many bytes as the text.
void CopyAsOrderedText(char* to, std::string_view utf8);
void CopyAsUtf8(char* to, std::string_view ordered);

}  // namespace partita

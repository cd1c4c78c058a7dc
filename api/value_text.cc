#include "api/value_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "api/ascii.h"
#include "api/date_time.h"
#include "api/names.h"
#include "engine/base/text.h"

namespace partita {
namespace {

constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> MakeBase64Values() {
  std::array<int8_t, 256> values{};
  for (int8_t& value : values) value = -1;
  for (size_t i = 0; i < kBase64Digits.size(); ++i) {
    values[static_cast<uint8_t>(kBase64Digits[i])] = static_cast<int8_t>(i);
  }
  return values;
}
constexpr std::array<int8_t, 256> kBase64Values = MakeBase64Values();

Status NotOfType(PropertyType type, std::string_view text) {
  return BrokenRule(Violation::kInvalidInput,
                    QuotedForMessage(text) + " is no " + std::string(EdmTypeName(type)));
}

size_t SkipDigits(std::string_view text, size_t at) {
  while (at < text.size() && IsAsciiDigit(text[at])) ++at;
  return at;
}

template <typename T>
std::optional<T> ParseInteger(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Whether a JSON number that no long double holds is too large; else it is too small, or 0. By the power of
// ten of its first digit that is not 0.
bool IsHuge(std::string_view text) {
  const size_t mantissa_end = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, mantissa_end);
  const size_t first = mantissa.find_first_of("123456789");
  if (first == mantissa.npos) return false;
  const auto point = static_cast<int64_t>(std::min(mantissa.find('.'), mantissa.size()));
  int64_t exponent = 0;
  if (mantissa_end < text.size()) {
    std::string_view digits = text.substr(mantissa_end + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const std::errc error = std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec;
    if (error == std::errc::result_out_of_range) return !digits.starts_with('-');
  }
  return exponent > static_cast<int64_t>(first) - point;
}

// A JSON number; nothing when it is beyond the largest double. One that is too small becomes zero.
std::optional<double> ParseJsonDouble(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const std::errc error = std::from_chars(text.data(), end, value).ec;
  if (error == std::errc()) return value;
  // from_chars does not tell overflow from underflow; the wider exponent of long double does.
  long double wide = 0;
  if (std::from_chars(text.data(), end, wide).ec == std::errc()) {
    if (std::abs(wide) > 1) return std::nullopt;
    return static_cast<double>(wide);
  }
  if (IsHuge(text)) return std::nullopt;
  return text[0] == '-' ? -0.0 : 0.0;
}

std::optional<double> ParseDoubleText(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (!IsJsonNumber(text)) return std::nullopt;
  return ParseJsonDouble(text);
}

bool IsGuidHyphen(size_t at) { return at == 8 || at == 13 || at == 18 || at == 23; }

std::optional<Guid> ParseGuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  Guid guid;
  size_t nibbles = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (IsGuidHyphen(at)) {
      if (text[at] != '-') return std::nullopt;
      continue;
    }
    const int digit = HexDigitValue(text[at]);
    if (digit < 0) return std::nullopt;
    uint8_t& byte = guid.bytes[nibbles / 2];
    byte = static_cast<uint8_t>(byte << 4 | digit);
    ++nibbles;
  }
  return guid;
}

uint8_t ByteOf(char c) { return static_cast<uint8_t>(c); }

std::optional<Binary> ParseBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const size_t digits = text.size() - padding;
  Binary binary;
  binary.bytes.resize(digits * 3 / 4);
  char* to = binary.bytes.data();
  int32_t bad = 0;  // Negative once a character is no digit.
  size_t at = 0;
  for (; digits - at >= 4; at += 4) {
    int32_t bits = 0;
    for (size_t i = 0; i < 4; ++i) {
      const int32_t value = kBase64Values[ByteOf(text[at + i])];
      bad |= value;
      bits = bits << 6 | (value & 0x3F);
    }
    *to++ = static_cast<char>(bits >> 16);
    *to++ = static_cast<char>(bits >> 8 & 0xFF);
    *to++ = static_cast<char>(bits & 0xFF);
  }
  uint32_t bits = 0;
  for (size_t i = 0; at + i < digits; ++i) {
    const int32_t value = kBase64Values[ByteOf(text[at + i])];
    bad |= value;
    bits = bits << 6 | static_cast<uint32_t>(value & 0x3F);
    // Every digit but a group's first completes a byte.
    if (i != 0) *to++ = static_cast<char>(static_cast<uint8_t>(bits >> (6 - 2 * i)));
  }
  if (bad < 0) return std::nullopt;
  return binary;
}

// As the service's platform reads it, and Ruby's client writes more than 45 bytes: in lines. Blanks are no
// digits, so who has none is not looked through for them.
std::optional<Binary> ParseBase64Lines(std::string_view text) {
  std::optional<Binary> binary = ParseBase64(text);
  if (binary) return binary;
  std::string joined(text);
  std::erase_if(joined, [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; });
  return ParseBase64(joined);
}

bool IsPlain(double magnitude) { return magnitude == 0 || (magnitude >= 1e-5 && magnitude < 1e15); }

char* WriteText(char* to, std::string_view text) { return std::copy(text.begin(), text.end(), to); }

}  // namespace

char* WriteInteger(char* to, int64_t value) { return std::to_chars(to, to + kIntegerTextMax, value).ptr; }

char* WriteDouble(char* to, double value) {
  if (std::isnan(value)) return WriteText(to, "NaN");
  if (std::isinf(value)) return WriteText(to, value < 0 ? "-Infinity" : "Infinity");
  if (IsPlain(std::abs(value))) {
    char* end = std::to_chars(to, to + kDoubleTextMax, value, std::chars_format::fixed).ptr;
    return std::find(to, end, '.') == end ? WriteText(end, ".0") : end;
  }
  char* end = std::to_chars(to, to + kDoubleTextMax, value, std::chars_format::scientific).ptr;
  char* exponent = std::find(to, end, 'e');
  *exponent = 'E';
  if (std::find(to, exponent, '.') != exponent) return end;
  std::copy_backward(exponent, end, end + 2);
  WriteText(exponent, ".0");
  return end + 2;
}

char* WriteGuid(char* to, const Guid& guid) {
  for (size_t i = 0; i < guid.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *to++ = '-';
    *to++ = "0123456789abcdef"[guid.bytes[i] >> 4];
    *to++ = "0123456789abcdef"[guid.bytes[i] & 0xF];
  }
  return to;
}

char* WriteBase64(char* to, std::string_view bytes) {
  size_t i = 0;
  for (; bytes.size() - i >= 3; i += 3) {
    const uint32_t bits =
        uint32_t{ByteOf(bytes[i])} << 16 | uint32_t{ByteOf(bytes[i + 1])} << 8 | ByteOf(bytes[i + 2]);
    *to++ = kBase64Digits[bits >> 18];
    *to++ = kBase64Digits[bits >> 12 & 0x3F];
    *to++ = kBase64Digits[bits >> 6 & 0x3F];
    *to++ = kBase64Digits[bits & 0x3F];
  }
  if (i == bytes.size()) return to;
  const bool two = bytes.size() - i == 2;
  const uint32_t bits = uint32_t{ByteOf(bytes[i])} << 16 | (two ? uint32_t{ByteOf(bytes[i + 1])} << 8 : 0);
  *to++ = kBase64Digits[bits >> 18];
  *to++ = kBase64Digits[bits >> 12 & 0x3F];
  *to++ = two ? kBase64Digits[bits >> 6 & 0x3F] : '=';
  *to++ = '=';
  return to;
}

bool IsJsonNumber(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t integer_end = SkipDigits(text, at);
  if (integer_end == at || (text[at] == '0' && integer_end > at + 1)) return false;
  at = integer_end;
  if (at < text.size() && text[at] == '.') {
    const size_t fraction_end = SkipDigits(text, at + 1);
    if (fraction_end == at + 1) return false;
    at = fraction_end;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t exponent_end = SkipDigits(text, at);
    if (exponent_end == at) return false;
    at = exponent_end;
  }
  return at == text.size();
}

std::optional<PropertyValue> InferJsonNumber(std::string_view text) {
  if (!IsJsonNumber(text)) return std::nullopt;
  if (text.find_first_of(".eE") == text.npos) {
    if (const std::optional<int32_t> integer = ParseInteger<int32_t>(text)) return PropertyValue(*integer);
  }
  const std::optional<double> number = ParseJsonDouble(text);
  if (!number) return std::nullopt;
  return PropertyValue(*number);
}

Result<PropertyValue> ParseValueText(PropertyType type, std::string_view text) {
  switch (type) {
    case PropertyType::kString:
      if (IsValidUtf8(text)) return PropertyValue(text);
      break;
    case PropertyType::kInt32:
      if (const auto integer = ParseInteger<int32_t>(text)) return PropertyValue(*integer);
      break;
    case PropertyType::kInt64:
      if (const auto integer = ParseInteger<int64_t>(text)) return PropertyValue(*integer);
      break;
    case PropertyType::kDouble:
      if (const auto number = ParseDoubleText(text)) return PropertyValue(*number);
      break;
    case PropertyType::kBoolean:
      if (text == "true" || text == "false") return PropertyValue(text == "true");
      break;
    case PropertyType::kDateTime: {
      PARTITA_ASSIGN(const DateTime time, ParseDateTime(text));
      return PropertyValue(time);
    }
    case PropertyType::kGuid:
      if (const auto guid = ParseGuid(text)) return PropertyValue(*guid);
      break;
    case PropertyType::kBinary:
      if (auto binary = ParseBase64Lines(text)) return PropertyValue(std::move(*binary));
      break;
  }
  return NotOfType(type, text);
}

void AppendValueText(std::string* out, const PropertyValue& value) {
  if (const auto* text = value.if_string()) {
    out->append(*text);
    return;
  }
  if (const auto* binary = value.if_binary()) {
    const size_t size = out->size();
    out->resize(size + Base64Size(binary->bytes.size()));
    WriteBase64(out->data() + size, binary->bytes);
    return;
  }
  char text[std::max({kIntegerTextMax, kDoubleTextMax, kDateTimeTextMax, kGuidTextSize})];
  char* end = text;
  if (const auto* narrow = value.if_int32()) {
    end = WriteInteger(text, *narrow);
  } else if (const auto* wide = value.if_int64()) {
    end = WriteInteger(text, *wide);
  } else if (const auto* number = value.if_double()) {
    end = WriteDouble(text, *number);
  } else if (const auto* flag = value.if_boolean()) {
    end = WriteText(text, *flag ? "true" : "false");
  } else if (const auto* time = value.if_date_time()) {
    end = WriteDateTime(text, *time);
  } else if (const auto* guid = value.if_guid()) {
    end = WriteGuid(text, *guid);
  }
  out->append(text, end);
}

}  // namespace partita

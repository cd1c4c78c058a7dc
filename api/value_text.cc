#include "api/value_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

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

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t SkipDigits(std::string_view text, size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}

template <typename T>
std::optional<T> ParseInteger(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
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
  if (text.find("e-") == text.npos && text.find("E-") == text.npos) return std::nullopt;
  return text[0] == '-' ? -0.0 : 0.0;
}

std::optional<double> ParseDoubleText(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (!IsJsonNumber(text)) return std::nullopt;
  return ParseJsonDouble(text);
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
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
    const int digit = HexDigit(text[at]);
    if (digit < 0) return std::nullopt;
    uint8_t& byte = guid.bytes[nibbles / 2];
    byte = static_cast<uint8_t>(byte << 4 | digit);
    ++nibbles;
  }
  return guid;
}

std::optional<Binary> ParseBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  Binary binary;
  binary.bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  const size_t digits = text.size() - padding;
  for (size_t i = 0; i < digits; ++i) {
    const int8_t value = kBase64Values[static_cast<uint8_t>(text[i])];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    // Every digit but a group's first completes a byte.
    if (i % 4 != 0)
      binary.bytes.push_back(static_cast<char>(static_cast<uint8_t>(bits >> (6 - 2 * (i % 4)))));
  }
  return binary;
}

void AppendBase64(std::string* out, std::string_view bytes) {
  out->reserve(out->size() + (bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t taken = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) bits = bits << 8 | (j < taken ? static_cast<uint8_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) {
      out->push_back(j <= taken ? kBase64Digits[bits >> (18 - 6 * j) & 0x3F] : '=');
    }
  }
}

void AppendDouble(std::string* out, double value) {
  if (std::isnan(value)) {
    out->append("NaN");
    return;
  }
  if (std::isinf(value)) {
    out->append(value < 0 ? "-Infinity" : "Infinity");
    return;
  }
  char text[32];
  const double magnitude = std::abs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-5 && magnitude < 1e15);
  const std::chars_format format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const char* end = std::to_chars(text, text + sizeof text, value, format).ptr;
  const std::string_view digits(text, static_cast<size_t>(end - text));
  const size_t exponent = digits.find('e');
  const std::string_view mantissa = digits.substr(0, exponent);
  out->append(mantissa);
  if (mantissa.find('.') == mantissa.npos) out->append(".0");
  if (exponent != digits.npos) out->append("E").append(digits.substr(exponent + 1));
}

void AppendGuid(std::string* out, const Guid& guid) {
  size_t nibbles = 0;
  for (size_t at = 0; at < 36; ++at) {
    if (IsGuidHyphen(at)) {
      out->push_back('-');
      continue;
    }
    const uint8_t byte = guid.bytes[nibbles / 2];
    out->push_back("0123456789abcdef"[nibbles % 2 == 0 ? byte >> 4 : byte & 0xF]);
    ++nibbles;
  }
}

template <typename T>
void AppendInteger(std::string* out, T value) {
  char text[24];
  const char* end = std::to_chars(text, text + sizeof text, value).ptr;
  out->append(text, static_cast<size_t>(end - text));
}

}  // namespace

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
      if (auto binary = ParseBase64(text)) return PropertyValue(std::move(*binary));
      break;
  }
  return NotOfType(type, text);
}

void AppendValueText(std::string* out, const PropertyValue& value) {
  if (const auto* text = value.if_string()) {
    out->append(*text);
  } else if (const auto* narrow = value.if_int32()) {
    AppendInteger(out, *narrow);
  } else if (const auto* wide = value.if_int64()) {
    AppendInteger(out, *wide);
  } else if (const auto* number = value.if_double()) {
    AppendDouble(out, *number);
  } else if (const auto* flag = value.if_boolean()) {
    out->append(*flag ? "true" : "false");
  } else if (const auto* time = value.if_date_time()) {
    AppendDateTime(out, *time);
  } else if (const auto* guid = value.if_guid()) {
    AppendGuid(out, *guid);
  } else if (const auto* binary = value.if_binary()) {
    AppendBase64(out, binary->bytes);
  }
}

}  // namespace partita

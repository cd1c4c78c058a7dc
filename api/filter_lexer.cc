#include "api/filter_lexer.h"

#include <charconv>
#include <limits>

#include "api/ascii.h"
#include "api/date_time.h"
#include "api/names.h"
#include "api/value_text.h"
#include "engine/base/text.h"

namespace partita {
namespace {

using Kind = FilterToken::Kind;

// A message quotes so much of the filter.
constexpr size_t kQuotedUnitsMax = 2048;
constexpr size_t kDateOnlySize = 10;  // YYYY-MM-DD

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
// Every byte beyond ASCII belongs to a word: CheckPropertyName judges the characters.
bool IsInWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsAsciiDigit(c) || c == '_' ||
         static_cast<uint8_t>(c) >= 0x80;
}

bool EqualIgnoringCase(std::string_view word, std::string_view lower) {
  if (word.size() != lower.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if ((word[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

// The type whose literals begin with this word and a quote.
std::optional<PropertyType> TypeOfPrefix(std::string_view word) {
  if (EqualIgnoringCase(word, "datetime")) return PropertyType::kDateTime;
  if (EqualIgnoringCase(word, "guid")) return PropertyType::kGuid;
  if (EqualIgnoringCase(word, "x") || EqualIgnoringCase(word, "binary")) return PropertyType::kBinary;
  return std::nullopt;
}

std::optional<PropertyValue> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  Binary binary;
  binary.bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexDigitValue(text[i]);
    const int low = HexDigitValue(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    binary.bytes.push_back(static_cast<char>(static_cast<uint8_t>(high << 4 | low)));
  }
  return binary;
}

// The contents of a literal with a prefix; nothing when they are malformed.
std::optional<PropertyValue> TypedValue(PropertyType type, std::string_view text) {
  if (type == PropertyType::kBinary) return FromHex(text);
  if (type == PropertyType::kDateTime && text.size() == kDateOnlySize) {
    // A date alone is midnight (unconfirmed in the reference; clients' tests use it).
    Result<DateTime> midnight = ParseDateTime(std::string(text) + "T00:00:00Z");
    if (!midnight.ok()) return std::nullopt;
    return *midnight;
  }
  Result<PropertyValue> value = ParseValueText(type, text);
  if (!value.ok()) return std::nullopt;
  return std::move(value).value();
}

// Int32 when it fits and has no L, else Int64. An integer beyond Int32 without L is refused by the
// service; JavaScript's filter helper writes big integers so, hence it is taken (spec 11.2).
std::optional<PropertyValue> IntegerValue(std::string_view digits, bool is_long) {
  if (digits.starts_with('+')) digits.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (!is_long && value == static_cast<int32_t>(value)) return static_cast<int32_t>(value);
  return value;
}

std::optional<PropertyValue> DoubleValue(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Result<PropertyValue> value = ParseValueText(PropertyType::kDouble, text);
  if (!value.ok()) return std::nullopt;
  return std::move(value).value();
}

// Of Edm.Single, Edm.Double and Edm.Decimal. All are Doubles: a property of a .NET class is stored as one,
// whichever of the three it is there.
bool IsDoubleSuffix(char c) {
  const char lower = AsciiLower(c);
  return lower == 'f' || lower == 'd' || lower == 'm';
}

}  // namespace

std::optional<double> DoubleOfWord(std::string_view word) {
  if (word == "INF" || word == "INFf") return std::numeric_limits<double>::infinity();
  if (word == "-INF" || word == "-INFf") return -std::numeric_limits<double>::infinity();
  if (word == "NaN" || word == "NaNf") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::string FilterLexer::Place(size_t offset) const {
  return " at position " + std::to_string(Utf16Units(text_.substr(0, offset))) + " in '" +
         std::string(Utf16Prefix(text_, kQuotedUnitsMax)) + "'.";
}

Status FilterLexer::SyntaxError(size_t offset) const {
  return BrokenRule(Violation::kInvalidInput, "Syntax error" + Place(offset));
}

void FilterLexer::SkipSpace() {
  while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
}

bool FilterLexer::OpensNext() const {
  size_t at = at_;
  while (at < text_.size() && IsSpace(text_[at])) ++at;
  return At(at) == '(';
}

size_t FilterLexer::WordEnd(size_t from) const {
  while (from < text_.size() && IsInWord(text_[from])) ++from;
  return from;
}

FilterToken FilterLexer::Finish(Kind kind, size_t end) {
  FilterToken token{.kind = kind, .text = text_.substr(at_, end - at_), .end = end};
  at_ = end;
  return token;
}

FilterToken FilterLexer::Valued(PropertyValue value, size_t end) {
  FilterToken token = Finish(Kind::kLiteral, end);
  token.value = std::move(value);
  return token;
}

FilterToken FilterLexer::Malformed(PropertyType type, size_t end) {
  const std::string_view literal = Utf16Prefix(text_.substr(at_, end - at_), kQuotedUnitsMax);
  fault_ = BrokenRule(Violation::kInvalidInput,
                      "Unrecognized '" + std::string(EdmTypeName(type)) + "' literal '" +
                          std::string(literal) + "' at '" + std::to_string(Utf16Units(text_.substr(0, at_))) +
                          "' in '" + std::string(Utf16Prefix(text_, kQuotedUnitsMax)) + "'.");
  return Finish(Kind::kMalformed, end);
}

FilterToken FilterLexer::Next() {
  SkipSpace();
  if (at_ == text_.size()) return Finish(Kind::kEnd, at_);
  const char c = text_[at_];
  if (c == '(') return Finish(Kind::kOpen, at_ + 1);
  if (c == ')') return Finish(Kind::kClose, at_ + 1);
  if (c == ',') return Finish(Kind::kComma, at_ + 1);
  if (c == '\'') return String();
  if (IsAsciiDigit(c) || ((c == '-' || c == '+') && IsAsciiDigit(At(at_ + 1)))) return Number();
  if (IsInWord(c)) return Word();
  if (c == '-') {
    const size_t end = WordEnd(at_ + 1);
    if (const std::optional<double> number = DoubleOfWord(text_.substr(at_, end - at_))) {
      return Valued(*number, end);
    }
  }
  // A character that begins nothing: the parser stops before it.
  return Finish(Kind::kUnknown, at_);
}

FilterToken FilterLexer::String() {
  std::string value;
  size_t from = at_ + 1;
  while (true) {
    const size_t quote = text_.find('\'', from);
    if (quote == text_.npos) return Finish(Kind::kUnknown, text_.size());  // Never closed.
    value.append(text_.substr(from, quote - from));
    if (At(quote + 1) != '\'') return Valued(std::move(value), quote + 1);
    value.push_back('\'');
    from = quote + 2;
  }
}

FilterToken FilterLexer::Number() {
  const auto skip_digits = [this](size_t from) {
    while (IsAsciiDigit(At(from))) ++from;
    return from;
  };
  size_t end = skip_digits(at_ + 1);
  bool is_double = false;
  if (At(end) == '.' && IsAsciiDigit(At(end + 1))) {
    is_double = true;
    end = skip_digits(end + 1);
  }
  if ((At(end) | 0x20) == 'e') {
    const size_t digits = end + (At(end + 1) == '-' || At(end + 1) == '+' ? 2 : 1);
    if (IsAsciiDigit(At(digits))) {
      is_double = true;
      end = skip_digits(digits);
    }
  }
  const std::string_view number = text_.substr(at_, end - at_);
  const bool is_long = !is_double && (At(end) | 0x20) == 'l';
  const bool has_double_suffix = IsDoubleSuffix(At(end));
  is_double |= has_double_suffix;
  if (is_long || has_double_suffix) ++end;
  if (WordEnd(end) != end) return Finish(Kind::kUnknown, WordEnd(end));  // Such as `5and`.
  std::optional<PropertyValue> value = is_double ? DoubleValue(number) : IntegerValue(number, is_long);
  if (value) return Valued(*std::move(value), end);
  return Malformed(is_double ? PropertyType::kDouble
                   : is_long ? PropertyType::kInt64
                             : PropertyType::kInt32,
                   end);
}

FilterToken FilterLexer::Word() {
  const size_t end = WordEnd(at_);
  if (At(end) == '\'') {
    if (const std::optional<PropertyType> type = TypeOfPrefix(text_.substr(at_, end - at_))) {
      return Typed(*type, end);
    }
  }
  return Finish(Kind::kWord, end);
}

FilterToken FilterLexer::Typed(PropertyType type, size_t quote) {
  const size_t close = text_.find('\'', quote + 1);
  if (close == text_.npos) return Finish(Kind::kUnknown, text_.size());
  std::optional<PropertyValue> value = TypedValue(type, text_.substr(quote + 1, close - quote - 1));
  return value ? Valued(*std::move(value), close + 1) : Malformed(type, close + 1);
}

}  // namespace partita

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace partita::lab {

// U+FFFD, for bytes that are no UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Writes JSON, indented, in the order of the calls. Numbers that are no numbers become null, and each byte of
// a text that is no UTF-8 becomes U+FFFD: what is written is always JSON. Used by one thread.
class JsonText {
 public:
  JsonText& BeginObject() { return Begin('{'); }
  JsonText& EndObject() { return End('}'); }
  JsonText& BeginArray() { return Begin('['); }
  JsonText& EndArray() { return End(']'); }
  // A member that is an array of numbers, on one line.
  template <typename T>
  JsonText& Numbers(std::string_view name, const std::vector<T>& numbers) {
    Key(name).BeginLine();
    for (const T& number : numbers) Value(number);
    return EndLine();
  }
  // An array on one line, with all that is in it.
  JsonText& BeginLine() {
    Begin('[');
    ++lines_;
    return *this;
  }
  JsonText& EndLine() {
    End(']');
    --lines_;
    return *this;
  }
  JsonText& Key(std::string_view name);
  JsonText& Value(std::string_view text);
  JsonText& Value(const char* text) { return Value(std::string_view(text)); }
  template <typename T>
  requires std::is_arithmetic_v<T> JsonText& Value(T number) {
    if constexpr (std::is_same_v<T, bool>) return Raw(number ? "true" : "false");
    if constexpr (std::is_integral_v<T>) return Raw(std::to_string(number));
    return Number(static_cast<double>(number));
  }
  template <typename T>
  JsonText& Member(std::string_view name, const T& value) {
    return Key(name).Value(value);
  }

  const std::string& text() const { return text_; }

 private:
  JsonText& Begin(char bracket);
  JsonText& End(char bracket);
  JsonText& Number(double number);
  JsonText& Raw(std::string_view text);
  void AppendQuoted(std::string_view text);
  void AppendEscaped(std::string_view text);  // REQUIRES: UTF-8.
  void NewLine();

  std::string text_;
  int depth_ = 0;
  int lines_ = 0;      // Open arrays on one line.
  bool first_ = true;  // Nothing stands in the innermost bracket yet.
  bool behind_key_ = false;
};

}  // namespace partita::lab

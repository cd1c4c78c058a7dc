#include "bench/lab/json_text.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/base/text.h"

namespace partita::lab {
namespace {}  // namespace

void JsonText::NewLine() {
  if (lines_ > 0) return;
  text_.push_back('\n');
  text_.append(static_cast<size_t>(depth_) * 2, ' ');
}

JsonText& JsonText::Raw(std::string_view text) {
  if (!behind_key_ && depth_ > 0) {
    if (!first_) text_.push_back(',');
    NewLine();
  }
  behind_key_ = first_ = false;
  text_.append(text);
  return *this;
}

JsonText& JsonText::Begin(char bracket) {
  Raw({&bracket, 1});
  ++depth_;
  first_ = true;
  return *this;
}

JsonText& JsonText::End(char bracket) {
  --depth_;
  if (!first_) NewLine();
  first_ = false;
  text_.push_back(bracket);
  return *this;
}

JsonText& JsonText::Key(std::string_view name) {
  if (!first_) text_.push_back(',');
  NewLine();
  first_ = false;
  AppendQuoted(name);
  text_.append(": ");
  behind_key_ = true;
  return *this;
}

JsonText& JsonText::Value(std::string_view text) {
  Raw("");
  AppendQuoted(text);
  return *this;
}

JsonText& JsonText::Number(double number) {
  if (!std::isfinite(number)) return Raw("null");
  char digits[32];
  return Raw({digits, std::to_chars(digits, digits + sizeof(digits), number).ptr});
}

void JsonText::AppendQuoted(std::string_view text) {
  text_.push_back('"');
  while (!text.empty()) {
    const size_t sound = Utf8ErrorOffset(text);
    AppendEscaped(text.substr(0, sound));
    if (sound == text.size()) break;
    text_.append(kReplacementCharacter);
    text.remove_prefix(sound + 1);
  }
  text_.push_back('"');
}

void JsonText::AppendEscaped(std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      text_.push_back('\\');
      text_.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      text_.append(escaped);
    } else {
      text_.push_back(c);
    }
  }
}

}  // namespace partita::lab

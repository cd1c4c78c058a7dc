#include "api/query_token.h"

#include "api/ascii.h"
#include "api/names.h"
#include "api/value_text.h"
#include "engine/base/text.h"

namespace partita {
namespace {

constexpr std::string_view kPrefix = "1!";
constexpr std::string_view kStandard = "+/=";
constexpr std::string_view kOurs = "._-";

void Replace(std::string* text, std::string_view from, std::string_view to) {
  for (char& c : *text) {
    const size_t at = from.find(c);
    if (at != from.npos) c = to[at];
  }
}

Status Malformed() {
  return BrokenRule(Violation::kInvalidInput, "the continuation token is not one that a query returned");
}

// Tokens hold no `%`: one that came was escaped once too often.
bool Unescape(std::string* text) {
  std::string out;
  for (size_t i = 0; i < text->size(); ++i) {
    char c = (*text)[i];
    if (c == '%') {
      const int high = i + 2 < text->size() ? HexDigitValue((*text)[i + 1]) : -1;
      const int low = high >= 0 ? HexDigitValue((*text)[i + 2]) : -1;
      if (low < 0) return false;
      c = static_cast<char>(high << 4 | low);
      i += 2;
    }
    out.push_back(c);
  }
  *text = std::move(out);
  return true;
}

}  // namespace

std::string EncodeKeyToken(std::string_view key) {
  std::string text;
  AppendValueText(&text, Binary{std::string(key)});
  Replace(&text, kStandard, kOurs);
  return std::string(kPrefix) + std::to_string(text.size()) + "!" + text;
}

Result<std::string> DecodeKeyToken(std::string_view text) {
  if (text.empty()) return std::string();
  std::string token(text);
  if (token.find('%') != token.npos && !Unescape(&token)) return Malformed();
  const size_t base64_at = token.rfind('!') + 1;
  std::string base64 = token.substr(base64_at);
  Replace(&base64, kOurs, kStandard);
  Result<PropertyValue> value = ParseValueText(PropertyType::kBinary, base64);
  if (!value.ok() || !IsValidUtf8(value->if_binary()->bytes)) return Malformed();
  std::string key = value->if_binary()->bytes;
  // Base64 is read leniently above, and what stands before it not at all.
  if (EncodeKeyToken(key) != token) return Malformed();
  return key;
}

Result<std::optional<QueryPosition>> DecodePosition(std::optional<std::string_view> next_partition_key,
                                                    std::optional<std::string_view> next_row_key) {
  const std::string_view partition_text = next_partition_key.value_or("");
  const std::string_view row_text = next_row_key.value_or("");
  if (partition_text.empty()) {
    if (!row_text.empty()) return Malformed();
    return std::optional<QueryPosition>();
  }
  QueryPosition position;
  PARTITA_ASSIGN(position.partition_key, DecodeKeyToken(partition_text));
  PARTITA_ASSIGN(position.row_key, DecodeKeyToken(row_text));
  return std::optional<QueryPosition>(std::move(position));
}

}  // namespace partita

#include "api/names.h"

#include <algorithm>
#include <optional>

#include "api/ascii.h"
#include "api/identifier_ranges.h"
#include "api/limits.h"
#include "engine/base/result.h"
#include "engine/base/text.h"

namespace partita {
namespace {

bool InRanges(const CharacterRange* ranges, size_t count, char32_t character) {
  const CharacterRange* end = ranges + count;
  const CharacterRange* range = std::lower_bound(
      ranges, end, character, [](const CharacterRange& r, char32_t c) { return r.last < c; });
  return range != end && range->first <= character;
}

bool StartsIdentifier(char32_t c) { return InRanges(kIdentifierStart, kIdentifierStartCount, c); }
bool ContinuesIdentifier(char32_t c) {
  return StartsIdentifier(c) || InRanges(kIdentifierLater, kIdentifierLaterCount, c);
}

std::string Hex(uint32_t value, size_t digits) {
  std::string out(digits, '0');
  for (size_t i = digits; i > 0; --i, value >>= 4) out[i - 1] = "0123456789ABCDEF"[value & 0xF];
  return out;
}

std::string CharacterForMessage(char32_t character) {
  const std::string code = "U+" + Hex(static_cast<uint32_t>(character), character > 0xFFFF ? 6 : 4);
  if (character <= 0x20 || (character >= 0x7F && character <= 0x9F)) return code;
  std::string text;
  AppendUtf8Character(&text, character);
  return "'" + text + "' (" + code + ")";
}

std::string Where(size_t offset) { return " at byte " + std::to_string(offset); }

// What every message on a key or a name starts with: `RowKey "abc"`.
std::string Subject(std::string_view what, std::string_view text) {
  return std::string(what) + " " + QuotedForMessage(text);
}

}  // namespace

std::string_view ViolationName(Violation violation) {
  switch (violation) {
    case Violation::kNone:
      return "None";
    case Violation::kOutOfRangeInput:
      return "OutOfRangeInput";
    case Violation::kInvalidResourceName:
      return "InvalidResourceName";
    case Violation::kPropertyValueTooLarge:
      return "PropertyValueTooLarge";
    case Violation::kPropertyNameTooLong:
      return "PropertyNameTooLong";
    case Violation::kPropertyNameInvalid:
      return "PropertyNameInvalid";
    case Violation::kTooManyProperties:
      return "TooManyProperties";
    case Violation::kEntityTooLarge:
      return "EntityTooLarge";
    case Violation::kInvalidInput:
      return "InvalidInput";
    case Violation::kDuplicatePropertiesSpecified:
      return "DuplicatePropertiesSpecified";
    case Violation::kPropertiesNeedValue:
      return "PropertiesNeedValue";
  }
  return "None";
}

Violation ViolationOf(const Status& status) {
  if (status.code() != Code::kInvalidArgument) return Violation::kNone;
  if (status.detail() > static_cast<uint16_t>(Violation::kPropertiesNeedValue)) return Violation::kNone;
  return static_cast<Violation>(status.detail());
}

Status BrokenRule(Violation violation, std::string message) {
  return Status::InvalidArgument(std::move(message)).WithDetail(static_cast<uint16_t>(violation));
}

std::string QuotedForMessage(std::string_view text) {
  constexpr size_t kShownMax = 64;
  std::string out = "\"";
  size_t at = 0;
  while (at < text.size() && at < kShownMax) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const std::optional<DecodedCharacter> decoded = DecodeUtf8(text, at);
    const size_t size = decoded ? decoded->size : 1;
    const bool shown = decoded && byte >= 0x20 && byte != 0x7F && decoded->character != '"' &&
                       !(decoded->character >= 0x80 && decoded->character <= 0x9F);
    if (shown) {
      out.append(text.substr(at, size));
    } else {
      for (size_t i = 0; i < size; ++i) out += "\\x" + Hex(static_cast<uint8_t>(text[at + i]), 2);
    }
    at += size;
  }
  out += '"';
  if (at < text.size()) out += "... (" + std::to_string(text.size()) + " bytes)";
  return out;
}

Status CheckTableName(std::string_view name) {
  const std::string subject = Subject("table name", name);
  if (name.empty()) return BrokenRule(Violation::kInvalidResourceName, subject + " is empty");
  const size_t characters = IsValidUtf8(name) ? Utf16Units(name) : name.size();
  if (characters < kTableNameSizeMin || characters > kTableNameSizeMax) {
    return BrokenRule(Violation::kOutOfRangeInput,
                      subject + " has " + std::to_string(characters) + " characters; allowed are 3 to 63");
  }
  for (size_t at = 0; at < name.size(); ++at) {
    if (IsAsciiLetter(name[at]) || (at > 0 && IsAsciiDigit(name[at]))) continue;
    return BrokenRule(Violation::kInvalidResourceName,
                      subject + Where(at) + " breaks the rule: ASCII letters and digits, a letter first");
  }
  if (FoldTableName(name) == "tables") {
    return BrokenRule(Violation::kInvalidInput, subject + " is reserved in any spelling");
  }
  return Status();
}

Status CheckAccountName(std::string_view name) {
  bool right_size = name.size() >= kAccountNameSizeMin && name.size() <= kAccountNameSizeMax;
  bool right_characters = std::all_of(
      name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
  if (right_size && right_characters) return Status();
  return BrokenRule(Violation::kInvalidInput,
                    "account " + QuotedForMessage(name) + " is no account name: 3 to 24 of a-z and 0-9");
}

Status CheckThroughputNames(const ThroughputTargets& targets) {
  for (size_t i = 0; i < targets.rules.size(); ++i) {
    const ThroughputRule& rule = targets.rules[i];
    Status checked = rule.account.empty() ? Status() : CheckAccountName(rule.account);
    if (checked.ok() && !rule.table.empty()) checked = CheckTableName(rule.table);
    if (!checked.ok()) return checked.WithContext("throughput rule " + std::to_string(i + 1));
  }
  return Status();
}

std::string FoldTableName(std::string_view name) {
  std::string folded(name);
  std::transform(folded.begin(), folded.end(), folded.begin(), AsciiLower);
  return folded;
}

std::string_view KeyKindName(KeyKind kind) {
  return kind == KeyKind::kPartitionKey ? "PartitionKey" : "RowKey";
}

bool IsForbiddenInKey(char32_t c) {
  return c <= 0x1F || (c >= 0x7F && c <= 0x9F) || c == '/' || c == '\\' || c == '#' || c == '?';
}

Status CheckUtf8(std::string_view what, std::string_view text) {
  const size_t error = Utf8ErrorOffset(text);
  if (error == text.size()) return Status();
  return BrokenRule(Violation::kInvalidInput, Subject(what, text) + " is not well-formed UTF-8" +
                                                  Where(error) + "; a lone surrogate is not a character");
}

Status CheckKey(KeyKind kind, std::string_view key) {
  PARTITA_TRY(CheckUtf8(KeyKindName(kind), key));
  const size_t units = Utf16Units(key);
  if (units > kKeyUnitsMax) {
    return BrokenRule(Violation::kPropertyValueTooLarge,
                      Subject(KeyKindName(kind), key) + " has " + std::to_string(units) +
                          " UTF-16 units; allowed are " + std::to_string(kKeyUnitsMax));
  }
  for (size_t at = 0; at < key.size();) {
    const auto byte = static_cast<uint8_t>(key[at]);
    if (byte < 0x80 && !IsForbiddenInKey(byte)) {
      ++at;
      continue;
    }
    const DecodedCharacter decoded = *DecodeUtf8(key, at);
    if (IsForbiddenInKey(decoded.character)) {
      return BrokenRule(Violation::kOutOfRangeInput, Subject(KeyKindName(kind), key) + " holds " +
                                                         CharacterForMessage(decoded.character) + Where(at) +
                                                         "; forbidden are / \\ # ? and control characters");
    }
    at += decoded.size;
  }
  return Status();
}

Status CheckPropertyName(std::string_view name) {
  PARTITA_TRY(CheckUtf8("property name", name));
  if (name.empty()) return BrokenRule(Violation::kPropertyNameInvalid, "property name \"\" is empty");
  const size_t units = Utf16Units(name);
  if (units > kPropertyNameUnitsMax) {
    return BrokenRule(Violation::kPropertyNameTooLong,
                      Subject("property name", name) + " has " + std::to_string(units) +
                          " UTF-16 units; allowed are " + std::to_string(kPropertyNameUnitsMax));
  }
  for (size_t at = 0; at < name.size();) {
    const char c = name[at];
    if (IsAsciiLetter(c) || c == '_' || (at > 0 && IsAsciiDigit(c))) {
      ++at;
      continue;
    }
    const DecodedCharacter decoded = *DecodeUtf8(name, at);
    const bool allowed =
        at == 0 ? StartsIdentifier(decoded.character) : ContinuesIdentifier(decoded.character);
    if (!allowed) {
      return BrokenRule(Violation::kPropertyNameInvalid,
                        Subject("property name", name) + " holds " + CharacterForMessage(decoded.character) +
                            Where(at) +
                            "; a name is a letter or _, then letters, digits, _ and combining marks");
    }
    at += decoded.size;
  }
  return Status();
}

bool IsSystemPropertyName(std::string_view name) {
  return name == "PartitionKey" || name == "RowKey" || name == "Timestamp";
}

}  // namespace partita

#include "api/cli/debian_index.h"

#include <algorithm>
#include <charconv>

#include "api/limits.h"
#include "api/names.h"
#include "engine/base/checksum.h"
#include "engine/base/text.h"

namespace partita {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Keys may not hold some characters: each becomes a colon. Returns how many there were.
uint64_t ReplaceForbidden(std::string* key) {
  uint64_t replaced = 0;
  std::string out;
  for (size_t at = 0; at < key->size();) {
    const std::optional<DecodedCharacter> decoded = DecodeUtf8(*key, at);
    const size_t size = decoded ? decoded->size : 1;  // Bad UTF-8 stays, for ValidateEntity to refuse.
    if (decoded && IsForbiddenInKey(decoded->character)) {
      out.push_back(':');
      ++replaced;
    } else {
      out.append(*key, at, size);
    }
    at += size;
  }
  *key = std::move(out);
  return replaced;
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool IsNumberField(std::string_view name) { return name == "Size" || name == "Installed-Size"; }

std::optional<int64_t> ParseInt64(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string DebianPropertyName(std::string_view field_name) {
  std::string name(field_name);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsNameCharacter(c); }, '_');
  if (!name.empty() && name[0] >= '0' && name[0] <= '9') name.insert(0, "_");
  if (IsSystemPropertyName(name)) name.push_back('_');
  return name;
}

std::string DebianIndexCounts::ToString() const {
  std::string out;
  const auto line = [&](const char* what, uint64_t figure) {
    out.append(what).append(": ").append(std::to_string(figure)).append("\n");
  };
  line("stanzas read", stanzas);
  line("entities given", entities);
  line("fields", fields);
  line("continuation lines", continuation_lines);
  line("stanzas without Section (PartitionKey none)", sections_missing);
  line("characters replaced in keys", key_characters_replaced);
  line("field names changed", names_changed);
  line("Size and Installed-Size as Int64", numbers);
  line("Size and Installed-Size kept as text", numbers_kept_as_text);
  line("values split", values_split);
  line("properties added by splitting", parts_added);
  line("RowKeys made unique by Architecture", rows_made_unique);
  line("rows given again (the last one stays)", rows_repeated);
  return out;
}

DebianIndexReader::DebianIndexReader(std::unique_ptr<ByteSource> source, size_t record_bytes_max)
    : lines_(std::move(source), record_bytes_max), record_bytes_max_(record_bytes_max) {}

void DebianIndexReader::Fail(std::string_view why, Violation violation) {
  if (!stanza_status_.ok()) return;
  stanza_status_ =
      BrokenRule(violation, "line " + std::to_string(lines_.line_number()) + ": " + std::string(why));
}

void DebianIndexReader::TakeLine(std::string_view text) {
  stanza_bytes_ += text.size() + 1;
  if (stanza_bytes_ > record_bytes_max_) {
    Fail("the stanza has more than " + std::to_string(record_bytes_max_) + " bytes");
  }
  if (!stanza_status_.ok()) return;
  if (kBlanks.find(text[0]) != kBlanks.npos) {
    if (fields_.empty()) return Fail("a continuation line at the start of a stanza");
    fields_.back().value.append("\n").append(text.substr(1));
    ++counts_.continuation_lines;
    return;
  }
  const size_t colon = text.find(':');
  if (colon == text.npos || colon == 0) return Fail("no field name and colon in " + QuotedForMessage(text));
  // Each is a property at least. Here, since fields are many in a small stanza, and each name is held against
  // all before it.
  if (fields_.size() == kCustomPropertiesMax) {
    return Fail("the stanza has more than " + std::to_string(kCustomPropertiesMax) + " fields",
                Violation::kTooManyProperties);
  }
  fields_.push_back({std::string(text.substr(0, colon)), std::string(Trim(text.substr(colon + 1)))});
}

// Reads the lines of the next stanza into fields_ or stanza_status_.
DebianIndexReader::StanzaEnd DebianIndexReader::ReadStanza() {
  fields_.clear();
  stanza_bytes_ = 0;
  stanza_status_ = Status();
  bool started = false;
  while (std::optional<Result<Line>> line = lines_.Next()) {
    const bool blank = line->ok() && line->value().text.find_first_not_of(kBlanks) == std::string_view::npos;
    if (blank && started) break;
    if (blank) continue;
    if (!started) stanza_line_ = lines_.line_number();
    started = true;
    if (line->ok()) {
      TakeLine(line->value().text);
    } else if (stanza_status_.ok()) {
      stanza_status_ = line->status();
    }
    input_failed_ = line->code() == Code::kIoError;
    if (input_failed_) stanza_status_ = line->status();
  }
  return started ? StanzaEnd::kRead : StanzaEnd::kEndOfInput;
}

const std::string* DebianIndexReader::Find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

std::string DebianIndexReader::UniqueRowKey(const std::string& partition_key, std::string row_key,
                                            std::string_view architecture) {
  const uint64_t row = Hash64(partition_key + '\0' + row_key);
  const uint64_t architecture_hash = Hash64(architecture);
  const auto [first, is_first] = first_architecture_.try_emplace(row, architecture_hash);
  if (is_first) return row_key;
  if (first->second == architecture_hash) {
    ++counts_.rows_repeated;
    return row_key;
  }
  if (later_rows_.insert(Hash64WithSeed(architecture, row)).second) {
    ++counts_.rows_made_unique;
  } else {
    ++counts_.rows_repeated;
  }
  row_key.append("_").append(architecture);
  counts_.key_characters_replaced += ReplaceForbidden(&row_key);
  return row_key;
}

Status DebianIndexReader::AddField(Entity* entity, const Field& field) {
  ++counts_.fields;
  const std::string name = DebianPropertyName(field.name);
  if (name != field.name) ++counts_.names_changed;
  const auto add = [&](const std::string& property, PropertyValue value) {
    if (entity->Has(property)) {
      return BrokenRule(Violation::kDuplicatePropertiesSpecified, "field " + QuotedForMessage(field.name) +
                                                                      ": the stanza already gave property " +
                                                                      QuotedForMessage(property));
    }
    entity->AppendProperty(property, std::move(value));
    return Status();
  };
  if (IsNumberField(field.name)) {
    if (const std::optional<int64_t> number = ParseInt64(field.value)) {
      ++counts_.numbers;
      return add(name, *number);
    }
    ++counts_.numbers_kept_as_text;
  }
  // Bad UTF-8 cannot be measured; ValidateEntity refuses it whole.
  if (!IsValidUtf8(field.value) || Utf16Units(field.value) <= kStringUnitsMax) return add(name, field.value);
  ++counts_.values_split;
  std::string_view rest = field.value;
  for (int part = 1; !rest.empty(); ++part) {
    const std::string_view piece = Utf16Prefix(rest, kStringUnitsMax);
    rest.remove_prefix(piece.size());
    if (part > 1) ++counts_.parts_added;
    PARTITA_TRY(add(part == 1 ? name : name + "_" + std::to_string(part), piece));
  }
  return Status();
}

Result<Entity> DebianIndexReader::BuildEntity() {
  PARTITA_TRY(stanza_status_);
  const std::string* package = Find("Package");
  const std::string* version = Find("Version");
  if (package == nullptr || version == nullptr) {
    return BrokenRule(Violation::kPropertiesNeedValue,
                      std::string("the stanza has no ") + (package == nullptr ? "Package" : "Version"));
  }
  const std::string* section = Find("Section");
  const std::string* architecture = Find("Architecture");
  if (section == nullptr || section->empty()) ++counts_.sections_missing;
  std::string partition_key(section == nullptr || section->empty() ? kDebianNoSection : *section);
  std::string row_key = *package + "_" + *version;
  counts_.key_characters_replaced += ReplaceForbidden(&partition_key) + ReplaceForbidden(&row_key);
  row_key = UniqueRowKey(partition_key, std::move(row_key),
                         architecture == nullptr ? std::string_view() : *architecture);
  Entity entity(std::move(partition_key), std::move(row_key));
  for (const Field& field : fields_) PARTITA_TRY(AddField(&entity, field));
  PARTITA_TRY(ValidateEntity(entity));
  return entity;
}

std::optional<Result<Entity>> DebianIndexReader::Next() {
  if (input_failed_ || ReadStanza() == StanzaEnd::kEndOfInput) return std::nullopt;
  if (input_failed_) return Result<Entity>(stanza_status_);  // What was read may be cut off.
  ++counts_.stanzas;
  Result<Entity> entity = BuildEntity();
  if (entity.ok()) {
    ++counts_.entities;
    return entity;
  }
  return Result<Entity>(entity.status().WithContext("stanza at line " + std::to_string(stanza_line_)));
}

Status DebianIndexReader::SkipTo(uint64_t offset, uint64_t line) {
  while (resume_offset() < offset) {
    const std::optional<Result<Entity>> record = Next();
    if (!record) break;
    if (record->code() == Code::kIoError) return record->status();
  }
  if (resume_offset() == offset && resume_line() == line) return Status();
  return Status::InvalidArgument("resume at byte " + std::to_string(offset) + ", line " +
                                 std::to_string(line) + ": no stanza of this input ends there");
}

}  // namespace partita

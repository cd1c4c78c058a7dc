#include "api/http/json_reader.h"

#include <simdjson.h>

#include <array>
#include <vector>

#include "api/json_token.h"
#include "api/limits.h"
#include "api/names.h"
#include "api/value_text.h"
#include "engine/base/assert.h"
#include "engine/base/checksum.h"
#include "engine/base/text.h"

// Two passes. The first goes once through the JSON text and makes one Member for each name X, of what X and
// X@odata.type say, wherever they stand; a small hash table finds it again, which also tells names that stand
// twice. The second makes the typed values. Text is copied once more then, into the entity.
namespace partita::http {
namespace {

using simdjson::ondemand::json_type;
using MaybeError = std::optional<ServiceError>;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// Nesting within members that are ignored; all others have none.
constexpr int kIgnoredDepthMax = 32;
// A parser that grew beyond this for one large body is given back after it.
constexpr size_t kParserCapacityKept = 256 << 10;

// A value as it stands in the body: views into the body or the parser's buffers.
struct Token {
  JsonTokenKind kind = JsonTokenKind::kAbsent;
  std::string_view text;  // Of a string, unescaped; of others, as written.
};

// What one body says of one name.
struct Member {
  std::string_view name;
  Token value;
  Token type;  // The value of its @odata.type.
};

ServiceError Invalid() { return ServiceError(ErrorCode::kInvalidInput); }

// Text of three bytes ED A0..BF xx is a surrogate: no character.
bool HasSurrogate(std::string_view text) {
  for (size_t at = text.find('\xED'); at != text.npos; at = text.find('\xED', at + 1)) {
    if (at + 1 < text.size() && static_cast<uint8_t>(text[at + 1]) >= 0xA0) return true;
  }
  return false;
}

// A scalar. False for a nested value and for what is no JSON.
bool ReadToken(simdjson::ondemand::value value, Token* token) {
  json_type type;
  if (value.type().get(type)) return false;
  if (type == json_type::string) {
    token->kind = JsonTokenKind::kString;
    return !value.get_string().get(token->text) && !HasSurrogate(token->text);
  }
  if (type == json_type::array || type == json_type::object) return false;
  token->text = TrimTokenEnd(value.raw_json_token());
  if (type == json_type::number) {
    token->kind = JsonTokenKind::kNumber;
    return IsJsonNumber(token->text);
  }
  if (token->text == "null") {
    token->kind = JsonTokenKind::kNull;
  } else if (token->text == "true") {
    token->kind = JsonTokenKind::kTrue;
  } else {
    token->kind = JsonTokenKind::kFalse;
    return token->text == "false";
  }
  return true;
}

// Goes through a value that means nothing, so that it is at least JSON.
bool ReadIgnored(simdjson::ondemand::value value, int depth) {
  json_type type;
  if (depth > kIgnoredDepthMax || value.type().get(type)) return false;
  if (type == json_type::array) {
    simdjson::ondemand::array array;
    if (value.get_array().get(array)) return false;
    for (auto item : array) {
      simdjson::ondemand::value element;
      if (std::move(item).get(element) || !ReadIgnored(element, depth + 1)) return false;
    }
    return true;
  }
  if (type == json_type::object) {
    simdjson::ondemand::object object;
    if (value.get_object().get(object)) return false;
    for (auto item : object) {
      simdjson::ondemand::field field;
      std::string_view name;
      if (std::move(item).get(field) || field.unescaped_key().get(name)) return false;
      if (!ReadIgnored(field.value(), depth + 1)) return false;
    }
    return true;
  }
  Token token;
  return ReadToken(value, &token);
}

// The value of a member without annotation.
MaybeError InferValue(const Token& token, PropertyValue* value) {
  if (token.kind == JsonTokenKind::kString) {
    value->AssignText(token.text);
  } else if (token.kind == JsonTokenKind::kNumber) {
    std::optional<PropertyValue> number = InferJsonNumber(token.text);
    if (!number) return Invalid();
    *value = *std::move(number);
  } else {
    *value = token.kind == JsonTokenKind::kTrue;
  }
  return std::nullopt;
}

// Of a value in a message: a DateTime with any number of digits is well-formed.
constexpr size_t kQuotedUnitsMax = 64;

// The type is told by its text; Edm.String is by far the most frequent.
MaybeError ReadAnnotatedValue(const Member& member, PropertyValue* value) {
  const std::optional<PropertyType> type = PropertyTypeFromEdmName(member.type.text);
  if (member.type.kind != JsonTokenKind::kString || !type || !TokenFits(member.value.kind, *type))
    return Invalid();
  if (*type == PropertyType::kString) {
    value->AssignText(member.value.text);
    return std::nullopt;
  }
  Result<PropertyValue> parsed = ParseValueText(*type, member.value.text);
  if (parsed.ok()) {
    *value = std::move(parsed).value();
    return std::nullopt;
  }
  if (ViolationOf(parsed.status()) != Violation::kOutOfRangeInput) return Invalid();
  return ServiceError(ErrorCode::kOutOfRangeInput,
                      "The '" + std::string(member.name) + "' parameter of value '" +
                          std::string(Utf16Prefix(member.value.text, kQuotedUnitsMax)) +
                          "' is out of range.");
}

MaybeError ReadValue(const Member& member, PropertyValue* value) {
  const bool annotated =
      member.type.kind != JsonTokenKind::kAbsent && member.type.kind != JsonTokenKind::kNull;
  return annotated ? ReadAnnotatedValue(member, value) : InferValue(member.value, value);
}

}  // namespace

struct JsonBodyReader::State {
  simdjson::ondemand::parser parser;
  std::vector<Member> members;  // As their names are first seen.
  std::vector<uint16_t> order;  // Members that have a value, in the order of the values.

  // Open addressing; an entry holds stamp << 16 | index of the member. A new stamp empties the table at once.
  static constexpr size_t kSlots = 4 * kBodyNamesMax;
  std::array<uint32_t, kSlots> slots{};
  uint32_t stamp = 0;

  void Begin();
  Member* FindOrAdd(std::string_view name);
  const Member* Find(std::string_view name);
  size_t SlotOf(std::string_view name) const;
  MaybeError Scan(std::string_view body);
  MaybeError ScanObject(simdjson::ondemand::object object);
  MaybeError ScanField(simdjson::ondemand::field field);
  MaybeError CheckRulesBefore(const Entity& entity, ServiceError conversion);
  MaybeError TakeKey(std::string_view name, std::optional<std::string_view>* key);
  MaybeError Build(Entity* entity);
};

void JsonBodyReader::State::Begin() {
  members.clear();
  order.clear();
  stamp = (stamp + 1) & 0xFFFF;
  if (stamp == 0) {
    slots.fill(0);
    stamp = 1;
  }
}

// The slot where `name` is or would be.
size_t JsonBodyReader::State::SlotOf(std::string_view name) const {
  // The seed is hard to guess, so that nobody sends names that collide.
  size_t slot = Hash64WithSeed(name, reinterpret_cast<uintptr_t>(this));
  for (;; ++slot) {
    slot %= kSlots;
    const uint32_t entry = slots[slot];
    if (entry >> 16 != stamp || members[entry & 0xFFFF].name == name) return slot;
  }
}

// Null when there are too many names already.
Member* JsonBodyReader::State::FindOrAdd(std::string_view name) {
  const size_t slot = SlotOf(name);
  if (slots[slot] >> 16 == stamp) return &members[slots[slot] & 0xFFFF];
  if (members.size() == kBodyNamesMax) return nullptr;
  slots[slot] = stamp << 16 | static_cast<uint32_t>(members.size());
  members.push_back({.name = name});
  return &members.back();
}

const Member* JsonBodyReader::State::Find(std::string_view name) {
  const size_t slot = SlotOf(name);
  return slots[slot] >> 16 == stamp ? &members[slots[slot] & 0xFFFF] : nullptr;
}

MaybeError JsonBodyReader::State::ScanField(simdjson::ondemand::field field) {
  std::string_view name;
  if (field.unescaped_key().get(name) || HasSurrogate(name)) return Invalid();
  const bool annotates = name.ends_with(kTypeAnnotation);
  const std::string_view subject = annotates ? name.substr(0, name.size() - kTypeAnnotation.size()) : name;
  Member* member = FindOrAdd(subject);
  if (member == nullptr) return ServiceError(ErrorCode::kTooManyProperties);
  Token* token = annotates ? &member->type : &member->value;
  if (token->kind != JsonTokenKind::kAbsent) return ServiceError(ErrorCode::kDuplicatePropertiesSpecified);
  // Ignored whatever their values: control information, the Timestamp, and annotations of annotations.
  if (subject.starts_with("odata.") || subject == "Timestamp" || subject.ends_with(kTypeAnnotation)) {
    token->kind = JsonTokenKind::kNull;
    if (!ReadIgnored(field.value(), 0)) return Invalid();
    return std::nullopt;
  }
  if (!ReadToken(field.value(), token)) return Invalid();
  if (!annotates) order.push_back(static_cast<uint16_t>(member - members.data()));
  return std::nullopt;
}

MaybeError JsonBodyReader::State::ScanObject(simdjson::ondemand::object object) {
  for (auto result : object) {
    simdjson::ondemand::field field;
    if (std::move(result).get(field)) return Invalid();
    if (MaybeError error = ScanField(field)) return error;
  }
  return std::nullopt;
}

// Fills `members` and `order`.
MaybeError JsonBodyReader::State::Scan(std::string_view body) {
  Begin();
  if (body.starts_with(kByteOrderMark)) body.remove_prefix(kByteOrderMark.size());
  if (parser.capacity() > kParserCapacityKept && body.size() <= kParserCapacityKept)
    parser = simdjson::ondemand::parser();
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  if (parser.iterate(body.data(), body.size(), body.size() + simdjson::SIMDJSON_PADDING).get(document) ||
      document.get_object().get(object)) {
    return Invalid();
  }
  if (MaybeError error = ScanObject(object)) return error;
  // Anything but the end after the object's closing brace.
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) return Invalid();
  return std::nullopt;
}

// A value could not be converted; rules that come before the single values (spec 8) are told first.
// `entity` has the keys.
MaybeError JsonBodyReader::State::CheckRulesBefore(const Entity& entity, ServiceError conversion) {
  size_t count = 0;
  MaybeError name_error;
  for (const uint16_t index : order) {
    const Member& member = members[index];
    if (member.value.kind == JsonTokenKind::kNull || IsSystemPropertyName(member.name)) continue;
    ++count;
    if (name_error) continue;
    const Status name = CheckPropertyName(member.name);
    if (!name.ok()) name_error = ErrorOfStatus(name, /*for_table=*/false);
  }
  if (count > kCustomPropertiesMax) return ServiceError(ErrorCode::kTooManyProperties);
  if (name_error) return name_error;
  for (const KeyKind kind : {KeyKind::kPartitionKey, KeyKind::kRowKey}) {
    const std::string_view key = kind == KeyKind::kPartitionKey ? entity.partition_key() : entity.row_key();
    const Status valid = CheckKey(kind, key);
    if (valid.ok()) continue;
    if (ViolationOf(valid) == Violation::kOutOfRangeInput) return ErrorOfForbiddenKey(KeyKindName(kind), key);
    return ErrorOfStatus(valid, /*for_table=*/false);
  }
  return conversion;
}

// Nothing when absent or null.
MaybeError JsonBodyReader::State::TakeKey(std::string_view name, std::optional<std::string_view>* key) {
  const Member* member = Find(name);
  if (member == nullptr || member->value.kind == JsonTokenKind::kAbsent ||
      member->value.kind == JsonTokenKind::kNull) {
    return std::nullopt;
  }
  if (member->value.kind != JsonTokenKind::kString) return Invalid();
  *key = member->value.text;
  return std::nullopt;
}

// The properties; the keys are in the entity already. Fills what memory the entity has: the entities of a
// batch are read one after the other into the same one.
MaybeError JsonBodyReader::State::Build(Entity* entity) {
  entity->set_timestamp_ticks(0);
  std::vector<Property> properties = entity->TakeProperties();
  properties.reserve(order.size());
  size_t count = 0;
  for (const uint16_t index : order) {
    const Member& member = members[index];
    if (member.value.kind == JsonTokenKind::kNull) continue;
    if (member.name == "PartitionKey" || member.name == "RowKey") continue;
    if (count == properties.size()) properties.emplace_back();
    Property& property = properties[count++];
    property.name.assign(member.name);
    if (MaybeError error = ReadValue(member, &property.value))
      return CheckRulesBefore(*entity, *std::move(error));
  }
  properties.resize(count);
  entity->SetProperties(std::move(properties));
  return std::nullopt;
}

JsonBodyReader::JsonBodyReader() : state_(std::make_unique<State>()) {}
JsonBodyReader::~JsonBodyReader() = default;
JsonBodyReader::JsonBodyReader(JsonBodyReader&&) noexcept = default;
JsonBodyReader& JsonBodyReader::operator=(JsonBodyReader&&) noexcept = default;

JsonBodyReader& JsonBodyReader::OfThisThread() {
  thread_local JsonBodyReader reader;
  return reader;
}

std::optional<ServiceError> JsonBodyReader::ReadInsert(std::string_view body, Entity* entity) {
  if (MaybeError error = state_->Scan(body)) return error;
  std::optional<std::string_view> partition_key;
  std::optional<std::string_view> row_key;
  if (MaybeError error = state_->TakeKey("PartitionKey", &partition_key)) return error;
  if (MaybeError error = state_->TakeKey("RowKey", &row_key)) return error;
  if (!partition_key || !row_key) return ServiceError(ErrorCode::kPropertiesNeedValue);
  entity->AssignKeys(*partition_key, *row_key);
  return state_->Build(entity);
}

std::optional<ServiceError> JsonBodyReader::ReadUpdate(std::string_view body, std::string_view partition_key,
                                                       std::string_view row_key, Entity* entity) {
  if (MaybeError error = state_->Scan(body)) return error;
  std::optional<std::string_view> given_partition_key;
  std::optional<std::string_view> given_row_key;
  if (MaybeError error = state_->TakeKey("PartitionKey", &given_partition_key)) return error;
  if (MaybeError error = state_->TakeKey("RowKey", &given_row_key)) return error;
  if (given_partition_key.value_or(partition_key) != partition_key ||
      given_row_key.value_or(row_key) != row_key) {
    return Invalid();
  }
  entity->AssignKeys(partition_key, row_key);
  return state_->Build(entity);
}

std::optional<ServiceError> JsonBodyReader::ReadTableName(std::string_view body, std::string* name) {
  if (MaybeError error = state_->Scan(body)) return error;
  std::optional<std::string_view> given;
  if (MaybeError error = state_->TakeKey("TableName", &given)) return error;
  if (!given) return ServiceError(ErrorCode::kPropertiesNeedValue);
  name->assign(*given);
  return std::nullopt;
}

}  // namespace partita::http

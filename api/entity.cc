#include "api/entity.h"

#include <algorithm>
#include <bitset>
#include <span>

#include "api/etag.h"
#include "api/limits.h"
#include "api/names.h"
#include "engine/base/entity_record.h"
#include "engine/base/text.h"

namespace partita {
namespace {

static_assert(kCustomPropertiesMax <= kEntityRecordPropertiesMax);

template <typename Getter>
auto GetTyped(const Entity& entity, std::string_view name, Getter getter) {
  const PropertyValue* value = entity.Get(name);
  return value == nullptr ? nullptr : (value->*getter)();
}

size_t PropertySize(const Property& property) {
  const std::string* text = property.value.if_string();
  const Binary* binary = property.value.if_binary();
  return 8 + 2 * Utf16Units(property.name) +
         BilledValueSize(property.value.type(), text == nullptr ? 0 : Utf16Units(*text),
                         binary == nullptr ? 0 : binary->bytes.size());
}

Status CheckCount(size_t count) {
  if (count <= kCustomPropertiesMax) return Status();
  return BrokenRule(Violation::kTooManyProperties,
                    "the entity has " + std::to_string(count) +
                        " properties besides the three of the system; allowed are " +
                        std::to_string(kCustomPropertiesMax));
}

Status CheckName(std::string_view name) {
  if (!IsSystemPropertyName(name)) return CheckPropertyName(name);
  return BrokenRule(Violation::kInvalidInput,
                    "property name " + QuotedForMessage(name) + " is the system's: set it by its own method");
}

// AppendProperty takes what it is given. A fingerprint tells the names of small entities apart, mostly: else
// they are sorted.
Status CheckDistinct(std::span<const Property> properties) {
  std::bitset<256> seen;
  bool surely = true;
  for (const Property& property : properties) {
    const std::string& name = property.name;
    const auto print = static_cast<uint8_t>(name.front() + 31 * name.back() + 7 * name.size());
    surely = surely && !seen[print];
    seen.set(print);
  }
  if (surely) return Status();
  std::vector<std::string_view> names;
  names.reserve(properties.size());
  for (const Property& property : properties) names.push_back(property.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return Status();
  return BrokenRule(Violation::kDuplicatePropertiesSpecified,
                    "the entity has two properties " + QuotedForMessage(*twice));
}

Status CheckValue(const Property& property) {
  const auto too_large = [&](const std::string& size, size_t max) {
    return BrokenRule(Violation::kPropertyValueTooLarge,
                      "property " + QuotedForMessage(property.name) + ": " +
                          std::string(EdmTypeName(property.value.type())) + " value has " + size +
                          "; allowed are " + std::to_string(max));
  };
  if (const std::string* text = property.value.if_string()) {
    const size_t error = Utf8ErrorOffset(*text);
    if (error != text->size()) {
      return BrokenRule(Violation::kInvalidInput, "property " + QuotedForMessage(property.name) +
                                                      ": Edm.String value is not well-formed UTF-8 at byte " +
                                                      std::to_string(error));
    }
    // A character has at least as many bytes as units.
    const size_t units = text->size() <= kStringUnitsMax ? 0 : Utf16Units(*text);
    if (units > kStringUnitsMax) return too_large(std::to_string(units) + " UTF-16 units", kStringUnitsMax);
  }
  if (const Binary* binary = property.value.if_binary(); binary && binary->bytes.size() > kBinaryBytesMax) {
    return too_large(std::to_string(binary->bytes.size()) + " bytes", kBinaryBytesMax);
  }
  if (const DateTime* time = property.value.if_date_time(); time && time->ticks > kDateTimeTicksMax) {
    return BrokenRule(Violation::kOutOfRangeInput, "property " + QuotedForMessage(property.name) +
                                                       ": Edm.DateTime value lies after 9999-12-31");
  }
  return Status();
}

Status CheckSize(size_t size) {
  if (size <= kEntitySizeMax) return Status();
  return BrokenRule(Violation::kEntityTooLarge, "the entity has " + std::to_string(size) +
                                                    " bytes by the service's formula; allowed are " +
                                                    std::to_string(kEntitySizeMax));
}

}  // namespace

Entity& Entity::Set(std::string_view name, PropertyValue value) {
  const auto same =
      std::find_if(properties_.begin(), properties_.end(), [&](const Property& p) { return p.name == name; });
  if (same == properties_.end()) {
    properties_.push_back({std::string(name), std::move(value)});
  } else {
    same->value = std::move(value);
  }
  return *this;
}

bool Entity::Erase(std::string_view name) {
  return std::erase_if(properties_, [&](const Property& p) { return p.name == name; }) > 0;
}

const PropertyValue* Entity::Get(std::string_view name) const {
  for (const Property& property : properties_) {
    if (property.name == name) return &property.value;
  }
  return nullptr;
}

const std::string* Entity::GetString(std::string_view name) const {
  return GetTyped(*this, name, &PropertyValue::if_string);
}
const int32_t* Entity::GetInt32(std::string_view name) const {
  return GetTyped(*this, name, &PropertyValue::if_int32);
}
const int64_t* Entity::GetInt64(std::string_view name) const {
  return GetTyped(*this, name, &PropertyValue::if_int64);
}
const double* Entity::GetDouble(std::string_view name) const {
  return GetTyped(*this, name, &PropertyValue::if_double);
}
const bool* Entity::GetBoolean(std::string_view name) const {
  return GetTyped(*this, name, &PropertyValue::if_boolean);
}
const DateTime* Entity::GetDateTime(std::string_view name) const {
  return GetTyped(*this, name, &PropertyValue::if_date_time);
}
const Guid* Entity::GetGuid(std::string_view name) const {
  return GetTyped(*this, name, &PropertyValue::if_guid);
}
const Binary* Entity::GetBinary(std::string_view name) const {
  return GetTyped(*this, name, &PropertyValue::if_binary);
}

std::optional<int64_t> Entity::GetInteger(std::string_view name) const {
  if (const int32_t* narrow = GetInt32(name)) return *narrow;
  if (const int64_t* wide = GetInt64(name)) return *wide;
  return std::nullopt;
}

std::string Entity::etag() const {
  return timestamp_ticks_ == 0 ? std::string() : FormatEtag(Version(timestamp_ticks_));
}

size_t EntitySizeBoundBytes(const Entity& entity) {
  size_t size = kEntitySizeBase + 2 * (entity.partition_key().size() + entity.row_key().size());
  for (const Property& property : entity.properties()) {
    const std::string* text = property.value.if_string();
    const Binary* binary = property.value.if_binary();
    size += 8 + 2 * property.name.size() +
            BilledValueSize(property.value.type(), text == nullptr ? 0 : text->size(),
                            binary == nullptr ? 0 : binary->bytes.size());
  }
  return size;
}

size_t EntitySizeBytes(const Entity& entity) {
  size_t size = kEntitySizeBase + 2 * (Utf16Units(entity.partition_key()) + Utf16Units(entity.row_key()));
  for (const Property& property : entity.properties()) size += PropertySize(property);
  return size;
}

Status ValidateEntity(const Entity& entity) {
  PARTITA_TRY(CheckCount(entity.property_count()));
  for (const Property& property : entity.properties()) PARTITA_TRY(CheckName(property.name));
  PARTITA_TRY(CheckDistinct(entity.properties()));
  PARTITA_TRY(CheckKey(KeyKind::kPartitionKey, entity.partition_key()));
  PARTITA_TRY(CheckKey(KeyKind::kRowKey, entity.row_key()));
  for (const Property& property : entity.properties()) PARTITA_TRY(CheckValue(property));
  if (EntitySizeBoundBytes(entity) <= kEntitySizeMax) return Status();
  return CheckSize(EntitySizeBytes(entity));
}

Status ValidateMergedRecord(std::string_view partition_key, std::string_view row_key,
                            std::string_view content, const PropertyNames* names) {
  const EntityRecordView view(content, names);
  PARTITA_TRY(CheckCount(view.property_count()));
  return CheckSize(kEntitySizeBase + 2 * (Utf16Units(partition_key) + Utf16Units(row_key)) +
                   view.BilledSize());
}

}  // namespace partita

#include "api/entity_codec.h"

#include <algorithm>

#include "engine/base/entity_record_writer.h"
#include "engine/base/text.h"
#include "engine/base/user_key.h"

namespace partita {

void AppendEntityKey(std::string* out, TableId table, const Entity& entity) {
  AppendUserKey(out, table, OrderedText(entity.partition_key()), OrderedText(entity.row_key()));
}

void AppendEntityContent(std::string* out, const Entity& entity, const PropertyNames* names) {
  AppendEntityRecord(out, entity.properties(), names);
}

std::string EncodeEntityKey(TableId table, const Entity& entity) {
  return EncodeUserKey(table, OrderedText(entity.partition_key()), OrderedText(entity.row_key()));
}

std::string EncodeEntityContent(const Entity& entity, const PropertyNames* names) {
  return EncodeEntityRecord(entity.properties(), names);
}

Status CheckEntityKeys(std::string_view partition_key, std::string_view row_key) {
  if (IsValidOrderedText(partition_key) && IsValidOrderedText(row_key)) return Status();
  return Status::Corruption("user key of an entity is not ordered text");
}

Result<Entity> DecodeEntity(std::string_view user_key, Version version, std::string_view content,
                            const PropertyNames* names) {
  PARTITA_ASSIGN(const UserKeyParts key, DecodeUserKey(user_key));
  return DecodeSelected(key.partition_key, key.row_key, version, content, {}, names);
}

Result<Entity> DecodeSelected(std::string_view partition_key, std::string_view row_key, Version version,
                              std::string_view content, std::span<const std::string> select,
                              const PropertyNames* names) {
  PARTITA_TRY(CheckEntityKeys(partition_key, row_key));
  const EntityRecordView view(content, names);
  PARTITA_TRY(view.Check());
  Entity entity(Utf8FromOrdered(partition_key), Utf8FromOrdered(row_key));
  entity.set_timestamp_ticks(version.value);
  entity.ReserveProperties(select.empty() ? view.property_count()
                                          : std::min(select.size(), view.property_count()));
  for (size_t k = 0; k < view.property_count(); ++k) {
    const PropertyView property = view.inserted(k);
    if (!select.empty() && !std::binary_search(select.begin(), select.end(), property.name())) continue;
    entity.AppendProperty(property.name(), property.ToValue());
  }
  return entity;
}

}  // namespace partita

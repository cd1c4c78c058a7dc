#include "api/entity_codec.h"

#include "engine/base/text.h"
#include "engine/base/user_key.h"

namespace partita {

std::string EncodeEntityKey(TableId table, const Entity& entity) {
  return EncodeUserKey(table, OrderedText(entity.partition_key()), OrderedText(entity.row_key()));
}

std::string EncodeEntityContent(const Entity& entity, const PropertyNames* names) {
  return EncodeEntityRecord(entity.properties(), names);
}

Result<Entity> DecodeEntity(std::string_view user_key, Version version, std::string_view content,
                            const PropertyNames* names) {
  PARTITA_ASSIGN(const UserKeyParts key, DecodeUserKey(user_key));
  if (!IsValidOrderedText(key.partition_key) || !IsValidOrderedText(key.row_key)) {
    return Status::Corruption("user key of an entity is not ordered text");
  }
  const EntityRecordView view(content, names);
  PARTITA_TRY(view.Check());
  Entity entity(Utf8FromOrdered(key.partition_key), Utf8FromOrdered(key.row_key));
  entity.set_timestamp_ticks(version.value);
  entity.ReserveProperties(view.property_count());
  for (size_t k = 0; k < view.property_count(); ++k) {
    const PropertyView property = view.inserted(k);
    entity.AppendProperty(property.name(), property.ToValue());
  }
  return entity;
}

}  // namespace partita

#pragma once
#include <span>
#include <string>
#include <string_view>

#include "api/entity.h"
#include "engine/base/entity_record.h"
#include "engine/base/ids.h"

namespace partita {

// Entity <-> what the engine stores: user key and entity record. Between the public value class and
// the codec, so that the public header needs neither.

// REQUIRES: ValidateEntity(entity) was ok.
std::string EncodeEntityKey(TableId table, const Entity& entity);
std::string EncodeEntityContent(const Entity& entity, const PropertyNames* names = nullptr);
// The same behind what `out` holds.
void AppendEntityKey(std::string* out, TableId table, const Entity& entity);
void AppendEntityContent(std::string* out, const Entity& entity, const PropertyNames* names = nullptr);

// kCorruption when one of them is no ordered text.
Status CheckEntityKeys(std::string_view partition_key, std::string_view row_key);

// The entity that lies under `user_key` with `version` as its Timestamp. Checks both byte strings:
// kCorruption or kUnsupported when they are no key and record (F42, F77).
Result<Entity> DecodeEntity(std::string_view user_key, Version version, std::string_view content,
                            const PropertyNames* names = nullptr);

// The same of a key that is taken apart already, in ordered text; of the properties only those in `select`,
// which is sorted: the others are checked, not decoded. Empty: all.
Result<Entity> DecodeSelected(std::string_view partition_key, std::string_view row_key, Version version,
                              std::string_view content, std::span<const std::string> select,
                              const PropertyNames* names = nullptr);

}  // namespace partita

#pragma once
#include <algorithm>
#include <cstdint>

#include "api/entity.h"
#include "api/partita.h"

// What entities cost against throughput targets (engine/base/throughput_targets.h), in units: each KiB of an
// entity, rounded up, so 1 at least. The same as the engine charges (api/database.cc); here it is told of
// entities that no store has yet, or that one holds which tells no costs.
namespace partita::lab {

inline constexpr uint64_t kUnitBytes = 1024;

inline uint64_t UnitsOfSize(uint64_t bytes) {
  return std::max<uint64_t>(1, (bytes + kUnitBytes - 1) / kUnitBytes);
}

// Read or scanned.
inline uint64_t UnitsOf(const Entity& entity) {
  // Of most entities that much can be told without counting the characters of their texts.
  const bool is_small = EntitySizeBoundBytes(entity) <= kUnitBytes;
  return is_small ? 1 : UnitsOfSize(EntitySizeBytes(entity));
}

// What is sent is charged; of a delete that is no more than keys.
inline uint64_t UnitsOf(const Write& write) {
  return write.action == WriteAction::kDelete ? 1 : UnitsOf(write.entity);
}

}  // namespace partita::lab

#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/ids.h"

namespace partita {

// What one source (memtable, table file) knows of a user key. Absence is an answer, not an error:
// *deleted* is a tombstone and stops the search, *absent* means go on below.
enum class LookupState : uint8_t { kAbsent, kFound, kDeleted };

struct Lookup {
  LookupState state = LookupState::kAbsent;
  Version version;         // Of the entry found, tombstones included.
  std::string_view value;  // Stored value; valid while its source is pinned.
};

}  // namespace partita

#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/ids.h"

namespace partita {

// What an entry says about its user key. On disk: append only, never renumber.
enum class EntryKind : uint8_t {
  kPut = 1,
  kTombstone = 2,  // "Deleted": kept until nothing below it can be uncovered.
  // Never stored, and no entry: what a cursor that passes over blocks unread (table_scan.h) shows now and
  // then to say how far it came. Only scans that asked for that meet it.
  kMilestone = 127,
};

// One version of one user key. Views into memory that the source keeps alive (a memtable, a pinned
// block); an iterator's views are valid until it moves.
//
// The *stored value* carries the checksum taken where the write entered (F51): see stored_value.h.
struct Entry {
  std::string_view user_key;
  Version version;
  EntryKind kind = EntryKind::kPut;
  std::string_view value;
};

// Internal order: user key ascending, then version descending (newest first).
inline bool EntryBefore(std::string_view key_a, Version version_a, std::string_view key_b,
                        Version version_b) {
  int order = key_a.compare(key_b);
  return order != 0 ? order < 0 : version_a > version_b;
}

}  // namespace partita

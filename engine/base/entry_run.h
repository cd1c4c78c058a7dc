#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/base/coding.h"
#include "engine/base/entry.h"
#include "engine/base/prefetch.h"

namespace partita {

// The entries of a data block but for their keys, each field beside the same field of its neighbours, as
// they lie in the block (format: sstable/data_block.h). Views into it.
class EntryColumns {
 public:
  EntryColumns() = default;
  struct Parts {
    const char* versions;    // `version_width` bytes each: version - version_min.
    const char* value_ends;  // u32 each: the end in the values.
    const char* kinds;       // EntryKind; bit 7: same user key as the entry before.
    const char* values;
    const char* end;  // Of the memory that may be read.
    uint64_t version_min;
    unsigned version_width;
  };
  explicit EntryColumns(const Parts& parts) : parts_(parts) {}

  EntryKind kind(uint32_t i) const { return static_cast<EntryKind>(parts_.kinds[i] & 0x7F); }
  bool same_key_as_before(uint32_t i) const { return (parts_.kinds[i] & 0x80) != 0; }
  Version version(uint32_t i) const {
    if (parts_.version_width == 0) return Version(parts_.version_min);
    const char* at = parts_.versions + static_cast<size_t>(parts_.version_width) * i;
    uint64_t delta = 0;
    if (at + 8 <= parts_.end) {
      delta = LoadLe64(at) & (UINT64_MAX >> (64 - 8 * parts_.version_width));
    } else {
      std::memcpy(&delta, at, parts_.version_width);
    }
    return Version(parts_.version_min + delta);
  }
  std::string_view value(uint32_t i) const {
    const uint32_t begin = i == 0 ? 0 : value_end(i - 1);
    return {parts_.values + begin, value_end(i) - begin};
  }
  void PrefetchValueEnds(uint32_t count) const {
    PrefetchLines({parts_.value_ends, size_t{4} * count}, 1024);
  }
  // Where the i-th value ends, counted from the first one's start.
  uint32_t value_end(uint32_t i) const { return LoadLe32(parts_.value_ends + 4 * static_cast<size_t>(i)); }

 private:
  Parts parts_ = {};
};

// Neighbouring entries of one block that a cursor stands in front of: all that no other source has keys
// between. [begin, end) counts in internal order whatever the cursor's direction, so that same_key_as_before
// says the same in both. Older versions are never parted from their key's newest, but for a forward cursor
// that stood on an older one.
struct EntryRun {
  const EntryColumns* columns = nullptr;  // Of the cursor; valid until it moves.
  uint32_t begin = 0;
  uint32_t end = 0;
  bool empty() const { return begin == end; }
};

// A row of a run, seen before anybody builds its key.
struct KeylessRow {
  Version version;
  std::string_view content;  // Of its stored value (stored_value.h).
};

}  // namespace partita

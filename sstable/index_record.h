#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/coding.h"
#include "sstable/part_format.h"
#include "sstable/zone_map.h"

namespace partita {

// The index has two levels. A data index block maps each data block's *fence* to an index record,
// the top index maps each index block's last fence to one. Both have the layout of a data block
// (data_block.h): user key = fence, version 0, kind put, value = index record.
//
// The fence F of a block separates it from the next: last key <= F < first key of the next block;
// it is shortened when it can be, so an entry costs little more than the bytes that tell two
// neighbours apart. The block of a key is the first whose fence is >= the key.
//
//   offset  size  field
//        0     8  offset         of the part in the file
//        8     4  stored_size
//       12     4  content_size
//       16     4  entry_count    of the block (top index: data blocks below)
//       20     .  zone map       see zone_map.h; only in the data index
//      ...     8  key sum        of the block's keys (deleted_keys.h); only there, and not in files of
//                                format 1
inline constexpr size_t kIndexRecordHeaderSize = 8 + 4 + 4 + 4;
inline constexpr size_t kKeySumSize = 8;

void AppendIndexRecord(std::string* out, const PartHandle& handle, uint32_t entry_count);

// Just the handle: what a lookup needs. REQUIRES: ValidIndexRecord(record).
inline PartHandle IndexRecordHandle(std::string_view record) {
  return {LoadLe64(record.data()), LoadLe32(record.data() + 8), LoadLe32(record.data() + 12)};
}
inline uint32_t IndexRecordEntryCount(std::string_view record) { return LoadLe32(record.data() + 16); }

// Where in the file the parts lie that a level of the index names: [begin, end).
struct PartBounds {
  uint64_t begin, end;
};

// True when the record is whole and its part lies within the bounds.
bool ValidIndexRecord(std::string_view record, const PartBounds& bounds);

// The zone map of a data index record; ok() of the result is false when it does not parse.
Result<ZoneMap> IndexRecordZones(std::string_view record);
// The same, to ask where it lies; not valid() when it does not parse.
ZoneMapView IndexRecordZoneView(std::string_view record);
// Nothing where the record has none, or does not parse.
std::optional<uint64_t> IndexRecordKeySum(std::string_view record);

// A short key F with last <= F < next. REQUIRES: last < next.
std::string FenceBetween(std::string_view last, std::string_view next);

}  // namespace partita

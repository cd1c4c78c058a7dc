#pragma once
#include <cstdint>

#include "sstable/part_format.h"
#include "sstable/properties.h"

namespace partita {

// How tables of a level are compressed (DESIGN 6, 7):
//   level 0      not at all, as it lives for minutes, but for what repeats itself (kFlushShrinkMin) and what
//                will be moved down as it is (FlushSpec::lies_on_nothing)
//   all others   LZ4
//
// Why one class for all others: blocks pass from one table to another unchanged only within a class,
// so what a middle level compressed enters the last level as it is. Why LZ4 and not zstd, which was here
// before: a block of 8 KiB of bench/load's rows takes 15 us to compress and 3.3 to decompress, with zstd 1 29
// (looking in two places of five) and 13, for 1.26 times as few bytes instead of 1.59. Cores are dearer than
// disks: of a sustained load and of cold reads zstd was half of the CPU (bench/HISTORY.md).
inline Codec CodecForLevel(uint32_t level) { return level == 0 ? Codec::kStored : Codec::kLz4; }

inline bool IsOfClass(const TableProperties& table, Codec codec) {
  return table.codec == static_cast<uint8_t>(codec);
}

// A flush whose first block shrinks so many times is compressed as the levels below are. LZ4 is the faster
// the more its input repeats itself, 0.1 us per KiB at 75 times and 0.4 at 5 times, where writing 1 KiB and
// reading it back takes 2 us of this disk; what is merged down later passes without being taken apart where
// the keys allow it. What shrinks 1.3 times may take 2.6.
inline constexpr uint32_t kFlushShrinkMin = 4;

}  // namespace partita

#pragma once
#include <cstdint>

#include "sstable/part_format.h"
#include "sstable/properties.h"

namespace partita {

// How tables of a level are compressed (DESIGN 6, 7). zstd is the dear part of sustained writes:
//   level 0      not at all, as it lives for minutes, but for what repeats itself (kFlushShrinkMin)
//   all others   level 1
//
// Why one class for all others: blocks pass from one table to another unchanged only within a class,
// so what a middle level compressed enters the last level as it is. Why level 1: on entity-shaped
// blocks of 16 KiB (bench/load's rows) it compresses as well as level 3 (1.683 against 1.684) for 63 % of the
// time, and far better than level -1 (1.324), which is no faster there. In such rows fewer matches are
// looked for (part_format.cc).
inline Compression CompressionForLevel(uint32_t level) {
  return level == 0 ? Compression::None() : Compression::Zstd(1);
}

inline bool IsOfClass(const TableProperties& table, const Compression& compression) {
  return table.codec == static_cast<uint8_t>(compression.codec) && table.level == compression.level;
}

// A flush whose first block shrinks so many times is compressed as the levels below are. zstd is the faster
// the more its input repeats itself, 0.4 us per KiB at 30 times and 2 at 2 times, and from here on it costs
// less than writing the bytes, reading them back and reading them once more; what is merged down later passes
// without being taken apart where the keys allow it.
inline constexpr uint32_t kFlushShrinkMin = 8;

}  // namespace partita

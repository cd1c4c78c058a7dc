#pragma once
#include <cstdint>

#include "sstable/part_format.h"

namespace partita {

// How tables of a level are compressed (DESIGN 6, 7). zstd is the dear part of sustained writes:
//   level 0      not at all: it lives for minutes
//   all others   level 1
//
// Why one class for all others: blocks pass from one table to another unchanged only within a class,
// so what a middle level compressed enters the last level as it is. Why level 1: on entity-shaped
// blocks of 16 KiB (bench/load's rows) it compresses as well as level 3 (1.683 against 1.684) for 63 % of the
// time, and far better than level -1 (1.324), which is no faster there.
inline Compression CompressionForLevel(uint32_t level) {
  return level == 0 ? Compression::None() : Compression::Zstd(1);
}

}  // namespace partita

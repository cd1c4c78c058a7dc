#pragma once
#include <cstdint>

#include "sstable/part_format.h"

namespace partita {

enum class LevelRole : uint8_t {
  kFlush,   // Level 0: written once, rewritten soon.
  kMiddle,  // Neither level 0 nor the last.
  kBottom,  // The last level: most of the data, rewritten least.
};

// How tables of a level are compressed (DESIGN 6, 7). zstd is the dear part of sustained writes
// (2 us per KiB at level 1), so a byte is compressed hard once, where it stays:
//   level 0   not at all: it lives for minutes
//   middle    level -1: 427 MB/s in, 1.8 GB/s out, and a tenth of the data at most
//   bottom    level 3
// Blocks pass from one table to another unchanged only when this choice is the same for both.
inline Compression CompressionForLevel(LevelRole role) {
  switch (role) {
    case LevelRole::kFlush:
      return Compression::None();
    case LevelRole::kMiddle:
      return Compression::Zstd(-1);
    case LevelRole::kBottom:
      return Compression::Zstd(3);
  }
  return Compression::None();
}

inline LevelRole RoleOfLevel(uint32_t level, uint32_t last_level) {
  if (level == 0) return LevelRole::kFlush;
  return level == last_level ? LevelRole::kBottom : LevelRole::kMiddle;
}

}  // namespace partita

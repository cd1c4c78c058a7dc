#pragma once
#include <array>
#include <cstdint>

#include "compaction/level_shape.h"

namespace partita {

// What picker and pacing derive everything from: sizes that follow from the memory budget, not knobs.
struct PickerOptions {
  uint64_t flush_bytes = 64ull << 20;        // What one flush writes, about: a memtable.
  uint64_t target_file_bytes = 32ull << 20;  // Of a compaction's output file.

  // What level 0 holds when it is merged down.
  uint64_t level0_bytes() const;
};

// Level 0 is merged down once a read may have to look into this many of its files.
inline constexpr uint32_t kLevel0SublevelsMerged = 4;

// Each level is at most so much larger than the one above. In simulated random overwrites (lsm_simulation.h,
// data of 117 flushes) 10 and 8 write about the same (amplification 11.1 and 10.8, space 1.21 and
// 1.19); 10 has fewer levels for reads to look into at most sizes.
inline constexpr double kLevelGrowth = 10.0;

// Sizes that the levels should not exceed, bottom-up: the last level is as large as the data, level
// 0 is merged at 4 flushes, and as many levels stand between them as keep the growth between
// neighbours at kLevelGrowth or less, all with the same growth (two levels of growth 3 write less
// than one of 10). So a small store has level 0 and the last one, and gets levels between them as
// its data grows.
//
//   level 0 256 MiB, data 2 GiB:   L6 all            (no middle level up to 2.5 GiB)
//                        16 GiB:   L5 2 GiB, L6 16 GiB             growth 8
//                        64 GiB:   L4 1.6 GiB, L5 10 GiB, L6 64 GiB  growth 6.3
//
// Why the first level below is not of level 0's own size, as elsewhere: it would be written once
// more without being any larger step down.
struct LevelTargets {
  uint32_t base_level = kLevels - 1;      // Where level 0 is merged to.
  double growth = 1.0;                    // Between neighbours from the base level on.
  std::array<uint64_t, kLevels> bytes{};  // 0 for level 0 and for levels to be emptied.
};

LevelTargets TargetsFor(const LevelShape& shape, const PickerOptions& options);

}  // namespace partita

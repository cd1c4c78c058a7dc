#pragma once
#include <array>
#include <cstdint>

#include "compaction/level_shape.h"

namespace partita {

// What picker and pacing derive everything from: sizes that follow from the memory budget, not knobs.
struct PickerOptions {
  uint64_t flush_bytes = 64ull << 20;        // What one flush writes, about: a memtable.
  uint64_t target_file_bytes = 32ull << 20;  // Of a compaction's output file.
  // Jobs are small, as each needs room for all it reads (F57), and what is mostly tombstones is merged down
  // at once, for the space that comes of it.
  bool space_is_short = false;

  // What level 0 holds when it is merged down.
  uint64_t level0_bytes() const;
};

// Level 0 is merged down once a read may have to look into this many of its files. Each merge rewrites
// what it meets on the base level, so the number decides what loads cost: 3 million random rows of 1 KiB with
// 1 GiB of memory took 46 us of CPU a row at 4 (amplification 6.1) and 27 us at 8 (4.2). A read pays a filter
// probe for each file, tens of nanoseconds.
inline constexpr uint32_t kLevel0SublevelsMerged = 8;

// Each level is at most so much larger than the one above. In simulated random overwrites (lsm_simulation.h,
// data of 117 flushes) 10 and 8 write about the same (amplification 11.1 and 10.8, space 1.21 and
// 1.19); 10 has fewer levels for reads to look into at most sizes.
inline constexpr double kLevelGrowth = 10.0;

// Sizes that the levels should not exceed, bottom-up: the last level is as large as the data, level
// 0 is merged at 8 flushes, and as many levels stand between them as keep the growth between
// neighbours at kLevelGrowth or less, all with the same growth (two levels of growth 3 write less
// than one of 10). So a small store has level 0 and the last one, and gets levels between them as
// its data grows.
//
//   level 0 512 MiB, data 4 GiB:   L6 all            (no middle level up to 5 GiB)
//                        32 GiB:   L5 4 GiB, L6 32 GiB             growth 8
//                       128 GiB:   L4 3.2 GiB, L5 20 GiB, L6 128 GiB  growth 6.3
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

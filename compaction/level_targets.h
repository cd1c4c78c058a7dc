#pragma once
#include <array>
#include <cstdint>

#include "compaction/level_shape.h"

namespace partita {

// Level 0 is merged down once a read may have to look into so many of its files. Each merge rewrites what it
// meets on the base level, so the number decides what loads cost: 4 million random rows of 1 KiB with 1 GiB
// of memory took 31 to 34 us of CPU a row at 8 (amplification 5.1 to 5.4), 14 at 16 (3.2) and 13 at 24 (3.1);
// 46 at 4, when they were 3 million. On a slower machine 41 at 24 (3.7) and 30 at 48 (3.1). A read pays a
// filter probe for each file, tens of nanoseconds; but a cold scan pays a read of the device. So it is 8
// where writers leave time for it, more where they do not, and less once scans have paid for that
// (PickLevel0ForSeeks).
inline constexpr uint32_t kLevel0DepthCalm = 8;
inline constexpr uint32_t kLevel0DepthMax = 48;
// Bytes that a core reads and writes anew in a second of merging, as they are stored: rows of 1 KiB on a
// virtual machine of 2026.
inline constexpr uint64_t kMergedPerSecond = 128'000'000;

// What picker and pacing derive everything from: sizes that follow from the memory budget, not knobs.
struct PickerOptions {
  uint64_t flush_bytes = 64ull << 20;        // What one flush writes, about: a memtable.
  uint64_t target_file_bytes = 32ull << 20;  // Of a compaction's output file.
  uint32_t level0_depth = kLevel0DepthCalm;  // Sublevels at which level 0 is merged down: Level0Depth.
  // Jobs are small, as each needs room for all it reads (F57), and what is mostly tombstones is merged down
  // at once, for the space that comes of it.
  bool space_is_short = false;
  // No job is picked that needs more (CompactionPlan::RoomNeeded), the best of the others instead.
  uint64_t room_bytes = ~uint64_t{0};
  // Level 0 may be merged because scans have paid for its depth (PickLevel0ForSeeks).
  bool merges_for_seeks = false;
  // Many small files may become one for their number alone.
  bool merges_small_files = false;

  // What level 0 holds when it is merged down; and what that is at most where nobody writes.
  uint64_t level0_bytes() const { return level0_depth * flush_bytes; }
  uint64_t level0_bytes_calm() const { return kLevel0DepthCalm * flush_bytes; }
};

// Sublevels at which level 0 is merged down, when a shard flushes so many bytes a second onto `base_bytes` of
// the base level: kLevel0DepthCalm, and as many more as it takes for the merges to keep at most a quarter of
// a core busy, about, of which one merges `merged_per_second`; up to kLevel0DepthMax. No more than make level
// 0 twice as large as its base: then there is little to gain. (As large as its base, which is compressed,
// took 0.96 ms of CPU a transaction of `egt-100`, twice as large 0.86: bench/HISTORY.md.)
uint32_t Level0Depth(uint64_t base_bytes, uint64_t flush_bytes, uint64_t flushed_per_second,
                     uint64_t merged_per_second = kMergedPerSecond);

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

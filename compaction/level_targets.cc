#include "compaction/level_targets.h"

#include <algorithm>
#include <cmath>

namespace partita {

uint32_t Level0Depth(uint64_t base_bytes, uint64_t flush_bytes, uint64_t flushed_per_second,
                     uint64_t merged_per_second) {
  constexpr double kCoreShare = 0.25;
  constexpr double kOfBaseMax = 2;
  // At a depth of d flushes each flushed byte takes a byte of merging and base_bytes / d / flush_bytes more.
  const double may_take = kCoreShare * static_cast<double>(merged_per_second) /
                          std::max(static_cast<double>(flushed_per_second), 1.0);
  const double base_flushes = static_cast<double>(base_bytes) / static_cast<double>(flush_bytes);
  const double depth = base_flushes / std::max(may_take - 1, 1 / kOfBaseMax);
  return static_cast<uint32_t>(std::clamp<double>(depth, kLevel0DepthCalm, kLevel0DepthMax));
}

LevelTargets TargetsFor(const LevelShape& shape, const PickerOptions& options) {
  LevelTargets targets;
  const uint32_t last = kLevels - 1;
  uint64_t data = 0;
  uint32_t first_with_data = last;
  for (uint32_t level = last; level >= 1; --level) {
    uint64_t bytes = shape.LevelBytes(level);
    data += bytes;
    if (!shape.levels[level].empty()) first_with_data = level;
  }

  // The last level's share when each level above is kLevelGrowth times smaller.
  const double level0 = static_cast<double>(options.level0_bytes_calm());
  const double bottom =
      std::max(static_cast<double>(data) * (kLevelGrowth - 1) / kLevelGrowth, level0 * kLevelGrowth);
  uint32_t steps = 1;  // Levels below level 0.
  for (double reached = level0 * kLevelGrowth; reached < bottom && steps < last; reached *= kLevelGrowth) {
    ++steps;
  }
  const uint32_t natural_base = last - steps + 1;
  targets.growth = std::pow(bottom / level0, 1.0 / steps);
  for (uint32_t level = natural_base; level <= last; ++level) {
    targets.bytes[level] = static_cast<uint64_t>(level0 * std::pow(targets.growth, level - natural_base + 1));
  }
  // Level 0 never passes a level with older data: after the store shrank, the levels above the base
  // are emptied first (their target is 0).
  targets.base_level = std::min(natural_base, first_with_data);
  return targets;
}

}  // namespace partita

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "compaction/level_shape.h"
#include "compaction/picker.h"
#include "sstable/level_set.h"

namespace partita {

// Several ranges' compactions as one. Where a shard has thousands of small tables each flush leaves something
// of every one of them, so all are due at the same time: one by one, each would cost a file, a manifest and a
// view of all ranges.

// A range of a shard, and what is due there.
struct RangePlan {
  KeySpan range;  // Its bounds.
  std::shared_ptr<const LevelSet> levels;
  CompactionPlan plan;  // Made for `levels`.
  bool alone = false;   // Not with others, as it may fail.
};

// Ranges of one batch: each takes a part of what installing does on the strand.
inline constexpr size_t kBatchRangesMax = 1024;

// Of `due`, those that one job may do with due[best]: for the same reason, on the same levels, and together
// with likely no more than `likely_max` to read, and surely no more than `bytes_max`. The nearest to it
// first; returned by key. REQUIRES: `due` is of disjoint ranges, by key.
std::vector<RangePlan> BatchAround(const std::vector<RangePlan>& due, size_t best, uint64_t likely_max,
                                   uint64_t bytes_max);

// What one job is to do.
struct JoinedPlan {
  CompactionPlan plan;                     // Does in each range what its own would do.
  std::shared_ptr<const LevelSet> levels;  // What the ranges have, together.
  std::vector<KeySpan> bounds;             // MergeSpec::bounds.
};
// REQUIRES: BatchAround gave them.
JoinedPlan JoinPlans(const std::vector<RangePlan>& batch);

}  // namespace partita

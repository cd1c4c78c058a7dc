#pragma once
#include <cstdint>

#include "compaction/level_shape.h"
#include "compaction/level_targets.h"

namespace partita {

// How far compaction is behind. Counted as work: bytes that must be rewritten until every level is
// within its target again, carried from level to level. It grows and falls in proportion to bytes
// admitted and merged, without steps at thresholds (such steps are why other engines skip their
// slow-down stage and stall: research/performance.md 5).
struct CompactionDebt {
  uint64_t pending_bytes = 0;
  uint64_t level0_bytes = 0;
  uint32_t level0_sublevels = 0;
  friend bool operator==(const CompactionDebt&, const CompactionDebt&) = default;
};
CompactionDebt DebtOf(const LevelShape& shape, const PickerOptions& options);

// Bytes of compaction work that each admitted byte brings in this shape: what it buys.
double WorkPerByte(const LevelShape& shape, const PickerOptions& options);

// The debt at which writers are delayed in full: kFlushesBehindMax flushes' worth of work.
inline constexpr uint32_t kFlushesBehindMax = 8;
uint64_t DebtBudget(const LevelShape& shape, const PickerOptions& options);

// Reads look into every sublevel, so their number counts like debt: this many are a full budget. Half of
// them, from where on writers wait, are a third more than where level 0 is merged down at the latest: what is
// flushed meanwhile.
inline constexpr uint32_t kLevel0SublevelsMax = 128;
static_assert(kLevel0SublevelsMax / 2 >= kLevel0DepthMax + kLevel0DepthMax / 3);
// At a full budget each byte waits so long: 10 MB/s of admission.
inline constexpr uint64_t kDelayNanosPerKiB = 100 * 1024;

// Whether a file is set aside (F46). What is flushed over it is never merged down: to wait for that would be
// in vain.
bool HoldsBusyFile(const LevelShape& shape);

// How long `bytes` shall wait before they are admitted. The caller has one wait behind the other
// (engine/pacing_line.h), so that this limits the rate of all writers together.
//
//   ns per byte
//    200 |                          /     pressure = debt / budget,
//        |                       /        or sublevels / kLevel0SublevelsMax,
//    100 |. . . . . . . . . . /           whichever is greater
//        |                 /  .
//      0 |________________/___.________   zero up to 1/2, then proportional, never a step;
//        0               1/2  1           beyond the budget it goes on rising
uint64_t WriteDelayNanos(const CompactionDebt& debt, uint64_t debt_budget, uint64_t bytes);

}  // namespace partita

#include "compaction/pacing.h"

#include <algorithm>

namespace partita {
namespace {

// A byte that leaves `level` is written once, and rewrites what it meets on the next level: as many
// bytes as that level is larger, if keys are spread evenly.
double CostOfStep(const LevelTargets& targets, uint32_t next_level, double next_bytes) {
  double upper = static_cast<double>(targets.bytes[next_level]) / targets.growth;
  return 1.0 + (upper > 0 ? std::min(next_bytes / upper, targets.growth) : 0.0);
}

}  // namespace

CompactionDebt DebtOf(const LevelShape& shape, const PickerOptions& options) {
  CompactionDebt debt;
  const LevelTargets targets = TargetsFor(shape, options);
  const std::vector<uint32_t> sublevels = SublevelsOf(shape.levels[0]);
  for (uint32_t sublevel : sublevels) debt.level0_sublevels = std::max(debt.level0_sublevels, sublevel);
  debt.level0_bytes = shape.LevelBytes(0);

  // Level 0 owes what it holds beyond its share; each level owes what it is handed beyond its room. The share
  // is the same whether writers press or not: what they were let write is no debt when they come back.
  uint64_t level0_share = kLevel0DepthMax * options.flush_bytes;
  double carried =
      debt.level0_bytes > level0_share ? static_cast<double>(debt.level0_bytes - level0_share) : 0;
  double pending = 0;
  for (uint32_t level = 1; level < kLevels; ++level) {
    double bytes = static_cast<double>(shape.LevelBytes(level));
    if (level >= targets.base_level && targets.bytes[level] > 0) {
      pending += carried * CostOfStep(targets, level, bytes);
    }
    double room = static_cast<double>(targets.bytes[level]);
    carried = level + 1 < kLevels ? std::max(carried + bytes - room, 0.0) : 0;
  }
  debt.pending_bytes = static_cast<uint64_t>(pending);
  return debt;
}

double WorkPerByte(const LevelShape& shape, const PickerOptions& options) {
  const LevelTargets targets = TargetsFor(shape, options);
  double work = 0;
  for (uint32_t level = 1; level < kLevels; ++level) {
    if (targets.bytes[level] > 0) {
      work += CostOfStep(targets, level, static_cast<double>(shape.LevelBytes(level)));
    }
  }
  return work;
}

uint64_t DebtBudget(const LevelShape& shape, const PickerOptions& options) {
  return static_cast<uint64_t>(WorkPerByte(shape, options) * static_cast<double>(options.flush_bytes) *
                               kFlushesBehindMax);
}

bool HoldsBusyFile(const LevelShape& shape) {
  return std::any_of(shape.levels.begin(), shape.levels.end(), [](const std::vector<FileShape>& level) {
    return std::any_of(level.begin(), level.end(), [](const FileShape& file) { return file.busy; });
  });
}

uint64_t WriteDelayNanos(const CompactionDebt& debt, uint64_t debt_budget, uint64_t bytes) {
  double by_bytes =
      static_cast<double>(debt.pending_bytes) / static_cast<double>(std::max<uint64_t>(debt_budget, 1));
  double by_depth = static_cast<double>(debt.level0_sublevels) / kLevel0SublevelsMax;
  double over_half = 2 * std::max(by_bytes, by_depth) - 1;
  if (over_half <= 0) return 0;
  return static_cast<uint64_t>(over_half * static_cast<double>(kDelayNanosPerKiB) *
                               static_cast<double>(bytes) / 1024);
}

}  // namespace partita

#include "compaction/picker.h"

#include <algorithm>
#include <span>

#include "compaction/level0_picker.h"
#include "engine/base/assert.h"

namespace partita {
namespace {

// A slice is worth rewriting when it keeps more than its own size on disk beside it. On level 0 when it is
// much more, as what is written there will be merged down for other reasons, one range's slice of a file
// after the other's: a fifth of them, the last, is then written once more at most.
bool KeepsTooMuch(uint32_t level, const FileShape& file) {
  const uint64_t sizes = level == 0 ? 4 : 1;
  return file.foreign_bytes > sizes * file.size;
}
bool IsTombstoneDense(const FileShape& file) { return TombstonesAreDense(file.tombstones, file.entries); }

// Below its target a level is left alone; scores of other reasons stand in this order beside it.
constexpr double kScoreDue = 1.0;
constexpr double kScoreTombstones = 0.9;
constexpr double kScoreForeign = 0.8;
constexpr double kScoreSeeks = 0.7;
constexpr double kScoreSmall = 0.6;

struct Candidate {
  CompactionPlan plan;
  bool dense = false;
  double rewritten_per_byte = 0;
};

bool Better(const Candidate& a, const Candidate& b) {
  if (a.dense != b.dense) return a.dense;
  if (a.rewritten_per_byte != b.rewritten_per_byte) return a.rewritten_per_byte < b.rewritten_per_byte;
  return a.plan.span.lower < b.plan.span.lower;
}

// True when no level deeper than `level` has keys of `span`.
bool NothingBelow(const LevelShape& shape, uint32_t level, const KeySpan& span) {
  for (uint32_t below = level + 1; below < kLevels; ++below) {
    if (!OverlappingFiles(shape.levels[below], span).empty()) return false;
  }
  return true;
}

// Moving keeps the file as it is, so it must have nothing that rewriting it here would drop, and
// must be compressed as its new level wants it: what moved down uncompressed is compressed when it
// enters the last level, and only then.
bool MayMove(const LevelShape& shape, const FileShape& file, uint32_t output_level) {
  if (output_level == kLevels - 1 && !file.bottom_compression) return false;
  return file.tombstones == 0 || !NothingBelow(shape, output_level, file.span);
}

// Merges `file` of `level` into the next one.
std::optional<Candidate> DownFrom(const LevelShape& shape, uint32_t level, const FileShape& file) {
  if (file.busy) return std::nullopt;
  Candidate candidate;
  CompactionPlan& plan = candidate.plan;
  plan.input_level = level;
  plan.output_level = level + 1;
  plan.span = file.span;
  AddInput(&plan, level, file);
  for (const FileShape* below : OverlappingFiles(shape.levels[level + 1], file.span)) {
    if (below->busy) return std::nullopt;
    AddInput(&plan, level + 1, *below);
    plan.span.Extend(below->span);
  }
  plan.trivial_move = plan.inputs.size() == 1 && MayMove(shape, file, level + 1);
  candidate.dense = IsTombstoneDense(file);
  candidate.rewritten_per_byte =
      static_cast<double>(plan.overlap_bytes) / static_cast<double>(std::max<uint64_t>(file.size, 1));
  return candidate;
}

// Rewrites `file` on its own level, to get rid of what it holds in vain.
std::optional<Candidate> InPlace(const LevelShape& shape, uint32_t level, const FileShape& file) {
  if (file.busy) return std::nullopt;
  Candidate candidate;
  CompactionPlan& plan = candidate.plan;
  plan.input_level = level;
  plan.output_level = level;
  plan.span = file.span;
  AddInput(&plan, level, file);
  candidate.dense = IsTombstoneDense(file);
  return candidate;
}

// The best job of those that have room.
class Best {
 public:
  explicit Best(const PickerOptions& options) : room_bytes_(options.room_bytes) {}

  void Consider(std::optional<Candidate> candidate) {
    if (!candidate || candidate->plan.RoomNeeded() > room_bytes_) return;
    if (!best_ || Better(*candidate, *best_)) best_ = std::move(candidate);
  }
  bool found() const { return best_.has_value(); }
  std::optional<CompactionPlan> Take(double score, PickReason reason) {
    if (!best_) return std::nullopt;
    best_->plan.score = score;
    best_->plan.reason = reason;
    return std::move(best_->plan);
  }

 private:
  const uint64_t room_bytes_;
  std::optional<Candidate> best_;
};

// Files whose tombstones can all be dropped: at the bottom of their keys by a rewrite, else by being
// merged down towards it.
std::optional<CompactionPlan> PickForTombstones(const LevelShape& shape, const PickerOptions& options) {
  Best best(options);
  for (uint32_t level = 1; level < kLevels; ++level) {
    for (const FileShape& file : shape.levels[level]) {
      if (!IsTombstoneDense(file) || file.version_max >= shape.droppable_before) continue;
      best.Consider(NothingBelow(shape, level, file.span) ? InPlace(shape, level, file)
                                                          : DownFrom(shape, level, file));
    }
    if (best.found()) break;  // Upper levels first: their tombstones meet those below on the way.
  }
  return best.Take(kScoreTombstones, PickReason::kTombstones);
}

std::optional<CompactionPlan> PickForForeignBytes(const LevelShape& shape, const PickerOptions& options) {
  Best best(options);
  for (uint32_t level = 0; level < kLevels; ++level) {
    for (const FileShape& file : shape.levels[level]) {
      if (KeepsTooMuch(level, file)) best.Consider(InPlace(shape, level, file));
    }
  }
  return best.Take(kScoreForeign, PickReason::kForeignBytes);
}

// The neighbours from `first` on that shall be one file, which is not cut then (OutputCutter); none: they are
// too few, or one of them has a good part of all bytes and would be written again with each few that join.
std::span<const FileShape> SmallNeighbours(std::span<const FileShape> files, uint64_t target_bytes) {
  constexpr size_t kFilesMin = 8, kFilesMax = 64;
  uint64_t bytes = 0, largest = 0;
  size_t count = 0;
  for (size_t i = 0; i < std::min(files.size(), kFilesMax); ++i) {
    const FileShape& file = files[i];
    bytes += file.size;
    largest = std::max(largest, file.size);
    if (file.busy || file.size > target_bytes / 16 || bytes > target_bytes / 2) break;
    if (i + 1 >= kFilesMin && largest <= bytes / 4) count = i + 1;
  }
  return files.first(count);
}

// Rows in key order that are flushed often, for a backup or a move, leave a small file each, which takes a
// descriptor and a line of every manifest (and PickManyOfLevel0). So does a slice, but for the descriptor:
// what many ranges have of one file becomes one file again, as they are merged together (plan_batch.h).
std::optional<CompactionPlan> PickSmallFiles(const LevelShape& shape, const PickerOptions& options) {
  constexpr uint32_t kLast = kLevels - 1;
  const std::span<const FileShape> files(shape.levels[kLast]);
  for (size_t first = 0; first < files.size(); ++first) {
    const auto small = SmallNeighbours(files.subspan(first), options.target_file_bytes);
    if (small.empty()) continue;
    CompactionPlan plan;
    plan.input_level = plan.output_level = kLast;
    plan.span = small.front().span;
    for (const FileShape& file : small) {
      AddInput(&plan, kLast, file);
      plan.span.Extend(file.span);
    }
    if (plan.RoomNeeded() > options.room_bytes) continue;
    plan.reason = PickReason::kSmallFiles;
    return plan;
  }
  return std::nullopt;
}

struct ScoredLevel {
  uint32_t level = 0;
  double score = 0;
};

// What is set aside counts as gone, as no job takes it off its level.
uint64_t IdleBytes(const std::vector<FileShape>& files) {
  uint64_t bytes = 0;
  for (const FileShape& file : files) bytes += file.busy ? 0 : file.size;
  return bytes;
}

std::vector<ScoredLevel> DueLevels(const LevelShape& shape, const PickerOptions& options,
                                   const LevelTargets& targets) {
  std::vector<ScoredLevel> due;
  double depth = Level0Score(shape, options);
  if (depth >= kScoreDue) due.push_back({0, depth});
  for (uint32_t level = 1; level < kLevels - 1; ++level) {
    uint64_t bytes = IdleBytes(shape.levels[level]);
    if (bytes == 0) continue;
    // A level to be emptied counts as twice too large: it stands in level 0's way.
    double score = targets.bytes[level] == 0
                       ? 2.0
                       : static_cast<double>(bytes) / static_cast<double>(targets.bytes[level]);
    if (score > kScoreDue) due.push_back({level, score});
  }
  std::sort(due.begin(), due.end(), [](const ScoredLevel& a, const ScoredLevel& b) {
    return a.score != b.score ? a.score > b.score : a.level < b.level;
  });
  return due;
}

}  // namespace

std::pair<size_t, size_t> OverlappingRange(const std::vector<FileShape>& sorted, const KeySpan& span) {
  const auto first = std::partition_point(sorted.begin(), sorted.end(), [&span](const FileShape& file) {
    return !file.span.upper.empty() && file.span.upper <= span.lower;
  });
  const auto end = std::partition_point(first, sorted.end(), [&span](const FileShape& file) {
    return span.upper.empty() || file.span.lower < span.upper;
  });
  return {first - sorted.begin(), end - sorted.begin()};
}

std::vector<const FileShape*> OverlappingFiles(const std::vector<FileShape>& sorted, const KeySpan& span) {
  const auto [first, end] = OverlappingRange(sorted, span);
  std::vector<const FileShape*> found;
  for (size_t at = first; at < end; ++at) found.push_back(&sorted[at]);
  return found;
}

void AddInput(CompactionPlan* plan, uint32_t level, const FileShape& file) {
  plan->inputs.push_back(PlanInput{level, file.id, file.reference_lower});
  plan->input_bytes += file.size;
  if (level == plan->output_level && level != plan->input_level) plan->overlap_bytes += file.size;
}

std::optional<CompactionPlan> PickCompaction(const LevelShape& shape, const PickerOptions& options) {
  const LevelTargets targets = TargetsFor(shape, options);
  for (const ScoredLevel& due : DueLevels(shape, options, targets)) {
    if (due.level == 0) {
      std::optional<CompactionPlan> plan = PickLevel0(shape, options, targets);
      if (!plan) continue;
      plan->score = due.score;
      return plan;
    }
    Best best(options);
    for (const FileShape& file : shape.levels[due.level]) best.Consider(DownFrom(shape, due.level, file));
    if (best.found()) return best.Take(due.score, PickReason::kLevelSize);
  }
  if (options.space_is_short && Level0IsTombstoneDense(shape)) {
    if (auto plan = PickLevel0(shape, options, targets)) {
      plan->score = kScoreTombstones;
      plan->reason = PickReason::kTombstones;
      return plan;
    }
  }
  if (auto plan = PickForTombstones(shape, options)) return plan;
  if (auto plan = PickForForeignBytes(shape, options)) return plan;
  if (auto plan = PickLevel0ForSeeks(shape, options, targets)) {
    plan->score = kScoreSeeks;
    return plan;
  }
  if (!options.merges_small_files) return std::nullopt;
  std::optional<CompactionPlan> plan = PickManyOfLevel0(shape, options, targets);
  if (!plan) plan = PickSmallFiles(shape, options);
  if (plan) plan->score = kScoreSmall;
  return plan;
}

void FlushCuts::Add(const LevelShape& range) {
  const LevelTargets targets = TargetsFor(range, options_);
  for (const FileShape& file : range.levels[targets.base_level]) {
    base_.push_back({file.span.lower, file.size});
    base_bytes_ += file.size;
  }
}

std::vector<std::string> FlushCuts::Points() const {
  std::vector<std::string> cuts;
  // Flushed data is taken to be spread like the base levels'.
  const uint64_t columns = std::max<uint64_t>(options_.flush_bytes / options_.target_file_bytes, 1);
  const uint64_t column_bytes = std::max<uint64_t>(base_bytes_ / columns, 1);
  uint64_t bytes = 0;
  for (const BaseFile& file : base_) {
    if (bytes >= column_bytes) {
      cuts.push_back(file.lower);
      bytes = 0;
    }
    bytes += file.size;
  }
  return cuts;
}

}  // namespace partita

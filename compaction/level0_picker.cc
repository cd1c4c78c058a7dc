#include "compaction/level0_picker.h"

#include <algorithm>

#include "engine/base/assert.h"

// Level 0 as columns: files of one flush side by side, flushes stacked, the newest on top.
//
//        key ->   a     f     m     t        seed: the oldest file of a stack (sublevel 1)
//   newest   [--- 7 ---][--- 8 ---]          closure of a file: itself and every older file it
//            [--- 5 ---][- 6 -]                overlaps, and every older file those overlap, ...
//   oldest   [-- 1 --][-- 2 --][3]           set = closure of the seed, then so many closures of other
//                                              files that least of the base is rewritten for each byte:
//                                              e.g. 1, then 2 + 5 + 7
//
// A closed set may be merged down: no older file is left above it (M22).

namespace partita {
namespace {

// One job takes at most so much of level 0, so that jobs stay short: several columns, or one as deep as level
// 0 gets, which rewrites the base below it once.
constexpr uint64_t kLevel0JobFlushes = kLevel0DepthMax;
constexpr uint64_t kLevel0JobFlushesInShortSpace = 1;
// Merging among itself: at least so many files, of which the oldest is no larger than all newer ones
// together (so each byte is rewritten about log2 of a flush's size often), and none is large.
constexpr size_t kSmallFilesMin = 4;
// It is preferred to going down when that would rewrite so many bytes per byte of level 0.
constexpr double kDearOverlap = 2 * kLevelGrowth;
// Files of this share of a flush (compressed, since they repeat themselves, or flushed early) reach the depth
// that is merged long before level 0 is full, and each merge down would rewrite a base many times their size:
// they are merged among themselves until they weigh as much as what is below them.
constexpr uint64_t kTinyShare = 8;
constexpr double kDearOverlapOfTiny = 1.0;
constexpr uint64_t kSmallShare = 2;

class Level0 {
 public:
  Level0(const LevelShape& shape, const PickerOptions& options, uint32_t base_level)
      : shape_(shape), files_(shape.levels[0]), options_(options), base_level_(base_level) {}

  std::optional<CompactionPlan> BestDown() const;
  // Of files of at most `file_bytes_max`.
  std::optional<CompactionPlan> AmongItself(uint64_t file_bytes_max) const;

 private:
  // Some files of level 0, closed: every older file that one of them overlaps is among them.
  struct Set {
    std::vector<bool> has;      // By index in files_, newest first.
    std::vector<size_t> files;  // The same, in the order in which they joined.
    std::optional<KeySpan> span;
    uint64_t bytes = 0;
  };

  bool AddClosure(size_t file, uint64_t bytes_max, Set* set) const;
  void Join(size_t file, Set* set) const;
  std::optional<Set> GrownFrom(size_t seed) const;
  std::optional<CompactionPlan> PlanDown(const Set& set) const;
  uint64_t BaseBytesUnder(const KeySpan& span) const;

  const LevelShape& shape_;
  const std::vector<FileShape>& files_;
  const PickerOptions& options_;
  uint32_t base_level_;
};

// Adds `file` and all it needs; false, and nothing is added, when something of that is busy (M21) or the set
// would have more than `bytes_max`.
bool Level0::AddClosure(size_t file, uint64_t bytes_max, Set* set) const {
  std::vector<size_t> open{file};
  std::vector<size_t> joining;
  uint64_t bytes = 0;
  bool may = true;
  while (may && !open.empty()) {
    size_t at = open.back();
    open.pop_back();
    if (set->has[at]) continue;
    set->has[at] = true;
    joining.push_back(at);
    bytes += files_[at].size;
    may = !files_[at].busy && set->bytes + bytes <= bytes_max;
    for (size_t older = at + 1; older < files_.size(); ++older) {
      if (!set->has[older] && files_[older].span.Overlaps(files_[at].span)) open.push_back(older);
    }
  }
  if (!may) {
    for (size_t at : joining) set->has[at] = false;
    return false;
  }
  for (size_t at : joining) Join(at, set);
  return true;
}

void Level0::Join(size_t file, Set* set) const {
  set->has[file] = true;
  set->files.push_back(file);
  set->bytes += files_[file].size;
  if (!set->span) {
    set->span = files_[file].span;
  } else {
    set->span->Extend(files_[file].span);
  }
}

uint64_t Level0::BaseBytesUnder(const KeySpan& span) const {
  uint64_t bytes = 0;
  for (const FileShape* file : OverlappingFiles(shape_.levels[base_level_], span)) bytes += file->size;
  return bytes;
}

// The seed's closure, with so many other files that least of the base level is rewritten for each byte. Files
// join while there are any, the oldest first: what one costs may pay only once others have joined that cost
// no more. Where the cuts of flushes drifted each file reaches a little over the ends of those below.
std::optional<Level0::Set> Level0::GrownFrom(size_t seed) const {
  const uint64_t flushes = options_.space_is_short ? kLevel0JobFlushesInShortSpace : kLevel0JobFlushes;
  const uint64_t bytes_max = flushes * options_.flush_bytes;
  const auto base_per_byte = [this](const Set& set) {
    return static_cast<double>(BaseBytesUnder(*set.span)) /
           static_cast<double>(std::max<uint64_t>(set.bytes, 1));
  };
  Set set;
  set.has.resize(files_.size());
  if (!AddClosure(seed, UINT64_MAX, &set)) return std::nullopt;
  double best = base_per_byte(set);
  size_t best_files = set.files.size();
  for (bool joined = true; joined;) {
    joined = false;
    for (size_t i = files_.size(); i-- > 0 && set.bytes < bytes_max;) {
      if (set.has[i] || files_[i].busy || !files_[i].span.Overlaps(*set.span)) continue;
      if (!AddClosure(i, bytes_max, &set)) continue;
      joined = true;
      const double now = base_per_byte(set);
      if (now > best) continue;
      best = now;
      best_files = set.files.size();
    }
  }
  Set cheapest;
  cheapest.has.resize(files_.size());
  for (size_t i = 0; i < best_files; ++i) Join(set.files[i], &cheapest);
  return cheapest;
}

bool MutuallyDisjoint(const std::vector<const FileShape*>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t j = i + 1; j < files.size(); ++j) {
      if (files[i]->span.Overlaps(files[j]->span)) return false;
    }
  }
  return true;
}

std::optional<CompactionPlan> Level0::PlanDown(const Set& set) const {
  CompactionPlan plan;
  plan.output_level = base_level_;
  plan.reason = PickReason::kLevel0Depth;
  plan.span = *set.span;
  std::vector<const FileShape*> taken;
  uint64_t tombstones = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (!set.has[i]) continue;
    AddInput(&plan, 0, files_[i]);
    taken.push_back(&files_[i]);
    tombstones += files_[i].tombstones;
  }
  const KeySpan own_span = plan.span;
  for (const FileShape* file : OverlappingFiles(shape_.levels[base_level_], own_span)) {
    if (file->busy) return std::nullopt;
    AddInput(&plan, base_level_, *file);
    plan.span.Extend(file->span);
  }
  if (CollidesWithRunning(shape_, plan)) return std::nullopt;
  // Level 0 is not compressed, so it never moves into the last level; tombstones are merged, to be
  // dropped as early as they can.
  plan.trivial_move = plan.overlap_bytes == 0 && plan.inputs.size() == taken.size() &&
                      base_level_ + 1 < kLevels && tombstones == 0 && MutuallyDisjoint(taken);
  return plan;
}

std::optional<CompactionPlan> Level0::BestDown() const {
  std::optional<CompactionPlan> best;
  double best_ratio = 0;
  const std::vector<uint32_t> sublevels = SublevelsOf(files_);
  for (size_t seed = files_.size(); seed-- > 0;) {
    if (sublevels[seed] != 1) continue;
    std::optional<Set> set = GrownFrom(seed);
    if (!set) continue;
    std::optional<CompactionPlan> plan = PlanDown(*set);
    if (!plan) continue;
    uint64_t own = plan->input_bytes - plan->overlap_bytes;
    double ratio = static_cast<double>(plan->overlap_bytes) / static_cast<double>(std::max<uint64_t>(own, 1));
    bool better = !best || ratio < best_ratio || (ratio == best_ratio && plan->span.lower < best->span.lower);
    if (!better) continue;
    best = std::move(plan);
    best_ratio = ratio;
  }
  return best;
}

// The newest run of idle neighbours in age that is worth merging into one.
std::optional<CompactionPlan> Level0::AmongItself(uint64_t file_bytes_max) const {
  size_t begin = 0;
  while (begin < files_.size() && files_[begin].busy) ++begin;
  uint64_t bytes = 0;
  size_t end = begin;
  for (; end < files_.size() && !files_[end].busy; ++end) {
    bool small = files_[end].size <= file_bytes_max;
    bool grown_too_much = end - begin >= kSmallFilesMin && files_[end].size > bytes;
    if (!small || grown_too_much) break;
    bytes += files_[end].size;
  }
  if (end - begin < kSmallFilesMin) return std::nullopt;
  // Side by side they would become the same files again, and be picked again.
  std::vector<const FileShape*> run;
  for (size_t i = begin; i < end; ++i) run.push_back(&files_[i]);
  if (MutuallyDisjoint(run)) return std::nullopt;
  CompactionPlan plan;
  plan.reason = PickReason::kLevel0Small;
  plan.span = files_[begin].span;
  for (size_t i = begin; i < end; ++i) {
    AddInput(&plan, 0, files_[i]);
    plan.span.Extend(files_[i].span);
  }
  if (CollidesWithRunning(shape_, plan)) return std::nullopt;
  return plan;
}

uint32_t DeepestSublevel(const LevelShape& shape) {
  std::vector<FileShape> idle;
  for (const FileShape& file : shape.levels[0]) {
    if (!file.busy) idle.push_back(file);
  }
  std::vector<uint32_t> sublevels = SublevelsOf(idle);
  return sublevels.empty() ? 0 : *std::max_element(sublevels.begin(), sublevels.end());
}

}  // namespace

bool Level0IsTombstoneDense(const LevelShape& shape) {
  uint64_t tombstones = 0, entries = 0;
  for (const FileShape& file : shape.levels[0]) tombstones += file.tombstones, entries += file.entries;
  return TombstonesAreDense(tombstones, entries);
}

double Level0Score(const LevelShape& shape, const PickerOptions& options) {
  uint64_t bytes = 0;
  for (const FileShape& file : shape.levels[0]) bytes += file.busy ? 0 : file.size;
  double by_depth = static_cast<double>(DeepestSublevel(shape)) / options.level0_depth;
  double by_bytes = static_cast<double>(bytes) / static_cast<double>(options.level0_bytes());
  return std::max(by_depth, by_bytes);
}

std::optional<CompactionPlan> PickLevel0(const LevelShape& shape, const PickerOptions& options,
                                         const LevelTargets& targets) {
  Level0 level0(shape, options, targets.base_level);
  std::optional<CompactionPlan> down = level0.BestDown();
  uint64_t small = options.flush_bytes / kSmallShare;
  if (down) {
    uint64_t own = down->input_bytes - down->overlap_bytes;
    double overlap =
        static_cast<double>(down->overlap_bytes) / static_cast<double>(std::max<uint64_t>(own, 1));
    if (overlap <= kDearOverlapOfTiny || Level0IsTombstoneDense(shape)) return down;
    if (overlap <= kDearOverlap) small = options.flush_bytes / kTinyShare;
  }
  // Down is not possible now, or would rewrite much for little.
  std::optional<CompactionPlan> among = level0.AmongItself(small);
  return among ? std::move(among) : std::move(down);
}

}  // namespace partita

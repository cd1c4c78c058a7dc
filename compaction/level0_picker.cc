#include "compaction/level0_picker.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

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
// As many as nobody minds, whether they lie on each other or not.
constexpr size_t kManyFiles = 16;

class Level0 {
 public:
  Level0(const LevelShape& shape, const PickerOptions& options, uint32_t base_level);

  std::optional<CompactionPlan> BestDown() const;
  // Of files of at most `file_bytes_max`.
  std::optional<CompactionPlan> AmongItself(uint64_t file_bytes_max) const;
  // Of so many that each takes more than it is worth, which become one file.
  std::optional<CompactionPlan> ManyToOne() const;
  std::optional<CompactionPlan> ForSeeks() const;

 private:
  // Files of level 0 by index, newest first.
  class Files {
   public:
    explicit Files(size_t count) : words_((count + 63) / 64) {}
    bool Has(size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
    void Add(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
    void Add(const Files& other) {
      for (size_t at = 0; at < words_.size(); ++at) words_[at] |= other.words_[at];
    }
    // Of each that `other` does not have.
    template <typename Visit>
    void ForEachBeyond(const Files& other, Visit visit) const {
      for (size_t at = 0; at < words_.size(); ++at) {
        uint64_t left = words_[at] & ~other.words_[at];
        for (; left != 0; left &= left - 1) visit(at * 64 + static_cast<size_t>(std::countr_zero(left)));
      }
    }

   private:
    std::vector<uint64_t> words_;
  };
  // From which key to which files reach, as numbers, since sets are tried by the ten thousand where level 0
  // has hundreds of files; and the base level's files from the first up to the second there.
  struct Reach {
    size_t lower = SIZE_MAX, upper = 0;  // Into bounds_; upper exclusive, its size where there is no bound.
    size_t base_first = SIZE_MAX, base_end = 0;

    bool Overlaps(const Reach& other) const { return lower < other.upper && other.lower < upper; }
    void Extend(const Reach& other) {
      lower = std::min(lower, other.lower), upper = std::max(upper, other.upper);
      base_first = std::min(base_first, other.base_first), base_end = std::max(base_end, other.base_end);
    }
  };
  // What must go down with a file, itself among it: every older one that one of them overlaps.
  struct Closure {
    Files files;
    Reach reach;
    bool busy = false;  // Something of it is.
  };
  // What a set comes to.
  struct Size {
    Reach reach;
    uint64_t bytes = 0;
    uint64_t base_bytes = 0;  // Of the base level's files there.

    double base_per_byte() const {
      return static_cast<double>(base_bytes) / static_cast<double>(std::max<uint64_t>(bytes, 1));
    }
  };
  // Some files of level 0, closed: every older file that one of them overlaps is among them.
  struct Set {
    Files has;
    Size size;
  };

  std::optional<Size> SizeWith(size_t file, const Set& set, uint64_t bytes_max) const;
  bool JoinCheapest(uint64_t bytes_max, Set* set) const;
  void JoinWhatIsFree(uint64_t bytes_max, Set* set) const;
  void Join(size_t file, const Size& size, Set* set) const {
    set->has.Add(closures_[file].files);
    set->size = size;
  }
  std::optional<Set> GrownFrom(size_t seed) const;
  // The set that costs least, of equal ones that of the smallest key.
  template <typename CostOf>
  std::optional<Set> CheapestDown(CostOf cost_of) const;
  CompactionPlan PlanDown(const Set& set, PickReason reason) const;
  // The idle files from the newest on that follow each other in age, while `takes(file, files before it,
  // their bytes)`: from the first index up to the second.
  template <typename Takes>
  std::pair<size_t, size_t> NewestRun(Takes takes) const;
  // Those that are small and, but for the first few, no larger than all newer ones together.
  std::vector<size_t> SmallRun(uint64_t file_bytes_max, uint64_t bytes_max) const;
  // None when nothing would come of it, or it cannot be done now. REQUIRES: the files are idle and rise, and
  // every file between the newest and the oldest of them in age that overlaps one of them is among them.
  std::optional<CompactionPlan> PlanAmong(const std::vector<size_t>& run, PickReason reason) const;
  // Files of [begin, end), by index, in groups of which no two have keys in common.
  std::vector<std::vector<size_t>> Columns(size_t begin, size_t end) const;
  // Bytes that a merge of these files reads for each that scans would not have read for their sake, had it
  // been done before: paid for at 1 and less.
  double CostOfSeeks(const std::vector<size_t>& files, uint64_t merge_bytes, bool has_base) const;
  std::optional<uint64_t> BaseBytesUnder(const Reach& reach) const;
  KeySpan KeysOf(const Reach& reach) const;

  const LevelShape& shape_;
  const std::vector<FileShape>& files_;
  const PickerOptions& options_;
  uint32_t base_level_;
  struct BaseBefore {
    uint64_t bytes = 0;
    uint64_t busy = 0;
  };
  std::vector<std::string_view> bounds_;  // Of level 0's files, each once, sorted.
  std::vector<Reach> reaches_;            // Of each file alone; by index in files_.
  std::vector<Closure> closures_;         // The same.
  std::vector<BaseBefore> base_before_;   // Sums of the base level's files before each.
};

Level0::Level0(const LevelShape& shape, const PickerOptions& options, uint32_t base_level)
    : shape_(shape), files_(shape.levels[0]), options_(options), base_level_(base_level) {
  for (const FileShape& file : files_) {
    bounds_.push_back(file.span.lower);
    if (!file.span.upper.empty()) bounds_.push_back(file.span.upper);
  }
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  const auto place_of = [this](std::string_view bound) {
    return static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), bound) - bounds_.begin());
  };
  for (const FileShape& file : files_) {
    Reach& reach = reaches_.emplace_back();
    reach.lower = place_of(file.span.lower);
    reach.upper = file.span.upper.empty() ? bounds_.size() : place_of(file.span.upper);
    std::tie(reach.base_first, reach.base_end) = OverlappingRange(shape.levels[base_level], file.span);
  }
  closures_.assign(files_.size(), {Files(files_.size()), {}, false});
  for (size_t i = files_.size(); i-- > 0;) {
    Closure& closure = closures_[i];
    closure.files.Add(i);
    closure.reach = reaches_[i];
    closure.busy = files_[i].busy;
    for (size_t older = i + 1; older < files_.size(); ++older) {
      if (closure.files.Has(older) || !reaches_[older].Overlaps(reaches_[i])) continue;
      closure.files.Add(closures_[older].files);
      closure.reach.Extend(closures_[older].reach);
      closure.busy = closure.busy || closures_[older].busy;
    }
  }
  base_before_.resize(1);
  for (const FileShape& file : shape.levels[base_level]) {
    base_before_.push_back({base_before_.back().bytes + file.size, base_before_.back().busy + file.busy});
  }
}

// Of the set with `file` and all that it needs. None when something of that, or of the base level under it,
// is busy, or it would be more than `bytes_max`, or has no room.
std::optional<Level0::Size> Level0::SizeWith(size_t file, const Set& set, uint64_t bytes_max) const {
  const Closure& closure = closures_[file];
  if (closure.busy) return std::nullopt;
  Size size = set.size;
  closure.files.ForEachBeyond(set.has, [&](size_t joins) { size.bytes += files_[joins].size; });
  if (size.bytes > bytes_max) return std::nullopt;
  size.reach.Extend(closure.reach);
  const std::optional<uint64_t> base_bytes = BaseBytesUnder(size.reach);
  if (!base_bytes || size.bytes + *base_bytes > options_.room_bytes) return std::nullopt;
  size.base_bytes = *base_bytes;
  return size;
}

KeySpan Level0::KeysOf(const Reach& reach) const {
  return {std::string(bounds_[reach.lower]),
          reach.upper == bounds_.size() ? std::string() : std::string(bounds_[reach.upper])};
}

std::optional<uint64_t> Level0::BaseBytesUnder(const Reach& reach) const {
  const size_t first = reach.base_first, end = reach.base_end;
  if (base_before_[end].busy > base_before_[first].busy) return std::nullopt;
  return base_before_[end].bytes - base_before_[first].bytes;
}

// Joins the file, and all that it needs, that costs least of the base level for each byte it brings. False:
// there is none.
bool Level0::JoinCheapest(uint64_t bytes_max, Set* set) const {
  std::optional<Size> best;
  size_t best_file = 0;
  double best_cost = 0;
  for (size_t i = files_.size(); i-- > 0;) {
    if (set->has.Has(i) || files_[i].busy || !reaches_[i].Overlaps(set->size.reach)) continue;
    const std::optional<Size> with = SizeWith(i, *set, bytes_max);
    if (!with) continue;
    const double cost = static_cast<double>(with->base_bytes - set->size.base_bytes) /
                        static_cast<double>(std::max<uint64_t>(with->bytes - set->size.bytes, 1));
    if (best && cost >= best_cost) continue;
    best = with;
    best_file = i;
    best_cost = cost;
  }
  if (best) Join(best_file, *best, set);
  return best.has_value();
}

// Joins, the oldest first, every file that has no more of the base level rewritten.
void Level0::JoinWhatIsFree(uint64_t bytes_max, Set* set) const {
  for (bool joined = true; joined;) {
    joined = false;
    for (size_t i = files_.size(); i-- > 0 && set->size.bytes < bytes_max;) {
      if (set->has.Has(i) || files_[i].busy || !reaches_[i].Overlaps(set->size.reach)) continue;
      const std::optional<Size> with = SizeWith(i, *set, bytes_max);
      if (!with || with->base_bytes > set->size.base_bytes) continue;
      Join(i, *with, set);
      joined = true;
    }
  }
}

// The seed's closure, with so many other files that least of the base level is rewritten for each byte. They
// join while there are any, whatever they cost: it may pay once others have joined that cost nothing then.
// Where the cuts of flushes drifted each file reaches a little over the ends of those below.
std::optional<Level0::Set> Level0::GrownFrom(size_t seed) const {
  const uint64_t flushes = options_.space_is_short ? kLevel0JobFlushesInShortSpace : kLevel0JobFlushes;
  const uint64_t bytes_max = flushes * options_.flush_bytes;
  Set set{Files(files_.size()), {}};
  const std::optional<Size> alone = SizeWith(seed, set, UINT64_MAX);
  if (!alone) return std::nullopt;
  Join(seed, *alone, &set);
  JoinWhatIsFree(bytes_max, &set);
  Set best = set;
  // A job needs room for all that it reads, which where space is short may not be there.
  while (!options_.space_is_short && JoinCheapest(bytes_max, &set)) {
    JoinWhatIsFree(bytes_max, &set);
    if (set.size.base_per_byte() <= best.size.base_per_byte()) best = set;
  }
  return best;
}

bool MutuallyDisjoint(const std::vector<const FileShape*>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t j = i + 1; j < files.size(); ++j) {
      if (files[i]->span.Overlaps(files[j]->span)) return false;
    }
  }
  return true;
}

CompactionPlan Level0::PlanDown(const Set& set, PickReason reason) const {
  CompactionPlan plan;
  plan.output_level = base_level_;
  plan.reason = reason;
  plan.span = KeysOf(set.size.reach);
  std::vector<const FileShape*> taken;
  uint64_t tombstones = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (!set.has.Has(i)) continue;
    AddInput(&plan, 0, files_[i]);
    taken.push_back(&files_[i]);
    tombstones += files_[i].tombstones;
  }
  const KeySpan own_span = plan.span;
  for (const FileShape* file : OverlappingFiles(shape_.levels[base_level_], own_span)) {
    AddInput(&plan, base_level_, *file);
    plan.span.Extend(file->span);
  }
  // What is not compressed never moves into the last level; tombstones are merged, to be dropped as early as
  // they can.
  const bool is_as_wanted =
      base_level_ + 1 < kLevels ||
      std::all_of(taken.begin(), taken.end(), [](const FileShape* file) { return file->bottom_compression; });
  plan.trivial_move = plan.overlap_bytes == 0 && plan.inputs.size() == taken.size() && is_as_wanted &&
                      tombstones == 0 && MutuallyDisjoint(taken);
  return plan;
}

template <typename CostOf>
std::optional<Level0::Set> Level0::CheapestDown(CostOf cost_of) const {
  std::optional<Set> best;
  double best_cost = 0;
  const std::vector<uint32_t> sublevels = SublevelsOf(files_);
  for (size_t seed = files_.size(); seed-- > 0;) {
    if (sublevels[seed] != 1) continue;
    std::optional<Set> set = GrownFrom(seed);
    if (!set) continue;
    const double cost = cost_of(*set);
    const auto is_dearer = [&] {
      return cost > best_cost || (cost == best_cost && set->size.reach.lower >= best->size.reach.lower);
    };
    if (best && is_dearer()) continue;
    best = std::move(set);
    best_cost = cost;
  }
  return best;
}

std::optional<CompactionPlan> Level0::BestDown() const {
  const std::optional<Set> best = CheapestDown([](const Set& set) { return set.size.base_per_byte(); });
  if (!best) return std::nullopt;
  return PlanDown(*best, PickReason::kLevel0Depth);
}

template <typename Takes>
std::pair<size_t, size_t> Level0::NewestRun(Takes takes) const {
  size_t begin = 0;
  while (begin < files_.size() && files_[begin].busy) ++begin;
  uint64_t bytes = 0;
  size_t end = begin;
  for (; end < files_.size() && !files_[end].busy && takes(files_[end], end - begin, bytes); ++end) {
    bytes += files_[end].size;
  }
  return {begin, end};
}

std::optional<CompactionPlan> Level0::PlanAmong(const std::vector<size_t>& run, PickReason reason) const {
  // Side by side they would become the same files again, and be picked again.
  std::vector<const FileShape*> files;
  for (size_t i : run) files.push_back(&files_[i]);
  if (reason != PickReason::kSmallFiles && MutuallyDisjoint(files)) return std::nullopt;
  CompactionPlan plan;
  plan.reason = reason;
  plan.span = files.front()->span;
  for (const FileShape* file : files) {
    AddInput(&plan, 0, *file);
    plan.span.Extend(file->span);
  }
  if (plan.RoomNeeded() > options_.room_bytes) return std::nullopt;
  return plan;
}

// The newest run of small files that is worth merging into one.
std::optional<CompactionPlan> Level0::AmongItself(uint64_t file_bytes_max) const {
  const std::vector<size_t> run = SmallRun(file_bytes_max, UINT64_MAX);
  return run.size() < kSmallFilesMin ? std::nullopt : PlanAmong(run, PickReason::kLevel0Among);
}

// Together they are not cut, also where they lie side by side (OutputCutter).
std::optional<CompactionPlan> Level0::ManyToOne() const {
  const std::vector<size_t> run = SmallRun(options_.flush_bytes / kTinyShare, options_.target_file_bytes / 2);
  if (run.size() < kManyFiles) return std::nullopt;
  return PlanAmong(run, PickReason::kSmallFiles);
}

std::vector<size_t> Level0::SmallRun(uint64_t file_bytes_max, uint64_t bytes_max) const {
  const auto takes = [=](const FileShape& file, size_t count, uint64_t bytes) {
    const bool grown_too_much = count >= kSmallFilesMin && file.size > bytes;
    return file.size <= file_bytes_max && bytes + file.size <= bytes_max && !grown_too_much;
  };
  const auto [begin, end] = NewestRun(takes);
  std::vector<size_t> run(end - begin);
  std::iota(run.begin(), run.end(), begin);
  return run;
}

std::vector<std::vector<size_t>> Level0::Columns(size_t begin, size_t end) const {
  std::vector<size_t> by_key(end - begin);
  std::iota(by_key.begin(), by_key.end(), begin);
  std::sort(by_key.begin(), by_key.end(),
            [this](size_t a, size_t b) { return files_[a].span.lower < files_[b].span.lower; });
  std::vector<std::vector<size_t>> columns;
  KeySpan span;
  for (size_t i : by_key) {
    if (columns.empty() || !span.Overlaps(files_[i].span)) {
      columns.emplace_back();
      span = files_[i].span;
    }
    columns.back().push_back(i);
    span.Extend(files_[i].span);
  }
  for (std::vector<size_t>& column : columns) std::sort(column.begin(), column.end());
  return columns;
}

double Level0::CostOfSeeks(const std::vector<size_t>& files, uint64_t merge_bytes, bool has_base) const {
  std::vector<FileShape> shapes;
  for (size_t i : files) shapes.push_back(files_[i]);
  const std::vector<uint32_t> sublevels = SublevelsOf(shapes);
  std::map<uint32_t, uint64_t> read_of;
  uint64_t read = 0, most = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    read += shapes[i].seek_bytes;
    most = std::max(most, read_of[sublevels[i]] += shapes[i].seek_bytes);
  }
  // A block of what they become is read still; of a base's it is read anyway.
  const uint64_t saved = has_base ? read : read - most;
  return static_cast<double>(merge_bytes) / static_cast<double>(std::max<uint64_t>(saved, 1));
}

std::optional<CompactionPlan> Level0::ForSeeks() const {
  const auto cost_down = [this](const Set& set) {
    std::vector<size_t> files;
    for (size_t i = 0; i < files_.size(); ++i) {
      if (set.has.Has(i)) files.push_back(i);
    }
    const Size& size = set.size;
    return CostOfSeeks(files, size.bytes + size.base_bytes, /*has_base=*/size.base_bytes > 0);
  };
  const std::optional<Set> down = CheapestDown(cost_down);
  if (down && cost_down(*down) <= 1) return PlanDown(*down, PickReason::kLevel0Seeks);

  const uint64_t bytes_max = kLevel0JobFlushes * options_.flush_bytes;
  const auto [begin, end] = NewestRun(
      [bytes_max](const FileShape& file, size_t, uint64_t bytes) { return bytes + file.size <= bytes_max; });
  std::optional<CompactionPlan> best;
  double best_cost = 1;
  for (const std::vector<size_t>& column : Columns(begin, end)) {
    std::optional<CompactionPlan> plan = PlanAmong(column, PickReason::kLevel0Seeks);
    if (!plan) continue;
    const double cost = CostOfSeeks(column, plan->input_bytes, /*has_base=*/false);
    if (cost > best_cost || (best && cost == best_cost)) continue;
    best = std::move(plan);
    best_cost = cost;
  }
  return best;
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

std::optional<CompactionPlan> PickManyOfLevel0(const LevelShape& shape, const PickerOptions& options,
                                               const LevelTargets& targets) {
  if (shape.levels[0].size() < kManyFiles) return std::nullopt;
  return Level0(shape, options, targets.base_level).ManyToOne();
}

std::optional<CompactionPlan> PickLevel0ForSeeks(const LevelShape& shape, const PickerOptions& options,
                                                 const LevelTargets& targets) {
  // As long as no file was read for so much as itself no merge is paid for.
  const auto may_pay = [](const FileShape& file) { return !file.busy && file.seek_bytes >= file.size; };
  const std::vector<FileShape>& files = shape.levels[0];
  if (!options.merges_for_seeks || std::none_of(files.begin(), files.end(), may_pay)) return std::nullopt;
  return Level0(shape, options, targets.base_level).ForSeeks();
}

}  // namespace partita

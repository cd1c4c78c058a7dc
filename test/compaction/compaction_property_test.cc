#include <gtest/gtest.h>

#include "test/compaction/job_test_world.h"

namespace partita {
namespace {

// Random writes, deletes, snapshots and dropped tables; flushes and the compactions that the picker
// wants. Before and after every job each reader must see the same.
class RandomRun {
 public:
  explicit RandomRun(uint32_t seed) : random_(seed) {
    world_.target_file_bytes = 2000 + random_() % 12'000;
    options_.flush_bytes = 4000 + random_() % 12'000;
    options_.target_file_bytes = world_.target_file_bytes;
    keys_ = 20 + random_() % 400;
  }

  void Step() {
    WriteAndFlush();
    if (testing::Test::HasFatalFailure()) return;
    if (random_() % 3 == 0) snapshots_.push_back(Version(version_));
    if (!snapshots_.empty() && random_() % 4 == 0) {
      snapshots_.erase(snapshots_.begin() + static_cast<ptrdiff_t>(random_() % snapshots_.size()));
    }
    if (random_() % 30 == 0) world_.dead_table = TableId(1 + random_() % 3);
    for (int jobs = static_cast<int>(random_() % 4); jobs > 0 && CompactOnce(); --jobs) {
    }
  }

  void RunUntilQuiet() {
    for (int jobs = 0; CompactOnce(); ++jobs) ASSERT_LT(jobs, 500) << "compaction does not come to rest";
  }

  // With no snapshot left everything merged to the bottom is one put a key, and no tombstone.
  void MergeEverythingDown() {
    snapshots_.clear();
    world_.droppable_before = kVersionMax;
    for (uint32_t level = 0; level + 1 < kLevels; ++level) {
      if (world_.levels->level(level).empty()) continue;
      Run(world_.PlanOfLevels(level, level + 1));
      if (testing::Test::HasFatalFailure()) return;
    }
    CompactionPlan plan = world_.PlanOfLevels(6, 6);
    if (!plan.inputs.empty()) Run(plan);
    std::vector<ModelEntry> rest = world_.EntriesOf();
    for (size_t i = 0; i < rest.size(); ++i) {
      ASSERT_EQ(rest[i].kind, EntryKind::kPut);
      if (i > 0) ASSERT_NE(rest[i].key, rest[i - 1].key);
    }
  }

  uint64_t blocks_passed() const { return blocks_passed_; }
  uint64_t tombstones_dropped() const { return tombstones_dropped_; }

 private:
  std::string RandomKey() {
    uint32_t number = random_() % keys_;
    return EncodeUserKey(TableId(1 + number % 3), "p" + std::to_string(number % 7),
                         "r" + std::to_string(number));
  }

  RetentionPolicy Retention() const { return {Version(version_), snapshots_}; }

  // What each reader sees, dead table left out.
  using Views = std::vector<std::map<std::string, std::string>>;
  Views ViewsOf(std::vector<ModelEntry> entries) {
    std::string low = TableLowerBound(world_.dead_table);
    std::string high = TableUpperBound(world_.dead_table);
    std::erase_if(entries, [&](const ModelEntry& entry) { return entry.key >= low && entry.key < high; });
    Views views{VisibleAt(entries, Version(version_))};
    for (Version snapshot : snapshots_) views.push_back(VisibleAt(entries, snapshot));
    return views;
  }

  void WriteAndFlush() {
    std::vector<ModelEntry> memtable;
    for (uint32_t i = 1 + random_() % 60; i > 0; --i) {
      EntryKind kind = random_() % 4 == 0 ? EntryKind::kTombstone : EntryKind::kPut;
      memtable.push_back(MakeEntry(RandomKey(), ++version_, kind, std::string(random_() % 200, 'x')));
    }
    std::vector<ModelEntry> all = world_.EntriesOf();
    all.insert(all.end(), memtable.begin(), memtable.end());
    std::sort(all.begin(), all.end(), [](const ModelEntry& a, const ModelEntry& b) {
      return EntryBefore(a.key, a.version, b.key, b.version);
    });
    Views before = ViewsOf(all);
    FlushCuts cuts(options_);
    cuts.Add(ShapeOf(*world_.levels, Version(0), {}));
    Result<JobResult> result = world_.Flush(memtable, Retention(), cuts.Points());
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    ASSERT_TRUE(result->statistics.Accounted());
    ASSERT_EQ(ViewsOf(world_.EntriesOf()), before);
  }

  bool CompactOnce() {
    // What a snapshot still tells apart cannot go.
    Version oldest = Version(version_);
    for (Version snapshot : snapshots_) oldest = std::min(oldest, snapshot);
    world_.droppable_before = Version(oldest.value + 1);
    LevelShape shape = ShapeOf(*world_.levels, world_.droppable_before, {});
    std::optional<CompactionPlan> plan = PickCompaction(shape, options_);
    if (!plan) return false;
    Run(*plan);
    return !testing::Test::HasFatalFailure();
  }

  void Run(const CompactionPlan& plan) {
    Views before = ViewsOf(world_.EntriesOf());
    Result<JobResult> result = world_.Merge(world_.SpecFor(plan, Retention()));
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    ASSERT_TRUE(result->statistics.Accounted());
    ASSERT_EQ(ViewsOf(world_.EntriesOf()), before)
        << "levels " << plan.input_level << " -> " << plan.output_level;
    ASSERT_EQ(world_.ObjectCount(), world_.FileCount());
    blocks_passed_ += result->statistics.blocks_passed;
    tombstones_dropped_ += result->statistics.dropped_tombstones;
  }

  std::mt19937 random_;
  JobWorld world_;
  PickerOptions options_;
  uint32_t keys_ = 0;
  uint64_t version_ = 0;
  std::vector<Version> snapshots_;
  uint64_t blocks_passed_ = 0;
  uint64_t tombstones_dropped_ = 0;
};

// covers: F47, M18 M22 M47
TEST(CompactionPropertyTest, NoJobChangesWhatAnyReaderSees) {
  uint64_t blocks_passed = 0;
  uint64_t tombstones_dropped = 0;
  for (uint32_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomRun run(seed);
    for (int step = 0; step < 30; ++step) {
      run.Step();
      if (HasFatalFailure()) return;
    }
    run.RunUntilQuiet();
    run.MergeEverythingDown();
    if (HasFatalFailure()) return;
    blocks_passed += run.blocks_passed();
    tombstones_dropped += run.tombstones_dropped();
  }
  EXPECT_GT(blocks_passed, 50u);
  EXPECT_GT(tombstones_dropped, 1000u);
}

}  // namespace
}  // namespace partita

#include <gtest/gtest.h>

#include "test/compaction/job_fixture.h"

// Merges that copy whole blocks, and that read ahead.

namespace partita {
namespace {

TEST_F(JobTest, BlocksThatNothingOverlapsPassWithTheSameContent) {
  FlushOk(Puts(0, 2000, 5));
  MergeOk(0, 6);
  FlushOk(Puts(1000, 1050, 6));
  std::vector<ModelEntry> expected = Puts(0, 1000, 5);
  for (ModelEntry& entry : Puts(1000, 1050, 6)) expected.push_back(entry);
  for (ModelEntry& entry : Puts(1050, 2000, 5)) expected.push_back(entry);
  JobResult passed = MergeOk(0, 6);
  EXPECT_GT(passed.statistics.blocks_passed, 10 * passed.statistics.blocks_merged);
  EXPECT_EQ(passed.statistics.dropped_shadowed, 50u);
  EXPECT_EQ(world_.EntriesOf(6), expected);
}

// What is written anew ends anywhere in a block: one block more is taken apart for that, not all that follow.
TEST_F(JobTest, BlocksBehindRowsThatGrewPassWhereverTheirBlockEnds) {
  world_.target_file_bytes = 1 << 20;
  for (size_t size = 100; size <= 1300; size += 40) {
    SCOPED_TRACE(size);
    world_.levels = std::make_shared<const LevelSet>();
    FlushOk(Puts(0, 2000, 5));
    MergeOk(0, 6);
    std::vector<ModelEntry> grown;
    for (uint32_t row = 1000; row < 1010; ++row) {
      grown.push_back(MakeEntry(Puts(row, row + 1, 6)[0].key, 6, EntryKind::kPut, std::string(size, 'g')));
    }
    std::vector<ModelEntry> expected = Puts(0, 1000, 5);
    expected.insert(expected.end(), grown.begin(), grown.end());
    for (ModelEntry& entry : Puts(1010, 2000, 5)) expected.push_back(entry);
    FlushOk(std::move(grown));
    const uint64_t flushed_blocks = world_.levels->level(0)[0].table->properties().data_blocks;
    const JobStatistics merged = MergeOk(0, 6).statistics;
    EXPECT_LE(merged.blocks_merged, flushed_blocks + 4);  // Two of them held the rows before.
    EXPECT_GT(merged.blocks_passed, 40u);
    EXPECT_EQ(world_.EntriesOf(6), expected);
  }
}

// Each has a block of its own, far from full: whatever follows begins another one anyway.
TEST_F(JobTest, BlocksOfLargeRowsPassBehindOneThatWasRewritten) {
  world_.block_size = 12 << 10;
  world_.target_file_bytes = 8 << 20;
  const auto large = [](uint32_t from, uint32_t to, uint64_t version) {
    std::vector<ModelEntry> entries;
    for (uint32_t row = from; row < to; ++row) {
      entries.push_back(MakeEntry(Key(row / 100, row), version, EntryKind::kPut, RandomContent(4800, row)));
    }
    return entries;
  };
  FlushOk(large(0, 500, 5));
  MergeOk(0, 6);
  FlushOk(large(200, 201, 6));
  const JobStatistics merged = MergeOk(0, 6).statistics;
  EXPECT_LE(merged.blocks_merged, 4u);
  EXPECT_GT(merged.blocks_passed, 490u);
}

// Helpers that are there at once: what they read, the job need not.
class PromptExecutor final : public Executor {
 public:
  void Post(Runnable* work) override {
    works_ = true;
    work->run(work);
    works_ = false;
  }
  void PostAt(uint64_t, Runnable*) override { FAIL(); }
  uint64_t MonotonicNanos() override { return 0; }
  bool ShouldYield() override { return false; }
  bool works() const { return works_; }

 private:
  bool works_ = false;
};

// A merge waits for the beginning of each run, and for the tail, the indexes and the beginning of what it
// wrote; all else comes while it works, where one file of a run ends and the next begins as well.
TEST_F(JobTest, AMergeAndItsReadBackReadAhead) {
  world_.block_size = 12 << 10;
  world_.target_file_bytes = 1 << 20;
  PromptExecutor prompt;
  ReadAheadPool pool(prompt, 8 << 20);
  std::vector<uint64_t> waited;
  for (ReadAheadPool* reads : {static_cast<ReadAheadPool*>(nullptr), &pool}) {
    world_.levels = std::make_shared<const LevelSet>();
    world_.read_ahead = reads;
    for (uint64_t version : {5, 6}) {
      std::vector<ModelEntry> entries;
      for (uint32_t row = 0; row < 6000; ++row) {
        entries.push_back(
            MakeEntry(Key(row / 100, row), version, EntryKind::kPut, RandomContent(1000, row * version)));
      }
      FlushOk(std::move(entries));
      if (version == 5) MergeOk(0, 6);
    }
    EXPECT_GT(world_.levels->level(6).size(), 3u);
    const uint64_t runs = 1 + world_.levels->level(0).size();
    waited.push_back(0);
    world_.store.faults().on_read = [&](ObjectId, uint64_t, std::span<uint8_t>, ReadCaching) {
      if (!prompt.works()) ++waited.back();
      return Status();
    };
    const JobResult merged = MergeOk(0, 6);
    world_.store.faults().on_read = nullptr;
    if (reads == nullptr) continue;
    EXPECT_LE(waited.back(), 2 * runs + 4 * merged.edit.added.size());
    EXPECT_GT(reads->started(), 2u * 6000 * 1000 / (256 << 10));
  }
  EXPECT_LT(waited[1], waited[0]);
  RunBlocking(pool.Join());
}

// Two flushes of four files each are two runs: reading ahead takes memory for each run, not for each file.
TEST_F(JobTest, FilesOfLevel0SideBySideAreOneRun) {
  world_.block_size = 12 << 10;
  PromptExecutor prompt;
  ReadAheadPool pool(prompt, 8 << 20);
  world_.read_ahead = &pool;
  for (uint64_t version : {5, 6}) {
    for (uint32_t file = 0; file < 4; ++file) {
      std::vector<ModelEntry> entries;
      for (uint32_t row = file * 1500; row < (file + 1) * 1500; ++row) {
        entries.push_back(
            MakeEntry(Key(row / 100, row), version, EntryKind::kPut, RandomContent(1000, row * version)));
      }
      FlushOk(std::move(entries));
    }
  }
  size_t held = 0;
  world_.store.faults().on_read = [&](ObjectId, uint64_t, std::span<uint8_t>, ReadCaching) {
    held = std::max(held, pool.held_bytes());
    return Status();
  };
  MergeOk(0, 6);
  world_.store.faults().on_read = nullptr;
  EXPECT_GT(held, 0u);
  EXPECT_LE(held, 3u << 20);
  RunBlocking(pool.Join());
}

TEST_F(JobTest, BlocksOfAnotherCompressionClassDoNotPass) {
  FlushOk(Puts(0, 500, 5));
  EXPECT_EQ(MergeOk(0, 5).statistics.blocks_passed, 0u);
  EXPECT_GT(MergeOk(5, 6).statistics.blocks_passed, 0u);
  EXPECT_GT(MergeOk(6, 6).statistics.blocks_passed, 0u);
  EXPECT_EQ(world_.EntriesOf(6), Puts(0, 500, 5));
}

// A store outlives the constant that its first tables were written by.
TEST_F(JobTest, BlocksOfOtherSizesPassAndMerge) {
  for (const auto& [before, after] : {std::pair<size_t, size_t>{4096, 1024}, {1024, 2048}}) {
    SCOPED_TRACE(std::to_string(before) + " to " + std::to_string(after));
    world_.levels = std::make_shared<const LevelSet>();
    world_.block_size = before;
    FlushOk(Puts(0, 2000, 5));
    MergeOk(0, 6);
    world_.block_size = after;
    FlushOk(Puts(1000, 1050, 6));
    std::vector<ModelEntry> expected = Puts(0, 1000, 5);
    for (ModelEntry& entry : Puts(1000, 1050, 6)) expected.push_back(entry);
    for (ModelEntry& entry : Puts(1050, 2000, 5)) expected.push_back(entry);
    const JobStatistics merged = MergeOk(0, 6).statistics;
    EXPECT_GT(merged.blocks_passed, 0u);
    EXPECT_GT(merged.blocks_merged, 0u);
    EXPECT_EQ(world_.EntriesOf(6), expected);
  }
}

TEST_F(JobTest, BlocksOfDeadTablesDoNotPass) {
  FlushOk(Puts(0, 300, 5, 1, 1));
  FlushOk(Puts(0, 300, 5, 1, 2));
  FlushOk(Puts(0, 300, 5, 1, 3));
  MergeOk(0, 6);
  world_.dead_table = TableId(2);
  JobResult result = MergeOk(6, 6);
  EXPECT_EQ(result.statistics.dropped_dead_table, 300u);
  EXPECT_GT(result.statistics.blocks_passed, 0u);
  std::vector<ModelEntry> expected = Puts(0, 300, 5, 1, 1);
  for (ModelEntry& entry : Puts(0, 300, 5, 1, 3)) expected.push_back(entry);
  EXPECT_EQ(world_.EntriesOf(), expected);
}

TEST_F(JobTest, OutputsAreCutAtCutPointsEvenBetweenPassedBlocks) {
  FlushOk(Puts(0, 1000, 5));
  world_.target_file_bytes = 1 << 20;
  MergeOk(0, 6);
  MergeSpec spec = world_.SpecFor(world_.PlanOfLevels(6, 6), AllVisible());
  spec.cut_points = {Key(3, 333), Key(7, 700)};
  Result<JobResult> result = world_.Merge(std::move(spec));
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->edit.added.size(), 3u);
  EXPECT_EQ(result->edit.added[1].file.info->smallest, Key(3, 333));
  EXPECT_EQ(result->edit.added[2].file.info->smallest, Key(7, 700));
  EXPECT_GT(result->statistics.blocks_passed, 0u);
  EXPECT_EQ(world_.EntriesOf(), Puts(0, 1000, 5));
}

}  // namespace
}  // namespace partita

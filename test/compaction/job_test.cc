#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "compaction/compression_policy.h"
#include "compaction/run_cursor.h"
#include "engine/base/coding.h"
#include "engine/base/task_group.h"
#include "test/base/test_executor.h"
#include "test/compaction/job_fixture.h"

namespace partita {
namespace {

// covers: F47
TEST_F(JobTest, AFlushWritesEveryEntryInFilesNearTheTargetSize) {
  std::vector<ModelEntry> entries = Puts(0, 1000, 5);
  Result<JobResult> result = world_.Flush(entries, AllVisible());
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(world_.EntriesOf(0), entries);
  EXPECT_EQ(result->statistics.entries_in, 1000u);
  EXPECT_EQ(result->statistics.entries_out, 1000u);
  EXPECT_GT(result->statistics.bytes_verified, 0u);
  ASSERT_GT(result->edit.added.size(), 4u);
  for (const auto& added : result->edit.added) EXPECT_LT(added.file.info->file_size, 48 * 1024u);
}

TEST_F(JobTest, AFlushCutsAtCutPointsAndNowhereWithinThem) {
  world_.target_file_bytes = 1 << 20;
  Result<JobResult> result = world_.Flush(Puts(0, 300, 5), AllVisible(), {Key(1, 150), Key(2, 201)});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->edit.added.size(), 3u);
  EXPECT_EQ(result->edit.added[0].file.info->largest, Key(1, 149));
  EXPECT_EQ(result->edit.added[1].file.info->smallest, Key(1, 150));
  EXPECT_EQ(result->edit.added[2].file.info->smallest, Key(2, 201));
}

TEST_F(JobTest, AFlushOfADeadTableAddsNothing) {
  world_.dead_table = TableId(3);
  Result<JobResult> result = world_.Flush(Puts(0, 50, 5, 1, 3), AllVisible());
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->edit.added.empty());
  EXPECT_EQ(result->statistics.dropped_dead_table, 50u);
  EXPECT_EQ(world_.ObjectCount(), 0u);
}

// covers: F51 F22
TEST_F(JobTest, AFlushStopsAtAFlippedBitAndNamesTableAndKey) {
  std::vector<ModelEntry> entries = Puts(0, 400, 5);
  entries[300].value[40] ^= 4;
  Result<JobResult> result = world_.Flush(std::move(entries), AllVisible());
  EXPECT_EQ(result.code(), Code::kCorruption);
  EXPECT_THAT(result.status().message(), testing::HasSubstr("table 1, key 000000017030303300303030333030"));
  EXPECT_EQ(world_.ObjectCount(), 0u);
}

// covers: F47
TEST_F(JobTest, AFlushNoticesThatItsSourceEndedEarly) {
  FlushSpec spec;
  spec.entries = std::make_unique<VectorSource>(Puts(0, 20, 5));
  spec.entries_expected = 21;
  spec.retention = AllVisible();
  FlushJob job(world_.Context(), std::move(spec));
  EXPECT_EQ(RunBlocking(job.Run()).code(), Code::kCorruption);
  EXPECT_EQ(world_.ObjectCount(), 0u);
}

// covers: F22
TEST_F(JobTest, AFlushThatCannotWriteLeavesNothingBehind) {
  world_.store.faults().append_fails_after = 9000;
  EXPECT_EQ(world_.Flush(Puts(0, 1000, 5), AllVisible()).code(), Code::kNoSpace);
  EXPECT_EQ(world_.ObjectCount(), 0u);
  world_.store.faults().append_fails_after = UINT64_MAX;
  world_.store.faults().finish_failure = Status::IoError("planted");
  EXPECT_EQ(world_.Flush(Puts(0, 1000, 5), AllVisible()).code(), Code::kIoError);
  EXPECT_EQ(world_.ObjectCount(), 0u);
  world_.store.faults().finish_failure = Status();
  FlushOk(Puts(0, 1000, 5));  // A retry with new ids goes through.
}

// The second table is at hand when the end of the first is awaited.
TEST_F(JobTest, AnEndThatFailsBesideTheNextTableLeavesNeitherBehind) {
  world_.target_file_bytes = 64 << 10;
  world_.store.faults().finish_failure = Status::IoError("planted");
  EXPECT_EQ(world_.Flush(Puts(0, 3000, 5), AllVisible()).code(), Code::kIoError);
  EXPECT_EQ(world_.store.created(), 2u);
  EXPECT_EQ(world_.ObjectCount(), 0u);
  world_.store.faults().finish_failure = Status();
  FlushOk(Puts(0, 3000, 5));
}

// And nothing of the store is called damaged for it. covers: F22 F47
TEST_F(JobTest, AnOutputThatReadsBackWrongIsNotTrusted) {
  world_.store.faults().on_read = [](ObjectId, uint64_t offset, std::span<uint8_t> bytes, ReadCaching) {
    if (offset == 0) bytes[100] ^= 1;
    return Status();
  };
  EXPECT_EQ(world_.Flush(Puts(0, 1000, 5), AllVisible()).code(), Code::kIoError);
  EXPECT_EQ(world_.ObjectCount(), 0u);
}

TEST_F(JobTest, AMergeKeepsTheNewestVersionOfEachKey) {
  FlushOk(Puts(0, 500, 5));
  FlushOk(Puts(0, 500, 6, 3));
  JobResult result = MergeOk(0, 6);
  std::map<std::string, ModelEntry> expected;
  for (ModelEntry& entry : Puts(0, 500, 5)) expected[entry.key] = entry;
  for (ModelEntry& entry : Puts(0, 500, 6, 3)) expected[entry.key] = entry;
  std::vector<ModelEntry> rows;
  for (auto& [key, entry] : expected) rows.push_back(entry);
  EXPECT_EQ(world_.EntriesOf(6), rows);
  EXPECT_EQ(result.statistics.dropped_shadowed, 167u);
  EXPECT_TRUE(world_.levels->level(0).empty());
  EXPECT_EQ(world_.ObjectCount(), world_.FileCount());
}

// M18
TEST_F(JobTest, VersionsOfOneKeyStayInOneFile) {
  world_.target_file_bytes = 4096;
  std::vector<ModelEntry> entries;
  for (uint64_t version = 1; version <= 200; ++version) {
    for (uint32_t row : {1, 2})
      entries.push_back(MakeEntry(Key(0, row), version, EntryKind::kPut, Content(version)));
  }
  Result<JobResult> flushed = world_.Flush(entries, {Version(0), {}});
  ASSERT_TRUE(flushed.ok()) << flushed.status().ToString();
  ASSERT_EQ(flushed->edit.added.size(), 2u);
  Result<JobResult> merged = world_.Merge(world_.SpecFor(world_.PlanOfLevels(0, 6), {Version(0), {}}));
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  ASSERT_EQ(merged->edit.added.size(), 2u);
  EXPECT_EQ(world_.EntriesOf(6).size(), 400u);
}

// A hundred rows a partition, each in two versions.
std::vector<ModelEntry> SmallRows(uint32_t rows, size_t random_bytes) {
  std::vector<ModelEntry> entries;
  for (uint32_t row = 0; row < rows; ++row) {
    for (const uint64_t version : {6, 5}) {
      entries.push_back(MakeEntry(Key(row / 100, row), version, EntryKind::kPut,
                                  RandomContent(random_bytes, 10 * row + version)));
    }
  }
  return entries;
}

// Each takes memory until its file is written, however little it takes there.
TEST_F(JobTest, FilesEndAtSoManyEntriesBetweenPartitions) {
  constexpr uint64_t kEntriesAFile = 1000;
  world_.target_file_bytes = 256 << 10;
  world_.entry_bytes_min = world_.target_file_bytes / kEntriesAFile;
  const std::vector<ModelEntry> rows = SmallRows(5'000, 40);
  const RetentionPolicy all_versions{Version(0), {}};
  const auto check = [&](const Result<JobResult>& result, uint32_t level) {
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(world_.EntriesOf(level), rows);
    for (size_t i = 0; i < result->edit.added.size(); ++i) {
      const TableInfo& info = *result->edit.added[i].file.info;
      EXPECT_LE(info.entry_count, kEntriesAFile) << i;
      const bool is_last = i + 1 == result->edit.added.size();
      EXPECT_TRUE(is_last || info.entry_count >= kEntriesAFile * 3 / 4) << i;
      EXPECT_TRUE(info.smallest.ends_with("00")) << i;  // The first row of a partition.
    }
  };
  check(world_.Flush(rows, all_versions), 0);
  check(world_.Merge(world_.SpecFor(world_.PlanOfLevels(0, 6), all_versions)), 6);
}

// Or they would be taken for small ones, merged and cut again without end.
TEST_F(JobTest, NoFileEndsForItsEntriesBelowAnEighthOfTheTarget) {
  world_.target_file_bytes = 64 << 10;
  world_.entry_bytes_min = world_.target_file_bytes / 10;
  Result<JobResult> flushed = world_.Flush(SmallRows(5'000, 1), {Version(0), {}});
  ASSERT_TRUE(flushed.ok()) << flushed.status().ToString();
  ASSERT_GT(flushed->edit.added.size(), 2u);
  for (size_t i = 0; i + 1 < flushed->edit.added.size(); ++i) {
    EXPECT_GT(flushed->edit.added[i].file.info->file_size, world_.target_file_bytes / 10) << i;
  }
}

std::vector<ModelEntry> Tombstones(uint32_t from, uint32_t to, uint64_t version) {
  std::vector<ModelEntry> entries;
  for (uint32_t row = from; row < to; ++row) {
    entries.push_back(MakeEntry(Key(row / 100, row), version, EntryKind::kTombstone, ""));
  }
  return entries;
}

// M47
TEST_F(JobTest, ATombstoneStaysWhileOlderEntriesLieDeeperAndGoesWithThem) {
  world_.droppable_before = kVersionMax;
  FlushOk(Puts(0, 100, 5));
  MergeOk(0, 6);
  FlushOk(Tombstones(0, 50, 6));
  FlushOk(Tombstones(200, 250, 7));  // Nothing older anywhere.
  JobResult middle = MergeOk(0, 5);
  EXPECT_EQ(middle.statistics.dropped_tombstones, 50u);
  EXPECT_EQ(world_.EntriesOf(5), Tombstones(0, 50, 6));
  JobResult bottom = MergeOk(5, 6);
  EXPECT_EQ(bottom.statistics.dropped_tombstones, 50u);
  EXPECT_EQ(world_.EntriesOf(), Puts(50, 100, 5));
}

// M47
TEST_F(JobTest, ATombstoneStaysAboveAnOlderFileOfLevel0) {
  world_.droppable_before = kVersionMax;
  FlushOk(Puts(0, 20, 5));
  FlushOk(Tombstones(0, 20, 6));
  FlushOk(Puts(500, 510, 7));
  CompactionPlan plan = world_.PlanOfLevels(0, 0);
  plan.inputs.pop_back();  // The oldest stays out.
  ASSERT_TRUE(world_.Merge(world_.SpecFor(plan, AllVisible())).ok());
  EXPECT_TRUE(VisibleAt(world_.EntriesOf(), Version(6)).empty());
}

// M47
TEST_F(JobTest, ATombstoneStaysFromTheVersionOnThatTheCallerNamed) {
  world_.droppable_before = Version(7);
  FlushOk(Tombstones(0, 10, 6));
  FlushOk(Tombstones(10, 20, 7));
  ASSERT_TRUE(world_.Merge(world_.SpecFor(world_.PlanOfLevels(0, 6), AllVisible())).ok());
  EXPECT_EQ(world_.EntriesOf(), Tombstones(10, 20, 7));
}

// M19
TEST_F(JobTest, VirtualBoundsAreRespected) {
  FlushOk(Puts(0, 400, 5));
  world_.target_file_bytes = 1 << 20;
  MergeOk(0, 6);
  ASSERT_EQ(world_.levels->level(6).size(), 1u);
  FileRef slice = world_.levels->level(6)[0];
  LevelEdit edit;
  edit.removed.push_back({6, slice.info->id, ""});
  slice.lower = Key(1, 150);
  slice.upper = Key(2, 250);
  edit.added.push_back({6, slice});
  world_.Install(edit);
  FlushOk(Puts(200, 205, 6));
  JobResult result = MergeOk(0, 6);
  std::vector<ModelEntry> expected = Puts(150, 200, 5);
  for (ModelEntry& entry : Puts(200, 205, 6)) expected.push_back(entry);
  for (ModelEntry& entry : Puts(205, 250, 5)) expected.push_back(entry);
  EXPECT_EQ(world_.EntriesOf(), expected);
  EXPECT_EQ(result.statistics.entries_in, 105u);
}

TEST_F(JobTest, OfASlicedInputOnlyTheSliceCountsAsRead) {
  world_.target_file_bytes = 8 << 20;
  FlushOk(Puts(0, 10'000, 5));
  ASSERT_EQ(world_.FileCount(), 1u);
  const FileRef whole = world_.levels->level(0)[0];
  FileRef slice = whole;
  slice.lower = Key(20, 0);
  slice.upper = Key(30, 0);
  world_.Install({.added = {{0, slice}}, .removed = {{0, whole.info->id, whole.lower}}});
  const JobStatistics merged = MergeOk(0, 6).statistics;
  EXPECT_EQ(merged.entries_in, 1000u);
  EXPECT_GT(merged.bytes_in, whole.info->file_size / 10);
  EXPECT_LT(merged.bytes_in, whole.info->file_size / 2);
}

TEST_F(JobTest, ATrivialMoveReadsAndWritesNothing) {
  FlushOk(Puts(0, 100, 5));
  MergeOk(0, 5);
  uint64_t reads = world_.store.reads();
  CompactionPlan plan = world_.PlanOfLevels(5, 6);
  plan.trivial_move = true;
  Result<JobResult> result = world_.Merge(world_.SpecFor(plan, AllVisible()));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(world_.store.reads(), reads);
  EXPECT_EQ(world_.EntriesOf(6), Puts(0, 100, 5));
}

// covers: F22 F46, M12
TEST_F(JobTest, AReadErrorEndsTheMergeWithoutOutputAndNamesTheInput) {
  FlushOk(Puts(0, 300, 5));
  MergeOk(0, 6);
  FlushOk(Puts(0, 300, 6));
  for (uint32_t level : {0, 6}) {
    const ObjectId bad = world_.levels->level(level).back().info->id;
    world_.store.faults().on_read = [&](ObjectId id, uint64_t, std::span<uint8_t>, ReadCaching) {
      return id == bad ? Status::IoError("planted") : Status();
    };
    Status failed = MergeFails(0, 6);
    EXPECT_TRUE(failed.code() == Code::kIoError || failed.code() == Code::kCorruption) << failed.ToString();
    ASSERT_TRUE(world_.failed_input.has_value());
    EXPECT_EQ(world_.failed_input->id, bad);
    EXPECT_EQ(world_.failed_input->level, level);
    world_.store.faults().on_read = {};
  }
  MergeOk(0, 6);
  EXPECT_EQ(world_.EntriesOf(), Puts(0, 300, 6));
}

// covers: F22 F58. It may be read the next time.
TEST_F(JobTest, AnInputThatIsNotReadForWantOfMemoryIsNotNamed) {
  FlushOk(Puts(0, 300, 5));
  MergeOk(0, 6);
  FlushOk(Puts(0, 300, 6));
  world_.store.faults().on_read = [&](ObjectId, uint64_t, std::span<uint8_t>, ReadCaching) {
    return Status::ResourceExhausted("planted");
  };
  EXPECT_EQ(MergeFails(0, 6).code(), Code::kResourceExhausted);
  EXPECT_FALSE(world_.failed_input.has_value());
  world_.store.faults().on_read = {};
  MergeOk(0, 6);
  EXPECT_EQ(world_.EntriesOf(), Puts(0, 300, 6));
}

// covers: F46 F51
TEST_F(JobTest, AnInputWithAValueThatRottedBeforeItWasSealedIsNamed) {
  FlushOk(Puts(0, 300, 5));
  MergeOk(0, 6);
  FlushOk(Puts(0, 10, 6));
  const FileRef& bad = world_.levels->level(0)[0];
  auto& bytes = world_.store.bytes(bad.info->id);
  char* const block = reinterpret_cast<char*>(bytes.data());
  const uint32_t stored = LoadLe32(block + 8);
  block[stored - 1] ^= 1;
  StoreLe64(block, Hash64(std::string_view(block, stored).substr(8)) ^
                       PartIdentity(StoreId(77), bad.info->id, 0, SealKind::kDataBlock).Mix());
  const Status failed = MergeFails(0, 6);
  EXPECT_EQ(failed.code(), Code::kCorruption);
  EXPECT_THAT(failed.message(), testing::HasSubstr(bad.table->name() + ": "));
  ASSERT_TRUE(world_.failed_input.has_value());
  EXPECT_EQ(world_.failed_input->id, bad.info->id);
}

// covers: F43 F46
TEST_F(JobTest, ADamagedBlockIsNeverLeftOut) {
  FlushOk(Puts(0, 300, 5));
  MergeOk(0, 6);
  FlushOk(Puts(0, 10, 6));
  const ObjectId bad = world_.levels->level(6)[0].info->id;
  world_.store.bytes(bad)[100] ^= 0x10;
  EXPECT_EQ(MergeFails(0, 6).code(), Code::kCorruption);
  ASSERT_TRUE(world_.failed_input.has_value());
  EXPECT_EQ(world_.failed_input->id, bad);
}

// Moves the cursor by `move` until it is at its end, or fails.
Status WalkTo(RunCursor& run, IterState (RunCursor::*move)(), uint64_t* moves) {
  *moves = 0;
  for (IterState state = run.SeekToFirst(); state != IterState::kEnd;) {
    if (state == IterState::kNeedsIo) {
      Status fetched = RunBlocking(run.Fetch());
      if (!fetched.ok()) return fetched;
      state = run.state();
    } else {
      ++*moves;
      state = (run.*move)();
    }
  }
  return Status();
}

// covers: F47, M12
TEST_F(JobTest, AnInputThatEndsEarlyIsCorruption) {
  FlushOk(Puts(0, 100, 5));
  FileRef file = world_.levels->level(0)[0];
  TableInfo info = *file.info;
  info.entry_count += 1;  // As if the reader had lost one.
  file.info = std::move(info);
  RunCursor run({file}, /*read_ahead=*/nullptr);
  uint64_t entries = 0;
  EXPECT_EQ(WalkTo(run, &RunCursor::Next, &entries).code(), Code::kCorruption);
  EXPECT_EQ(entries, file.info->entry_count - 1);
  ASSERT_NE(run.failed_file(), nullptr);
}

// covers: F46 F48. What lies behind a slice is another range's.
TEST_F(JobTest, DamageBehindASliceDoesNotFailTheJobsOfTheSlice) {
  std::vector<ModelEntry> entries;
  for (const uint32_t partition : {3, 5}) {
    for (const uint32_t row : {1, 2}) {  // In blocks of their own.
      entries.push_back(
          MakeEntry(Key(partition, row), 5, EntryKind::kPut, RandomContent(40'000, 10 * partition + row)));
    }
  }
  world_.target_file_bytes = 1 << 20;
  FlushOk(entries);
  FileRef slice = world_.levels->level(0)[0];
  slice.upper = PrefixSuccessor(PartitionPrefix(entries[1].key));
  std::string& bytes = world_.store.bytes(slice.info->id);
  const size_t at = bytes.find(entries[2].value);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 20] ^= 1;
  for (const auto move : {&RunCursor::Next, &RunCursor::SkipBlock}) {
    RunCursor run({slice}, /*read_ahead=*/nullptr);
    uint64_t moves = 0;
    const Status walked = WalkTo(run, move, &moves);
    EXPECT_TRUE(walked.ok()) << walked.ToString();
    EXPECT_EQ(moves, 2u);
  }
}

// covers: F22
TEST_F(JobTest, AWriteErrorDiscardsTheOutputsAndKeepsTheInputs) {
  FlushOk(Puts(0, 1000, 5));
  for (uint64_t limit : {0, 5'000, 12'000}) {
    world_.store.faults().append_fails_after = limit;
    EXPECT_EQ(MergeFails(0, 6).code(), Code::kNoSpace);
  }
  world_.store.faults().append_fails_after = UINT64_MAX;
  MergeOk(0, 6);
  EXPECT_EQ(world_.EntriesOf(), Puts(0, 1000, 5));
}

TEST_F(JobTest, ACancelledJobLeavesEverythingAsItWas) {
  FlushOk(Puts(0, 1000, 5));
  uint64_t reads = 0;
  world_.store.faults().on_read = [&](ObjectId, uint64_t, std::span<uint8_t>, ReadCaching) {
    if (++reads == 6) world_.cancel = true;
    return Status();
  };
  EXPECT_EQ(MergeFails(0, 6).code(), Code::kCancelled);
  world_.cancel = false;
  MergeOk(0, 6);
}

Task<void> RunJob(MergeJob* job, std::optional<Result<JobResult>>* result) {
  result->emplace(co_await job->Run());
}

TEST_F(JobTest, OnAnExecutorAJobRunsInSlicesToTheSameResult) {
  FlushOk(Puts(0, 500, 5));
  FlushOk(Puts(0, 500, 6, 3));
  MergeJob job(world_.Context(), world_.SpecFor(world_.PlanOfLevels(0, 6), AllVisible()));
  std::optional<Result<JobResult>> result;
  {
    TestThread executor;  // Asks for a yield at every opportunity.
    TaskGroup group;
    group.Spawn(executor, RunJob(&job, &result));
    RunBlocking(group.Join());
  }
  ASSERT_TRUE(result.has_value() && result->ok());
  EXPECT_EQ((*result)->statistics.dropped_shadowed, 167u);
  world_.Install((*result)->edit);
  EXPECT_EQ(world_.EntriesOf(6).size(), 500u);
}

TEST_F(JobTest, AFlushOfWhatRepeatsItselfIsCompressedAndPassesThroughLaterMerges) {
  const auto flush_alike = [this](uint32_t from, uint32_t to, uint64_t version) {
    std::vector<ModelEntry> entries;
    for (uint32_t row = from; row < to; ++row) {
      entries.push_back(
          MakeEntry(Key(row / 100, row), version, EntryKind::kPut, std::string(1000, 'a' + row % 3)));
    }
    FlushOk(std::move(entries));
  };
  flush_alike(0, 300, 5);
  flush_alike(300, 600, 6);
  for (const FileRef& file : world_.levels->level(0)) {
    EXPECT_EQ(file.table->properties().codec, static_cast<uint8_t>(Codec::kLz4));
    EXPECT_LT(file.info->file_size * kFlushShrinkMin, file.info->raw_bytes * 2);
  }
  const JobStatistics among = MergeOk(0, 0).statistics;  // Level 0 stays compressed, among itself, too.
  EXPECT_GT(among.blocks_passed, among.blocks_merged);
  const JobStatistics down = MergeOk(0, 6).statistics;
  EXPECT_GT(down.blocks_passed, down.blocks_merged);
  EXPECT_EQ(down.entries_out, 600u);
}

TEST_F(JobTest, WhatWasCompressedOnLevel0IsNotWrittenOutInFull) {
  FlushOk(Puts(0, 300, 5));
  std::vector<ModelEntry> alike;
  for (uint32_t row = 300; row < 600; ++row)
    alike.push_back(MakeEntry(Key(row / 100, row), 6, EntryKind::kPut, std::string(1000, 'a')));
  FlushOk(std::move(alike));
  const JobStatistics merged = MergeOk(0, 0).statistics;
  EXPECT_EQ(world_.levels->level(0)[0].table->properties().codec, static_cast<uint8_t>(Codec::kLz4));
  EXPECT_LE(merged.bytes_written, merged.bytes_in);
  EXPECT_EQ(world_.EntriesOf(0).size(), 600u);
}

TEST_F(JobTest, AFlushThatLiesOnNothingIsCompressedForTheLastLevel) {
  world_.lies_on_nothing = true;
  FlushOk(Puts(0, 300, 5));
  const LevelShape shape = ShapeOf(*world_.levels, Version(0), {});
  EXPECT_FALSE(shape.levels[0].empty());
  for (const FileShape& file : shape.levels[0]) EXPECT_TRUE(file.bottom_compression);
  EXPECT_EQ(world_.EntriesOf(0).size(), 300u);
}

TEST_F(JobTest, AllLevelsButLevel0AreCompressedAlike) {
  FlushOk(Puts(0, 300, 5));
  EXPECT_EQ(world_.levels->level(0)[0].table->properties().codec, static_cast<uint8_t>(Codec::kStored));
  MergeOk(0, 4);
  EXPECT_EQ(world_.levels->level(4)[0].table->properties().codec, static_cast<uint8_t>(Codec::kLz4));
  MergeOk(4, 6);
  EXPECT_EQ(world_.levels->level(6)[0].table->properties().codec, static_cast<uint8_t>(Codec::kLz4));
  EXPECT_TRUE(ShapeOf(*world_.levels, Version(0), {}).levels[6][0].bottom_compression);
}

// Makes tables say of themselves what those of former versions do; each of their parts names its own codec.
void SayZstd(JobWorld* world, uint32_t level) {
  const StoreId store = world->Context().store_id;
  LevelEdit edit;
  for (const FileRef& file : world->levels->level(level)) {
    const ObjectId id = file.info->id;
    const PartHandle& handle = file.table->footer().properties;
    std::string bytes = world->store.bytes(id);
    std::string part = bytes.substr(handle.offset, handle.stored_size);
    Result<TableProperties> properties = DecodeProperties(std::string_view(part).substr(kPartHeaderSize));
    ASSERT_TRUE(properties.ok());
    properties->codec = static_cast<uint8_t>(Codec::kZstd);
    part.resize(kPartHeaderSize);
    AppendProperties(&part, *properties);
    ASSERT_EQ(part.size(), handle.stored_size);
    const Identity identity = PartIdentity(store, id, handle.offset, SealKind::kProperties);
    StoreLe64(part.data(), PartContentHash(part) ^ identity.Mix());
    world->store.Put(id, bytes.replace(handle.offset, part.size(), part));
    auto table = RunBlocking(TableReader::Open(world->store, world->cache, store, id));
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    edit.removed.push_back({level, id, file.lower});
    edit.added.push_back({level, file});
    edit.added.back().file.table = *table;
  }
  world->Install(edit);
}

TEST_F(JobTest, TablesOfFormerVersionsAreCompressedAnewByAMerge) {
  FlushOk(Puts(0, 500, 5));
  MergeOk(0, 5);
  SayZstd(&world_, 5);
  EXPECT_FALSE(ShapeOf(*world_.levels, Version(0), {}).levels[5][0].bottom_compression);
  EXPECT_EQ(MergeOk(5, 6).statistics.blocks_passed, 0u);
  EXPECT_EQ(world_.levels->level(6)[0].table->properties().codec, static_cast<uint8_t>(Codec::kLz4));
  EXPECT_EQ(world_.EntriesOf(6), Puts(0, 500, 5));
}

TEST_F(JobTest, WhatFormerVersionsCompressedOnLevel0StaysCompressed) {
  for (uint64_t version : {5, 6}) {
    std::vector<ModelEntry> alike;
    for (uint32_t row = 0; row < 300; ++row)
      alike.push_back(MakeEntry(Key(row / 100, row), version, EntryKind::kPut, std::string(1000, 'a')));
    FlushOk(std::move(alike));
  }
  SayZstd(&world_, 0);
  MergeOk(0, 0);
  EXPECT_EQ(world_.levels->level(0)[0].table->properties().codec, static_cast<uint8_t>(Codec::kLz4));
}

}  // namespace
}  // namespace partita

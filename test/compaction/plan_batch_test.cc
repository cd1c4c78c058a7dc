#include "compaction/plan_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "test/compaction/job_fixture.h"

namespace partita {
namespace {

// A shard of small tables, 1 to kTables, each a range of its own, whose rows lie side by side in the files of
// every flush.
class PlanBatchTest : public testing::Test {
 protected:
  static constexpr uint32_t kTables = 40;

  PlanBatchTest() { world_.target_file_bytes = 8 << 20; }

  static KeySpan RangeOf(uint32_t table) {
    return {TableLowerBound(TableId(table)), TableUpperBound(TableId(table))};
  }
  // Rows [from, to) of every table but those left out.
  void Flush(uint32_t from, uint32_t to, uint64_t version, uint32_t every = 1) {
    std::vector<ModelEntry> entries;
    for (uint32_t table = 1; table <= kTables; ++table) {
      if (table % every != 0) continue;
      for (const ModelEntry& entry : Puts(from, to, version, 1, table)) entries.push_back(entry);
    }
    const Result<JobResult> flushed = world_.Flush(std::move(entries), AllVisible());
    ASSERT_TRUE(flushed.ok()) << flushed.status().ToString();
    Slice(flushed->edit.added);
  }
  // Each table refers to what it has of the files.
  void Slice(const std::vector<LevelEdit::Added>& files) {
    LevelEdit edit;
    for (const LevelEdit::Added& whole : files) {
      edit.removed.push_back({whole.level, whole.file.info->id, whole.file.lower});
      for (uint32_t table = 1; table <= kTables; ++table) {
        const KeySpan range = RangeOf(table);
        LevelEdit::Added slice = whole;
        if (CutTo(range.lower, range.upper, &slice.file)) edit.added.push_back(std::move(slice));
      }
    }
    world_.Install(edit);
  }
  // What the range has of the whole.
  std::shared_ptr<const LevelSet> LevelsOf(uint32_t table) const {
    const KeySpan range = RangeOf(table);
    return std::move(LevelSet::Join({world_.levels}, range.lower, range.upper)).value();
  }
  // All of level 0 into level 6, in each table.
  std::vector<RangePlan> AllDue(PickReason reason = PickReason::kLevel0Depth) const {
    std::vector<RangePlan> due;
    for (uint32_t table = 1; table <= kTables; ++table) {
      RangePlan& part = due.emplace_back(RangePlan{RangeOf(table), LevelsOf(table), {}});
      part.plan.output_level = 6;
      part.plan.reason = reason;
      for (const uint32_t level : {0u, 6u}) {
        for (const FileRef& file : part.levels->level(level)) {
          const KeySpan span = SpanOf(file);
          part.plan.inputs.empty() ? part.plan.span = span : (part.plan.span.Extend(span), part.plan.span);
          part.plan.inputs.push_back({level, file.info->id, file.lower});
          part.plan.input_bytes += BytesWithin(file);
        }
      }
    }
    std::erase_if(due, [](const RangePlan& part) { return part.plan.inputs.empty(); });
    return due;
  }
  Result<JobResult> Run(const JoinedPlan& joined) {
    MergeSpec spec = world_.SpecFor(joined.plan, AllVisible());
    spec.levels = joined.levels;
    spec.bounds = joined.bounds;
    MergeJob job(world_.Context(), std::move(spec));
    Result<JobResult> result = RunBlocking(job.Run());
    world_.helpers.RunAll();
    return result;
  }
  static size_t FilesOf(const JobResult& result) {
    std::set<ObjectId> files;
    for (const LevelEdit::Added& added : result.edit.added) files.insert(added.file.info->id);
    return files.size();
  }

  JobWorld world_;
};

TEST_F(PlanBatchTest, NeighboursAreMergedIntoOneFileThatEachRefersToForItsRows) {
  for (uint64_t round = 1; round <= 3; ++round) Flush(0, 30, round);
  const std::vector<RangePlan> batch = BatchAround(AllDue(), 7, 8 << 20, UINT64_MAX);
  ASSERT_EQ(batch.size(), kTables);
  const JoinedPlan joined = JoinPlans(batch);
  const Result<JobResult> merged = Run(joined);
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  EXPECT_EQ(merged->statistics.dropped_shadowed, kTables * 30 * 2u);
  EXPECT_EQ(FilesOf(*merged), 1u);
  ASSERT_EQ(merged->edit.added.size(), kTables);
  uint64_t bytes = 0;
  for (uint32_t table = 1; table <= kTables; ++table) {
    const FileRef& file = merged->edit.added[table - 1].file;
    EXPECT_TRUE(IsInKeyRange(file.lower, RangeOf(table).lower, RangeOf(table).upper));
    EXPECT_TRUE(file.MayHold(Key(0, 0, table)) && file.MayHold(Key(0, 29, table)));
    EXPECT_FALSE(file.MayHold(Key(0, 0, table + 1)));
    // Not what an index block has, of which one is the whole file.
    EXPECT_LT(BytesWithin(file), file.info->file_size / 4);
    bytes += BytesWithin(file);
  }
  const auto all = static_cast<double>(merged->edit.added[0].file.info->file_size);
  EXPECT_NEAR(static_cast<double>(bytes), all, all / 8);
}

// A level has files beside what a plan spans.
TEST_F(PlanBatchTest, AReferenceReachesNoFurtherThanItsPlan) {
  // Of level 0 alone, as what each table has there spans no more.
  const auto due_of_rows = [this](uint32_t from, uint32_t to) {
    std::vector<RangePlan> due = AllDue();
    for (uint32_t table = 1; table <= kTables; ++table) {
      CompactionPlan& plan = due[table - 1].plan;
      std::erase_if(plan.inputs, [](const PlanInput& input) { return input.level == 6; });
      plan.span = {Key(from / 100, from, table), Key(from / 100, to, table)};
    }
    return due;
  };
  Flush(100, 120, 1);
  const Result<JobResult> behind =
      Run(JoinPlans(BatchAround(due_of_rows(100, 120), 0, UINT64_MAX, UINT64_MAX)));
  ASSERT_TRUE(behind.ok());
  world_.Install(behind->edit);
  Flush(0, 20, 2);
  const std::vector<RangePlan> due = due_of_rows(0, 20);
  const Result<JobResult> merged = Run(JoinPlans(BatchAround(due, 0, UINT64_MAX, UINT64_MAX)));
  ASSERT_TRUE(merged.ok());
  world_.Install(merged->edit);  // Which checks that none overlap.
  EXPECT_EQ(world_.levels->level(6).size(), 2 * kTables);
}

TEST_F(PlanBatchTest, ARangeWithoutRowsInAnOutputDoesNotReferToIt) {
  Flush(0, 10, 1, /*every=*/2);
  Flush(0, 10, 2, /*every=*/2);
  std::vector<ModelEntry> gone;  // All of table 6.
  for (uint32_t row = 0; row < 10; ++row)
    gone.push_back(MakeEntry(Key(0, row, 6), 3, EntryKind::kTombstone, ""));
  const Result<JobResult> flushed = world_.Flush(std::move(gone), AllVisible());
  ASSERT_TRUE(flushed.ok());
  Slice(flushed->edit.added);
  world_.droppable_before = kVersionMax;
  const Result<JobResult> merged = Run(JoinPlans(BatchAround(AllDue(), 0, UINT64_MAX, UINT64_MAX)));
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->edit.added.size(), kTables / 2 - 1);
  for (const LevelEdit::Added& added : merged->edit.added) {
    EXPECT_FALSE(added.file.MayHold(Key(0, 0, 6)));
    EXPECT_FALSE(added.file.MayHold(Key(0, 0, 7)));
  }
}

TEST_F(PlanBatchTest, ItGrowsFromTheMostUrgentUntilThereIsEnoughToDo) {
  for (uint64_t round = 1; round <= 3; ++round) Flush(0, 30, round);
  const std::vector<RangePlan> due = AllDue();
  uint64_t all = 0;
  for (const FileRef& file : due[0].levels->level(0)) all += file.info->file_size;
  const std::vector<RangePlan> quarter = BatchAround(due, 20, all / 4, UINT64_MAX);
  EXPECT_NEAR(static_cast<double>(quarter.size()), kTables / 4.0, 2);
  EXPECT_EQ(quarter.front().range, RangeOf(21));
  const JoinedPlan joined = JoinPlans(quarter);
  EXPECT_EQ(joined.plan.input_bytes, all);  // Known to be no more: a block of an index has all of each file.
  EXPECT_EQ(joined.plan.inputs.size(), 3 * quarter.size());
  // What is behind comes when there is nothing more in front.
  EXPECT_EQ(BatchAround(due, kTables - 1, all / 4, UINT64_MAX).front().range, RangeOf(kTables - 9));
  EXPECT_EQ(BatchAround(due, 20, all, /*bytes_max=*/0).size(), 1u);
  EXPECT_EQ(BatchAround(due, 20, 0, UINT64_MAX).size(), 1u);
}

TEST_F(PlanBatchTest, OnlyPlansOfOneKindAreDoneTogether) {
  for (uint64_t round = 1; round <= 3; ++round) Flush(0, 30, round);
  std::vector<RangePlan> due = AllDue();
  due[3].plan.reason = PickReason::kLevel0Seeks;
  due[4].plan.output_level = 5;
  due[5].plan.trivial_move = true;
  due[6].alone = true;
  EXPECT_EQ(BatchAround(due, 0, UINT64_MAX, UINT64_MAX).size(), kTables - 4);
  EXPECT_EQ(BatchAround(due, 6, UINT64_MAX, UINT64_MAX).size(), 1u);
  // Among itself, level 0 is ordered by the newest file that was merged: one file for all.
  due = AllDue(PickReason::kLevel0Among);
  for (RangePlan& part : due) part.plan.output_level = 0;
  due[6].plan.inputs.erase(due[6].plan.inputs.begin());
  EXPECT_EQ(BatchAround(due, 0, UINT64_MAX, UINT64_MAX).size(), kTables - 1);
}

// Flush after flush of some tables, with overwrites and deletes. Each has other files of level 0, of which a
// batch merges some, down or among themselves; of what it leaves, and of what lies below, the newest is
// found.
TEST_F(PlanBatchTest, OfEachKeyTheNewestIsFoundWhateverIsMergedTogether) {
  constexpr uint32_t kRows = 12;
  std::mt19937_64 random(20'261'130);
  std::map<std::string, ModelEntry> newest;
  world_.droppable_before = kVersionMax;
  const PickerOptions options{.flush_bytes = 64 << 10, .target_file_bytes = world_.target_file_bytes};
  size_t down = 0, among_itself = 0;
  // Some files that follow each other in age, if there are.
  const auto plan_among = [&](const LevelSet& levels) {
    const std::vector<FileRef>& files = levels.level(0);
    const size_t begin = random() % 3, count = 2 + random() % 3;
    if (begin + count > files.size()) return std::optional<CompactionPlan>();
    CompactionPlan plan{.reason = PickReason::kLevel0Among, .span = SpanOf(files[begin])};
    for (size_t i = begin; i < begin + count; ++i) {
      plan.inputs.push_back({0, files[i].info->id, files[i].lower});
      plan.span.Extend(SpanOf(files[i]));
      plan.input_bytes += BytesWithin(files[i]);
    }
    return std::optional(std::move(plan));
  };
  const auto merge = [&](bool among) {
    std::vector<RangePlan> due;
    for (uint32_t table = 1; table <= kTables; ++table) {
      RangePlan part{RangeOf(table), LevelsOf(table), {}};
      std::optional<CompactionPlan> plan =
          among ? plan_among(*part.levels) : PickCompaction(ShapeOf(*part.levels, kVersionMax, {}), options);
      if (!plan) continue;
      part.plan = *std::move(plan);
      due.push_back(std::move(part));
    }
    if (due.empty()) return;
    const std::vector<RangePlan> batch = BatchAround(due, random() % due.size(), UINT64_MAX, UINT64_MAX);
    const Result<JobResult> merged = Run(JoinPlans(batch));
    ASSERT_TRUE(merged.ok()) << merged.status().ToString();
    world_.Install(merged->edit);
    if (batch.size() > 1) ++(among ? among_itself : down);
  };
  for (uint64_t version = 1; version <= 120; ++version) {
    std::vector<ModelEntry> entries;
    for (uint32_t table = 1; table <= kTables; ++table) {
      if (random() % 4 == 0) continue;
      for (uint32_t row = random() % 5; row < kRows; row += 1 + random() % 6) {
        const EntryKind kind = random() % 4 == 0 ? EntryKind::kTombstone : EntryKind::kPut;
        entries.push_back(MakeEntry(Key(0, row, table), version, kind, Content(version)));
        newest[entries.back().key] = entries.back();
      }
    }
    const Result<JobResult> flushed = world_.Flush(std::move(entries), AllVisible());
    ASSERT_TRUE(flushed.ok()) << flushed.status().ToString();
    Slice(flushed->edit.added);
    for (uint64_t left = random() % 4; left > 0; --left) {
      merge(/*among=*/random() % 2 == 0);
      if (HasFatalFailure()) return;
    }
    for (uint32_t table = 1; table <= kTables; ++table) {
      const std::shared_ptr<const LevelSet> levels = LevelsOf(table);
      for (uint32_t row = 0; row < kRows; ++row) {
        const std::string key = Key(0, row, table);
        BlockPin pin;
        const Result<Lookup> found = RunBlocking(levels->Get(key, HashKey(key), kVersionMax, &pin));
        ASSERT_TRUE(found.ok()) << found.status().ToString();
        const auto expected = newest.find(key);
        if (expected == newest.end() || expected->second.kind == EntryKind::kTombstone) {
          ASSERT_NE(found->state, LookupState::kFound) << "table " << table << ", row " << row;
        } else {
          ASSERT_EQ(found->state, LookupState::kFound) << "table " << table << ", row " << row;
          ASSERT_EQ(found->version, expected->second.version) << "table " << table << ", row " << row;
          ASSERT_EQ(found->value, expected->second.value);
        }
      }
    }
  }
  EXPECT_GT(down, 10u);
  EXPECT_GT(among_itself, 10u);
}

}  // namespace
}  // namespace partita

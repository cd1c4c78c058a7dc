#include "compaction/picker.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <random>

#include "test/compaction/lsm_simulation.h"
#include "test/compaction/picker_shapes.h"

namespace partita {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// So many files of one span, as deep as level 0 may get; the newest, of id `newest`, first.
std::vector<FileShape> Stack(uint64_t newest, const std::string& lower, const std::string& last,
                             uint64_t size = 32 * kMiB) {
  std::vector<FileShape> files;
  for (uint64_t i = 0; i < kLevel0DepthCalm; ++i) files.push_back(ShapedFile(newest - i, lower, last, size));
  return files;
}

TEST(PickerTest, LeavesAQuietShapeAlone) {
  EXPECT_FALSE(PickCompaction(LevelShape{}, PickerOptions{}).has_value());
  LevelShape shape;
  shape.levels[0] = {ShapedFile(9, "a", "z"), ShapedFile(8, "a", "z")};
  shape.levels[6] = {ShapedFile(1, "a", "m"), ShapedFile(2, "n", "z")};
  EXPECT_FALSE(PickCompaction(shape, PickerOptions{}).has_value());
}

TEST(PickerTest, WhereWritersPressLevel0BecomesDeeperBeforeItIsMerged) {
  LevelShape shape;
  shape.levels[0] = Stack(17, "a", "z");
  shape.levels[6] = {ShapedFile(1, "a", "z", 20'000 * kMiB)};
  EXPECT_TRUE(PickCompaction(shape, PickerOptions{}).has_value());
  EXPECT_FALSE(PickCompaction(shape, PickerOptions{.level0_depth = kLevel0DepthMax}).has_value());
  std::vector<FileShape> deep;
  for (uint64_t i = 0; i < kLevel0DepthMax; ++i) deep.push_back(ShapedFile(50 - i, "a", "z", 32 * kMiB));
  shape.levels[0] = deep;
  EXPECT_TRUE(PickCompaction(shape, PickerOptions{.level0_depth = kLevel0DepthMax}).has_value());
}

TEST(PickerTest, TheDepthOfLevel0FollowsTheBytesThatAreFlushed) {
  constexpr uint64_t kFlush = 32 * kMiB;
  EXPECT_EQ(Level0Depth(100 * kFlush, kFlush, 0), kLevel0DepthCalm);
  EXPECT_EQ(Level0Depth(100 * kFlush, kFlush, 1'000'000), kLevel0DepthCalm);
  EXPECT_EQ(Level0Depth(100 * kFlush, kFlush, 1'000'000'000), kLevel0DepthMax);
  uint32_t before = kLevel0DepthCalm;
  for (uint64_t rate = 1'000'000; rate < 100'000'000; rate += 100'000) {
    const uint32_t depth = Level0Depth(100 * kFlush, kFlush, rate);
    EXPECT_GE(depth, before);
    // As deep as it must be for the share of a core, and not one flush more.
    const auto share_at = [&](double at) {
      return static_cast<double>(rate) / kMergedPerSecond * (100 / at + 1);
    };
    if (depth < kLevel0DepthMax) EXPECT_LT(share_at(depth + 1), 0.25);
    if (depth > kLevel0DepthCalm && depth < kLevel0DepthMax) EXPECT_GT(share_at(depth - 1), 0.25);
    before = depth;
  }
  EXPECT_EQ(before, kLevel0DepthMax);
  // A base half as large as level 0 gives no reason to wait.
  EXPECT_EQ(Level0Depth(0, kFlush, 1'000'000'000), kLevel0DepthCalm);
  EXPECT_EQ(Level0Depth(12 * kFlush, kFlush, 1'000'000'000), 24u);
}

TEST(PickerTest, MergesADeepLevel0IntoTheLastLevelOfASmallStore) {
  LevelShape shape;
  shape.levels[0] = Stack(17, "a", "z");
  shape.levels[6] = {ShapedFile(1, "a", "m"), ShapedFile(2, "zz", "zzz")};
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->output_level, 6u);
  EXPECT_EQ(plan->reason, PickReason::kLevel0Depth);
  EXPECT_THAT(Ids(*plan), ElementsAre(17, 16, 15, 14, 13, 12, 11, 10, 1));
  EXPECT_FALSE(plan->trivial_move);
}

// Files of level 0 that stay there although a newer one that overlaps them goes down.
std::vector<uint64_t> LeftAbove(const LevelShape& shape, const CompactionPlan& plan) {
  const std::vector<uint64_t> ids = Ids(plan);
  const auto goes = [&ids](const FileShape& file) {
    return std::find(ids.begin(), ids.end(), file.id.value) != ids.end();
  };
  std::vector<uint64_t> left;
  const std::vector<FileShape>& files = shape.levels[0];  // The newest first.
  for (size_t older = 0; older < files.size(); ++older) {
    if (goes(files[older])) continue;
    for (size_t newer = 0; newer < older; ++newer) {
      if (goes(files[newer]) && files[newer].span.Overlaps(files[older].span)) {
        left.push_back(files[older].id.value);
        break;
      }
    }
  }
  return left;
}

// M22
TEST(PickerTest, TakesEveryOlderFileOfLevel0ThatAnInputOverlaps) {
  LevelShape chained;
  chained.levels[0] = {ShapedFile(9, "c", "f"), ShapedFile(8, "e", "k"), ShapedFile(7, "a", "d"),
                       ShapedFile(6, "j", "m"), ShapedFile(5, "x", "z")};
  std::vector<FileShape> above = Stack(18, "c", "d");
  chained.levels[0].insert(chained.levels[0].begin(), above.begin(), above.end());
  // The seed is the oldest file; what grows from it meets one that is newer than the seed, older than what
  // overlaps it, and apart from both.
  LevelShape apart;
  apart.levels[0] = Stack(18, "a", "z");
  apart.levels[0].push_back(ShapedFile(2, "p", "r"));
  apart.levels[0].push_back(ShapedFile(1, "a", "b"));
  // What joins the seed needs an older file that would cost more than all of them bring.
  LevelShape dear;
  dear.levels[0] = Stack(18, "a", "p");
  dear.levels[0].push_back(ShapedFile(2, "p", "z"));
  dear.levels[0].push_back(ShapedFile(1, "a", "b"));
  dear.levels[6] = {ShapedFile(1000, "a", "b"), ShapedFile(1001, "q", "z", 4096 * kMiB)};
  for (const LevelShape& shape : {chained, apart, dear}) {
    std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
    ASSERT_TRUE(plan.has_value());
    EXPECT_GT(plan->output_level, 0u);
    EXPECT_THAT(LeftAbove(shape, *plan), IsEmpty());
  }
}

TEST(PickerTest, ABusyFileExcludesWhatItOverlaps) {
  LevelShape shape;
  shape.levels[0] = Stack(18, "a", "c");
  shape.levels[6] = {ShapedFile(1, "b", "d")};
  shape.levels[6][0].busy = true;
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  if (plan) EXPECT_EQ(plan->output_level, 0u);  // Among itself is still possible.
  shape.levels[6][0].busy = false;
  shape.levels[0].back().busy = true;  // The oldest: nothing above it may go down.
  EXPECT_FALSE(PickCompaction(shape, PickerOptions{}).has_value());
}

TEST(PickerTest, MergesSmallFilesAmongThemselvesRatherThanRewritingMuchForLittle) {
  LevelShape shape;
  shape.levels[0] = Stack(18, "a", "z", kMiB);
  for (char c = 'a'; c <= 'z'; ++c)
    shape.levels[6].push_back(ShapedFile(static_cast<uint64_t>(c), {c}, {c}, 64 * kMiB));
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kLevel0Among);
  EXPECT_EQ(plan->output_level, 0u);
  EXPECT_THAT(Ids(*plan), ElementsAre(18, 17, 16, 15, 14, 13, 12, 11));
}

// Each flush cut its files elsewhere, as the base level was rewritten meanwhile: none lies within what
// another one covers, and each reaches a little over the ends of files below. Level 0: 13 MiB a file.
LevelShape DriftedColumns(uint32_t flushes) {
  LevelShape shape;
  for (uint32_t i = 0; i < 40; ++i) {
    shape.levels[6].push_back(
        ShapedFile(1 + i, LsmSimulation::KeyText(i * 100), LsmSimulation::KeyText(i * 100 + 99), 15 * kMiB));
  }
  for (uint32_t flush = 0; flush < flushes; ++flush) {
    uint32_t begin = 0;
    for (uint32_t cut : {1300 + flush * 13, 2600 + flush * 29, 4000u}) {
      FileShape file = ShapedFile(100 + shape.levels[0].size(), LsmSimulation::KeyText(begin),
                                  LsmSimulation::KeyText(cut - 1), 13 * kMiB);
      shape.levels[0].insert(shape.levels[0].begin(), file);
      begin = cut;
    }
  }
  return shape;
}

constexpr uint64_t kDriftedFlush = 39 * kMiB;

// Beside 10.8 bytes of the base level for each of level 0 that the closure of one file costs.
TEST(PickerTest, TakesADeepStackTogetherHoweverItsCutsDrifted) {
  const LevelShape shape = DriftedColumns(kLevel0DepthCalm);
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{.flush_bytes = kDriftedFlush});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->output_level, 6u);
  EXPECT_THAT(LeftAbove(shape, *plan), IsEmpty());
  const uint64_t own = plan->input_bytes - plan->overlap_bytes;
  EXPECT_LE(plan->overlap_bytes, own * 5 / 2);
}

// A job needs room for what it reads.
TEST(PickerTest, WhereSpaceIsShortAJobTakesNoMoreThanItMust) {
  const LevelShape shape = DriftedColumns(kLevel0DepthCalm);
  std::optional<CompactionPlan> plan =
      PickCompaction(shape, PickerOptions{.flush_bytes = kDriftedFlush, .space_is_short = true});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->output_level, 6u);
  EXPECT_THAT(LeftAbove(shape, *plan), IsEmpty());
  EXPECT_LE(plan->input_bytes, shape.TotalBytes() / 3);
}

// Of those that have room the best one is, down to the smallest there is.
TEST(PickerTest, PicksNoJobThatHasNoRoom) {
  const LevelShape shape = DriftedColumns(kLevel0DepthCalm);
  PickerOptions options{.flush_bytes = kDriftedFlush};
  std::vector<uint64_t> needed;
  while (std::optional<CompactionPlan> plan = PickCompaction(shape, options)) {
    EXPECT_LE(plan->RoomNeeded(), options.room_bytes);
    if (plan->output_level == 6) EXPECT_THAT(LeftAbove(shape, *plan), IsEmpty());
    needed.push_back(plan->RoomNeeded());
    options.room_bytes = plan->RoomNeeded() - 1;
  }
  ASSERT_GE(needed.size(), 3u);
  EXPECT_LT(needed.back(), needed.front() / 4);
}

TEST(PickerTest, WhatIsMovedNeedsNoRoom) {
  LevelShape shape;
  for (char c = 'z'; c >= 'a'; --c) {
    shape.levels[0].push_back(ShapedFile(static_cast<uint64_t>(c), {c}, {c}, 64 * kMiB));
  }
  const std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->trivial_move);
  EXPECT_EQ(plan->RoomNeeded(), 0u);
}

// One damaged file of the base level is in the way of what lies above it, and of nothing else.
TEST(PickerTest, GoesDownBesideAFileThatIsSetAside) {
  LevelShape shape = DriftedColumns(kLevel0DepthCalm);
  shape.levels[6].back().busy = true;
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{.flush_bytes = kDriftedFlush});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->output_level, 6u);
  EXPECT_FALSE(plan->span.Overlaps(shape.levels[6].back().span));
  EXPECT_THAT(LeftAbove(shape, *plan), IsEmpty());
}

// What reaches far beyond all others stays: it would have the whole base level rewritten.
TEST(PickerTest, LeavesAWideFileAboveANarrowStack) {
  LevelShape shape;
  for (char c = 'a'; c <= 'z'; ++c)
    shape.levels[6].push_back(ShapedFile(static_cast<uint64_t>(c), {c}, {c}, 64 * kMiB));
  shape.levels[0] = Stack(18, "c", "d");
  shape.levels[0].insert(shape.levels[0].begin(), ShapedFile(30, "a", "z", 32 * kMiB));
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(Ids(*plan), ElementsAre(18, 17, 16, 15, 14, 13, 12, 11, 'c', 'd'));
}

// Also where it is older than what costs nothing.
TEST(PickerTest, LeavesAWideFileBesideANarrowStack) {
  LevelShape shape;
  for (char c = 'a'; c <= 'z'; ++c)
    shape.levels[6].push_back(ShapedFile(static_cast<uint64_t>(c), {c}, {c}, 64 * kMiB));
  shape.levels[0] = Stack(18, "a", "b");
  shape.levels[0].push_back(ShapedFile(2, "d", "z"));
  shape.levels[0].push_back(ShapedFile(1, "a", "d"));
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(Ids(*plan), ElementsAre(18, 17, 16, 15, 14, 13, 12, 11, 1, 'a', 'b', 'c', 'd'));
}

// Files that repeat themselves and are therefore compressed: deep before they are large.
TEST(PickerTest, MergesTinyFilesAmongThemselvesUntilTheyWeighAsMuchAsTheirBase) {
  LevelShape shape;
  shape.levels[0] = Stack(18, "a", "z", kMiB);
  shape.levels[6] = {ShapedFile(1, "a", "z", 9 * kMiB)};
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kLevel0Among);
  EXPECT_EQ(plan->output_level, 0u);
  shape.levels[6] = {ShapedFile(1, "a", "z", 8 * kMiB)};
  plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->output_level, 6u);

  // What is mostly tombstones frees space there.
  shape.levels[6] = {ShapedFile(1, "a", "z", 64 * kMiB)};
  for (FileShape& file : shape.levels[0]) file.tombstones = file.entries / 3;
  plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->output_level, 6u);

  // Neither tiny nor facing a base so many times their size: down.
  shape.levels[0] = Stack(18, "a", "z", 16 * kMiB);
  shape.levels[6] = {ShapedFile(1, "a", "z", 1024 * kMiB)};
  plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->output_level, 6u);
}

LevelShape LargeShape() {
  LevelShape shape;  // 16 GiB at the bottom: level 5 holds about 2.7 GiB.
  for (int i = 0; i < 512; ++i) {
    std::string key = LsmSimulation::KeyText(static_cast<uint32_t>(i) << 8);
    shape.levels[6].push_back(ShapedFile(1000 + static_cast<uint64_t>(i), key, key + "z"));
  }
  return shape;
}

TEST(PickerTest, LevelsGrowBottomUpWithTheData) {
  PickerOptions options;
  LevelShape small;
  small.levels[6] = {ShapedFile(1, "a", "b", 2048 * kMiB)};
  EXPECT_EQ(TargetsFor(small, options).base_level, 6u);
  LevelTargets targets = TargetsFor(LargeShape(), options);
  EXPECT_EQ(targets.base_level, 5u);
  EXPECT_GT(targets.bytes[5], 2048 * kMiB);
  EXPECT_LT(targets.bytes[5], 3400 * kMiB);
  LevelShape huge;
  huge.levels[6] = {ShapedFile(1, "a", "b", 100ull << 30)};
  EXPECT_EQ(TargetsFor(huge, options).base_level, 4u);
  EXPECT_LE(TargetsFor(huge, options).growth, kLevelGrowth);
}

TEST(PickerTest, EmptiesLevelsAboveTheBaseBeforeLevel0PassesThem) {
  PickerOptions options;
  LevelShape shape;
  shape.levels[3] = {ShapedFile(5, "c", "d")};
  shape.levels[6] = {ShapedFile(1, "a", "b")};
  EXPECT_EQ(TargetsFor(shape, options).base_level, 3u);
  std::optional<CompactionPlan> plan = PickCompaction(shape, options);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->input_level, 3u);
  EXPECT_TRUE(plan->trivial_move);
}

TEST(PickerTest, MovesDownTheFileWithTheLeastOverlap) {
  LevelShape shape = LargeShape();
  for (uint64_t i = 0; i < 120; ++i) {
    std::string key = LsmSimulation::KeyText(static_cast<uint32_t>(i * 4) << 8);
    std::string last = i == 41 ? key + "a" : LsmSimulation::KeyText(static_cast<uint32_t>(i * 4 + 2) << 8);
    shape.levels[5].push_back(ShapedFile(100 + i, key, last));
  }
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kLevelSize);
  EXPECT_EQ(Ids(*plan).front(), 141u);
  EXPECT_EQ(plan->inputs.size(), 2u);
}

TEST(PickerTest, TombstoneDenseFilesGoFirst) {
  LevelShape shape = LargeShape();
  for (uint64_t i = 0; i < 120; ++i) {
    std::string key = LsmSimulation::KeyText(static_cast<uint32_t>(i * 4) << 8);
    shape.levels[5].push_back(ShapedFile(100 + i, key, key + "a"));
  }
  shape.levels[5][17].tombstones = shape.levels[5][17].entries / 2;
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(Ids(*plan).front(), 117u);
}

TEST(PickerTest, RewritesABottomFileOfTombstonesOnlyWhenTheyCanGo) {
  LevelShape shape;
  shape.levels[6] = {ShapedFile(5, "a", "b")};
  shape.levels[6][0].tombstones = shape.levels[6][0].entries / 2;
  EXPECT_FALSE(PickCompaction(shape, PickerOptions{}).has_value());
  shape.droppable_before = Version(6);
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kTombstones);
  EXPECT_EQ(plan->output_level, 6u);
  EXPECT_FALSE(plan->trivial_move);
}

TEST(PickerTest, RewritesASliceThatKeepsMoreThanItUses) {
  LevelShape shape;
  shape.levels[6] = {ShapedFile(5, "a", "b"), ShapedFile(6, "c", "d")};
  shape.levels[6][1].foreign_bytes = shape.levels[6][1].size + 1;
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kForeignBytes);
  EXPECT_THAT(Ids(*plan), ElementsAre(6));
}

// What is written will be merged anyway.
TEST(PickerTest, OnLevel0ASliceIsRewrittenForMuchMoreThanItself) {
  LevelShape shape;
  shape.levels[0] = {ShapedFile(9, "a", "c"), ShapedFile(8, "b", "d", kMiB), ShapedFile(7, "a", "z")};
  shape.levels[0][1].foreign_bytes = 4 * kMiB;
  EXPECT_FALSE(PickCompaction(shape, PickerOptions{}).has_value());
  shape.levels[0][1].foreign_bytes += 1;
  const std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kForeignBytes);
  EXPECT_EQ(plan->output_level, 0u);
  EXPECT_THAT(Ids(*plan), ElementsAre(8));
}

TEST(PickerTest, RewritesAnotherFileThanTheOneThatHasNoRoom) {
  LevelShape shape;
  for (uint64_t i = 0; i < 2; ++i) {
    const std::string key(1, static_cast<char>('a' + i));
    shape.levels[6].push_back(ShapedFile(1 + i, key, key, (64 >> i) * kMiB));
    shape.levels[6].back().foreign_bytes = 128 * kMiB;
  }
  const auto picked = [&shape](uint64_t room_bytes) {
    const std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{.room_bytes = room_bytes});
    return plan ? Ids(*plan) : std::vector<uint64_t>();
  };
  EXPECT_THAT(picked(64 * kMiB), ElementsAre(1));
  EXPECT_THAT(picked(32 * kMiB), ElementsAre(2));
  EXPECT_THAT(picked(32 * kMiB - 1), IsEmpty());
}

TEST(PickerTest, MovesAFileOnlyWhenRewritingItWouldGainNothing) {
  LevelShape shape;
  shape.levels[5] = {ShapedFile(5, "a", "b")};  // A level to be emptied.
  shape.levels[4] = {ShapedFile(6, "x", "y")};
  std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->trivial_move);
  shape.levels[4].clear();
  shape.levels[5][0].bottom_compression = false;  // It would stay badly compressed for good.
  plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_FALSE(plan->trivial_move);
  shape.levels[5][0].bottom_compression = true;
  shape.levels[5][0].tombstones = 1;  // It would stay there for good.
  plan = PickCompaction(shape, PickerOptions{});
  ASSERT_TRUE(plan.has_value());
  EXPECT_FALSE(plan->trivial_move);
}

TEST(PickerTest, WhatLiesOnNothingMovesFromLevel0AsItIs) {
  LevelShape shape;
  for (uint64_t i = 20; i > 0; --i) {
    const std::string key = std::to_string(100 + i);
    shape.levels[0].push_back(ShapedFile(i, key, key + "z"));
  }
  const auto moves = [&shape] {
    const std::optional<CompactionPlan> plan = PickCompaction(shape, PickerOptions{});
    EXPECT_TRUE(plan && plan->output_level == kLevels - 1);
    return plan && plan->trivial_move;
  };
  EXPECT_TRUE(moves());
  LevelShape& now = shape;
  const LevelShape before = shape;
  for (FileShape& file : now.levels[0]) file.bottom_compression = false;
  EXPECT_FALSE(moves());
  now = before;
  for (FileShape& file : now.levels[0]) file.tombstones = 1;
  EXPECT_FALSE(moves());
  now = before;
  now.levels[kLevels - 1] = {ShapedFile(50, "100", "199", 2000 * kMiB)};
  EXPECT_FALSE(moves());
  now = before;
  for (FileShape& file : now.levels[0]) file.span = now.levels[0].front().span;
  EXPECT_FALSE(moves());  // They overlap each other.
  now = before;
  now.levels[0].insert(now.levels[0].begin(), ShapedFile(60, "100", "199"));  // Needs all that it lies on.
  for (size_t i = 1; i < now.levels[0].size(); ++i) now.levels[0][i].busy = true;
  EXPECT_FALSE(PickCompaction(shape, PickerOptions{}).has_value());
}

TEST(PickerTest, SublevelsCountTheFilesAKeyMayBeIn) {
  std::vector<FileShape> files{ShapedFile(4, "a", "m"), ShapedFile(3, "n", "z"), ShapedFile(2, "k", "p"),
                               ShapedFile(1, "a", "c")};
  EXPECT_THAT(SublevelsOf(files), ElementsAre(2, 2, 1, 1));
}

TEST(PickerTest, SublevelsOfRandomFilesAreAsByLookingAtEachPair) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<FileShape> files;
    std::vector<uint32_t> expected(random() % 12, 1);
    for (size_t i = 0; i < expected.size(); ++i) {
      std::string lower(1, static_cast<char>('a' + random() % 20)), last = lower;
      last[0] = static_cast<char>(last[0] + random() % 6);
      files.push_back(ShapedFile(100 - i, lower, last));
      if (last != lower && random() % 3 == 0) files.back().span.upper = last;  // Where others begin.
      if (random() % 10 == 0) files.back().span.upper.clear();
    }
    for (size_t i = files.size(); i-- > 0;) {
      for (size_t older = i + 1; older < files.size(); ++older) {
        if (files[i].span.Overlaps(files[older].span))
          expected[i] = std::max(expected[i], expected[older] + 1);
      }
    }
    EXPECT_EQ(SublevelsOf(files), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace partita

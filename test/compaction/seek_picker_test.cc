#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "test/compaction/picker_shapes.h"

// What of level 0 is merged because scans have paid for it.

namespace partita {
namespace {

using testing::ElementsAre;

constexpr PickerOptions kForSeeks{.merges_for_seeks = true};

// Scans have read of each file of level 0 `times` as much as it has.
LevelShape Sought(LevelShape shape, double times) {
  for (FileShape& file : shape.levels[0])
    file.seek_bytes = static_cast<uint64_t>(times * static_cast<double>(file.size));
  return shape;
}

TEST(SeekPickerTest, MergesLevel0AmongItselfOnceScansHavePaidForIt) {
  LevelShape shape;
  shape.levels[6] = {ShapedFile(1, "a", "z", 2048 * kMiB)};
  for (uint64_t id = 5; id > 1; --id) shape.levels[0].push_back(ShapedFile(id, "a", "z"));
  EXPECT_FALSE(PickCompaction(shape, kForSeeks).has_value());
  // Of four sublevels one is left.
  EXPECT_FALSE(PickCompaction(Sought(shape, 1.32), kForSeeks).has_value());
  std::optional<CompactionPlan> plan = PickCompaction(Sought(shape, 1.34), kForSeeks);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kLevel0Seeks);
  EXPECT_EQ(plan->output_level, 0u);
  EXPECT_THAT(Ids(*plan), ElementsAre(5, 4, 3, 2));
  EXPECT_LT(plan->score, 1);
  EXPECT_FALSE(PickCompaction(Sought(shape, 1.34), PickerOptions{}).has_value());

  // A file that is set aside: what is newer than it, as nothing may come between.
  shape.levels[0][2].busy = true;
  EXPECT_FALSE(PickCompaction(Sought(shape, 1.9), kForSeeks).has_value());
  plan = PickCompaction(Sought(shape, 2.1), kForSeeks);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(Ids(*plan), ElementsAre(5, 4));
}

// What a merge would not have saved does not pay for it.
TEST(SeekPickerTest, MergesOfLevel0OnlyFilesThatScansReadBesideEachOther) {
  LevelShape shape;
  shape.levels[6] = {ShapedFile(1, "a", "z", 4096 * kMiB)};
  shape.levels[0] = {ShapedFile(4, "b", "c", 2 * kMiB), ShapedFile(3, "n", "z"), ShapedFile(2, "a", "m")};
  for (FileShape& file : shape.levels[0]) file.seek_bytes = 100 * kMiB;
  shape.levels[0][0].seek_bytes = 33 * kMiB;  // It was read less than what it stands on.
  EXPECT_FALSE(PickCompaction(shape, kForSeeks).has_value());
  shape.levels[0][0].seek_bytes = 35 * kMiB;
  const std::optional<CompactionPlan> plan = PickCompaction(shape, kForSeeks);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(Ids(*plan), ElementsAre(4, 2));
}

TEST(SeekPickerTest, MergesLevel0DownOnceScansHavePaidForItsBase) {
  LevelShape shape;
  shape.levels[6] = {ShapedFile(1, "a", "m", 640 * kMiB), ShapedFile(2, "n", "z", 320 * kMiB)};
  // Side by side, as it is once it was merged among itself.
  shape.levels[0] = {ShapedFile(4, "a", "m"), ShapedFile(3, "n", "z")};
  EXPECT_FALSE(PickCompaction(Sought(shape, 10.9), kForSeeks).has_value());
  std::optional<CompactionPlan> plan = PickCompaction(Sought(shape, 11.1), kForSeeks);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(Ids(*plan), ElementsAre(3, 2));
  // The dearer one, of which alone more was read.
  shape.levels[0][0].seek_bytes = 21 * 32 * kMiB + 1;
  plan = PickCompaction(shape, kForSeeks);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kLevel0Seeks);
  EXPECT_EQ(plan->output_level, 6u);
  EXPECT_THAT(Ids(*plan), ElementsAre(4, 1));
  // Where nothing lies below it nothing would be saved.
  shape.levels[6].clear();
  EXPECT_FALSE(PickCompaction(Sought(shape, 100), kForSeeks).has_value());
}

}  // namespace
}  // namespace partita

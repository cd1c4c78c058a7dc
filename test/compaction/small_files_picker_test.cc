#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "test/compaction/picker_shapes.h"

// Small files side by side on the last level.

namespace partita {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kKiB = 1 << 10;
constexpr PickerOptions kForSmall{.merges_small_files = true};

std::string KeyAt(uint64_t at) {
  const std::string digits = std::to_string(at);
  return "key" + std::string(6 - digits.size(), '0') + digits;
}

// A last level of files of such sizes, ids from 1 on.
LevelShape LastLevel(const std::vector<uint64_t>& sizes) {
  LevelShape shape;
  for (uint64_t i = 0; i < sizes.size(); ++i)
    shape.levels[6].push_back(ShapedFile(1 + i, KeyAt(10 * i), KeyAt(10 * i + 9), sizes[i]));
  return shape;
}

std::vector<uint64_t> Picked(const LevelShape& shape, const PickerOptions& options = kForSmall) {
  const std::optional<CompactionPlan> plan = PickCompaction(shape, options);
  return plan ? Ids(*plan) : std::vector<uint64_t>();
}

TEST(SmallFilesPickerTest, EightNeighboursBecomeOneFileOfTheirLevel) {
  EXPECT_THAT(Picked(LastLevel(std::vector<uint64_t>(7, 4 * kKiB))), IsEmpty());
  const LevelShape shape = LastLevel(std::vector<uint64_t>(8, 4 * kKiB));
  EXPECT_THAT(Picked(shape, {}), IsEmpty());
  const std::optional<CompactionPlan> plan = PickCompaction(shape, kForSmall);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kSmallFiles);
  EXPECT_EQ(plan->input_level, 6u);
  EXPECT_EQ(plan->output_level, 6u);
  EXPECT_FALSE(plan->trivial_move);
  EXPECT_THAT(Ids(*plan), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(plan->span, (KeySpan{KeyAt(0), KeyAt(79) + '\0'}));
  EXPECT_EQ(plan->RoomNeeded(), 32 * kKiB);
}

TEST(SmallFilesPickerTest, LargeFilesAndThoseSetAsideStayAndNothingReachesOverThem) {
  std::vector<uint64_t> sizes(20, 4 * kKiB);
  sizes[6] = 32 * kMiB;
  EXPECT_THAT(Picked(LastLevel(sizes)).front(), 8u);
  LevelShape shape = LastLevel(std::vector<uint64_t>(20, 4 * kKiB));
  shape.levels[6][7].busy = true;
  EXPECT_THAT(Picked(shape).front(), 9u);
  shape.levels[6][15].busy = true;
  EXPECT_THAT(Picked(shape), IsEmpty());
  EXPECT_THAT(Picked(LastLevel(std::vector<uint64_t>(8, 4 * kKiB)),
                     {.room_bytes = 32 * kKiB - 1, .merges_small_files = true}),
              IsEmpty());
}

// One output: two would be picked again and again.
TEST(SmallFilesPickerTest, TogetherTheyFitOneFile) {
  PickerOptions options = kForSmall;
  options.target_file_bytes = 1024 * kKiB;
  const std::optional<CompactionPlan> plan =
      PickCompaction(LastLevel(std::vector<uint64_t>(40, 60 * kKiB)), options);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->inputs.size(), 8u);
  EXPECT_LE(plan->input_bytes, options.target_file_bytes / 2);
  EXPECT_THAT(Picked(LastLevel(std::vector<uint64_t>(40, 65 * kKiB)), options), IsEmpty());
}

TEST(SmallFilesPickerTest, OfLevel0SixteenBecomeOneThoughNoneLiesOnAnother) {
  LevelShape shape;
  for (uint64_t id = 15; id > 0; --id)
    shape.levels[0].push_back(ShapedFile(id, KeyAt(10 * id), KeyAt(10 * id + 9), 4 * kKiB));
  EXPECT_THAT(Picked(shape), IsEmpty());
  shape.levels[0].insert(shape.levels[0].begin(), ShapedFile(16, KeyAt(160), KeyAt(169), 4 * kKiB));
  EXPECT_THAT(Picked(shape, {}), IsEmpty());
  const std::optional<CompactionPlan> plan = PickCompaction(shape, kForSmall);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->reason, PickReason::kSmallFiles);
  EXPECT_EQ(plan->output_level, 0u);
  EXPECT_EQ(plan->inputs.size(), 16u);
  shape.levels[0][3].size = 9 * kMiB;  // Larger than an eighth of a flush.
  EXPECT_THAT(Picked(shape), IsEmpty());
}

// One small file after the other, for good.
class EndlessSmallFilesTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Levels, EndlessSmallFilesTest, testing::Values(0, 6));

TEST_P(EndlessSmallFilesTest, FewAreLeftAndEachRowIsWrittenFewTimes) {
  const uint32_t level = GetParam();
  const uint64_t kBytes = 4 * kKiB, kFiles = level == 0 ? 5'000 : 20'000;
  LevelShape shape;
  std::vector<FileShape>& files = shape.levels[level];
  uint64_t written = 0;
  size_t most = 0;
  for (uint64_t i = 0; i < kFiles; ++i) {
    files.insert(level == 0 ? files.begin() : files.end(),
                 ShapedFile(1 + i, KeyAt(10 * i), KeyAt(10 * i + 9), kBytes));
    while (const std::optional<CompactionPlan> plan = PickCompaction(shape, kForSmall)) {
      const auto first = std::find_if(files.begin(), files.end(), [&](const FileShape& file) {
        return file.id == plan->inputs.front().id;
      });
      first->span = plan->span;
      first->size = plan->input_bytes;
      files.erase(first + 1, first + static_cast<ptrdiff_t>(plan->inputs.size()));
      written += plan->input_bytes;
    }
    most = std::max(most, files.size());
  }
  EXPECT_LE(most, kFiles * kBytes / (2 * kMiB) + 32);
  EXPECT_LE(written, (level == 0 ? 12 : 5) * kFiles * kBytes);
}

}  // namespace
}  // namespace partita

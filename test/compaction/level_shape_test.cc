#include "compaction/level_shape.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/compaction/job_fixture.h"

namespace partita {
namespace {

class LevelShapeTest : public JobTest {
 protected:
  // Into one file.
  void FlushTogether(const std::vector<std::vector<ModelEntry>>& parts) {
    std::vector<ModelEntry> all;
    for (const std::vector<ModelEntry>& part : parts) all.insert(all.end(), part.begin(), part.end());
    world_.target_file_bytes = 64 << 20;
    FlushOk(std::move(all));
    ASSERT_EQ(world_.FileCount(), 1u);
    file_ = world_.levels->level(0)[0];
    ASSERT_GT(file_.table->top_index().size(), 5u);
  }
  // Of the file, by the shape of a level set that refers to it there.
  double ShareOf(std::string lower, std::string upper, bool open = true) const {
    FileRef slice = file_;
    slice.lower = std::move(lower);
    slice.upper = std::move(upper);
    if (!open) slice.table = nullptr;
    const auto levels = LevelSet().Apply({.added = {{0, std::move(slice)}}, .removed = {}});
    EXPECT_TRUE(levels.ok());
    const uint64_t size = ShapeOf(**levels, Version(0), {}).levels[0].at(0).size;
    return static_cast<double>(size) / static_cast<double>(file_.info->file_size);
  }
  double ShareOfTable(uint32_t table, bool open = true) const {
    return ShareOf(TableLowerBound(TableId(table)), TableUpperBound(TableId(table)), open);
  }
  // What one block of the index stands for.
  double Step() const { return 1.0 / file_.table->top_index().size(); }

  FileRef file_;
};

// By their keys table 2 would be the fortieth part of all, and table 40 as good as nothing.
TEST_F(LevelShapeTest, ASliceIsAsLargeAsItsBlocksWhereverItsKeysLie) {
  FlushTogether({Puts(0, 100, 5, 1, 1), Puts(0, 10'000, 5, 1, 2), Puts(0, 200, 5, 1, 40)});
  EXPECT_GT(ShareOfTable(2), 0.95);
  for (const uint32_t table : {1u, 40u}) {
    EXPECT_GT(ShareOfTable(table), 0.01);
    EXPECT_LT(ShareOfTable(table), 2 * Step());
  }
  EXPECT_EQ(ShareOf("", ""), 1.0);
  EXPECT_EQ(ShareOf(file_.info->smallest, file_.info->largest + '\0'), 1.0);
  // Of a damaged file nothing else is known.
  EXPECT_LT(ShareOfTable(2, /*open=*/false), 0.1);
}

// Room for what they hold is left by it, and not much more.
TEST_F(LevelShapeTest, ASliceCountsForAllItHoldsAndAtMostAnIndexBlockMoreAtEitherEnd) {
  FlushTogether({Puts(0, 10'000, 5)});
  for (uint32_t begin = 0; begin < 100; begin += 7) {
    for (uint32_t end = begin + 1; end <= 100; end += 9) {
      const double share = ShareOf(Key(begin, 0), end == 100 ? "" : Key(end, 0));
      const double rows = (end - begin) / 100.0;
      EXPECT_GT(share, rows - 0.01) << begin << " " << end;
      EXPECT_LT(share, rows + 2.5 * Step()) << begin << " " << end;
    }
  }
}

}  // namespace
}  // namespace partita

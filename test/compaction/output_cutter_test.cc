#include "compaction/output_cutter.h"

#include <gtest/gtest.h>

#include "engine/base/user_key.h"

namespace partita {
namespace {

std::string RowKey(std::string_view partition, std::string_view row) {
  return EncodeUserKey(TableId(1), partition, row);
}

constexpr uint64_t kTarget = 1000;

TEST(OutputCutterTest, CutsAtACutPointHoweverSmallTheFileIs) {
  OutputCutter cutter({RowKey("b", ""), RowKey("d", "")}, {}, kTarget);
  EXPECT_FALSE(cutter.CutBefore(RowKey("a", "1"), "", 0));
  EXPECT_FALSE(cutter.CutBefore(RowKey("a", "2"), RowKey("a", "1"), 10));
  EXPECT_TRUE(cutter.CutBefore(RowKey("b", "1"), RowKey("a", "2"), 10));
  EXPECT_FALSE(cutter.CutBefore(RowKey("c", "1"), RowKey("b", "1"), 10));
  EXPECT_TRUE(cutter.CutBefore(RowKey("e", "1"), RowKey("c", "1"), 10));
}

TEST(OutputCutterTest, SeesACutPointWithinABlock) {
  OutputCutter cutter({RowKey("b", "")}, {}, kTarget);
  EXPECT_FALSE(cutter.CutPointWithin(RowKey("a", "1"), RowKey("a", "9")));
  EXPECT_TRUE(cutter.CutPointWithin(RowKey("a", "1"), RowKey("b", "9")));
  EXPECT_FALSE(cutter.CutPointWithin(RowKey("b", ""), RowKey("b", "9")));
}

TEST(OutputCutterTest, KeepsAPartitionWholeUntilAQuarterOverTheTarget) {
  OutputCutter cutter({}, {}, kTarget);
  EXPECT_FALSE(cutter.CutBefore(RowKey("a", "2"), RowKey("a", "1"), 1000));
  EXPECT_FALSE(cutter.CutBefore(RowKey("a", "3"), RowKey("a", "2"), 1249));
  EXPECT_TRUE(cutter.CutBefore(RowKey("a", "4"), RowKey("a", "3"), 1250));
  EXPECT_FALSE(cutter.CutBefore(RowKey("b", "1"), RowKey("a", "4"), 700));
  EXPECT_TRUE(cutter.CutBefore(RowKey("c", "1"), RowKey("b", "1"), 750));
}

TEST(OutputCutterTest, EndsAtTheMostThatItMayHaveWhateverItsTargetIs) {
  OutputCutter cutter({}, {}, kTarget, 800);
  EXPECT_FALSE(cutter.CutBefore(RowKey("a", "2"), RowKey("a", "1"), 799));
  EXPECT_TRUE(cutter.CutBefore(RowKey("a", "3"), RowKey("a", "2"), 800));
  EXPECT_FALSE(cutter.CutBefore(RowKey("b", "1"), RowKey("a", "3"), 749));
  EXPECT_TRUE(cutter.CutBefore(RowKey("c", "1"), RowKey("b", "1"), 750));
}

TEST(OutputCutterTest, EndsWithAFileOfTheLevelBelow) {
  std::vector<BelowFile> below{{{RowKey("a", ""), RowKey("c", "")}, 1000},
                               {{RowKey("c", ""), RowKey("e", "")}, 1000}};
  OutputCutter cutter({}, below, kTarget);
  EXPECT_FALSE(cutter.CutBefore(RowKey("b", "2"), RowKey("b", "1"), 500));
  EXPECT_TRUE(cutter.CutBefore(RowKey("c", "1"), RowKey("b", "2"), 500));
  EXPECT_FALSE(cutter.CutBefore(RowKey("e", "1"), RowKey("c", "1"), 499));
}

TEST(OutputCutterTest, EndsBeforeItOverlapsTooMuchBelow) {
  std::vector<BelowFile> below;
  for (char c = 'a'; c < 'z'; ++c) below.push_back({{RowKey({&c, 1}, ""), RowKey({&c, 1}, "~")}, 1000});
  OutputCutter cutter({}, below, kTarget);
  std::string last;
  int cuts = 0;
  for (char c = 'a'; c < 'z'; ++c) {
    std::string key = RowKey({&c, 1}, "~~");
    cuts += cutter.CutBefore(key, last, 10);
    last = key;
  }
  EXPECT_EQ(cuts, 2);  // 25 files below, 11 passed at each cut.
}

TEST(OutputCutterTest, TellsPartitionsApart) {
  EXPECT_TRUE(SamePartition(RowKey("p", "1"), RowKey("p", "22")));
  EXPECT_FALSE(SamePartition(RowKey("p", "1"), RowKey("pp", "1")));
  EXPECT_FALSE(SamePartition(RowKey("p", "1"), RowKey("q", "1")));
  EXPECT_FALSE(SamePartition("bad", "bad"));
}

}  // namespace
}  // namespace partita

#include "compaction/output_cutter.h"

#include <gtest/gtest.h>

#include "engine/base/user_key.h"

namespace partita {
namespace {

std::string Key(std::string_view partition, std::string_view row) {
  return EncodeUserKey(TableId(1), partition, row);
}

constexpr uint64_t kTarget = 1000;

TEST(OutputCutterTest, CutsAtACutPointHoweverSmallTheFileIs) {
  OutputCutter cutter({Key("b", ""), Key("d", "")}, {}, kTarget);
  EXPECT_FALSE(cutter.CutBefore(Key("a", "1"), "", 0));
  EXPECT_FALSE(cutter.CutBefore(Key("a", "2"), Key("a", "1"), 10));
  EXPECT_TRUE(cutter.CutBefore(Key("b", "1"), Key("a", "2"), 10));
  EXPECT_FALSE(cutter.CutBefore(Key("c", "1"), Key("b", "1"), 10));
  EXPECT_TRUE(cutter.CutBefore(Key("e", "1"), Key("c", "1"), 10));
}

TEST(OutputCutterTest, SeesACutPointWithinABlock) {
  OutputCutter cutter({Key("b", "")}, {}, kTarget);
  EXPECT_FALSE(cutter.CutPointWithin(Key("a", "1"), Key("a", "9")));
  EXPECT_TRUE(cutter.CutPointWithin(Key("a", "1"), Key("b", "9")));
  EXPECT_FALSE(cutter.CutPointWithin(Key("b", ""), Key("b", "9")));
}

TEST(OutputCutterTest, KeepsAPartitionWholeUntilAQuarterOverTheTarget) {
  OutputCutter cutter({}, {}, kTarget);
  EXPECT_FALSE(cutter.CutBefore(Key("a", "2"), Key("a", "1"), 1000));
  EXPECT_FALSE(cutter.CutBefore(Key("a", "3"), Key("a", "2"), 1249));
  EXPECT_TRUE(cutter.CutBefore(Key("a", "4"), Key("a", "3"), 1250));
  EXPECT_FALSE(cutter.CutBefore(Key("b", "1"), Key("a", "4"), 700));
  EXPECT_TRUE(cutter.CutBefore(Key("c", "1"), Key("b", "1"), 750));
}

TEST(OutputCutterTest, EndsWithAFileOfTheLevelBelow) {
  std::vector<BelowFile> below{{{Key("a", ""), Key("c", "")}, 1000}, {{Key("c", ""), Key("e", "")}, 1000}};
  OutputCutter cutter({}, below, kTarget);
  EXPECT_FALSE(cutter.CutBefore(Key("b", "2"), Key("b", "1"), 500));
  EXPECT_TRUE(cutter.CutBefore(Key("c", "1"), Key("b", "2"), 500));
  EXPECT_FALSE(cutter.CutBefore(Key("e", "1"), Key("c", "1"), 499));
}

TEST(OutputCutterTest, EndsBeforeItOverlapsTooMuchBelow) {
  std::vector<BelowFile> below;
  for (char c = 'a'; c < 'z'; ++c) below.push_back({{Key({&c, 1}, ""), Key({&c, 1}, "~")}, 1000});
  OutputCutter cutter({}, below, kTarget);
  std::string last;
  int cuts = 0;
  for (char c = 'a'; c < 'z'; ++c) {
    std::string key = Key({&c, 1}, "~~");
    cuts += cutter.CutBefore(key, last, 10);
    last = key;
  }
  EXPECT_EQ(cuts, 2);  // 25 files below, 11 passed at each cut.
}

TEST(OutputCutterTest, TellsPartitionsApart) {
  EXPECT_TRUE(SamePartition(Key("p", "1"), Key("p", "22")));
  EXPECT_FALSE(SamePartition(Key("p", "1"), Key("pp", "1")));
  EXPECT_FALSE(SamePartition(Key("p", "1"), Key("q", "1")));
  EXPECT_FALSE(SamePartition("bad", "bad"));
}

}  // namespace
}  // namespace partita

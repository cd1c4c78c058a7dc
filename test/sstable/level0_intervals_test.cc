#include "sstable/level0_intervals.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <random>

#include "sstable/level_set.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

FileRef FileBetween(std::string smallest, std::string largest, std::string lower = "",
                    std::string upper = "") {
  TableInfo info;
  info.smallest = std::move(smallest);
  info.largest = std::move(largest);
  FileRef file;
  file.info = std::move(info);
  file.lower = std::move(lower);
  file.upper = std::move(upper);
  return file;
}

// Empty: there is none.
std::string EndOfInterval(const Level0Intervals& intervals, std::string_view user_key) {
  const Level0Intervals::Bound* end = intervals.EndOfInterval(user_key);
  if (end == nullptr) return "";
  return end->is_behind ? std::string(end->key) + '\0' : std::string(end->key);
}

TEST(Level0IntervalsTest, FilesThatReachAKey) {
  const std::vector<FileRef> files{FileBetween("c", "jz"), FileBetween("a", "ez"),
                                   FileBetween("f", "z", "", "p")};
  const Level0Intervals intervals(files);
  EXPECT_THAT(intervals.FilesAt(""), IsEmpty());
  EXPECT_THAT(intervals.FilesAt("a"), ElementsAre(1));
  EXPECT_THAT(intervals.FilesAt("c"), ElementsAre(0, 1));
  EXPECT_THAT(intervals.FilesAt("ez"), ElementsAre(0, 1));  // The largest key of a file is in it.
  EXPECT_THAT(intervals.FilesAt(std::string("ez\0", 3)), ElementsAre(0));
  EXPECT_THAT(intervals.FilesAt("f"), ElementsAre(0, 2));
  EXPECT_THAT(intervals.FilesAt("k"), ElementsAre(2));
  EXPECT_THAT(intervals.FilesAt("p"), IsEmpty());  // An upper bound is not.
  EXPECT_THAT(intervals.FilesIn("", ""), ElementsAre(0, 1, 2));
  EXPECT_THAT(intervals.FilesIn("", "a"), IsEmpty());
  EXPECT_THAT(intervals.FilesIn("", "b"), ElementsAre(1));
  EXPECT_THAT(intervals.FilesIn("k", ""), ElementsAre(2));
  EXPECT_THAT(intervals.FilesIn("q", ""), IsEmpty());
  EXPECT_THAT(intervals.FilesIn("d", "d"), IsEmpty());
  EXPECT_THAT(intervals.FilesIn("l", "d"), IsEmpty());
  EXPECT_EQ(EndOfInterval(intervals, ""), "a");
  EXPECT_EQ(EndOfInterval(intervals, "d"), std::string("ez\0", 3));
  EXPECT_EQ(EndOfInterval(intervals, "f"), std::string("jz\0", 3));
  EXPECT_EQ(EndOfInterval(intervals, "k"), "p");
  EXPECT_EQ(EndOfInterval(intervals, "p"), "");
  EXPECT_EQ(EndOfInterval(Level0Intervals(), "a"), "");
  EXPECT_THAT(Level0Intervals().FilesAt("a"), IsEmpty());
  EXPECT_THAT(Level0Intervals().FilesIn("", ""), IsEmpty());
}

TEST(Level0IntervalsTest, RandomFilesAreFoundAsByLookingAtEach) {
  std::mt19937_64 random(TestSeed());
  const auto key = [&] {
    std::string key(1 + random() % 2, static_cast<char>('a' + random() % 12));
    if (random() % 4 == 0) key.push_back('\0');  // Just behind another.
    return key;
  };
  const auto in_order = [](std::string* a, std::string* b) {
    if (*b < *a) std::swap(*a, *b);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<FileRef> files;
    for (size_t i = random() % 12; i > 0; --i) {
      std::string smallest = key(), largest = key(), lower = key(), upper = key();
      in_order(&smallest, &largest);
      in_order(&lower, &upper);
      if (random() % 2 == 0) lower.clear();
      if (random() % 2 == 0) upper.clear();
      FileRef file = FileBetween(smallest, largest);
      if (CutTo(lower, upper, &file)) files.push_back(std::move(file));
    }
    const Level0Intervals intervals(files);
    for (int i = 0; i < 30; ++i) {
      const std::string at = random() % 9 == 0 ? std::string() : key();
      std::string upper = key();
      if (upper <= at) upper.clear();
      std::vector<uint32_t> here, over;
      for (uint32_t file = 0; file < files.size(); ++file) {
        if (files[file].MayHold(at)) here.push_back(file);
        if (files[file].OverlapsBounds(at, upper)) over.push_back(file);
      }
      EXPECT_THAT(intervals.FilesAt(at), ElementsAreArray(here));
      const std::string end = EndOfInterval(intervals, at), next = key();
      ASSERT_TRUE(end.empty() || end > at);
      if (next >= at && (end.empty() || next < end))
        EXPECT_THAT(intervals.FilesAt(next), ElementsAreArray(here));
      EXPECT_THAT(intervals.FilesIn(at, upper), ElementsAreArray(over));
    }
  }
}

}  // namespace
}  // namespace partita

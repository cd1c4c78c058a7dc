#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/base/deleted_keys.h"
#include "engine/base/merging_iterator.h"
#include "sstable/block_passing.h"
#include "sstable/table_scan.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

std::string NthKey(size_t i) { return Key("p", std::to_string(100'000 + i)); }

// Deleted keys, each with the version of its tombstone.
class Deletes final : public DeletedKeys {
 public:
  std::map<std::string, Version, std::less<>> keys;
  struct Question {
    std::string lower, upper, shown_lower, shown_upper;
  };
  std::vector<Question> asked;

  bool AreAll(std::string_view lower, std::string_view upper, const BlockKeys& block) override {
    asked.push_back({std::string(lower), std::string(upper), std::string(block.shown_lower),
                     std::string(block.shown_upper)});
    uint64_t sum = 0;
    uint32_t count = 0;
    for (auto at = keys.lower_bound(lower); at != keys.end() && at->first < upper; ++at) {
      ++looks_;
      if (at->second <= block.version_max) continue;
      sum += KeySumTerm(at->first, block.seed);
      ++count;
    }
    EXPECT_TRUE(sum != block.sum || count <= block.count_max);
    return sum == block.sum;
  }
  size_t looks() const override { return looks_; }

 private:
  size_t looks_ = 0;
};

class DeletedBlocksTest : public testing::Test {
 protected:
  void Add(size_t level, std::vector<OwnedEntry> entries, std::string lower = "", std::string upper = "") {
    std::sort(entries.begin(), entries.end(), InternalOrder);
    const ObjectId id(++last_id_);
    ASSERT_TRUE(WriteTable(store_, id, entries, {.block_size = kBlockSizeMin}).ok());
    LevelEdit edit;
    edit.added.push_back({.level = static_cast<uint32_t>(level), .file = {}});
    FileRef& file = edit.added.back().file;
    file.table = *OpenTable(store_, cache_, id);
    file.info = file.table->info();
    file.lower = std::move(lower);
    file.upper = std::move(upper);
    set_ = *set_->Apply(edit);
  }
  static std::vector<OwnedEntry> Rows(size_t begin, size_t end, uint64_t version = 10) {
    std::vector<OwnedEntry> rows;
    for (size_t i = begin; i < end; ++i) rows.push_back(Put(NthKey(i), version, std::string(100, '.')));
    return rows;
  }
  void Delete(size_t begin, size_t end, uint64_t version = 20) {
    for (size_t i = begin; i < end; ++i) deletes_.keys[NthKey(i)] = Version(version);
  }
  uint64_t Blocks(size_t level = 6) const { return set_->level(level)[0].table->properties().data_blocks; }

  // The keys that the cursors show of [lower, upper).
  std::set<std::string> Shown(Direction direction, std::string lower = "", std::string upper = "") {
    scan_ = TableScan();
    scan_.visible = Version(1000);
    scan_.deleted = &deletes_;
    IterOptions options;
    options.lower = std::move(lower);
    options.upper = std::move(upper);
    options.scan = &scan_;
    std::vector<std::unique_ptr<EntryIterator>> sources;
    set_->AddIterators(direction, options, &sources);
    std::unique_ptr<EntryIterator> merged = MakeMergingIterator(std::move(sources), direction);
    Status status;
    std::set<std::string> shown;
    milestones_ = 0;
    for (const OwnedEntry& entry : Drain(*merged, merged->SeekToFirst(), &status)) {
      if (entry.kind == EntryKind::kMilestone) {
        ++milestones_;
      } else {
        shown.insert(entry.user_key);
      }
    }
    EXPECT_TRUE(status.ok()) << status.ToString();
    return shown;
  }
  // All rows but deleted ones are shown.
  void ExpectRows(const std::set<std::string>& shown, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (!deletes_.keys.contains(NthKey(i))) EXPECT_TRUE(shown.contains(NthKey(i))) << i;
    }
  }

  MemoryObjectStore store_;
  BlockCache cache_{8 << 20};
  uint64_t last_id_ = 0;
  std::shared_ptr<const LevelSet> set_ = std::make_shared<LevelSet>();
  Deletes deletes_;
  TableScan scan_;
  int milestones_ = 0;
};

constexpr Direction kEitherWay[] = {Direction::kForward, Direction::kBackward};

TEST_F(DeletedBlocksTest, BlocksOfWhichAllIsDeletedAreNotRead) {
  Add(6, Rows(0, 1000));
  Delete(200, 800);
  for (const Direction direction : kEitherWay) {
    const std::set<std::string> shown = Shown(direction);
    ExpectRows(shown, 0, 1000);
    EXPECT_EQ(scan_.counts.blocks_read + scan_.counts.blocks_skipped, Blocks());
    EXPECT_GT(scan_.counts.blocks_skipped, Blocks() * 55 / 100);
    EXPECT_LT(shown.size(), 400u + 20u);
    EXPECT_GT(milestones_, 0);
  }
  Delete(0, 1000);
  for (const Direction direction : kEitherWay) {
    EXPECT_TRUE(Shown(direction).empty());
    EXPECT_EQ(scan_.counts.blocks_read, 0u) << "the first block and the last, too";
  }
}

TEST_F(DeletedBlocksTest, OneKeyThatIsLeftKeepsItsBlock) {
  Add(6, Rows(0, 1000));
  Delete(0, 1000);
  for (const size_t left : {0, 417, 999}) {
    deletes_.keys.erase(NthKey(left));
    for (const Direction direction : kEitherWay) {
      EXPECT_TRUE(Shown(direction).contains(NthKey(left)));
      EXPECT_EQ(scan_.counts.blocks_read, 1u);
    }
    Delete(left, left + 1);
  }
}

TEST_F(DeletedBlocksTest, AKeyThatIsNotInTheBlockKeepsIt) {
  Add(6, Rows(0, 1000));
  Delete(0, 1000);
  deletes_.keys[NthKey(500) + "x"] = Version(20);
  EXPECT_FALSE(Shown(Direction::kForward).empty());
  EXPECT_EQ(scan_.counts.blocks_read, 1u);
}

TEST_F(DeletedBlocksTest, WhatIsNewerThanTheDeleteKeepsItsBlock) {
  std::vector<OwnedEntry> rows = Rows(0, 1000);
  rows[300] = Put(NthKey(300), 20, "newer");
  rows[700] = Put(NthKey(700), 21, "newer");
  Add(6, rows);
  Delete(0, 1000);
  for (const Direction direction : kEitherWay) {
    const std::set<std::string> shown = Shown(direction);
    EXPECT_TRUE(shown.contains(NthKey(300)) && shown.contains(NthKey(700)));
    EXPECT_EQ(scan_.counts.blocks_read, 2u);
  }
}

TEST_F(DeletedBlocksTest, OlderVersionsAndTombstonesAreTheSameKeys) {
  std::vector<OwnedEntry> entries = Rows(0, 300, 10);
  for (const OwnedEntry& newer : Rows(0, 300, 12)) {
    if (newer.user_key.back() % 2 == 0) entries.push_back(newer);
  }
  for (size_t i = 0; i < 300; i += 3) entries.push_back(Tombstone(NthKey(i), 15));
  Add(6, entries);
  Delete(0, 300);
  EXPECT_TRUE(Shown(Direction::kForward).empty());
  EXPECT_EQ(scan_.counts.blocks_read, 0u);
}

TEST_F(DeletedBlocksTest, EachLevelIsAskedByItself) {
  Add(6, Rows(0, 500));
  Add(5, Rows(500, 1000, 12));
  std::vector<OwnedEntry> thin;
  for (size_t i = 0; i < 200; i += 10) thin.push_back(Put(NthKey(i), 14, "upper"));
  Add(0, thin);
  Delete(0, 900);
  for (const Direction direction : kEitherWay) {
    const std::set<std::string> shown = Shown(direction);
    ExpectRows(shown, 0, 1000);
    EXPECT_TRUE(shown.contains(NthKey(10))) << "level 0 has fewer keys than were deleted there";
    EXPECT_FALSE(shown.contains(NthKey(5)));
    EXPECT_GT(scan_.counts.blocks_skipped, Blocks(6) + Blocks(5) * 7 / 10);
  }
}

// What is known of such a block says nothing of the keys beyond: they are another table's.
TEST_F(DeletedBlocksTest, WhatACursorShowsOfAClippedTableIsTold) {
  Add(6, Rows(0, 500), NthKey(100), NthKey(401));
  Add(6, Rows(401, 600, 12));
  Delete(0, 401);
  ExpectRows(Shown(Direction::kForward), 401, 600);
  ASSERT_FALSE(deletes_.asked.empty());
  for (const Deletes::Question& question : deletes_.asked) {
    if (question.lower >= NthKey(401)) continue;
    EXPECT_EQ(question.shown_lower, NthKey(100));
    EXPECT_EQ(question.shown_upper, NthKey(401));
  }
  // The scan's own bounds clip, too.
  deletes_.asked.clear();
  Shown(Direction::kBackward, NthKey(150), NthKey(350));
  ASSERT_FALSE(deletes_.asked.empty());
  EXPECT_EQ(deletes_.asked[0].shown_lower, NthKey(150));
  EXPECT_EQ(deletes_.asked[0].shown_upper, NthKey(350));
}

TEST_F(DeletedBlocksTest, SpansMeetAndHoldAllOfTheTable) {
  Add(6, Rows(0, 1000));
  Delete(0, 1000);
  Shown(Direction::kForward);
  ASSERT_EQ(deletes_.asked.size(), Blocks());
  EXPECT_EQ(deletes_.asked.front().lower, NthKey(0));
  EXPECT_EQ(deletes_.asked.back().upper, NthKey(999) + '\0');
  for (size_t i = 1; i < deletes_.asked.size(); ++i) {
    EXPECT_EQ(deletes_.asked[i].lower, deletes_.asked[i - 1].upper);
  }
}

}  // namespace
}  // namespace partita

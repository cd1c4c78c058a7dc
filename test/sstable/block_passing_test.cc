#include "sstable/block_passing.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/base/coding.h"
#include "engine/base/merging_iterator.h"
#include "sstable/files_beneath.h"
#include "sstable/level_iterator.h"
#include "sstable/read_ahead_pool.h"
#include "sstable/table_scan.h"
#include "test/sstable/table_fixture.h"
#include "test/support/late_executor.h"

namespace partita {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The "codec" of these tests: a number, and padding.
std::string Content(uint64_t number) {
  std::string content;
  AppendLe64(&content, number);
  return content + std::string(92, '.');
}
uint64_t NumberOf(std::string_view content) { return LoadLe64(content.data()); }
void ExtractNumber(std::string_view content, ZoneSink& sink) { sink.Add("number", 3, NumberOf(content)); }

class NumberIn : public BlockPredicate {
 public:
  NumberIn(uint64_t low, uint64_t high, size_t cost = 1) : low_(low), high_(high), cost_(cost) {}
  std::span<const std::string> properties() const override { return names_; }
  bool MayMatch(const BlockZones& zones) const override {
    const PropertyZone& zone = zones.properties[0];
    return !zone.known || (zone.types != 0 && zone.least <= high_ && zone.greatest >= low_);
  }
  size_t cost() const override { return cost_; }
  bool Matches(std::string_view content) const {
    return NumberOf(content) >= low_ && NumberOf(content) <= high_;
  }

 private:
  std::vector<std::string> names_ = {"number"};
  uint64_t low_, high_;
  size_t cost_;
};

std::string K(size_t i) { return Key("p", std::to_string(100'000 + i)); }
OwnedEntry Row(size_t key, uint64_t version, uint64_t number) {
  return Put(K(key), version, Content(number));
}

// How the reader is broken on purpose.
enum class Planted { kNothing, kForgetsWhatLiesBeneath };

class BlockPassingTest : public testing::Test {
 protected:
  // Adds a table of `entries` to the level.
  void Add(size_t level, std::vector<OwnedEntry> entries) {
    std::sort(entries.begin(), entries.end(), InternalOrder);
    const ObjectId id(++last_id_);
    Result<TableInfo> info = WriteTable(
        store_, id, entries, {.codec = Codec::kStored, .block_size = kBlockSizeMin, .zones = ExtractNumber});
    ASSERT_TRUE(info.ok()) << info.status().ToString();
    Refer(level, id, "", "");
    entries_.insert(entries_.end(), entries.begin(), entries.end());
  }
  void Refer(size_t level, ObjectId id, std::string lower, std::string upper) {
    LevelEdit::Added added;
    added.level = static_cast<uint32_t>(level);
    added.file.table = *OpenTable(store_, cache_, id);
    added.file.info = added.file.table->info();
    added.file.lower = std::move(lower);
    added.file.upper = std::move(upper);
    LevelEdit edit;
    edit.added.push_back(std::move(added));
    auto next = set_->Apply(edit);
    ASSERT_TRUE(next.ok()) << next.status().ToString();
    set_ = *next;
  }
  // A file of the keys in [first, last], below `upper`, that cannot be opened.
  void AddDamaged(size_t level, size_t first, size_t last, std::string upper = "") {
    LevelEdit edit;
    edit.added.push_back({.level = static_cast<uint32_t>(level), .file = {}});
    FileRef& damaged = edit.added.back().file;
    TableInfo info;
    info.id = ObjectId(++last_id_);
    info.smallest = K(first);
    info.largest = K(last);
    damaged.info = std::move(info);
    damaged.upper = std::move(upper);
    damaged.damage = std::make_shared<const Status>(Status::Corruption("gone"));
    set_ = *set_->Apply(edit);
  }
  // Neighbouring keys, each with its own number.
  static std::vector<OwnedEntry> Rows(size_t first, size_t last, uint64_t version) {
    std::vector<OwnedEntry> rows;
    for (size_t i = first; i < last; ++i) rows.push_back(Row(i, version, i));
    return rows;
  }

  struct Bounds {
    std::string lower;
    std::string upper;
  };
  std::unique_ptr<EntryIterator> Merged(Direction direction, Bounds bounds, Planted planted) {
    IterOptions options;
    options.lower = bounds.lower;
    options.upper = bounds.upper;
    options.scan = &scan_;
    if (pool_) {
      options.caching = IterCaching::kLookOnly;
      options.read_ahead = &*pool_;
    }
    std::vector<std::unique_ptr<EntryIterator>> sources;
    if (planted == Planted::kNothing) {
      set_->AddIterators(direction, options, &sources);
    } else {
      for (size_t level = 0; level < kLevels; ++level) {
        for (const FileRef* file : set_->Overlapping(level, bounds.lower, bounds.upper)) {
          std::optional<FilesBeneath> nothing(std::in_place, empty_set_, level, nullptr, *scan_.predicate);
          sources.push_back(std::make_unique<LevelIterator>(std::vector<const FileRef*>{file}, direction,
                                                            options, std::move(nothing)));
        }
      }
    }
    return MakeMergingIterator(std::move(sources), direction);
  }

  // The keys of the rows that match, as a scan decides them; checks what milestones say on the way.
  std::vector<std::string> Scan(const NumberIn& predicate, Direction direction = Direction::kForward,
                                Bounds bounds = {}, Planted planted = Planted::kNothing) {
    scan_ = TableScan();
    scan_.predicate = &predicate;
    scan_.visible = visible_;
    std::unique_ptr<EntryIterator> merged = Merged(direction, bounds, planted);
    std::vector<std::string> found;
    std::string last, milestone;
    milestones_ = 0;
    for (IterState state = merged->SeekToFirst(); state != IterState::kEnd;) {
      if (state == IterState::kNeedsIo) {
        Status fetched = RunBlocking(merged->Fetch());
        EXPECT_TRUE(fetched.ok()) << fetched.ToString();
        if (!fetched.ok()) break;
        if (milestones_ % 3 != 1) helpers_.RunAll();  // Now and then they are late.
        state = merged->state();
        continue;
      }
      const Entry& entry = merged->entry();
      const std::string key(entry.user_key);
      const bool forward = direction == Direction::kForward;
      if (!milestone.empty()) EXPECT_TRUE(forward ? key >= milestone : key <= milestone);
      if (entry.kind == EntryKind::kMilestone) {
        ++milestones_;
        milestone = key;
      } else if (entry.version <= scan_.visible && key != last) {
        last = key;
        const bool is_put = entry.kind == EntryKind::kPut;
        if (is_put && predicate.Matches(StoredValueContent(entry.value))) found.push_back(key);
      }
      state = merged->Next();
    }
    return found;
  }

  // What every entry ever written says.
  std::vector<std::string> Expect(const NumberIn& predicate, Direction direction = Direction::kForward,
                                  Bounds bounds = {}) const {
    std::map<std::string, const OwnedEntry*> newest;
    for (const OwnedEntry& entry : entries_) {
      if (entry.version > visible_) continue;
      const OwnedEntry*& best = newest[entry.user_key];
      if (best == nullptr || best->version < entry.version) best = &entry;
    }
    std::vector<std::string> found;
    for (const auto& [key, entry] : newest) {
      if (key < bounds.lower || (!bounds.upper.empty() && key >= bounds.upper)) continue;
      const bool is_put = entry->kind == EntryKind::kPut;
      if (is_put && predicate.Matches(StoredValueContent(entry->value))) found.push_back(key);
    }
    if (direction == Direction::kBackward) std::reverse(found.begin(), found.end());
    return found;
  }

  MemoryObjectStore store_;
  BlockCache cache_{8 << 20};
  LateExecutor helpers_;
  std::optional<ReadAheadPool> pool_;  // Nothing: scans read when they need to.
  uint64_t last_id_ = 0;
  std::shared_ptr<const LevelSet> set_ = std::make_shared<LevelSet>();
  LevelSet empty_set_;
  std::vector<OwnedEntry> entries_;
  Version visible_{1'000'000};
  TableScan scan_;
  uint64_t milestones_ = 0;
};

TEST_F(BlockPassingTest, OnlyTheBlocksThatMayMatchAreRead) {
  Add(2, Rows(0, 1000, 10));
  const uint64_t blocks = set_->level(2)[0].table->properties().data_blocks;
  const NumberIn predicate(500, 519);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_EQ(Scan(predicate, direction), Expect(predicate, direction));
    EXPECT_EQ(scan_.counts.blocks_read + scan_.counts.blocks_skipped, blocks);
    EXPECT_GE(scan_.counts.blocks_read, 2u);
    EXPECT_LE(scan_.counts.blocks_read, 5u);
    EXPECT_EQ(scan_.counts.files_skipped, 0u);
  }
  EXPECT_THAT(Scan(NumberIn(5000, 6000)), IsEmpty());
  EXPECT_EQ(scan_.counts, (BlockCounts{.blocks_skipped = blocks, .files_skipped = 1}));
}

TEST_F(BlockPassingTest, BlocksOutsideTheBoundsAreNotEvenLookedAt) {
  Add(1, Rows(0, 1000, 10));
  const NumberIn predicate(0, 0);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_THAT(Scan(predicate, direction, {K(500), K(550)}), IsEmpty());
    EXPECT_LE(scan_.counts.blocks_skipped, 10u);
    EXPECT_EQ(scan_.counts.blocks_read, 0u);
  }
}

TEST_F(BlockPassingTest, ACursorEndsWhereTheWalkAtHandDoesAndGoesOnWhenItIsSoughtAnew) {
  Add(1, Rows(0, 1000, 10));
  Add(1, Rows(1000, 2000, 10));
  const NumberIn predicate(910, 910);
  scan_.predicate = &predicate;
  scan_.visible = visible_;
  scan_.until = K(200);
  std::unique_ptr<EntryIterator> merged = Merged(Direction::kForward, {}, Planted::kNothing);
  const auto settle = [&](IterState state) {
    while (state == IterState::kNeedsIo) {
      EXPECT_TRUE(RunBlocking(merged->Fetch()).ok());
      state = merged->state();
    }
    return state;
  };
  EXPECT_EQ(settle(merged->Seek(K(100))), IterState::kEnd);
  EXPECT_LE(scan_.counts.blocks_skipped, 20u);
  scan_.until = K(1500);
  ASSERT_EQ(settle(merged->Seek(K(900))), IterState::kEntry);
  EXPECT_LE(merged->entry().user_key, K(910));
  EXPECT_EQ(scan_.counts.blocks_read, 1u);
}

// covers: F48
TEST_F(BlockPassingTest, AFileBeyondTheWalkOrInFrontOfTheSoughtKeyIsNotOpened) {
  AddDamaged(1, 0, 100);
  AddDamaged(1, 101, 300, /*upper=*/K(150));
  Add(1, Rows(150, 200, 10));
  AddDamaged(1, 300, 400);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const bool forward = direction == Direction::kForward;
    scan_ = TableScan();
    scan_.until = K(forward ? 250 : 150);
    std::unique_ptr<EntryIterator> merged = Merged(direction, {}, Planted::kNothing);
    Status status;
    EXPECT_EQ(Drain(*merged, merged->Seek(K(forward ? 150 : 200)), &status).size(), 50u);
    EXPECT_TRUE(status.ok()) << status.ToString();
    // Between the files.
    EXPECT_THAT(Drain(*merged, merged->Seek(K(forward ? 220 : 150)), &status), IsEmpty());
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

// The answer may be another one the next time: index blocks of files beneath come and go.
class RulesOutOnce : public NumberIn {
 public:
  RulesOutOnce() : NumberIn(0, 0) {}
  bool MayMatch(const BlockZones&) const override { return std::exchange(was_asked_, true); }

 private:
  mutable bool was_asked_ = false;
};

TEST_F(BlockPassingTest, ASeekPassesOverAFileForGoodAndShowsNothingInFrontOfItsKey) {
  Add(1, Rows(0, 100, 10));
  Add(1, Rows(100, 200, 10));
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const bool forward = direction == Direction::kForward;
    const RulesOutOnce predicate;
    scan_ = TableScan();
    scan_.predicate = &predicate;
    scan_.visible = visible_;
    std::unique_ptr<EntryIterator> merged = Merged(direction, {}, Planted::kNothing);
    Status status;
    const std::vector<OwnedEntry> found = Drain(*merged, merged->Seek(K(forward ? 50 : 150)), &status, 1);
    ASSERT_EQ(found.size(), 1u) << status.ToString();
    EXPECT_EQ(found[0].user_key, K(forward ? 100 : 99));
  }
}

// The planted test of DESIGN 9: each pair of places in which one file may lie above another.
TEST_F(BlockPassingTest, WhatIsPassedOverGoesOnHidingWhatIsOlder) {
  const NumberIn predicate(7000, 7001);
  for (const auto& [above, below] :
       std::vector<std::pair<size_t, size_t>>{{0, 0}, {0, 1}, {0, 4}, {1, 2}, {3, 6}}) {
    SCOPED_TRACE(std::to_string(above) + " above " + std::to_string(below));
    set_ = std::make_shared<LevelSet>();
    entries_.clear();
    std::vector<OwnedEntry> older = Rows(0, 200, 10);
    older[60] = Row(60, 10, 7000);  // Hidden by a row that does not match.
    older[90] = Row(90, 10, 7000);  // Hidden by a tombstone.
    older[150] = Row(150, 10, 7001);
    Add(below, older);
    std::vector<OwnedEntry> newer = Rows(40, 120, 20);
    newer[90 - 40] = Tombstone(K(90), 20);
    Add(above, newer);
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      EXPECT_THAT(Scan(predicate, direction), ElementsAre(K(150)));
      EXPECT_GT(scan_.counts.blocks_skipped, 0u);
      EXPECT_THAT(Scan(predicate, direction, {}, Planted::kForgetsWhatLiesBeneath), testing::SizeIs(3));
    }
  }
}

// Files of a level are begun ahead, found not to match, and asked of what is above and beneath in turns.
TEST_F(BlockPassingTest, ScansThatReadAheadFindTheSame) {
  std::mt19937_64 random(TestSeed());
  constexpr size_t kRows = 24'000;
  for (size_t first = 0; first < kRows; first += kRows / 4) Add(3, Rows(first, first + kRows / 4, 10));
  for (size_t first = 0; first < kRows; first += kRows / 3) {
    std::vector<OwnedEntry> newer;
    for (size_t i = first; i < first + kRows / 3; ++i) {
      if (i % 7000 < 3000) continue;  // Blocks of older rows that nothing lies above.
      if (random() % 5 == 0) newer.push_back(Tombstone(K(i), 20));
      if (random() % 5 == 0) newer.push_back(Row(i, 30, random() % kRows));
    }
    Add(1, newer);
  }
  // Some files begin in the cache.
  const NumberIn all(0, kRows);
  for (size_t first = 0; first < kRows; first += kRows / 2)
    Scan(all, Direction::kForward, {K(first), K(first + 9)});
  pool_.emplace(helpers_, 8 << 20);
  uint64_t skipped = 0, begun = 0;
  for (int round = 0; round < 12; ++round) {
    const uint64_t low = random() % kRows;
    const NumberIn predicate(low, low + random() % (round % 2 == 0 ? kRows : 100),
                             /*cost=*/1 + round % 3 * 50);
    const Direction direction = round % 4 < 2 ? Direction::kForward : Direction::kBackward;
    visible_ = Version(round % 5 == 0 ? 15 : 1000);
    Bounds bounds;
    if (round % 3 == 0) bounds = {K(random() % (kRows / 2)), K(kRows / 2 + random() % (kRows / 2))};
    EXPECT_EQ(Scan(predicate, direction, bounds), Expect(predicate, direction, bounds)) << round;
    skipped += scan_.counts.files_skipped;
    begun = pool_->started();
  }
  EXPECT_GT(skipped, 0u);
  EXPECT_GT(begun, 10u);
  RunBlocking(pool_->Join());
}

TEST_F(BlockPassingTest, AFileOfTombstonesIsPassedOverOnlyWhereNothingLiesBeneath) {
  std::vector<OwnedEntry> tombstones;
  for (size_t i = 0; i < 200; ++i) tombstones.push_back(Tombstone(K(i), 20));
  Add(1, tombstones);
  const NumberIn predicate(0, UINT64_MAX);
  EXPECT_THAT(Scan(predicate), IsEmpty());
  EXPECT_EQ(scan_.counts.files_skipped, 1u);
  Add(2, Rows(100, 110, 10));
  EXPECT_THAT(Scan(predicate), IsEmpty());
  EXPECT_EQ(scan_.counts.files_skipped, 0u);
  EXPECT_GT(scan_.counts.blocks_skipped, 0u);
}

TEST_F(BlockPassingTest, FilesThatAreOnlyNewerDoNotKeepABlockFromBeingPassedOver) {
  Add(0, Rows(0, 200, 10));
  Add(0, Rows(0, 200, 20));  // Newer as a whole: nothing older than the first file lies in it.
  const NumberIn predicate(195, 199);
  EXPECT_EQ(Scan(predicate), Expect(predicate));
  EXPECT_GE(scan_.counts.blocks_skipped, 15u);
}

// What a table filled in key order leaves behind.
TEST_F(BlockPassingTest, ManyFilesBesideOneCostItNothingForEachBlock) {
  constexpr size_t kFiles = 300;
  Add(0, Rows(1000, 1100, 5));
  for (size_t file = 0; file < kFiles; ++file) Add(0, Rows(1000 * file, 1000 * file + 100, 10 + file));
  const NumberIn predicate(1'000'000, 1'000'000);
  const std::vector<FileRef>& files = set_->level(0);
  const auto self = std::find_if(files.begin(), files.end(),
                                 [](const FileRef& file) { return file.info->version_max == Version(11); });
  FilesBeneath beneath(*set_, 0, &*self, predicate);
  EXPECT_FALSE(beneath.nothing());
  for (size_t block = 0; block < 10; ++block) {
    EXPECT_FALSE(beneath.MayMatch(K(1000 + 10 * block), K(1010 + 10 * block), Version(11)));
    EXPECT_LE(beneath.TakeCost(), 30u);
  }
}

TEST_F(BlockPassingTest, ABlockIsPassedOverWhereWhatLiesBeneathDoesNotMatchEither) {
  Add(4, Rows(0, 2000, 10));
  std::vector<OwnedEntry> updates;
  for (size_t i = 0; i < 2000; i += 3) updates.push_back(Row(i, 20, i));
  Add(1, updates);
  const NumberIn predicate(1000, 1019);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    Scan(predicate, direction);  // Brings the index blocks.
    EXPECT_EQ(Scan(predicate, direction), Expect(predicate, direction));
    EXPECT_GE(scan_.counts.blocks_read, 3u);
    EXPECT_LE(scan_.counts.blocks_read, 12u);
    EXPECT_GE(scan_.counts.blocks_skipped, 200u);
  }
}

TEST_F(BlockPassingTest, WhatIsNotVisibleYetIsRead) {
  std::vector<OwnedEntry> rows = Rows(0, 100, 10);
  rows[50] = Row(50, 99, 50);
  Add(1, rows);
  const NumberIn predicate(5000, 5000);
  visible_ = Version(98);
  EXPECT_THAT(Scan(predicate), IsEmpty());
  EXPECT_EQ(scan_.counts.blocks_read, 1u);
  visible_ = Version(99);
  EXPECT_THAT(Scan(predicate), IsEmpty());
  EXPECT_EQ(scan_.counts.blocks_read, 0u);
}

TEST_F(BlockPassingTest, WhatADamagedFileBeneathHoldsIsNotKnown) {
  Add(1, Rows(0, 100, 20));
  AddDamaged(2, 50, 60);
  const NumberIn predicate(5000, 5000);
  scan_.predicate = &predicate;
  scan_.visible = visible_;
  std::unique_ptr<EntryIterator> merged = Merged(Direction::kForward, {}, Planted::kNothing);
  ASSERT_EQ(merged->SeekToFirst(), IterState::kNeedsIo);
  EXPECT_EQ(RunBlocking(merged->Fetch()).code(), Code::kCorruption);
}

TEST_F(BlockPassingTest, ALongStretchThatIsPassedOverShowsMilestones) {
  Add(1, Rows(0, 30'000, 10));
  for (size_t file = 0; file < 1000; ++file) Add(1, Rows(30'000 + 10 * file, 30'010 + 10 * file, 10));
  const NumberIn predicate(25'000, 25'000);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_THAT(Scan(predicate, direction), ElementsAre(K(25'000)));
    EXPECT_GE(milestones_, 5u);
    EXPECT_LE(milestones_, 50u);
    EXPECT_GE(scan_.counts.files_skipped, 999u);
    EXPECT_LE(scan_.counts.blocks_read, 2u);
  }
}

// Random stores of overlapping levels. Numbers follow the keys, but for some rows, and newer versions often
// leave the range that the older ones were in.
class BlockPassingPropertyTest : public BlockPassingTest {
 protected:
  static constexpr size_t kKeys = 1500;

  void MakeStore(std::mt19937_64& random) {
    set_ = std::make_shared<LevelSet>();
    entries_.clear();
    uint64_t version = 1;
    for (size_t level = kLevels; level-- > 1;) {
      if (random() % 2 == 0) continue;
      FillLevel(random, level, version);
      version += 2 * kKeys;
    }
    FillLevelZero(random, version);
  }
  OwnedEntry RandomRow(std::mt19937_64& random, size_t key, uint64_t version) {
    if (random() % 10 == 0) return Tombstone(K(key), version);
    const uint64_t number = random() % 200 == 0 ? random() % kKeys : key + random() % 8;
    return Row(key, version, random() % 40 == 0 ? number + 2 * kKeys : number);
  }
  // Files that do not overlap, with gaps; versions from `version` on, in any order.
  void FillLevel(std::mt19937_64& random, size_t level, uint64_t version) {
    std::vector<OwnedEntry> file;
    const size_t sparse = 1 + random() % 4;
    for (size_t key = random() % 300; key < kKeys; ++key) {
      if (random() % sparse == 0) file.push_back(RandomRow(random, key, version + random() % kKeys));
      if (random() % 200 != 0 || file.empty()) continue;
      Add(level, std::exchange(file, {}));
      if (random() % 3 == 0) key += random() % 200;
    }
    if (!file.empty()) Add(level, file);
  }
  // Files that overlap in keys and in versions.
  void FillLevelZero(std::mt19937_64& random, uint64_t version) {
    const size_t files = random() % 4;
    std::vector<std::vector<OwnedEntry>> of_file(files);
    for (size_t key = 0; files > 0 && key < kKeys; ++key) {
      std::vector<uint64_t> versions;
      for (size_t i = 0; i < files; ++i)
        versions.push_back(version + 10 * key % 700 + 10 * i + random() % 10);
      std::shuffle(versions.begin(), versions.end(), random);
      for (size_t i = 0; i < files; ++i) {
        const bool in_span = key / 300 % 2 == i % 2;
        if (in_span && random() % 3 == 0) of_file[i].push_back(RandomRow(random, key, versions[i]));
      }
    }
    for (std::vector<OwnedEntry>& entries : of_file) {
      if (!entries.empty()) Add(0, std::move(entries));
    }
  }
};

TEST_F(BlockPassingPropertyTest, ScansFindWhatMatchesAndTheTestWouldSeeOneThatForgetsWhatLiesBeneath) {
  std::mt19937_64 random(TestSeed());
  uint64_t skipped = 0, read = 0, wrong_when_planted = 0;
  for (int round = 0; round < 60; ++round) {
    MakeStore(random);
    for (int query = 0; query < 10; ++query) {
      const uint64_t low = random() % (2 * kKeys);
      const NumberIn predicate(low, low + random() % 100);
      const Direction direction = random() % 2 == 0 ? Direction::kForward : Direction::kBackward;
      Bounds bounds;
      if (random() % 2 == 0) bounds = {K(random() % 700), K(700 + random() % 900)};
      visible_ = Version(random() % 4 == 0 ? random() % 10'000 : 1'000'000);
      const std::vector<std::string> expected = Expect(predicate, direction, bounds);
      ASSERT_EQ(Scan(predicate, direction, bounds), expected) << "round " << round << ", query " << query;
      skipped += scan_.counts.blocks_skipped;
      read += scan_.counts.blocks_read;
      wrong_when_planted += Scan(predicate, direction, bounds, Planted::kForgetsWhatLiesBeneath) != expected;
    }
  }
  EXPECT_GT(skipped, read);
  EXPECT_GT(wrong_when_planted, 20u);
}

// A predicate so dear that each file passed over is worth a milestone: none may lie beyond the keys that a
// clipped file still has.
TEST_F(BlockPassingTest, MilestonesInFrontOfAClippedFileKeepToItsBounds) {
  Add(1, Rows(0, 100, 10));
  const ObjectId wide = set_->level(1)[0].info->id;
  set_ = std::make_shared<LevelSet>();
  entries_.clear();
  Refer(1, wide, K(10), K(50));
  Add(1, Rows(50, 75, 20));
  Add(1, Rows(75, 100, 20));
  Scan(NumberIn(5000, 6000, /*cost=*/5000), Direction::kBackward);
  EXPECT_GT(milestones_, 1u);
  Scan(NumberIn(5000, 6000, /*cost=*/5000), Direction::kForward);
  EXPECT_GT(milestones_, 1u);
}

}  // namespace
}  // namespace partita

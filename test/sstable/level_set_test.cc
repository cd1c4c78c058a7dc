#include "sstable/level_set.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "sstable/table_scan.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

class LevelSetTest : public testing::Test {
 protected:
  FileRef File(uint64_t id, const std::vector<OwnedEntry>& entries, std::string lower = "",
               std::string upper = "") {
    Result<TableInfo> info =
        WriteTable(store_, ObjectId(id), entries, {.codec = Codec::kStored, .block_size = 1024, .zones = {}});
    EXPECT_TRUE(info.ok()) << info.status().ToString();
    return Ref(id, std::move(lower), std::move(upper));
  }
  FileRef Ref(uint64_t id, std::string lower, std::string upper) {
    auto table = OpenTable(store_, cache_, ObjectId(id));
    EXPECT_TRUE(table.ok());
    FileRef file;
    file.table = *table;
    file.info = (*table)->info();
    file.lower = std::move(lower);
    file.upper = std::move(upper);
    return file;
  }
  static std::string K(int i) { return Key("p", std::to_string(10'000 + i)); }
  static std::vector<OwnedEntry> Run(int first, int last, uint64_t version, int step = 1) {
    std::vector<OwnedEntry> entries;
    for (int i = first; i < last; i += step)
      entries.push_back(Put(K(i), version, "v" + std::to_string(version)));
    return entries;
  }
  static std::shared_ptr<const LevelSet> With(const LevelSet& set, std::vector<LevelEdit::Added> added) {
    LevelEdit edit;
    edit.added = std::move(added);
    auto next = set.Apply(edit);
    EXPECT_TRUE(next.ok()) << next.status().ToString();
    return *next;
  }
  static uint64_t VersionOf(const LevelSet& set, const std::string& key, Version at_most = kVersionMax) {
    BlockPin pin, second;
    Result<Lookup> got = RunBlocking(set.Get(key, HashKey(key), at_most, &pin));
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    TableLookup tried = set.TryGet(key, HashKey(key), at_most, &second);
    EXPECT_FALSE(tried.needs_io);  // Get has just brought everything.
    EXPECT_EQ(tried.lookup.state, got->state);
    EXPECT_EQ(tried.lookup.version, got->version);
    if (got->state == LookupState::kFound) EXPECT_EQ(tried.lookup.value, got->value);
    return got->state == LookupState::kAbsent ? 0 : got->version.value;
  }

  MemoryObjectStore store_;
  BlockCache cache_{8 << 20};
};

// covers: M20
TEST_F(LevelSetTest, LevelZeroIsDecidedByVersionsNotByFileNumbers) {
  LevelSet empty;
  auto set = With(
      empty, {{0, File(9, Run(0, 10, 100))}, {0, File(3, Run(5, 15, 200))}, {0, File(5, Run(0, 3, 150))}});
  EXPECT_EQ(set->level(0)[0].info->id, ObjectId(3));  // Newest first, though its number is the least.
  EXPECT_EQ(VersionOf(*set, K(7)), 200u);
  EXPECT_EQ(VersionOf(*set, K(1)), 150u);
  EXPECT_EQ(VersionOf(*set, K(4)), 100u);
  EXPECT_EQ(VersionOf(*set, K(7), Version(199)), 100u);
  EXPECT_EQ(VersionOf(*set, K(12)), 200u);
  EXPECT_EQ(VersionOf(*set, K(20)), 0u);
  EXPECT_TRUE(set->CheckInvariants().ok());
}

TEST_F(LevelSetTest, AnOlderFileWithANewerVersionOfTheKeyWins) {
  // The file that is newer as a whole holds the older version of this key.
  std::vector<OwnedEntry> a{Put(K(1), 50, "old"), Put(K(2), 300, "x")};
  std::vector<OwnedEntry> b{Put(K(1), 100, "new")};
  auto set = With(LevelSet(), {{0, File(1, a)}, {0, File(2, b)}});
  EXPECT_EQ(VersionOf(*set, K(1)), 100u);
}

TEST_F(LevelSetTest, UpperLevelsHideLowerOnesAndTombstonesStopTheSearch) {
  auto set =
      With(LevelSet(),
           {{3, File(1, Run(0, 20, 10))}, {1, File(2, Run(5, 10, 20))}, {0, File(3, {Tombstone(K(6), 30)})}});
  EXPECT_EQ(VersionOf(*set, K(1)), 10u);
  EXPECT_EQ(VersionOf(*set, K(5)), 20u);
  std::string key = K(6);
  BlockPin pin;
  EXPECT_EQ(RunBlocking(set->Get(key, HashKey(key), kVersionMax, &pin))->state, LookupState::kDeleted);
  EXPECT_EQ(VersionOf(*set, K(6), Version(29)), 20u);
}

TEST_F(LevelSetTest, OnlyKeysWithinTheVirtualBoundsExist) {
  File(1, Run(0, 100, 10));
  auto set = With(LevelSet(), {{1, Ref(1, K(20), K(40))}, {1, Ref(1, K(60), "")}});
  EXPECT_EQ(VersionOf(*set, K(19)), 0u);
  EXPECT_EQ(VersionOf(*set, K(20)), 10u);
  EXPECT_EQ(VersionOf(*set, K(39)), 10u);
  EXPECT_EQ(VersionOf(*set, K(40)), 0u);
  EXPECT_EQ(VersionOf(*set, K(60)), 10u);
  EXPECT_EQ(VersionOf(*set, K(99)), 10u);
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    std::vector<std::unique_ptr<EntryIterator>> iterators;
    set->AddIterators(direction, {}, &iterators);
    ASSERT_EQ(iterators.size(), 1u);
    EXPECT_EQ(DrainAll(*iterators[0]).size(), 60u);
  }
  EXPECT_TRUE(set->CheckInvariants().ok());
}

TEST_F(LevelSetTest, SeeksAreCountedForTheReferenceThatTheyRead) {
  const std::vector<OwnedEntry> entries = Run(0, 1'000, 5);
  auto set =
      With(LevelSet(), {{0, File(1, entries, "", K(500))}, {0, Ref(1, K(500), "")}, {6, File(2, entries)}});
  const auto seek = [&](int row) {
    std::vector<std::unique_ptr<EntryIterator>> cursors;
    TableScan scan;
    set->AddIterators(Direction::kForward, {.lower = K(row), .upper = K(row + 1), .scan = &scan}, &cursors);
    for (auto& cursor : cursors) {
      IterState state = cursor->Seek(K(row));
      while (state == IterState::kNeedsIo) {
        EXPECT_TRUE(RunBlocking(cursor->Fetch()).ok());
        state = cursor->state();
      }
      EXPECT_EQ(state, IterState::kEntry);
    }
    return scan.seek_bytes;
  };
  const auto counted = [&](const LevelSet& of) {
    std::vector<uint64_t> bytes;
    for (const FileRef& file : of.level(0)) bytes.push_back(file.lower.empty() ? file.seek_bytes->load() : 0);
    for (const FileRef& file : of.level(0)) bytes.push_back(file.lower.empty() ? 0 : file.seek_bytes->load());
    return std::pair(bytes[0] + bytes[1], bytes[2] + bytes[3]);
  };
  const uint64_t first = seek(100);
  EXPECT_GT(first, 500u);  // One block.
  EXPECT_LT(first, 2'000u);
  EXPECT_EQ(counted(*set), std::pair(first, uint64_t{0}));
  EXPECT_EQ(seek(100), 0u);  // The cache has it.
  const uint64_t second = seek(900);
  EXPECT_EQ(counted(*set), std::pair(first, second));
  EXPECT_EQ(set->level(6)[0].seek_bytes, nullptr);

  // It goes on with the reference, and begins anew with a new one.
  auto next = With(*set, {{0, File(3, Run(0, 10, 9))}});
  EXPECT_EQ(next->level(0)[0].seek_bytes->load(), 0u);
  EXPECT_EQ(next->level(0)[1].seek_bytes->load() + next->level(0)[2].seek_bytes->load(), first + second);
  auto joined = LevelSet::Join({set}, K(0), K(200));
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ((*joined)->level(0)[0].seek_bytes->load(), 0u);
}

TEST_F(LevelSetTest, APartitionThatNoFileHoldsIsTold) {
  const auto may_hold = [](const LevelSet& set, const std::string& partition) {
    const std::string key = Key(partition, "any");
    return set.MayHoldPartition(key, HashKey(key));
  };
  EXPECT_FALSE(may_hold(LevelSet(), "p"));
  // Level 0 by its filter and bounds; deeper levels by the file in which the partition would lie, or both
  // of those that it lies in.
  std::vector<OwnedEntry> first, second, third;
  for (int i = 0; i < 300; ++i) {
    const std::string number = std::to_string(1000 + 2 * i);
    (i < 100 ? first : i < 200 ? second : third).push_back(Put(Key("p" + number, "a"), 10, "v"));
  }
  second.insert(second.begin(), Put(Key("p1198", "b"), 10, "v"));
  auto set = With(LevelSet(), {{0, File(1, {Put(Key("m", "r"), 50, "v"), Put(Key("z", "r"), 50, "v")})},
                               {3, File(2, first)},
                               {3, File(3, second)},
                               {3, File(4, third)}});
  int maybe = 0;
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(may_hold(*set, "p" + std::to_string(1000 + 2 * i))) << i;
    maybe += may_hold(*set, "p" + std::to_string(1001 + 2 * i)) ? 1 : 0;
  }
  EXPECT_LT(maybe, 20);  // One in 256 of each filter, no luck in it: the hashes are what they are.
  EXPECT_TRUE(may_hold(*set, "m"));
  EXPECT_TRUE(may_hold(*set, "z"));
  EXPECT_FALSE(may_hold(*set, "a"));
  EXPECT_FALSE(may_hold(*set, "zz"));

  // Only within the virtual bounds, and always where nobody can look.
  auto bounded = With(LevelSet(), {{2, Ref(2, Key("p1010", ""), Key("p1020", ""))}});
  EXPECT_TRUE(may_hold(*bounded, "p1010"));
  EXPECT_FALSE(may_hold(*bounded, "p1008"));
  EXPECT_FALSE(may_hold(*bounded, "p1020"));
  FileRef damaged = Ref(2, "", "");
  damaged.table = nullptr;
  damaged.damage = std::make_shared<const Status>(Status::Corruption("planted"));
  auto broken = With(LevelSet(), {{2, damaged}});
  EXPECT_TRUE(may_hold(*broken, "p1001"));
  EXPECT_FALSE(may_hold(*broken, "q"));
}

TEST_F(LevelSetTest, EditsReplaceFilesAndLeaveTheOldSetAlone) {
  auto before = With(LevelSet(), {{1, File(1, Run(0, 10, 10))}, {1, File(2, Run(20, 30, 10))}});
  LevelEdit edit;
  edit.removed.push_back({1, ObjectId(1), ""});
  edit.added.push_back({1, File(3, Run(0, 15, 20))});
  auto after = before->Apply(edit);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(VersionOf(*before, K(5)), 10u);
  EXPECT_EQ(VersionOf(**after, K(5)), 20u);
  EXPECT_EQ((*after)->file_count(), 2u);
  EXPECT_EQ(before->file_count(), 2u);
}

TEST_F(LevelSetTest, EditsThatBreakTheInvariantsAreRefused) {
  auto set = With(LevelSet(), {{1, File(1, Run(0, 10, 10))}});
  LevelEdit overlap;
  overlap.added.push_back({1, File(2, Run(9, 12, 20))});
  EXPECT_EQ(set->Apply(overlap).code(), Code::kInvalidArgument);
  LevelEdit missing;
  missing.removed.push_back({1, ObjectId(77), ""});
  EXPECT_EQ(set->Apply(missing).code(), Code::kInvalidArgument);
  LevelEdit wrong_bound;
  wrong_bound.removed.push_back({1, ObjectId(1), "other"});
  EXPECT_EQ(set->Apply(wrong_bound).code(), Code::kInvalidArgument);
  LevelEdit too_deep;
  too_deep.added.push_back({7, File(3, Run(50, 60, 20))});
  EXPECT_EQ(set->Apply(too_deep).code(), Code::kInvalidArgument);
}

TEST_F(LevelSetTest, ALevelOfDisjointFilesIsOneSortedSequence) {
  std::vector<OwnedEntry> all;
  LevelEdit edit;
  for (int f = 0; f < 8; ++f) {
    std::vector<OwnedEntry> part = Run(f * 20, f * 20 + 15, 10);
    all.insert(all.end(), part.begin(), part.end());
    edit.added.push_back({2, File(static_cast<uint64_t>(f) + 1, part)});
  }
  auto set = LevelSet().Apply(edit);
  ASSERT_TRUE(set.ok());
  std::mt19937_64 random(TestSeed());
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (int round = 0; round < 60; ++round) {
      IterOptions options;
      if (random() % 2) options.lower = K(static_cast<int>(random() % 170));
      if (random() % 2) options.upper = K(static_cast<int>(random() % 170));
      std::vector<std::unique_ptr<EntryIterator>> iterators;
      (*set)->AddIterators(direction, options, &iterators);
      const std::vector<OwnedEntry> expected = Expected(all, direction, options.lower, options.upper);
      if (iterators.empty()) {
        EXPECT_TRUE(expected.empty());
        continue;
      }
      ASSERT_EQ(iterators.size(), 1u);
      EXPECT_EQ(DrainAll(*iterators[0]), expected);
      std::string key = K(static_cast<int>(random() % 170));
      std::string lower = options.lower, upper = options.upper;
      if (direction == Direction::kForward) lower = std::max(lower, key);
      if (direction == Direction::kBackward) upper = upper.empty() ? key : std::min(upper, key);
      Status status;
      EXPECT_EQ(Drain(*iterators[0], iterators[0]->Seek(key), &status),
                Expected(all, direction, lower, upper));
    }
  }
}

// covers: F39 F43
TEST_F(LevelSetTest, AFileThatCouldNotBeOpenedDamagesItsKeysOnly) {
  FileRef broken = File(1, Run(0, 10, 10));
  broken.table = nullptr;
  broken.damage = std::make_shared<const Status>(Status::Corruption("tables/1.sst: bad footer"));
  auto set = With(LevelSet(), {{1, broken}, {1, File(2, Run(20, 30, 10))}, {2, File(3, Run(0, 30, 5))}});
  std::string key = K(5);
  BlockPin pin;
  EXPECT_TRUE(set->TryGet(key, HashKey(key), kVersionMax, &pin).needs_io);
  EXPECT_EQ(RunBlocking(set->Get(key, HashKey(key), kVersionMax, &pin)).code(), Code::kCorruption);
  EXPECT_EQ(VersionOf(*set, K(25)), 10u);
  EXPECT_EQ(VersionOf(*set, K(15)), 5u);
  std::vector<std::unique_ptr<EntryIterator>> iterators;
  set->AddIterators(Direction::kBackward, {}, &iterators);
  Status status;
  EXPECT_EQ(Drain(*iterators[0], iterators[0]->SeekToFirst(), &status).size(), 10u);
  EXPECT_EQ(status.code(), Code::kCorruption);
  iterators.clear();
  set->AddIterators(Direction::kForward, {.caching = IterCaching::kFill, .lower = K(20), .upper = ""},
                    &iterators);
  EXPECT_EQ(DrainAll(*iterators[0]).size(), 10u);
}

// Rows of a transaction, in no order, some of them newer in level 0 and some nowhere.
std::vector<std::string> RowsOfATransaction() {
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back(Key("p", std::to_string(10'450 + i * 7 % 300)));
  for (int i = 0; i < 10; ++i) keys.push_back(Key("p", std::to_string(10'450 + i) + "x"));
  return keys;
}

// In their order, each as LevelSet knows it without reading.
std::vector<SoughtTogether> Sought(const LevelSet& set, std::vector<std::string>& keys) {
  std::sort(keys.begin(), keys.end());
  std::vector<SoughtTogether> sought(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) sought[i].key = {keys[i], HashKey(keys[i])};
  set.TryGetTogether(sought, kVersionMax);
  return sought;
}

uint64_t ExpectedVersion(const std::string& key) {
  if (key.ends_with('x')) return 0;
  return key >= Key("p", "10500") && key < Key("p", "10600") ? 20 : 10;
}

TEST_F(LevelSetTest, WhatIsReadTogetherTakesAFewReadsAndNoneAfterwards) {
  const auto set = With(LevelSet(), {{1, File(1, Run(0, 2000, 10))}, {0, File(2, Run(500, 600, 20))}});
  std::vector<std::string> keys = RowsOfATransaction();
  const uint64_t reads_before = store_.reads();
  EXPECT_TRUE(RunBlocking(set->ReadTogether(Sought(*set, keys))).ok());
  // Neighbouring blocks are one read; an index block is one by itself.
  EXPECT_LE(store_.reads() - reads_before, 8u);
  EXPECT_GE(store_.reads() - reads_before, 2u);
  const uint64_t reads_after = store_.reads();
  for (const std::string& key : keys) {
    if (key.ends_with('x')) continue;
    BlockPin pin;
    const TableLookup found = set->TryGet(key, HashKey(key), kVersionMax, &pin);
    ASSERT_FALSE(found.needs_io) << key;
    ASSERT_EQ(found.lookup.version.value, ExpectedVersion(key)) << key;
  }
  EXPECT_TRUE(RunBlocking(set->ReadTogether(Sought(*set, keys))).ok());  // All is there.
  EXPECT_EQ(store_.reads(), reads_after);
}

TEST_F(LevelSetTest, WhatCannotBeReadTogetherIsLeftToTheLookups) {
  const auto set = With(LevelSet(), {{1, File(1, Run(0, 2000, 10))}, {0, File(2, Run(500, 600, 20))}});
  std::vector<std::string> keys = RowsOfATransaction();
  uint64_t spoilt = 0;
  store_.faults().on_read = [&](ObjectId, uint64_t, std::span<uint8_t> bytes, ReadCaching caching) {
    if (caching == ReadCaching::kPastCaches) return Status();
    if (++spoilt % 2 == 0) return Status::IoError("the test says so");
    bytes[bytes.size() / 2] ^= 1;
    return Status();
  };
  EXPECT_TRUE(RunBlocking(set->ReadTogether(Sought(*set, keys))).ok());
  EXPECT_GT(spoilt, 0u);
  for (const std::string& key : keys) EXPECT_EQ(VersionOf(*set, key), ExpectedVersion(key)) << key;
  store_.faults().on_read = nullptr;
}

TEST_F(LevelSetTest, FileReferencesSurviveEncoding) {
  FileMeta meta;
  meta.level = 6;
  meta.lower = "a";
  meta.upper = std::string("b\0c", 3);
  meta.info = File(1, Run(0, 10, 10)).info;
  std::string bytes;
  AppendFileMeta(&bytes, meta);
  ByteReader reader(bytes);
  EXPECT_EQ(ReadFileMeta(&reader), meta);
  EXPECT_TRUE(reader.AtCleanEnd());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader cut(std::string_view(bytes).substr(0, size));
    ReadFileMeta(&cut);
    EXPECT_FALSE(cut.ok());
  }
  bytes[0] = 7;
  ByteReader too_deep(bytes);
  ReadFileMeta(&too_deep);
  EXPECT_FALSE(too_deep.ok());
}

TEST_F(LevelSetTest, LevelsThatAnEditLeavesAloneAreShared) {
  const auto before = With(LevelSet(), {{0, File(1, Run(0, 10, 300))}, {6, File(2, Run(0, 50, 100))}});
  const auto after = With(*before, {{0, File(3, Run(5, 15, 400))}});
  EXPECT_EQ(before->level(0).size(), 1u);
  EXPECT_EQ(after->level(0).size(), 2u);
  EXPECT_EQ(&before->level(6), &after->level(6));
  EXPECT_EQ(VersionOf(*after, K(7)), 400u);
  EXPECT_EQ(VersionOf(*after, K(20)), 100u);
  EXPECT_TRUE(after->CheckInvariants().ok());
}

// All shards copy it each time that they publish a view.
TEST_F(LevelSetTest, OneWithoutFilesIsSharedByAllAndCountsNoReferences) {
  const FileRef file = File(1, Run(0, 10, 100));
  const auto set = With(LevelSet(), {{0, file}});
  const auto emptied = set->Apply({.added = {}, .removed = {{0, file.info->id, file.lower}}});
  ASSERT_TRUE(emptied.ok()) << emptied.status().ToString();
  EXPECT_EQ(*emptied, LevelSet::Empty());
  EXPECT_EQ(*LevelSet::Join({set}, K(20), K(30)), LevelSet::Empty());
  EXPECT_EQ(*LevelSet::Join({LevelSet::Empty()}, K(0), K(30)), LevelSet::Empty());
  EXPECT_EQ(LevelSet::Empty().use_count(), 0);
  EXPECT_TRUE(LevelSet::Empty()->CheckInvariants().ok());
}

// A store of many small tables has one for each.
TEST_F(LevelSetTest, TakesLittleMemoryHoweverLongTheKeysOfItsFiles) {
  std::vector<OwnedEntry> entries{Put(Key("p", std::string(2000, 'a')), 1, "v"),
                                  Put(Key("p", std::string(2000, 'b')), 1, "v")};
  FileRef file = File(1, entries);
  EXPECT_LT(With(LevelSet(), {{6, file}})->memory_bytes(), 512u);
  std::vector<LevelEdit::Added> six;
  for (int i = 0; i < 6; ++i) {
    TableInfo info = *file.info;
    info.id = ObjectId(static_cast<uint64_t>(i + 1));
    six.push_back({0, file});
    six.back().file.info = std::move(info);
  }
  const size_t bytes = With(LevelSet(), std::move(six))->memory_bytes();
  EXPECT_LT(bytes, 2048u);
  EXPECT_GT(bytes, 6 * sizeof(FileRef));
}

}  // namespace
}  // namespace partita

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

struct Shape {
  const char* name;
  Codec codec;
  size_t block_size;
};

// At keys, beside them, and at versions before the newest.
void ExpectLookups(TableReader& table, const std::vector<OwnedEntry>& entries, std::mt19937_64& random) {
  for (size_t i = 0; i < std::min<size_t>(entries.size() * 3, 3000); ++i) {
    const OwnedEntry& near = entries[random() % entries.size()];
    std::string key = near.user_key;
    if (random() % 3 == 0) key.push_back(static_cast<char>(1 + random() % 255));
    if (random() % 7 == 0) key.pop_back();
    Version at_most = random() % 2 ? kVersionMax : Version(near.version.value - random() % 2);
    const Lookup expected = ExpectedLookup(entries, key, at_most);
    BlockPin pin, second_pin;
    const KeyHash hash = HashKey(key);
    Result<Lookup> got = RunBlocking(table.Get(hash, key, at_most, &pin));
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    ASSERT_EQ(got->state, expected.state);
    ASSERT_EQ(got->version, expected.version);
    if (expected.state == LookupState::kFound) ASSERT_EQ(got->value, expected.value);
    if (expected.state != LookupState::kAbsent) {
      EXPECT_TRUE(table.MayContainKey(hash));
      EXPECT_TRUE(table.MayContainPartition(hash));
    }
    const TableLookup tried = table.TryGet(hash, key, at_most, &second_pin);
    if (!tried.needs_io) ASSERT_EQ(tried.lookup.state, expected.state);
  }
}

// Both ways between ends drawn from the keys, with seeks on the way.
void ExpectScans(TableReader& table, const std::vector<OwnedEntry>& entries, std::mt19937_64& random) {
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (IterCaching caching : {IterCaching::kFill, IterCaching::kLookOnly, IterCaching::kBypass}) {
      for (int round = 0; round < 6; ++round) {
        IterOptions options{.caching = caching, .lower = "", .upper = ""};
        if (round > 0 && random() % 3) options.lower = entries[random() % entries.size()].user_key;
        if (round > 0 && random() % 3) options.upper = entries[random() % entries.size()].user_key;
        auto it = table.NewIterator(direction, options);
        ASSERT_EQ(DrainAll(*it), Expected(entries, direction, options.lower, options.upper));
        // Seek, from wherever the cursor stands.
        for (int seek = 0; seek < 5; ++seek) {
          std::string key = entries[random() % entries.size()].user_key;
          if (random() % 2) key.push_back(static_cast<char>(random() % 3));
          std::string lower = options.lower, upper = options.upper;
          if (direction == Direction::kForward) lower = std::max(lower, key);
          if (direction == Direction::kBackward) upper = upper.empty() ? key : std::min(upper, key);
          std::vector<OwnedEntry> expected = Expected(entries, direction, lower, upper);
          if (expected.size() > 20) expected.resize(20);
          Status status;
          ASSERT_EQ(Drain(*it, it->Seek(key), &status, 20), expected);
          ASSERT_TRUE(status.ok());
        }
      }
    }
  }
}

class TableOracleTest : public testing::TestWithParam<Shape> {};

// covers: F43 M28
TEST_P(TableOracleTest, EveryLookupAndScanAgreesWithTheOracle) {
  std::mt19937_64 random(TestSeed());
  for (size_t keys : {1, 2, 3, 40, 700, 4000}) {
    MemoryObjectStore store;
    BlockCache cache(256 * 1024);
    const std::vector<OwnedEntry> entries = RandomEntries(random, keys, keys > 1000 ? 5000 : 80'000);
    Result<TableInfo> info =
        WriteTable(store, ObjectId(7), entries,
                   {.codec = GetParam().codec, .block_size = GetParam().block_size, .zones = {}});
    ASSERT_TRUE(info.ok()) << info.status().ToString();
    EXPECT_EQ(info->entry_count, entries.size());
    EXPECT_EQ(info->smallest, entries.front().user_key);
    EXPECT_EQ(info->largest, entries.back().user_key);
    auto table = OpenTable(store, cache, ObjectId(7));
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    EXPECT_EQ((*table)->info(), *info);

    TableVerifyReport report;
    Status verified = RunBlocking((*table)->Verify(&report));
    ASSERT_TRUE(verified.ok()) << verified.ToString();
    EXPECT_EQ(report.entries, entries.size());

    ExpectLookups(**table, entries, random);
    if (HasFatalFailure()) return;
    ExpectScans(**table, entries, random);
    if (HasFatalFailure()) return;
    cache.CheckInvariants();
    EXPECT_EQ(cache.CountPinned(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TableOracleTest,
                         testing::Values(Shape{"StoredSmall", Codec::kStored, 1024},
                                         Shape{"Stored16K", Codec::kStored, 16 * 1024},
                                         Shape{"Lz4In4K", Codec::kLz4, 4 * 1024},
                                         Shape{"Lz4In64K", Codec::kLz4, 64 * 1024}),
                         [](const auto& info) { return info.param.name; });

class TableTest : public testing::Test {
 protected:
  std::shared_ptr<TableReader> MustOpen(ObjectId id) {
    auto table = OpenTable(store_, cache_, id);
    EXPECT_TRUE(table.ok()) << table.status().ToString();
    return table.ok() ? *table : nullptr;
  }

  MemoryObjectStore store_;
  BlockCache cache_{4 << 20};
  std::mt19937_64 random_{TestSeed()};
};

TEST_F(TableTest, AValueOfOneMebibyteComesBackWhole) {
  const std::string big = RandomBytes(random_, 1 << 20);
  std::vector<OwnedEntry> entries{Put(Key("a", "1"), 5, "small"), Put(Key("a", "2"), 6, big),
                                  Put(Key("a", "3"), 7, "x")};
  ASSERT_TRUE(
      WriteTable(store_, ObjectId(1), entries, {.codec = Codec::kLz4, .block_size = 16384, .zones = {}})
          .ok());
  auto table = MustOpen(ObjectId(1));
  BlockPin pin;
  std::string key = Key("a", "2");
  Result<Lookup> got = RunBlocking(table->Get(HashKey(key), key, kVersionMax, &pin));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(StoredValueContent(got->value), big);
  EXPECT_EQ(table->properties().data_blocks, 3u);  // The large entity has a block of its own.
}

TEST_F(TableTest, VersionsOfOneKeyNeverLieInTwoBlocks) {
  std::vector<OwnedEntry> entries;
  for (uint64_t v = 200; v > 0; --v) entries.push_back(Put(Key("p", "k"), v, RandomBytes(random_, 500)));
  entries.push_back(Put(Key("p", "l"), 1, "next"));
  ASSERT_TRUE(WriteTable(store_, ObjectId(1), entries).ok());
  auto table = MustOpen(ObjectId(1));
  EXPECT_EQ(table->properties().data_blocks, 2u);
  std::string key = Key("p", "k");
  for (uint64_t v = 1; v <= 200; ++v) {
    BlockPin pin;
    Result<Lookup> got = RunBlocking(table->Get(HashKey(key), key, Version(v), &pin));
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->version, Version(v));
  }
}

// A hundredth of the file at the most; and counted where the cache's memory is lent.
TEST_F(TableTest, FiltersAreLongWhereRowsAreLarge) {
  for (const size_t size : {100, 400}) {
    std::vector<OwnedEntry> entries;
    for (int i = 0; i < 2000; ++i) {
      entries.push_back(Put(Key("p", std::to_string(100'000 + i)), 1, RandomBytes(random_, size)));
    }
    const ObjectId id(size);
    ASSERT_TRUE(WriteTable(store_, id, entries).ok());
    const auto table = MustOpen(id);
    const double bits = table->footer().key_filter.content_size * 8.0 / 2000;
    EXPECT_GT(bits, size == 400 ? 16.0 : 8.0);
    EXPECT_LT(bits, size == 400 ? 24.0 : 12.0);
    EXPECT_EQ(cache_.resident_bytes(), table->resident_bytes());
  }
  EXPECT_EQ(cache_.resident_bytes(), 0u);
  EXPECT_TRUE(cache_.MayKeepMore());
}

TEST_F(TableTest, OnlyCompressedTablesArePadded) {
  // So many blocks that some of them gain by padding, whatever their sizes.
  const std::vector<OwnedEntry> entries = RandomEntries(random_, 5000, 300);
  for (const Codec codec : {Codec::kStored, Codec::kLz4}) {
    const bool compressed = codec == Codec::kLz4;
    const ObjectId id(compressed ? 2 : 1);
    ASSERT_TRUE(WriteTable(store_, id, entries, {.codec = codec, .block_size = 4096, .zones = {}}).ok());
    EXPECT_EQ(MustOpen(id)->properties().padding_bytes > 0, compressed);
  }
}

TEST_F(TableTest, LookupsOfWhatIsCachedNeedNoRead) {
  const std::vector<OwnedEntry> entries = RandomEntries(random_, 500, 300);
  ASSERT_TRUE(WriteTable(store_, ObjectId(1), entries).ok());
  auto table = MustOpen(ObjectId(1));
  const OwnedEntry& wanted = entries[250];
  const KeyHash hash = HashKey(wanted.user_key);
  BlockPin pin;
  EXPECT_TRUE(table->TryGet(hash, wanted.user_key, kVersionMax, &pin).needs_io);
  ASSERT_TRUE(RunBlocking(table->Get(hash, wanted.user_key, kVersionMax, &pin)).ok());
  const uint64_t reads = store_.reads();
  TableLookup tried = table->TryGet(hash, wanted.user_key, kVersionMax, &pin);
  EXPECT_FALSE(tried.needs_io);
  EXPECT_NE(tried.lookup.state, LookupState::kAbsent);
  EXPECT_EQ(store_.reads(), reads);
}

TEST_F(TableTest, AMissIsABlockThatWasReadAndNoMereLook) {
  const std::vector<OwnedEntry> entries = RandomEntries(random_, 500, 300);
  ASSERT_TRUE(WriteTable(store_, ObjectId(1), entries).ok());
  auto table = MustOpen(ObjectId(1));
  const OwnedEntry& wanted = entries[250];
  const KeyHash hash = HashKey(wanted.user_key);
  const auto misses = [&] { return cache_.statistics().misses; };
  BlockPin pin;
  EXPECT_TRUE(table->TryGet(hash, wanted.user_key, kVersionMax, &pin).needs_io);
  EXPECT_EQ(misses(), 0u);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(RunBlocking(table->Get(hash, wanted.user_key, kVersionMax, &pin)).ok());
    EXPECT_EQ(misses(), 2u);  // An index block and a data block.
  }
  pin.Release();
  DrainAll(*table->NewIterator(Direction::kForward));
  const uint64_t blocks = table->properties().data_blocks + table->top_index().size();
  EXPECT_EQ(misses(), blocks);
  DrainAll(*table->NewIterator(Direction::kForward, {.caching = IterCaching::kBypass}));
  EXPECT_EQ(misses(), blocks);
}

TEST_F(TableTest, ATableIsOpenedByOneReadAndWhatStandsAloneIsVerifiedByOne) {
  const std::vector<OwnedEntry> entries = RandomEntries(random_, 500, 300);
  ASSERT_TRUE(WriteTable(store_, ObjectId(1), entries).ok());
  const uint64_t before = store_.reads();
  auto table = MustOpen(ObjectId(1));
  EXPECT_EQ(store_.reads(), before + 1);
  TableVerifyReport report;
  ASSERT_TRUE(RunBlocking(table->Verify(&report)).ok());
  EXPECT_LE(store_.reads(), before + 4);  // That, the index and the data.
}

TEST_F(TableTest, AScanReadsFarFewerTimesThanItHasBlocks) {
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 4000; ++i)
    entries.push_back(Put(Key("p", std::to_string(100000 + i)), 1, RandomBytes(random_, 1000)));
  ASSERT_TRUE(
      WriteTable(store_, ObjectId(1), entries, {.codec = Codec::kStored, .block_size = 4096, .zones = {}})
          .ok());
  auto table = MustOpen(ObjectId(1));
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    const uint64_t reads = store_.reads(), bytes = store_.read_bytes();
    auto it = table->NewIterator(direction, {.caching = IterCaching::kLookOnly, .lower = "", .upper = ""});
    EXPECT_EQ(DrainAll(*it).size(), entries.size());
    // 4 MiB: 16 + 32 + 64 + 128 KiB, then 256 KiB at a time, and some index blocks.
    EXPECT_LE(store_.reads() - reads, 30u);
    EXPECT_LE(store_.read_bytes() - bytes, store_.bytes(ObjectId(1)).size() * 11 / 10);
  }
}

TEST_F(TableTest, AShortScanReadsOnlyWhatItsBoundsAllow) {
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 1000; ++i)
    entries.push_back(Put(Key("p", std::to_string(100000 + i)), 1, RandomBytes(random_, 1000)));
  ASSERT_TRUE(
      WriteTable(store_, ObjectId(1), entries, {.codec = Codec::kStored, .block_size = 4096, .zones = {}})
          .ok());
  auto table = MustOpen(ObjectId(1));
  auto it = table->NewIterator(
      Direction::kForward,
      {.caching = IterCaching::kBypass, .lower = Key("p", "100500"), .upper = Key("p", "100501")});
  const uint64_t bytes = store_.read_bytes();
  EXPECT_EQ(DrainAll(*it).size(), 1u);
  EXPECT_LE(store_.read_bytes() - bytes, 64u * 1024);  // One data block and one index block.
}

TEST_F(TableTest, ManyIndexBlocksAndLongKeysWork) {
  std::vector<OwnedEntry> entries;
  const std::string stem(1500, 'k');
  for (int i = 0; i < 3000; ++i) entries.push_back(Put(Key(stem, std::to_string(100000 + i)), 1, "v"));
  ASSERT_TRUE(
      WriteTable(store_, ObjectId(1), entries, {.codec = Codec::kLz4, .block_size = 1024, .zones = {}}).ok());
  auto table = MustOpen(ObjectId(1));
  EXPECT_GT(table->properties().index_blocks, 3u);
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_EQ(DrainAll(*table->NewIterator(direction)), Expected(entries, direction, "", ""));
  }
}

// covers: F51
TEST_F(TableTest, AWriterRefusesAValueThatChangedInMemory) {
  OwnedEntry entry = Put(Key("p", "r"), 1, "content");
  entry.value.back() ^= 1;
  Result<TableInfo> info = WriteTable(store_, ObjectId(1), {entry});
  EXPECT_EQ(info.code(), Code::kCorruption);
  EXPECT_EQ(OpenTable(store_, cache_, ObjectId(1)).code(), Code::kNotFound);
}

// covers: F22
TEST_F(TableTest, AFailedWriteLeavesNothingBehind) {
  std::vector<OwnedEntry> entries = RandomEntries(random_, 300, 300);
  store_.faults().append_fails_after = 5000;
  EXPECT_EQ(WriteTable(store_, ObjectId(1), entries).code(), Code::kNoSpace);
  EXPECT_TRUE(RunBlocking(store_.List())->empty());
  store_.faults().append_fails_after = UINT64_MAX;
  store_.faults().finish_failure = Status::IoError("flush");
  EXPECT_EQ(WriteTable(store_, ObjectId(1), entries).code(), Code::kIoError);
  EXPECT_TRUE(RunBlocking(store_.List())->empty());
}

TEST_F(TableTest, WrongOptionsAndKeysAreRefused) {
  EXPECT_EQ(
      WriteTable(store_, ObjectId(1), {}, {.codec = Codec::kStored, .block_size = 100, .zones = {}}).code(),
      Code::kInvalidArgument);
  EXPECT_EQ(WriteTable(store_, ObjectId(3), {Put(Key("p", std::string(kUserKeySizeMax, 'r')), 1, "")}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(WriteTable(store_, ObjectId(4), {Put("", 1, "")}).code(), Code::kInvalidArgument);
}

TEST_F(TableTest, KeysThatAreNoUserKeysAreSimplyNotFound) {
  ASSERT_TRUE(WriteTable(store_, ObjectId(1), {Put(Key("p", "r"), 1, "v")}).ok());
  auto table = MustOpen(ObjectId(1));
  for (std::string key :
       {std::string(), std::string("x"), std::string("no separator"), std::string(5, '\xff')}) {
    BlockPin pin;
    Result<Lookup> got = RunBlocking(table->Get(HashKey(key), key, kVersionMax, &pin));
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->state, LookupState::kAbsent);
  }
}

// --- Pass-through ---

Result<TableInfo> PassAll(ObjectStore& store, const TableReader& from, ObjectId to, size_t every) {
  TableWriterOptions options;
  options.store = kTestStore;
  options.id = to;
  options.codec = Codec::kLz4;
  auto created = RunBlocking(TableWriter::Create(store, options));
  if (!created.ok()) return created.status();
  TableWriter& writer = **created;
  auto it =
      from.NewIterator(Direction::kForward, {.caching = IterCaching::kBypass, .lower = "", .upper = ""});
  IterState state = it->SeekToFirst();
  size_t block = 0;
  while (state != IterState::kEnd) {
    if (state == IterState::kNeedsIo) {
      EXPECT_TRUE(RunBlocking(it->Fetch()).ok());
      state = it->state();
      continue;
    }
    if (it->AtBlockStart() && block++ % every == 0) {
      std::optional<PassThroughBlock> passed = it->CurrentPassThrough();
      EXPECT_TRUE(passed.has_value());
      EXPECT_TRUE(writer.AddBlock(*passed).ok());
      state = it->SkipBlock();
    } else {
      EXPECT_TRUE(writer.Add(it->entry()).ok());
      state = it->Next();
    }
  }
  return RunBlocking(writer.Finish());
}

TEST_F(TableTest, PassedBlocksHoldTheSameEntriesUnderNewSeals) {
  const std::vector<OwnedEntry> entries = RandomEntries(random_, 2000, 3000);
  Result<TableInfo> info =
      WriteTable(store_, ObjectId(1), entries, {.codec = Codec::kLz4, .block_size = 4096, .zones = {}});
  ASSERT_TRUE(info.ok());
  auto source = MustOpen(ObjectId(1));
  uint64_t to = 2;
  for (size_t every : {1, 2, 5}) {
    Result<TableInfo> copy = PassAll(store_, *source, ObjectId(to), every);
    ASSERT_TRUE(copy.ok()) << copy.status().ToString();
    auto table = MustOpen(ObjectId(to));
    EXPECT_EQ(DrainAll(*table->NewIterator(Direction::kForward)), entries);
    TableVerifyReport report;
    Status verified = RunBlocking(table->Verify(&report));
    EXPECT_TRUE(verified.ok()) << verified.ToString();
    EXPECT_EQ(copy->entry_count, info->entry_count);
    EXPECT_EQ(copy->tombstone_count, info->tombstone_count);
    EXPECT_EQ(copy->raw_bytes, info->raw_bytes);
    EXPECT_EQ(copy->version_min, info->version_min);
    EXPECT_EQ(copy->version_max, info->version_max);
    EXPECT_EQ(table->properties().key_count, source->properties().key_count);
    EXPECT_EQ(table->properties().partition_count, source->properties().partition_count);
    if (every == 1) EXPECT_EQ(table->properties().data_bytes, source->properties().data_bytes);
    ++to;
  }
}

TEST_F(TableTest, ABlockThatReachesOverTheBoundsIsNotPassed) {
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 10; ++i) entries.push_back(Put(Key("p", std::to_string(i)), 1, "v"));
  ASSERT_TRUE(WriteTable(store_, ObjectId(1), entries).ok());  // One block.
  auto table = MustOpen(ObjectId(1));
  for (auto [lower, upper, whole] :
       {std::tuple{Key("p", "1"), std::string(), false}, std::tuple{std::string(), Key("p", "9"), false},
        std::tuple{Key("p", "0"), Key("p", "99"), true}}) {
    auto it = table->NewIterator(Direction::kForward,
                                 {.caching = IterCaching::kBypass, .lower = lower, .upper = upper});
    Status status;
    IterState state = it->SeekToFirst();
    while (state == IterState::kNeedsIo) {
      ASSERT_TRUE(RunBlocking(it->Fetch()).ok());
      state = it->state();
    }
    ASSERT_EQ(state, IterState::kEntry);
    EXPECT_EQ(it->AtBlockStart() && it->CurrentPassThrough().has_value(), whole);
  }
}

TEST_F(TableTest, ABlockChangedInMemoryIsNotPassed) {
  ASSERT_TRUE(WriteTable(store_, ObjectId(1), {Put(Key("p", "r"), 1, "value")}).ok());
  auto table = MustOpen(ObjectId(1));
  auto it =
      table->NewIterator(Direction::kForward, {.caching = IterCaching::kBypass, .lower = "", .upper = ""});
  IterState state = it->SeekToFirst();
  while (state == IterState::kNeedsIo) {
    ASSERT_TRUE(RunBlocking(it->Fetch()).ok());
    state = it->state();
  }
  std::optional<PassThroughBlock> passed = it->CurrentPassThrough();
  std::string changed(passed->stored);
  changed.back() ^= 4;
  passed->stored = changed;
  TableWriterOptions options;
  options.store = kTestStore;
  options.id = ObjectId(2);
  auto writer = RunBlocking(TableWriter::Create(store_, options));
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ((*writer)->AddBlock(*passed).code(), Code::kCorruption);
  RunBlocking((*writer)->Abandon());
}

}  // namespace
}  // namespace partita

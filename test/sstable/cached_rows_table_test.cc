#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "sstable/block_cache.h"
#include "sstable/cached_rows.h"
#include "sstable/data_block.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

// What a table's point reads leave in the cache: rows, blocks, or both.

std::string RowOf(uint64_t i) { return "r" + std::to_string(1'000'000 + i); }

// Entries of one partition with values of 1 KiB that do not compress.
std::vector<OwnedEntry> Rows(std::mt19937_64& random, uint64_t count) {
  std::vector<OwnedEntry> entries;
  for (uint64_t i = 0; i < count; ++i)
    entries.push_back(Put(Key("p", RowOf(i)), 1 + i, RandomBytes(random, 1024)));
  return entries;
}

class CachedRowsOfATableTest : public testing::Test {
 protected:
  void Write(const std::vector<OwnedEntry>& entries) {
    ASSERT_TRUE(WriteTable(store_, ObjectId(1), entries,
                           {.codec = Codec::kStored, .block_size = 12 * 1024, .zones = {}})
                    .ok());
    auto table = OpenTable(store_, cache_, ObjectId(1));
    ASSERT_TRUE(table.ok());
    table_ = *table;
  }

  // How a point read goes; true when it took none of the disk.
  bool Read(const OwnedEntry& entry, Version at_most = kVersionMax) {
    const KeyHash hash = HashKey(entry.user_key);
    BlockPin pin;
    TableLookup tried = table_->TryGet(hash, entry.user_key, at_most, &pin);
    const bool cached = !tried.needs_io;
    if (!cached) {
      Result<Lookup> got = RunBlocking(table_->Get(hash, entry.user_key, at_most, &pin));
      EXPECT_TRUE(got.ok()) << got.status().ToString();
      tried.lookup = *got;
    }
    EXPECT_EQ(tried.lookup.version, entry.version);
    if (entry.kind == EntryKind::kPut) EXPECT_EQ(tried.lookup.value, entry.value);
    if (entry.kind == EntryKind::kTombstone) EXPECT_EQ(tried.lookup.state, LookupState::kDeleted);
    return cached;
  }

  BlockKey KeyOfRow(const OwnedEntry& entry) {
    auto it = table_->NewIterator(Direction::kForward, {.caching = IterCaching::kBypass});
    Status status;
    IterState state = it->SeekToFirst();
    while (state != IterState::kEnd) {
      if (state == IterState::kNeedsIo) {
        status = RunBlocking(it->Fetch());
        EXPECT_TRUE(status.ok());
        state = it->state();
      } else if (it->entry().user_key == entry.user_key) {
        return CachedRowKey(it->block_key(), HashKey(entry.user_key).key);
      } else {
        state = it->Next();
      }
    }
    return {};
  }

  // Blocks of another object, until nothing of what was there is left but what is used meanwhile.
  void PassBlocks(uint64_t bytes) {
    for (uint64_t end = passed_ + bytes / 12'000; passed_ < end; ++passed_) {
      BlockFrame frame = cache_.NewFrame({ObjectId(99), passed_}, 12'000);
      (void)cache_.Insert({ObjectId(99), passed_}, std::move(frame), CachePriority::kScan);
    }
  }

  MemoryObjectStore store_;
  explicit CachedRowsOfATableTest(uint64_t cache_bytes = 4 << 20) : cache_(cache_bytes) {}

  BlockCache cache_;
  std::mt19937_64 random_{TestSeed()};
  std::shared_ptr<TableReader> table_;
  uint64_t passed_ = 0;
};

TEST_F(CachedRowsOfATableTest, WhereMemoryIsFullOneReadKeepsTheRowAndNotTheBlock) {
  const std::vector<OwnedEntry> entries = Rows(random_, 300);
  Write(entries);
  EXPECT_FALSE(Read(entries[100]));
  EXPECT_TRUE(Read(entries[101]));  // While there is memory, all of the block.
  EXPECT_EQ(cache_.statistics().rows, 0u);
  PassBlocks(8 << 20);
  EXPECT_FALSE(Read(entries[200]));
  EXPECT_TRUE(Read(entries[200]));
  EXPECT_FALSE(Read(entries[201]));
  EXPECT_GE(cache_.statistics().rows, 2u);
  cache_.CheckInvariants();
}

// So many rows that they are looked for before the filter and the index are asked.
TEST_F(CachedRowsOfATableTest, PopularRowsAreFoundByThemselvesAsWithTheirBlocks) {
  const std::vector<OwnedEntry> entries = Rows(random_, 12'000);
  Write(entries);
  PassBlocks(8 << 20);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 5; i < entries.size(); i += 12) Read(entries[i]);
  }
  EXPECT_GT(cache_.statistics().rows, 500u);
  uint64_t by_hash = 0;
  for (size_t i = 5; i < entries.size(); i += 12) {
    by_hash += static_cast<bool>(cache_.LookupRowByHash(ObjectId(1), HashKey(entries[i].user_key).key));
    // A version from before the row was written.
    BlockPin pin;
    const TableLookup before =
        table_->TryGet(HashKey(entries[i].user_key), entries[i].user_key, Version(i), &pin);
    EXPECT_TRUE(before.needs_io || before.lookup.state == LookupState::kAbsent);
    EXPECT_FALSE(pin);
  }
  EXPECT_GT(by_hash, 300u);
}

TEST_F(CachedRowsOfATableTest, ABlockThatIsReadAgainAndAgainIsKeptWhole) {
  const std::vector<OwnedEntry> entries = Rows(random_, 300);
  Write(entries);
  PassBlocks(8 << 20);
  int cached = 0;
  for (size_t i = 201; i < 209; ++i) cached += Read(entries[i]);
  EXPECT_GE(cached, 3);  // From the fifth on, but for where one block ends.
}

TEST_F(CachedRowsOfATableTest, ALargeRowIsKeptWithItsBlockAtOnce) {
  std::vector<OwnedEntry> entries = Rows(random_, 100);
  entries[30] = Put(Key("p", RowOf(30)), 31, RandomBytes(random_, 50'000));
  entries[60] = Put(Key("p", RowOf(60)), 61, RandomBytes(random_, 5'000));
  Write(entries);
  PassBlocks(8 << 20);
  for (const size_t i : {30u, 60u}) {
    EXPECT_FALSE(Read(entries[i]));
    EXPECT_TRUE(Read(entries[i])) << i;
  }
  EXPECT_EQ(cache_.statistics().rows, 0u);
  EXPECT_EQ(cache_.CountPinned(), 0u);
}

TEST_F(CachedRowsOfATableTest, ABlockThatGoesLeavesTheRowsThatWereRead) {
  const std::vector<OwnedEntry> entries = Rows(random_, 300);
  Write(entries);
  EXPECT_FALSE(Read(entries[100]));
  EXPECT_FALSE(Read(entries[150]));
  for (int i = 0; i < 30; ++i) {
    PassBlocks(1 << 20);
    EXPECT_TRUE(Read(entries[100]));
    EXPECT_TRUE(Read(entries[150]));
  }
  EXPECT_GE(cache_.statistics().rows, 2u);
  EXPECT_FALSE(Read(entries[102]));  // Not marked, so it went.
  cache_.CheckInvariants();
}

class RowsInALargeCacheTest : public CachedRowsOfATableTest {
 protected:
  RowsInALargeCacheTest() : CachedRowsOfATableTest(128 << 20) {}  // Of several partitions.
};

TEST_F(RowsInALargeCacheTest, BlocksThatGoLeaveRowsWhereTheyAreFound) {
  const std::vector<OwnedEntry> entries = Rows(random_, 4000);
  Write(entries);
  for (size_t i = 0; i < entries.size(); i += 20) EXPECT_FALSE(Read(entries[i]));
  for (int round = 0; round < 12; ++round) {
    PassBlocks(30 << 20);
    uint64_t cached = 0;
    for (size_t i = 0; i < entries.size(); i += 20) cached += Read(entries[i]);
    EXPECT_GE(cached, 195u) << round;
  }
  EXPECT_GE(cache_.statistics().rows, 195u);
  cache_.CheckInvariants();
}

TEST_F(CachedRowsOfATableTest, ABlockThatIsScannedIsNotGivenUpForOneRow) {
  const std::vector<OwnedEntry> entries = Rows(random_, 300);
  Write(entries);
  for (size_t i = 100; i < 111; ++i) Read(entries[i]);
  for (int round = 0; round < 20; ++round) {
    PassBlocks(1 << 20);
    for (int again = 0; again < 3; ++again) {
      auto it = table_->NewIterator(Direction::kForward, {.caching = IterCaching::kLookOnly});
      IterState state = it->Seek(entries[104].user_key);
      ASSERT_NE(state, IterState::kNeedsIo) << round;
    }
    EXPECT_TRUE(Read(entries[104])) << round;
  }
  EXPECT_EQ(cache_.statistics().rows, 0u);
}

TEST_F(CachedRowsOfATableTest, ARowOfMoreThanAPageStaysInItsBlock) {
  std::vector<OwnedEntry> entries = Rows(random_, 40);
  for (uint64_t v = 8; v > 0; --v)
    entries.insert(entries.end(), Put(Key("p", RowOf(50)), v, RandomBytes(random_, 1500)));
  Write(entries);
  const OwnedEntry& wanted = entries[40];
  EXPECT_FALSE(Read(wanted));
  for (int round = 0; round < 30; ++round) {
    PassBlocks(1 << 20);
    for (int again = 0; again < 3; ++again) EXPECT_TRUE(Read(wanted)) << round;
  }
  EXPECT_EQ(cache_.statistics().rows, 0u);
}

TEST_F(CachedRowsOfATableTest, SmallRowsAreKeptByTheBlock) {
  std::vector<OwnedEntry> entries;
  for (uint64_t i = 0; i < 3000; ++i)
    entries.push_back(Put(Key("p", RowOf(i)), 1 + i, RandomBytes(random_, 100)));
  Write(entries);
  PassBlocks(8 << 20);
  EXPECT_FALSE(Read(entries[1000]));
  EXPECT_TRUE(Read(entries[1000]));
  EXPECT_EQ(cache_.statistics().rows, 0u);
}

TEST_F(CachedRowsOfATableTest, ABlockOfWhichManyRowsAreReadStays) {
  const std::vector<OwnedEntry> entries = Rows(random_, 300);
  Write(entries);
  for (size_t i = 100; i < 111; ++i) Read(entries[i]);
  for (int round = 0; round < 20; ++round) {
    PassBlocks(1 << 20);
    for (size_t i = 100; i < 111; ++i) EXPECT_TRUE(Read(entries[i])) << round << " " << i;
  }
}

TEST_F(CachedRowsOfATableTest, OlderVersionsAndDeletionsAreAnsweredByTheRow) {
  std::vector<OwnedEntry> entries = Rows(random_, 100);
  const std::string key = Key("p", RowOf(50));
  entries[50] = Put(key, 1000, RandomBytes(random_, 800));
  entries.insert(entries.begin() + 51, {Tombstone(key, 900), Put(key, 800, RandomBytes(random_, 800))});
  Write(entries);
  PassBlocks(8 << 20);
  EXPECT_FALSE(Read(entries[51], Version(950)));
  EXPECT_TRUE(Read(entries[50]));
  EXPECT_TRUE(Read(entries[51], Version(900)));
  EXPECT_TRUE(Read(entries[52], Version(899)));
  BlockPin pin;
  EXPECT_EQ(table_->TryGet(HashKey(key), key, Version(799), &pin).lookup.state, LookupState::kAbsent);
}

TEST_F(CachedRowsOfATableTest, ARowOfAnotherKeyWithTheSameHashIsNoAnswer) {
  const std::vector<OwnedEntry> entries = Rows(random_, 100);
  Write(entries);
  PassBlocks(8 << 20);
  DataBlockBuilder builder;
  builder.Add(entries[7].view());
  std::string content;
  builder.Finish(&content);
  cache_.AddRow(KeyOfRow(entries[70]), content);
  EXPECT_FALSE(Read(entries[70]));
}

TEST_F(CachedRowsOfATableTest, PopularRowsAreAnsweredFromMemoryWhereBlocksWouldFindNoRoom) {
  const std::vector<OwnedEntry> entries = Rows(random_, 30'000);  // 33 MB, and a cache of 4 MiB.
  Write(entries);
  uint64_t cached = 0, asked = 0;
  for (int round = 0; round < 12; ++round) {
    for (size_t i = 0; i < entries.size(); i += 20) {  // 1,500 rows, each in a block of its own.
      const bool hit = Read(entries[i]);
      if (round >= 4) cached += hit, ++asked;
    }
    for (int i = 0; i < 300; ++i) Read(entries[random_() % entries.size()]);
  }
  EXPECT_GE(cached, asked * 9 / 10);  // Of the blocks a fifth fits.
  cache_.CheckInvariants();
}

TEST_F(CachedRowsOfATableTest, ReadingTogetherLeavesOutRowsThatAreThere) {
  const std::vector<OwnedEntry> entries = Rows(random_, 100);
  Write(entries);
  PassBlocks(8 << 20);
  EXPECT_FALSE(Read(entries[70]));
  const uint64_t reads = store_.reads();
  const std::vector<std::string_view> keys = {entries[70].user_key};
  EXPECT_TRUE(RunBlocking(table_->ReadTogether(keys)).ok());
  EXPECT_EQ(store_.reads(), reads);
}

}  // namespace
}  // namespace partita

#include "sstable/cached_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sstable/block_cache.h"
#include "sstable/data_block.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

// Of a row of some block.
BlockKey RowKey(uint64_t object, uint64_t key_hash) {
  return CachedRowKey({ObjectId(object), key_hash / 8 * 4096}, key_hash);
}

std::string RowOf(uint64_t i) { return "r" + std::to_string(1'000'000 + i); }

// A row as the cache takes it, whose bytes say which it is.
std::string ContentOf(uint64_t i, size_t size) {
  std::string content(size, static_cast<char>('a' + i % 26));
  std::memcpy(content.data(), &i, sizeof(i));
  return content;
}

bool Intact(const BlockPin& pin, uint64_t i, size_t size) { return pin.content() == ContentOf(i, size); }

// Entries of one partition with values of 1 KiB that do not compress.
std::vector<OwnedEntry> Rows(std::mt19937_64& random, uint64_t count) {
  std::vector<OwnedEntry> entries;
  for (uint64_t i = 0; i < count; ++i)
    entries.push_back(Put(Key("p", RowOf(i)), 1 + i, RandomBytes(random, 1024)));
  return entries;
}

TEST(CachedRowsTest, ARowIsFoundUntilEvictedOrDropped) {
  BlockCache cache(1 << 20);
  const BlockKey key = RowKey(1, 77);
  EXPECT_FALSE(cache.Lookup(key));
  cache.AddRow(key, ContentOf(1, 1000));
  cache.AddRow(key, ContentOf(2, 1000));  // The first one stays.
  EXPECT_TRUE(Intact(cache.Lookup(key), 1, 1000));
  EXPECT_FALSE(cache.Lookup(RowKey(2, 77)));
  EXPECT_FALSE(cache.Lookup({ObjectId(1), 77}));
  EXPECT_FALSE(cache.LookupRow(RowKey(1, 78)));
  EXPECT_TRUE(Intact(cache.LookupRow(key), 1, 1000));
  EXPECT_EQ(cache.statistics().rows, 1u);
  EXPECT_EQ(cache.statistics().blocks, 0u);
  {
    const BlockPin pin = cache.Lookup(key);
    cache.Drop(key);
    EXPECT_TRUE(Intact(pin, 1, 1000));
    EXPECT_TRUE(cache.Contains(key));
  }
  cache.Drop(key);
  EXPECT_FALSE(cache.Contains(key));
  EXPECT_EQ(cache.statistics().rows, 0u);
  cache.CheckInvariants();
}

TEST(CachedRowsTest, WhatIsTooLargeIsNotKept) {
  BlockCache cache(1 << 20);
  cache.AddRow(RowKey(1, 1), ContentOf(1, 20'000));
  EXPECT_EQ(cache.statistics().rows, 0u);
  BlockCache tiny(32 << 10);
  tiny.AddRow(RowKey(1, 1), ContentOf(1, 1000));
  tiny.CheckInvariants();
}

TEST(CachedRowsTest, RowsFillTheMemoryAndNeverMoreThanIt) {
  std::mt19937_64 random(TestSeed());
  BlockCache cache(4 << 20);
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < 30'000; ++i) {
    cache.AddRow(RowKey(1, i), ContentOf(i, 900 + random() % 300));
    if (i % 1000 == 0) cache.CheckInvariants();
  }
  for (uint64_t i = 0; i < 30'000; ++i) {
    const BlockPin pin = cache.Lookup(RowKey(1, i));
    if (!pin) continue;
    bytes += pin.content().size();
    EXPECT_TRUE(Intact(pin, i, pin.content().size()));
  }
  const CacheStatistics statistics = cache.statistics();
  EXPECT_LE(statistics.used_bytes, statistics.capacity_bytes);
  EXPECT_GT(bytes, statistics.capacity_bytes * 8 / 10);
  EXPECT_GT(statistics.evictions, 20'000u);
}

TEST(CachedRowsTest, RowsThatAreUsedStayWhileOthersPass) {
  BlockCache cache(4 << 20);
  constexpr uint64_t kHot = 1500;
  uint64_t found = 0, asked = 0, next = kHot;
  for (int round = 0; round < 30; ++round) {
    for (uint64_t i = 0; i < kHot; ++i) {
      const BlockKey key = RowKey(1, i);
      const BlockPin pin = cache.Lookup(key);
      if (pin) EXPECT_TRUE(Intact(pin, i, 1100));
      if (!pin) cache.AddRow(key, ContentOf(i, 1100));
      if (round >= 2) found += static_cast<bool>(pin), ++asked;
    }
    for (int i = 0; i < 700; ++i, ++next) cache.AddRow(RowKey(1, next), ContentOf(next, 1100));
  }
  EXPECT_GE(found, asked * 95 / 100);
  cache.CheckInvariants();
}

TEST(CachedRowsTest, PinnedRowsStayWhereTheyAre) {
  BlockCache cache(1 << 20);
  std::vector<BlockPin> pins;
  for (uint64_t i = 0; i < 5000; ++i) {
    cache.AddRow(RowKey(1, i), ContentOf(i, 700));
    if (i % 100 == 0) pins.push_back(cache.Lookup(RowKey(1, i)));
  }
  EXPECT_EQ(cache.CountPinned(), pins.size());
  for (uint64_t i = 0; i < pins.size(); ++i) EXPECT_TRUE(Intact(pins[i], i * 100, 700));
  cache.CheckInvariants();
  pins.clear();
  for (uint64_t i = 5000; i < 8000; ++i) cache.AddRow(RowKey(1, i), ContentOf(i, 700));
  cache.CheckInvariants();
}

TEST(CachedRowsTest, BlocksAndRowsTakeEachOthersMemory) {
  std::mt19937_64 random(TestSeed());
  BlockCache cache(2 << 20);
  std::vector<std::pair<uint64_t, BlockPin>> held;
  for (uint64_t i = 0; i < 30'000; ++i) {
    const bool rows = i / 5000 % 2 == 0;
    if (rows ? random() % 10 != 0 : random() % 10 == 0) {
      cache.AddRow(RowKey(1, i), ContentOf(i, 100 + random() % 1500));
      BlockPin pin = cache.Lookup(RowKey(1, i));
      if (pin && random() % 8 == 0) held.emplace_back(i, std::move(pin));
    } else {
      const BlockKey key{ObjectId(1), i};
      BlockFrame frame = cache.NewFrame(key, 1000 + random() % 20'000);
      std::memset(frame.data(), 0, frame.size());
      (void)cache.Insert(key, std::move(frame), static_cast<CachePriority>(random() % 3));
      if (random() % 4 == 0) cache.Drop(key);
    }
    if (held.size() > 20) {
      EXPECT_TRUE(Intact(held[0].second, held[0].first, held[0].second.content().size()));
      held.erase(held.begin());
    }
    if (i % 500 == 0) cache.CheckInvariants();
  }
  held.clear();
  EXPECT_LE(cache.statistics().used_bytes, cache.statistics().capacity_bytes);
}

TEST(CachedRowsTest, ABlockIsMissedOftenAtTheFourthTime) {
  BlockCache cache(1 << 20);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(cache.MissedOften({ObjectId(1), 8192})) << i;
    EXPECT_TRUE(cache.MissedOften({ObjectId(1), 8192}));
  }
}

TEST(CachedRowsTest, ACutRowHasAllVersionsOfItsKeyAndNoOther) {
  const std::vector<OwnedEntry> entries = {Put(Key("p", "a"), 3, "x"), Put(Key("p", "b"), 9, "new"),
                                           Tombstone(Key("p", "b"), 7), Put(Key("p", "b"), 4, "old"),
                                           Put(Key("p", "c"), 2, "y")};
  DataBlockBuilder builder;
  for (const OwnedEntry& entry : entries) builder.Add(entry.view());
  std::string content;
  builder.Finish(&content);
  for (uint32_t at = 1; at <= 3; ++at) {
    const BlockKey key{ObjectId(5), 8192};
    const CachedRow row = CutRow(key, DataBlock(content), at);
    EXPECT_EQ(row.key, CachedRowKey(key, HashKey(entries[1].user_key).key));
    EXPECT_EQ(row.key.object, key.object);
    EXPECT_TRUE(IsCachedRow(row.key));
    ASSERT_TRUE(DataBlock::Validate(row.content).ok());
    const DataBlock block(row.content);
    ASSERT_EQ(block.size(), 3u);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(block.Key(i), entries[1 + i].user_key);
      EXPECT_EQ(block.version(i), entries[1 + i].version);
      EXPECT_EQ(block.kind(i), entries[1 + i].kind);
      EXPECT_EQ(block.value(i), entries[1 + i].value);
    }
  }
}

// ---- Through a table.

class CachedRowsOfATableTest : public testing::Test {
 protected:
  void Write(const std::vector<OwnedEntry>& entries) {
    ASSERT_TRUE(WriteTable(store_, ObjectId(1), entries,
                           {.compression = Compression::None(), .block_size = 12 * 1024, .zones = {}})
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
  RunBlocking(table_->ReadTogether(keys));
  EXPECT_EQ(store_.reads(), reads);
}

TEST(CachedRowsTest, NoPageIsLost) {
  // Blocks, every second one read, up to any point of the hand's way; then the first page is taken.
  std::mt19937_64 random(TestSeed());
  std::string content;
  DataBlockBuilder builder;
  for (uint64_t i = 0; i < 11; ++i)
    builder.Add(Put(Key("p", RowOf(i)), 1 + i, RandomBytes(random, 1024)).view());
  builder.Finish(&content);
  for (uint64_t blocks = 150; blocks < 260; ++blocks) {
    BlockCache cache(2 << 20);
    for (uint64_t i = 0; i < blocks; ++i) {
      const BlockKey key{ObjectId(1), i * 4096};
      BlockFrame frame = cache.NewFrame(key, content.size());
      std::memcpy(frame.data(), content.data(), content.size());
      BlockPin pin = cache.Insert(key, std::move(frame), CachePriority::kPoint);
      if (i % 2 == 0) pin.MarkEntry(i % 11);
    }
    for (uint64_t i = 0; i < 40; ++i) cache.AddRow(RowKey(2, i), ContentOf(i, 1100));
    for (uint64_t i = 0; i < blocks; ++i) cache.Drop({ObjectId(1), i * 4096});
    for (uint64_t i = 0; i < 200; ++i) {  // What is left of rows goes with these.
      const BlockKey key{ObjectId(3), i * 4096};
      (void)cache.Insert(key, cache.NewFrame(key, 150'000), CachePriority::kPoint);
    }
    cache.CheckInvariants();
    for (uint64_t i = 0; i < 200; ++i) cache.Drop({ObjectId(3), i * 4096});
    // The open page and the spare one.
    EXPECT_LE(cache.statistics().used_bytes, 2u * 8192) << blocks;
  }
}

// Under TSan this also proves the ordering that block_cache.cc claims, of blocks that leave rows behind.
TEST(CachedRowsTest, ManyThreadsSeeOnlyWholeBlocksAndTheirRows) {
  std::mt19937_64 shared(TestSeed());
  std::string content;
  std::vector<OwnedEntry> entries;
  DataBlockBuilder builder;
  for (uint64_t i = 0; i < 11; ++i) {
    entries.push_back(Put(Key("p", RowOf(i)), 1 + i, RandomBytes(shared, 900)));
    builder.Add(entries.back().view());
  }
  builder.Finish(&content);
  BlockCache cache(1 << 20);
  std::atomic<uint64_t> wrong{0}, rows_found{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(TestSeed() + t);
      for (int step = 0; step < 6'000; ++step) {
        const BlockKey key{ObjectId(1), random() % 200 * 4096};
        const auto at = static_cast<uint32_t>(random() % 11 * (random() % 3 == 0));
        const OwnedEntry& entry = entries[at];
        BlockPin pin = cache.Lookup(key);
        if (!pin) {
          pin = cache.LookupRow(CachedRowKey(key, HashKey(entry.user_key).key));
          rows_found.fetch_add(static_cast<bool>(pin), std::memory_order_relaxed);
        }
        if (!pin) {
          BlockFrame frame = cache.NewFrame(key, content.size());
          std::memcpy(frame.data(), content.data(), content.size());
          pin = cache.Insert(key, std::move(frame), CachePriority::kPoint);
        }
        uint32_t found_at = 0;
        const Lookup found = DataBlock(pin.content()).Find(entry.user_key, kVersionMax, &found_at);
        if (found.state != LookupState::kFound || found.value != entry.value) wrong.fetch_add(1);
        pin.MarkEntry(found_at);
        pin.Release();
        if (random() % 50 == 0) cache.Drop(CachedRowKey(key, HashKey(entry.user_key).key));
        if (random() % 50 == 0) cache.Drop(key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GT(rows_found.load(), 100u);
  EXPECT_EQ(cache.CountPinned(), 0u);
  cache.CheckInvariants();
}

// Under TSan this also proves the ordering that block_cache.cc claims, of rows that move.
TEST(CachedRowsTest, ManyThreadsSeeOnlyWholeRows) {
  BlockCache cache(1 << 20);
  std::atomic<uint64_t> wrong{0}, found{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, &wrong, &found, t] {
      std::mt19937_64 random(TestSeed() + t);
      std::vector<std::pair<uint64_t, BlockPin>> held;
      for (int step = 0; step < 8'000; ++step) {
        const uint64_t i = random() % (step % 3 == 0 ? 300 : 3000);
        const BlockKey key = RowKey(1, i);
        BlockPin pin = cache.Lookup(key);
        if (!pin) {
          cache.AddRow(key, ContentOf(i, 500 + i % 600));
          continue;
        }
        found.fetch_add(1, std::memory_order_relaxed);
        if (!Intact(pin, i, 500 + i % 600)) wrong.fetch_add(1);
        if (random() % 8 == 0) held.emplace_back(i, std::move(pin));
        if (held.size() > 5) {
          if (!Intact(held[0].second, held[0].first, 500 + held[0].first % 600)) wrong.fetch_add(1);
          held.erase(held.begin());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GT(found.load(), 1000u);
  EXPECT_EQ(cache.CountPinned(), 0u);
  cache.CheckInvariants();
}

}  // namespace
}  // namespace partita

#include "sstable/cached_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/checksum.h"
#include "sstable/block_cache.h"
#include "sstable/data_block.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

// Of a row of some block.
BlockKey RowKey(uint64_t object, uint64_t key_hash) {
  return CachedRowKey({ObjectId(object), key_hash / 8 * 4096}, key_hash);
}

uint64_t HashOf(uint64_t i) { return Hash64({reinterpret_cast<const char*>(&i), sizeof i}); }

// A row as the cache takes it, whose bytes say which it is.
std::string ContentOf(uint64_t i, size_t size) {
  std::string content(size, static_cast<char>('a' + i % 26));
  std::memcpy(content.data(), &i, sizeof(i));
  return content;
}

bool Intact(const BlockPin& pin, uint64_t i, size_t size) { return pin.content() == ContentOf(i, size); }

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

TEST(CachedRowsTest, ARowWithoutOtherVersionsIsWhatABuilderMakesOfIt) {
  std::mt19937_64 random(TestSeed());
  std::vector<OwnedEntry> entries;
  for (uint64_t i = 0; i < 40; ++i) {
    const std::string key = Key("p", "r" + std::to_string(100 + i) + std::string(random() % 20, 'k'));
    entries.push_back(i % 5 == 1 ? Tombstone(key, 1'000 + i)
                                 : Put(key, 1'000 + i, RandomBytes(random, i * 7)));
  }
  for (size_t count : {1, 2, 40}) {
    DataBlockBuilder builder, alone;
    for (size_t i = 0; i < count; ++i) builder.Add(entries[i].view());
    std::string content;
    builder.Finish(&content);
    for (uint32_t i = 0; i < count; ++i) {
      alone.Add(entries[i].view());
      std::string expected, made = "what was there";
      alone.Finish(&expected);
      DataBlock(content).AloneTo(i, &made);
      EXPECT_EQ(made, expected) << i << " of " << count;
    }
  }
}

TEST(CachedRowsTest, NoPageIsLost) {
  // Blocks, every second one read, up to any point of the hand's way; then the first page is taken.
  std::mt19937_64 random(TestSeed());
  std::string content;
  DataBlockBuilder builder;
  for (uint64_t i = 0; i < 11; ++i)
    builder.Add(Put(Key("p", std::to_string(100 + i)), 1 + i, RandomBytes(random, 1024)).view());
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
    entries.push_back(Put(Key("p", std::to_string(100 + i)), 1 + i, RandomBytes(shared, 900)));
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

// Enough rows that they are looked for by their hashes: a sixteenth of the slots.
TEST(CachedRowsTest, RowsAreFoundByTheirHashesWithoutTheirBlocks) {
  BlockCache cache(4 << 20);
  const auto key_of = [&](uint64_t i) { return CachedRowKey({ObjectId(1), i / 12 * 4096}, HashOf(i)); };
  cache.AddRow(key_of(0), ContentOf(0, 1000));
  EXPECT_FALSE(cache.LookupRowByHash(ObjectId(1), HashOf(0)));  // Too few.
  constexpr uint64_t kRows = 2500;
  for (uint64_t i = 1; i < kRows; ++i) cache.AddRow(key_of(i), ContentOf(i, 1000));
  const uint64_t hits = cache.statistics().hits;
  uint64_t found = 0, again = 0;
  for (uint64_t i = 0; i < kRows; ++i) {
    BlockPin pin = cache.LookupRowByHash(ObjectId(1), HashOf(i));
    if (pin) EXPECT_TRUE(Intact(pin, i, 1000));
    found += static_cast<bool>(pin);
    EXPECT_FALSE(cache.LookupRowByHash(ObjectId(2), HashOf(i)));
    EXPECT_FALSE(cache.LookupRowByHash(ObjectId(1), HashOf(i + kRows)));
    pin.Release();
    // Where another's place is the same, the one looked up last has it.
    (void)cache.LookupRow(key_of(i));
    again += static_cast<bool>(cache.LookupRowByHash(ObjectId(1), HashOf(i)));
  }
  EXPECT_GT(found, kRows / 2);
  EXPECT_EQ(again, kRows);
  EXPECT_EQ(cache.statistics().hits, hits + found + kRows + again);
  for (uint64_t i = 0; i < kRows; i += 2) cache.Drop(key_of(i));
  for (uint64_t i = 0; i < kRows; i += 2) EXPECT_FALSE(cache.LookupRowByHash(ObjectId(1), HashOf(i)));
  cache.CheckInvariants();
}

// Under TSan this also proves the ordering that block_cache.cc claims, of rows that move.
TEST(CachedRowsTest, ManyThreadsSeeOnlyWholeRows) {
  BlockCache cache(1 << 20);
  std::atomic<uint64_t> wrong{0}, found{0}, by_hash{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, &wrong, &found, &by_hash, t] {
      std::mt19937_64 random(TestSeed() + t);
      std::vector<std::pair<uint64_t, BlockPin>> held;
      for (int step = 0; step < 8'000; ++step) {
        const uint64_t i = random() % (step % 3 == 0 ? 300 : 3000);
        const BlockKey key = RowKey(1, HashOf(i));
        BlockPin pin = cache.LookupRowByHash(ObjectId(1), HashOf(i));
        by_hash.fetch_add(static_cast<bool>(pin), std::memory_order_relaxed);
        if (!pin) pin = cache.Lookup(key);
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
  EXPECT_GT(by_hash.load(), 100u);
  EXPECT_EQ(cache.CountPinned(), 0u);
  cache.CheckInvariants();
}

}  // namespace
}  // namespace partita

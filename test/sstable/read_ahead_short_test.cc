// How much short scans read, and in how many reads: what they know of their end, and what the cache has.
#include <gtest/gtest.h>

#include "sstable/read_ahead_pool.h"
#include "test/sstable/read_ahead_fixture.h"
#include "test/support/late_executor.h"

namespace partita {
namespace {

// A scan of `limit` entries, from `first` on.
struct ShortScan {
  uint64_t limit = 100;
  size_t first = 0;
  uint64_t expected = 0;  // IterOptions::entries_expected.
  double share = 1;
  bool bounded = false;  // Its far bound is behind the last one.
  // So many from `first` + cached_from on were read before.
  size_t cached_from = 0, cached = 0;
};
struct Reads {
  uint64_t bytes = 0;
  uint64_t count = 0;
};

// What it reads of one table, whose index blocks are in the cache.
Reads ReadsOf(const ShortScan& scan) {
  MemoryObjectStore store;
  const std::vector<OwnedEntry> entries = ManyEntries(TestSeed());
  EXPECT_TRUE(RunBlocking(WriteOn(store, entries)).ok());
  BlockCache cache(8 << 20);
  auto files = RunBlocking(OpenAll(store, cache, /*tables=*/1));
  EXPECT_TRUE(files.ok());
  LateExecutor helpers;
  ReadAheadPool pool(helpers, kPoolBytes);
  const auto walk = [&](size_t first, size_t limit, IterCaching caching, IterOptions options) {
    options.caching = caching;
    options.read_ahead = &pool;
    options.lower = entries[first].user_key;
    auto it = CursorOver(*files, Direction::kForward, options);
    std::vector<OwnedEntry> got;
    EXPECT_TRUE(RunBlocking(ReadAll(*it, it->SeekToFirst(), limit, &got)).ok());
    EXPECT_EQ(got.size(), limit);
  };
  // Reading the last key of each index block leaves the index block in the cache, and the one data block.
  const TableReader& table = *(*files)[0].table;
  for (uint32_t i = 0; i < table.top_index().size(); ++i) {
    std::string key;
    table.top_index().KeyTo(i, &key);
    BlockPin pin;
    EXPECT_TRUE(RunBlocking(table.Get(HashKey(key), key, kVersionMax, &pin)).ok());
  }
  if (scan.cached > 0) {
    const size_t begin = scan.first + scan.cached_from;
    walk(begin, scan.cached, IterCaching::kFill, {.upper = entries[begin + scan.cached].user_key});
  }
  const uint64_t bytes = store.read_bytes(), count = store.reads();
  IterOptions options{.entries_expected = scan.expected, .expected_share = scan.share};
  if (scan.bounded) options.upper = entries[scan.first + scan.limit].user_key;
  walk(scan.first, scan.limit, IterCaching::kLookOnly, options);
  const Reads reads{store.read_bytes() - bytes, store.reads() - count};
  helpers.RunAll();
  RunBlocking(pool.Join());
  return reads;
}

constexpr uint64_t kShortEntryBytes = 530;  // About.
constexpr uint64_t kSlackBytes = 24 << 10;

TEST(ReadAheadShortTest, AScanWhoseEndIsKnownReadsAllOfItAtOnce) {
  for (const size_t first : {0, 777, 2500}) {
    const Reads bounded = ReadsOf({.limit = 100, .first = first, .bounded = true});
    EXPECT_EQ(bounded.count, 1u);
    EXPECT_LT(bounded.bytes, 100 * kShortEntryBytes + kSlackBytes);
    const Reads expected = ReadsOf({.limit = 100, .first = first, .expected = 100});
    EXPECT_LE(expected.count, 2u);  // Its entries may be larger than others.
    EXPECT_LT(expected.bytes, 100 * kShortEntryBytes + 2 * kSlackBytes);
    // The bound is nearer than what is expected, and the other way round.
    const Reads few = ReadsOf({.limit = 20, .first = first, .expected = 1000, .bounded = true});
    EXPECT_EQ(few.count, 1u);
    EXPECT_LT(few.bytes, 20 * kShortEntryBytes + kSlackBytes);
    EXPECT_GT(ReadsOf({.limit = 100, .first = first}).count, 2u);
  }
  // A range too large for one piece begins with little, as its reader may have enough soon.
  EXPECT_GT(ReadsOf({.limit = 1000, .bounded = true}).count, 4u);
}

TEST(ReadAheadShortTest, WhatTheCacheHasIsNotReadAlongWithTheFirstPiece) {
  const Reads none = ReadsOf({.limit = 100, .bounded = true});
  const Reads front = ReadsOf({.limit = 100, .bounded = true, .cached = 60});
  EXPECT_EQ(front.count, 1u);
  EXPECT_LT(front.bytes, none.bytes * 6 / 10);
  EXPECT_EQ(ReadsOf({.limit = 100, .bounded = true, .cached = 100}).bytes, 0u);
  // What it has does not make the scan look for more behind it.
  const Reads ahead = ReadsOf({.limit = 10, .expected = 20, .cached_from = 12, .cached = 3000});
  EXPECT_EQ(ahead.count, 1u);
  EXPECT_LT(ahead.bytes, kSlackBytes);
  // What the scan used of the cache is no more to come.
  EXPECT_LT(ReadsOf({.limit = 300, .expected = 300, .cached = 280}).bytes,
            20 * kShortEntryBytes + kSlackBytes);
  EXPECT_LT(ReadsOf({.limit = 1000, .expected = 1000, .cached_from = 40, .cached = 900}).bytes,
            100 * kShortEntryBytes + 5 * kSlackBytes);
}

// One of many cursors that go on together: of what is expected of all it reads its own share at first.
TEST(ReadAheadShortTest, ACursorWithAShareOfTheScanBeginsWithThatMuch) {
  EXPECT_LT(ReadsOf({.limit = 3, .expected = 200, .share = 0.01}).bytes, kSlackBytes);
  EXPECT_LT(ReadsOf({.limit = 3, .expected = 200, .share = 0.3}).bytes, 60 * kShortEntryBytes + kSlackBytes);
  EXPECT_GT(ReadsOf({.limit = 3, .expected = 200}).bytes, 200 * kShortEntryBytes);
}

TEST(ReadAheadShortTest, AScanThatUsesMoreThanItExpectedGoesOnAsOneThatExpectedNothing) {
  const Reads reads = ReadsOf({.limit = 5000, .expected = 10});
  EXPECT_LE(reads.count, ReadsOf({.limit = 5000}).count + 3);
}

// Bytes read by a scan of `limit` entries, from `first` on, that says how many it will use, or does not.
uint64_t BytesRead(uint64_t limit, uint64_t entries_expected, size_t tables = 1, size_t first = 0) {
  MemoryObjectStore store;
  const std::vector<OwnedEntry> entries = ManyEntries(TestSeed());
  EXPECT_TRUE(RunBlocking(WriteOn(store, entries, tables)).ok());
  BlockCache cache(1 << 20);
  auto files = RunBlocking(OpenAll(store, cache, tables));
  EXPECT_TRUE(files.ok());
  LateExecutor helpers;
  ReadAheadPool pool(helpers, kPoolBytes);
  const uint64_t before = store.read_bytes();
  {
    auto it = CursorOver(
        *files, Direction::kForward,
        {.lower = entries[first].user_key, .read_ahead = &pool, .entries_expected = entries_expected});
    std::vector<OwnedEntry> got;
    EXPECT_TRUE(RunBlocking(ReadAll(*it, it->SeekToFirst(), limit, &got)).ok());
    EXPECT_EQ(got.size(), limit);
  }
  helpers.RunAll();
  RunBlocking(pool.Join());
  return store.read_bytes() - before;
}

TEST(ReadAheadShortTest, AShortScanReadsLittleMoreThanItUses) {
  constexpr uint64_t kEntryBytes = 560;  // About, with its share of the index.
  EXPECT_LT(BytesRead(100, 100), 2 * 100 * kEntryBytes + (32 << 10));
  EXPECT_LT(BytesRead(100, 0), 2 * 100 * kEntryBytes + (32 << 10));
  EXPECT_LT(BytesRead(1000, 1000), 3 * 1000 * kEntryBytes / 2);
  EXPECT_LT(BytesRead(1000, 0), 3 * 1000 * kEntryBytes);
  // Where it ends, and where it goes on in the next file.
  EXPECT_LT(BytesRead(1000, 1000, /*tables=*/3, /*first=*/980), 7 * 1000 * kEntryBytes / 4);
  EXPECT_LT(BytesRead(1000, 1000, /*tables=*/3, /*first=*/1400), 7 * 1000 * kEntryBytes / 4);
  EXPECT_LT(BytesRead(590, 0, /*tables=*/3, /*first=*/1400), 3 * 590 * kEntryBytes);
}

}  // namespace
}  // namespace partita

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/coding.h"
#include "sstable/block_cache.h"
#include "sstable/cached_rows.h"
#include "sstable/data_block.h"
#include "sstable/part_format.h"
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
  void Write(const std::vector<OwnedEntry>& entries, Codec codec = Codec::kStored) {
    ASSERT_TRUE(
        WriteTable(store_, ObjectId(1), entries, {.codec = codec, .block_size = 12 * 1024, .zones = {}})
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

// covers: F52. As for who found that it is not what was written.
TEST_F(CachedRowsOfATableTest, WhatIsReadAnewIsNotTakenFromTheCacheAndNotLeftThere) {
  const std::vector<OwnedEntry> entries = Rows(random_, 300);
  Write(entries);
  for (const bool alone : {false, true}) {
    const OwnedEntry& entry = entries[alone ? 200 : 100];
    const KeyHash hash = HashKey(entry.user_key);
    if (alone) PassBlocks(8 << 20);
    Read(entry);
    EXPECT_EQ(cache_.statistics().rows > 0, alone);
    {
      BlockPin pin;
      EXPECT_TRUE(RunBlocking(table_->GetAnew(hash, entry.user_key, kVersionMax, &pin)).ok());
      EXPECT_TRUE(Read(entry)) << "what is as in the file stays";
    }
    for (const bool is_used : {true, false}) {
      BlockPin kept, pin;
      const TableLookup cached = table_->TryGet(hash, entry.user_key, kVersionMax, &kept);
      ASSERT_FALSE(cached.needs_io);
      const_cast<char&>(cached.lookup.value.back()) ^= 1;
      if (!is_used) kept.Release();
      const Result<Lookup> anew = RunBlocking(table_->GetAnew(hash, entry.user_key, kVersionMax, &pin));
      ASSERT_TRUE(anew.ok()) << anew.status().ToString();
      EXPECT_EQ(anew->value, entry.value);
      if (is_used) const_cast<char&>(cached.lookup.value.back()) ^= 1;
    }
    EXPECT_FALSE(Read(entry));
  }
  cache_.CheckInvariants();
}

// Of a compressed block, too, which is decoded no further than to the row.
TEST_F(CachedRowsOfATableTest, EachRowOfACompressedBlockComesAlone) {
  std::vector<OwnedEntry> entries;
  for (uint64_t i = 0; i < 600; ++i) {
    const std::string key = Key("p", RowOf(i));
    const std::string value = RandomBytes(random_, 1 + random_() % 600) + std::string(random_() % 600, 'z');
    if (i % 7 == 3) entries.push_back(Tombstone(key, 9'000 + i));
    entries.push_back(Put(key, 5'000 + i, value));
    if (i % 5 == 2) entries.push_back(Put(key, 1 + i, value.substr(value.size() / 2)));
  }
  Write(entries, Codec::kLz4);
  PassBlocks(8 << 20);
  const uint64_t misses = cache_.statistics().misses;
  uint64_t from_disk = 0;
  for (const OwnedEntry& entry : entries) from_disk += !Read(entry, entry.version);
  EXPECT_GE(cache_.statistics().misses - misses, from_disk);
  EXPECT_LE(cache_.statistics().misses - misses, from_disk + 2) << "an index";
  EXPECT_GT(from_disk, 50u);
  EXPECT_GT(cache_.statistics().rows, 30u);
  for (const OwnedEntry& entry : entries) Read(entry, entry.version);
  for (uint64_t i = 0; i < 600; ++i) {  // Between the rows, and from before them.
    for (const std::string& key : {Key("p", RowOf(i) + "0"), Key("p", RowOf(i))}) {
      BlockPin pin;
      Result<Lookup> got = RunBlocking(table_->Get(HashKey(key), key, Version(0), &pin));
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      EXPECT_EQ(got->state, LookupState::kAbsent);
      EXPECT_FALSE(pin);
    }
  }
  cache_.CheckInvariants();
}

// covers: F43 F77. What stands behind a row is not decoded for it, and damage there is that of other rows.
TEST_F(CachedRowsOfATableTest, ARowIsReadOfABlockThatDoesNotDecodeBehindIt) {
  const std::string_view words[] = {"delivered ", "customer ", "status ", "amount ", "of "};
  std::vector<OwnedEntry> entries;
  for (uint64_t i = 0; i < 10; ++i) {
    std::string value;
    while (value.size() < 1'000) value.append(words[random_() % 5]).append(std::to_string(random_() % 100));
    entries.push_back(Put(Key("p", RowOf(i)), 1 + i, value));
  }
  Write(entries, Codec::kLz4);
  auto it = table_->NewIterator(Direction::kForward, {.caching = IterCaching::kBypass});
  ASSERT_EQ(it->SeekToFirst(), IterState::kNeedsIo);
  ASSERT_TRUE(RunBlocking(it->Fetch()).ok());
  const uint64_t offset = it->block_key().offset;
  const auto part_at = [&](std::string& file) { return file.data() + offset; };
  std::string file = store_.bytes(ObjectId(1));
  const uint32_t size = LoadLe32(part_at(file) + 8);
  ASSERT_EQ(static_cast<Codec>(part_at(file)[22]), Codec::kLz4);
  std::fill_n(part_at(file) + size - 200, 200, '\xff');  // Literals without end.
  const Identity identity = PartIdentity(kTestStore, ObjectId(1), offset, SealKind::kDataBlock);
  StoreLe64(part_at(file), PartContentHash({part_at(file), size}) ^ identity.Mix());
  file[table_->footer().key_filter.offset + kPartHeaderSize] ^=
      1;  // So that it is asked for keys it has not.
  store_.Put(ObjectId(1), std::move(file));
  auto opened = OpenTable(store_, cache_, ObjectId(1));
  ASSERT_TRUE(opened.ok());
  table_ = *opened;
  PassBlocks(8 << 20);

  EXPECT_FALSE(Read(entries[1]));
  EXPECT_TRUE(Read(entries[1])) << "the row is kept";
  BlockPin pin;
  const std::string none = Key("p", RowOf(1) + "0");
  Result<Lookup> absent = RunBlocking(table_->Get(HashKey(none), none, kVersionMax, &pin));
  ASSERT_TRUE(absent.ok()) << absent.status().ToString();
  EXPECT_EQ(absent->state, LookupState::kAbsent);
  EXPECT_EQ(cache_.faults().damaged_parts.load(), 0u);
  const std::string& last = entries.back().user_key;
  Result<Lookup> damaged = RunBlocking(table_->Get(HashKey(last), last, kVersionMax, &pin));
  EXPECT_EQ(damaged.code(), Code::kCorruption);
  EXPECT_EQ(cache_.faults().damaged_parts.load(), 1u);
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

#include "memtable/memtable.h"

#include <gmock/gmock-matchers.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/base/user_key.h"
#include "memtable/memtable_iterator.h"
#include "test/memtable/memtable_fixture.h"

namespace partita {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

Seen PutSeen(std::string key, uint64_t version, std::string value) {
  return {std::move(key), version, EntryKind::kPut, std::move(value)};
}

TEST(MemtableTest, AnEmptyOneAnswersAbsentAndTakesNoMemory) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  EXPECT_TRUE(memtable.empty());
  EXPECT_EQ(memtable.Get("a", kVersionMax).state, LookupState::kAbsent);
  EXPECT_FALSE(memtable.HoldsAnyOf("", "\xFF"));
  EXPECT_TRUE(ScanAll(memtable, Direction::kForward).empty());
  EXPECT_TRUE(ScanAll(memtable, Direction::kBackward).empty());
  EXPECT_TRUE(ScanFrom(memtable, Direction::kForward, "a").empty());
  EXPECT_TRUE(ScanFrom(memtable, Direction::kBackward, "a").empty());
  EXPECT_EQ(pool.used_bytes(), 0u);
  memtable.CheckInvariants();
}

TEST(MemtableTest, AReservedButEmptyOneAnswersAbsent) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  ASSERT_TRUE(memtable.Reserve(10));
  EXPECT_EQ(memtable.Get("a", kVersionMax).state, LookupState::kAbsent);
  EXPECT_TRUE(ScanAll(memtable, Direction::kBackward).empty());
  // What the smallest memtable costs.
  EXPECT_LT(memtable.memory_used(), 64u << 10);
}

TEST(MemtableTest, ATombstoneAnswersDeletedNotAbsent) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  Put(memtable, "k", 5, "value");
  Delete(memtable, "k", 7);
  ExpectSameLookup(memtable.Get("k", kVersionMax), {LookupState::kDeleted, Version(7), ""});
  ExpectSameLookup(memtable.Get("k", Version(6)), {LookupState::kFound, Version(5), "value"});
  ExpectSameLookup(memtable.Get("k", Version(5)), {LookupState::kFound, Version(5), "value"});
  EXPECT_EQ(memtable.Get("k", Version(4)).state, LookupState::kAbsent);
}

TEST(MemtableTest, ATombstoneIsHeldToo) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  Put(memtable, "b", 1, "value");
  Delete(memtable, "d", 2);
  EXPECT_TRUE(memtable.HoldsAnyOf("d", "d"));
  EXPECT_TRUE(memtable.HoldsAnyOf("a", "b"));
  EXPECT_TRUE(memtable.HoldsAnyOf("c", "z"));
  EXPECT_FALSE(memtable.HoldsAnyOf("c", "cz"));
  EXPECT_FALSE(memtable.HoldsAnyOf("da", "z"));
  EXPECT_FALSE(memtable.HoldsAnyOf("", "az"));
}

// Key and version of what counts as read.
std::vector<std::pair<std::string, uint64_t>> WasRead(const Memtable& memtable) {
  std::vector<std::pair<std::string, uint64_t>> read;
  MemtableIterator at(memtable, Direction::kForward, kVersionMax);
  for (IterState state = at.SeekToFirst(); state == IterState::kEntry; state = at.Next()) {
    if (at.was_read()) read.emplace_back(at.entry().user_key, at.entry().version.value);
  }
  return read;
}

TEST(MemtableTest, WhatWasReadIsToldWithWhatTookItsPlace) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  for (const char* key : {"a", "b", "c", "d"}) Put(memtable, key, 1, "value");
  EXPECT_THAT(WasRead(memtable), IsEmpty());
  (void)memtable.Get("b", kVersionMax);
  (void)memtable.Get("b", kVersionMax);
  (void)memtable.Get("x", kVersionMax);
  (void)memtable.HoldsAnyOf("a", "d");
  EXPECT_THAT(WasRead(memtable), ElementsAre(Pair("b", 1)));
  Put(memtable, "b", 2, "value");
  Delete(memtable, "b", 3);
  Put(memtable, "c", 2, "value");
  (void)memtable.Get("c", Version(1));  // No newer one is read by that.
  EXPECT_THAT(WasRead(memtable), ElementsAre(Pair("b", 3), Pair("b", 2), Pair("b", 1), Pair("c", 1)));
  ExpectSameLookup(memtable.Get("b", kVersionMax), {LookupState::kDeleted, Version(3), ""});
  ExpectSameLookup(memtable.Get("c", Version(1)), {LookupState::kFound, Version(1), "value"});
}

TEST(MemtableTest, AnInsertMayCountAsReadFromTheBeginning) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  ASSERT_TRUE(memtable.Reserve(2));
  memtable.Insert({"a", Version(1), EntryKind::kPut, "value"}, /*was_read=*/true);
  memtable.Insert({"b", Version(2), EntryKind::kTombstone, ""}, /*was_read=*/false);
  EXPECT_THAT(WasRead(memtable), ElementsAre(Pair("a", 1)));
  EXPECT_EQ(memtable.Get("b", kVersionMax).state, LookupState::kDeleted);
}

TEST(MemtableTest, VersionsAreNeverCut) {
  ChunkPool pool(8 * kMiB);
  Memtable memtable(pool);
  for (uint64_t v = 1; v <= 5000; ++v) Put(memtable, "hot", v, std::to_string(v));
  for (uint64_t v : {1u, 2u, 2500u, 5000u}) {
    ExpectSameLookup(memtable.Get("hot", Version(v)), {LookupState::kFound, Version(v), std::to_string(v)});
  }
  EXPECT_EQ(ScanAll(memtable, Direction::kForward).size(), 5000u);
  EXPECT_EQ(memtable.entry_count(), 5000u);
  EXPECT_EQ(memtable.version_max(), Version(5000));
}

TEST(MemtableTest, CountsWhatItHolds) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  Put(memtable, "abc", 9, "12345");
  Put(memtable, "de", 4, "");
  Delete(memtable, "abc", 11);
  EXPECT_EQ(memtable.entry_count(), 3u);
  EXPECT_EQ(memtable.key_bytes(), 8u);
  EXPECT_EQ(memtable.value_bytes(), 5u);
  EXPECT_EQ(memtable.version_max(), Version(11));
  EXPECT_FALSE(memtable.empty());
}

TEST(MemtableTest, BothDirectionsGiveTheNewestVersionOfAKeyFirst) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  Put(memtable, "a", 1, "a1");
  Put(memtable, "b", 2, "b2");
  Put(memtable, "a", 3, "a3");
  EXPECT_THAT(ScanAll(memtable, Direction::kForward),
              ElementsAre(PutSeen("a", 3, "a3"), PutSeen("a", 1, "a1"), PutSeen("b", 2, "b2")));
  EXPECT_THAT(ScanAll(memtable, Direction::kBackward),
              ElementsAre(PutSeen("b", 2, "b2"), PutSeen("a", 3, "a3"), PutSeen("a", 1, "a1")));
}

TEST(MemtableTest, SeekForwardIncludesTheBoundAndBackwardExcludesIt) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  for (std::string key : {"b", "d", "f"}) Put(memtable, key, 1, key);
  auto first_of = [&](Direction direction, std::string_view key) {
    auto it = memtable.NewIterator(direction);
    return it->Seek(key) == IterState::kEntry ? std::string(it->entry().user_key) : std::string("end");
  };
  EXPECT_EQ(first_of(Direction::kForward, "d"), "d");
  EXPECT_EQ(first_of(Direction::kForward, "e"), "f");
  EXPECT_EQ(first_of(Direction::kForward, ""), "b");
  EXPECT_EQ(first_of(Direction::kForward, "g"), "end");
  EXPECT_EQ(first_of(Direction::kBackward, "d"), "b");
  EXPECT_EQ(first_of(Direction::kBackward, "e"), "d");
  EXPECT_EQ(first_of(Direction::kBackward, "g"), "f");
  EXPECT_EQ(first_of(Direction::kBackward, "b"), "end");
  EXPECT_EQ(first_of(Direction::kBackward, ""), "end");
}

TEST(MemtableTest, AnIteratorCanSeekAgainAfterItsEnd) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  Put(memtable, "a", 1, "x");
  auto it = memtable.NewIterator(Direction::kForward);
  EXPECT_EQ(it->state(), IterState::kEnd);
  EXPECT_EQ(it->Seek("b"), IterState::kEnd);
  EXPECT_EQ(it->SeekToFirst(), IterState::kEntry);
  EXPECT_EQ(it->Next(), IterState::kEnd);
  EXPECT_EQ(it->Seek("a"), IterState::kEntry);
}

TEST(MemtableTest, VersionsAboveTheBoundAreInvisibleToScans) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  Put(memtable, "a", 10, "new");
  Put(memtable, "b", 3, "old");
  Put(memtable, "b", 12, "newer");
  EXPECT_THAT(ScanAll(memtable, Direction::kForward, Version(9)), ElementsAre(PutSeen("b", 3, "old")));
  EXPECT_THAT(ScanAll(memtable, Direction::kBackward, Version(10)),
              ElementsAre(PutSeen("b", 3, "old"), PutSeen("a", 10, "new")));
}

TEST(MemtableTest, OfVersionsThatAreVisibleAScanMayAskForTheNewestAlone) {
  ChunkPool pool(4 * kMiB);
  Memtable memtable(pool);
  for (uint64_t version = 1; version <= 5; ++version) Put(memtable, "a", version, "a");
  for (uint64_t version = 6; version <= 9; ++version) Put(memtable, "b", version, "b");
  const auto scan = [&](Direction direction) {
    auto it = memtable.NewIterator(direction, kVersionMax, Version(7));
    return Drain(*it, it->SeekToFirst());
  };
  // Above them each is shown: a write that is in doubt must be seen.
  EXPECT_THAT(scan(Direction::kForward), ElementsAre(PutSeen("a", 5, "a"), PutSeen("b", 9, "b"),
                                                     PutSeen("b", 8, "b"), PutSeen("b", 7, "b")));
  EXPECT_THAT(scan(Direction::kBackward), ElementsAre(PutSeen("b", 9, "b"), PutSeen("b", 8, "b"),
                                                      PutSeen("b", 7, "b"), PutSeen("a", 5, "a")));
}

TEST(MemtableTest, KeysWithEqualHeadsAndKeysThatArePrefixesKeepByteOrder) {
  ChunkPool pool(16 * kMiB);
  Memtable memtable(pool);
  // Zeros at the end of a key look like the padding of a head.
  std::vector<std::string> keys;
  for (const char* stem : {"", "a", "aaaaaaa", "aaaaaaaa", "aaaaaaaab", "b"}) {
    for (size_t zeros = 0; zeros < 20; ++zeros) {
      keys.push_back(stem + std::string(zeros, '\0'));
      keys.push_back(stem + std::string(zeros, '\0') + "\xff");
    }
  }
  std::shuffle(keys.begin(), keys.end(), std::mt19937_64(TestSeed()));
  const std::set<std::string> sorted(keys.begin(), keys.end());
  uint64_t version = 0;
  std::set<std::string> seen;
  for (const std::string& key : keys) {
    if (seen.insert(key).second) Put(memtable, key, ++version, key);
  }
  memtable.CheckInvariants();
  auto it = memtable.NewIterator(Direction::kForward);
  IterState state = it->SeekToFirst();
  for (const std::string& key : sorted) {
    ASSERT_EQ(state, IterState::kEntry);
    EXPECT_EQ(it->entry().user_key, key);
    EXPECT_EQ(memtable.Get(key, kVersionMax).value, key);
    state = it->Next();
  }
  EXPECT_EQ(state, IterState::kEnd);
}

TEST(MemtableTest, RisingKeysFillTheirLeaves) {
  ChunkPool pool(64 * kMiB);
  Memtable memtable(pool);
  constexpr int kKeys = 50'000;
  for (int i = 0; i < kKeys; ++i) {
    char row[16];
    std::snprintf(row, sizeof row, "%010d", i);
    ASSERT_TRUE(memtable.Reserve(1));
    memtable.Insert(
        {Place(memtable.arena(), EncodeUserKey(TableId(3), "p", row)), Version(1), EntryKind::kPut, {}});
  }
  memtable.CheckInvariants();
  // 18 bytes a slot when leaves are full, 40 a record, 24 a key; a tree of half-full leaves needs more.
  EXPECT_LT(memtable.memory_used() / kKeys, 86u);
}

TEST(MemtableTest, AReserveThatThePoolCannotGiveChangesNothing) {
  ChunkPool pool(1 * kMiB);
  Memtable memtable(pool);
  Put(memtable, "a", 1, "value");
  EXPECT_FALSE(memtable.Reserve(1'000'000));
  EXPECT_EQ(memtable.Get("a", kVersionMax).value, "value");
  memtable.CheckInvariants();
}

TEST(MemtableTest, WhatAReserveTakesIsKnownBefore) {
  for (const size_t entries : {1u, 100u, 5'000u, 100'000u}) {
    ChunkPool pool(64 * kMiB);
    Memtable memtable(pool);
    ASSERT_TRUE(memtable.Reserve(entries));
    EXPECT_LE(Memtable::ReserveBytes(entries), memtable.memory_used()) << entries;
    EXPECT_GT(Memtable::ReserveBytes(entries) + (64u << 10), memtable.memory_used() * 99 / 100) << entries;
  }
}

// Whatever order keys come in, a reserve covers the inserts it was made for, even if not one byte
// more can be had (F58).
TEST(MemtableTest, ReservedInsertsSucceedWithThePoolExhausted) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(seed);
  for (size_t batch : {size_t{1}, size_t{7}, size_t{100}, size_t{3000}}) {
    ChunkPool pool(32 * kMiB);
    std::vector<std::string> keys;
    std::mt19937_64 random(seed + batch);
    for (int i = 0; i < 60'000; ++i) keys.push_back(EncodeUserKey(TableId(1), "p", std::to_string(random())));
    Memtable memtable(pool);
    size_t next = 0;
    // Grow a random tree, then insert batches in ever new places with all other memory taken away.
    while (next < 20'000) {
      ASSERT_TRUE(memtable.Reserve(1));
      memtable.Insert({keys[next++], Version(1), EntryKind::kPut, {}});
    }
    for (int round = 0; round < 10; ++round) {
      ASSERT_TRUE(memtable.Reserve(batch));
      std::vector<uint8_t*> taken;
      while (uint8_t* chunk = pool.Acquire()) taken.push_back(chunk);
      {
        for (size_t i = 0; i < batch; ++i) memtable.Insert({keys[next++], Version(1), EntryKind::kPut, {}});
      }
      for (uint8_t* chunk : taken) pool.Release(chunk);
    }
    memtable.CheckInvariants();
    EXPECT_EQ(memtable.entry_count(), next);
  }
}

// The patterns for which the bound in Reserve is tight: descending, alternating ends, and each
// insert into another full leaf.
TEST(MemtableTest, OneReserveCoversAnyPatternOfInserts) {
  constexpr size_t kBatch = 20'000;
  std::vector<std::vector<std::string>> patterns(4);
  auto key_of = [](uint64_t number) {
    char text[32];
    std::snprintf(text, sizeof text, "%020llu", static_cast<unsigned long long>(number));
    return std::string(text);
  };
  for (size_t i = 0; i < kBatch; ++i) {
    patterns[0].push_back(key_of(kBatch - i));
    patterns[1].push_back(key_of(i % 2 == 0 ? i : 10 * kBatch - i));
    patterns[2].push_back(key_of(i));
    patterns[3].push_back(key_of(i * 7919 % kBatch * 1000 + i));
  }
  for (const std::vector<std::string>& keys : patterns) {
    ChunkPool pool(32 * kMiB);
    Memtable memtable(pool);
    ASSERT_TRUE(memtable.Reserve(kBatch));
    const size_t reserved = memtable.memory_used();
    for (const std::string& key : keys) memtable.Insert({key, Version(1), EntryKind::kPut, {}});
    EXPECT_EQ(memtable.memory_used(), reserved);
    memtable.CheckInvariants();
    EXPECT_EQ(ScanAll(memtable, Direction::kForward).size(), kBatch);
  }
}

using MemtableDeathTest = ::testing::Test;

TEST(MemtableDeathTest, AVersionNotAboveTheLastOneEndsTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        ChunkPool pool(4 * kMiB);
        Memtable memtable(pool);
        Put(memtable, "k", 5, "x");
        Put(memtable, "k", 5, "y");
      },
      "inserted");
}

}  // namespace
}  // namespace partita

#include <gtest/gtest.h>

#include <memory>

#include "engine/base/user_key.h"
#include "memtable/memtable.h"
#include "test/memtable/memtable_fixture.h"

namespace partita {
namespace {

// How keys of one run look.
enum class Shape { kStructured, kHex, kEqualHeads, kTiny, kLong };

std::string RandomKey(Shape shape, std::mt19937_64& random) {
  auto number = [&](uint64_t below) { return random() % below; };
  switch (shape) {
    case Shape::kStructured: {
      char partition[32];
      char row[32];
      std::snprintf(partition, sizeof partition, "customer-%08u", static_cast<unsigned>(number(60)));
      std::snprintf(row, sizeof row, "order-2026-%010u", static_cast<unsigned>(number(200)));
      // One in ten has an empty RowKey.
      return EncodeUserKey(TableId(1 + static_cast<uint32_t>(number(4))), partition,
                           number(10) == 0 ? "" : row);
    }
    case Shape::kHex: {
      char text[40];
      std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(random()));
      return EncodeUserKey(TableId(7), std::string_view(text, 4), text);
    }
    case Shape::kEqualHeads:  // Nothing differs within the first 8 bytes after any common prefix.
      return std::string(1 + number(3), 'x') + std::string(20 + number(3), 'y') + std::to_string(number(500));
    case Shape::kTiny: {  // Every byte string of up to four letters of three, prefixes of one another.
      std::string key;
      for (size_t size = number(5); key.size() < size;) key.push_back("\0a\xff"[number(3)]);
      return key;
    }
    case Shape::kLong:  // Keys of up to 2 KiB each, which differ late.
      return EncodeUserKey(TableId(1), std::string(2000 + number(48), 'p'),
                           std::string(2000, 'r') + std::to_string(number(300)));
  }
  return {};
}

class MemtableOracleTest : public ::testing::TestWithParam<Shape> {
 protected:
  void Compare(const Memtable& memtable, const Oracle& oracle, std::mt19937_64& random, uint64_t version) {
    memtable.CheckInvariants();
    for (Direction direction : {Direction::kForward, Direction::kBackward}) {
      EXPECT_EQ(ScanAll(memtable, direction), oracle.Scan(direction, UINT64_MAX));
      const uint64_t at_most = random() % (version + 1);
      EXPECT_EQ(ScanAll(memtable, direction, Version(at_most)), oracle.Scan(direction, at_most));
      const std::string bound = RandomKey(GetParam(), random);
      EXPECT_EQ(ScanFrom(memtable, direction, bound, Version(at_most)),
                oracle.Scan(direction, at_most, &bound));
    }
    for (const auto& [key, versions] : oracle.keys()) {
      const uint64_t at_most = random() % (version + 1);
      ExpectSameLookup(memtable.Get(key, Version(at_most)), oracle.Get(key, at_most));
      ExpectSameLookup(memtable.Get(key, kVersionMax), oracle.Get(key, UINT64_MAX));
    }
    for (int i = 0; i < 200; ++i) {
      const std::string key = RandomKey(GetParam(), random);
      ExpectSameLookup(memtable.Get(key, kVersionMax), oracle.Get(key, UINT64_MAX));
      CompareSpan(memtable, oracle, key, random);
    }
  }

  // Spans that begin at `key` and end there, just before it, or at another.
  void CompareSpan(const Memtable& memtable, const Oracle& oracle, const std::string& key,
                   std::mt19937_64& random) {
    const std::string other = RandomKey(GetParam(), random);
    const std::string before = key.substr(0, key.size() / 2);
    for (const auto& [first, last] :
         {std::minmax(key, key), std::minmax(key, other), std::minmax(before, key)}) {
      const auto found = oracle.keys().lower_bound(first);
      const bool any = found != oracle.keys().end() && found->first <= last;
      EXPECT_EQ(memtable.HoldsAnyOf(first, last), any);
    }
  }
};

TEST_P(MemtableOracleTest, AnswersLikeAMapAfterRandomWrites) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(seed);
  for (uint64_t run = 0; run < 4; ++run) {
    std::mt19937_64 random(seed + run);
    ChunkPool pool(64 * kMiB);
    Memtable memtable(pool);
    Oracle oracle;
    uint64_t version = 0;
    const int writes = GetParam() == Shape::kLong ? 1500 : 6000;
    for (int i = 0; i < writes; ++i) {
      const std::string key = RandomKey(GetParam(), random);
      const bool deletes = random() % 4 == 0;
      const EntryKind kind = deletes ? EntryKind::kTombstone : EntryKind::kPut;
      const std::string value = deletes ? "" : std::to_string(random() % 1000);
      Put(memtable, key, ++version, value, kind);
      oracle.Put(key, version, kind, value);
      if (i == 10 || i == 70 || i == 700) Compare(memtable, oracle, random, version);
    }
    Compare(memtable, oracle, random, version);
    if (HasFailure()) FAIL() << "run " << run;
  }
}

TEST_P(MemtableOracleTest, AnswersLikeAMapAfterSortedBatches) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed + 100);
  ChunkPool pool(64 * kMiB);
  Memtable memtable(pool);
  Oracle oracle;
  uint64_t version = 0;
  for (int batch = 0; batch < (GetParam() == Shape::kLong ? 12 : 60); ++batch) {
    // Like an entity group transaction: rising keys, one version for all.
    std::map<std::string, std::string> rows;
    for (int i = 0; i < 100; ++i) rows[RandomKey(GetParam(), random)] = std::to_string(i);
    ASSERT_TRUE(memtable.Reserve(rows.size()));
    ++version;
    for (const auto& [key, value] : rows) {
      memtable.Insert(
          {Place(memtable.arena(), key), Version(version), EntryKind::kPut, Place(memtable.arena(), value)});
      oracle.Put(key, version, EntryKind::kPut, value);
    }
  }
  Compare(memtable, oracle, random, version);
}

INSTANTIATE_TEST_SUITE_P(KeyShapes, MemtableOracleTest,
                         ::testing::Values(Shape::kStructured, Shape::kHex, Shape::kEqualHeads, Shape::kTiny,
                                           Shape::kLong));

}  // namespace
}  // namespace partita

#include "sstable/block_places.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

constexpr size_t kKeys = 4000;

std::string RowKey(size_t i) {
  char row[16];
  std::snprintf(row, sizeof row, "r%06zu", i);
  return Key("p", row);
}

OwnedEntry Row(size_t i) { return Put(RowKey(i), 10 + i, std::string(200, static_cast<char>('a' + i % 26))); }

// Displaces everything.
void Flood(BlockCache& cache, uint64_t object) {
  for (uint64_t round = 0; round < 6; ++round) {
    for (uint64_t i = 0; i * 4000 < cache.capacity_bytes() * 2; ++i) {
      const BlockKey key{ObjectId(object + round), i * 4096};
      BlockFrame frame = cache.NewFrame(key, 4000);
      std::memset(frame.data(), 0, 4000);
      (void)cache.Insert(key, std::move(frame), CachePriority::kPoint);
    }
  }
}

class BlockPlacesTest : public testing::Test {
 protected:
  BlockPlacesTest() {
    std::vector<OwnedEntry> entries;
    for (size_t i = 0; i < kKeys; ++i) entries.push_back(Row(i));
    EXPECT_TRUE(WriteTable(store_, ObjectId(7), entries).ok());
  }
  std::shared_ptr<TableReader> Open(BlockCache& cache) {
    auto table = OpenTable(store_, cache, ObjectId(7));
    EXPECT_TRUE(table.ok()) << table.status().ToString();
    return std::move(table).value();
  }
  // Whether both kinds of lookup find the right value.
  static bool Finds(const TableReader& table, size_t i, bool memory_has_it) {
    const OwnedEntry row = Row(i);
    BlockPin pin, second;
    const Result<Lookup> got = RunBlocking(table.Get(HashKey(row.user_key), row.user_key, kVersionMax, &pin));
    if (!got.ok() || got->value != row.value) return false;
    const TableLookup again = table.TryGet(HashKey(row.user_key), row.user_key, kVersionMax, &second);
    return memory_has_it ? again.lookup.value == row.value
                         : again.needs_io || again.lookup.value == row.value;
  }

  MemoryObjectStore store_;
};

TEST_F(BlockPlacesTest, EachBlockHasOneOfItsOwnAndNoneBeyond) {
  BlockCache cache(4 << 20);
  const std::shared_ptr<TableReader> table = Open(cache);
  const DataBlock& top = table->top_index();
  ASSERT_GT(top.size(), 1u);
  BlockPlaces places(cache);
  places.Open(top);
  std::set<BlockPlace*> all;
  for (uint32_t i = 0; i < top.size(); ++i) {
    EXPECT_TRUE(all.insert(places.OfIndex(i)).second);
    const uint32_t blocks = IndexRecordEntryCount(top.value(i));
    for (uint32_t at = 0; at < blocks; ++at) EXPECT_TRUE(all.insert(places.OfData(i, at)).second);
    EXPECT_EQ(places.OfData(i, blocks), nullptr);
  }
  EXPECT_FALSE(all.contains(nullptr));
}

TEST_F(BlockPlacesTest, TheyTakeASmallPartBesideTheCacheAndLookupsDoWithout) {
  BlockCache cache(4 << 20);
  std::vector<std::shared_ptr<TableReader>> tables;
  for (int i = 0; i < 40; ++i) tables.push_back(Open(cache));  // The last ones have none.
  EXPECT_FALSE(cache.TryReservePlaces(cache.capacity_bytes() / 48));
  for (size_t i = 0; i < kKeys; i += 13) ASSERT_TRUE(Finds(*tables.back(), i, true)) << i;
  tables.clear();
  EXPECT_TRUE(cache.TryReservePlaces(cache.capacity_bytes() / 48));
  EXPECT_FALSE(cache.TryReservePlaces(8));
}

TEST_F(BlockPlacesTest, PlacesThatAreOutOfDateDoNoHarm) {
  BlockCache cache(4 << 20);
  const std::shared_ptr<TableReader> table = Open(cache);
  for (uint64_t round = 0; round < 3; ++round) {
    for (size_t i = round; i < kKeys; i += 3) ASSERT_TRUE(Finds(*table, i, true)) << i;
    Flood(cache, 1000 + 100 * round);  // Where the blocks were are others by now.
  }
  cache.CheckInvariants();
  EXPECT_EQ(cache.CountPinned(), 0u);
}

TEST_F(BlockPlacesTest, ScansFindTheSameByPlacesThatAreOutOfDateAndByNone) {
  BlockCache cache(4 << 20);
  std::vector<std::shared_ptr<TableReader>> tables;
  for (int i = 0; i < 40; ++i) tables.push_back(Open(cache));  // The last ones have no places.
  for (const auto& table : {tables.front(), tables.back()}) {
    for (uint64_t round = 0; round < 3; ++round) {
      for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
        for (int again = 0; again < 2; ++again) {  // From the object store, and from the cache.
          auto it = table->NewIterator(direction, {.caching = IterCaching::kFill, .lower = "", .upper = ""});
          const std::vector<OwnedEntry> found = DrainAll(*it);
          ASSERT_EQ(found.size(), kKeys);
          for (size_t i = 0; i < kKeys; ++i) {
            const OwnedEntry row = Row(direction == Direction::kForward ? i : kKeys - 1 - i);
            ASSERT_EQ(found[i].user_key, row.user_key);
            ASSERT_EQ(found[i].value, row.value);
          }
        }
      }
      Flood(cache, 1000 + 100 * round);
    }
  }
  cache.CheckInvariants();
  EXPECT_EQ(cache.CountPinned(), 0u);
}

// Under TSan this also proves that nothing else is read on a place's word.
TEST_F(BlockPlacesTest, ManyThreadsFindTheSame) {
  BlockCache cache(512 << 10);  // Smaller than the data.
  const std::shared_ptr<TableReader> table = Open(cache);
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int round = 0; round < 3000; ++round) wrong += Finds(*table, random() % kKeys, false) ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  cache.CheckInvariants();
}

}  // namespace
}  // namespace partita

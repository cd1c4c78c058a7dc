#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "sstable/block_cache.h"
#include "sstable/cached_rows.h"
#include "test/sstable/table_fixture.h"
#include "test/support/resident_memory.h"
#include "test/support/slowdown.h"

namespace partita {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// What lies in the cache says what it is of: a block when `i` is divisible by four, else a row.
BlockKey KeyOf(uint64_t i) {
  const BlockKey block{ObjectId(1), i * 4096};
  return i % 4 == 0 ? block : CachedRowKey(block, i);
}
std::string ContentOf(uint64_t i) {
  std::string content(i % 4 == 0 ? 2'000 + i % 9'000 : 500 + i % 900, static_cast<char>('a' + i % 26));
  std::memcpy(content.data(), &i, sizeof(i));
  return content;
}
void Insert(BlockCache& cache, uint64_t i) {
  const std::string content = ContentOf(i);
  if (i % 4 != 0) return cache.AddRow(KeyOf(i), content);
  BlockFrame frame = cache.NewFrame(KeyOf(i), content.size());
  if (frame.from_heap()) return;
  std::memcpy(frame.data(), content.data(), content.size());
  cache.Insert(KeyOf(i), std::move(frame), CachePriority::kPoint).Release();
}

TEST(CacheResizeTest, GrowsAndShrinksWithinItsBounds) {
  BlockCache cache(4 * kMiB, 12 * kMiB);
  const auto capacity = [&cache] { return cache.statistics().capacity_bytes; };
  EXPECT_EQ(capacity(), 4 * kMiB);
  uint64_t next = 0;
  for (const uint64_t wanted : {4, 12, 6, 6, 40, 5, 0, 9}) {
    cache.Resize(wanted * kMiB);
    cache.CheckInvariants();
    const uint64_t expected = std::clamp<uint64_t>(wanted, 4, 12) * kMiB;
    EXPECT_LE(capacity(), expected);
    EXPECT_GT(capacity(), expected - kMiB / 16);
    EXPECT_LE(cache.statistics().used_bytes, capacity());
    constexpr uint64_t kInserted = 20'000;
    for (uint64_t i = 0; i < kInserted; ++i) Insert(cache, next + i);
    next += kInserted;
    cache.CheckInvariants();
    EXPECT_LE(cache.statistics().used_bytes, capacity());
    EXPECT_GT(cache.statistics().used_bytes, capacity() * 8 / 10);
    uint64_t found_bytes = 0;
    for (uint64_t i = next - kInserted; i < next; ++i) {
      const BlockPin pin = cache.Lookup(KeyOf(i));
      if (!pin) continue;
      ASSERT_EQ(pin.content(), ContentOf(i)) << i;
      found_bytes += pin.content().size();
    }
    EXPECT_GT(found_bytes, capacity() / 2);
  }
}

// The hand, above all, may be anywhere when what it stands on goes, and comes again as something else.
TEST(CacheResizeTest, SizesFollowEachOtherWithAnythingBetween) {
  std::mt19937_64 random(TestSeed());
  BlockCache cache(kMiB, 4 * kMiB);
  uint64_t next = 0;
  for (int round = 0; round < 150; ++round) {
    for (uint64_t times = 1 + random() % 3; times > 0; --times) {
      cache.Resize(kMiB + random() % (3 * kMiB));
      cache.CheckInvariants();
    }
    for (uint64_t inserts = random() % 3'000; inserts > 0; --inserts) {
      Insert(cache, next++);
      if (random() % 4 == 0) cache.Lookup(KeyOf(next - 1 - random() % std::min<uint64_t>(next, 500)));
    }
    cache.CheckInvariants();
    for (uint64_t i = next - std::min<uint64_t>(next, 4'000); i < next; ++i) {
      if (const BlockPin pin = cache.Lookup(KeyOf(i))) ASSERT_EQ(pin.content(), ContentOf(i)) << i;
    }
  }
}

TEST(CacheResizeTest, WhatHasAPinStaysUntilItIsTriedAgain) {
  BlockCache cache(kMiB, 4 * kMiB);
  cache.Resize(4 * kMiB);
  std::vector<std::pair<uint64_t, BlockPin>> pins;
  for (uint64_t i = 0; i < 6'000; ++i) {
    Insert(cache, i);
    if (i % 20 == 1) pins.emplace_back(i, cache.Lookup(KeyOf(i)));
  }
  cache.Resize(kMiB);
  cache.CheckInvariants();
  EXPECT_GT(cache.statistics().capacity_bytes, 2 * kMiB);
  for (const auto& [i, pin] : pins) EXPECT_EQ(pin.content(), ContentOf(i)) << i;
  pins.clear();
  cache.Resize(kMiB);
  cache.CheckInvariants();
  EXPECT_EQ(cache.statistics().capacity_bytes, kMiB);
}

// Scans and merges hold blocks for long.
TEST(CacheResizeTest, BlocksWithPinsAreNeverInTheWay) {
  BlockCache cache(kMiB, 4 * kMiB);
  cache.Resize(4 * kMiB);
  std::vector<BlockPin> pins;
  for (uint64_t i = 0; i < 4'000; ++i) {
    Insert(cache, i);
    if (i % 20 == 0) pins.push_back(cache.Lookup(KeyOf(i)));
  }
  cache.Resize(kMiB);
  EXPECT_EQ(cache.statistics().capacity_bytes, kMiB);
  cache.CheckInvariants();
}

TEST(CacheResizeTest, MemoryThatIsTakenBackIsTheKernelsAgain) {
  BlockCache cache(kMiB, 4 * kMiB);
  cache.Resize(4 * kMiB);
  std::vector<const char*> places;
  for (uint64_t i = 1; i < 5'000; i += 2) {
    Insert(cache, i);
    places.push_back(cache.Lookup(KeyOf(i)).content().data());
  }
  const auto resident = [&places] {
    uint64_t count = 0;
    for (const char* place : places) count += ResidentPages(place, 1);
    return count;
  };
  EXPECT_EQ(resident(), places.size());
  cache.Resize(kMiB);
  EXPECT_LT(resident(), places.size() / 4);
}

TEST(CacheResizeTest, MemoryIsTouchedAheadAsFarAsAskedForAndAgainWhenItComesBack) {
  BlockCache cache(8 * kMiB, 40 * kMiB);
  EXPECT_FALSE(cache.TouchNext(kMiB));  // Not worth it.
  size_t pages = 0;
  while (cache.TouchNext(5 * kMiB)) ++pages;
  EXPECT_GE(pages, 3u);
  std::vector<BlockFrame> frames;
  for (uint64_t i = 0; i < 8; ++i) {
    frames.push_back(cache.NewFrame({ObjectId(1), i * 4096}, kMiB / 2 - 1024));
    ASSERT_FALSE(frames.back().from_heap());
    const auto* last = reinterpret_cast<const char*>(frames.back().data()) + frames.back().size() - 1;
    EXPECT_EQ(ResidentPages(last, 1), 1u) << i;
  }
  frames.clear();
  for (int round = 0; round < 2; ++round) {
    cache.Resize(40 * kMiB);
    const uint64_t before = ResidentBytes();
    while (cache.TouchNext(100 * kMiB)) {
    }
    EXPECT_GT(ResidentBytes(), before + 24 * kMiB) << round;
    cache.Resize(8 * kMiB);
    EXPECT_LT(ResidentBytes(), before + 8 * kMiB) << round;
  }
}

TEST(CacheResizeTest, WhatIsWithheldIsTheKernelsUntilItIsGivenAgain) {
  BlockCache cache(16 * kMiB);
  uint64_t next = 0;
  const auto fill = [&] {
    for (const uint64_t end = next + 40'000; next < end; ++next) Insert(cache, next);
  };
  fill();
  const uint64_t used = cache.statistics().used_bytes, resident = ResidentBytes();
  for (const uint64_t withheld : {12, 6, 10}) {
    cache.Withhold(withheld * kMiB);
    cache.CheckInvariants();
    EXPECT_EQ(cache.statistics().capacity_bytes, (16 - withheld) * kMiB);
    fill();
    while (cache.TouchNext(100 * kMiB)) {
    }
    cache.CheckInvariants();
    EXPECT_LE(cache.statistics().used_bytes, (16 - withheld) * kMiB);
    EXPECT_GT(cache.statistics().used_bytes, (used - withheld * kMiB) / 10 * 8);
    // A sanitizer keeps memory of its own beside it.
    if (kSlowdown == 1) EXPECT_LT(ResidentBytes() + (withheld - 2) * kMiB, resident) << withheld;
    EXPECT_EQ(cache.Lookup(KeyOf(next - 1)).content(), ContentOf(next - 1));
  }
  cache.Withhold(100 * kMiB);
  fill();
  EXPECT_GT(cache.statistics().used_bytes, used / 10);
  cache.Withhold(0);
  fill();
  cache.CheckInvariants();
  EXPECT_GT(cache.statistics().used_bytes, used - kMiB);
}

TEST(CacheResizeTest, WhatHasAPinIsNotWithheldUntilItIsTriedAgain) {
  BlockCache cache(4 * kMiB);
  std::vector<std::pair<uint64_t, BlockPin>> pins;
  for (uint64_t i = 0; i < 6'000; ++i) {
    Insert(cache, i);
    if (i % 20 != 0) continue;
    if (BlockPin pin = cache.Lookup(KeyOf(i))) pins.emplace_back(i, std::move(pin));
  }
  cache.Withhold(3 * kMiB);
  cache.CheckInvariants();
  EXPECT_GT(cache.statistics().capacity_bytes, 2 * kMiB);
  for (const auto& [i, pin] : pins) EXPECT_EQ(pin.content(), ContentOf(i)) << i;
  pins.clear();
  cache.Withhold(3 * kMiB);
  cache.CheckInvariants();
  EXPECT_EQ(cache.statistics().capacity_bytes, kMiB);
}

// Under TSan this also proves that memory may come and go beside everyone.
TEST(CacheResizeTest, ManyThreadsSeeOnlyWhatWasKeptWhileItGrowsAndShrinks) {
  BlockCache cache(kMiB, 3 * kMiB);
  std::atomic<uint64_t> wrong{0}, found{0}, running{3};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(TestSeed() + t);
      for (int step = 0; step < 20'000; ++step) {
        const uint64_t i = random() % (random() % 2 == 0 ? 100 : 1'000);
        const BlockPin pin = cache.Lookup(KeyOf(i));
        if (pin) {
          found.fetch_add(1, std::memory_order_relaxed);
          if (pin.content() != ContentOf(i)) wrong.fetch_add(1);
        } else {
          Insert(cache, i);
        }
      }
      running.fetch_sub(1);
    });
  }
  threads.emplace_back([&] {
    while (running.load() > 0) {
      while (cache.TouchNext(3 * kMiB)) {
      }
      std::this_thread::yield();
    }
  });
  std::mt19937_64 random(TestSeed());
  while (running.load() > 0) {
    cache.Resize(kMiB + random() % (2 * kMiB));
    cache.Withhold(random() % 2 * (random() % (kMiB / 2)));
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_GT(found.load(), 1'000u);
  EXPECT_EQ(cache.CountPinned(), 0u);
  cache.CheckInvariants();
}

}  // namespace
}  // namespace partita

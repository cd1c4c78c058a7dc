#include "engine/base/chunk_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "test/support/resident_memory.h"

namespace partita {
namespace {

constexpr size_t kChunk = ChunkPool::kChunkSize;

TEST(ChunkPoolTest, HandsOutDistinctWritableChunksUpToTheLimit) {
  ChunkPool pool(5 * kChunk + 1234);
  EXPECT_EQ(pool.capacity_bytes(), 5 * kChunk);
  std::set<uint8_t*> chunks;
  while (uint8_t* chunk = pool.Acquire()) {
    std::memset(chunk, 0xAB, kChunk);
    EXPECT_TRUE(chunks.insert(chunk).second);
  }
  EXPECT_EQ(chunks.size(), 5u);
  EXPECT_EQ(pool.free_bytes(), 0u);
  EXPECT_EQ(pool.refusals(), 1u);
  EXPECT_EQ(pool.releases(), 0u) << "what a refusal gives back was nobody's";
  for (uint8_t* chunk : chunks) pool.Release(chunk);
  EXPECT_EQ(pool.releases(), 5u);
  EXPECT_EQ(pool.used_bytes(), 0u);
  EXPECT_EQ(pool.TakeUsedMax(), 5 * kChunk);
}

TEST(ChunkPoolTest, AReleasedChunkIsTakenAgainBeforeAnUntouchedOne) {
  ChunkPool pool(200 * kChunk);
  uint8_t* first = pool.Acquire();
  uint8_t* second = pool.Acquire();
  pool.Release(first);
  EXPECT_EQ(pool.Acquire(), first);
  pool.Release(second);
  pool.Release(first);
}

TEST(ChunkPoolTest, RunsLieSideBySideAndComeFromTheFarEnd) {
  ChunkPool pool(130 * kChunk);
  uint8_t* single = pool.Acquire();
  uint8_t* run = pool.AcquireRun(66);
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run, single + 64 * kChunk);
  std::memset(run, 1, 66 * kChunk);
  pool.Release(run, 66);
  pool.Release(single);
}

TEST(ChunkPoolTest, ARunThatFragmentationForbidsIsRefusedUntilNeighboursAreFree) {
  ChunkPool pool(4 * kChunk);
  std::vector<uint8_t*> chunks;
  for (int i = 0; i < 4; ++i) chunks.push_back(pool.Acquire());
  pool.Release(chunks[0]);
  pool.Release(chunks[2]);
  EXPECT_EQ(pool.AcquireRun(2), nullptr);
  pool.Release(chunks[1]);
  uint8_t* run = pool.AcquireRun(3);
  EXPECT_EQ(run, chunks[0]);
  EXPECT_EQ(pool.AcquireRun(5), nullptr);
  pool.Release(run, 3);
  pool.Release(chunks[3]);
}

TEST(ChunkPoolTest, ALimitBelowOneChunkIsAnEmptyPool) {
  ChunkPool pool(kChunk - 1);
  EXPECT_EQ(pool.capacity_bytes(), 0u);
  EXPECT_EQ(pool.Acquire(), nullptr);
  pool.GiveBackUnused(0);
}

TEST(ChunkPoolTest, AnAddressRangeThatTheKernelRefusesIsAnEmptyPool) {
  ChunkPool pool(size_t{1} << 60);
  EXPECT_EQ(pool.capacity_bytes(), 0u);
  EXPECT_EQ(pool.Acquire(), nullptr);
}

// A chunk is zero when it is taken the first time, or after its memory was given back.
bool IsZero(const uint8_t* chunk) {
  return std::all_of(chunk, chunk + kChunk, [](uint8_t byte) { return byte == 0; });
}

TEST(ChunkPoolTest, GivesTheMemoryOfFreeChunksBackTheLastFirst) {
  ChunkPool pool(6 * kChunk);
  std::vector<uint8_t*> chunks;
  for (int i = 0; i < 6; ++i) {
    chunks.push_back(pool.Acquire());
    std::memset(chunks.back(), 0x5C, kChunk);
  }
  for (int i : {0, 1, 2, 3, 5}) pool.Release(chunks[i]);
  // Of the huge pages that are free, 2 and 3 are the last; 5 shares its one with 4.
  pool.GiveBackUnused(4 * kChunk);
  EXPECT_EQ(pool.used_bytes(), kChunk);
  EXPECT_EQ(chunks[4][0], 0x5C);
  EXPECT_EQ(chunks[4][kChunk - 1], 0x5C);
  for (int i : {0, 1, 2, 3, 5}) {
    ASSERT_EQ(pool.Acquire(), chunks[i]);
    EXPECT_EQ(IsZero(chunks[i]), i == 2 || i == 3) << i;
  }
  for (uint8_t* chunk : chunks) pool.Release(chunk);
  pool.GiveBackUnused(0);
  EXPECT_TRUE(IsZero(pool.Acquire()));
  pool.Release(chunks[0]);
}

bool IsResident(const uint8_t* chunk) { return ResidentPages(chunk, kChunk) == kChunk / kPageSize; }

// How many it touched.
size_t TouchAhead(ChunkPool& pool, size_t bytes, size_t bytes_max = SIZE_MAX) {
  size_t touched = 0;
  while (pool.TouchOneAhead(bytes, bytes_max)) ++touched;
  return touched;
}

TEST(ChunkPoolTest, ChunksThatWillBeTakenNextAreTouchedAhead) {
  ChunkPool pool(8 * kChunk);
  uint8_t* const used = pool.Acquire();
  EXPECT_EQ(TouchAhead(pool, 3 * kChunk), 3u);
  EXPECT_EQ(TouchAhead(pool, 3 * kChunk), 0u);
  EXPECT_EQ(TouchAhead(pool, 8 * kChunk, 4 * kChunk), 0u);  // As many are.
  EXPECT_EQ(pool.used_bytes(), kChunk);
  std::vector<uint8_t*> chunks{used};
  for (int i = 1; i < 8; ++i) {
    chunks.push_back(pool.Acquire());
    if (i < 4) EXPECT_TRUE(IsResident(chunks[i])) << i;
    if (i >= 4) EXPECT_FALSE(IsResident(chunks[i])) << i;
  }
  EXPECT_EQ(TouchAhead(pool, 8 * kChunk), 0u);  // Taking is touching.
  for (uint8_t* chunk : chunks) pool.Release(chunk);
  // What was given back is touched again.
  pool.GiveBackUnused(0);
  EXPECT_FALSE(IsResident(used));
  EXPECT_EQ(TouchAhead(pool, 100 * kChunk), 8u);
  for (const uint8_t* chunk : chunks) EXPECT_TRUE(IsResident(chunk));
}

TEST(ChunkPoolTest, WhatIsTouchedFarBehindIsNoReasonNotToTouchWhatIsTakenFirst) {
  ChunkPool pool(8 * kChunk);
  std::vector<uint8_t*> chunks;
  for (int i = 0; i < 8; ++i) chunks.push_back(pool.Acquire());
  for (int i = 0; i < 6; ++i) pool.Release(chunks[i]);
  EXPECT_EQ(pool.GiveBackUnused(0), 2 * kChunk);
  EXPECT_FALSE(IsResident(chunks[0]));
  EXPECT_EQ(TouchAhead(pool, 2 * kChunk), 2u);
  EXPECT_TRUE(IsResident(chunks[0]));
  EXPECT_EQ(pool.touched_bytes(), 4 * kChunk);
  for (int i = 6; i < 8; ++i) pool.Release(chunks[i]);
}

// Chunks that are touched are taken by others meanwhile.
TEST(ChunkPoolTest, TouchingAheadIsSafeBesideThoseWhoTakeAndGiveBack) {
  ChunkPool pool(8 * kChunk);
  std::atomic<bool> stop = false;
  std::thread background([&] {
    while (!stop.load()) {
      TouchAhead(pool, 8 * kChunk);
      pool.GiveBackUnused(0);
    }
  });
  for (uint32_t i = 0; i < 20'000; ++i) {
    uint8_t* const chunk = pool.Acquire();
    ASSERT_NE(chunk, nullptr);
    std::memcpy(chunk, &i, sizeof i);
    std::memcpy(chunk + kChunk - sizeof i, &i, sizeof i);
    uint32_t first, last;
    std::memcpy(&first, chunk, sizeof i);
    std::memcpy(&last, chunk + kChunk - sizeof i, sizeof i);
    ASSERT_EQ(first, i);
    ASSERT_EQ(last, i);
    pool.Release(chunk);
  }
  stop = true;
  background.join();
}

TEST(ChunkPoolTest, TellsOnceWhenMoreIsInUse) {
  int told = 0;
  ChunkPool pool(6 * kChunk, [&told] { ++told; });
  uint8_t* run = pool.AcquireRun(2);
  EXPECT_EQ(told, 0);
  pool.TellAbove(3 * kChunk);
  uint8_t* third = pool.Acquire();
  EXPECT_EQ(told, 0);
  uint8_t* fourth = pool.Acquire();
  EXPECT_EQ(told, 1);
  uint8_t* fifth = pool.Acquire();
  EXPECT_EQ(told, 1);
  pool.TellAbove(3 * kChunk);
  pool.Release(fifth);
  EXPECT_EQ(told, 1);
  fifth = pool.Acquire();
  EXPECT_EQ(told, 2);
  for (uint8_t* chunk : {third, fourth, fifth}) pool.Release(chunk);
  pool.Release(run, 2);
}

TEST(ChunkPoolTest, TheMostInUseIsToldSinceTheLastTime) {
  ChunkPool pool(6 * kChunk);
  uint8_t* first = pool.Acquire();
  pool.Release(pool.AcquireRun(3), 3);
  EXPECT_EQ(pool.TakeUsedMax(), 4 * kChunk);
  EXPECT_EQ(pool.TakeUsedMax(), 1 * kChunk);
  pool.Release(first);
  EXPECT_EQ(pool.TakeUsedMax(), 1 * kChunk);
  EXPECT_EQ(pool.TakeUsedMax(), 0u);
}

TEST(ChunkPoolTest, ThreadsNeverShareAChunk) {
  constexpr int kThreads = 4;
  ChunkPool pool(8 * kChunk);
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const size_t chunks = 1 + static_cast<size_t>((i + t) % 3);
        uint8_t* run = pool.AcquireRun(chunks);
        if (run == nullptr) continue;
        for (size_t c = 0; c < chunks; ++c) run[c * kChunk] = static_cast<uint8_t>(t);
        for (size_t c = 0; c < chunks; ++c) clashes += run[c * kChunk] != t ? 1 : 0;
        pool.Release(run, chunks);
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 200; ++i) pool.GiveBackUnused(static_cast<size_t>(i % 3) * kChunk);
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes.load(), 0);
  EXPECT_EQ(pool.used_bytes(), 0u);
  EXPECT_LE(pool.TakeUsedMax(), 8 * kChunk);
}

using ChunkPoolDeathTest = ::testing::Test;

TEST(ChunkPoolDeathTest, GivingAChunkBackTwiceEndsTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        ChunkPool pool(2 * kChunk);
        uint8_t* chunk = pool.Acquire();
        pool.Release(chunk);
        pool.Release(chunk);
      },
      "before & BitOf");
}

}  // namespace
}  // namespace partita

#include "memtable/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace partita {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(ArenaTest, PiecesAreAlignedAndDoNotOverlap) {
  ChunkPool pool(8 * kMiB);
  Arena arena(pool);
  std::vector<std::pair<uint8_t*, size_t>> pieces;
  for (size_t size = 0; size < 3000; size += 7) {
    uint8_t* piece = arena.Allocate(size);
    ASSERT_NE(piece, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 8, 0u);
    std::memset(piece, static_cast<int>(size % 251), size);
    pieces.emplace_back(piece, size);
  }
  for (auto [piece, size] : pieces) {
    EXPECT_TRUE(std::all_of(piece, piece + size, [size](uint8_t b) { return b == size % 251; }));
  }
}

TEST(ArenaTest, TakesNothingBeforeTheFirstAllocation) {
  ChunkPool pool(4 * kMiB);
  Arena arena(pool);
  EXPECT_EQ(pool.used_bytes(), 0u);
  EXPECT_EQ(arena.allocated_bytes(), 0u);
  EXPECT_EQ(arena.reserved_bytes(), 0u);
}

TEST(ArenaTest, GivesEverythingBackWhenItDies) {
  ChunkPool pool(16 * kMiB);
  {
    Arena arena(pool);
    for (int i = 0; i < 100; ++i) ASSERT_NE(arena.Allocate(50'000), nullptr);
    ASSERT_NE(arena.Allocate(3 * kMiB), nullptr);
    EXPECT_EQ(pool.used_bytes(), arena.reserved_bytes());
    EXPECT_GE(arena.reserved_bytes(), arena.allocated_bytes());
  }
  EXPECT_EQ(pool.used_bytes(), 0u);
}

TEST(ArenaTest, APieceAboveAChunkLiesInOneRunAndLeavesTheRestUsable) {
  ChunkPool pool(8 * kMiB);
  Arena arena(pool);
  ASSERT_NE(arena.Allocate(8), nullptr);
  uint8_t* big = arena.Allocate(2 * kMiB + 100);
  ASSERT_NE(big, nullptr);
  std::memset(big, 7, 2 * kMiB + 100);
  EXPECT_EQ(arena.reserved_bytes(), 4 * kMiB);
  // Both remainders are almost a chunk; the one that is kept takes small pieces without a new chunk.
  for (int i = 0; i < 900; ++i) ASSERT_NE(arena.Allocate(1000), nullptr);
  EXPECT_EQ(arena.reserved_bytes(), 4 * kMiB);
}

TEST(ArenaTest, ExhaustionAnswersNullAndHarmsNothing) {
  ChunkPool pool(2 * kMiB);
  Arena arena(pool);
  uint8_t* first = arena.Allocate(1000);
  ASSERT_NE(first, nullptr);
  std::memset(first, 5, 1000);
  EXPECT_EQ(arena.Allocate(2 * kMiB), nullptr);
  EXPECT_EQ(arena.Allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(arena.Allocate(SIZE_MAX - 7), nullptr);
  size_t pieces = 0;
  while (arena.Allocate(1000) != nullptr) ++pieces;
  EXPECT_GT(pieces, 2000u);
  EXPECT_EQ(pool.free_bytes(), 0u);
  // Small pieces still fit at the end of the last chunk.
  EXPECT_NE(arena.Allocate(8), nullptr);
  EXPECT_TRUE(std::all_of(first, first + 1000, [](uint8_t b) { return b == 5; }));
}

TEST(ArenaTest, AllocatedBytesGrowWithEachPiece) {
  ChunkPool pool(64 * kMiB);
  Arena arena(pool);
  size_t before = 0;
  for (size_t size : {1u, 100u, 900'000u, 200'000u, 1'500'000u, 40u, 2'900'000u, 8u}) {
    ASSERT_NE(arena.Allocate(size), nullptr);
    const size_t now = arena.allocated_bytes();
    EXPECT_GE(now, before + size);
    EXPECT_LE(now, arena.reserved_bytes());
    before = now;
  }
}

TEST(ArenaTest, ThreadsGetPiecesOfTheirOwn) {
  constexpr size_t kThreads = 4;
  constexpr size_t kPieces = 20'000;
  ChunkPool pool(64 * kMiB);
  Arena arena(pool);
  std::vector<std::vector<std::pair<uint8_t*, size_t>>> pieces(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kPieces; ++i) {
        const size_t size = 1 + (i * 37 + t * 11) % 300;
        uint8_t* piece = arena.Allocate(size);
        if (piece == nullptr) return;
        std::memset(piece, static_cast<int>(t + 1), size);
        pieces[t].emplace_back(piece, size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::pair<uint8_t*, size_t>> all;
  for (size_t t = 0; t < kThreads; ++t) {
    ASSERT_EQ(pieces[t].size(), kPieces);
    for (auto [piece, size] : pieces[t]) {
      EXPECT_TRUE(std::all_of(piece, piece + size, [t](uint8_t b) { return b == t + 1; }));
    }
    all.insert(all.end(), pieces[t].begin(), pieces[t].end());
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 1; i < all.size(); ++i) ASSERT_LE(all[i - 1].first + all[i - 1].second, all[i].first);
}

TEST(ArenaTest, ThreadsThatRaceForTheLastChunkStayWithinThePool) {
  ChunkPool pool(3 * kMiB);
  Arena arena(pool);
  std::atomic<size_t> bytes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (uint8_t* piece = arena.Allocate(512)) {
        piece[0] = piece[511] = 1;
        bytes.fetch_add(512);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(bytes.load(), 3 * kMiB);
  EXPECT_GT(bytes.load(), 3 * kMiB - 4096);
  EXPECT_LE(arena.allocated_bytes(), arena.reserved_bytes());
}

}  // namespace
}  // namespace partita

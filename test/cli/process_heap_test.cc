#include "api/cli/process_heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "test/support/no_threads.h"

namespace partita {
namespace {

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kOwnMalloc = true;
#else
constexpr bool kOwnMalloc = false;
#endif

constexpr uint64_t kMiB = 1 << 20;

TEST(ProcessHeapTest, WhatIsTakenFromMallocIsCountedUntilItIsFreed) {
  if (kOwnMalloc) GTEST_SKIP() << "the sanitizer brings a malloc of its own, which tells no figures";
  KeepHeapSmall(1024 * kMiB);
  constexpr size_t kPiece = 100 << 10;
  constexpr size_t kLarge = 8 << 20;
  const HeapFigures before = ReadHeapFigures();
  std::vector<std::unique_ptr<char[]>> pieces;
  for (int i = 0; i < 100; ++i) pieces.push_back(std::make_unique<char[]>(kPiece));
  pieces.push_back(std::make_unique<char[]>(kLarge));
  const HeapFigures with = ReadHeapFigures();
  EXPECT_GE(with.used_bytes, before.used_bytes + 100 * kPiece + kLarge);
  EXPECT_GE(with.held_bytes, with.used_bytes);
  pieces.pop_back();
  EXPECT_LE(ReadHeapFigures().held_bytes, with.held_bytes - kLarge) << "the system's again at once";
  pieces.clear();
  EXPECT_LT(ReadHeapFigures().used_bytes, before.used_bytes + kPiece);
}

TEST(ProcessHeapTest, HolesOfABurstAreTheSystemsAgain) {
  if (kOwnMalloc) GTEST_SKIP() << "the sanitizer brings a malloc of its own";
  const auto trimmer = HeapTrimmer::Open(1024 * kMiB);
  ASSERT_TRUE(trimmer.ok());
  std::vector<std::unique_ptr<char[]>> kept;
  while ((*trimmer)->trims() == 0) {
    std::vector<std::unique_ptr<char[]>> burst;
    for (int i = 0; i < 500; ++i) {
      burst.push_back(std::make_unique<char[]>(60'000));  // Written to: zeros.
      kept.push_back(std::make_unique<char[]>(100));
    }
    ASSERT_LT(kept.size(), 50'000'000u);
  }
}

TEST(ProcessHeapTest, WithoutAThreadThereIsNoTrimmer) {
  const NoThreads none;
  EXPECT_EQ(HeapTrimmer::Open(1024 * kMiB).status().code(), Code::kResourceExhausted);
}

// How many of `looks` are due, of a process that holds 100 MiB and has grown by so much again at each of
// them.
int TrimsOf(TrimPacer& pacer, int looks, uint64_t grown_bytes) {
  int trims = 0;
  for (int i = 0; i < looks; ++i) {
    if (!pacer.IsDue(100 * kMiB + grown_bytes)) continue;
    pacer.Trimmed(100 * kMiB);
    ++trims;
  }
  return trims;
}

TEST(TrimPacerTest, ALittleGrowthIsLeftAlone) {
  TrimPacer pacer(100 * kMiB, 1024 * kMiB);
  EXPECT_EQ(TrimsOf(pacer, 1000, 7 * kMiB), 0);
}

TEST(TrimPacerTest, WhatGrowsAgainAtOnceIsGivenBackEverMoreSeldom) {
  TrimPacer pacer(100 * kMiB, 1024 * kMiB);
  EXPECT_TRUE(pacer.IsDue(120 * kMiB)) << "the first time at once";
  pacer.Trimmed(100 * kMiB);
  EXPECT_EQ(TrimsOf(pacer, 126, 20 * kMiB), 6) << "after 2, 4, 8, 16, 32 and 64 looks";
  EXPECT_EQ(TrimsOf(pacer, 640, 20 * kMiB), 10) << "and no more seldom than every 64th";
}

TEST(TrimPacerTest, AfterARestTheNextGrowthIsGivenBackAtOnce) {
  TrimPacer pacer(100 * kMiB, 1024 * kMiB);
  TrimsOf(pacer, 640, 20 * kMiB);
  EXPECT_EQ(TrimsOf(pacer, 200, 0), 0);
  EXPECT_EQ(TrimsOf(pacer, 1, 20 * kMiB), 1);
  EXPECT_EQ(TrimsOf(pacer, 3, 20 * kMiB), 2) << "the pause begins anew";
}

TEST(TrimPacerTest, FarGrowthIsGivenBackWhateverThePause) {
  TrimPacer pacer(100 * kMiB, 1024 * kMiB);
  TrimsOf(pacer, 640, 20 * kMiB);
  EXPECT_EQ(TrimsOf(pacer, 5, 40 * kMiB), 5);
  // What is far is a share of the budget.
  TrimPacer small(100 * kMiB, 256 * kMiB);
  TrimsOf(small, 640, 10 * kMiB);
  EXPECT_EQ(TrimsOf(small, 5, 10 * kMiB), 0);
  EXPECT_EQ(TrimsOf(small, 5, 13 * kMiB), 5);
}

}  // namespace
}  // namespace partita

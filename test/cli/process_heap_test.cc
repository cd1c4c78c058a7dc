#include "api/cli/process_heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace partita {
namespace {

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kOwnMalloc = true;
#else
constexpr bool kOwnMalloc = false;
#endif

TEST(ProcessHeapTest, WhatIsTakenFromMallocIsCountedUntilItIsFreed) {
  if (kOwnMalloc) GTEST_SKIP() << "the sanitizer brings a malloc of its own, which tells no figures";
  KeepHeapSmall();
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
  HeapTrimmer trimmer;
  std::vector<std::unique_ptr<char[]>> kept;
  while (trimmer.trims() == 0) {
    std::vector<std::unique_ptr<char[]>> burst;
    for (int i = 0; i < 500; ++i) {
      burst.push_back(std::make_unique<char[]>(60'000));  // Written to: zeros.
      kept.push_back(std::make_unique<char[]>(100));
    }
    ASSERT_LT(kept.size(), 50'000'000u);
  }
}

}  // namespace
}  // namespace partita

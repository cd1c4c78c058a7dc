#include "engine/base/large_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace partita {
namespace {

constexpr size_t kHuge = LargeMemory::kHugePageSize;

TEST(LargeMemoryTest, IsZeroAndBeginsAtAHugePage) {
  LargeMemory memory(3 * kHuge + 100);
  ASSERT_NE(memory.data(), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % kHuge, 0u);
  EXPECT_EQ(memory.size(), 3 * kHuge + 100);
  for (size_t at : {size_t{0}, kHuge, 3 * kHuge + 99}) EXPECT_EQ(memory.data()[at], 0) << at;
  memory.data()[3 * kHuge + 99] = 1;
}

TEST(LargeMemoryTest, WhatIsGivenBackIsZeroAgainAndTheRestStays) {
  LargeMemory memory(kHuge);
  std::memset(memory.data(), 0x5A, kHuge);
  memory.GiveBack(8192, 4096);
  for (size_t at = 0; at < kHuge; ++at) {
    ASSERT_EQ(memory.data()[at], at >= 8192 && at < 12'288 ? 0 : 0x5A) << at;
  }
}

TEST(LargeMemoryTest, MovesWithWhatItHolds) {
  LargeMemory first(1000);
  first.data()[999] = 7;
  LargeMemory second(kHuge);
  second = std::move(first);
  EXPECT_EQ(second.data()[999], 7);
  EXPECT_EQ(second.size(), 1000u);
  EXPECT_EQ(first.data(), nullptr);
}

TEST(LargeMemoryTest, WhatTheKernelRefusesIsNull) { EXPECT_EQ(LargeMemory(size_t{1} << 60).data(), nullptr); }

TEST(LargeArrayTest, ItsObjectsAreZeroAndApart) {
  LargeArray<uint64_t> numbers(1'000'000);
  EXPECT_EQ(numbers[999'999], 0u);
  for (uint64_t i = 0; i < 1'000'000; ++i) numbers[i] = i;
  for (uint64_t i = 0; i < 1'000'000; ++i) ASSERT_EQ(numbers[i], i);
}

}  // namespace
}  // namespace partita

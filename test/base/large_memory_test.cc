#include "engine/base/large_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "test/support/resident_memory.h"

namespace partita {
namespace {

constexpr size_t kHuge = LargeMemory::kHugePageSize;
constexpr size_t kPage = 4096;

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

TEST(LargeMemoryTest, WhatIsTouchedIsThereAndUnchanged) {
  LargeMemory memory(3 * kHuge);
  std::memset(memory.data() + 100, 0x5A, 100);
  memory.Touch(0, 2 * kHuge);
  EXPECT_EQ(ResidentPages(memory.data(), 2 * kHuge), 2 * kHuge / kPage);
  EXPECT_EQ(ResidentPages(memory.data() + 2 * kHuge, kHuge), 0u);
  for (size_t at = 0; at < 2 * kHuge; ++at) {
    ASSERT_EQ(memory.data()[at], at >= 100 && at < 200 ? 0x5A : 0) << at;
  }
}

TEST(LargeMemoryTest, TouchingTakesNothingFromWhoWritesThere) {
  LargeMemory memory(kHuge);
  std::atomic<bool> stop = false;
  std::thread toucher([&] {
    while (!stop.load()) memory.Touch(0, kHuge);
  });
  for (int round = 1; round < 500; ++round) {
    for (size_t at = 0; at < kHuge; at += kPage) memory.data()[at] = static_cast<uint8_t>(round);
    for (size_t at = 0; at < kHuge; at += kPage) ASSERT_EQ(memory.data()[at], static_cast<uint8_t>(round));
  }
  stop = true;
  toucher.join();
}

TEST(MemoryToucherTest, TouchesFromTheFrontAndAgainWhatItIsToForget) {
  LargeMemory memory(2 * kHuge + kPage);
  MemoryToucher toucher;
  EXPECT_FALSE(toucher.TouchNext(memory, 0));
  EXPECT_FALSE(toucher.TouchNext(memory, kHuge - 1));
  EXPECT_TRUE(toucher.TouchNext(memory, kHuge));
  EXPECT_FALSE(toucher.TouchNext(memory, kHuge));
  EXPECT_EQ(ResidentPages(memory.data() + kHuge, kHuge), 0u);
  EXPECT_TRUE(toucher.TouchNext(memory, SIZE_MAX));
  EXPECT_TRUE(toucher.TouchNext(memory, SIZE_MAX));
  EXPECT_FALSE(toucher.TouchNext(memory, SIZE_MAX));
  EXPECT_EQ(ResidentPages(memory.data(), memory.size()), memory.size() / kPage);
  memory.GiveBack(kHuge, kHuge + kPage);
  toucher.Forget(kHuge);
  toucher.Forget(2 * kHuge);  // Of what is not touched.
  EXPECT_FALSE(toucher.TouchNext(memory, kHuge));
  while (toucher.TouchNext(memory, memory.size())) {
  }
  EXPECT_EQ(ResidentPages(memory.data(), memory.size()), memory.size() / kPage);
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

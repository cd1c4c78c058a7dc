#include "engine/base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "test/support/resident_memory.h"

namespace partita {
namespace {

TEST(AlignedBufferTest, HasWholeAlignedPages) {
  for (const size_t size : {size_t{1}, kPageSize, AlignedBuffer::kLargeMin - 1, AlignedBuffer::kLargeMin,
                            AlignedBuffer::kLargeMin + 1, AlignedBuffer::kKeptMax + 1}) {
    AlignedBuffer buffer(size);
    ASSERT_NE(buffer.data(), nullptr) << size;
    EXPECT_EQ(buffer.size(), AlignUp(size, kPageSize));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kPageSize, 0u);
    std::memset(buffer.data(), 0x5a, buffer.size());
  }
}

TEST(AlignedBufferTest, MovesAndLeavesNothingBehind) {
  AlignedBuffer from(AlignedBuffer::kLargeMin);
  uint8_t* const data = from.data();
  AlignedBuffer to(kPageSize);
  to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(from.data(), nullptr);  // NOLINT: what moving leaves is what is tested.
  EXPECT_EQ(from.size(), 0u);
}

#if defined(__has_feature)
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
// Each thread has a malloc heap of its own. Were large buffers taken from it, the small piece allocated after
// each of them would keep its memory in the heap for good: here 144 MiB.
TEST(AlignedBufferTest, ThreadsThatFreedLargeBuffersHoldNothing) {
  constexpr size_t kThreads = 12, kBuffers = 12, kSize = 1u << 20;
  std::vector<std::unique_ptr<char[]>> pins(kThreads * kBuffers);
  const size_t before = ResidentBytes();
  std::barrier<> all_have(static_cast<ptrdiff_t>(kThreads));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<AlignedBuffer> buffers;
      for (size_t i = 0; i < kBuffers; ++i) {
        buffers.emplace_back(kSize);
        std::memset(buffers.back().data(), 1, kSize);
        pins[t * kBuffers + i] = std::make_unique<char[]>(100);
      }
      all_have.arrive_and_wait();  // Else one heap would serve them in turn.
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(ResidentBytes(), before + AlignedBuffer::kKeptMax + (16u << 20));
}
#endif
#endif

}  // namespace
}  // namespace partita

#include "sstable/heap_frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace partita {
namespace {

constexpr size_t kBlock = 8000;

#if defined(__has_feature) && __has_feature(address_sanitizer)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

TEST(HeapFrameTest, AThreadTakesWhatItLeftForABlockOfAboutThatSize) {
  uint8_t* const first = TakeHeapFrame(kBlock);
  uint8_t* const second = TakeHeapFrame(kBlock);
  ASSERT_NE(first, second);
  std::memset(first, 1, kBlock);
  std::memset(second, 2, kBlock);
  LeaveHeapFrame(first, kBlock);
  LeaveHeapFrame(second, kBlock);
  uint8_t* const large = TakeHeapFrame(2 * kBlock);
  uint8_t* const again = TakeHeapFrame(kBlock + 100);
  uint8_t* const and_again = TakeHeapFrame(kBlock - 100);
  if (kKeeps) EXPECT_TRUE((again == first && and_again == second) || (again == second && and_again == first));
  // One that was taken and left takes no other's place.
  LeaveHeapFrame(again, kBlock);
  LeaveHeapFrame(and_again, kBlock);
  LeaveHeapFrame(TakeHeapFrame(kBlock), kBlock);
  uint8_t* const third = TakeHeapFrame(kBlock);
  uint8_t* const fourth = TakeHeapFrame(kBlock);
  if (kKeeps) EXPECT_TRUE((third == first && fourth == second) || (third == second && fourth == first));
  std::memset(large, 3, 2 * kBlock);
  std::memset(third, 4, kBlock);
  LeaveHeapFrame(large, 2 * kBlock);
  LeaveHeapFrame(third, kBlock);
  LeaveHeapFrame(fourth, kBlock);
}

TEST(HeapFrameTest, WhatAnotherThreadTookMayBeLeftHere) {
  uint8_t* frame = nullptr;
  std::thread([&] { frame = TakeHeapFrame(kBlock); }).join();
  std::memset(frame, 1, kBlock);
  LeaveHeapFrame(frame, kBlock);
}

// Made before the frames that the thread keeps, so it ends after them.
struct LeavesAtItsEnd {
  uint8_t* frame = nullptr;
  ~LeavesAtItsEnd() {
    if (frame == nullptr) return;
    LeaveHeapFrame(frame, kBlock);
    LeaveHeapFrame(TakeHeapFrame(kBlock), kBlock);
  }
};

TEST(HeapFrameTest, AThreadMayLeaveFramesAtItsVeryEnd) {
  std::thread([] {
    thread_local LeavesAtItsEnd last;
    last.frame = TakeHeapFrame(kBlock);
    std::memset(last.frame, 1, kBlock);
  }).join();
}

}  // namespace
}  // namespace partita

#include "api/cli/process_heap.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "engine/world.h"

namespace partita {

namespace {

// Above what most answers and bodies need: those stay with malloc and are never touched anew.
constexpr int kLargeBytes = 512 << 10;
// Of each heap; what the trimmer finds a moment later is not lost.
constexpr int kTrimBytes = 8 << 20;
// Each heap has holes of its own; threads beyond so many share one.
constexpr int kHeapsMax = 4;
constexpr uint64_t kGrownBytes = 8 << 20;
// So much is given back whatever it costs.
constexpr uint64_t kGrownFarBytes = 32 << 20;
constexpr std::chrono::milliseconds kLookEvery{200};
constexpr int kPauseMax = 64;  // 13 s.

}  // namespace

HeapFigures ReadHeapFigures() {
  const struct mallinfo2 figures = mallinfo2();
  return {.used_bytes = figures.uordblks + figures.hblkhd, .held_bytes = figures.arena + figures.hblkhd};
}

void KeepHeapSmall() {
  // A refusal leaves malloc as it is, which is slower to give back and not wrong.
  (void)mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  (void)mallopt(M_TRIM_THRESHOLD, kTrimBytes);
  (void)mallopt(M_ARENA_MAX, kHeapsMax);
}

HeapTrimmer::HeapTrimmer() : thread_([this] { Run(); }) {}

HeapTrimmer::~HeapTrimmer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

uint64_t HeapTrimmer::trims() const {
  const std::lock_guard lock(mutex_);
  return trims_;
}

bool TrimPacer::IsDue(uint64_t resident_bytes) {
  least_ = std::min(least_, resident_bytes);
  ++looks_;
  return resident_bytes >= least_ + (looks_ < pause_ ? kGrownFarBytes : kGrownBytes);
}

void TrimPacer::Trimmed(uint64_t resident_bytes) {
  least_ = resident_bytes;
  pause_ = looks_ <= 2 * pause_ ? std::min(2 * pause_, kPauseMax) : 1;
  looks_ = 0;
}

void HeapTrimmer::Run() {
  TrimPacer pacer(ResidentSetBytes());
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kLookEvery, [this] { return stopping_; })) {
    if (!pacer.IsDue(ResidentSetBytes())) continue;
    malloc_trim(0);
    pacer.Trimmed(ResidentSetBytes());
    ++trims_;
  }
}

}  // namespace partita

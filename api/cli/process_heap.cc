#include "api/cli/process_heap.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/world.h"

namespace partita {

namespace {

// Above what most answers and bodies need: those stay with malloc and are never touched anew.
constexpr int kLargeBytes = 512 << 10;
// Each heap has holes of its own; threads beyond so many share one.
constexpr int kHeapsMax = 4;
constexpr uint64_t kGrownBytes = 8 << 20;
// So much is given back whatever it costs: a twentieth of the budget, as far as that is between these.
constexpr uint64_t kGrownFarBytes = 32 << 20;
constexpr uint64_t kFarShare = 20;
constexpr uint64_t FarBytes(uint64_t budget_bytes) {
  return std::clamp(budget_bytes / kFarShare, kGrownBytes, kGrownFarBytes);
}
constexpr std::chrono::milliseconds kLookEvery{200};
constexpr int kPauseMax = 64;  // 13 s.

}  // namespace

HeapFigures ReadHeapFigures() {
  const struct mallinfo2 figures = mallinfo2();
  return {.used_bytes = figures.uordblks + figures.hblkhd, .held_bytes = figures.arena + figures.hblkhd};
}

void KeepHeapSmall(uint64_t budget_bytes) {
  // A refusal leaves malloc as it is, which is slower to give back and not wrong.
  (void)mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  // What the trimmer finds a moment later is not lost.
  (void)mallopt(M_TRIM_THRESHOLD, static_cast<int>(FarBytes(budget_bytes) / kHeapsMax));
  (void)mallopt(M_ARENA_MAX, kHeapsMax);
}

Result<std::unique_ptr<HeapTrimmer>> HeapTrimmer::Open(uint64_t budget_bytes) {
  std::unique_ptr<HeapTrimmer> trimmer(new HeapTrimmer());
  auto run = [trimmer = trimmer.get(), budget_bytes] { trimmer->Run(budget_bytes); };
  PARTITA_ASSIGN(trimmer->thread_, StartThread("partita-heap", std::move(run)));
  return trimmer;
}

HeapTrimmer::~HeapTrimmer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();  // Else Open found no thread.
}

uint64_t HeapTrimmer::trims() const {
  const std::lock_guard lock(mutex_);
  return trims_;
}

TrimPacer::TrimPacer(uint64_t resident_bytes, uint64_t budget_bytes)
    : least_(resident_bytes), far_bytes_(FarBytes(budget_bytes)) {}

bool TrimPacer::IsDue(uint64_t resident_bytes) {
  least_ = std::min(least_, resident_bytes);
  ++looks_;
  return resident_bytes >= least_ + (looks_ < pause_ ? far_bytes_ : kGrownBytes);
}

void TrimPacer::Trimmed(uint64_t resident_bytes) {
  least_ = resident_bytes;
  pause_ = looks_ <= 2 * pause_ ? std::min(2 * pause_, kPauseMax) : 1;
  looks_ = 0;
}

void HeapTrimmer::Run(uint64_t budget_bytes) {
  TrimPacer pacer(ResidentSetBytes(), budget_bytes);
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kLookEvery, [this] { return stopping_; })) {
    if (!pacer.IsDue(ResidentSetBytes())) continue;
    malloc_trim(0);
    pacer.Trimmed(ResidentSetBytes());
    ++trims_;
  }
}

}  // namespace partita

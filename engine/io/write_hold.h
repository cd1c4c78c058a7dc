#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "engine/base/clock.h"
#include "engine/base/executor.h"
#include "engine/base/task.h"

namespace partita {

// Holds back what is written to table files while something short waits for flushes: a flush waits for what
// the device is writing, 1 to 3 ms of it, and all writes of a range may wait for the flush (store_ranges.cc).
//
// A hold is over at its end or kNanosMax after it began, whichever is first: what is held back may be what
// its owner waits for. A later one takes the place of an earlier one. The times order nothing: who sees one
// late writes one piece more, or looks once more. Thread-safe. `clock` outlives it.
class WriteHold {
 public:
  static constexpr uint64_t kNanosMax = 20'000'000;
  static constexpr uint64_t kFreeNanos = 100'000'000;

  // Ends the hold when it goes, or by End.
  class Guard {
   public:
    Guard() = default;
    Guard(Guard&& other) noexcept : hold_(std::exchange(other.hold_, nullptr)), until_ns_(other.until_ns_) {}
    Guard& operator=(Guard&& other) noexcept {
      End();
      hold_ = std::exchange(other.hold_, nullptr);
      until_ns_ = other.until_ns_;
      return *this;
    }
    ~Guard() { End(); }
    void End() {
      if (hold_ == nullptr) return;
      uint64_t own = until_ns_;  // A later one stays.
      std::exchange(hold_, nullptr)->until_ns_.compare_exchange_strong(own, 0, std::memory_order_relaxed);
    }

   private:
    friend class WriteHold;
    Guard(WriteHold* hold, uint64_t until_ns) : hold_(hold), until_ns_(until_ns) {}
    WriteHold* hold_ = nullptr;
    uint64_t until_ns_ = 0;
  };

  explicit WriteHold(Clock& clock) : clock_(clock) {}

  Guard Begin() {
    // Above that of one that holds, so that no two are the same.
    const uint64_t until_ns =
        std::max(clock_.MonotonicNanos() + kNanosMax, until_ns_.load(std::memory_order_relaxed) + 1);
    until_ns_.store(until_ns, std::memory_order_relaxed);
    return Guard(this, until_ns);
  }

  // For who is about to write: ends when nothing holds it back, or kNanosMax later though one hold follows
  // the other. Then nothing is held back for kFreeNanos: who splits ranges in a loop must not take all
  // writing.
  Task<void> Pass() {
    if (until_ns_.load(std::memory_order_relaxed) == 0) co_return;
    uint64_t now = clock_.MonotonicNanos();
    if (now < free_until_ns_.load(std::memory_order_relaxed)) co_return;
    const uint64_t end = now + kNanosMax;
    while (now < std::min(end, until_ns_.load(std::memory_order_relaxed))) {
      co_await SleepFor(kPollNanos);
      now = clock_.MonotonicNanos();
    }
    if (now >= end) free_until_ns_.store(now + kFreeNanos, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kPollNanos = 200'000;

  Clock& clock_;
  std::atomic<uint64_t> until_ns_{0};       // 0: nothing is held back.
  std::atomic<uint64_t> free_until_ns_{0};  // Nothing is, whoever begins.
};

}  // namespace partita

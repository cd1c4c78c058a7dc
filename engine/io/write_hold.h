#pragma once
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
// its owner waits for. One at a time. Thread-safe. `clock` outlives it.
class WriteHold {
 public:
  static constexpr uint64_t kNanosMax = 20'000'000;

  // Ends the hold when it goes, or by End.
  class Guard {
   public:
    Guard() = default;
    Guard(Guard&& other) noexcept : hold_(std::exchange(other.hold_, nullptr)) {}
    Guard& operator=(Guard&& other) noexcept {
      End();
      hold_ = std::exchange(other.hold_, nullptr);
      return *this;
    }
    ~Guard() { End(); }
    void End() {
      if (hold_ != nullptr) std::exchange(hold_, nullptr)->until_ns_.store(0, std::memory_order_relaxed);
    }

   private:
    friend class WriteHold;
    explicit Guard(WriteHold* hold) : hold_(hold) {}
    WriteHold* hold_ = nullptr;
  };

  explicit WriteHold(Clock& clock) : clock_(clock) {}

  Guard Begin() {
    until_ns_.store(clock_.MonotonicNanos() + kNanosMax, std::memory_order_relaxed);
    return Guard(this);
  }

  // For who is about to write: ends when nothing holds it back.
  Task<void> Pass() {
    while (true) {
      const uint64_t until_ns = until_ns_.load(std::memory_order_relaxed);
      if (until_ns == 0 || clock_.MonotonicNanos() >= until_ns) co_return;
      co_await SleepFor(kPollNanos);
    }
  }

 private:
  static constexpr uint64_t kPollNanos = 200'000;

  Clock& clock_;
  std::atomic<uint64_t> until_ns_{0};
};

}  // namespace partita

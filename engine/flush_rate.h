#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

namespace partita {

// How many bytes a second a shard flushes, of late. Between two flushes it is taken to have been the bytes of
// the later one over the time between them; what is longer ago weighs the less, a third after
// kMemorySeconds. It holds until the next flush is overdue, that is for about as long as the longest of the
// last pauses, and falls only then: a shard of few writers flushes once in 20 s, and is asked in between.
// Added to by one thread at a time, read by any.
//
//   All relaxed. A reader that sees some of them newer than others is told a little too much or too little,
//   once.
class FlushRate {
 public:
  static constexpr double kMemorySeconds = 8;
  // Of pauses beyond this it cannot be told whether they have ended for good.
  static constexpr double kPauseSecondsMax = 30;

  void Add(uint64_t now_ns, uint64_t bytes) {
    const uint64_t at_ns = at_ns_.load(std::memory_order_relaxed);
    // Of the first one nobody knows since when it was written; it counts as one of kMemorySeconds.
    const double pause = at_ns == 0 ? 0 : SecondsBetween(at_ns, now_ns);
    const double kept = std::exp(-pause / kMemorySeconds);
    const double share = pause > 0 ? (1 - kept) / pause : 1 / kMemorySeconds;
    const double before = rate_.load(std::memory_order_relaxed);
    rate_.store(before * kept + share * static_cast<double>(bytes), std::memory_order_relaxed);
    const double longest = std::max(pause, pause_.load(std::memory_order_relaxed) * 0.9);
    pause_.store(std::min(longest, kPauseSecondsMax), std::memory_order_relaxed);
    at_ns_.store(now_ns, std::memory_order_relaxed);
  }
  uint64_t PerSecond(uint64_t now_ns) const {
    const double passed = SecondsBetween(at_ns_.load(std::memory_order_relaxed), now_ns);
    const double overdue = std::max(0.0, passed - pause_.load(std::memory_order_relaxed));
    const double rate = rate_.load(std::memory_order_relaxed);
    return static_cast<uint64_t>(rate * std::exp(-overdue / kMemorySeconds));
  }

 private:
  static double SecondsBetween(uint64_t from_ns, uint64_t to_ns) {
    return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) * 1e-9 : 0;
  }

  std::atomic<double> rate_{0};   // As of at_ns_.
  std::atomic<double> pause_{0};  // Seconds that may pass until it falls.
  std::atomic<uint64_t> at_ns_{0};
};

}  // namespace partita

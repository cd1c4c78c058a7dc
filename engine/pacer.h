#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace partita {

// How much a shard's writers are slowed, in proportion to what is behind: each byte admitted must
// buy flush and compaction work, so that neither the memtable pool nor the compaction debt ever
// runs into a wall (DESIGN 7). No cliff: nothing up to half of either budget, then rising with the
// excess.
//
// Delays are owed in nanoseconds and slept in pieces of at least kPieceNanos, because a sleep below
// that costs as much as one of that length. Thread-safe.
class Pacer {
 public:
  static constexpr uint64_t kPieceNanos = 200'000;
  // No single wait is longer: a writer that owes more pays with its next writes.
  static constexpr uint64_t kWaitNanosMax = 20'000'000;

  // `memory_share`: how much of the shard's memtable memory is used, 1.0 = all of it.
  // `debt_nanos_per_kib`: what compaction/pacing.h asks for.
  void SetPressure(double memory_share, uint64_t debt_nanos_per_kib) {
    double over = std::clamp((memory_share - 0.5) * 2, 0.0, 2.0);
    uint64_t memory = static_cast<uint64_t>(kMemoryNanosPerKib * over * over);
    nanos_per_kib_.store(memory + debt_nanos_per_kib, std::memory_order_relaxed);
  }

  // Books `bytes` and returns how long this writer sleeps now; usually 0.
  uint64_t Charge(uint64_t bytes) {
    uint64_t rate = nanos_per_kib_.load(std::memory_order_relaxed);
    if (rate == 0) return 0;
    uint64_t owed = owed_.fetch_add(bytes * rate / 1024, std::memory_order_relaxed) + bytes * rate / 1024;
    uint64_t wait = 0;
    do {  // One writer pays each piece: two that took the same would leave less than nothing owed.
      if (owed < kPieceNanos) return 0;
      wait = std::min(owed, kWaitNanosMax);
    } while (!owed_.compare_exchange_weak(owed, owed - wait, std::memory_order_relaxed));
    total_.fetch_add(wait, std::memory_order_relaxed);
    uint64_t longest = longest_.load(std::memory_order_relaxed);
    while (wait > longest && !longest_.compare_exchange_weak(longest, wait)) {
    }
    return wait;
  }

  // Books a wait that happened for want of memory.
  void Waited(uint64_t nanos) {
    total_.fetch_add(nanos, std::memory_order_relaxed);
    uint64_t longest = longest_.load(std::memory_order_relaxed);
    while (nanos > longest && !longest_.compare_exchange_weak(longest, nanos)) {
    }
  }

  uint64_t total_us() const { return total_.load(std::memory_order_relaxed) / 1000; }
  uint64_t longest_us() const { return longest_.load(std::memory_order_relaxed) / 1000; }

 private:
  // With all memory used 1 KiB takes 25 us: 40 MB/s, below any flush seen.
  static constexpr double kMemoryNanosPerKib = 25'000;

  std::atomic<uint64_t> nanos_per_kib_{0};
  std::atomic<uint64_t> owed_{0};
  std::atomic<uint64_t> total_{0};
  std::atomic<uint64_t> longest_{0};
};

}  // namespace partita

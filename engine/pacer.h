#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace partita {

// How much a shard's writers are slowed, in proportion to what is behind: each byte admitted must
// buy flush and compaction work, so that neither the memtable pool nor the compaction debt ever
// runs into a wall (DESIGN 7). No cliff: nothing up to half of either budget, then rising with the
// excess. This pressure is set when a memtable is frozen or becomes a table; between two such moments a wall
// may come near, and each write looks at that itself (ChargeWall).
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
    // Once nothing is behind nothing is owed: else large rows of a bad minute are paid for hours later.
    if (memory + debt_nanos_per_kib == 0) owed_.store(0, std::memory_order_relaxed);
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
    Waited(wait);
    return wait;
  }

  // What a wall asks for a KiB: `used` of what is there is taken, 1.0 = all of it, and nothing is asked up to
  // `from`. From there it rises with the fourth power, so that most can be used before a writer notices, to
  // 2.5 MB/s at the wall.
  static uint64_t WallNanosPerKib(double used, double from) {
    if (used <= from) return 0;
    const double over = std::min((used - from) / (1 - from), 1.0);
    return static_cast<uint64_t>(kWallNanosPerKib * over * over * over * over);
  }

  // The same for a wall, which asks that of all writers together: one waits behind the other. Nothing is owed
  // for longer than one wait, as the wall is further off once the disk has answered.
  uint64_t ChargeWall(uint64_t bytes, uint64_t nanos_per_kib, uint64_t now_ns) {
    const uint64_t cost = bytes * nanos_per_kib / 1024;
    uint64_t until = wall_until_ns_.load(std::memory_order_relaxed);
    uint64_t next = 0;
    do {
      next = std::min(std::max(until, now_ns) + cost, now_ns + kWaitNanosMax);
    } while (!wall_until_ns_.compare_exchange_weak(until, next, std::memory_order_relaxed));
    const uint64_t wait = next - now_ns;
    if (wait < kPieceNanos) return 0;
    Waited(wait);
    return wait;
  }

  // Books a wait that happened, e.g. for want of memory.
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
  static constexpr double kWallNanosPerKib = 400'000;

  std::atomic<uint64_t> nanos_per_kib_{0};
  std::atomic<uint64_t> owed_{0};
  std::atomic<uint64_t> wall_until_ns_{0};  // Who is charged for a wall next waits from here on.
  std::atomic<uint64_t> total_{0};
  std::atomic<uint64_t> longest_{0};
};

}  // namespace partita

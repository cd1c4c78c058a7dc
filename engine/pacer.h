#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/pacing_line.h"

namespace partita {

// How much a shard's writers are slowed, in proportion to what is behind: each byte admitted must
// buy flush and compaction work, so that neither the memtable pool nor the compaction debt ever
// runs into a wall (DESIGN 7). No cliff: nothing up to half of either budget, then rising with the
// excess. This pressure is set when a memtable is frozen or becomes a table; between two such moments a wall
// may come near, and each write looks at that itself (WallNanosPerKib).
//
// Both are prices a KiB, paid by standing in line (pacing_line.h), so they bound the rate of all writers
// together. Thus there is an equilibrium: the debt at which as much is admitted as is merged. A model of a
// shard that merges 128 MB/s, at six bytes of work for each admitted, finds it at 0.7 to 0.8 of the budget
// (22 MB/s; 6 flushes' work), for 1 to 1,000 writers, with batches of 1 KiB to 4 MiB. At a full budget these
// write 8.6 to 10 MB/s, and a KiB beside eight batches of 4 MiB waits for 14 ms.
//
// After kTurnNanosMax a write goes on in any case, as nobody shall wait for longer whatever is behind: where
// writers have more at hand at a time than is merged in that time (here 44 MB), the debt grows beyond, until
// the memory is full. Once the store is about to close nobody waits. Thread-safe.
class Pacer {
 public:
  static constexpr uint64_t kTurnNanosMax = 2'000'000'000;

  // Of one write: its place among all, and among those that need the log's tail.
  struct Turn {
    PacingLine::Place all, tail;
    bool stands() const { return all.end > 0 || tail.end > 0; }
  };
  // What walls ask for a KiB: of all, and of those that need the log's tail.
  struct Walls {
    uint64_t memory = 0, tail = 0;
  };

  // `share`: how much of the shard's memtable memory is used, 1.0 = all of it.
  void SetMemory(double share) {
    const double over = std::clamp((share - 0.5) * 2, 0.0, 2.0);
    of_memory_.store(static_cast<uint64_t>(kMemoryNanosPerKib * over * over), std::memory_order_relaxed);
  }
  // What compaction/pacing.h asks for. Beside that for memory: who freezes a memtable knows no debt, and need
  // not wait for who does.
  void SetDebt(uint64_t nanos_per_kib) { of_debt_.store(nanos_per_kib, std::memory_order_relaxed); }

  // Whether it asks for anything; and for debt.
  bool presses() const { return NanosPerKib() > 0; }
  bool presses_for_debt() const { return of_debt_.load(std::memory_order_relaxed) > 0; }

  // How long a write sleeps before it looks again; 0: it goes on. Usually that is so at once.
  uint64_t Look(Turn* turn, const Walls& walls, uint64_t now_ns) {
    if (stopped_.load(std::memory_order_relaxed)) return 0;
    const uint64_t of_all = std::max(NanosPerKib(), walls.memory);
    return std::max(all_.Look(&turn->all, of_all, now_ns), tail_.Look(&turn->tail, walls.tail, now_ns));
  }

  // Of a write that goes on before its turn.
  void Leave(const Turn& turn) {
    all_.Leave(turn.all);
    tail_.Leave(turn.tail);
  }

  // Who sleeps goes on at his next look, and nobody waits from here on.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

  // What a wall asks for a KiB: `used` of what is there is taken, 1.0 = all of it, and nothing is asked up to
  // `from`. From there it rises with the fourth power, so that most can be used before a writer notices, to
  // 2.5 MB/s at the wall.
  static uint64_t WallNanosPerKib(double used, double from) {
    if (used <= from) return 0;
    const double over = std::min((used - from) / (1 - from), 1.0);
    return static_cast<uint64_t>(kWallNanosPerKib * over * over * over * over);
  }

  // Books a wait that happened: for its turn, or for want of memory.
  void Waited(uint64_t nanos) {
    total_.fetch_add(nanos, std::memory_order_relaxed);
    uint64_t longest = longest_.load(std::memory_order_relaxed);
    while (nanos > longest && !longest_.compare_exchange_weak(longest, nanos)) {
    }
  }

  uint64_t total_us() const { return total_.load(std::memory_order_relaxed) / 1000; }
  uint64_t longest_us() const { return longest_.load(std::memory_order_relaxed) / 1000; }

 private:
  uint64_t NanosPerKib() const {
    return of_memory_.load(std::memory_order_relaxed) + of_debt_.load(std::memory_order_relaxed);
  }

  // With all memory used 1 KiB takes 25 us: 40 MB/s, below any flush seen.
  static constexpr double kMemoryNanosPerKib = 25'000;
  static constexpr double kWallNanosPerKib = 400'000;

  std::atomic<uint64_t> of_memory_{0}, of_debt_{0};  // A KiB, in ns.
  std::atomic<bool> stopped_{false};
  PacingLine all_, tail_;
  std::atomic<uint64_t> total_{0};
  std::atomic<uint64_t> longest_{0};
};

}  // namespace partita

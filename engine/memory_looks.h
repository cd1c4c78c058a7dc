#pragma once
#include <atomic>
#include <cstdint>

namespace partita {

// Whether a read is looked for in memory first. What is found there is answered soonest so; what is not is
// searched for anew by who may wait for the disk, and where nearly all is on the disk that is a twentieth of
// what a cold read costs. After some looks in vain one read in 16 is looked for; the first that is found
// changes that.
//
// Thread-safe. Nothing is written while all is found.
class MemoryLooks {
 public:
  static constexpr uint32_t kInVainMax = 4;
  static constexpr uint32_t kReadsALook = 16;

  bool IsDue() {
    if (in_vain_.load(std::memory_order_relaxed) < kInVainMax) return true;
    return in_vain_.fetch_add(1, std::memory_order_relaxed) % kReadsALook == 0;
  }
  // To be told of each look that was due.
  void Looked(bool found) {
    const uint32_t in_vain = in_vain_.load(std::memory_order_relaxed);
    if (found && in_vain > 0) in_vain_.store(0, std::memory_order_relaxed);
    if (!found && in_vain < kInVainMax) in_vain_.store(in_vain + 1, std::memory_order_relaxed);
  }

 private:
  // In a row; from kInVainMax on reads since then are counted as well. Orders nothing: threads that pass each
  // other count one less.
  alignas(64) std::atomic<uint32_t> in_vain_{0};
};

}  // namespace partita

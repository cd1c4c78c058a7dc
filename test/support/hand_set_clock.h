#pragma once
#include <atomic>
#include <cstdint>

#include "engine/base/clock.h"

namespace partita {

// Stands still until a test moves it. Thread-safe.
class HandSetClock : public Clock {
 public:
  uint64_t WallTicks() override { return now_ns / kNanosPerTick; }
  uint64_t MonotonicNanos() override { return now_ns; }

  std::atomic<uint64_t> now_ns{3600 * kNanosPerSecond};
};

}  // namespace partita

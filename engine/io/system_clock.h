#pragma once
#include "engine/base/clock.h"

namespace partita {

// The machine's clocks: CLOCK_REALTIME and CLOCK_BOOTTIME. Thread-safe.
class SystemClock final : public Clock {
 public:
  uint64_t WallTicks() override;
  uint64_t MonotonicNanos() override;
  uint64_t RecentNanos() override;
  uint64_t ThreadCpuNanos() override;
};

}  // namespace partita

#pragma once
#include <cstdint>

namespace partita {

// Time as the engine sees it. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Wall clock, 100 ns ticks since 1601-01-01T00:00:00Z. May step either way; no durability or
  // ordering decision depends on it (F65).
  virtual uint64_t WallTicks() = 0;

  // Boot-time clock: nanoseconds, never steps back, goes on during suspend.
  virtual uint64_t MonotonicNanos() = 0;

  // MonotonicNanos() of a while ago: it lies behind by a tick of the kernel (up to 10 ms), and never steps
  // back. For a fraction of the cost.
  virtual uint64_t RecentNanos() { return MonotonicNanos(); }

  // CPU time of the calling thread; some 200 ns. Where time is virtual, work takes none.
  virtual uint64_t ThreadCpuNanos() { return MonotonicNanos(); }
};

inline constexpr uint64_t kNanosPerSecond = 1'000'000'000;
inline constexpr uint64_t kTicksPerSecond = 10'000'000;
inline constexpr uint64_t kNanosPerTick = kNanosPerSecond / kTicksPerSecond;
// Ticks from 1601-01-01 to 1970-01-01.
inline constexpr uint64_t kUnixEpochTicks = 116'444'736'000'000'000;

}  // namespace partita

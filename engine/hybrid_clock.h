#pragma once
#include <algorithm>
#include <cstdint>

#include "engine/base/clock.h"
#include "engine/base/ids.h"

namespace partita {

// A shard's version source: strictly rising 100 ns ticks, near the wall clock when that behaves
// (F17, F18). It follows the boot-time clock from the wall clock read at open, so a wall clock that
// steps back while running changes nothing, and one that jumps ahead by more than 5 minutes is not
// adopted (F65).
//
// On the shard's strand only.
class HybridClock {
 public:
  // `floor`: every version given is above it (all that recovery saw, leased ceilings included).
  HybridClock(Clock& clock, Version floor)
      : clock_(clock),
        last_(floor.value),
        wall_base_(clock.WallTicks()),
        mono_base_(clock.MonotonicNanos()) {}

  Version Next() {
    last_ = std::max(last_ + 1, NowTicks());
    return Version(last_);
  }
  Version last() const { return Version(last_); }
  // Every version given from here on is above `floor`.
  void RaiseTo(Version floor) { last_ = std::max(last_, floor.value); }

  // Ticks that the clock would give now if nothing had been given before.
  uint64_t NowTicks() const { return wall_base_ + (clock_.MonotonicNanos() - mono_base_) / 100; }

  // Re-reads the wall clock, now and then: small drift is followed, a jump beyond 5 minutes is not.
  void FollowWall() {
    const uint64_t wall = clock_.WallTicks();
    const uint64_t now = NowTicks();
    constexpr uint64_t kJumpMax = 300 * kTicksPerSecond;
    if (wall <= now || wall > now + kJumpMax) return;
    wall_base_ = wall;
    mono_base_ = clock_.MonotonicNanos();
  }

 private:
  Clock& clock_;
  uint64_t last_;
  uint64_t wall_base_;
  uint64_t mono_base_;
};

}  // namespace partita

#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/base/clock.h"
#include "engine/base/ids.h"

namespace partita {

// A shard's version source: strictly rising 100 ns ticks, near the wall clock when that behaves
// (F17, F18). It follows the boot-time clock from the wall clock read at open, so a wall clock that
// steps back while running changes nothing, and one that jumps ahead by more than 5 minutes is not
// adopted (F65).
//
// On the shard's strand only, but for what says otherwise.
class HybridClock {
 public:
  // How far the wall clock may be ahead and be followed.
  static constexpr uint64_t kJumpMax = 300 * kTicksPerSecond;

  // `floor`: every version given is above it (all that recovery saw, leased ceilings included).
  HybridClock(Clock& clock, Version floor)
      : clock_(clock), last_(floor.value), boot_ticks_(clock.WallTicks() - TicksSinceBoot()) {}

  Version Next() {
    uint64_t now = NowTicks();
    if (now >= follow_from_) {  // Soon, so that of several small steps each is followed.
      FollowWall();
      now = NowTicks();
      follow_from_ = now + kTicksPerSecond;
    }
    const Version next(std::max(last().value + 1, now));
    RaiseTo(next);
    return next;
  }
  Version last() const { return Version(last_.load(std::memory_order_relaxed)); }
  // Every version given from here on is above `floor`.
  void RaiseTo(Version floor) { last_.store(std::max(last(), floor).value, std::memory_order_relaxed); }

  // Ticks that the clock would give now if nothing had been given before. Any thread.
  uint64_t NowTicks() const { return boot_ticks_.load(std::memory_order_relaxed) + TicksSinceBoot(); }

  // By how much what is written now is stamped ahead of the wall clock; below 0: behind it. Any thread.
  int64_t TicksAhead() const {
    return static_cast<int64_t>(std::max(last().value, NowTicks()) - clock_.WallTicks());
  }

  // Re-reads the wall clock: small drift is followed, a jump beyond 5 minutes is not.
  void FollowWall() {
    const uint64_t wall = clock_.WallTicks();
    const uint64_t now = NowTicks();
    if (wall <= now || wall > now + kJumpMax) return;
    boot_ticks_.store(wall - TicksSinceBoot(), std::memory_order_relaxed);
  }

 private:
  uint64_t TicksSinceBoot() const { return clock_.MonotonicNanos() / kNanosPerTick; }

  Clock& clock_;
  std::atomic<uint64_t> last_;
  std::atomic<uint64_t> boot_ticks_;  // When the boot-time clock began.
  uint64_t follow_from_ = 0;          // Next() looks at the wall clock then.
};

}  // namespace partita

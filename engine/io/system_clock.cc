#include "engine/io/system_clock.h"

#include <time.h>

#include <atomic>

namespace partita {

namespace {

timespec Now(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now;
}

uint64_t Nanos(clockid_t clock) {
  const timespec now = Now(clock);
  return static_cast<uint64_t>(now.tv_sec) * kNanosPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t SystemClock::WallTicks() {
  timespec now = Now(CLOCK_REALTIME);
  return kUnixEpochTicks + static_cast<uint64_t>(now.tv_sec) * kTicksPerSecond +
         static_cast<uint64_t>(now.tv_nsec) / kNanosPerTick;
}

uint64_t SystemClock::MonotonicNanos() { return Nanos(CLOCK_BOOTTIME); }

uint64_t SystemClock::ThreadCpuNanos() { return Nanos(CLOCK_THREAD_CPUTIME_ID); }

// Linux has no coarse clock that goes on during suspend. What this one lacks changes when the machine wakes,
// so it is looked up once a tick: at most what it is, as time passes between the two calls.
uint64_t SystemClock::RecentNanos() {
  static std::atomic<uint64_t> looked_up_at{0}, suspended{0};
  const uint64_t now = Nanos(CLOCK_MONOTONIC_COARSE);
  if (looked_up_at.load(std::memory_order_acquire) != now) {
    const uint64_t all = Nanos(CLOCK_BOOTTIME), awake = Nanos(CLOCK_MONOTONIC);
    uint64_t known = suspended.load(std::memory_order_relaxed);
    while (all > awake + known && !suspended.compare_exchange_weak(known, all - awake)) {
    }
    looked_up_at.store(now, std::memory_order_release);
  }
  return now + suspended.load(std::memory_order_relaxed);
}

}  // namespace partita

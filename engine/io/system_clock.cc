#include "engine/io/system_clock.h"

#include <time.h>

namespace partita {

namespace {

timespec Now(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now;
}

}  // namespace

uint64_t SystemClock::WallTicks() {
  timespec now = Now(CLOCK_REALTIME);
  return kUnixEpochTicks + static_cast<uint64_t>(now.tv_sec) * kTicksPerSecond +
         static_cast<uint64_t>(now.tv_nsec) / kNanosPerTick;
}

uint64_t SystemClock::MonotonicNanos() {
  timespec now = Now(CLOCK_BOOTTIME);
  return static_cast<uint64_t>(now.tv_sec) * kNanosPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t SystemClock::ThreadCpuNanos() {
  timespec now = Now(CLOCK_THREAD_CPUTIME_ID);
  return static_cast<uint64_t>(now.tv_sec) * kNanosPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t SystemClock::RecentNanos() {
  timespec now = Now(CLOCK_MONOTONIC_COARSE);
  return static_cast<uint64_t>(now.tv_sec) * kNanosPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace partita

#include "engine/io/slice_watch.h"

#include <algorithm>

#include "engine/base/executor.h"
#include "engine/io/system_clock.h"

namespace partita {

void SliceWatch::SampleCpu(uint64_t now_ns) {
  sampled_ns_ = now_ns;
  sampled_cpu_ns_ = SystemClock().ThreadCpuNanos();
}

void SliceWatch::NoteStall(const std::source_location& from, uint64_t now_ns) {
  const uint64_t lasted_ns = now_ns - began_ns_;
  // Since the last sample, which is less than kCpuSampleNanos older than the slice.
  const uint64_t ran_ns = SystemClock().ThreadCpuNanos() - sampled_cpu_ns_;
  log_.Note({from, ResumeRunnable::last_suspended(), began_ns_, lasted_ns, std::min(ran_ns, lasted_ns)});
}

}  // namespace partita

#pragma once
#include <cstdint>
#include <source_location>

#include "engine/base/stall_log.h"

namespace partita {

// Times the slices of a worker's work, and notes those that are stalls.
//
// The end of one slice is the beginning of the next, so each costs one reading of the clock. What part of a
// stall the thread had its core for is told by its CPU time, which costs a system call (0.2 us, and 3 us on
// some virtual machines): it is read at the first boundary of slices kCpuSampleNanos after the last reading,
// so at most 2,000 times a second.
//
// Of the worker's own thread, but for log().
class SliceWatch {
 public:
  static constexpr uint64_t kCpuSampleNanos = 500'000;

  // The next slice begins. What came before is no slice: the thread slept.
  void Begin(uint64_t now_ns) {
    began_ns_ = now_ns;
    if (now_ns - sampled_ns_ >= kCpuSampleNanos) SampleCpu(now_ns);
  }
  // The slice that went on from `from` is over, and the next one begins.
  void End(const std::source_location& from, uint64_t now_ns) {
    if (now_ns - began_ns_ >= kStallNanos) NoteStall(from, now_ns);
    Begin(now_ns);
  }
  uint64_t began_ns() const { return began_ns_; }

  const StallLog& log() const { return log_; }

 private:
  void SampleCpu(uint64_t now_ns);
  void NoteStall(const std::source_location& from, uint64_t now_ns);

  uint64_t began_ns_ = 0;
  uint64_t sampled_ns_ = 0;
  uint64_t sampled_cpu_ns_ = 0;
  StallLog log_;
};

}  // namespace partita

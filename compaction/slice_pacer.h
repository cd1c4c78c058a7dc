#pragma once
#include <cstdint>

#include "compaction/job.h"
#include "engine/base/executor.h"
#include "engine/base/result.h"
#include "engine/base/task.h"

namespace partita {

// Cuts a job's loop into slices: between two of them others may run (at most 200 us, DESIGN 7), and
// a job that was cancelled ends.
//
//   while (...) { if (slices.Due()) PARTITA_CO_TRY(co_await slices.Turn()); ... }
class SlicePacer {
 public:
  explicit SlicePacer(const JobContext& context) : context_(context) {}

  // Once in kStepsPerLook steps: asking the clock costs more than an entry.
  bool Due() { return steps_++ % kStepsPerLook == 0; }

  // kCancelled once the job's cancel flag is set.
  Task<Status> Turn() {
    if (context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed)) {
      co_return Status::Cancelled("job cancelled");
    }
    if (turns_++ % kTurnsPerNote == 0 && context_.note_work) context_.note_work(0);
    co_await YieldIfDue();
    co_return Status();
  }

 private:
  // 16 entries of 1 KiB compress in about 30 us.
  static constexpr uint64_t kStepsPerLook = 16;
  // A job that drops all that it reads would pass for one that gets no core (IdleStarves) else.
  static constexpr uint64_t kTurnsPerNote = 256;

  const JobContext& context_;
  uint64_t steps_ = 0, turns_ = 0;
};

}  // namespace partita

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/executor.h"
#include "engine/io/sim_fault.h"
#include "engine/io/sim_random.h"

namespace partita {

class SimScheduler;

// One simulated thread's event loop: a FIFO of work that the scheduler turns.
class SimExecutor : public Executor {
 public:
  SimExecutor(SimScheduler& scheduler, std::string name, uint32_t index);

  void Post(Runnable* work) override;
  void PostAt(uint64_t deadline_ns, Runnable* work) override;
  uint64_t MonotonicNanos() override;
  bool ShouldYield() override;

  const std::string& name() const { return name_; }

 private:
  friend class SimScheduler;

  SimScheduler& scheduler_;
  const std::string name_;
  const uint32_t index_;
  Runnable* first_ = nullptr;
  Runnable* last_ = nullptr;
};

// Turns all simulated executors on the calling thread, on a virtual clock.
//
// 1. Work whose time has come moves to the end of its executor's queue (or, for the devices, runs).
// 2. Of the executors with work, chance picks one; its first piece of work runs. Within an executor
//    order is as posted; between executors any order can happen.
// 3. Each step takes a little virtual time. When nothing is ready, time jumps to the next deadline.
//
// Nothing depends on addresses, hash order or the real clock: same seed, same course.
class SimScheduler {
 public:
  explicit SimScheduler(const SimOptions& options);
  ~SimScheduler();
  SimScheduler(const SimScheduler&) = delete;
  SimScheduler& operator=(const SimScheduler&) = delete;

  SimExecutor& NewExecutor(std::string name);

  // Runs one piece of ready work; false when none is ready at the present time.
  bool Step();

  // Jumps to the next deadline if it is not after `limit_ns`; false when there is none.
  bool AdvanceToNextDeadline(uint64_t limit_ns = UINT64_MAX);

  // Queues `work` on `executor` at `deadline_ns`; with a null executor it runs in the scheduler
  // itself, as a device's doing.
  void At(uint64_t deadline_ns, SimExecutor* executor, Runnable* work);

  uint64_t now_ns() const { return now_ns_; }
  void AdvanceTo(uint64_t time_ns) {
    if (time_ns > now_ns_) now_ns_ = time_ns;
  }

  SimRandom& random() { return random_; }
  const SimOptions& options() const { return options_; }

  // Mixes a word into the trace hash.
  void Trace(uint64_t word) { trace_hash_ = SimRandom::Mix(trace_hash_ ^ word); }
  uint64_t trace_hash() const { return trace_hash_; }
  uint64_t steps() const { return steps_; }

  // One line an executor and timer, for messages about what waits.
  std::string Describe() const;

 private:
  friend class SimExecutor;
  struct Timed {
    uint64_t deadline_ns;
    uint64_t order;
    SimExecutor* executor;
    Runnable* work;
    // A heap with the earliest on top.
    bool operator<(const Timed& other) const {
      return deadline_ns != other.deadline_ns ? deadline_ns > other.deadline_ns : order > other.order;
    }
  };

  void Enqueue(SimExecutor* executor, Runnable* work);
  void FireDue();
  [[noreturn]] void FailTooManySteps() const;

  const SimOptions options_;
  SimRandom random_;
  uint64_t now_ns_ = 1'000'000'000;
  uint64_t steps_ = 0;
  uint64_t timed_order_ = 0;
  uint64_t trace_hash_ = 0;
  std::vector<std::unique_ptr<SimExecutor>> executors_;
  std::vector<SimExecutor*> ready_;
  std::vector<Timed> timed_;
};

}  // namespace partita

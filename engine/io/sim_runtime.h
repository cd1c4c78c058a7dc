#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/task_group.h"
#include "engine/io/runtime.h"
#include "engine/io/sim_disk.h"
#include "engine/io/sim_fault.h"
#include "engine/io/sim_scheduler.h"

namespace partita {

class SimDevice;
class SimFileSystem;

// Where in an operation a planned crash happens.
enum class SimCrashMoment : uint8_t {
  kBefore,  // Its effect may be there wholly, partly or not at all, as of all others in flight.
  kAfter,   // Its effect is there; nobody has been told.
};

// One simulated process on a SimDisk: one thread, seeded, virtual clock.
//
//   SimDisk disk(seed);
//   {
//     SimRuntime runtime({.seed = seed, .shards = 2}, disk);
//     runtime.CrashAtOperation(17, SimCrashMoment::kAfter);
//     runtime.Run(Workload(runtime, &answers));  // Opens, works, closes; ignores what it is told
//   }                                            // once runtime.crashed().
//   disk.CrashPower();
//   SimRuntime again({.seed = seed + 1, .shards = 2}, disk);
//   again.Run(Recover(again, answers));
//
// Every wait is in virtual time, every order between executors, I/O delay and fault is drawn from
// the seed. The same seed and binary give the same course; TraceHash() proves it.
//
// A crash does not destroy coroutines: from the crash point on nothing reaches the disk, every
// operation, those in flight included, answers kIoError "crashed", and the tasks unwind as they
// would on any I/O error. So close the engine as usual; only its answers after crashed() mean
// nothing.
//
// Calls from outside an executor (blocking mode) are done at once, without delay; faults and
// planned crashes count them all the same.
//
// Not thread-safe. `disk` outlives it. REQUIRES at destruction: no operation in flight and every
// spawned task ended.
class SimRuntime : public Runtime {
 public:
  SimRuntime(const SimOptions& options, SimDisk& disk);
  ~SimRuntime() override;

  // Runtime.
  FileSystem& files() override;
  Clock& clock() override;
  uint64_t RandomU64() override;
  Executor& shard_executor(ShardId shard) override;
  uint32_t shard_count() const override;
  Executor& background(BackgroundClass background_class) override;
  // Turns the scheduler until `root`, which runs on the client executor 0, has ended. When nothing
  // is left that could wake anyone (or SimOptions::run_ns_max has passed), prints what waits and
  // aborts: a deadlock.
  void Run(Task<void> root) override;
  const char* name() const override { return "simulator"; }

  // Starts `task` beside, on the next client executor. It runs when the scheduler is turned.
  void Spawn(Task<void> task, std::string name = "client task");
  size_t spawned_running() const { return spawned_running_; }

  Executor& client(uint32_t index);

  // Turns the scheduler until nothing is ready and no I/O is in flight; time passes only as far as
  // I/O needs it, and timers due by then fire.
  void RunUntilIdle();

  // Lets `duration_ns` pass, with all that falls due in it; then runs what is ready.
  void AdvanceTime(uint64_t duration_ns);

  uint64_t now_ns() const { return scheduler_.now_ns(); }

  // Steps the wall clock, back with a negative value; the monotonic clock goes on (F65).
  void StepWallClock(int64_t delta_ticks);

  // Faults. Removing by the number that AddFault returned; FaultHits tells how often it hit.
  size_t AddFault(SimFault fault);
  void RemoveFault(size_t fault);
  void ClearFaults();
  uint64_t FaultHits(size_t fault) const;

  // Crashes at the `number`th operation to complete, counted from 1 over this runtime's life
  // (operations_completed() of an undisturbed run tells how many there are). 0: never.
  void CrashAtOperation(uint64_t number, SimCrashMoment moment);

  // Crashes now. What was in flight may have happened wholly, partly or not at all.
  void CrashNow();
  bool crashed() const;

  // Called after each completed operation, before anyone is told. Must not call the runtime but
  // for CrashNow and the observers.
  void OnCompletion(std::function<void(const SimOperationRecord&)> hook);

  uint64_t operations_begun() const;      // The number of the latest operation.
  uint64_t operations_completed() const;  // Pieces of short transfers included.
  uint64_t operations_in_flight() const;

  // Differs, but for chance, when anything about the course of the run differs.
  uint64_t TraceHash() const { return scheduler_.trace_hash(); }
  uint64_t steps() const { return scheduler_.steps(); }
  const SimOptions& options() const { return scheduler_.options(); }
  SimDisk& disk() { return disk_; }

 private:
  class SimClock;
  friend class SimDevice;

  Task<void> Track(Task<void> task, size_t slot);
  [[noreturn]] void FailDeadlocked(const char* how) const;

  SimDisk& disk_;
  SimScheduler scheduler_;
  std::vector<SimExecutor*> clients_;
  std::vector<SimExecutor*> shards_;
  std::vector<SimExecutor*> idle_backgrounds_;
  std::vector<SimExecutor*> ordinary_backgrounds_;
  std::unique_ptr<SimClock> clock_;
  std::unique_ptr<SimDevice> device_;
  std::unique_ptr<SimFileSystem> files_;
  uint32_t next_client_ = 0;
  uint32_t next_background_ = 0;
  size_t spawned_running_ = 0;
  std::vector<std::string> spawned_names_;  // Empty once ended.
  TaskGroup spawned_;
};

}  // namespace partita

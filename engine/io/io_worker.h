#pragma once
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/executor.h"
#include "engine/base/result.h"
#include "engine/io/mailbox.h"
#include "engine/io/slice_watch.h"
#include "engine/io/task_pool.h"

namespace partita {

class UringExecutor;
class WorkerSockets;
struct StartReport;

// The event loop of a shard's worker: one thread that runs what is posted to it, fires timers, and
// waits for I/O. Subclasses say how I/O is done: UringExecutor, ThreadExecutor.
//
// One turn: take the mail, fire the timers that are due, run at most kRunnablesPerTurn pieces of
// work, fewer when one of them takes a whole slice (a long loop would be alone otherwise, and I/O
// wait for 128 slices of it), hand all submissions of the turn to the kernel at once and take its
// completions; with nothing left to run, sleep until a completion, a message or the next timer. The last
// submissions before a sleep go along with it, in one system call. Each piece of work is timed, and those
// that last long are noted, with their names, in stalls().
//
// Lifecycle: Start, Stop (waits for I/O in flight and for timers, F60), destruction, once nobody
// posts any more. Everything but Post and Stop runs on the worker's own thread.
class IoWorker : public Executor {
 public:
  explicit IoWorker(TaskPool& io_threads) : io_threads_(io_threads) {}
  ~IoWorker() override;  // REQUIRES: stopped, or never started.

  // Starts the thread, on core `cpu` only unless it is kAnyCpu, and waits until it is set up.
  static constexpr int kAnyCpu = -1;
  Status Start(const std::string& name, int cpu);

  // Ends the loop once nothing is queued, in flight or sleeping. Idempotent.
  void Stop();

  void Post(Runnable* work) final;
  void PostAhead(Runnable* work) final;
  void PostAt(uint64_t deadline_ns, Runnable* work) final;
  uint64_t MonotonicNanos() final;
  bool ShouldYield() final;
  const StallLog* stalls() const final { return &slices_.log(); }

  // The worker whose thread this is, or null.
  static IoWorker* Current();

  // Non-null when file I/O of this worker goes through its ring.
  virtual UringExecutor* ring() { return nullptr; }

  // The network half of this worker, made at the first call. What is open there keeps the worker from
  // stopping. kUnsupported, kResourceExhausted.
  virtual Result<WorkerSockets*> Sockets() = 0;

  // The threads that do for this worker what would block it. Work posted there ends by a Post to
  // this worker; between the two calls the worker does not stop.
  TaskPool& io_threads() { return io_threads_; }
  void OffloadBegins() { ++offloads_; }
  void OffloadEnds() { --offloads_; }

 protected:
  // On the worker's thread, before the first turn and after the last.
  virtual Status SetUp() = 0;
  virtual void TearDown() = 0;

  // Submits what is queued, and takes completions without waiting for any.
  virtual void Poll() = 0;
  // Submits what is queued, then sleeps until a completion comes, or the mailbox's eventfd becomes
  // readable (and reads it), or `wait_ns` have passed. May return early.
  static constexpr uint64_t kForever = UINT64_MAX;
  virtual void Sleep(uint64_t wait_ns) = 0;
  // No operation is in the kernel's hands.
  virtual bool NothingInFlight() const = 0;

  // Queues `work` to run on this thread, this turn or the next.
  void Enqueue(Runnable* work);
  bool HasWork() const { return first_ != nullptr; }
  Mailbox& mailbox() { return mailbox_; }

 private:
  struct Timer {
    uint64_t deadline_ns;
    uint64_t number;  // Timers with one deadline fire in the order they were set.
    Runnable* work;
  };
  static bool FiresLater(const Timer& a, const Timer& b) {
    return a.deadline_ns != b.deadline_ns ? a.deadline_ns > b.deadline_ns : a.number > b.number;
  }

  void ThreadMain(int cpu, StartReport* report);
  void Loop();
  void TakeMail();
  void FireTimers();
  void RunSome();
  void SleepUntilWork();
  bool Finished() const;

  TaskPool& io_threads_;
  Mailbox mailbox_;
  std::thread thread_;

  // Of the worker's thread only.
  Runnable* first_ = nullptr;  // The run queue.
  Runnable* last_ = nullptr;
  Runnable* last_ahead_ = nullptr;  // Of those at the front that PostAhead put there.
  bool may_post_ahead_ = false;     // What runs now was not one of them.
  std::vector<Timer> timers_;       // A heap; the next one to fire is in front.
  uint64_t timers_set_ = 0;
  SliceWatch slices_;
  bool slice_over_ = false;  // Of a piece of work of this turn.
  bool slept_ = true;        // Since the last one.
  uint64_t offloads_ = 0;
  bool stopping_ = false;
};

}  // namespace partita

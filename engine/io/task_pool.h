#pragma once
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/executor.h"
#include "engine/base/status.h"

namespace partita {

enum class ThreadPriority : uint8_t {
  kOrdinary,
  kIdle,  // SCHED_IDLE: runs only where a core has nothing else to do.
};

// Threads that run posted work one at a time each, in blocking mode (Executor::Current() is null):
// background helpers, and the I/O threads of the workers.
//
// Post takes no lock: an idle-class thread that lost its core while it held one would hold up a
// foreground thread. Only the pool's threads share a mutex. The queue is bounded by those who
// post: each item belongs to a job or an operation that its owner waits for.
//
//   `inbox_`: pushed by any thread (release), emptied under `mutex_` (acquire).
class TaskPool final : public Executor {
 public:
  TaskPool() = default;
  ~TaskPool() override;  // REQUIRES: closed, or never started.

  // Starts `threads` threads named `name`-0, ... kResourceExhausted.
  Status Start(const std::string& name, uint32_t threads, ThreadPriority priority);

  // Runs everything posted, then ends the threads. Idempotent. Nothing may be posted afterwards.
  void Close();

  void Post(Runnable* work) override;
  // Not available: work here sleeps in blocking mode.
  void PostAt(uint64_t deadline_ns, Runnable* work) override;
  uint64_t MonotonicNanos() override;
  bool ShouldYield() override { return false; }

 private:
  void ThreadMain(ThreadPriority priority);
  Runnable* TakeOne();

  std::atomic<Runnable*> inbox_{nullptr};
  sem_t items_{};  // At least one for each item that waits and that no thread is about to look for.
  std::atomic<bool> closing_{false};
  bool started_ = false;
  std::mutex mutex_;  // Of the threads only: guards `first_`, `last_`.
  Runnable* first_ = nullptr;
  Runnable* last_ = nullptr;
  std::vector<std::thread> threads_;
};

}  // namespace partita

#pragma once
#include <coroutine>
#include <cstdint>
#include <source_location>

#include "engine/base/task.h"

namespace partita {

// A unit of work queued on an executor. Intrusive, so that queueing allocates nothing; it must
// stay alive until it has run.
struct Runnable {
  using Function = void (*)(Runnable* self);
  Function run = nullptr;
  Runnable* next = nullptr;
  // What the slice of work is called, should it be a stall (stall_log.h): the await that it goes on from, or
  // where it was made.
  std::source_location where;
};

class StallLog;

// Where coroutines run: one thread's event loop (a shard's worker, the simulator).
//
// Two modes, one code (DESIGN 2):
// - On an executor's thread, Current() is that executor, and an await that must wait suspends.
// - On any other thread (a synchronous caller, a background helper) Current() is null: *blocking
//   mode*. Each await is then a plain blocking call, nothing suspends, and a Task runs to its end
//   inside RunBlocking.
//
// Thread-safety: Post from any thread; everything else on the executor's own thread.
class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `work` on this executor's thread, later, in the order posted by one thread.
  virtual void Post(Runnable* work) = 0;

  // The same for work that begins with I/O: on this executor's thread it may run before what is queued, so
  // that the device has something to do meanwhile. What runs so has no such right itself, nor has any other
  // thread.
  virtual void PostAhead(Runnable* work) { Post(work); }

  // Runs `work` on this executor's thread once MonotonicNanos() >= `deadline_ns`.
  // REQUIRES: called on this executor's thread.
  virtual void PostAt(uint64_t deadline_ns, Runnable* work) = 0;

  // The executor's clock, in nanoseconds since an arbitrary start.
  virtual uint64_t MonotonicNanos() = 0;

  // True when the current slice of work has lasted so long (200 us) that others should get a turn.
  virtual bool ShouldYield() = 0;

  // Slices that lasted long on this executor's thread; null where none are timed. Any thread.
  virtual const StallLog* stalls() const { return nullptr; }

  // The executor whose thread this is, or null in blocking mode.
  static Executor* Current();

  // How many coroutines were resumed on this thread: the same at both ends of what did not wait in between.
  static uint64_t TurnOfThread();

  // Sets Current() for the lifetime of the object; used by implementations of Executor.
  class Scope {
   public:
    explicit Scope(Executor* executor);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Executor* previous_;
  };
};

// Resumes a coroutine when run; lives in the awaiter, that is in the coroutine's frame.
struct ResumeRunnable : Runnable {
  std::coroutine_handle<> handle;
  ResumeRunnable() { run = &ResumeRunnable::Run; }
  static void Run(Runnable* self);

  // For await_suspend: the coroutine waits at `await`.
  void Suspend(std::coroutine_handle<> waiting, const std::source_location& await) {
    handle = waiting;
    where = last_suspended_ = await;
  }

  // Where a coroutine last began to wait on this thread, since it was forgotten; else without a file.
  static const std::source_location& last_suspended() { return last_suspended_; }
  static void ForgetSuspended() { last_suspended_ = std::source_location(); }

 private:
  static constinit inline thread_local std::source_location last_suspended_;
};

// `co_await Yield();` lets other work of this executor run, due or not: for tests. Nothing in blocking mode.
class Yield {
 public:
  explicit Yield(std::source_location at = std::source_location::current()) : at_(at) {}
  bool await_ready() noexcept { return Executor::Current() == nullptr; }
  void await_suspend(std::coroutine_handle<> handle) {
    resume_.Suspend(handle, at_);
    Executor::Current()->Post(&resume_);
  }
  void await_resume() noexcept {}

 private:
  std::source_location at_;
  ResumeRunnable resume_;
};

// `co_await YieldIfDue();` for long loops (slices of at most 200 us).
class YieldIfDue : public Yield {
 public:
  explicit YieldIfDue(std::source_location at = std::source_location::current()) : Yield(at) {}
  bool await_ready() noexcept {
    Executor* executor = Executor::Current();
    return executor == nullptr || !executor->ShouldYield();
  }
};

// `co_await SleepFor(ns);` virtual time in the simulator, a sleeping thread in blocking mode.
class SleepFor {
 public:
  explicit SleepFor(uint64_t duration_ns, std::source_location at = std::source_location::current())
      : duration_ns_(duration_ns), at_(at) {}
  bool await_ready();  // In blocking mode sleeps here.
  void await_suspend(std::coroutine_handle<> handle);
  void await_resume() noexcept {}

 private:
  uint64_t duration_ns_;
  std::source_location at_;
  ResumeRunnable resume_;
};

// Runs `task` to its end on this thread in blocking mode.
// REQUIRES: Executor::Current() == nullptr (a worker must not block).
template <typename T>
T RunBlocking(Task<T> task) {
  PARTITA_ASSERT(Executor::Current() == nullptr);
  task.Start();
  PARTITA_ASSERT(task.done());  // In blocking mode nothing suspends.
  return task.Take();
}

}  // namespace partita

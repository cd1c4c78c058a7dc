#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <source_location>
#include <utility>

#include "engine/base/event.h"
#include "engine/base/executor.h"
#include "engine/base/ids.h"
#include "engine/base/overlapped.h"
#include "engine/base/status.h"
#include "engine/base/task.h"
#include "engine/base/task_group.h"

namespace partita {

// kDeadlineExceeded: what is to say when a deadline has passed.
Status DiskOverdue(uint64_t deadline_ns);

// Waits for reads that end at a deadline though the read goes on (F26): until that is over, it keeps what the
// kernel writes to, and changes nothing any more. Meanwhile nobody who would have to wait begins the same
// read again. A thread that itself got no core for so long cannot be told from a disk that did not answer.
//
// Owned by the store. Thread-safe: threads wait in lanes of their own, as far as there are enough. Outlives
// whoever waits; Join before it and the files go.
//
//   A lane's fields: under its mutex, which is held for moments; but `looked_ns`, which is the worker's, and
//   `tasks`.
//   `overdue_`, `overdue_bytes_`, `overdue_total_`: bounds and reports, they order nothing.
//   `places_`: under `places_mutex_`, which is taken only while a read is overdue.
class TimedWaits {
 public:
  // What is read: something of an object, that begins and ends there.
  struct Place {
    ObjectId object;
    uint64_t begin = 0, end = 0;
    bool operator==(const Place&) const = default;
  };

  // The waits are watched on `worker`; they end up to 50 ms after `deadline_ns`. Time in which that worker
  // did not run for a second, as of a process that was stopped, does not count.
  TimedWaits(Executor& worker, uint64_t deadline_ns) : worker_(worker), deadline_ns_(deadline_ns) {}
  ~TimedWaits();
  TimedWaits(const TimedWaits&) = delete;
  TimedWaits& operator=(const TimedWaits&) = delete;

  template <typename T>
  class Timed;

  // `co_await TimedWaits::InTime(...)`: what `task` came to, a Result or Status. It owns all that it uses,
  // and reads into `uncounted_bytes` of memory that nobody else counts. kDeadlineExceeded when it is not over
  // in time; the same at once, and it is not begun, while another read of `place` is overdue, or
  // kOverdueBytesMax are. In blocking mode, where this thread reads itself, that takes as long as the kernel
  // takes. `waits` may be null: then without a deadline.
  template <typename T>
  static Timed<T> InTime(TimedWaits* waits, Task<T> task, Place place, uint64_t uncounted_bytes,
                         std::source_location at = std::source_location::current()) {
    return Timed<T>(waits, std::move(task), place, uncounted_bytes, at);
  }

  // The same of an operation that others may have begun; its owner lets go of it after kDeadlineExceeded. A
  // thread that waits for another one is answered in blocking mode, too.
  Task<Status> Arrive(std::shared_ptr<Overlapped> operation, Place place, uint64_t uncounted_bytes);

  // Ends when nothing that was begun here goes on. Nobody may wait any more.
  Task<void> Join();

  // Reads that were not over at the deadline: those that still are not, and all of them so far.
  uint64_t overdue() const { return overdue_.load(std::memory_order_relaxed); }
  uint64_t overdue_total() const { return overdue_total_.load(std::memory_order_relaxed); }

  // Two values of the largest kind, which are one block each.
  static constexpr uint64_t kOverdueBytesMax = 32u << 20;

 private:
  static constexpr size_t kLanes = 16;      // More than threads of most stores.
  static constexpr size_t kPlacesMax = 64;  // Reads of further places are begun again.

  struct Wait;
  class WaitFor;
  struct alignas(64) Lane {
    std::mutex mutex;
    Wait* first = nullptr;
    bool watching = false;
    uint64_t watched_ns = 0;  // How long, at the last look.
    uint64_t looked_ns = 0;   // The worker's clock then.
    TaskGroup tasks;
  };

  Lane& LaneOfThread();
  Status NotInTime() const;
  Status MayBegin(const Place& place);
  void Enter(Wait* wait);
  bool Leave(Wait* wait);
  bool EndOverdue(Lane* lane);
  void NoteOverdue(const Wait& wait);
  void NoteOver(const Place& place, uint64_t bytes);
  static Task<void> Watch(TimedWaits* self, Lane* lane);
  static Task<void> PerformHeld(std::shared_ptr<Overlapped> operation);
  static Task<Status> PerformHere(std::shared_ptr<Overlapped> operation);
  static Task<void> GiveUp(std::shared_ptr<Wait*> wait);
  template <typename T>
  static Task<void> OutlastTask(TimedWaits* self, Task<T> task, Place place, uint64_t bytes);
  static Task<void> Outlast(TimedWaits* self, std::shared_ptr<Overlapped> operation, Place place,
                            uint64_t bytes);

  Executor& worker_;
  const uint64_t deadline_ns_;
  std::array<Lane, kLanes> lanes_;
  std::atomic<uint64_t> overdue_{0};
  std::atomic<uint64_t> overdue_bytes_{0};
  std::atomic<uint64_t> overdue_total_{0};
  std::mutex places_mutex_;
  std::array<Place, kPlacesMax> places_;
  size_t places_count_ = 0;
};

// One of those that wait; lives in the frame of who does.
struct TimedWaits::Wait {
  Wait(const Place& of, uint64_t uncounted) : place(of), bytes(uncounted) {}

  const Place place;
  const uint64_t bytes;
  Waiter waiter;
  // Who is to be woken at the deadline waits for an event, or for a task on an executor, and gives that up
  // there. Neither: the thread is in the kernel, and cannot be woken.
  Event* event = nullptr;
  Executor* executor = nullptr;
  void (*give_up)(Wait* wait) = nullptr;
  std::shared_ptr<Wait*> giving_up;  // Null within: there is nothing to give up any more.

  // Of a lane, as are those below.
  Lane* lane = nullptr;
  Wait* previous = nullptr;
  Wait* next = nullptr;
  uint64_t until_ns = 0;  // Of the time watched; 0: not seen yet.
  bool overdue = false;   // Written before it is woken for that.
};

template <typename T>
class TimedWaits::Timed : private Wait {
 public:
  Timed(TimedWaits* waits, Task<T> task, const Place& place, uint64_t bytes, std::source_location at)
      : Wait(place, bytes), waits_(waits), task_(std::move(task)), at_(at) {
    give_up = [](Wait* wait) { static_cast<Timed*>(wait)->LetGo(); };
  }

  bool await_ready() {
    if (waits_ != nullptr) refusal_ = waits_->MayBegin(place);
    if (!refusal_.ok()) return true;
    if (!waiter.blocking()) return false;
    if (waits_ != nullptr) waits_->Enter(this);
    task_.Start();
    return true;
  }
  bool await_suspend(std::coroutine_handle<> handle) {
    if (!task_.StartBefore(handle)) return false;
    if (waits_ == nullptr) return true;
    waiter.SuspendAs(handle, at_);
    executor = Executor::Current();
    waits_->Enter(this);
    return true;
  }
  T await_resume() {
    if (!refusal_.ok()) return refusal_;
    if (lane == nullptr) return task_.Take();
    const bool in_time = waits_->Leave(this);
    if (in_time) return task_.Take();
    if (!let_go_) {  // It is over all the same.
      if (giving_up != nullptr) *giving_up = nullptr;
      waits_->NoteOver(place, bytes);
    }
    return waits_->NotInTime();
  }

 private:
  // On the executor, while who waits is suspended.
  void LetGo() {
    let_go_ = true;
    lane->tasks.StartHere(OutlastTask(waits_, std::move(task_), place, bytes));
    waiter.Wake();
  }

  TimedWaits* const waits_;
  Task<T> task_;
  const std::source_location at_;
  Status refusal_;
  bool let_go_ = false;
};

// Goes on at the end of a task that somebody else began.
template <typename T>
Task<void> TimedWaits::OutlastTask(TimedWaits* self, Task<T> task, Place place, uint64_t bytes) {
  struct End {
    Task<T>& task;
    bool await_ready() { return task.done(); }
    void await_suspend(std::coroutine_handle<> handle) { task.EndBefore(handle); }
    void await_resume() {}
  };
  co_await End{task};
  task = Task<T>();  // With what was read into.
  self->NoteOver(place, bytes);
}

}  // namespace partita

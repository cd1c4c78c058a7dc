#pragma once
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <mutex>
#include <source_location>

#include "engine/base/executor.h"

namespace partita {

// One party that waits: a coroutine suspended on an executor, or a blocked thread. Lives in the
// waiting side's frame. Wake() may be called once, from any thread, and is the last access to it.
//
//   writes: `state_` by the waker (see Wake), read by the blocked thread (acquire).
class Waiter {
 public:
  // Captures the current mode. REQUIRES: constructed on the thread that will wait.
  Waiter() : executor_(Executor::Current()) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  void Wake();

  bool blocking() const { return executor_ == nullptr; }
  // Blocking mode: sleeps until Wake(); spins `spins` rounds first.
  void BlockUntilWoken(int spins = 0);
  // Executor mode: remembers whom to resume, and where it waits.
  void SuspendAs(std::coroutine_handle<> handle, const std::source_location& at) {
    resume_.Suspend(handle, at);
  }

  Waiter* next = nullptr;

 private:
  Executor* executor_;
  ResumeRunnable resume_;
  std::atomic<uint32_t> state_{0};
};

// Set once, seen by all: everyone who waits on it goes on after Set(). Thread-safe. Waiters must
// have gone on before it is destroyed; the last of them may destroy it at once, while Set() is
// still returning. (Who saw only is_set() may not.)
class Event {
 public:
  bool is_set() const { return set_.load(std::memory_order_acquire); }

  // Wakes everyone. Idempotent.
  void Set();

  class Awaiter {
   public:
    Awaiter(Event& event, std::source_location at) : event_(event), at_(at) {}
    // Goes by the mutex even when the event is set: who has passed it knows that Set() is done
    // with the event, and may destroy it.
    bool await_ready() {
      if (!waiter_.blocking()) return false;
      if (event_.Enqueue(&waiter_)) waiter_.BlockUntilWoken();
      return true;
    }
    bool await_suspend(std::coroutine_handle<> handle) {
      waiter_.SuspendAs(handle, at_);
      return event_.Enqueue(&waiter_);
    }
    void await_resume() noexcept {}

   private:
    Event& event_;
    std::source_location at_;
    Waiter waiter_;
  };
  Awaiter Wait(std::source_location at = std::source_location::current()) { return Awaiter(*this, at); }

  // For who waits in another way than by Wait. False when the event was set meanwhile; the waiter is then not
  // queued.
  bool Enqueue(Waiter* waiter);
  // Takes that back. False when it is not queued, as when it is being woken.
  bool Forget(Waiter* waiter);

 private:
  std::mutex mutex_;
  std::atomic<bool> set_{false};
  Waiter* waiters_ = nullptr;
};

}  // namespace partita

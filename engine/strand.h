#pragma once
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <functional>

#include "engine/base/event.h"
#include "engine/base/task.h"

namespace partita {

// The right to decide on a shard: at most one thread holds it at a time, a worker or a caller that
// found it free (DESIGN 2, stage 2). What runs on it is plain and short: no system call, no wait.
//
// A request that finds the strand busy is queued, and whoever holds the strand runs it before
// letting go; its sender sleeps meanwhile, or spins for about as long as a decision takes.
//
// Atomics: `held_` by whoever takes or leaves the strand; `queue_` is pushed to by any thread and
// taken whole by the holder; `queued_` counts both ways.
class Strand {
 public:
  // Lives in the sender's frame until Run() has ended.
  struct Request {
    void (*decide)(Request* self) = nullptr;

   private:
    friend class Strand;
    Request* next_ = nullptr;
    Waiter* waiter_ = nullptr;
  };

  // Requests waiting beyond this get kBusy from who admits them; see queued().
  static constexpr uint32_t kQueueMax = 4096;

  // `co_await strand.Run(request)`: request->decide ran, on the strand, when it goes on.
  class Awaiter {
   public:
    Awaiter(Strand& strand, Request* request, std::source_location at)
        : strand_(strand), request_(request), at_(at) {}
    bool await_ready() {
      if (strand_.TryRunInline(request_)) return true;
      if (!waiter_.blocking()) return false;
      strand_.Enqueue(request_, &waiter_);
      waiter_.BlockUntilWoken(kSpins);
      return true;
    }
    void await_suspend(std::coroutine_handle<> handle) {
      waiter_.SuspendAs(handle, at_);
      strand_.Enqueue(request_, &waiter_);
    }
    void await_resume() noexcept {}

   private:
    // About 2 us: the time of one or two decisions.
    static constexpr int kSpins = 100;
    Strand& strand_;
    Request* request_;
    std::source_location at_;
    Waiter waiter_;
  };
  Awaiter Run(Request* request, std::source_location at = std::source_location::current()) {
    return Awaiter(*this, request, at);
  }

  uint32_t queued() const { return queued_.load(std::memory_order_relaxed); }

  // True on the thread that runs a request of this strand now.
  bool HeldByThisThread() const;
  static bool AnyHeldByThisThread();

 private:
  bool TryRunInline(Request* request);
  void Enqueue(Request* request, Waiter* waiter);
  void DrainAndRelease();
  bool TryAcquire();
  void RunHeld(Request* request);

  std::atomic<bool> held_{false};
  std::atomic<Request*> queue_{nullptr};
  std::atomic<uint32_t> queued_{0};
};

// Runs `work` on the strand; it may be gone once this has ended.
Task<void> OnStrand(Strand& strand, std::function<void()> work);

}  // namespace partita

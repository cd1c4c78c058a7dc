#pragma once
#include <coroutine>
#include <mutex>
#include <utility>

#include "engine/base/event.h"

namespace partita {

// A lock that may be held across awaits, first come first served; a coroutine suspends for it, a
// blocked thread sleeps. Thread-safe. Not for hot paths: manifests, catalog, recovery, a log's files.
class AsyncMutex {
 public:
  // Holds the mutex until destroyed or Release()d.
  class [[nodiscard]] Guard {
   public:
    Guard() = default;
    explicit Guard(AsyncMutex* mutex) : mutex_(mutex) {}
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&& other) noexcept {
      Release();
      mutex_ = std::exchange(other.mutex_, nullptr);
      return *this;
    }
    ~Guard() { Release(); }
    bool held() const { return mutex_ != nullptr; }
    void Release() {
      if (mutex_ != nullptr) std::exchange(mutex_, nullptr)->Unlock();
    }

   private:
    AsyncMutex* mutex_ = nullptr;
  };

  class Awaiter {
   public:
    Awaiter(AsyncMutex& mutex, std::source_location at) : mutex_(mutex), at_(at) {}
    bool await_ready() {
      if (!waiter_.blocking()) return false;
      if (mutex_.Enqueue(&waiter_)) waiter_.BlockUntilWoken();
      return true;
    }
    bool await_suspend(std::coroutine_handle<> handle) {
      waiter_.SuspendAs(handle, at_);
      return mutex_.Enqueue(&waiter_);
    }
    Guard await_resume() { return Guard(&mutex_); }

   private:
    AsyncMutex& mutex_;
    std::source_location at_;
    Waiter waiter_;
  };

  // `auto guard = co_await mutex.Lock();`
  Awaiter Lock(std::source_location at = std::source_location::current()) { return Awaiter(*this, at); }

  // Without the lock when another one has it.
  Guard TryLock();

 private:
  bool Enqueue(Waiter* waiter);  // False when the lock was free and is now ours.
  void Unlock();

  std::mutex mutex_;
  bool held_ = false;
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace partita

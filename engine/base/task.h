#pragma once
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/task_frames.h"

namespace partita {

// A lazy coroutine: starts when awaited, runs on the awaiting thread, is awaited exactly once.
//
// The awaiting side resumes the child itself and goes on at once when the child has already ended
// (await_suspend returns false), so a loop over tasks that end at once uses no stack (STYLE 6).
// A coroutine that suspends does so on an Executor and is only ever resumed on that executor's
// thread; with no current executor (blocking mode) nothing ever suspends. Hence no atomics here.
//
// We never throw: an exception that reaches a coroutine's edge ends the process. So does std::bad_alloc of
// the heap, before anything that hangs on it is acknowledged; memory that is large or grows with the data is
// of pools that can say no.
template <typename T>
class Task;

namespace internal {

class TaskPromiseBase {
 public:
  static void* operator new(size_t size) { return NewTaskFrame(size); }
  static void operator delete(void* frame, size_t size) { FreeTaskFrame(frame, size); }

  std::suspend_always initial_suspend() noexcept { return {}; }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) noexcept {
      TaskPromiseBase& promise = self.promise();
      // Ended while the awaiting side is still below us on the stack: it sees done() and goes on.
      if (promise.awaiter_on_stack_) return std::noop_coroutine();
      if (!promise.continuation_) return std::noop_coroutine();
      return promise.continuation_;
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }

  void unhandled_exception() { std::terminate(); }

  std::coroutine_handle<> continuation_;
  bool awaiter_on_stack_ = false;
};

template <typename T>
class TaskPromise : public TaskPromiseBase {
 public:
  Task<T> get_return_object();
  template <typename U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T Take() {
    PARTITA_ASSERT(value_.has_value());
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class TaskPromise<void> : public TaskPromiseBase {
 public:
  Task<void> get_return_object();
  void return_void() {}
  void Take() {}
};

}  // namespace internal

template <typename T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::TaskPromise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      Destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { Destroy(); }

  bool valid() const { return handle_ != nullptr; }

  class Awaiter {
   public:
    explicit Awaiter(Handle handle) : handle_(handle) {}
    bool await_ready() noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
      auto& promise = handle_.promise();
      promise.continuation_ = awaiting;
      promise.awaiter_on_stack_ = true;
      handle_.resume();
      if (handle_.done()) return false;
      promise.awaiter_on_stack_ = false;
      return true;
    }
    T await_resume() { return handle_.promise().Take(); }

   private:
    Handle handle_;
  };

  Awaiter operator co_await() && {
    PARTITA_ASSERT(handle_ != nullptr);
    return Awaiter(handle_);
  }
  Awaiter operator co_await() & {
    PARTITA_ASSERT(handle_ != nullptr);
    return Awaiter(handle_);
  }

  // Runs to the first suspension or to the end, for roots (RunBlocking, TaskGroup). After it
  // returns, done() tells which. REQUIRES: not started.
  void Start() {
    handle_.promise().awaiter_on_stack_ = true;
    handle_.resume();
    if (!handle_.done()) handle_.promise().awaiter_on_stack_ = false;
  }
  // The same, for who goes on at its end in another way than by awaiting it: false when it has ended already,
  // else `then` is resumed.
  bool StartBefore(std::coroutine_handle<> then) {
    handle_.promise().continuation_ = then;
    Start();
    return !done();
  }
  // Another one goes on in the place of `then`. REQUIRES: the thread on which it goes on itself, and not
  // done().
  void EndBefore(std::coroutine_handle<> then) { handle_.promise().continuation_ = then; }
  bool done() const { return handle_.done(); }
  // REQUIRES: done(), and called once.
  T Take() { return handle_.promise().Take(); }

 private:
  void Destroy() {
    if (handle_) handle_.destroy();
  }

  Handle handle_ = nullptr;
};

namespace internal {
template <typename T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}
}  // namespace internal

}  // namespace partita

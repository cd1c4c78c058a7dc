#pragma once
#include <coroutine>
#include <optional>
#include <utility>

#include "engine/base/executor.h"
#include "engine/io/io_worker.h"

namespace partita {

// `auto call = [&] { return ...; }; auto result = co_await Offload(call);` runs a plain function
// that may block: on an I/O thread when awaited on a worker, which goes on with other work
// meanwhile; right here in blocking mode. What the function refers to must live in the awaiting
// coroutine's frame or longer.
template <typename F>
class Offload : private Runnable {
 public:
  using Value = std::invoke_result_t<F&>;

  explicit Offload(F function, std::source_location at = std::source_location::current())
      : function_(std::move(function)), at_(at) {}

  bool await_ready() {
    worker_ = IoWorker::Current();
    if (worker_ != nullptr) return false;
    value_.emplace(function_());
    return true;
  }
  void await_suspend(std::coroutine_handle<> handle) {
    resume_.Suspend(handle, at_);
    run = &RunOnIoThread;
    worker_->OffloadBegins();
    worker_->io_threads().Post(this);
  }
  Value await_resume() {
    if (worker_ != nullptr) worker_->OffloadEnds();
    return std::move(*value_);
  }

 private:
  static void RunOnIoThread(Runnable* runnable) {
    auto* self = static_cast<Offload*>(runnable);
    self->value_.emplace(self->function_());
    self->worker_->Post(&self->resume_);  // The last access: the frame may go now.
  }

  F function_;
  std::source_location at_;
  IoWorker* worker_ = nullptr;
  std::optional<Value> value_;
  ResumeRunnable resume_;
};

}  // namespace partita

#include "engine/base/executor.h"

#include <time.h>

namespace partita {

namespace {
thread_local Executor* current_executor = nullptr;
thread_local uint64_t turns = 0;
}  // namespace

Executor* Executor::Current() { return current_executor; }

uint64_t Executor::TurnOfThread() { return turns; }

void ResumeRunnable::Run(Runnable* self) {
  ++turns;
  static_cast<ResumeRunnable*>(self)->handle.resume();
}

Executor::Scope::Scope(Executor* executor) : previous_(current_executor) { current_executor = executor; }
Executor::Scope::~Scope() { current_executor = previous_; }

bool SleepFor::await_ready() {
  if (Executor::Current() != nullptr) return false;
  timespec remaining{static_cast<time_t>(duration_ns_ / 1'000'000'000),
                     static_cast<long>(duration_ns_ % 1'000'000'000)};
  while (nanosleep(&remaining, &remaining) != 0) {
  }
  return true;
}

void SleepFor::await_suspend(std::coroutine_handle<> handle) {
  Executor* executor = Executor::Current();
  resume_.Suspend(handle, at_);
  executor->PostAt(executor->MonotonicNanos() + duration_ns_, &resume_);
}

}  // namespace partita

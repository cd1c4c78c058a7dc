#pragma once
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "engine/base/event.h"
#include "engine/base/executor.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/io/offload.h"
#include "engine/io/thread_setup.h"

namespace partita {

// `auto result = co_await OnOwnThread(call);` runs a plain function that takes minutes or hours, in blocking
// mode, on a thread that is made for it: it would keep others from those of Offload. A worker goes on
// meanwhile; in blocking mode the function runs right here. It returns a Result: kResourceExhausted when
// there is no thread. What it refers to must live in the awaiting coroutine's frame or longer. Not for the
// simulator.
template <typename F>
Task<std::invoke_result_t<F&>> OnOwnThread(F function) {
  if (Executor::Current() == nullptr) co_return function();
  std::optional<std::invoke_result_t<F&>> value;
  Event done;
  auto run = [&] {
    value.emplace(function());
    done.Set();
  };
  // From an I/O thread: who is started by a worker shares its one core.
  auto start = [&] { return StartThread("partita-task", run); };
  PARTITA_CO_ASSIGN(std::thread thread, co_await Offload(start));
  co_await done.Wait();
  thread.join();  // It is at its end.
  co_return std::move(*value);
}

}  // namespace partita

#pragma once
#include <optional>
#include <utility>

#include "engine/base/task.h"

namespace partita {

// What `task` came to, once it has: for a task that a test begins beside and looks at later.
template <typename T>
Task<void> Into(Task<T> task, std::optional<T>* out) {
  out->emplace(co_await std::move(task));
}

}  // namespace partita

#pragma once
#include <cstdint>

#include "engine/base/executor.h"
#include "engine/base/task.h"

namespace partita {

// For Runtime::RunToEnd: lets the simulator go on for so long.
inline Task<int> Pause(uint64_t nanos) {
  co_await SleepFor(nanos);
  co_return 0;
}

}  // namespace partita

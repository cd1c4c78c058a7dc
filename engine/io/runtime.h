#pragma once
#include <cstdint>
#include <memory>

#include "engine/base/clock.h"
#include "engine/base/executor.h"
#include "engine/base/ids.h"
#include "engine/base/task.h"
#include "engine/io/file.h"

namespace partita {

enum class BackgroundClass : uint8_t {
  kIdle,      // Runs only when a core is idle (SCHED_IDLE).
  kMemory,    // Likewise, for who has the kernel find memory: behind nothing else, and where that is safe.
  kOrdinary,  // Ordinary priority: flushes, and compaction when debt is high.
  kInput,     // Waits for the device beside a caller in blocking mode: one read each, nothing longer.
  kTransfer,  // Likewise beside flushes and compactions: one read or write each.
};

// The world an engine runs in: files, clock, randomness and threads, real or simulated. The
// simulator is one thread with everything drawn from a seed; the code above cannot tell.
// Outlives the engine.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual FileSystem& files() = 0;
  virtual Clock& clock() = 0;
  virtual uint64_t RandomU64() = 0;  // Thread-safe.

  // The worker of a shard: an event loop on its own (pinned) thread. Where a store has more shards than there
  // are workers, as one that is opened as it lies, they share them.
  virtual Executor& shard_executor(ShardId shard) = 0;
  virtual uint32_t shard_count() const = 0;

  // Helper threads for long work. A task spawned there (TaskGroup::Spawn) runs in blocking mode on
  // one of them; in the simulator on the one scheduler. Tasks must not wait for other background
  // tasks, as there may be one thread only, but for those of kTransfer, which wait for nobody, and for an
  // operation of their own class that a thread performs already (Overlapped).
  virtual Executor& background(BackgroundClass background_class) = 0;

  // Runs `root` to its end: in blocking mode on this thread, or by turning the simulator's
  // scheduler. REQUIRES: not on an executor's thread.
  virtual void Run(Task<void> root) = 0;

  // e.g. "io_uring", "threads", "simulator".
  virtual const char* name() const = 0;

  // Runs `task` as Run does and returns its value.
  template <typename T>
  T RunToEnd(Task<T> task) {
    std::optional<T> value;
    Run(StoreInto(std::move(task), &value));
    return std::move(*value);
  }

 private:
  template <typename T>
  static Task<void> StoreInto(Task<T> task, std::optional<T>* out) {
    out->emplace(co_await std::move(task));
  }
};

}  // namespace partita

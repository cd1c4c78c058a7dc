#pragma once
#include <atomic>
#include <memory>

#include "engine/base/event.h"
#include "engine/base/executor.h"
#include "engine/base/task.h"

namespace partita {

// Tasks running beside their owner, joined before the owner goes: nothing is detached (STYLE 6).
// Thread-safe, but Join must not race with the first Spawn after it.
class TaskGroup {
 public:
  ~TaskGroup() { PARTITA_ASSERT(running_.load() == 0); }

  // Starts `task` on `executor`: an event loop, or a background helper, where it runs blocking.
  void Spawn(Executor& executor, Task<void> task, std::source_location at = std::source_location::current());
  // The same by Executor::PostAhead.
  void SpawnAhead(Executor& executor, Task<void> task,
                  std::source_location at = std::source_location::current());

  // Starts `task` on this thread at once, up to its first wait.
  // REQUIRES: Executor::Current() != nullptr (in blocking mode it would end here).
  void StartHere(Task<void> task);

  // Ends when every spawned task has ended. May be called once nothing more is spawned.
  Task<void> Join();

  size_t running() const { return running_.load(std::memory_order_acquire); }

 private:
  struct Spawned;
  std::unique_ptr<Spawned> Count(Task<void> task);
  Runnable* ToPost(Task<void> task, const std::source_location& at);
  void Finished();

  std::atomic<size_t> running_{0};
  std::mutex mutex_;
  std::shared_ptr<Event> idle_;  // Set when running_ falls to 0; made by Join.
};

}  // namespace partita

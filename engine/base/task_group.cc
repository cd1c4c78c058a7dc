#include "engine/base/task_group.h"

#include "engine/base/task_frames.h"

namespace partita {

namespace {

// An eager coroutine that frees itself at its end: the only one in the engine, and the group joins it.
struct SelfOwned {
  struct promise_type {
    static void* operator new(size_t size) { return NewTaskFrame(size); }
    static void operator delete(void* frame, size_t size) { FreeTaskFrame(frame, size); }
    SelfOwned get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

}  // namespace

struct TaskGroup::Spawned : Runnable {
  Task<void> task;
  TaskGroup* group;

  static SelfOwned Drive(std::unique_ptr<Spawned> self) {
    co_await std::move(self->task);
    TaskGroup* group = self->group;
    self->task = Task<void>();  // The task's frame goes before the group learns of it.
    self.reset();
    group->Finished();
  }
};

std::unique_ptr<TaskGroup::Spawned> TaskGroup::Count(Task<void> task) {
  auto spawned = std::make_unique<Spawned>();
  running_.fetch_add(1, std::memory_order_acq_rel);  // Not before: what fails is not joined.
  spawned->task = std::move(task);
  spawned->group = this;
  return spawned;
}

Runnable* TaskGroup::ToPost(Task<void> task, const std::source_location& at) {
  std::unique_ptr<Spawned> spawned = Count(std::move(task));
  spawned->where = at;
  spawned->run = [](Runnable* self) {
    Spawned::Drive(std::unique_ptr<Spawned>(static_cast<Spawned*>(self)));
  };
  return spawned.release();
}

void TaskGroup::Spawn(Executor& executor, Task<void> task, std::source_location at) {
  executor.Post(ToPost(std::move(task), at));
}

void TaskGroup::SpawnAhead(Executor& executor, Task<void> task, std::source_location at) {
  executor.PostAhead(ToPost(std::move(task), at));
}

void TaskGroup::StartHere(Task<void> task) {
  PARTITA_ASSERT(Executor::Current() != nullptr);
  Spawned::Drive(Count(std::move(task)));
}

void TaskGroup::Finished() {
  // But for the last without the lock: whoever holds it may be of idle class, and without a core.
  size_t running = running_.load(std::memory_order_relaxed);
  while (running > 1) {
    if (running_.compare_exchange_weak(running, running - 1, std::memory_order_acq_rel)) return;
  }
  std::shared_ptr<Event> idle;
  {
    std::lock_guard lock(mutex_);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    idle = std::move(idle_);
  }
  if (idle) idle->Set();
}

Task<void> TaskGroup::Join() {
  std::shared_ptr<Event> idle = std::make_shared<Event>();  // Not under the lock: see Finished.
  {
    std::lock_guard lock(mutex_);
    if (running_.load(std::memory_order_acquire) == 0) co_return;
    if (!idle_) idle_ = std::move(idle);
    idle = idle_;
  }
  co_await idle->Wait();
}

}  // namespace partita

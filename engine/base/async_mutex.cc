#include "engine/base/async_mutex.h"

namespace partita {

bool AsyncMutex::Enqueue(Waiter* waiter) {
  std::lock_guard lock(mutex_);
  if (!held_) {
    held_ = true;
    return false;
  }
  waiter->next = nullptr;
  if (last_ != nullptr) {
    last_->next = waiter;
  } else {
    first_ = waiter;
  }
  last_ = waiter;
  return true;
}

AsyncMutex::Guard AsyncMutex::TryLock() {
  std::lock_guard lock(mutex_);
  return std::exchange(held_, true) ? Guard() : Guard(this);
}

void AsyncMutex::Unlock() {
  Waiter* heir;
  {
    std::lock_guard lock(mutex_);
    PARTITA_ASSERT(held_);
    heir = first_;
    if (heir == nullptr) {
      held_ = false;
      return;
    }
    first_ = heir->next;
    if (first_ == nullptr) last_ = nullptr;
  }
  heir->Wake();  // The lock stays held and is now the heir's.
}

}  // namespace partita

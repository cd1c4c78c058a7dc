#include "engine/base/event.h"

namespace partita {

void Waiter::Wake() {
  if (executor_ != nullptr) {
    executor_->Post(&resume_);
    return;
  }
  // The waiter may be gone as soon as it sees the store, so the word must not be touched again:
  // notify_one on a dead address is harmless for a futex, and the address is all that it uses.
  std::atomic<uint32_t>* word = &state_;
  // seq_cst, since notify_one of libstdc++ 12 makes no system call where it finds nobody counted as waiting:
  // with a weaker store it may look before the store can be seen, while the waiter has counted itself and
  // sleeps on the old value, for ever.
  word->store(1, std::memory_order_seq_cst);
  word->notify_one();
}

void Waiter::BlockUntilWoken(int spins) {
  for (int i = 0; i < spins; ++i) {
    if (state_.load(std::memory_order_acquire) != 0) return;
    __builtin_ia32_pause();
  }
  while (state_.load(std::memory_order_acquire) == 0) state_.wait(0, std::memory_order_acquire);
}

void Event::Set() {
  Waiter* list;
  {
    std::lock_guard lock(mutex_);
    set_.store(true, std::memory_order_release);
    list = waiters_;
    waiters_ = nullptr;
  }
  while (list != nullptr) {
    Waiter* waiter = list;
    list = list->next;
    waiter->Wake();
  }
}

bool Event::Enqueue(Waiter* waiter) {
  std::lock_guard lock(mutex_);
  if (set_.load(std::memory_order_relaxed)) return false;
  waiter->next = waiters_;
  waiters_ = waiter;
  return true;
}

bool Event::Forget(Waiter* waiter) {
  std::lock_guard lock(mutex_);
  Waiter** link = &waiters_;
  while (*link != nullptr && *link != waiter) link = &(*link)->next;
  if (*link == nullptr) return false;
  *link = waiter->next;
  return true;
}

}  // namespace partita

#include "engine/opening_progress.h"

#include <algorithm>

#include "engine/base/assert.h"

namespace partita {

void OpeningProgress::Part::Set(uint64_t done, uint64_t due) {
  PARTITA_ASSERT(done <= due);
  done += before_;
  due = std::max(due + before_, due_);
  PARTITA_ASSERT(done_ <= done);
  all_.due_.fetch_add(due - std::exchange(due_, due), std::memory_order_relaxed);
  all_.done_.fetch_add(done - std::exchange(done_, done), std::memory_order_relaxed);
  if (!all_.tell_) return;
  const std::unique_lock telling(all_.telling_, std::try_to_lock);
  if (telling)
    all_.tell_(all_.done_.load(std::memory_order_relaxed), all_.due_.load(std::memory_order_relaxed));
}

}  // namespace partita

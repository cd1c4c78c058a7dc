#pragma once
#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/assert.h"
#include "engine/hazard.h"

namespace partita {

// Publishes an immutable T by pointer; old ones are freed once no thread looks at them (hazard.h).
//
// `current_` is written by one thread at a time, which the owner sees to, and read by any thread.
template <typename T>
class SnapshotPublisher {
 public:
  ~SnapshotPublisher() { delete current_.load(); }

  void Publish(std::unique_ptr<const T> snapshot) {
    Show(std::move(snapshot));
    Reclaim();
  }
  // Publish in two steps, for who must not wait for a system call: old ones are there until Reclaim, which
  // any thread may call.
  void Show(std::unique_ptr<const T> snapshot) {
    const T* old = current_.exchange(snapshot.release(), std::memory_order_acq_rel);
    if (old == nullptr) return;
    std::lock_guard lock(mutex_);
    retired_.emplace_back(old);
  }
  // The barrier, a system call, and what is freed, outside the lock, for which Show waits.
  void Reclaim() {
    std::vector<std::unique_ptr<const T>> retired;
    {
      std::lock_guard lock(mutex_);
      retired.swap(retired_);
    }
    HazardSlots::HeavyBarrier();
    std::erase_if(retired, [](const auto& old_one) { return !HazardSlots::Holds(old_one.get()); });
    std::lock_guard lock(mutex_);
    std::move(retired.begin(), retired.end(), std::back_inserter(retired_));
  }

  // Calls `use` with the current snapshot. REQUIRES: one was published. `use` must be short and must not look
  // at a read view.
  template <typename Use>
  auto With(Use use) const {
    std::atomic<const void*>* slot = HazardSlots::Slot();
    if (slot == nullptr) {
      // No slot left for this thread: publishing waits for us instead.
      std::lock_guard lock(mutex_);
      return use(*current_.load(std::memory_order_acquire));
    }
    PARTITA_DEBUG_ASSERT(slot->load(std::memory_order_relaxed) == nullptr);
    const T* seen = current_.load(std::memory_order_acquire);
    while (true) {
      slot->store(seen, std::memory_order_relaxed);
      HazardSlots::LightBarrier();
      const T* again = current_.load(std::memory_order_acquire);
      if (again == seen) break;
      seen = again;
    }
    auto result = use(*seen);
    slot->store(nullptr, std::memory_order_release);
    return result;
  }

 private:
  std::atomic<const T*> current_{nullptr};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<const T>> retired_;
};

}  // namespace partita

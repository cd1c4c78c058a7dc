#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

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
    retired_.push_back({++retired_so_far_, std::unique_ptr<const T>(old)});
  }
  // The barrier, a system call, and what is freed, outside the lock, for which Show waits. Nothing leaves
  // retired_ meanwhile: a thread that loses its core there keeps nobody else from reclaiming.
  void Reclaim() {
    uint64_t passed = 0;
    {
      std::lock_guard lock(mutex_);
      passed = retired_so_far_;
    }
    HazardSlots::HeavyBarrier();
    std::vector<std::unique_ptr<const T>> free;  // Goes when the lock is given back.
    std::lock_guard lock(mutex_);
    for (Retired& retired : retired_) {
      if (retired.number > passed || HazardSlots::Holds(retired.snapshot.get())) continue;
      free.push_back(std::move(retired.snapshot));
    }
    std::erase_if(retired_, [](const Retired& retired) { return retired.snapshot == nullptr; });
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
    auto result = use(*HazardSlots::Protect(slot, current_));
    slot->store(nullptr, std::memory_order_release);
    return result;
  }

 private:
  std::atomic<const T*> current_{nullptr};
  struct Retired {
    uint64_t number;
    std::unique_ptr<const T> snapshot;
  };
  mutable std::mutex mutex_;      // Guards what follows.
  std::vector<Retired> retired_;  // The oldest first.
  uint64_t retired_so_far_ = 0;
};

}  // namespace partita

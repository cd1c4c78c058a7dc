#include "engine/hazard.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/base/site.h"

namespace partita {

namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PARTITA_HAZARD_FENCES 1
#endif
#endif

struct alignas(64) PaddedSlot {
  std::atomic<const void*> object{nullptr};
  std::atomic<bool> taken{false};
};

// Slots are written by the thread that took them, read by every reclaimer.
PaddedSlot slots[HazardSlots::kSlots];
// Slots from here on were never taken: a reclaimer need not look at them.
std::atomic<size_t> slots_end{0};

int Membarrier(int command) { return static_cast<int>(syscall(SYS_membarrier, command, 0, 0)); }

// Readers need no fence: every HeavyBarrier that may still begin or go on reaches them. Set once, by the
// first of these, not before main: a store may be open by then.
constinit std::atomic<bool> readers_are_reached{false};

bool ReachesReaders() {
#ifdef PARTITA_HAZARD_FENCES
  return false;
#else
  static const bool registered = [] {
    const bool can = Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    readers_are_reached.store(can, std::memory_order_relaxed);
    return can;
  }();
  return registered;
#endif
}

class ThreadSlot {
 public:
  ThreadSlot() {
    for (size_t i = 0; i < HazardSlots::kSlots; ++i) {
      bool free = false;
      if (!slots[i].taken.load(std::memory_order_relaxed) &&
          slots[i].taken.compare_exchange_strong(free, true, std::memory_order_acquire)) {
        size_t end = slots_end.load();
        while (end < i + 1 && !slots_end.compare_exchange_weak(end, i + 1)) {
        }
        slot_ = &slots[i];
        return;
      }
    }
  }
  ~ThreadSlot() {
    if (slot_ == nullptr) return;
    slot_->object.store(nullptr, std::memory_order_release);
    slot_->taken.store(false, std::memory_order_release);
    slot_ = nullptr;  // What else of the thread ends later, and reads, does without one.
  }
  std::atomic<const void*>* object() { return slot_ == nullptr ? nullptr : &slot_->object; }

 private:
  PaddedSlot* slot_ = nullptr;
};

}  // namespace

std::atomic<const void*>* HazardSlots::Slot() {
  thread_local ThreadSlot slot;
  return slot.object();
}

void HazardSlots::LightBarrier() {
  if (readers_are_reached.load(std::memory_order_relaxed)) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else if (SiteIsOn("hazard.light.fence")) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void HazardSlots::HeavyBarrier() {
  if (!SiteIsOn("hazard.heavy.fence")) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (ReachesReaders()) PARTITA_ASSERT(Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0);
}

bool HazardSlots::Holds(const void* object) {
  size_t end = slots_end.load(std::memory_order_acquire);
  for (size_t i = 0; i < end; ++i) {
    if (slots[i].object.load(std::memory_order_acquire) == object) return true;
  }
  return false;
}

}  // namespace partita

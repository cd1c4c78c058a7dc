#pragma once
#include <atomic>
#include <cstddef>

#include "engine/base/assert.h"

namespace partita {

// Hazard slots: how a thread says "I am looking at this object" for the price of a plain store.
//
// The reading side stores the pointer, passes a compiler barrier, and loads the published pointer
// again. The reclaiming side pays: after unpublishing an object it calls HeavyBarrier(), which makes
// every running thread pass a full fence (membarrier), and then looks whether any slot holds the
// object. Where membarrier is missing, until somebody reclaims, and under TSan, which cannot see it, readers
// use a full fence instead.
//
// One slot a thread, process-wide; the slot is given back when the thread ends. When all slots are
// taken (kSlots threads read at once) Slot() is null and the reader takes the slow road of its
// publisher.
class HazardSlots {
 public:
  static constexpr size_t kSlots = 4096;

  // This thread's slot, or null.
  static std::atomic<const void*>* Slot();

  // Puts into this thread's slot what is published, until what it put there is published still: that is not
  // freed before the slot is cleared. REQUIRES: the slot is empty.
  template <typename T>
  static const T* Protect(std::atomic<const void*>* slot, const std::atomic<const T*>& published) {
    PARTITA_DEBUG_ASSERT(slot->load(std::memory_order_relaxed) == nullptr);
    const T* seen = published.load(std::memory_order_acquire);
    while (true) {
      slot->store(seen, std::memory_order_relaxed);
      LightBarrier();
      const T* again = published.load(std::memory_order_acquire);
      if (again == seen) return seen;
      seen = again;
    }
  }

  // The reader's barrier between its store and its second load.
  static void LightBarrier();
  // The reclaimer's barrier between unpublishing and looking.
  static void HeavyBarrier();

  // True when some thread's slot holds `object`. REQUIRES: HeavyBarrier() since it was unpublished.
  static bool Holds(const void* object);
};

}  // namespace partita

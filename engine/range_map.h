#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "engine/catalog.h"
#include "engine/hazard.h"

namespace partita {

// Which shard owns which interval of user keys: sorted, immutable (DESIGN 8).
struct RangeMap {
  std::vector<RangeDescriptor> ranges;

  // The range that holds the key, or null: no such table.
  const RangeDescriptor* Find(std::string_view user_key) const {
    auto after = std::upper_bound(
        ranges.begin(), ranges.end(), user_key,
        [](std::string_view key, const RangeDescriptor& range) { return key < range.lower; });
    if (after == ranges.begin()) return nullptr;
    const RangeDescriptor& range = *std::prev(after);
    return range.upper.empty() || user_key < range.upper ? &range : nullptr;
  }

  // The last range that begins below `upper` (empty: the last of all), or null.
  const RangeDescriptor* FindBelow(std::string_view upper) const {
    if (ranges.empty()) return nullptr;
    if (upper.empty()) return &ranges.back();
    auto at = std::lower_bound(
        ranges.begin(), ranges.end(), upper,
        [](const RangeDescriptor& range, std::string_view key) { return range.lower < key; });
    return at == ranges.begin() ? nullptr : &*std::prev(at);
  }
};

// Publishes the map by pointer; old maps are freed once no thread looks at them (hazard.h).
//
// `current_` is written under the catalog's mutex and read by any thread.
class RangeMapPublisher {
 public:
  ~RangeMapPublisher() { delete current_.load(); }

  void Publish(std::unique_ptr<const RangeMap> map) {
    const RangeMap* old = current_.exchange(map.release(), std::memory_order_acq_rel);
    std::lock_guard lock(mutex_);
    if (old != nullptr) retired_.emplace_back(old);
    HazardSlots::HeavyBarrier();
    std::erase_if(retired_, [](const auto& map) { return !HazardSlots::Holds(map.get()); });
  }

  // Calls `use` with the current map. `use` must be short and must not look at a read view.
  template <typename Use>
  auto With(Use use) const {
    std::atomic<const void*>* slot = HazardSlots::Slot();
    if (slot == nullptr) {
      // No slot left for this thread: publishing waits for us instead.
      std::lock_guard lock(mutex_);
      return use(*current_.load(std::memory_order_acquire));
    }
    const RangeMap* seen = current_.load(std::memory_order_acquire);
    while (true) {
      slot->store(seen, std::memory_order_relaxed);
      HazardSlots::LightBarrier();
      const RangeMap* again = current_.load(std::memory_order_acquire);
      if (again == seen) break;
      seen = again;
    }
    auto result = use(*seen);
    slot->store(nullptr, std::memory_order_release);
    return result;
  }

 private:
  std::atomic<const RangeMap*> current_{nullptr};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<const RangeMap>> retired_;
};

}  // namespace partita

#pragma once
#include <mutex>
#include <unordered_map>

#include "engine/base/assert.h"
#include "engine/base/ids.h"

namespace partita {

// How many manifests refer to each object, store-wide. In memory only: rebuilt at open from all
// manifests (DESIGN 6). An object is removed when its count falls to zero and the manifest that
// dropped the last reference is durable. Thread-safe.
class ObjectReferences {
 public:
  void Add(ObjectId id) {
    std::lock_guard lock(mutex_);
    ++counts_[id];
  }

  // From here on no reference is the last one: a manifest that cannot be read may hold another (F39).
  void KeepAll() {
    std::lock_guard lock(mutex_);
    keep_all_ = true;
  }

  bool keeps_all() const {
    std::lock_guard lock(mutex_);
    return keep_all_;
  }

  // True when that was the last reference.
  bool Drop(ObjectId id) {
    std::lock_guard lock(mutex_);
    if (keep_all_) return false;
    auto found = counts_.find(id);
    PARTITA_ASSERT(found != counts_.end());
    if (--found->second > 0) return false;
    counts_.erase(found);
    return true;
  }

  bool Contains(ObjectId id) const {
    std::lock_guard lock(mutex_);
    return counts_.contains(id);
  }

  // True when there is more than one.
  bool IsShared(ObjectId id) const {
    std::lock_guard lock(mutex_);
    const auto found = counts_.find(id);
    return found != counts_.end() && found->second > 1;
  }

  void Clear() {
    std::lock_guard lock(mutex_);
    counts_.clear();
  }

 private:
  mutable std::mutex mutex_;
  bool keep_all_ = false;
  std::unordered_map<ObjectId, uint32_t> counts_;
};

}  // namespace partita

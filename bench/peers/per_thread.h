#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace partita::bench {

// One T for each thread that asks, made at its first call: what engines call a session or a reader.
// All live until Clear, also those of threads that have ended, so that the thread need not know when
// the engine is closed.
//
// Thread-safety: Get from any thread; Clear while no other call runs.
template <typename T>
class PerThread {
 public:
  // The calling thread's; `make` makes it and may answer null, which is answered and not kept.
  T* Get(const std::function<std::unique_ptr<T>()>& make) {
    static thread_local Slot slot;
    if (slot.owner == number_) return slot.value;
    std::unique_ptr<T> made = make();
    if (made == nullptr) return nullptr;
    slot = {.owner = number_, .value = made.get()};
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(made));
    return slot.value;
  }

  // Destroys all of them.
  void Clear() {
    all_.clear();
    number_ = NextNumber();  // What threads remember is no longer theirs.
  }

 private:
  struct Slot {
    uint64_t owner = 0;
    T* value = nullptr;
  };
  // Never given twice, unlike an address.
  static uint64_t NextNumber() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
  }

  uint64_t number_ = NextNumber();
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> all_;  // Guarded by mutex_.
};

}  // namespace partita::bench

#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

#include "engine/base/async_mutex.h"

namespace partita::http {

// What the connections of a server may hold in large buffers, all together. It counts and tells; who holds
// the buffers acts on it. Thread-safe.
class BufferBudget {
 public:
  explicit BufferBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  friend class BufferShare;
  const uint64_t bytes_max_;
  std::atomic<uint64_t> held_{0};
};

// All that one server counts, or several that share it.
struct ServerBudgets {
  explicit ServerBudgets(uint64_t bytes_max)
      : large(bytes_max), waiting(bytes_max / 4), early(bytes_max / 4) {}

  // Of them all, to plan memory by.
  static uint64_t LargeOf(uint64_t all_bytes) { return all_bytes / 3 * 2; }

  BufferBudget large;
  // What of large bodies came before anybody could ask whether there is room, and now waits for it.
  BufferBudget waiting;
  // Held by whose turn it is to get room for a large body: first come, first served, else a large one would
  // wait for ever behind smaller ones.
  AsyncMutex turn;
  // What came before anybody could ask whether its sender may send it: unfinished heads, small bodies, what
  // stands behind a request in a pipeline, and its answers. Apart from the others, because strangers may send
  // all of it: they keep no signed request from its room. A quarter
  // of it: of --memory 64M some hundred at once that go beyond the 16 KiB which each connection has free, and
  // what clients send does so rarely before they are asked.
  BufferBudget early;
};

// One holder's part of a budget, given back with this object. Of one thread at a time; the budget outlives
// it.
class BufferShare {
 public:
  BufferShare() = default;
  // `budget` may be null: then nobody counts, and everything fits.
  explicit BufferShare(BufferBudget* budget) : budget_(budget) {}
  BufferShare(BufferShare&& other) noexcept
      : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  BufferShare& operator=(BufferShare&& other) noexcept {
    Set(0);
    budget_ = other.budget_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~BufferShare() { Set(0); }

  uint64_t bytes() const { return bytes_; }

  // Holds so many bytes from now on. False when it grew although all hold too much; counted they are all the
  // same.
  bool Set(uint64_t bytes) {
    if (bytes == bytes_ || budget_ == nullptr) return true;
    const uint64_t before = budget_->held_.fetch_add(bytes - bytes_, std::memory_order_relaxed);
    const bool grew = bytes > bytes_;
    const bool fits = before + (bytes - bytes_) <= budget_->bytes_max_;
    bytes_ = bytes;
    return fits || !grew;
  }

  // Holds so many bytes from now on if they fit; false, and nothing has changed, when they do not.
  bool TrySet(uint64_t bytes) {
    if (bytes <= bytes_ || budget_ == nullptr) return Set(bytes);
    uint64_t held = budget_->held();
    do {
      if (held + (bytes - bytes_) > budget_->bytes_max_) return false;
    } while (!budget_->held_.compare_exchange_weak(held, held + (bytes - bytes_), std::memory_order_relaxed));
    bytes_ = bytes;
    return true;
  }

 private:
  BufferBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace partita::http

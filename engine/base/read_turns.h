#pragma once
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <mutex>
#include <source_location>
#include <utility>

#include "engine/base/clock.h"
#include "engine/base/event.h"

namespace partita {

// Bounds the memory of reads that are under way: one with which all would take more than that waits until
// others are over, first come first served. One that is larger than the bound goes alone.
//
// Owned by the store. Thread-safe: coroutines and blocked threads wait in one line. Who has a turn waits for
// the disk and for nothing else, so whoever waits for one may hold what it likes.
//
//   `in_flight_`: added to by who lets a read go, taken from at its end.
//   `waiting_`: how many are in the line; changed under the mutex.
//   Both seq_cst: who joins the line counts itself, then looks at what is in flight; who ends takes itself
//   from that, then looks for a line. One of the two sees the other.
class ReadTurns {
 public:
  // `clock` says how long one has waited.
  ReadTurns(uint64_t bytes_max, Clock& clock) : bytes_max_(bytes_max), clock_(clock) {}
  ~ReadTurns();
  ReadTurns(const ReadTurns&) = delete;
  ReadTurns& operator=(const ReadTurns&) = delete;

  // The right to read, until it is destroyed.
  class [[nodiscard]] Turn {
   public:
    Turn() = default;
    Turn(ReadTurns* turns, uint64_t bytes, uint64_t waited_ns)
        : turns_(turns), bytes_(bytes), waited_ns_(waited_ns) {}
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), bytes_(other.bytes_), waited_ns_(other.waited_ns_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->End(bytes_);
    }
    // Before it was this one's turn.
    uint64_t waited_ns() const { return waited_ns_; }

   private:
    ReadTurns* turns_ = nullptr;
    uint64_t bytes_ = 0;
    uint64_t waited_ns_ = 0;
  };

  class Awaiter;

  // `auto turn = co_await ReadTurns::Take(turns, bytes);` for a read that takes so much memory.
  // `turns` may be null: then at once.
  static Awaiter Take(ReadTurns* turns, uint64_t bytes,
                      std::source_location at = std::source_location::current());

  uint64_t bytes_in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

 private:
  // One in the line; lives in the frame of who waits.
  struct Place {
    const uint64_t bytes;
    Waiter waiter;
    uint64_t since_ns = 0;
    Place* next = nullptr;
  };

  bool LetGo(uint64_t bytes);
  bool LetGoAtOnce(uint64_t bytes) { return waiting_.load() == 0 && LetGo(bytes); }
  // Wakes it, and all in front of it, as soon as may be.
  void Join(Place* place);
  void End(uint64_t bytes);
  void Advance(Place* newcomer);

  const uint64_t bytes_max_;
  Clock& clock_;
  std::atomic<uint64_t> in_flight_{0};
  std::atomic<uint64_t> waiting_{0};
  std::mutex mutex_;  // Guards the line.
  Place* first_ = nullptr;
  Place* last_ = nullptr;
};

class ReadTurns::Awaiter {
 public:
  Awaiter(ReadTurns* turns, uint64_t bytes, std::source_location at)
      : turns_(turns), place_{.bytes = bytes}, at_(at) {}

  bool await_ready() {
    if (turns_ == nullptr || turns_->LetGoAtOnce(place_.bytes)) return true;
    if (!place_.waiter.blocking()) return false;
    turns_->Join(&place_);
    place_.waiter.BlockUntilWoken();
    return true;
  }
  void await_suspend(std::coroutine_handle<> handle) {
    place_.waiter.SuspendAs(handle, at_);
    turns_->Join(&place_);  // Woken already, it goes on later, on this thread.
  }
  Turn await_resume() {
    const uint64_t waited = place_.since_ns == 0 ? 0 : turns_->clock_.MonotonicNanos() - place_.since_ns;
    return Turn(turns_, place_.bytes, waited);
  }

 private:
  ReadTurns* const turns_;
  Place place_;
  const std::source_location at_;
};

inline ReadTurns::Awaiter ReadTurns::Take(ReadTurns* turns, uint64_t bytes, std::source_location at) {
  return Awaiter(turns, bytes, at);
}

}  // namespace partita

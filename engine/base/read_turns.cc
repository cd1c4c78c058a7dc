#include "engine/base/read_turns.h"

#include "engine/base/assert.h"

namespace partita {

ReadTurns::~ReadTurns() {
  PARTITA_ASSERT(first_ == nullptr);
  PARTITA_ASSERT(in_flight_.load() == 0);
}

bool ReadTurns::LetGo(uint64_t bytes) {
  uint64_t in_flight = in_flight_.load();
  while (in_flight == 0 || in_flight + bytes <= bytes_max_) {
    if (in_flight_.compare_exchange_weak(in_flight, in_flight + bytes)) return true;
  }
  return false;
}

void ReadTurns::Join(Place* place) {
  place->since_ns = clock_.MonotonicNanos();
  Advance(place);
}

void ReadTurns::End(uint64_t bytes) {
  in_flight_.fetch_sub(bytes);
  if (waiting_.load() > 0) Advance(nullptr);
}

// Lets go whoever may, from the front of the line on; `newcomer` has joined it, if there is one.
void ReadTurns::Advance(Place* newcomer) {
  Place* woken = nullptr;
  Place** end = &woken;
  {
    std::lock_guard lock(mutex_);
    if (newcomer != nullptr) {
      (last_ != nullptr ? last_->next : first_) = newcomer;
      last_ = newcomer;
      waiting_.fetch_add(1);
    }
    while (first_ != nullptr && LetGo(first_->bytes)) {
      *end = first_;
      end = &first_->next;
      first_ = first_->next;
      if (first_ == nullptr) last_ = nullptr;
      waiting_.fetch_sub(1);
    }
    *end = nullptr;
  }
  while (woken != nullptr) {
    Place* place = woken;
    woken = place->next;
    place->waiter.Wake();
  }
}

}  // namespace partita

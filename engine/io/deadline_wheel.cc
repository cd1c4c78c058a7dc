#include "engine/io/deadline_wheel.h"

#include <algorithm>

#include "engine/base/assert.h"

namespace partita {

DeadlineWheel::Entry::~Entry() { PARTITA_ASSERT(slot_tick_ == 0); }

DeadlineWheel::DeadlineWheel(Executor& executor) : executor_(executor) {
  timer_.wheel = this;
  timer_.where = std::source_location::current();
  timer_.run = [](Runnable* self) { static_cast<Timer*>(self)->wheel->Tick(); };
}

DeadlineWheel::~DeadlineWheel() { PARTITA_ASSERT(linked_ == 0 && !armed_); }

void DeadlineWheel::Set(Entry* entry, uint64_t now_ns, uint64_t from_now_ns) {
  if (!armed_) {
    tick_ = now_ns / kTickNanos;
    ArmTimer();
  }
  // Of now: a worker that was held up has yet to look at the ticks since. One more for the part of the
  // current tick that has passed already.
  const uint64_t now = std::max(tick_, now_ns / kTickNanos);
  entry->deadline_tick_ = now + from_now_ns / kTickNanos + 2;
  if (entry->slot_tick_ != 0) {
    if (entry->slot_tick_ <= entry->deadline_tick_) return;
    Unlink(entry);
  }
  Link(entry, entry->deadline_tick_);
}

void DeadlineWheel::Clear(Entry* entry) {
  entry->deadline_tick_ = 0;
  if (entry->slot_tick_ != 0) Unlink(entry);
}

void DeadlineWheel::Link(Entry* entry, uint64_t tick) {
  tick = std::min(tick, tick_ + kSlots - 1);
  Entry*& first = slots_[tick % kSlots];
  entry->slot_tick_ = tick;
  entry->previous_ = nullptr;
  entry->next_ = first;
  if (first != nullptr) first->previous_ = entry;
  first = entry;
  ++linked_;
}

void DeadlineWheel::Unlink(Entry* entry) {
  if (entry->previous_ == nullptr) {
    slots_[entry->slot_tick_ % kSlots] = entry->next_;
  } else {
    entry->previous_->next_ = entry->next_;
  }
  if (entry->next_ != nullptr) entry->next_->previous_ = entry->previous_;
  entry->slot_tick_ = 0;
  --linked_;
}

void DeadlineWheel::ArmTimer() {
  armed_ = true;
  executor_.PostAt((tick_ + 1) * kTickNanos, &timer_);
}

// Armed as long as it lasts: a callback may set deadlines.
void DeadlineWheel::Tick() {
  const uint64_t now = executor_.MonotonicNanos() / kTickNanos;
  while (tick_ < now && linked_ > 0) {
    ++tick_;
    LookAtSlot();
  }
  armed_ = false;
  if (linked_ > 0) ArmTimer();
}

void DeadlineWheel::LookAtSlot() {
  Entry* entry = slots_[tick_ % kSlots];
  // None of the callbacks and none of the links below puts an entry into this slot, which is the
  // farthest from here on; but a callback may take entries out of it, so start over after each.
  while (entry != nullptr) {
    PARTITA_ASSERT(entry->slot_tick_ == tick_);
    Unlink(entry);
    if (entry->deadline_tick_ > tick_) {
      Link(entry, entry->deadline_tick_);
    } else {
      entry->deadline_tick_ = 0;
      entry->DeadlinePassed();
    }
    entry = slots_[tick_ % kSlots];
  }
}

}  // namespace partita

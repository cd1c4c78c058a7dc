#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/executor.h"

namespace partita {

// Coarse deadlines for very many connections of one worker, moved with each request.
//
// Moving a deadline costs a few stores: an entry stays in the slot it is in and is looked at when that slot's
// time comes; only a deadline earlier than its slot makes it change slots. Deadlines beyond the wheel's turn
// wait in its last slot and are put on from there. They fire up to two ticks late, never early.
//
// Of one worker's thread. A timer of the worker runs while any entry has a deadline, so those must be
// cleared before the worker can stop.
class DeadlineWheel {
 public:
  static constexpr uint64_t kTickNanos = 50'000'000;
  static constexpr size_t kSlots = 256;

  // Something with a deadline. Has none while it is made and when it is destroyed.
  class Entry {
   public:
    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   protected:
    ~Entry();
    // The deadline has passed, and is none from here on. May set another.
    virtual void DeadlinePassed() = 0;

   private:
    friend class DeadlineWheel;
    Entry* previous_ = nullptr;
    Entry* next_ = nullptr;
    uint64_t deadline_tick_ = 0;  // 0: none.
    uint64_t slot_tick_ = 0;      // When it will be looked at; 0: in no slot.
  };

  explicit DeadlineWheel(Executor& executor);
  ~DeadlineWheel();

  // In place of an earlier one. `now_ns`: by the executor's clock.
  void Set(Entry* entry, uint64_t now_ns, uint64_t from_now_ns);
  void Clear(Entry* entry);

 private:
  struct Timer : Runnable {
    DeadlineWheel* wheel;
  };
  void Link(Entry* entry, uint64_t tick);
  void Unlink(Entry* entry);
  void Tick();
  void LookAtSlot();
  void ArmTimer();

  Executor& executor_;
  std::array<Entry*, kSlots> slots_{};
  uint64_t tick_ = 0;  // The last one looked at.
  size_t linked_ = 0;
  bool armed_ = false;
  Timer timer_;
};

}  // namespace partita

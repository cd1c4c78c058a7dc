#include "engine/base/timed_waits.h"

#include <algorithm>
#include <source_location>
#include <string>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/event.h"
#include "engine/base/result.h"

namespace partita {

namespace {

// A wait is seen within one of these, and ended within another.
constexpr uint64_t kTickNanos = 20'000'000;
// From one look to the next no more time counts. A worker with much to do looks more often.
constexpr uint64_t kLookNanosMax = 1'000'000'000;

}  // namespace

// `co_await WaitFor(waits, place, event)`: false when the event was not set in time.
class TimedWaits::WaitFor {
 public:
  WaitFor(TimedWaits& waits, const Place& place, uint64_t bytes, Event& event,
          std::source_location at = std::source_location::current())
      : waits_(waits), wait_(place, bytes), at_(at) {
    wait_.event = &event;
  }

  bool await_ready() {
    if (!wait_.waiter.blocking()) return false;
    if (Begin()) wait_.waiter.BlockUntilWoken();
    return true;
  }
  bool await_suspend(std::coroutine_handle<> handle) {
    wait_.waiter.SuspendAs(handle, at_);
    return Begin();
  }
  bool await_resume() { return wait_.lane == nullptr || waits_.Leave(&wait_); }

 private:
  // False: the event is set. Who is woken before it is entered goes on later, on this thread.
  bool Begin() {
    if (!wait_.event->Enqueue(&wait_.waiter)) return false;
    waits_.Enter(&wait_);
    return true;
  }

  TimedWaits& waits_;
  Wait wait_;
  std::source_location at_;
};

TimedWaits::~TimedWaits() {
  for (const Lane& lane : lanes_) PARTITA_ASSERT(lane.first == nullptr);
}

Task<Status> TimedWaits::Arrive(std::shared_ptr<Overlapped> operation, Place place,
                                uint64_t uncounted_bytes) {
  if (!operation->is_claimed()) PARTITA_CO_TRY(MayBegin(place));
  Lane& lane = LaneOfThread();
  if (operation->Claim()) {
    if (Executor::Current() == nullptr) {
      co_return co_await InTime(this, PerformHere(std::move(operation)), place, 0);
    }
    lane.tasks.StartHere(PerformHeld(operation));
  }
  const bool in_time = co_await WaitFor(*this, place, uncounted_bytes, operation->done_);
  if (in_time) co_return operation->status_;
  lane.tasks.Spawn(worker_, Outlast(this, std::move(operation), place, uncounted_bytes));
  co_return NotInTime();
}

Task<void> TimedWaits::PerformHeld(std::shared_ptr<Overlapped> operation) {
  co_await operation->PerformClaimed();
}

Task<Status> TimedWaits::PerformHere(std::shared_ptr<Overlapped> operation) {
  co_await operation->PerformClaimed();
  co_return operation->status_;
}

Task<void> TimedWaits::GiveUp(std::shared_ptr<Wait*> wait) {
  if (*wait != nullptr) (*wait)->give_up(*wait);
  co_return;
}

Task<void> TimedWaits::Outlast(TimedWaits* self, std::shared_ptr<Overlapped> operation, Place place,
                               uint64_t bytes) {
  co_await operation->done_.Wait();
  self->NoteOver(place, bytes);
}

Task<void> TimedWaits::Join() {
  for (Lane& lane : lanes_) co_await lane.tasks.Join();
}

// --- Lanes ---

TimedWaits::Lane& TimedWaits::LaneOfThread() {
  static constinit std::atomic<size_t> threads{0};
  static thread_local const size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % kLanes;
  return lanes_[mine];
}

void TimedWaits::Enter(Wait* wait) {
  Lane& lane = LaneOfThread();
  bool watch;
  {
    std::lock_guard lock(lane.mutex);
    wait->lane = &lane;
    wait->next = lane.first;
    if (lane.first != nullptr) lane.first->previous = wait;
    lane.first = wait;
    watch = !std::exchange(lane.watching, true);
  }
  if (watch) lane.tasks.Spawn(worker_, Watch(this, &lane));
}

// False: it is overdue.
bool TimedWaits::Leave(Wait* wait) {
  Lane& lane = *std::exchange(wait->lane, nullptr);
  std::lock_guard lock(lane.mutex);
  (wait->previous != nullptr ? wait->previous->next : lane.first) = wait->next;
  if (wait->next != nullptr) wait->next->previous = wait->previous;
  return !wait->overdue;
}

Task<void> TimedWaits::Watch(TimedWaits* self, Lane* lane) {
  lane->looked_ns = self->worker_.MonotonicNanos();
  do {
    co_await SleepFor(kTickNanos);
  } while (self->EndOverdue(lane));
}

// False: nobody waits, and nobody watches from here on.
bool TimedWaits::EndOverdue(Lane* lane) {
  const uint64_t now = worker_.MonotonicNanos();
  std::lock_guard lock(lane->mutex);
  lane->watched_ns += std::min(now - lane->looked_ns, kLookNanosMax);
  lane->looked_ns = now;
  for (Wait* wait = lane->first; wait != nullptr; wait = wait->next) {
    if (wait->until_ns == 0) wait->until_ns = lane->watched_ns + deadline_ns_;
    if (wait->until_ns > lane->watched_ns || wait->overdue) continue;
    if (wait->event != nullptr && !wait->event->Forget(&wait->waiter)) continue;
    wait->overdue = true;
    NoteOverdue(*wait);
    if (wait->event != nullptr) {
      wait->waiter.Wake();
    } else if (wait->executor != nullptr) {
      wait->giving_up = std::make_shared<Wait*>(wait);
      lane->tasks.Spawn(*wait->executor, GiveUp(wait->giving_up));
    }
  }
  lane->watching = lane->first != nullptr;
  return lane->watching;
}

// --- What is overdue ---

Status DiskOverdue(uint64_t deadline_ns) {
  return Status::DeadlineExceeded("the disk did not answer within " +
                                  std::to_string(deadline_ns / 1'000'000) + " ms (F26)");
}

Status TimedWaits::NotInTime() const { return DiskOverdue(deadline_ns_); }

Status TimedWaits::MayBegin(const Place& place) {
  if (overdue() == 0) return Status();
  if (overdue_bytes_.load(std::memory_order_relaxed) >= kOverdueBytesMax) {
    return Status::DeadlineExceeded("the disk has not answered " + std::to_string(overdue()) +
                                    " reads in time, nor yet (F26)");
  }
  std::lock_guard lock(places_mutex_);
  const auto end = places_.begin() + static_cast<ptrdiff_t>(places_count_);
  if (std::find(places_.begin(), end, place) == end) return Status();
  return Status::DeadlineExceeded("the disk has not answered another read of this in time, nor yet (F26)");
}

void TimedWaits::NoteOverdue(const Wait& wait) {
  overdue_.fetch_add(1, std::memory_order_relaxed);
  overdue_total_.fetch_add(1, std::memory_order_relaxed);
  overdue_bytes_.fetch_add(wait.bytes, std::memory_order_relaxed);
  std::lock_guard lock(places_mutex_);
  if (places_count_ < kPlacesMax) places_[places_count_++] = wait.place;
}

void TimedWaits::NoteOver(const Place& place, uint64_t bytes) {
  overdue_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  {
    std::lock_guard lock(places_mutex_);
    const auto end = places_.begin() + static_cast<ptrdiff_t>(places_count_);
    const auto found = std::find(places_.begin(), end, place);
    if (found != end) *found = places_[--places_count_];
  }
  overdue_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace partita

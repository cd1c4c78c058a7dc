#include "engine/base/timed_waits.h"
#include "engine/commit_log.h"

// The tick of a shard's log: flushes what nobody asks for, seals a log that rests (F32), and watches over who
// holds the flush token (F26).

namespace partita {

namespace {

// At most so long log stays unflushed that nobody waits for (DESIGN 5), and half of what a seal may take.
constexpr uint64_t kTickNanos = 40'000'000;

}  // namespace

Status CommitLog::Overdue() const { return DiskOverdue(io_deadline_ns_); }

void CommitLog::ArmTick() {
  if (tick_armed_.load(std::memory_order_seq_cst)) return;
  if (closing_.load(std::memory_order_relaxed)) return;
  if (tick_armed_.exchange(true, std::memory_order_seq_cst)) return;
  tasks_.Spawn(worker_, TickOnWorker(this));
}

Task<void> CommitLog::TickOnWorker(CommitLog* self) {
  uint64_t seen = 0;
  self->sealed_through_.store(UINT64_MAX);
  while (!self->closing_.load()) {
    co_await SleepFor(kTickNanos);
    if (self->closing_.load()) break;
    self->WatchFlushToken();
    uint64_t decided = self->decided_.load();
    if (self->log_.durable_end().value < decided || decided != seen) {
      seen = decided;
      if (self->log_.durable_end().value < decided) {
        self->WantFlush(decided);
        self->WakeDriver();
      }
      continue;
    }
    // Nothing new since the last tick and all is flushed: the idle seal (F32), then rest. The seal runs
    // beside, so that it is watched too.
    if (self->sealed_through_.load() != decided) {
      if (!self->fenced() && self->TryTakeFlushToken()) {
        self->tasks_.Spawn(self->worker_, SealIdle(self, decided));
      }
      continue;
    }
    self->tick_armed_.store(false, std::memory_order_seq_cst);
    if (self->decided_.load() == seen) co_return;
    if (self->tick_armed_.exchange(true, std::memory_order_seq_cst)) co_return;
  }
  self->tick_armed_.store(false, std::memory_order_seq_cst);
}

// REQUIRES: the flush token is held; it is given back.
Task<void> CommitLog::SealIdle(CommitLog* self, uint64_t decided) {
  Status sealed = co_await self->log_.Seal(/*closing=*/false);
  if (sealed.ok()) {
    self->sealed_through_.store(decided);
  } else {
    self->Fence(sealed);  // Still owed.
  }
  self->ReleaseFlushToken();
  if (!sealed.ok() || self->WantsFlush()) self->WakeDriver();
}

// F26. Called at each tick.
void CommitLog::WatchFlushToken() {
  uint64_t token = flush_token_.load();
  if ((token & kTokenHeld) == 0 || (token | kTokenOverdue) != (watched_token_ | kTokenOverdue)) {
    watched_token_ = token;
    watched_ticks_ = 0;
    return;
  }
  if (++watched_ticks_ * kTickNanos < io_deadline_ns_) return;
  if ((token & kTokenOverdue) == 0) {
    // Unless he gave it back this very moment.
    if (!flush_token_.compare_exchange_strong(token, token | kTokenOverdue)) return;
    stalls_.fetch_add(1, std::memory_order_relaxed);
  }
  FailWaiters(Overdue());  // Also whoever decided while we looked.
}

}  // namespace partita

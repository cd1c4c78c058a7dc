#include "engine/store.h"

// What a store makes of its load: samples of calls go from the threads that made them to those who reckon
// with them (load_sampler.h).

namespace partita {

// On whatever thread left a sample.
void Store::WakeCollector() {
  if (!closing_.load()) tasks_.Spawn(runtime_.shard_executor(ShardId(0)), CollectOnWorker(this));
}

Task<void> Store::CollectOnWorker(Store* self) {
  self->load_.Collect();
  self->BalanceIfDue();
  self->LendMemoryIfDue();
  co_return;
}

// On shard 0's worker, once for each second in which there were calls.
void Store::LendMemoryIfDue() {
  constexpr uint64_t kNanosPerSecond = 1'000'000'000;
  const uint64_t now_ns = runtime_.clock().RecentNanos();
  if (now_ns / kNanosPerSecond == lent_second_) return;
  lent_second_ = now_ns / kNanosPerSecond;
  if (looks_at_memory_.exchange(true)) return;
  tasks_.Spawn(runtime_.background(BackgroundClass::kOrdinary), LendMemory(this, now_ns));
}

Task<void> Store::LendMemory(Store* self, uint64_t now_ns) {
  self->memory_lender_->Look(now_ns);
  self->looks_at_memory_.store(false);
  co_return;
}

// From within an allocation, of any thread that writes.
void Store::WakeLender() {
  if (closing_.load() || !memory_lender_->OnAbove()) return;
  tasks_.Spawn(runtime_.background(BackgroundClass::kOrdinary), TakeMemoryBack(this));
}

Task<void> Store::TakeMemoryBack(Store* self) {
  self->memory_lender_->TakeBack();
  co_return;
}

Status Store::NoteThrottled(std::string_view user_key, Status charged) {
  if (charged.code() == Code::kThrottled) load_.Note(LoadKind::kThrottled, user_key, 1, 0, 0);
  return charged;
}

}  // namespace partita

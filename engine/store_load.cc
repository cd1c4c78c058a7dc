#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "engine/store.h"

// What a store makes of its load: samples of calls go from the threads that made them to those who reckon
// with them (load_sampler.h).

namespace partita {

// On whatever thread left a sample.
void Store::WakeCollector() {
  if (!closing_.load()) tasks_.Spawn(runtime_.shard_executor(ShardId(0)), CollectOnWorker(this));
}

// In pieces of some 0.15 ms: while the worker has a core, whoever reads there waits.
Task<void> Store::CollectOnWorker(Store* self) {
  constexpr uint64_t kPauseNanos = 1'000'000;
  while (self->load_.CollectNext()) {
    if (!self->closing_.load()) co_await SleepFor(kPauseNanos);
  }
  self->BalanceIfDue();
  self->LendMemoryIfDue();
  self->CutHeatIfDue();
  co_return;
}

// It takes some ms, which is too long for a worker.
void Store::CutHeatIfDue() {
  if (closing_.load() || !heat_history_.IsCutDue() || cuts_heat_.exchange(true)) return;
  tasks_.Spawn(runtime_.background(BackgroundClass::kOrdinary), CutHeat(this));
}

Task<void> Store::CutHeat(Store* self) {
  self->heat_history_.CutAnew();
  self->cuts_heat_.store(false);
  co_return;
}

// On shard 0's worker, once for each second in which there were calls. Not for who opens a store, does one
// thing and closes it: on a busy machine he would wait for a thread that runs only when no other does.
void Store::LendMemoryIfDue() {
  constexpr uint64_t kShortNanos = 200'000'000;
  const uint64_t now_ns = runtime_.clock().RecentNanos();
  if (now_ns < opened_ns_ + kShortNanos) return;
  if (now_ns / kNanosPerSecond == lent_second_) return;
  lent_second_ = now_ns / kNanosPerSecond;
  if (looks_at_memory_.exchange(true)) return;
  tasks_.Spawn(runtime_.background(BackgroundClass::kOrdinary), LendMemory(this, now_ns));
}

Task<void> Store::LendMemory(Store* self, uint64_t now_ns) {
  self->memory_lender_->Look(now_ns);
  self->TouchMemory();
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
  self->TouchMemory();
  co_return;
}

// On a thread of ordinary priority: what it looks at is not held for long.
void Store::TouchMemory() {
  if (closing_.load() || touches_memory_.exchange(true)) return;
  constexpr uint64_t kDecodedShare = 3;  // Of a table's bytes: blocks, and what they leave free between them.
  std::vector<std::pair<ObjectId, uint64_t>> files;
  for (Shard* shard : sound_shards_) shard->AddFileBytes(&files);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());  // Ranges of any shards share them.
  uint64_t bytes = 0;
  for (const auto& [id, file_bytes] : files) bytes += kDecodedShare * file_bytes;
  tasks_.Spawn(runtime_.background(BackgroundClass::kMemory), TouchInBackground(this, bytes));
}

// What memtables want comes first, whenever they do.
Task<void> Store::TouchInBackground(Store* self, uint64_t data_bytes) {
  MemoryLender& lender = *self->memory_lender_;
  do {
    while (!self->closing_.load()) {
      if (lender.TouchForMemtables()) continue;
      if (lender.IsTouchingDue() && !self->notes_touched_.exchange(true)) {
        self->tasks_.Spawn(self->runtime_.background(BackgroundClass::kOrdinary), NoteTouched(self));
      }
      if (!lender.TouchForCache(data_bytes)) break;
    }
    self->touches_memory_.store(false);
    // Who asked in between was not heard.
  } while (!self->closing_.load() && lender.TouchForMemtables() && !self->touches_memory_.exchange(true));
  co_return;
}

Task<void> Store::NoteTouched(Store* self) {
  self->notes_touched_.store(false);
  self->memory_lender_->NoteTouched();
  co_return;
}

Status Store::NoteThrottled(std::string_view user_key, size_t rows, Status charged) {
  if (charged.code() == Code::kThrottled) NoteRefused(user_key, rows);
  return charged;
}

void Store::NoteRefused(std::string_view user_key, size_t rows) {
  load_.Note(LoadKind::kThrottled, user_key, rows, 0, 0);
}

}  // namespace partita

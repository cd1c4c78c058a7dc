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
  co_return;
}

Status Store::NoteThrottled(std::string_view user_key, Status charged) {
  if (charged.code() == Code::kThrottled) load_.Note(LoadKind::kThrottled, user_key, 1, 0, 0);
  return charged;
}

}  // namespace partita

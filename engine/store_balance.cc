#include "engine/store.h"

#include "engine/base/clock.h"

// Has ranges split, merge and move as the load asks (range_balancer.h decides). It is looked at when samples
// of calls are collected, so an idle store does nothing.

namespace partita {

// On shard 0's worker, after a collection: once for each second that has passed.
void Store::BalanceIfDue() {
  if (!options_.balance_ranges || shards_.size() < 2 || degraded() || options_.read_only) return;
  const uint64_t second = runtime_.clock().RecentNanos() / kNanosPerSecond;
  if (second == looked_second_ || balancing_.load(std::memory_order_acquire)) return;
  looked_second_ = second;
  if (!CheckSpace().ok() || catalog_in_doubt()) return;
  balancing_.store(true, std::memory_order_relaxed);
  tasks_.Spawn(runtime_.background(BackgroundClass::kOrdinary), Balance(this));
}

// On a helper, as there may be thousands of partitions.
Task<void> Store::Balance(Store* self) {
  const uint64_t now_ns = self->runtime_.clock().RecentNanos();
  std::vector<RangeBalancer::Partition> partitions;
  for (const RecentLoad::Partition& partition : self->recent_load_.PerSecond(now_ns, 1)) {
    const double load_ns = partition.load.shard_ns;
    if (load_ns > 0) partitions.push_back({partition.bound(), load_ns});
  }
  const Catalog catalog = self->CatalogCopy();
  const auto shards = static_cast<uint32_t>(self->shards_.size());
  auto steps = self->balancer_.Plan({now_ns, shards, catalog.ranges, partitions, catalog.tables.size()});
  // Not here, where flushes that a move waits for are made.
  self->tasks_.Spawn(self->runtime_.shard_executor(ShardId(0)), TakeSteps(self, std::move(steps)));
  co_return;
}

Task<void> Store::TakeSteps(Store* self, std::vector<RangeBalancer::Step> steps) {
  for (const RangeBalancer::Step& step : steps) {
    if (self->closing_.load()) break;
    const bool done = co_await self->TakeStep(step);
    const uint64_t now_ns = self->runtime_.clock().RecentNanos();
    if (!done) {
      // Later steps do not mean any more what they did; the next look plans anew.
      self->balancer_.Failed(step, now_ns);
      break;
    }
    self->balancer_.Done(step, now_ns);
  }
  self->balancing_.store(false, std::memory_order_release);
}

Task<bool> Store::TakeStep(const RangeBalancer::Step& step) {
  Status status;
  std::atomic<uint64_t>* done = nullptr;
  switch (step.kind) {
    case RangeBalancer::Step::Kind::kSplit:
      status = co_await SplitRange(step.at, /*by_load=*/true);
      done = &balance_.splits;
      break;
    case RangeBalancer::Step::Kind::kMerge:
      status = co_await MergeRanges(step.at);
      done = &balance_.merges;
      break;
    case RangeBalancer::Step::Kind::kMove:
      status = (co_await MoveRange(step.at, step.to)).status();
      done = &balance_.moves;
      break;
  }
  if (!status.ok()) done = &balance_.failed;
  done->fetch_add(1, std::memory_order_relaxed);
  co_return status.ok();
}

Store::BalanceStatistics Store::balance_statistics() const {
  return {balance_.splits.load(), balance_.merges.load(), balance_.moves.load(), balance_.failed.load()};
}

}  // namespace partita

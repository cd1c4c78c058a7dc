#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "engine/base/user_key.h"
#include "engine/catalog.h"
#include "engine/io/system_clock.h"
#include "engine/throttle.h"

// What a charge of both buckets costs while nobody is over: with one hot partition, and with many that come
// in turn. `off` is what everybody pays who has no limits.

namespace partita {
namespace {

// A hundred times as fast as time is, so that nobody is over however many calls a second this makes.
class FastClock final : public Clock {
 public:
  uint64_t WallTicks() override { return clock_.WallTicks(); }
  uint64_t MonotonicNanos() override { return clock_.MonotonicNanos() * 100; }
  uint64_t RecentNanos() override { return clock_.RecentNanos() * 100; }

 private:
  SystemClock clock_;
};

struct World {
  World() {
    TableDescriptor table;
    table.account = "acme";
    table.name = "Orders";
    id = catalog.AddTable(std::move(table), {});
  }
  void Limit() {
    Status set =
        throttle.SetTargets({.partition_rate = kThroughputTargetMax, .account_rate = kThroughputTargetMax});
    if (!set.ok()) std::abort();
  }
  FastClock clock;
  Catalog catalog;
  TableId id;
  Throttle throttle{clock, nullptr, [this] { return catalog; }};
};

void Charge(benchmark::State& state, bool limited) {
  World world;
  if (limited) world.Limit();
  std::vector<std::string> keys;
  for (int64_t i = 0; i < state.range(0); ++i) {
    keys.push_back(EncodeUserKey(world.id, "customer-" + std::to_string(i), "order-0001"));
  }
  size_t at = 0;
  uint64_t refused = 0;
  for (auto _ : state) {
    WriteOp op{.user_key = keys[at], .content = "0123456789"};
    if (++at == keys.size()) at = 0;
    refused += world.throttle.ChargeWrite({.table = world.id, .ops = {&op, 1}}).ok() ? 0 : 1;
  }
  state.counters["refused"] = static_cast<double>(refused);
}

void Off(benchmark::State& state) { Charge(state, false); }
void BothBuckets(benchmark::State& state) { Charge(state, true); }
BENCHMARK(Off)->Arg(1);
BENCHMARK(BothBuckets)->Arg(1)->Arg(100)->Arg(10'000);

// The parts.
void RecentNanos(benchmark::State& state) {
  SystemClock clock;
  for (auto _ : state) benchmark::DoNotOptimize(clock.RecentNanos());
}
void MonotonicNanos(benchmark::State& state) {
  SystemClock clock;
  for (auto _ : state) benchmark::DoNotOptimize(clock.MonotonicNanos());
}
BENCHMARK(RecentNanos);
BENCHMARK(MonotonicNanos);

}  // namespace
}  // namespace partita

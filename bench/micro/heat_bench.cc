#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "engine/base/user_key.h"
#include "engine/heat_history.h"
#include "engine/hot_partitions.h"
#include "engine/io/system_clock.h"
#include "engine/load_sampler.h"
#include "engine/recent_load.h"

// What it costs a call to be counted for heat. A point read that memory answers takes about 300 ns.

namespace partita {
namespace {

std::vector<std::string> Keys(size_t partitions) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < partitions; ++i) {
    // In no order, as a hash of what is hot would be.
    keys.push_back(EncodeUserKey(TableId(1), "customer-" + std::to_string(i * 7919 % partitions), "row"));
  }
  return keys;
}

// One thread that does nothing but make calls, with all that becomes of its samples on the same thread (0:
// none of it, only the rings are emptied). The samples of 25 ms are spread over the calls of 25 ms.
void Note(benchmark::State& state) {
  SystemClock clock;
  RecentLoad recent;
  HotPartitions hot;
  HeatHistory history;
  bool due = false;
  LoadSampler sampler(clock, [&due] { due = true; });
  const bool all = state.range(0) != 0;
  if (all) {
    sampler.AddConsumer(&recent);
    sampler.AddConsumer(&hot);
    sampler.AddConsumer(&history);
  }
  const std::vector<std::string> keys = Keys(10'000);
  size_t at = 0;
  for (auto _ : state) {
    sampler.Note(LoadKind::kRead, keys[at], 1, 100, 300);
    if (++at == keys.size()) at = 0;
    if (due) {
      due = false;
      sampler.Collect();
      history.CutAnew();
    }
  }
  const double samples = static_cast<double>(sampler.statistics().samples);
  state.counters["samples"] = benchmark::Counter(samples, benchmark::Counter::kIsRate);
}
BENCHMARK(Note)->ArgName("consumers")->Arg(0)->Arg(1)->MinTime(1);

// From the call that leaves a sample to the last consumer: every call leaves one.
void Sample(benchmark::State& state) {
  SystemClock clock;
  RecentLoad recent;
  HotPartitions hot;
  HeatHistory history;
  LoadSampler sampler(clock, [] {});
  sampler.AddConsumer(&recent);
  sampler.AddConsumer(&hot);
  sampler.AddConsumer(&history);
  const std::vector<std::string> keys = Keys(10'000);
  size_t at = 0;
  for (auto _ : state) {
    sampler.Note(LoadKind::kRead, keys[at], 1, 100, 300);
    if (++at == keys.size()) at = 0;
    if (at % 16 == 0) {  // So few that N stays 1.
      sampler.Collect();
      history.CutAnew();
    }
  }
}
BENCHMARK(Sample)->MinTime(1);

}  // namespace
}  // namespace partita

#include "bench/load/paced_load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace partita::bench {
namespace {

void SleepUntil(uint64_t nanos) {
  const uint64_t now = NowNanos();
  if (now < nanos) std::this_thread::sleep_for(std::chrono::nanoseconds(nanos - now));
}

// Runs `act` once for each due time of one thread: every `interval_ns` from `first_ns` on to `end_ns`.
// Returns how many were due. Those that the engine did not come to have waited until the end at least, which
// counts as their latency: else a stall that lasts until then would be that of one operation.
template <typename Act>
uint64_t RunSchedule(uint64_t first_ns, uint64_t interval_ns, uint64_t end_ns, const Act& act, Tally* tally) {
  uint64_t count = 0;
  for (uint64_t due = first_ns; due < end_ns; due += interval_ns) {
    ++count;
    SleepUntil(due);
    if (NowNanos() >= end_ns) {
      tally->latency.Record(end_ns - due);
      continue;
    }
    if (!act()) break;
    tally->latency.Record(NowNanos() - due);
    ++tally->operations;
  }
  return count;
}

bool ReadOrWrite(const LoadContext& context, std::mt19937_64& random, std::string* buffer, Tally* tally) {
  const uint64_t index = random() % context.config.keys;
  if (random() % 2 == 0) {
    GetRow(context, index, buffer, tally);
    return true;
  }
  return PutRow(context, index, context.config.engine_config.durability, buffer, tally);
}

}  // namespace

Status RunPaced(double fraction, const LoadContext& context, Measurement* measurement) {
  Measurement at_most;
  const LoadConfig& config = context.config;
  RunThreads(
      context.parallel, context.generation, config.seconds / 3, config.value_size,
      [&]() -> Operation {
        return [&, buffer = std::string()](std::mt19937_64& random, Tally* tally) mutable {
          return ReadOrWrite(context, random, &buffer, tally);
        };
      },
      &at_most);
  if (!at_most.IsCorrect() || at_most.operations == 0) {
    const std::string what = "at full speed it did not answer right: " + at_most.first_error;
    return at_most.wrong + at_most.missing > 0 ? Status::Corruption(what) : Status::IoError(what);
  }
  const double rate = at_most.OperationsPerSecond() * fraction / context.parallel;
  const auto interval = std::max<uint64_t>(1, static_cast<uint64_t>(1e9 / rate));
  PARTITA_TRY(context.engine.Settle());
  measurement->begun = ResourceUse::Now();
  const uint64_t started = NowNanos();
  const uint64_t end = started + static_cast<uint64_t>(config.seconds * 2e9 / 3);
  std::vector<Tally> tallies(context.parallel);
  std::vector<uint64_t> due(context.parallel);
  std::vector<std::thread> running;
  for (uint32_t thread = 0; thread < context.parallel; ++thread) {
    running.emplace_back([&, thread] {
      std::mt19937_64 random(context.generation + 100 + thread);
      std::string buffer;
      Tally* tally = &tallies[thread];
      due[thread] = RunSchedule(
          started + interval * thread / context.parallel, interval, end,
          [&] { return ReadOrWrite(context, random, &buffer, tally); }, tally);
    });
  }
  for (std::thread& thread : running) thread.join();
  measurement->seconds = static_cast<double>(NowNanos() - started) * 1e-9;
  for (const Tally& tally : tallies) tally.AddTo(measurement, config.value_size);
  measurement->paced_due = std::accumulate(due.begin(), due.end(), uint64_t{0});
  measurement->paced_done = measurement->operations;
  return Status();
}

Status RunReadsBesideWrites(const LoadContext& context, Measurement* measurement) {
  constexpr uint64_t kWriteIntervalNs = 50'000;
  const LoadConfig& config = context.config;
  Tally written;
  const uint64_t started = NowNanos();
  std::thread writer([&] {
    std::mt19937_64 random(context.generation + 1'000'000);
    std::string buffer;
    measurement->paced_due = RunSchedule(
        started, kWriteIntervalNs, started + static_cast<uint64_t>(config.seconds * 1e9),
        [&] {
          return PutRow(context, random() % config.keys, config.engine_config.durability, &buffer, &written);
        },
        &written);
  });
  RunThreads(
      context,
      [&]() -> Operation {
        return [&, buffer = std::string()](std::mt19937_64& random, Tally* tally) mutable {
          GetRow(context, random() % config.keys, &buffer, tally);
          return true;
        };
      },
      measurement);
  writer.join();
  measurement->paced_done = written.operations;
  // Only what it wrote, and whether it could: its latency and count are not the reads'.
  written.latency = Histogram();
  written.operations = written.rows = 0;
  written.AddTo(measurement, config.value_size);
  return Status();
}

}  // namespace partita::bench

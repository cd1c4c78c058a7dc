#include "bench/load/load_loop.h"

#include <thread>
#include <vector>

#include "bench/load/progress.h"

namespace partita::bench {
namespace {

void RunLoop(const Operation& operation, uint64_t seed, double seconds, Progress::Teller* teller,
             Tally* tally) {
  std::mt19937_64 random(seed);
  uint64_t before = NowNanos();
  const uint64_t end = before + static_cast<uint64_t>(seconds * 1e9);
  while (before < end && operation(random, tally)) {
    const uint64_t after = NowNanos();
    tally->latency.Record(after - before);
    ++tally->operations;
    teller->Note(after - before);
    before = after;
  }
}

}  // namespace

void RunThreads(uint32_t threads, uint64_t seed, double seconds, size_t value_size,
                const std::function<Operation()>& make, Measurement* measurement) {
  std::vector<Tally> tallies(threads);
  Progress progress(threads);
  const uint64_t started = NowNanos();
  if (threads == 1) {
    RunLoop(make(), seed, seconds, progress.teller(0), &tallies[0]);
  } else {
    std::vector<std::thread> running;
    for (uint32_t thread = 0; thread < threads; ++thread) {
      running.emplace_back(RunLoop, make(), seed + thread, seconds, progress.teller(thread),
                           &tallies[thread]);
    }
    for (std::thread& thread : running) thread.join();
  }
  measurement->seconds = static_cast<double>(NowNanos() - started) * 1e-9;
  for (const Tally& tally : tallies) tally.AddTo(measurement, value_size);
}

void RunThreads(const LoadContext& context, const std::function<Operation()>& make,
                Measurement* measurement) {
  RunThreads(context.parallel, context.generation, context.config.seconds, context.config.value_size, make,
             measurement);
}

bool PutRow(const LoadContext& context, uint64_t index, DurabilityLevel level, std::string* buffer,
            Tally* tally) {
  context.values.Fill(index, context.generation + tally->operations, buffer);
  const Status status = context.engine.Put(KeysOf(index), *buffer, level);
  if (!status.ok()) {
    tally->Failed(status);
    return false;
  }
  ++tally->rows;
  ++tally->rows_written;
  return true;
}

void GetRow(const LoadContext& context, uint64_t index, std::string* buffer, Tally* tally) {
  const Status status = context.engine.Get(KeysOf(index), buffer);
  if (status.code() == Code::kNotFound) {
    ++tally->missing;
  } else if (!status.ok()) {
    tally->Failed(status);
  } else {
    ++tally->rows;
    tally->wrong += context.values.Check(index, *buffer) ? 0 : 1;
  }
}

void ScanRows(const LoadContext& context, uint64_t first, uint64_t count, Tally* tally) {
  uint64_t at = first;
  const Status status =
      context.engine.Scan(KeysOf(first), count, [&](std::string_view row_key, std::string_view value) {
        tally->wrong += !context.values.Check(at, value) || row_key != KeysOf(at).row();
        ++at;
        return true;
      });
  if (!status.ok()) tally->Failed(status);
  tally->rows += at - first;
  tally->missing += count - (at - first);
}

void FillPartition(const LoadContext& context, uint64_t partition, uint64_t generation,
                   std::vector<Row>* rows) {
  rows->resize(kRowsPerPartition);
  for (uint64_t i = 0; i < kRowsPerPartition; ++i) {
    const uint64_t index = partition * kRowsPerPartition + i;
    (*rows)[i].keys = KeysOf(index);
    context.values.Fill(index, generation, &(*rows)[i].value);
  }
}

}  // namespace partita::bench

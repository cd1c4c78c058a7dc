#include "bench/load/recovery_load.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "bench/load/child_process.h"

namespace partita::bench {
namespace {

// A row can be told from one that was never written, so it does not matter which generation it has.
constexpr uint64_t kGeneration = 1;

uint64_t RowsToWrite(const LoadConfig& config) {
  return config.engine_config.memory_bytes / 2 / (kRowKeyBytes + config.value_size);
}

// In the child: answers only when it could not.
int WriteAndDie(const LoadConfig& config, const ValueGenerator& values) {
  Result<std::unique_ptr<Engine>> engine = OpenEngine(config.engine, config.engine_config);
  if (!engine.ok()) {
    std::fprintf(stderr, "partita-bench: %s\n", engine.status().ToString().c_str());
    return 1;
  }
  const Permutation order(RowsToWrite(config), config.seed);
  std::string value;
  for (uint64_t i = 0; i < RowsToWrite(config); ++i) {
    values.Fill(order.At(i), kGeneration, &value);
    const Status status = (*engine)->Put(KeysOf(order.At(i)), value, DurabilityLevel::kProcess);
    if (!status.ok()) return 2;
  }
  kill(getpid(), SIGKILL);
  return 3;
}

}  // namespace

Result<std::unique_ptr<Engine>> RunRecovery(LoadConfig config, const ValueGenerator& values,
                                            Measurement* measurement) {
  // As its puts are. At power a peer may recycle its logs, and not bear to be killed (rocksdb_options.cc).
  config.engine_config.durability = DurabilityLevel::kProcess;
  PARTITA_ASSIGN(const pid_t child, StartChild([&] { return WriteAndDie(config, values); }));
  if (!WIFSIGNALED(WaitForChild(child))) return Status::IoError("could not write what was to be recovered");

  const uint64_t rows = RowsToWrite(config);
  const Permutation order(rows, config.seed);
  Tally tally;
  std::string value;
  const uint64_t started = NowNanos();
  PARTITA_ASSIGN(std::unique_ptr<Engine> engine, OpenEngine(config.engine, config.engine_config));
  const LoadContext context{.config = config, .values = values, .engine = *engine};
  GetRow(context, order.At(rows - 1), &value, &tally);
  const uint64_t nanos = NowNanos() - started;
  for (uint64_t i = 0; i < rows; ++i) GetRow(context, i, &value, &tally);
  tally.latency.Record(nanos);
  tally.operations = 1;
  measurement->seconds = static_cast<double>(nanos) * 1e-9;
  tally.AddTo(measurement, config.value_size);
  return engine;
}

}  // namespace partita::bench

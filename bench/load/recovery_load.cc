#include "bench/load/recovery_load.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace partita::bench {
namespace {

// A row can be told from one that was never written, so it does not matter which generation it has.
constexpr uint64_t kGeneration = 1;

uint64_t RowsToWrite(const LoadConfig& config) {
  return config.engine_config.memory_bytes / 2 / (kRowKeyBytes + config.value_size);
}

// In the child: never returns.
[[noreturn]] void WriteAndDie(const LoadConfig& config, const ValueGenerator& values) {
  Result<std::unique_ptr<Engine>> engine = OpenEngine(config.engine, config.engine_config);
  if (!engine.ok()) {
    std::fprintf(stderr, "partita-bench: %s\n", engine.status().ToString().c_str());
    _exit(1);
  }
  const Permutation order(RowsToWrite(config), config.seed);
  std::string value;
  for (uint64_t i = 0; i < RowsToWrite(config); ++i) {
    values.Fill(order.At(i), kGeneration, &value);
    const Status status = (*engine)->Put(KeysOf(order.At(i)), value, DurabilityLevel::kProcess);
    if (!status.ok()) _exit(2);
  }
  kill(getpid(), SIGKILL);
  _exit(3);
}

}  // namespace

Result<std::unique_ptr<Engine>> RunRecovery(const LoadConfig& config, const ValueGenerator& values,
                                            Measurement* measurement) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return Status::IoError(std::string("fork: ") + std::strerror(errno));
  if (child == 0) WriteAndDie(config, values);
  int exit_status = 0;
  waitpid(child, &exit_status, 0);
  if (!WIFSIGNALED(exit_status)) return Status::IoError("could not write what was to be recovered");

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

#pragma once
#include <cstdint>
#include <functional>
#include <random>

#include "bench/load/engine.h"
#include "bench/load/measurement.h"
#include "bench/load/row_generator.h"
#include "bench/load/tally.h"

namespace partita::bench {

// What to run, and on how much.
struct LoadConfig {
  std::string engine = "partita";
  EngineConfig engine_config;
  uint64_t keys = 300'000;
  size_t value_size = 1024;
  double seconds = 5;  // Of each workload that is not a load or a full scan.
  uint64_t seed = 1;
};

// What one workload runs on. All of it outlives the run.
struct LoadContext {
  const LoadConfig& config;
  const ValueGenerator& values;
  Engine& engine;
  uint64_t generation = 0;  // Of the values written next; no two runs have the same.
  uint32_t parallel = 1;    // Threads, or operations outstanding.
};

// One operation of thread-private state; false when there is no more to do.
using Operation = std::function<bool(std::mt19937_64& random, Tally* tally)>;

inline constexpr double kUntilDone = 1e9;

// Runs an operation of `make` on each of `threads` threads for `seconds` or until it ends, one clock reading
// a time, and adds up what they saw.
void RunThreads(uint32_t threads, uint64_t seed, double seconds, size_t value_size,
                const std::function<Operation()>& make, Measurement* measurement);
// As the context says: with its threads and values, for the seconds of its configuration.
void RunThreads(const LoadContext& context, const std::function<Operation()>& make, Measurement* measurement);

// Single operations that most loads are made of. Each counts in `tally` what it did and checks what it
// read; false when the engine answered an error to a write.
bool PutRow(const LoadContext& context, uint64_t index, DurabilityLevel level, std::string* buffer,
            Tally* tally);
void GetRow(const LoadContext& context, uint64_t index, std::string* buffer, Tally* tally);
// Of the rows [first, first + count), all of which exist.
void ScanRows(const LoadContext& context, uint64_t first, uint64_t count, Tally* tally);

// `rows` becomes the 100 rows of a partition, with values of this run.
void FillPartition(const LoadContext& context, uint64_t partition, uint64_t generation,
                   std::vector<Row>* rows);

}  // namespace partita::bench

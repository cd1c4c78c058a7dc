#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/compare/probes.h"
#include "bench/load/measurement.h"
#include "bench/load/workload.h"
#include "engine/base/result.h"

namespace partita::bench {

// A comparison: each round runs every workload on each engine, in turn, each time in a process of its
// own (so that none inherits another's memory or cache, but for the first that needs rows, in whose process
// they are loaded), in a control group of its own where that can be made; who goes first changes with each
// round. What the machine does meanwhile falls on all alike.
struct ComparisonConfig {
  LoadConfig load;                   // Its engine is not used; each engine gets a folder in its directory.
  std::vector<std::string> engines;  // The first is the one that the others are held against.
  std::vector<std::string> workloads;
  uint32_t rounds = 3;
  double minutes_max = 1e9;  // No measurement is begun after them.
  double probe_seconds = 2;  // For the probes of each round; 0: none.
};

struct RoundMeasurement : Measurement {
  uint32_t round = 0;
};

struct Failure {
  std::string engine, workload, error;
  Code code = Code::kIoError;  // kUnsupported: there is no such thing, and nothing is wrong.
  uint32_t round = 0;
};

struct ComparisonResult {
  std::vector<RoundMeasurement> measurements;
  std::vector<Failure> failures;           // What could not be measured; the rest goes on.
  std::vector<Probes> probes;              // One a round, before it.
  std::string memory_limit;                // How memory was held, in words.
  double load_before = 0, load_after = 0;  // Of the machine, by the kernel's average over a minute.
  double minutes = 0;
  bool stopped = false;  // By a signal or by minutes_max; what was measured until then is here.
};

// Runs it, with progress on standard error. Ctrl-C and SIGTERM kill what runs and end it.
// `after_round` sees what there is after each round, so that it can be kept whatever comes.
// REQUIRES: no other thread runs in this process, which forks.
using AfterRound = std::function<void(const ComparisonResult& so_far)>;
Result<ComparisonResult> RunComparison(const ComparisonConfig& config, const AfterRound& after_round = {});

// Bytes that one engine and the load around it may take of memory, page cache included: a twentieth above
// its budget, 112 MiB, of which the load itself takes some 24, and the pool of values of `value_size` bytes
// that the load draws from. With much less Partita is killed at small budgets; with more the others would
// have page cache that Partita, which uses none, has not.
uint64_t MemoryLimit(uint64_t budget_bytes, uint64_t value_size);

// True for workloads whose every write must survive loss of power.
bool IsDurable(const std::string& workload);

}  // namespace partita::bench

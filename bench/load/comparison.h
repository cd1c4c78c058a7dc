#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/load/measurement.h"
#include "bench/load/workload.h"
#include "engine/base/result.h"

namespace partita::bench {

// A comparison of two engines: each round runs every workload on one and then on the other, in a
// process of its own (so that neither inherits the other's memory or cache), and who goes first
// changes with each round. What the machine does meanwhile then falls on both alike.
struct ComparisonConfig {
  LoadConfig load;  // Its engine is not used; each engine gets a folder in its directory.
  std::string subject, peer;
  std::vector<std::string> workloads;
  uint32_t rounds = 3;
};

// Runs it, printing each measurement as it comes; returns all of them.
// REQUIRES: no other thread runs in this process, which forks.
Result<std::vector<Measurement>> RunComparison(const ComparisonConfig& config);

// One line a workload: the medians of both engines over the rounds, and how many times better the
// subject is in operations a second, p99 latency and CPU an operation (above 1 is better in each).
std::string RatioTable(const std::vector<Measurement>& measurements, const ComparisonConfig& config);

}  // namespace partita::bench

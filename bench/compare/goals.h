#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/comparison.h"
#include "bench/compare/statistics.h"

namespace partita::bench {

// One figure of a measurement.
struct Metric {
  std::string_view name;
  double (*of)(const Figures&);
  bool more_is_better;
};

// What a goal is asked of: it says nothing of less, nor of values of another size.
struct GoalScale {
  uint64_t data_bytes_min = 0;
  double memory_times_min = 0;  // So many times as much data as memory.
  double seconds_min = 0;
  size_t value_bytes = 1024;
};

// What is asked of the first engine of a comparison, in one workload and one figure.
struct Goal {
  std::string_view workload;  // "name:parallel".
  const Metric* metric;
  // The peer, as the start of an engine's name: of several ("rocksdb", "rocksdb-blob") the best counts.
  // Empty: the figure itself is bounded, not a ratio.
  std::string_view against;
  double floor, target;  // At least these ratios; at most where less is better.
  GoalScale of = {};
};
// How large and long a comparison is.
struct Scale {
  uint64_t data_bytes = 0;  // Of the rows with their keys.
  uint64_t memory_bytes = 0;
  size_t value_bytes = 1024;
  double seconds = 0;  // Of each run.
};
std::span<const Goal> Goals();

// Those from kTooFewRounds on judge nothing.
enum class Verdict : uint8_t {
  kMissed,
  kFloor,
  kTarget,
  kTooFewRounds,
  kTooFewRows,
  kTooShort,
  kOtherValues
};
inline constexpr size_t kRoundsToJudge = 5;

struct GoalResult {
  const Goal* goal;
  std::string peer;           // The engine that was the best one of the peers.
  double own = 0, peers = 0;  // Medians.
  RatioSummary ratio;         // Own over the peer's; of a bound without a peer, the figure itself.
  Verdict verdict = Verdict::kMissed;
};

// The goals that the result, of a comparison of that scale, can tell something about, in their order.
std::vector<GoalResult> JudgeGoals(const ComparisonResult& result, const std::string& subject,
                                   const Scale& scale);

// The figure of one engine in one workload, by round; 0 where it was not measured. Empty when an answer was
// wrong in any of the rounds: how fast it was then says nothing.
std::vector<double> RoundsOf(const ComparisonResult& result, const std::string& engine,
                             std::string_view workload, const Metric& metric);

// What the overview shows of a workload: operations a second; and the p99 where the rate says nothing, as it
// is a share of the engine's own.
const Metric& RateMetric();
const Metric& LatencyMetric();
bool IsPaced(std::string_view workload);

}  // namespace partita::bench

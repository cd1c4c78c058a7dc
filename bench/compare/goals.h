#pragma once
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

// What is asked of the first engine of a comparison, in one workload and one figure.
struct Goal {
  std::string_view workload;  // "name:parallel".
  const Metric* metric;
  // The peer, as the start of an engine's name: of several ("rocksdb", "rocksdb-blob") the best counts.
  // Empty: the figure itself is bounded, not a ratio.
  std::string_view against;
  double floor, target;  // At least these ratios; at most where less is better.
};
std::span<const Goal> Goals();

enum class Verdict : uint8_t { kMissed, kFloor, kTarget };

struct GoalResult {
  const Goal* goal;
  std::string peer;           // The engine that was the best one of the peers.
  double own = 0, peers = 0;  // Medians.
  RatioSummary ratio;         // Own over the peer's; of a bound without a peer, the figure itself.
  Verdict verdict = Verdict::kMissed;
};

// The goals that the result can tell something about, in their order.
std::vector<GoalResult> JudgeGoals(const ComparisonResult& result, const std::string& subject);

// The figure of one engine in one workload, by round; 0 where it was not measured.
std::vector<double> RoundsOf(const ComparisonResult& result, const std::string& engine,
                             std::string_view workload, const Metric& metric);

// Operations a second; what the overview shows.
const Metric& RateMetric();

}  // namespace partita::bench

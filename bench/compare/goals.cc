#include "bench/compare/goals.h"

#include <algorithm>
#include <array>

namespace partita::bench {
namespace {

double Micros(const Figures& figures, double fraction) {
  return static_cast<double>(figures.latency.Percentile(fraction)) * 1e-3;
}

constexpr Metric kRate = {"ops/s", [](const Figures& f) { return f.OperationsPerSecond(); }, true};
// Until no compaction is due any more: a load that leaves debt is not done, and overwrites that are
// sustained, for a minute and more, leave none.
constexpr Metric kSettledRate = {
    "ops/s, settled",
    [](const Figures& f) { return static_cast<double>(f.operations) / (f.seconds + f.settle_seconds); },
    true};
constexpr Metric kCpu = {"CPU us/op", [](const Figures& f) { return f.CpuMicrosPerOperation(); }, false};
constexpr Metric kP50 = {"p50 us", [](const Figures& f) { return Micros(f, 0.5); }, false};
constexpr Metric kP99 = {"p99 us", [](const Figures& f) { return Micros(f, 0.99); }, false};
constexpr Metric kP999 = {"p99.9 us", [](const Figures& f) { return Micros(f, 0.999); }, false};
constexpr Metric kMax = {"max us", [](const Figures& f) { return Micros(f, 1); }, false};
constexpr Metric kWritten = {"write amplification", [](const Figures& f) { return f.WriteAmplification(); },
                             false};
constexpr Metric kDisk = {"disk MB",
                          [](const Figures& f) { return static_cast<double>(f.disk_bytes) * 1e-6; }, false};

// "The large set" and "cold": 4 million rows of 1 KiB, with 1 GiB of memory. With less of it who has no cache
// of the system's reads from the disk what others read from that.
constexpr GoalScale kLarge = {.memory_times_min = 3.9};
// Overwrites, a minute and more: in less nobody pays for what was overwritten.
constexpr GoalScale kSustained = {.seconds_min = 60};
constexpr GoalScale kTenGigabytes = {.data_bytes_min = uint64_t{10} << 30};
constexpr GoalScale kOf100 = {.value_bytes = 100};
constexpr GoalScale kSustainedOf100 = {.seconds_min = 60, .value_bytes = 100};

// The issue names no number of threads for some rows. Its floors come from measurements with 16 threads of
// YCSB and of cold scans on the large set, and with two of cached scans; these are judged with these numbers,
// and with few threads, which wait for the device, as well.
constexpr std::array kGoals = {
    Goal{"fill-seq:1", &kSettledRate, "rocksdb", 1.5, 2.5},
    Goal{"fill-random:1", &kSettledRate, "rocksdb", 2, 3, kLarge},
    Goal{"fill-random:1", &kWritten, "rocksdb", 1.0, 0.7, kLarge},
    Goal{"fill-random:1", &kDisk, "rocksdb", 0.9, 0.8, kLarge},
    Goal{"overwrite:1", &kRate, "rocksdb", 2, 3, kSustained},
    Goal{"overwrite:1", &kSettledRate, "rocksdb", 2, 3, kSustained},
    Goal{"overwrite:4", &kRate, "rocksdb", 2, 3, kSustained},
    Goal{"overwrite:4", &kSettledRate, "rocksdb", 2, 3, kSustained},
    Goal{"overwrite:16", &kRate, "rocksdb", 2, 3, kSustained},
    Goal{"overwrite:16", &kSettledRate, "rocksdb", 2, 3, kSustained},
    Goal{"egt-100:1", &kRate, "rocksdb", 2, 3, kSustained},
    Goal{"egt-100:1", &kSettledRate, "rocksdb", 2, 3, kSustained},
    Goal{"sync-write:1", &kRate, "rocksdb", 1.3, 1.5},
    Goal{"sync-write:16", &kRate, "rocksdb", 1.5, 2},
    Goal{"sync-write:64", &kRate, "rocksdb", 1.5, 2},
    Goal{"async-write:64", &kRate, "rocksdb", 5, 8},
    Goal{"egt-if:1", &kRate, "rocksdb", 2, 3.5},
    Goal{"egt-if:16", &kRate, "rocksdb", 2, 3.5},
    Goal{"read-hot:1", &kRate, "rocksdb", 2, 3},
    Goal{"read-hot:2", &kRate, "rocksdb", 2, 3},
    Goal{"read-hot:1", &kRate, "lmdb", 0.9, 1.2},
    Goal{"read-hot:2", &kRate, "lmdb", 0.9, 1.2},
    Goal{"read-missing:1", &kRate, "rocksdb", 1.5, 2.5},
    Goal{"read-missing-partition:1", &kRate, "rocksdb", 2, 5},
    Goal{"async-read:64", &kRate, "rocksdb", 1.1, 1.2, kLarge},
    Goal{"async-read:64", &kCpu, "rocksdb", 0.5, 0.4, kLarge},
    Goal{"async-read:64", &kP99, "rocksdb", 0.7, 0.5, kLarge},
    Goal{"read-cold:1", &kP50, "rocksdb", 1.0, 0.9, kLarge},
    Goal{"read-cold:1", &kCpu, "rocksdb", 0.8, 0.6, kLarge},
    Goal{"scan-hot:1", &kRate, "rocksdb", 2.5, 4},
    Goal{"scan-hot:1", &kRate, "lmdb", 0.8, 0.8},
    Goal{"scan-hot:2", &kRate, "rocksdb", 2.5, 4},
    Goal{"scan-100:1", &kRate, "rocksdb", 2, 3, kLarge},
    Goal{"scan-100:16", &kRate, "rocksdb", 2, 3, kLarge},
    Goal{"full-scan-hot:1", &kRate, "rocksdb", 2, 3},
    Goal{"ycsb-a:16", &kRate, "rocksdb", 2, 3, kLarge},
    Goal{"ycsb-b:16", &kRate, "rocksdb", 1.5, 2.2, kLarge},
    Goal{"ycsb-c:16", &kRate, "rocksdb", 1.5, 2.2, kLarge},
    Goal{"ycsb-d:16", &kRate, "rocksdb", 1.5, 2.2, kLarge},
    Goal{"ycsb-e:16", &kRate, "rocksdb", 2, 3, kLarge},
    Goal{"ycsb-f:16", &kRate, "rocksdb", 2, 3, kLarge},
    Goal{"ycsb-a:2", &kRate, "rocksdb", 2, 3, kLarge},
    Goal{"ycsb-b:2", &kRate, "rocksdb", 1.5, 2.2, kLarge},
    Goal{"ycsb-c:2", &kRate, "rocksdb", 1.5, 2.2, kLarge},
    Goal{"ycsb-d:2", &kRate, "rocksdb", 1.5, 2.2, kLarge},
    Goal{"ycsb-e:2", &kRate, "rocksdb", 2, 3, kLarge},
    Goal{"ycsb-f:2", &kRate, "rocksdb", 2, 3, kLarge},
    Goal{"ycsb-a:2", &kRate, "wiredtiger", 1.2, 1.2, kLarge},
    Goal{"ycsb-b:2", &kRate, "wiredtiger", 1.2, 1.2, kLarge},
    Goal{"ycsb-c:2", &kRate, "wiredtiger", 1.2, 1.2, kLarge},
    Goal{"ycsb-e:2", &kRate, "wiredtiger", 1.2, 1.2, kLarge},
    Goal{"read-while-writing:4", &kRate, "rocksdb", 1.5, 2, kLarge},
    Goal{"read-while-writing:4", &kP999, "rocksdb", 0.5, 0.25, kLarge},
    Goal{"read-while-writing:4", &kMax, "rocksdb", 0.5, 0.25, kLarge},
    Goal{"paced-50:4", &kCpu, "rocksdb", 0.5, 0.33, kLarge},
    Goal{"delete-seek:1", &kMax, "", 100, 20},  // The first seek, which has everything before it to pass.
    Goal{"drop:1", &kMax, "", 20'000, 10'000, kTenGigabytes},
    Goal{"recovery:1", &kRate, "rocksdb", 2, 4},
    Goal{"read-hot:1", &kRate, "rocksdb", 2, 3, kOf100},
    Goal{"read-hot:2", &kRate, "rocksdb", 2, 3, kOf100},
    Goal{"scan-hot:1", &kRate, "rocksdb", 2, 3, kOf100},
    Goal{"scan-hot:2", &kRate, "rocksdb", 2, 3, kOf100},
    Goal{"overwrite:1", &kRate, "rocksdb", 2, 3, kSustainedOf100},
    Goal{"overwrite:1", &kSettledRate, "rocksdb", 2, 3, kSustainedOf100},
    Goal{"overwrite:4", &kRate, "rocksdb", 2, 3, kSustainedOf100},
    Goal{"overwrite:4", &kSettledRate, "rocksdb", 2, 3, kSustainedOf100},
};

bool IsVariantOf(const std::string& engine, std::string_view family) {
  return engine == family || engine.starts_with(std::string(family) + "-");
}

// Goals of other values stand in the result without a verdict, but for those that have one of these values in
// their place.
bool IsLeftOut(const Goal& goal, const Scale& scale) {
  if (goal.of.value_bytes == scale.value_bytes) return false;
  const bool has_own = std::any_of(kGoals.begin(), kGoals.end(), [&](const Goal& other) {
    return other.of.value_bytes == scale.value_bytes && other.workload == goal.workload &&
           other.metric == goal.metric && other.against == goal.against;
  });
  return has_own || goal.of.value_bytes != GoalScale().value_bytes;
}

Verdict Judge(const Goal& goal, const RatioSummary& ratio, const Scale& scale) {
  if (scale.value_bytes != goal.of.value_bytes) return Verdict::kOtherValues;
  const double memory = static_cast<double>(scale.memory_bytes) * goal.of.memory_times_min;
  if (scale.data_bytes < goal.of.data_bytes_min || static_cast<double>(scale.data_bytes) < memory) {
    return Verdict::kTooFewRows;
  }
  if (scale.seconds < goal.of.seconds_min) return Verdict::kTooShort;
  if (ratio.rounds < kRoundsToJudge) return Verdict::kTooFewRounds;
  const auto meets = [&](double bound) {
    return goal.metric->more_is_better && !goal.against.empty() ? ratio.median >= bound
                                                                : ratio.median <= bound;
  };
  if (meets(goal.target)) return Verdict::kTarget;
  return meets(goal.floor) ? Verdict::kFloor : Verdict::kMissed;
}

std::vector<double> Measured(std::vector<double> rounds) {
  std::erase(rounds, 0.0);
  return rounds;
}

// The engine whose median is best among the variants of the family, but for the subject; empty when none was
// measured. Of one that some rounds lack only where no other has more.
std::string BestOf(const ComparisonResult& result, const Goal& goal, const std::string& subject) {
  std::string best;
  double best_median = 0;
  size_t best_rounds = 0;
  for (const RoundMeasurement& m : result.measurements) {
    if (m.workload != goal.workload || m.engine == best || m.engine == subject ||
        !IsVariantOf(m.engine, goal.against)) {
      continue;
    }
    const std::vector<double> rounds = Measured(RoundsOf(result, m.engine, goal.workload, *goal.metric));
    if (rounds.empty() || rounds.size() < best_rounds) continue;
    const double median = Median(rounds);
    if (rounds.size() > best_rounds ||
        (goal.metric->more_is_better ? median > best_median : median < best_median)) {
      best = m.engine;
      best_median = median;
      best_rounds = rounds.size();
    }
  }
  return best;
}

}  // namespace

std::span<const Goal> Goals() { return kGoals; }

const Metric& RateMetric() { return kRate; }

const Metric& LatencyMetric() { return kP99; }

bool IsPaced(std::string_view workload) { return workload.starts_with("paced-"); }

std::vector<double> RoundsOf(const ComparisonResult& result, const std::string& engine,
                             std::string_view workload, const Metric& metric) {
  for (const Failure& failure : result.failures) {
    if (failure.engine == engine && failure.workload == workload && failure.code == Code::kCorruption)
      return {};
  }
  std::vector<double> rounds;
  for (const RoundMeasurement& m : result.measurements) {
    if (m.engine != engine || m.workload != workload) continue;
    if (!m.IsCorrect()) return {};
    rounds.resize(std::max<size_t>(rounds.size(), m.round + 1));
    if (m.KeptPace()) rounds[m.round] = metric.of(m);
  }
  return rounds;
}

std::vector<GoalResult> JudgeGoals(const ComparisonResult& result, const std::string& subject,
                                   const Scale& scale) {
  std::vector<GoalResult> judged;
  for (const Goal& goal : kGoals) {
    if (IsLeftOut(goal, scale)) continue;
    GoalResult one{.goal = &goal};
    const std::vector<double> own = RoundsOf(result, subject, goal.workload, *goal.metric);
    if (!goal.against.empty()) one.peer = BestOf(result, goal, subject);
    if (own.empty() || (one.peer.empty() && !goal.against.empty())) continue;
    one.own = Median(Measured(own));
    if (goal.against.empty()) {
      one.ratio = SummarizeRatio(own, std::vector<double>(own.size(), 1));
    } else {
      const std::vector<double> peers = RoundsOf(result, one.peer, goal.workload, *goal.metric);
      one.peers = Median(Measured(peers));
      one.ratio = SummarizeRatio(own, peers);
    }
    if (one.ratio.rounds == 0) continue;
    one.verdict = Judge(goal, one.ratio, scale);
    judged.push_back(one);
  }
  return judged;
}

}  // namespace partita::bench

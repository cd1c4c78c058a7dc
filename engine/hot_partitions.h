#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/base/heat_metric.h"
#include "engine/load_sample.h"

namespace partita {

// Of all calls that a sample stands for. Refused calls have neither bytes nor CPU.
HeatValues HeatOf(const LoadSample& sample);

// The hottest partitions by each metric, now: a space-saving sketch of kCounters counters for each, whose
// weights halve every kHalfLifeSeconds. So a value is that of about the last 43 seconds.
//
// Error: with W the metric's whole rate, a value is above what was sampled by at most `above` (W / kCounters
// at most), never below; a partition that has more than W / kCounters is among the counters. What was sampled
// is an estimate in turn: the share p of a partition, of n samples in the window, is off by
// sqrt((1 - p) / (p n)) of its value (one standard deviation); one busy thread leaves 170,000 samples, a
// store with several some 300,000.
//
// Memory: 1.5 MiB at most. Thread-safe.
class HotPartitions : public LoadConsumer {
 public:
  static constexpr size_t kCounters = 1024;
  static constexpr double kHalfLifeSeconds = 30;

  struct Partition {
    std::string prefix;  // As LoadSample::partition(): long ones are cut, but told apart.
    double per_second = 0;
    double above = 0;  // It may be less by so much, a second.
  };

  HotPartitions();
  ~HotPartitions() override;

  void Take(std::span<const LoadSample> samples) override;

  // The hottest first; at most `count`. `now_ns`: Clock::RecentNanos.
  std::vector<Partition> Top(HeatMetric metric, size_t count, uint64_t now_ns) const;
  // Of the whole store.
  HeatValues TotalPerSecond(uint64_t now_ns) const;

 private:
  class Sketch;

  // Weights grow instead of old ones decaying: a sample of the time t has 2^((t - epoch) / half-life).
  double Growth(uint64_t time_ns) const;
  // What a sum of weights is as a rate at the time.
  double RatePerWeight(uint64_t now_ns) const;
  void MoveEpoch(uint64_t time_ns);

  mutable std::mutex mutex_;
  std::array<std::unique_ptr<Sketch>, kHeatMetrics> sketches_;
  HeatValues totals_{};
  uint64_t epoch_ns_ = 0;
  uint64_t first_ns_ = 0;  // Of the first sample.
};

}  // namespace partita

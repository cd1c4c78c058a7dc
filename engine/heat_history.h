#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/heat_axis.h"
#include "engine/hot_partitions.h"
#include "engine/load_sample.h"

namespace partita {

// Where the load lay when: columns of time by buckets of keys, for two weeks.
//
//   columns of   1 s    10 s    1 min   10 min
//   for          5 min  1 h     1 day   14 days
//
// 1. A sample goes to its second's column, and the bucket of the axis in force.
// 2. A second that is over is added to its 10 seconds, minute and 10 minutes. Where those have another axis
//    its buckets are spread evenly over those that they overlap.
// 3. When the load of the last minute is uneven over the axis (heaviest bucket above kUnevenShares of the
//    mean), the axis is cut anew from what was sampled in it, once a minute at most; columns keep the axis
//    they began with. At first, while there is none, it is cut every second, sixty times. A cut takes some
//    ms: who gives samples only notes that one is due, and has it made elsewhere (CutAnew).
// 4. Read brings all columns of a window to one axis, cut evenly from what they hold.
//
// Memory: 1.6 KiB a column that had any load, 6.5 MiB for all 4,116, and the axes, at most one a minute in
// the last day and one in 10 minutes before, 20 MiB if their bounds are as long as they may be. What is
// sampled: HotPartitions tells how exact. Thread-safe.
class HeatHistory : public LoadConsumer {
 public:
  static constexpr double kUnevenShares = 4;

  void Take(std::span<const LoadSample> samples) override;

  bool IsCutDue() const;
  // Does nothing where none is due.
  void CutAnew();

  struct Picture {
    uint64_t begin_ns = 0;   // By Clock::RecentNanos; of the first column.
    uint64_t column_ns = 0;  // What a column spans.
    size_t columns = 0;
    HeatAxis axis;
    // Sums of the column's time, by column, bucket, metric.
    std::vector<HeatValues> cells;

    const HeatValues& at(size_t column, size_t bucket) const { return cells[column * axis.size() + bucket]; }
  };
  // The last `seconds` before now, in at most `columns_max` columns and `buckets_max` buckets, of keys in
  // [lower, upper) (an empty upper is no bound). REQUIRES: all above 0.
  struct Window {
    uint64_t seconds = 300;
    size_t columns_max = 120;
    size_t buckets_max = HeatAxis::kBucketsMax;
    std::string lower, upper;
    HeatMetric even_by = HeatMetric::kCpu;  // What the buckets have about as much of.
  };
  Picture Read(const Window& window, uint64_t now_ns) const;

  size_t memory_bytes() const;

 private:
  using AxisPtr = std::shared_ptr<const HeatAxis>;
  using KeysByHash = std::unordered_map<uint64_t, HeatAxis::WeightedKey>;
  using FloatValues = std::array<float, kHeatMetrics>;
  struct Column {
    uint64_t number = UINT64_MAX;  // Its time over its span.
    AxisPtr axis;
    std::vector<FloatValues> cells;  // By bucket; empty: no load.
  };
  struct Tier {
    uint64_t seconds;             // Of a column.
    std::vector<Column> columns;  // A ring: by number modulo size.
  };

  static std::array<Tier, 4> MakeTiers();
  Column* ColumnOf(Tier* tier, uint64_t second);
  void CountKey(const LoadSample& sample, double weight);
  void EndSecond();
  static void AddTo(const Column& from, Column* to);
  const Tier& TierFor(uint64_t seconds) const;

  mutable std::mutex mutex_;
  AxisPtr axis_ = std::make_shared<HeatAxis>();
  uint64_t second_ = UINT64_MAX;  // The one that fills.
  uint64_t cut_second_ = 0;
  bool was_cut_ = false;
  uint32_t early_cuts_ = 0;  // Before it was.
  size_t keys_cut_ = 0;      // That the last one was made of.
  std::array<Tier, 4> tiers_ = MakeTiers();
  // What the next axis is cut from: CPU time of partitions sampled in the last minute, by their hash. Of a
  // second's samples the first 1,024 count, and of the others each seventh for seven: 2,000 a second are
  // enough for its buckets, and a partition that is not found in the CPU's caches costs 0.3 us.
  static constexpr size_t kKeysMax = 4096;
  static constexpr uint64_t kKeysCountedWhole = 1024;
  static constexpr uint64_t kKeysSkip = 7;
  uint64_t keys_counted_ = 0;  // Of this second.
  KeysByHash keys_;
  KeysByHash keys_due_;  // What the axis is to be cut from now.
};

}  // namespace partita

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/heat_metric.h"

// Where the load of a store lies: which partitions are hot, and how it went over time. All of it is estimated
// from samples, which cost calls under 1 % of their time. It tells of all accounts of the store: a table of
// another account than Options::account is called ACCOUNT/TABLE, one that was deleted "table 7".

namespace partita {

// A partition that is hot now: over about the last 43 seconds, older calls counting ever less.
struct HotPartition {
  std::string table{};
  std::string partition_key;
  bool key_is_cut = false;  // It goes on: only its beginning is known (123 bytes).
  double per_second = 0;    // Of the metric asked for; CPU in nanoseconds.
  // What was sampled of it lies between per_second - above and per_second. As it was sampled, a partition
  // with the share p of a load of n samples is off by sqrt((1 - p) / (p n)) of its value, one standard
  // deviation; n is 170,000 of one busy thread, and some 300,000 of several.
  double above = 0;
};

inline constexpr uint32_t kHeatSecondsMax = 14 * 86'400;  // How far back heat is kept.

// What HeatPicture is to show.
struct HeatWindow {
  uint32_t seconds = 300;      // Until now; 1 to kHeatSecondsMax.
  uint32_t columns_max = 120;  // 1 to 2,048
  uint32_t buckets_max = 64;   // 1 to 64
  // Empty: all. Else all buckets of the store that hold keys of it are shown as its own: where it shares one
  // with colder or hotter tables, a 64th of the store's load or so, theirs is in it.
  std::string table{};
  HeatMetric metric = HeatMetric::kCpu;  // What the buckets are to have about as much of each.
};

// Where a bucket of keys begins; it reaches to the next one.
struct HeatBucket {
  std::string table;
  std::string partition_key;  // Empty: from the table's beginning. Shortened where that tells it apart.
};

// Load by time and keys. Columns are as fine as what is kept of the window: 1 s for the last 5 minutes, 10 s
// for an hour, 1 min for a day, 10 min for 14 days. Buckets are cut so that all have about the same load.
struct HeatPicture {
  uint64_t begin_ticks = 0;  // Of the first column: 100 ns since 1601-01-01 UTC.
  uint32_t column_seconds = 1;
  uint32_t columns = 0;
  std::vector<HeatBucket> buckets;  // At least one.
  // A second, by column, then bucket. The last column may not be over.
  std::vector<HeatValues> cells;

  const HeatValues& at(size_t column, size_t bucket) const { return cells[column * buckets.size() + bucket]; }
};

}  // namespace partita

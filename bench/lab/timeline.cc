#include "bench/lab/timeline.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/assert.h"

namespace partita::lab {
namespace {

// What is due is drawn in so many columns at most; the rest is for what ends late, which is most of what does
// within so many seconds: clients begin operations for five.
constexpr double kDueColumnsMax = Timeline::kColumnsMax * 3.0 / 4;
constexpr double kOverrun_s = 6;
constexpr std::array<double, 4> kSteps = {1, 2, 5, 10};

double WidthFor(double seconds) {
  double decade = 0.1;
  for (;; decade *= 10) {
    for (const double step : kSteps) {
      const double width = decade * step, columns_max = Timeline::kColumnsMax;
      if (seconds / width <= kDueColumnsMax && (seconds + kOverrun_s) / width <= columns_max) return width;
    }
  }
}

// Four buckets to each power of two: two bits follow the highest one.
size_t BucketOf(uint64_t micros) {
  if (micros < 4) return micros;
  const auto power = static_cast<size_t>(std::bit_width(micros)) - 1;
  return std::min(4 * (power - 1) + ((micros >> (power - 2)) & 3), Timeline::Latencies::kBuckets - 1);
}

double UpperBoundUs(size_t bucket) {
  if (bucket < 4) return static_cast<double>(bucket + 1);
  return std::ldexp(static_cast<double>(5 + bucket % 4), static_cast<int>(bucket / 4) - 1);
}

}  // namespace

void Timeline::Latencies::Record(uint64_t nanos) { ++counts[BucketOf(nanos / 1000)]; }

double Timeline::Latencies::PercentileMs(double fraction) const {
  uint64_t all = 0, below = 0;
  for (const uint32_t count : counts) all += count;
  if (all == 0) return 0;
  const double wanted = std::max(fraction * static_cast<double>(all), 1.0);
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    below += counts[bucket];
    if (static_cast<double>(below) >= wanted) return UpperBoundUs(bucket) * 1e-3;
  }
  return UpperBoundUs(kBuckets - 1) * 1e-3;
}

Timeline::Timeline(double seconds, size_t rows) : column_s_(WidthFor(seconds)), rows_(rows) {}

Timeline::Column& Timeline::At(double at) {
  const auto column = std::min(static_cast<size_t>(std::max(at, 0.0) / column_s_), kColumnsMax - 1);
  while (columns_.size() <= column) {
    columns_.push_back(
        {.latencies = {}, .entities = std::vector<double>(rows_), .refused = std::vector<double>(rows_)});
  }
  return columns_[column];
}

void Timeline::Completed(double at, uint64_t latency_ns) {
  Column& column = At(at);
  ++column.completed;
  column.latency_max_ns = std::max(column.latency_max_ns, latency_ns);
  column.latencies.Record(latency_ns);
}

void Timeline::Touched(double at, const Touch& touch) {
  PARTITA_ASSERT(touch.rows.first <= touch.rows.last && touch.rows.last < rows_);
  Column& column = At(at);
  const double share = 1.0 / (touch.rows.last - touch.rows.first + 1);
  for (size_t row = touch.rows.first; row <= touch.rows.last; ++row) {
    column.entities[row] += touch.entities * share;
    column.refused[row] += touch.refused * share;
  }
}

double Timeline::HotShare() const {
  constexpr size_t kMoments = 10;
  const size_t length = std::max<size_t>((columns_.size() + kMoments - 1) / kMoments, 1);
  double hottest = 0, all = 0;
  std::vector<double> rows(rows_);
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (i % length == 0) std::fill(rows.begin(), rows.end(), 0);
    for (size_t row = 0; row < rows_; ++row) {
      const double asked = columns_[i].entities[row] + columns_[i].refused[row];
      rows[row] += asked;
      all += asked;
    }
    const bool ends = i % length == length - 1 || i + 1 == columns_.size();
    if (ends && rows_ > 0) hottest += *std::max_element(rows.begin(), rows.end());
  }
  return all > 0 ? hottest / all : 0;
}

void Timeline::Add(const Timeline& other) {
  if (other.columns_.empty()) return;
  PARTITA_ASSERT(other.rows_ == rows_);
  At(static_cast<double>(other.columns_.size() - 1) * column_s_ + column_s_ / 2);
  for (size_t i = 0; i < other.columns_.size(); ++i) {
    Column& column = columns_[i];
    const Column& more = other.columns_[i];
    column.due += more.due;
    column.completed += more.completed;
    column.throttled += more.throttled;
    column.ended += more.ended;
    column.latency_max_ns = std::max(column.latency_max_ns, more.latency_max_ns);
    for (size_t k = 0; k < Latencies::kBuckets; ++k) column.latencies.counts[k] += more.latencies.counts[k];
    for (size_t row = 0; row < rows_; ++row) {
      column.entities[row] += more.entities[row];
      column.refused[row] += more.refused[row];
    }
  }
}

}  // namespace partita::lab

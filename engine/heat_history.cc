#include "engine/heat_history.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/clock.h"

namespace partita {

namespace {

constexpr uint64_t kCutSeconds = 60;
// Before, until a cut made many buckets, in each second with samples; so often, and again once samples are of
// twice as many partitions. A cut takes some 4 ms, and a table of few partitions, or one that is appended to,
// never has many.
constexpr uint32_t kEarlyCutsMax = 60;

constexpr size_t kCpu = static_cast<size_t>(HeatMetric::kCpu);

// What the bucket that has most of them has, of the weight of the keys.
double HeaviestOf(const HeatAxis& axis, const std::vector<HeatAxis::WeightedKey>& keys) {
  std::vector<double> loads(axis.size());
  for (const HeatAxis::WeightedKey& key : keys) loads[axis.BucketOf(key.key)] += key.weight;
  return *std::max_element(loads.begin(), loads.end());
}

}  // namespace

std::array<HeatHistory::Tier, 4> HeatHistory::MakeTiers() {
  std::array<Tier, 4> tiers{{{1, {}}, {10, {}}, {60, {}}, {600, {}}}};
  constexpr std::array<size_t, 4> kColumns = {300, 360, 1440, 2016};
  for (size_t i = 0; i < tiers.size(); ++i) tiers[i].columns.resize(kColumns[i]);
  return tiers;
}

// Emptied when it was another time's. Null: that time is over for this tier.
HeatHistory::Column* HeatHistory::ColumnOf(Tier* tier, uint64_t second) {
  const uint64_t number = second / tier->seconds;
  Column& column = tier->columns[number % tier->columns.size()];
  if (column.number == number) return &column;
  if (column.number != UINT64_MAX && column.number > number) return nullptr;
  column = {.number = number, .axis = axis_, .cells = {}};
  return &column;
}

void HeatHistory::Take(std::span<const LoadSample> samples) {
  std::lock_guard lock(mutex_);
  for (const LoadSample& sample : samples) {
    const uint64_t second = sample.time_ns / kNanosPerSecond;
    if (second_ == UINT64_MAX || second > second_) {
      if (second_ != UINT64_MAX) EndSecond();
      second_ = second;
    }
    // Threads are collected one by one: what comes late counts for the second at hand.
    Column* column = ColumnOf(&tiers_[0], second_);
    PARTITA_ASSERT(column != nullptr);
    if (column->cells.empty()) column->cells.resize(column->axis->size());
    const HeatValues values = HeatOf(sample);
    FloatValues& cell = column->cells[column->axis->BucketOf(sample.partition())];
    for (size_t metric = 0; metric < kHeatMetrics; ++metric) {
      cell[metric] += static_cast<float>(values[metric]);
    }
    if (values[kCpu] > 0) CountKey(sample, values[kCpu]);
  }
}

void HeatHistory::CountKey(const LoadSample& sample, double weight) {
  if (++keys_counted_ > kKeysCountedWhole) {
    if (keys_counted_ % kKeysSkip != 0) return;
    weight *= kKeysSkip;
  }
  auto known = keys_.find(sample.hash);
  if (known == keys_.end() && keys_.size() < kKeysMax)
    known = keys_.emplace(sample.hash, HeatAxis::WeightedKey{std::string(sample.partition())}).first;
  if (known != keys_.end()) known->second.weight += weight;
}

void HeatHistory::EndSecond() {
  keys_counted_ = 0;
  const Column* ended = ColumnOf(&tiers_[0], second_);
  for (size_t i = 1; i < tiers_.size(); ++i) {
    Column* column = ColumnOf(&tiers_[i], second_);
    if (column != nullptr && ended != nullptr && !ended->cells.empty()) AddTo(*ended, column);
  }
  const bool is_new = !was_cut_ && (early_cuts_ < kEarlyCutsMax || keys_.size() >= 2 * keys_cut_);
  const bool is_time = is_new || second_ >= cut_second_ + kCutSeconds;
  if (!is_time || !keys_due_.empty()) return;
  early_cuts_ += is_new;
  cut_second_ = second_;
  keys_cut_ = keys_.size();
  keys_due_.swap(keys_);
}

void HeatHistory::AddTo(const Column& from, Column* to) {
  if (to->cells.empty()) to->cells.resize(to->axis->size());
  for (size_t bucket = 0; bucket < from.cells.size(); ++bucket) {
    HeatAxis::Overlap over{bucket, bucket};
    if (from.axis != to->axis) over = to->axis->Over(*from.axis, bucket);
    const float share = 1 / static_cast<float>(over.last - over.first + 1);
    for (size_t at = over.first; at <= over.last; ++at) {
      for (size_t metric = 0; metric < kHeatMetrics; ++metric) {
        to->cells[at][metric] += from.cells[bucket][metric] * share;
      }
    }
  }
}

bool HeatHistory::IsCutDue() const {
  std::lock_guard lock(mutex_);
  return !keys_due_.empty();
}

void HeatHistory::CutAnew() {
  AxisPtr axis;
  KeysByHash sampled;
  {
    std::lock_guard lock(mutex_);
    axis = axis_;
    sampled = std::exchange(keys_due_, {});
  }
  if (sampled.empty()) return;
  std::map<std::string, double> weights;  // Long prefixes are cut, and may be alike then.
  double whole = 0;
  for (auto& [hash, key] : sampled) {
    weights[std::move(key.key)] += key.weight;
    whole += key.weight;
  }
  std::vector<HeatAxis::WeightedKey> keys;
  for (const auto& [key, weight] : weights) keys.push_back({key, weight});
  const double heaviest = HeaviestOf(*axis, keys);
  if (heaviest <= kUnevenShares * whole / HeatAxis::kBucketsMax) return;
  auto next = std::make_shared<const HeatAxis>(HeatAxis::Cut(keys, HeatAxis::kBucketsMax));
  // One partition alone may be as heavy: then another cut is no better.
  const bool is_better = HeaviestOf(*next, keys) < heaviest * 0.75;
  std::lock_guard lock(mutex_);
  was_cut_ = was_cut_ || next->size() > HeatAxis::kBucketsMax / 2;
  if (is_better) axis_ = std::move(next);
}

// The finest that goes back so far.
const HeatHistory::Tier& HeatHistory::TierFor(uint64_t seconds) const {
  for (const Tier& tier : tiers_) {
    if (tier.seconds * tier.columns.size() >= seconds) return tier;
  }
  return tiers_.back();
}

namespace {

// Of the columns that are read, those that keep one axis.
struct AxisShare {
  std::vector<bool> wanted;             // Which of its buckets are asked for,
  std::vector<double> loads;            // what is in them,
  std::vector<HeatAxis::Overlap> over;  // and where they lie on the axis that all are brought to.
};
using AxisShares = std::map<const HeatAxis*, AxisShare>;

template <typename Column>
AxisShares SharesOf(const std::vector<Column>& columns, const HeatHistory::Window& window) {
  AxisShares axes;
  for (const Column& column : columns) {
    const HeatAxis& axis = *column.axis;
    AxisShare& share = axes[&axis];
    if (share.loads.empty()) {
      share.loads.resize(axis.size());
      for (size_t bucket = 0; bucket < axis.size(); ++bucket) {
        // Of the bucket that the window begins in the rest counts, too.
        const bool ends_before = bucket + 1 < axis.size() && axis.bound(bucket + 1) <= window.lower;
        share.wanted.push_back(!ends_before && (window.upper.empty() || axis.bound(bucket) < window.upper));
      }
    }
    for (size_t bucket = 0; bucket < column.cells.size(); ++bucket) {
      share.loads[bucket] += column.cells[bucket][static_cast<size_t>(window.even_by)];
    }
  }
  return axes;
}

HeatAxis CutFrom(const AxisShares& axes, size_t buckets) {
  std::map<std::string, double> loads;
  for (const auto& [axis, share] : axes) {
    for (size_t bucket = 0; bucket < axis->size(); ++bucket) {
      if (share.wanted[bucket]) loads[axis->bound(bucket)] += share.loads[bucket];
    }
  }
  std::vector<HeatAxis::WeightedKey> keys;
  for (const auto& [key, weight] : loads) keys.push_back({key, weight});
  return HeatAxis::Cut(keys, buckets, HeatAxis::Bounds::kWhole);
}

void Spread(const std::array<float, kHeatMetrics>& from, const HeatAxis::Overlap& over, HeatValues* row) {
  const double share = 1.0 / static_cast<double>(over.last - over.first + 1);
  for (size_t at = over.first; at <= over.last; ++at) {
    for (size_t metric = 0; metric < kHeatMetrics; ++metric) row[at][metric] += from[metric] * share;
  }
}

}  // namespace

HeatHistory::Picture HeatHistory::Read(const Window& window, uint64_t now_ns) const {
  PARTITA_ASSERT(window.seconds > 0 && window.columns_max > 0 && window.buckets_max > 0);
  Picture picture;
  uint64_t begin = 0, per_column = 1;
  std::vector<Column> columns;  // Copied, as who notes samples waits for the mutex.
  {
    std::lock_guard lock(mutex_);
    const Tier& tier = TierFor(window.seconds);
    const uint64_t spanned = (window.seconds + tier.seconds - 1) / tier.seconds;
    const uint64_t have = std::min<uint64_t>(std::max<uint64_t>(1, spanned), tier.columns.size());
    per_column = (have + window.columns_max - 1) / window.columns_max;
    picture.column_ns = per_column * tier.seconds * kNanosPerSecond;
    // Whole columns: the last one holds now. Before the clock began there was nothing.
    const uint64_t end = now_ns / kNanosPerSecond / tier.seconds + 1;
    picture.columns = std::min((have + per_column - 1) / per_column, (end + per_column - 1) / per_column);
    begin = end - std::min(end, picture.columns * per_column);
    picture.begin_ns = begin * tier.seconds * kNanosPerSecond;
    for (uint64_t number = begin; number < end; ++number) {
      const Column& column = tier.columns[number % tier.columns.size()];
      if (column.number == number && !column.cells.empty()) columns.push_back(column);
    }
  }
  AxisShares axes = SharesOf(columns, window);
  picture.axis = CutFrom(axes, std::min(window.buckets_max, HeatAxis::kBucketsMax));
  for (auto& [axis, share] : axes) {
    for (size_t bucket = 0; bucket < axis->size(); ++bucket) {
      share.over.push_back(picture.axis.Over(*axis, bucket));
    }
  }
  picture.cells.resize(picture.columns * picture.axis.size());
  for (const Column& column : columns) {
    const AxisShare& share = axes.at(column.axis.get());
    const size_t row = (column.number - begin) / per_column * picture.axis.size();
    for (size_t bucket = 0; bucket < column.cells.size(); ++bucket) {
      if (share.wanted[bucket]) Spread(column.cells[bucket], share.over[bucket], &picture.cells[row]);
    }
  }
  return picture;
}

size_t HeatHistory::memory_bytes() const {
  std::lock_guard lock(mutex_);
  size_t bytes = 0;
  const HeatAxis* counted = nullptr;
  for (const Tier& tier : tiers_) {
    for (const Column& column : tier.columns) {
      bytes += sizeof(Column) + column.cells.size() * sizeof(FloatValues);
      if (column.axis == nullptr || column.axis.get() == counted) continue;
      counted = column.axis.get();
      bytes += counted->memory_bytes();
    }
  }
  return bytes;
}

}  // namespace partita

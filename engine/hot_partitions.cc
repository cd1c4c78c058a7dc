#include "engine/hot_partitions.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace partita {

namespace {

constexpr double kNanosPerSecond = 1e9;
constexpr double kHalfLifeNanos = HotPartitions::kHalfLifeSeconds * kNanosPerSecond;
// Then all weights are brought down again: far below what a double can hold.
constexpr double kHalfLivesMax = 500;
// Below so many seconds of samples a rate would be a guess.
constexpr double kSecondsMin = 1;

}  // namespace

HeatValues HeatOf(const LoadSample& sample) {
  HeatValues values{};
  const auto add = [&](HeatMetric metric, double value) { values[static_cast<size_t>(metric)] = value; };
  const double rows = sample.weight * sample.rows;
  switch (sample.kind) {
    case LoadKind::kRead:
      add(HeatMetric::kReads, rows);
      break;
    case LoadKind::kWrite:
      add(HeatMetric::kWrites, rows);
      break;
    case LoadKind::kScan:
      add(HeatMetric::kScanned, rows);
      break;
    case LoadKind::kThrottled:
      add(HeatMetric::kThrottled, rows);
      return values;
  }
  add(HeatMetric::kBytes, sample.weight * static_cast<double>(sample.bytes));
  add(HeatMetric::kCpu, sample.weight * sample.cpu_ns);
  return values;
}

// Space-saving (Metwally et al.): a partition that is not counted takes over the smallest counter, whose
// value it inherits as its possible error. The counters form a heap with the smallest in front.
class HotPartitions::Sketch {
 public:
  struct Counter {
    uint64_t hash = 0;
    std::string prefix;
    double value = 0, above = 0;
    uint32_t place = 0;  // In heap_.
  };

  void Add(const LoadSample& sample, double value) {
    auto found = index_.find(sample.hash);
    if (found == index_.end()) {
      uint32_t at = static_cast<uint32_t>(counters_.size());
      if (at < kCounters) {
        counters_.push_back({.place = at});
        heap_.push_back(at);
        SiftUp(at);
      } else {
        at = heap_.front();
        index_.erase(counters_[at].hash);
      }
      Counter& counter = counters_[at];
      counter.hash = sample.hash;
      counter.prefix = sample.partition();
      counter.above = counter.value;
      found = index_.emplace(sample.hash, at).first;
    }
    counters_[found->second].value += value;
    SiftDown(counters_[found->second].place);
  }

  void Scale(double by) {
    for (Counter& counter : counters_) {
      counter.value *= by;
      counter.above *= by;
    }
  }

  const std::vector<Counter>& counters() const { return counters_; }

 private:
  double ValueAt(size_t place) const { return counters_[heap_[place]].value; }
  void Swap(size_t a, size_t b) {
    std::swap(heap_[a], heap_[b]);
    counters_[heap_[a]].place = static_cast<uint32_t>(a);
    counters_[heap_[b]].place = static_cast<uint32_t>(b);
  }
  void SiftUp(size_t place) {
    for (; place > 0 && ValueAt(place) < ValueAt((place - 1) / 2); place = (place - 1) / 2) {
      Swap(place, (place - 1) / 2);
    }
  }
  void SiftDown(size_t place) {
    while (true) {
      size_t least = place;
      for (const size_t child : {2 * place + 1, 2 * place + 2}) {
        if (child < heap_.size() && ValueAt(child) < ValueAt(least)) least = child;
      }
      if (least == place) return;
      Swap(place, least);
      place = least;
    }
  }

  std::vector<Counter> counters_;
  std::vector<uint32_t> heap_;  // Indexes in counters_.
  std::unordered_map<uint64_t, uint32_t> index_;
};

HotPartitions::HotPartitions() {
  for (auto& sketch : sketches_) sketch = std::make_unique<Sketch>();
}
HotPartitions::~HotPartitions() = default;

double HotPartitions::Growth(uint64_t time_ns) const {
  const double passed = static_cast<double>(time_ns) - static_cast<double>(epoch_ns_);
  return std::exp2(passed / kHalfLifeNanos);
}

void HotPartitions::MoveEpoch(uint64_t time_ns) {
  const double by = 1 / Growth(time_ns);
  for (auto& sketch : sketches_) sketch->Scale(by);
  for (double& total : totals_) total *= by;
  epoch_ns_ = time_ns;
}

void HotPartitions::Take(std::span<const LoadSample> samples) {
  std::lock_guard lock(mutex_);
  if (first_ns_ == 0) first_ns_ = epoch_ns_ = samples.front().time_ns;
  const double since = static_cast<double>(samples.back().time_ns) - static_cast<double>(epoch_ns_);
  if (since > kHalfLivesMax * kHalfLifeNanos) MoveEpoch(samples.back().time_ns);
  uint64_t time_ns = 0;
  double growth = 1;
  for (const LoadSample& sample : samples) {
    if (sample.time_ns != time_ns) growth = Growth(time_ns = sample.time_ns);
    const HeatValues values = HeatOf(sample);
    for (size_t metric = 0; metric < kHeatMetrics; ++metric) {
      if (values[metric] == 0) continue;
      sketches_[metric]->Add(sample, values[metric] * growth);
      totals_[metric] += values[metric] * growth;
    }
  }
}

// A steady rate r has the decayed sum r * half-life / ln 2 once it has lasted for long, and less before.
double HotPartitions::RatePerWeight(uint64_t now_ns) const {
  const double seconds =
      std::max(kSecondsMin, (static_cast<double>(now_ns) - static_cast<double>(first_ns_)) / kNanosPerSecond);
  const double lasting = kHalfLifeSeconds / std::log(2.0) * (1 - std::exp2(-seconds / kHalfLifeSeconds));
  return 1 / (lasting * Growth(now_ns));
}

std::vector<HotPartitions::Partition> HotPartitions::Top(HeatMetric metric, size_t count,
                                                         uint64_t now_ns) const {
  std::vector<Partition> top;
  std::lock_guard lock(mutex_);
  const double rate = RatePerWeight(now_ns);
  for (const Sketch::Counter& counter : sketches_[static_cast<size_t>(metric)]->counters()) {
    top.push_back({counter.prefix, counter.value * rate, counter.above * rate});
  }
  const auto is_hotter = [](const Partition& a, const Partition& b) {
    return a.per_second != b.per_second ? a.per_second > b.per_second : a.prefix < b.prefix;
  };
  const size_t kept = std::min(count, top.size());
  std::partial_sort(top.begin(), top.begin() + static_cast<ptrdiff_t>(kept), top.end(), is_hotter);
  top.resize(kept);
  return top;
}

HeatValues HotPartitions::TotalPerSecond(uint64_t now_ns) const {
  std::lock_guard lock(mutex_);
  const double rate = RatePerWeight(now_ns);
  HeatValues values = totals_;
  for (double& value : values) value *= rate;
  return values;
}

}  // namespace partita

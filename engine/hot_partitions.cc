#include "engine/hot_partitions.h"

#include <algorithm>
#include <cmath>

#include "engine/base/clock.h"

namespace partita {

namespace {

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
// value it inherits as its possible error. The counters form a heap with the smallest in front. Of many
// partitions that are about alike nearly each sample takes one over, thousands of times a second, beside
// calls that use the CPU's caches: so nothing is allocated for it, and what it looks at lies close together.
class HotPartitions::Sketch {
 public:
  void Add(const LoadSample& sample, double value) {
    size_t slot = SlotOf(sample.hash);
    if (slots_[slot] == kEmpty) {
      const uint16_t at = TakeCounter();
      hashes_[at] = sample.hash;
      counters_[at].prefix = sample.partition();
      counters_[at].above = heap_[places_[at]].value;
      slot = SlotOf(sample.hash);  // Taking a counter may have moved what stood there.
      slots_[slot] = at;
    }
    const size_t place = places_[slots_[slot]];
    heap_[place].value += value;
    SiftDown(place);
  }

  void Scale(double by) {
    for (Counter& counter : counters_) counter.above *= by;
    for (Place& place : heap_) place.value *= by;
  }

  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Place& place : heap_) {
      const Counter& counter = counters_[place.counter];
      visit(counter.prefix, place.value, counter.above);
    }
  }

 private:
  struct Counter {
    std::string prefix;
    double above = 0;
  };
  struct Place {
    double value = 0;
    uint16_t counter = 0;
  };
  static constexpr uint16_t kEmpty = UINT16_MAX;
  static constexpr size_t kSlots = 4 * kCounters;  // A power of two; a quarter used, so that runs are short.
  static_assert(kCounters < kEmpty);

  // Where the counter of this hash stands, or would.
  size_t SlotOf(uint64_t hash) const {
    size_t slot = hash % kSlots;
    while (slots_[slot] != kEmpty && hashes_[slots_[slot]] != hash) slot = (slot + 1) % kSlots;
    return slot;
  }

  // A counter that no slot names: a new one, or the smallest, which keeps its value.
  uint16_t TakeCounter() {
    if (counters_.size() == kCounters) {
      const uint16_t at = heap_.front().counter;
      Empty(SlotOf(hashes_[at]));
      return at;
    }
    const uint16_t at = static_cast<uint16_t>(counters_.size());
    counters_.emplace_back();
    hashes_.push_back(0);
    places_.push_back(at);
    heap_.push_back({.value = 0, .counter = at});
    SiftUp(at);
    return at;
  }

  // What stands behind in the same run and would be found no more moves up.
  void Empty(size_t slot) {
    for (size_t next = (slot + 1) % kSlots; slots_[next] != kEmpty; next = (next + 1) % kSlots) {
      const size_t home = hashes_[slots_[next]] % kSlots;
      if ((next - home) % kSlots < (next - slot) % kSlots) continue;
      slots_[slot] = slots_[next];
      slot = next;
    }
    slots_[slot] = kEmpty;
  }

  void Put(size_t place, Place what) {
    heap_[place] = what;
    places_[what.counter] = static_cast<uint16_t>(place);
  }
  void SiftUp(size_t place) {
    const Place rising = heap_[place];
    for (; place > 0 && rising.value < heap_[(place - 1) / 2].value; place = (place - 1) / 2) {
      Put(place, heap_[(place - 1) / 2]);
    }
    Put(place, rising);
  }
  void SiftDown(size_t place) {
    const Place sinking = heap_[place];
    for (size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1].value < heap_[child].value) ++child;
      if (heap_[child].value >= sinking.value) break;
      Put(place, heap_[child]);
      place = child;
    }
    Put(place, sinking);
  }

  std::vector<Counter> counters_;
  std::vector<uint64_t> hashes_;  // Of the counters, in their order, as
  std::vector<uint16_t> places_;  // where they stand in heap_.
  std::vector<Place> heap_;
  std::vector<uint16_t> slots_ = std::vector<uint16_t>(kSlots, kEmpty);  // By hash: indexes in counters_.
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
  sketches_[static_cast<size_t>(metric)]->ForEach([&](const std::string& prefix, double value, double above) {
    top.push_back({prefix, value * rate, above * rate});
  });
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

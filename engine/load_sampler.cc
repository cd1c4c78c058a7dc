#include "engine/load_sampler.h"

#include <bit>
#include <cstring>

#include "engine/base/checksum.h"
#include "engine/base/executor.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

// A sample costs about 2 us with all that becomes of it, beside calls that use the CPU's caches: 8,000 a
// second cost less than a hundredth of two cores.
constexpr uint64_t kSamplesPerCollection = 100;  // Of one thread.
constexpr uint64_t kSamplesTotal = 200;          // Of all,
constexpr uint64_t kSamplesMin = 4;              // but of each so many.
// A thread that is slow leaves fewer: no closer than that as long as so many come.
constexpr double kUnitsApart = 16;
constexpr double kSamplesOfSlow = 25;
constexpr uint32_t kSamplesPerDoubling = 32;
constexpr uint32_t kDoublingsMax = 16;
constexpr uint64_t kIntervalMax = uint64_t{1} << 24;

// What a unit of each kind costs as long as none was measured, as in the simulator.
constexpr std::array<double, kLoadKinds> kUnitNanos = {500, 2'000, 50, 200};
// How many units of measured calls the average looks back on.
constexpr double kCostUnits = 10'000;
// A call whose unit seems to take longer was interrupted.
constexpr double kUnitNanosMax = 1'000'000;

std::atomic<uint64_t> samplers_made{0};

}  // namespace

thread_local constinit LoadSampler::ThreadRing LoadSampler::thread_;

// The rings of a thread, one for each store that it used; they end with it.
struct LoadSampler::ThreadRings {
  struct Bound {
    uint64_t sampler;
    std::shared_ptr<Ring> ring;
  };
  std::vector<Bound> rings;

  ~ThreadRings() {
    thread_ = {.has_ended = true};
    for (const Bound& bound : rings) bound.ring->is_over.store(true, std::memory_order_release);
  }
};

LoadSampler::LoadSampler(Clock& clock, std::function<void()> wake)
    : clock_(clock), number_(samplers_made.fetch_add(1) + 1), wake_(std::move(wake)) {}

LoadSampler::~LoadSampler() {
  for (const auto& ring : rings_) ring->is_over.store(true, std::memory_order_release);
}

// ---- The thread's side.

bool LoadSampler::BindThread() {
  if (thread_.has_ended) return false;
  static thread_local ThreadRings mine;
  std::erase_if(mine.rings, [this](const ThreadRings::Bound& bound) {
    return bound.sampler != number_ && bound.ring->is_over.load(std::memory_order_acquire);
  });
  auto found = std::find_if(mine.rings.begin(), mine.rings.end(),
                            [this](const ThreadRings::Bound& bound) { return bound.sampler == number_; });
  if (found == mine.rings.end()) found = mine.rings.insert(found, {number_, NewRing()});
  thread_ = {.sampler = number_, .ring = found->ring.get()};
  return true;
}

std::shared_ptr<LoadSampler::Ring> LoadSampler::NewRing() {
  auto ring = std::make_shared<Ring>();
  std::lock_guard lock(mutex_);
  ring->random = ++seed_ * 0x9E3779B97F4A7C15;
  if (rings_.size() < kRingsMax) ring->slots.resize(kRingSamples);
  rings_.push_back(ring);
  return ring;
}

void LoadSampler::Ring::Draw() {
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  left = static_cast<int64_t>(1 + (random >> 16) % (2 * interval - 1));
}

void LoadSampler::Leave(const Call& call) {
  Ring& ring = *thread_.ring;
  const uint64_t units = UnitsOf(call.rows, call.bytes);
  // The units since the last sample are N on the average, and what this call went beyond the count.
  const double weight = (static_cast<double>(ring.interval) - static_cast<double>(ring.left)) /
                        static_cast<double>(std::max<uint64_t>(1, units));
  const uint32_t head = ring.head.load(std::memory_order_relaxed);
  const uint32_t waiting = ring.Waiting();
  const uint64_t now = clock_.RecentNanos();
  if (waiting < ring.slots.size()) {
    LoadSample& sample = ring.slots[head % kRingSamples];
    Fill(call, &sample);
    sample.time_ns = now;
    sample.weight = weight;
    ring.head.store(head + 1, std::memory_order_release);
  } else {
    ring.lost.fetch_add(1, std::memory_order_relaxed);
  }
  const uint32_t doublings = std::min(waiting / kSamplesPerDoubling, kDoublingsMax);
  ring.interval = std::max(ring.base.load(std::memory_order_relaxed), uint64_t{1} << doublings);
  if (ring.slots.empty()) ring.interval = kIntervalMax;  // It never keeps any: it need not look so often.
  ring.Draw();
  WakeIfDue(now);
}

void LoadSampler::Fill(const Call& call, LoadSample* out) {
  std::string_view partition = call.user_key;
  const size_t end = partition.find('\0', kTableIdSize);
  if (end != partition.npos) partition = partition.substr(0, end + 1);
  out->hash = Hash64(partition);
  if (partition.size() > LoadSample::kPartitionBytesMax) {
    size_t size = LoadSample::kPartitionBytesMax;
    while (size > kTableIdSize && (static_cast<uint8_t>(partition[size]) & 0xC0) == 0x80) --size;
    partition = partition.substr(0, size);
  }
  out->partition_size = static_cast<uint8_t>(partition.size());
  std::memcpy(out->partition_bytes.data(), partition.data(), partition.size());
  out->kind = call.kind;
  out->rows = static_cast<uint32_t>(std::min<uint64_t>(call.rows, UINT32_MAX));
  out->bytes = call.bytes;
  out->cpu_ns = static_cast<uint32_t>(std::min<uint64_t>(call.cpu_ns, UINT32_MAX));
}

void LoadSampler::WakeIfDue(uint64_t now_ns) {
  if (now_ns < collected_ns_.load(std::memory_order_relaxed) + kCollectNanos) return;
  if (awake_.load(std::memory_order_relaxed) || awake_.exchange(true)) return;
  wake_();
}

// ---- The other side.

void LoadSampler::Collect() {
  std::lock_guard lock(mutex_);
  // From the first ring on, also where pieces of it were taken before.
  next_ring_ = busy_ = 0;
  StartRing();
  while (CollectNextLocked()) {
  }
}

bool LoadSampler::CollectNext() {
  std::lock_guard lock(mutex_);
  return CollectNextLocked();
}

bool LoadSampler::CollectNextLocked() {
  if (next_ring_ == 0) collected_ns_.store(clock_.RecentNanos(), std::memory_order_relaxed);
  const size_t rings = rings_.size();
  for (size_t left = kPieceSamples; next_ring_ < rings; ++next_ring_) {
    Ring* ring = rings_[next_ring_].get();
    if (!turn_end_) turn_end_ = ring->head.load(std::memory_order_acquire);
    left -= Empty(ring, left);
    if (ring->tail.load(std::memory_order_relaxed) != *turn_end_) return true;
    if (ring_units_ > 0) ++busy_;
    SetBase(ring, std::max({busy_, busy_before_, size_t{1}}));
    StartRing();
  }
  next_ring_ = 0;
  busy_before_ = std::exchange(busy_, 0);
  awake_.store(false);
  std::erase_if(rings_, [](const std::shared_ptr<Ring>& ring) {
    return ring->is_over.load(std::memory_order_acquire) &&
           ring->head.load(std::memory_order_acquire) == ring->tail.load(std::memory_order_relaxed);
  });
  return false;
}

size_t LoadSampler::Empty(Ring* ring, size_t most) {
  statistics_.lost += ring->lost.exchange(0, std::memory_order_relaxed);
  const uint32_t tail = ring->tail.load(std::memory_order_relaxed);
  const uint32_t end = tail + std::min(*turn_end_ - tail, static_cast<uint32_t>(most));
  batch_.clear();
  for (uint32_t at = tail; at != end; ++at) {
    const LoadSample& sample = batch_.emplace_back(ring->slots[at % kRingSamples]);
    ring_units_ += sample.weight * static_cast<double>(UnitsOf(sample.rows, sample.bytes));
  }
  ring->tail.store(end, std::memory_order_release);
  if (batch_.empty()) return 0;
  LearnCosts();
  for (LoadSample& sample : batch_) CompleteCpu(&sample);
  statistics_.samples += batch_.size();
  for (LoadConsumer* consumer : consumers_) consumer->Take(batch_);
  return batch_.size();
}

void LoadSampler::SetBase(Ring* ring, size_t busy) {
  const uint64_t aim = std::clamp(kSamplesTotal / busy, kSamplesMin, kSamplesPerCollection);
  const double by_time = ring_units_ / static_cast<double>(aim);
  const double by_calls = std::min(kUnitsApart, ring_units_ / kSamplesOfSlow);
  const double interval = std::min(std::max(by_time, by_calls), static_cast<double>(kIntervalMax));
  ring->base.store(std::max<uint64_t>(1, static_cast<uint64_t>(interval)), std::memory_order_relaxed);
}

void LoadSampler::StartRing() {
  turn_end_.reset();
  ring_units_ = 0;
  partition_costs_.clear();
}

namespace {

double UnitsOfSample(const LoadSample& sample) {
  return static_cast<double>(std::max<uint64_t>(1, LoadSampler::UnitsOf(sample.rows, sample.bytes)));
}
bool IsMeasured(const LoadSample& sample) {
  return sample.cpu_ns > 0 && sample.cpu_ns < kUnitNanosMax * UnitsOfSample(sample);
}

}  // namespace

void LoadSampler::UnitCost::Add(double more_ns, double more_units) {
  ns += more_ns;
  units += more_units;
  if (units <= kCostUnits) return;
  ns *= kCostUnits / units;
  units = kCostUnits;
}

void LoadSampler::LearnCosts() {
  for (const LoadSample& sample : batch_) {
    if (!IsMeasured(sample)) continue;
    costs_[static_cast<size_t>(sample.kind)].Add(sample.cpu_ns, UnitsOfSample(sample));
    auto found = std::find_if(
        partition_costs_.begin(), partition_costs_.end(),
        [&](const PartitionCost& known) { return known.hash == sample.hash && known.kind == sample.kind; });
    if (found == partition_costs_.end())
      found = partition_costs_.insert(found, {sample.hash, sample.kind, {}});
    found->cost.Add(sample.cpu_ns, UnitsOfSample(sample));
  }
}

// What was not measured is taken to cost what others of its partition and kind do, or else of its kind.
void LoadSampler::CompleteCpu(LoadSample* sample) const {
  if (IsMeasured(*sample)) return;
  const size_t kind = static_cast<size_t>(sample->kind);
  const auto known =
      std::find_if(partition_costs_.begin(), partition_costs_.end(),
                   [&](const PartitionCost& c) { return c.hash == sample->hash && c.kind == sample->kind; });
  const UnitCost& cost = known != partition_costs_.end() ? known->cost : costs_[kind];
  const double unit_ns = cost.units > 0 ? cost.ns / cost.units : kUnitNanos[kind];
  sample->cpu_ns = static_cast<uint32_t>(std::clamp(unit_ns * UnitsOfSample(*sample), 1.0, 4e9));
}

LoadSampler::Statistics LoadSampler::statistics() {
  std::lock_guard lock(mutex_);
  Statistics statistics = statistics_;
  for (const auto& ring : rings_) statistics.lost += ring->lost.load(std::memory_order_relaxed);
  return statistics;
}

// ---- Time.

LoadSampler::Watch::Watch(Clock& clock)
    : clock_(&clock), begun_ns_(clock.ThreadCpuNanos()), turn_(Executor::TurnOfThread()) {}

uint64_t LoadSampler::Watch::Nanos() const {
  if (clock_ == nullptr || turn_ != Executor::TurnOfThread()) return 0;
  return clock_->ThreadCpuNanos() - begun_ns_;
}

}  // namespace partita

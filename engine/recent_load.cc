#include "engine/recent_load.h"

#include <algorithm>
#include <map>

#include "engine/base/assert.h"
#include "engine/base/clock.h"

namespace partita {

namespace {

// Of what is written, flushes and merges to come: partita-bench --workload fill-random takes 16 us a row of 1
// KiB, 2.5 of them in the call.
constexpr double kShardNanosPerByte = 13;

Load LoadOf(const LoadSample& sample) {
  Load load{1, static_cast<double>(sample.rows), static_cast<double>(sample.bytes),
            static_cast<double>(sample.cpu_ns), 0};
  if (sample.kind == LoadKind::kWrite) load.shard_ns = load.cpu_ns + load.bytes * kShardNanosPerByte;
  return load;
}
}  // namespace

std::string RecentLoad::Partition::bound() const { return is_cut() ? prefix + '\0' : prefix; }

void RecentLoad::Take(std::span<const LoadSample> samples) {
  std::lock_guard lock(mutex_);
  for (const LoadSample& sample : samples) {
    if (sample.kind == LoadKind::kThrottled) continue;
    const uint64_t number = sample.time_ns / kNanosPerSecond;
    Second& second = seconds_[number % seconds_.size()];
    if (second.number != number) {
      if (second.number != UINT64_MAX && second.number > number) continue;  // Too late.
      second.number = number;
      second.partitions.clear();
    }
    auto found = second.partitions.find(sample.hash);
    if (found == second.partitions.end()) {
      if (second.partitions.size() >= kPartitionsMax) continue;
      found = second.partitions.emplace(sample.hash, Partition{std::string(sample.partition()), {}}).first;
    }
    found->second.load.Add(LoadOf(sample).Times(sample.weight));
  }
}

std::vector<RecentLoad::Partition> RecentLoad::PerSecond(uint64_t now_ns, uint32_t seconds) const {
  PARTITA_ASSERT(seconds >= 1 && seconds <= kSeconds);
  const uint64_t now = now_ns / kNanosPerSecond;
  std::vector<Partition> all;  // Copied as it is, for those who note samples not to wait long.
  {
    std::lock_guard lock(mutex_);
    for (const Second& second : seconds_) {
      if (second.number >= now || second.number + seconds < now) continue;
      for (const auto& [hash, partition] : second.partitions) all.push_back(partition);
    }
  }
  std::map<std::string, Load, std::less<>> sums;  // Long prefixes are cut, and may be alike then.
  for (Partition& partition : all) sums[std::move(partition.prefix)].Add(partition.load);
  std::vector<Partition> partitions;
  partitions.reserve(sums.size());
  const double share = 1.0 / seconds;
  for (auto& [prefix, load] : sums) {
    partitions.push_back({prefix, load.Times(share)});
  }
  return partitions;
}

std::span<const RecentLoad::Partition> RecentLoad::Within(std::span<const Partition> partitions,
                                                          std::string_view lower, std::string_view upper) {
  const auto is_below = [](const Partition& partition, std::string_view bound) {
    return partition.prefix < bound;
  };
  const auto begin = std::lower_bound(partitions.begin(), partitions.end(), lower, is_below);
  const auto end =
      upper.empty() ? partitions.end() : std::lower_bound(begin, partitions.end(), upper, is_below);
  return {begin, end};
}

Load RecentLoad::Sum(std::span<const Partition> partitions) {
  Load sum;
  for (const Partition& partition : partitions) sum.Add(partition.load);
  return sum;
}

}  // namespace partita

#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/load_sample.h"

namespace partita {

struct Load {
  double calls = 0, rows = 0, bytes = 0, cpu_ns = 0;
  // What the shard of its keys has to do for it, in nanoseconds of a core: writes, and the flushes and merges
  // that follow. Reads are done by who asks.
  double shard_ns = 0;

  Load Times(double factor) const {
    return {calls * factor, rows * factor, bytes * factor, cpu_ns * factor, shard_ns * factor};
  }
  void Add(const Load& other) {
    calls += other.calls;
    rows += other.rows;
    bytes += other.bytes;
    cpu_ns += other.cpu_ns;
    shard_ns += other.shard_ns;
  }
};

// The load of the last seconds by partition, of those partitions that were sampled: what splits and moves of
// ranges go by. Refused calls are no load.
//
// An estimate: a partition that has the share p of the load, of which there are n samples in the window, is
// off by sqrt((1 - p) / (p n)) of its value (one standard deviation). n is 4,000 for a busy thread's second;
// of a thread's CPU time it is at most 1,280, as fewer samples are timed (load_sampler.h).
//
// Memory: of at most kSeconds + 1 seconds, kPartitionsMax partitions each; 10 MiB when all of them are
// taken. What more there is in one second is left out. Thread-safe.
class RecentLoad : public LoadConsumer {
 public:
  static constexpr uint32_t kSeconds = 4;
  static constexpr size_t kPartitionsMax = 8192;

  struct Partition {
    // Prefix of its user keys: table, PartitionKey, zero byte; a long one may be cut and then ends without.
    std::string prefix;
    Load load;  // A second.

    // Where a range may be cut in front of it.
    std::string bound() const;
    // It stands for all partitions that begin so.
    bool is_cut() const { return prefix.empty() || prefix.back() != '\0'; }
  };

  void Take(std::span<const LoadSample> samples) override;

  // Of the last `seconds` full seconds before `now_ns` (Clock::RecentNanos), in key order.
  // REQUIRES: 1 <= seconds <= kSeconds.
  std::vector<Partition> PerSecond(uint64_t now_ns, uint32_t seconds) const;

  // Those with keys in [lower, upper); an empty upper is no bound. Of what PerSecond returned.
  static std::span<const Partition> Within(std::span<const Partition> partitions, std::string_view lower,
                                           std::string_view upper);
  static Load Sum(std::span<const Partition> partitions);

 private:
  struct Second {
    uint64_t number = UINT64_MAX;
    std::unordered_map<uint64_t, Partition> partitions;  // By LoadSample::hash; loads of the whole second.
  };

  mutable std::mutex mutex_;
  std::array<Second, kSeconds + 1> seconds_;
};

}  // namespace partita

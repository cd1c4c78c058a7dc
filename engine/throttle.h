#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/base/status.h"
#include "engine/base/throughput_targets.h"
#include "engine/partition_buckets.h"
#include "engine/snapshot_publisher.h"
#include "engine/token_bucket.h"
#include "engine/token_leases.h"
#include "engine/write_request.h"

namespace partita {

struct Catalog;

// What an entity of the table model costs: its size in KiB, rounded up, at least 1. The engine knows no
// entities, so api/ tells. A plain function; fast for small ones.
using EntityCost = uint64_t (*)(std::string_view user_key, std::string_view content);

// Keeps a store within its throughput targets (DESIGN 8): who is over one is refused before anything is done
// for him, with the wait that would suffice.
//
//   writes   are charged whole before they are decided, once, whatever comes of them.
//   reads    of one entity are charged as they are answered; those that wait for a device, by a ReadMeter.
//   scans    are charged slice of rows by slice, by a ScanMeter.
//
// Where it is not known before what a call will cost, it takes an advance, and what it looked at is settled
// behind it: so it pays that, exactly, and many that come at once put a bucket no further into debt than one.
//
// All methods are thread-safe and wait for nobody. While there are no limits a charge is one load.
class Throttle {
 public:
  // Tables are learnt from `catalog` when they are first met. `cost` may be null: all cost by their bytes.
  Throttle(Clock& clock, EntityCost cost, std::function<Catalog()> catalog);
  ~Throttle();

  // In force at once, for calls that are not charged yet. What buckets owe stays, in tokens: it is paid as
  // fast as they now flow in. kInvalidArgument.
  Status SetTargets(const ThroughputTargets& targets);
  ThroughputTargets targets() const;
  bool on() const { return on_.load(std::memory_order_relaxed); }

  // kThrottled, with the wait and which target was over (ThrottledBy).
  Status ChargeWrite(const WriteRequest& request) { return on() ? ChargeOps(request) : Status(); }
  // A read whose answer is at hand (empty when there is none). False: it was not charged; ReadMeter::Admit
  // says why when it does not change its mind.
  bool TryChargeRead(std::string_view user_key, std::string_view content) {
    return !on() || TryChargeEntity(user_key, content);
  }

  struct Statistics {
    uint64_t refused_by_partition = 0, refused_by_account = 0, refused_by_total = 0;
    uint64_t partitions_active = 0;
  };
  Statistics statistics();

 private:
  friend class ReadMeter;
  friend class ScanMeter;

  // Of all that a rule names together.
  struct Total {
    BucketTime token = 0;  // 0: no limit.
    SharedTokenBucket* bucket = nullptr;
  };
  struct PrefixRate {
    std::string prefix;  // As in user keys.
    std::optional<BucketTime> partition_token;
    std::optional<Total> total;
  };
  // What is in force for one partition. A token of 0: no limit.
  struct Limits {
    bool raw = false;
    BucketTime partition_token = 0;
    BucketTime account_token = 0;
    SharedTokenBucket* account = nullptr;
    Total total;

    bool any() const { return partition_token != 0 || account_token != 0 || total.token != 0; }
  };
  struct TableLimits {
    TableId table;
    Limits limits;                     // Where no prefix says otherwise.
    std::vector<PrefixRate> prefixes;  // The longest first.
  };
  // Of every table that there was.
  struct Policy {
    std::vector<TableLimits> tables;
    std::vector<uint32_t> slots = {0};  // Open addressing, at most half full: index in `tables` + 1; 0: free.
    TableId known_below;                // Tables below it that are not there are gone.

    void Index();
    const TableLimits* Find(TableId table) const;
  };

  ThreadLease FindLease(std::string_view partition) const;
  Status ChargeOps(const WriteRequest& request);
  bool TryChargeEntity(std::string_view user_key, std::string_view content);
  // False: there are none.
  bool FindLimits(std::string_view partition, Limits* limits);
  // False: the table is not known.
  bool LookUp(TableId table, std::string_view partition, Limits* limits) const;
  // So that the policy knows `table`; one thread of those that meet it at once compiles it anew.
  void Learn(TableId table);
  std::unique_ptr<Policy> Compile(const Catalog& catalog);
  void Publish(std::unique_ptr<Policy> policy);
  uint64_t CostOf(bool raw, std::string_view user_key, std::string_view content) const;
  uint64_t CostOf(bool raw, const WriteRequest& request) const;

  // Takes more than is asked for, if there is plenty, and leaves the rest in `lease`; false: nothing was
  // taken.
  bool TryTakeAhead(const Limits& limits, std::string_view partition, uint64_t tokens, ThreadLease lease,
                    BucketTime now);
  bool TryTake(const Limits& limits, std::string_view partition, uint64_t tokens, BucketTime now);
  static PartitionBuckets::Charge ChargeOf(const Limits& limits, uint64_t tokens);
  bool TryTakeOfTwo(const Limits& limits, std::string_view partition, uint64_t tokens, BucketTime now,
                    BucketTime leave = 0);
  void GiveBackToTwo(const Limits& limits, std::string_view partition, uint64_t tokens);
  Total TotalOf(const ThroughputRule& rule);
  Status Charge(const Limits& limits, std::string_view partition, uint64_t tokens, ThreadLease lease);
  // By a time that lies a little behind, or by now.
  bool TryTakeByNow(const Limits& limits, std::string_view partition, uint64_t tokens, BucketTime recent);
  // At most what a bucket holds, so that an advance makes nobody wait for longer than that flows in.
  static uint64_t AdvanceOf(const Limits& limits, uint64_t tokens);
  void Owe(const Limits& limits, std::string_view partition, uint64_t tokens);
  // What was taken, or a part of it.
  void GiveBack(const Limits& limits, std::string_view partition, uint64_t tokens);
  // Ok when all would give; nothing is taken. `tokens`: what the caller will take.
  Status Check(const Limits& limits, std::string_view partition, uint64_t tokens);
  Status Refuse(const Limits& limits, std::string_view partition, uint64_t tokens);

  BucketTime Now() { return clock_.MonotonicNanos() * kBucketTimePerNano; }
  // A little behind; much cheaper.
  BucketTime Recent() { return clock_.RecentNanos() * kBucketTimePerNano; }

  Clock& clock_;
  const EntityCost cost_;
  const std::function<Catalog()> catalog_;
  std::atomic<bool> on_{false};
  PartitionBuckets partitions_;
  SnapshotPublisher<Policy> policy_;
  std::atomic<uint64_t> policy_number_{0};  // Of policy_, set behind it; no two throttles have the same.
  std::atomic<uint64_t> refused_by_partition_{0}, refused_by_account_{0}, refused_by_total_{0};

  // Guards what follows, and publishing.
  mutable std::mutex mutex_;
  ThroughputTargets targets_;
  // Never removed: Limits point to them. Totals by account, table and prefix of their rule.
  std::map<std::string, SharedTokenBucket> accounts_;
  std::map<std::array<std::string, 3>, SharedTokenBucket> totals_;
};

}  // namespace partita

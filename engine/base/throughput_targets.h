#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/status.h"

// How much a store lets through: entities a second, counted as the table service counts them. A plain value.
//
// An entity inserted, updated, merged, deleted, read or scanned costs its size in KiB, rounded up, and at
// least 1; a transaction of 100 costs 100 or more; a scan that looks at 1,000 entities and returns 5 costs
// 1,000. What is refused for another reason (409, 412, 404) costs as well.
namespace partita {

// Targets are at most so high; higher ones are no limit worth keeping.
inline constexpr uint64_t kThroughputTargetMax = 10'000'000;
inline constexpr size_t kThroughputRulesMax = 1'000;

// What differs from the store's own targets. The rule with the longest partition prefix is in force, of those
// the one that names the table, of those the one that names the account.
struct ThroughputRule {
  std::string account{};           // Empty: all.
  std::string table{};             // Empty: all. Ignores case, as tables do.
  std::string partition_prefix{};  // Partitions whose key begins so. Empty: all.
  // Entities a second of each partition, of a whole account (then neither table nor prefix is named), and of
  // all that the rule names taken together: a table, or all partitions that begin alike (then one of the two
  // is named). 0: no limit; unset: not this rule's matter, another one is in force.
  std::optional<uint64_t> partition_rate{};
  std::optional<uint64_t> account_rate{};
  std::optional<uint64_t> total_rate{};
  friend bool operator==(const ThroughputRule&, const ThroughputRule&) = default;
};

struct ThroughputTargets {
  // Entities a second of each partition and of each account; 0: no limit.
  uint64_t partition_rate = 0;
  uint64_t account_rate = 0;
  std::vector<ThroughputRule> rules{};

  // No limits: the default.
  static ThroughputTargets Off() { return {}; }
  // What users of the table service may rely on: 2,000 a partition, 20,000 an account.
  static ThroughputTargets Storage() { return {.partition_rate = 2'000, .account_rate = 20'000}; }

  bool IsOff() const;
  friend bool operator==(const ThroughputTargets&, const ThroughputTargets&) = default;
};

// kInvalidArgument: which rule breaks what.
Status CheckThroughputTargets(const ThroughputTargets& targets);

// "off", "storage", or "partition=N,account=N" where either may be left out (no limit).
// kInvalidArgument, which shows the form.
Result<ThroughputTargets> ParseThroughputTargets(std::string_view text);
// The same backwards, without the rules: "off", "storage", "partition=500,account=5000".
std::string ThroughputText(const ThroughputTargets& targets);

// Which of them was over, as Status::detail() of a kThrottled. kTotal: ThroughputRule::total_rate.
enum class ThrottledBy : uint16_t { kNone = 0, kPartition = 1, kAccount = 2, kTotal = 3 };

}  // namespace partita

#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/token_bucket.h"

namespace partita {

// What a bucket keeps when it gives in advance, and how far in advance it gives.
inline constexpr BucketTime kLeaseLeaves = kBurst / 4 * 3;
inline constexpr BucketTime kLeaseTime = kBurst / 1024;
inline constexpr uint64_t kLeaseTokensMax = 64;

// Tokens that buckets gave to a thread in advance while they were all but full. A charge that they cover
// meets no other thread, no lock and no table of buckets, and takes a third of the time.
//
// What is leased is charged, used or not, so targets stay exact: a bucket that is not all but full leases
// nothing, and what lies unused is at most what it then had above kLeaseLeaves. Leases of a policy that is
// not in force any more are void.
struct alignas(64) TokenLease {
  static constexpr size_t kKeySizeMax = 48;

  uint64_t policy = 0;  // Throttle's number of it; 0: none.
  uint32_t tokens = 0;
  bool raw = false;  // As Throttle::Limits.
  uint8_t key_size = 0;
  char key[kKeySizeMax] = {};

  bool Is(uint64_t of_policy, std::string_view partition) const {
    return policy == of_policy && key_size == partition.size() &&
           std::memcmp(key, partition.data(), partition.size()) == 0;
  }
  uint32_t Worth(uint64_t in_force) const { return policy == in_force ? tokens : 0; }
  // REQUIRES: as many bytes as it can hold.
  void Set(uint64_t new_policy, std::string_view partition, bool is_raw) {
    policy = new_policy;
    tokens = 0;
    raw = is_raw;
    key_size = static_cast<uint8_t>(partition.size());
    std::memcpy(key, partition.data(), partition.size());
  }
};

// Where the calling thread's lease of a partition is, or may be put, under the policy in force.
struct ThreadLease {
  TokenLease* at = nullptr;  // Null: the partition (as of a user key) cannot have one.
  uint64_t policy = 0;
  bool is_its = false;

  static ThreadLease Find(std::string_view partition, uint64_t policy) {
    if (partition.size() > TokenLease::kKeySizeMax) return {};
    TokenLease* first = Pair(partition);
    TokenLease* second = first + 1;
    if (first->Is(policy, partition)) return {first, policy, true};
    if (second->Is(policy, partition)) return {second, policy, true};
    return {first->Worth(policy) <= second->Worth(policy) ? first : second, policy, false};
  }

  bool TryTake(uint64_t tokens) const {
    if (at->tokens < tokens) return false;
    at->tokens -= static_cast<uint32_t>(tokens);
    return true;
  }

 private:
  static constexpr int kPairBits = 7;  // 16 KiB a thread, of which it touches what it uses.

  static TokenLease* Pair(std::string_view partition) {
    static constinit thread_local TokenLease leases[size_t{2} << kPairBits];
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
    // Names differ at their ends, mostly; the very last byte is the separator.
    uint64_t end = 0;
    const size_t bytes = std::min(partition.size() - 1, sizeof(uint64_t));
    std::memcpy(&end, partition.data() + partition.size() - 1 - bytes, bytes);
    return &leases[2 * (((end ^ partition.size()) * kGolden) >> (64 - kPairBits))];
  }
};

}  // namespace partita

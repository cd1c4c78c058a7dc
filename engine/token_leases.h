#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "engine/base/assert.h"
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
  static constexpr size_t kKeySizeMin = sizeof(uint32_t);
  static constexpr size_t kKeySizeMax = 44;

  uint64_t policy = 0;  // Throttle's number of it; 0: none.
  uint32_t tokens = 0;
  uint32_t tag = 0;  // Of the key, to choose by.
  bool raw = false;  // As Throttle::Limits.
  uint8_t key_size = 0;
  char key[kKeySizeMax] = {};

  bool Is(uint64_t of_policy, std::string_view partition) const {
    return policy == of_policy && key_size == partition.size() &&
           AreSame(key, partition.data(), partition.size());
  }
  uint32_t Worth(uint64_t in_force) const { return policy == in_force ? tokens : 0; }
  // REQUIRES: as many bytes as it can hold.
  void Set(uint64_t new_policy, std::string_view partition, uint32_t new_tag, bool is_raw) {
    policy = new_policy;
    tokens = 0;
    tag = new_tag;
    raw = is_raw;
    key_size = static_cast<uint8_t>(partition.size());
    std::memcpy(key, partition.data(), partition.size());
  }

 private:
  template <typename Word>
  static Word Difference(const char* a, const char* b) {
    Word word_a, word_b;
    std::memcpy(&word_a, a, sizeof(Word));
    std::memcpy(&word_b, b, sizeof(Word));
    return word_a ^ word_b;
  }
  // Keys are short, and a call of memcmp takes as long as all else here. REQUIRES: size >= kKeySizeMin.
  static bool AreSame(const char* a, const char* b, size_t size) {
    if (size < sizeof(uint64_t)) {
      const size_t last = size - sizeof(uint32_t);
      return (Difference<uint32_t>(a, b) | Difference<uint32_t>(a + last, b + last)) == 0;
    }
    const size_t last = size - sizeof(uint64_t);
    uint64_t difference = Difference<uint64_t>(a + last, b + last);
    for (size_t at = 0; at < last; at += sizeof(uint64_t)) difference |= Difference<uint64_t>(a + at, b + at);
    return difference == 0;
  }
};

// Where the calling thread's lease of a partition is, or may be put, under the policy in force.
struct ThreadLease {
  TokenLease* at =
      nullptr;  // Null: the partition (as of a user key) cannot have one, or the thread has ended.
  uint64_t policy = 0;
  uint32_t tag = 0;
  bool is_its = false;

  static ThreadLease Find(std::string_view partition, uint64_t policy) {
    if (partition.size() > TokenLease::kKeySizeMax || partition.size() < TokenLease::kKeySizeMin) return {};
    if (leases_ == nullptr && !Allocate()) [[unlikely]]
      return {};
    const uint64_t hash = HashOf(partition);
    const uint32_t tag = static_cast<uint32_t>(hash);
    TokenLease* first = &leases_[2 * (hash >> (64 - kPairBits))];
    // Chosen without a branch, which nobody could foretell.
    TokenLease* at = first + static_cast<size_t>(first[1].tag == tag);
    if (at->Is(policy, partition)) [[likely]]
      return {at, policy, tag, true};
    if (first->Is(policy, partition)) return {first, policy, tag, true};  // Both have the tag.
    return {first[0].Worth(policy) <= first[1].Worth(policy) ? first : first + 1, policy, tag, false};
  }

  bool TryTake(uint64_t tokens) const {
    if (at->tokens < tokens) return false;
    at->tokens -= static_cast<uint32_t>(tokens);
    return true;
  }
  // REQUIRES: at != nullptr.
  void Begin(std::string_view partition, bool raw) const { at->Set(policy, partition, tag, raw); }

 private:
  // 64 KiB a thread, of which it touches what it uses: of 100 partitions hardly three share a pair.
  static constexpr int kPairBits = 9;

  // Names differ at their ends, mostly; the very last byte is the separator.
  static uint64_t HashOf(std::string_view partition) {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
    uint64_t end = 0;
    const size_t bytes = std::min(partition.size() - 1, sizeof(uint64_t));
    if (bytes == sizeof(uint64_t)) {
      std::memcpy(&end, partition.data() + partition.size() - 1 - sizeof(uint64_t), sizeof(uint64_t));
    } else {
      std::memcpy(&end, partition.data(), bytes);
    }
    const uint64_t product = (end ^ partition.size()) * kGolden;
    return product ^ product >> 32;
  }

  // Until the thread ends; false: it has, but for what else of it ends later.
  [[gnu::noinline]] static bool Allocate() {
    struct Owner {
      void* memory = nullptr;
      ~Owner() {
        has_ended_ = true;
        leases_ = nullptr;
        std::free(memory);
      }
    };
    static thread_local Owner owner;
    if (has_ended_) return false;
    constexpr size_t kBytes = (size_t{2} << kPairBits) * sizeof(TokenLease);
    size_t room = kBytes + alignof(TokenLease);
    owner.memory = std::calloc(1, room);
    PARTITA_ASSERT(owner.memory != nullptr);
    void* aligned = owner.memory;
    leases_ = static_cast<TokenLease*>(std::align(alignof(TokenLease), kBytes, aligned, room));
    return true;
  }

  // Not the array itself: that would be part of the stack of every thread of who links this.
  static constinit inline thread_local TokenLease* leases_ = nullptr;
  static constinit inline thread_local bool has_ended_ = false;
};

}  // namespace partita

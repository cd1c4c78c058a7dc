#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/base/keyed_hash.h"
#include "engine/token_bucket.h"

namespace partita {

// The token buckets of all partitions that are in use, by their keys: by the key itself where it is short,
// else by a hash of 128 bits, which nobody can make two keys share.
//
// A bucket that is full is forgotten: with a rate of 2,000 a second a partition is remembered for half a
// millisecond after each entity, and for as long as it owes. So memory follows what is active, not how many
// partitions there are. Beyond kActiveMax active ones (a flood of new partitions under tiny rates) those
// that owe least are forgotten. All are of one size, so memory is at most 64 MiB, and 256 KiB for each stripe
// that is being rebuilt.
//
// Thread-safe. The buckets are dealt to stripes by the hash of their key; a stripe is an open hash table
// under a spin lock, which is held for some 10 ns, and for some 10 us now and then when the table is rebuilt.
class PartitionBuckets {
 public:
  static constexpr size_t kStripes = 256;
  static constexpr size_t kSlotsMin = 16;    // Of a stripe.
  static constexpr size_t kSlotsMax = 4096;  // 64 bytes each; at most half of them are in use.
  static constexpr size_t kActiveMax = kStripes * kSlotsMax / 2;

  PartitionBuckets();
  ~PartitionBuckets();
  PartitionBuckets(const PartitionBuckets&) = delete;
  PartitionBuckets& operator=(const PartitionBuckets&) = delete;

  struct Charge {
    uint64_t tokens = 0;
    BucketTime partition_token = 0;  // What one takes to flow in; likewise below.
    // Null: it has no limit. Else it outlives this. Its tokens may be taken a little later: in each stripe up
    // to 15 us' worth of them.
    SharedTokenBucket* account = nullptr;
    BucketTime account_token = 0;
    // Above 0: all tokens are to be in both, and then still so much. Else one is enough, and the rest is
    // owed.
    BucketTime leave = 0;

    // What is to be in a bucket.
    BucketTime Least(BucketTime token) const { return leave == 0 ? token : tokens * token + leave; }
  };
  enum class Verdict : uint8_t { kTaken, kPartitionRefuses, kAccountRefuses };
  // Takes from both buckets or from none.
  Verdict TryTake(std::string_view partition, const Charge& charge, BucketTime now);
  // Takes also what is not there, which the bucket then owes. `token`: as Charge::partition_token.
  void Take(std::string_view partition, BucketTime token, BucketTime cost, BucketTime now);
  // What TryTake took, or a part of it, comes back as if it had not been taken.
  void GiveBack(std::string_view partition, const Charge& charge);
  // The wait to tell somebody who is refused; 0 when it would be given by now.
  BucketTime Promise(std::string_view partition, BucketTime token, BucketTime cost, BucketTime now);
  bool Holds(std::string_view partition, BucketTime token, BucketTime now);

  // How many are not full; forgets the others. Takes some 10 us for each 1,000 of them.
  size_t CountActive(BucketTime now);
  // Of all stripes, free ones too.
  size_t slots();

 private:
  class Key;
  struct Slot;
  class Stripe;

  Stripe& StripeOf(const Key& key);
  void SweepNext(BucketTime now);

  const Hash128 secret_;
  std::unique_ptr<Stripe[]> stripes_;
  std::atomic<size_t> sweep_next_{0};
};

}  // namespace partita

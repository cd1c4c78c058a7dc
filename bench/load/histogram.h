#pragma once
#include <array>
#include <cstdint>

namespace partita::bench {

// Counts durations in log-linear buckets: each power of two is cut into 64 equal buckets, so that a
// reported value is at most 1/64 (1.6 %) above the recorded one, from a nanosecond to hours, in a
// fixed 19 KiB. Recording is an increment: no allocation, nothing sorted afterwards.
//
// Not thread-safe: each thread records into its own, and the owner merges them.
class Histogram {
 public:
  void Record(uint64_t nanos);
  void Merge(const Histogram& other);

  uint64_t count() const { return count_; }
  // The exact largest and smallest recorded value; 0 when empty.
  uint64_t max() const { return max_; }
  uint64_t min() const { return count_ == 0 ? 0 : min_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  // The value that `fraction` of the recorded ones do not exceed, as the upper bound of its bucket
  // and never above max(); 0 when empty. REQUIRES: 0 <= fraction <= 1.
  uint64_t Percentile(double fraction) const;

  // Calls visit(value, count) for each bucket that holds some, rising; the value is its upper bound.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (uint32_t bucket = 0; bucket < kBucketCount; ++bucket) {
      if (buckets_[bucket] > 0) visit(UpperBoundOf(bucket), buckets_[bucket]);
    }
  }

  // Hands every number that it consists of to visit(number), in an order that stays, by reference: to keep
  // one, or to fill an empty one with what was kept.
  template <typename Self, typename Visit>
  static void VisitNumbers(Self& self, const Visit& visit) {
    for (auto& bucket : self.buckets_) visit(bucket);
    visit(self.count_);
    visit(self.max_);
    visit(self.min_);
    visit(self.sum_);
  }

 private:
  // Values below 64 have a bucket each; above, the top 7 bits of a value name its bucket. Values
  // from 2^kExponentMax on share the last bucket.
  static constexpr uint32_t kSubBits = 6;
  static constexpr uint32_t kSubCount = 1u << kSubBits;
  static constexpr uint32_t kExponentMax = 43;  // 2^43 ns are 2.4 hours.
  static constexpr uint32_t kBucketCount = kSubCount * (kExponentMax - kSubBits + 1);

  static uint32_t BucketOf(uint64_t nanos);
  static uint64_t UpperBoundOf(uint32_t bucket);

  std::array<uint64_t, kBucketCount> buckets_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
  uint64_t min_ = UINT64_MAX;
  double sum_ = 0;
};

}  // namespace partita::bench

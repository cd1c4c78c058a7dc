#include "bench/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/assert.h"

namespace partita::bench {

uint32_t Histogram::BucketOf(uint64_t nanos) {
  if (nanos < kSubCount) return static_cast<uint32_t>(nanos);
  const uint32_t exponent = static_cast<uint32_t>(std::bit_width(nanos)) - 1;
  if (exponent >= kExponentMax) return kBucketCount - 1;
  const uint32_t shift = exponent - kSubBits;
  const uint32_t sub = static_cast<uint32_t>(nanos >> shift) - kSubCount;
  return kSubCount * (shift + 1) + sub;
}

uint64_t Histogram::UpperBoundOf(uint32_t bucket) {
  if (bucket < kSubCount) return bucket;
  const uint32_t shift = bucket / kSubCount - 1;
  const uint64_t sub = bucket % kSubCount + kSubCount;
  return ((sub + 1) << shift) - 1;
}

void Histogram::Record(uint64_t nanos) {
  ++buckets_[BucketOf(nanos)];
  ++count_;
  sum_ += static_cast<double>(nanos);
  max_ = std::max(max_, nanos);
  min_ = std::min(min_, nanos);
}

void Histogram::Merge(const Histogram& other) {
  for (uint32_t bucket = 0; bucket < kBucketCount; ++bucket) buckets_[bucket] += other.buckets_[bucket];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

uint64_t Histogram::Percentile(double fraction) const {
  PARTITA_ASSERT(fraction >= 0 && fraction <= 1);
  if (count_ == 0) return 0;
  const auto rank =
      std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (uint32_t bucket = 0; bucket < kBucketCount; ++bucket) {
    seen += buckets_[bucket];
    // The last bucket has no upper bound of its own.
    if (seen >= rank) return bucket + 1 == kBucketCount ? max_ : std::min(UpperBoundOf(bucket), max_);
  }
  return max_;
}

}  // namespace partita::bench

#include "engine/heat_axis.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/key_head.h"

namespace partita {

namespace {

// The shortest string above `below` and not above `key`.
std::string Between(std::string_view below, std::string_view key) {
  const size_t size = CommonPrefix(below, key) + 1;
  return std::string(key.substr(0, std::min(size, HeatAxis::kBoundBytesMax)));
}

}  // namespace

HeatAxis HeatAxis::Cut(const std::vector<WeightedKey>& keys, size_t buckets, Bounds bounds) {
  PARTITA_ASSERT(buckets >= 1 && buckets <= kBucketsMax);
  HeatAxis axis;
  double rest = 0;
  for (const WeightedKey& key : keys) rest += key.weight;
  double filled = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t left = buckets - axis.size();  // Behind the one being filled.
    // Each gets its part of what is not given away yet, so that after a heavy key the others are even.
    const double share = rest / static_cast<double>(left + 1);
    const bool full = filled > 0 && filled + keys[i].weight / 2 > share;
    if (left > 0 && i > 0 && full) {
      std::string bound = bounds == Bounds::kWhole ? keys[i].key : Between(keys[i - 1].key, keys[i].key);
      if (bound > axis.bounds_.back()) {
        axis.bounds_.push_back(std::move(bound));
        rest -= filled;
        filled = 0;
      }
    }
    filled += keys[i].weight;
  }
  return axis;
}

size_t HeatAxis::BucketOf(std::string_view key) const {
  const auto after = std::upper_bound(bounds_.begin() + 1, bounds_.end(), key);
  return static_cast<size_t>(after - bounds_.begin()) - 1;
}

HeatAxis::Overlap HeatAxis::Over(const HeatAxis& other, size_t bucket) const {
  Overlap overlap;
  overlap.first = BucketOf(other.bounds_[bucket]);
  overlap.last = size() - 1;
  if (bucket + 1 == other.size()) return overlap;
  // Where the next one begins, or in front of it when that is where one of ours does.
  const std::string& end = other.bounds_[bucket + 1];
  overlap.last = BucketOf(end);
  if (overlap.last > overlap.first && bounds_[overlap.last] == end) --overlap.last;
  return overlap;
}

size_t HeatAxis::memory_bytes() const {
  size_t bytes = bounds_.size() * sizeof(std::string);
  for (const std::string& bound : bounds_) bytes += bound.size();
  return bytes;
}

}  // namespace partita

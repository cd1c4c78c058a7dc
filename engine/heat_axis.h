#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace partita {

// Cuts the keys of a store into at most kBucketsMax buckets of about the same load.
//
// A bucket reaches from its bound to the next one's; the first one holds all below as well. Bounds are at
// most kBoundBytesMax long.
class HeatAxis {
 public:
  static constexpr size_t kBucketsMax = 64;
  static constexpr size_t kBoundBytesMax = 64;

  struct WeightedKey {
    std::string key;  // A partition's prefix, or the bound of a bucket.
    double weight = 0;
  };
  enum class Bounds : uint8_t {
    kShort,  // Keys are single ones: bounds are no longer than tells them apart from the key before.
    kWhole,  // Keys are where buckets begin: bounds are some of them.
  };
  // Buckets of equal weight. A key with more than its share has a bucket of its own. `keys` are sorted and
  // distinct.
  static HeatAxis Cut(const std::vector<WeightedKey>& keys, size_t buckets, Bounds bounds = Bounds::kShort);

  // One bucket for all.
  HeatAxis() : bounds_(1) {}

  size_t size() const { return bounds_.size(); }
  const std::string& bound(size_t bucket) const { return bounds_[bucket]; }
  size_t BucketOf(std::string_view key) const;

  // Which buckets of this axis a bucket of another one overlaps: [first, last].
  struct Overlap {
    size_t first = 0, last = 0;
  };
  Overlap Over(const HeatAxis& other, size_t bucket) const;

  size_t memory_bytes() const;

 private:
  std::vector<std::string> bounds_;  // Sorted, distinct; the first one is empty.
};

}  // namespace partita

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace partita {

// A binary fuse filter (3-wise, fingerprints of 8 or 16 bits) over 64-bit key hashes: answers "surely
// absent" or "maybe", never "absent" for a key that was given (M28). About 9.1 or 18.2 bits a key for
// large sets, one false "maybe" in 256 or 65,536.
//
// Content of a filter part, little-endian:
//
//   offset  size  field
//        0     8  seed             chosen at building
//        8     4  segment_length   a power of two
//       12     4  segment_count    n: probes lie in three neighbouring segments of n + 2
//       16     4  key_count        distinct hashes
//       20     4  width            0: fingerprints of 8 bits; 1: of 16
//       24     m  fingerprints     m = (segment_count + 2) * segment_length, or twice as many
//
// Programs older than the width (2026-11-28) take a filter of 16 bits for a damaged one, which means "maybe".
// An empty set has segment_length 0 and no fingerprints, and answers "absent".
inline constexpr size_t kFuseFilterHeaderSize = 8 + 4 + 4 + 4 + 4;

enum class FilterWidth : uint8_t { k8Bits = 0, k16Bits = 1 };

// Builds the filter for `hashes`, in any order; repeated ones are fine. The vector is used up
// (sorted) when repetitions must be found. Empty when no seed works in 100 tries, which for distinct
// hashes does not happen; the table is then written without the filter. While it builds it takes
// some 28 bytes a key.
std::string BuildFuseFilter(std::vector<uint64_t>* hashes, FilterWidth width);

class FuseFilter {
 public:
  // Answers "maybe" to everything: what a damaged filter means (F45).
  FuseFilter() = default;

  // `keys`: how many were given to BuildFuseFilter. kCorruption when the content is no filter, or one of more
  // keys, or of none where there are some; the object then still answers "maybe".
  Status Load(std::string content, uint64_t keys);

  bool MayContain(uint64_t hash) const;
  bool loaded() const { return loaded_; }
  size_t memory_bytes() const { return content_.size(); }

 private:
  std::string content_;
  bool loaded_ = false;
  FilterWidth width_ = FilterWidth::k8Bits;
  uint64_t seed_ = 0;
  uint32_t segment_length_ = 0;
  uint32_t segment_count_length_ = 0;
};

}  // namespace partita

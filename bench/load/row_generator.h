#pragma once
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/large_memory.h"

namespace partita::bench {

// The keys of one row, as text of a fixed length; no allocation.
struct RowKeys {
  static constexpr size_t kPartitionSize = 20;
  static constexpr size_t kRowSize = 20;
  std::array<char, kPartitionSize> partition_text;
  std::array<char, kRowSize> row_text;

  std::string_view partition() const { return {partition_text.data(), partition_text.size()}; }
  std::string_view row() const { return {row_text.data(), row_text.size()}; }
};

// The keys of row `index`, 100 rows to a partition, in key order. With `missing`, a key that no row
// has and that sorts right after that row's.
inline constexpr uint64_t kRowsPerPartition = 100;
RowKeys KeysOf(uint64_t index, bool missing = false);

// Keys of a partition that does not exist and that sorts between those that do.
RowKeys KeysOfMissingPartition(uint64_t index);

// The values of the load: shaped like encoded entities (property names and type tags, ISO times,
// GUIDs, words of a 512-word vocabulary, doubles, base64 filler), so that zstd leaves about half.
//
// A pool of 16,384 values is made once from the seed; each write stamps the key's fingerprint and
// the number of the pool value into one, and each read checks both, and the rest by its hash, so a wrong or
// stale-mixed answer is counted and no speed is reported for answers that are wrong. The hash is there for
// speed: comparing with the pool's value would take a second row's worth of cache misses for each row read.
// Huge pages hold the pool, as a write of the load waits for one of its values: in strings of their own they
// were a tenth of the CPU of `fill-seq`.
//
// Immutable after construction, so any thread may use it.
class ValueGenerator {
 public:
  // So many values are made in advance, and kept.
  static constexpr size_t kPoolSize = 16384;

  // REQUIRES: 64 <= value_size <= 64 KiB.
  ValueGenerator(size_t value_size, uint64_t seed);

  size_t value_size() const { return value_size_; }

  // Writes the value of row `index` in `generation` (each overwrite takes another) into `value`.
  void Fill(uint64_t index, uint64_t generation, std::string* value) const;

  // True if `value` was made by Fill for row `index`, in any generation.
  bool Check(uint64_t index, std::string_view value) const;

 private:
  char* PoolValue(size_t number) const { return pool_.get() + number * value_size_; }

  size_t value_size_;
  LargeArray<char> pool_;         // One value behind the other.
  std::vector<uint64_t> hashes_;  // Of each behind its stamp.
};

// A permutation of [0, size), computed, not stored: the order of a random load that writes each key
// once. Four Feistel rounds over the next power of four, walking until inside.
class Permutation {
 public:
  // REQUIRES: size > 0.
  Permutation(uint64_t size, uint64_t seed);
  uint64_t At(uint64_t position) const;

 private:
  uint64_t Shuffle(uint64_t value) const;

  uint64_t size_;
  uint32_t half_bits_;
  std::array<uint64_t, 4> round_keys_;
};

}  // namespace partita::bench

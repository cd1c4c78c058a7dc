#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sstable/block_cache.h"

namespace partita {

class DataBlock;

// Rows in the block cache: the versions of one key that a table has, as a data block of their own
// (data_block.h), found by the block that they are of and the key's hash. Where few rows of a block are read,
// they take a tenth of its memory. They never go stale: tables do not change.

// What the cache knows a row by, where a block has its offset, which has no such bits: 1; 4 bits of the
// block's hash, which say in which partition of the cache it is; 59 bits of the key's hash.
inline constexpr unsigned kCachedRowHashBits = 59;
inline constexpr uint64_t kCachedRowHashMask = (uint64_t{1} << kCachedRowHashBits) - 1;
inline constexpr uint64_t kCachedRowBit = uint64_t{1} << 63;
inline BlockKey CachedRowKey(const BlockKey& block, uint64_t key_hash) {
  const uint64_t partition = uint64_t{block.PartitionBits()} << kCachedRowHashBits;
  return {block.object, kCachedRowBit | partition | (key_hash & kCachedRowHashMask)};
}
inline bool IsCachedRow(const BlockKey& key) { return (key.offset & kCachedRowBit) != 0; }
// Whether it is that of a row of this object whose key has this hash.
inline bool IsRowWithHash(const BlockKey& key, ObjectId object, uint64_t key_hash) {
  return key.object == object && IsCachedRow(key) && ((key.offset ^ key_hash) & kCachedRowHashMask) == 0;
}
inline uint32_t PartitionBitsOfRow(const BlockKey& key) {
  return static_cast<uint32_t>(key.offset >> kCachedRowHashBits) & 15;
}

struct CachedRow {
  BlockKey key;
  std::string content;
};

// The row that entry `at` of a block is a version of. REQUIRES: at < block.size(); `key_hash` is of its key.
CachedRow CutRow(const BlockKey& key, uint64_t key_hash, const DataBlock& block, uint32_t at);
CachedRow CutRow(const BlockKey& key, const DataBlock& block, uint32_t at);

// Whether that row is worth keeping without its block; else the block is kept with it.
bool IsWorthCutting(const DataBlock& block, uint32_t at);

}  // namespace partita

#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "sstable/block_cache.h"
#include "sstable/data_block.h"

namespace partita {

// Where the cache last had the blocks of one open table.
//
// Why: in data of many gigabytes a lookup waits for memory at each step that needs the one before, half a
// microsecond each on a virtual machine: the cache's slot, then the block; and of a data block first of all
// its record in the index, which says what to ask the cache for. With a place all of it is asked for at once
// (BlockCache::Prefetch), and the lookup finds it on its way.
//
// Takes 8 bytes a block, for as many as the cache allows (BlockCache::TryReservePlaces); for others there are
// no places, and lookups do without. Thread-safe once opened: a place is one atomic.
class BlockPlaces {
 public:
  explicit BlockPlaces(BlockCache& cache) : cache_(cache) {}
  ~BlockPlaces();

  // For the blocks that a table's top index tells of. Before anything else.
  void Open(const DataBlock& top_index);

  // Of the index block that entry `top_at` of the top index names; null when it has none.
  BlockPlace* OfIndex(uint32_t top_at) const { return places_ != nullptr ? &places_[top_at] : nullptr; }
  // Of the data block that entry `at` of that index block names.
  BlockPlace* OfData(uint32_t top_at, uint32_t at) const {
    if (places_ == nullptr || at >= begins_[top_at + 1] - begins_[top_at]) return nullptr;
    return &places_[begins_[top_at] + at];
  }

 private:
  BlockCache& cache_;
  std::unique_ptr<BlockPlace[]> places_;  // Of index blocks, then of data blocks.
  std::vector<uint32_t> begins_;          // In places_, of each index block's data blocks; and their end.
  uint64_t reserved_bytes_ = 0;
};

}  // namespace partita

#pragma once
#include <cstdint>
#include <string_view>

#include "sstable/block_cache.h"
#include "sstable/data_block.h"
#include "sstable/key_hash.h"
#include "sstable/table_reader.h"

namespace partita {

// Lookups of keys that rise in one table, as far as memory knows, each from where the one before ended.
//
// Why: a transaction's rows lie side by side, mostly several in a block. Looked up one by one, each would ask
// filter, index and cache again, and search the block from its middle.
//
// Used by one thread; the table outlives it.
class RisingLookup {
 public:
  explicit RisingLookup(const TableReader& table) : table_(table) {}

  // As TableReader::TryGet. REQUIRES: no key of an earlier call is greater.
  TableLookup TryGet(const SoughtKey& key, Version at_most, BlockPin* pin);

 private:
  bool IsInBlock(std::string_view user_key) const;
  // The block that holds the key if any does. False: none does, or memory does not know.
  bool FindBlock(std::string_view user_key, bool* needs_io);
  Lookup FindInBlock(std::string_view user_key, Version at_most, BlockPin* pin);

  const TableReader& table_;
  BlockPin index_pin_;  // Of entry top_at_ of the top index; empty at first.
  DataBlock index_;
  uint32_t top_at_ = 0;
  uint32_t at_ = 0;    // In index_: the block at hand,
  BlockPin data_pin_;  // which may be empty,
  DataBlock data_;
  uint32_t next_ = 0;  // and the entry behind the last one found.
};

}  // namespace partita

#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/entry_iterator.h"
#include "sstable/data_block.h"
#include "sstable/table_iterator.h"
#include "sstable/table_zones.h"

namespace partita {

struct TableScan;

// Which blocks of one table a cursor of a scan passes over unread: those of which nothing is wanted, and
// nothing that they hide (files_beneath.h); and those of which all keys were deleted since.
//
// Belongs to one cursor; all that it was made of outlives it.
class BlockPassing {
 public:
  struct Cursor {
    const TableProperties& properties;
    StoreId store;
    const DataBlock& top;
    const IterOptions& options;  // With a scan.
  };
  explicit BlockPassing(const Cursor& cursor);

  // Where a block is: entry `at` of `index`, the index block that entry `top_at` of the top index names.
  struct Place {
    const DataBlock& index;
    uint32_t at;
    uint32_t top_at;
  };
  // True: the block need not be read.
  bool MayPass(const Place& place) { return IsUnwanted(place) || IsDeleted(place); }
  // Comparisons of all looks so far.
  size_t looks_cost() const { return looks_cost_; }

  // To be called for each block that the cursor passes over. True: a milestone is due, at milestone().
  bool Passed(const Place& place, Direction direction);
  const Entry& milestone() const { return milestone_; }

 private:
  bool IsUnwanted(const Place& place);
  bool IsDeleted(const Place& place);
  // The key that all keys of the block are above; empty when it is the first one.
  void FenceBefore(const Place& place, std::string* out) const;

  const TableProperties& properties_;
  const DataBlock& top_;
  const IterOptions& options_;
  TableScan& scan_;
  std::optional<TableZones> zones_;  // Nothing: the predicate is not asked.
  const uint64_t key_sum_seed_;
  size_t looks_cost_ = 0;
  size_t deleted_cost_ = 0;   // Of what was looked at for IsDeleted since Passed.
  std::string first_, last_;  // The span of the block asked last.
  std::string milestone_key_;
  Entry milestone_;
};

}  // namespace partita

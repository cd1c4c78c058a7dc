#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/entry_iterator.h"
#include "sstable/data_block.h"
#include "sstable/table_zones.h"

namespace partita {

class FilesBeneath;
struct TableScan;

// Which blocks of one table a cursor of a scan passes over unread: those of which nothing is wanted, and
// nothing that they hide (files_beneath.h).
//
// Belongs to one cursor; all that it was made of outlives it.
class BlockPassing {
 public:
  BlockPassing(const TableProperties& properties, const DataBlock& top, TableScan& scan,
               FilesBeneath& beneath);

  // Where a block is: entry `at` of `index`, the index block that entry `top_at` of the top index names.
  struct Place {
    const DataBlock& index;
    uint32_t at;
    uint32_t top_at;
  };
  // True: the block need not be read.
  bool MayPass(const Place& place);
  // Comparisons of all looks so far.
  size_t looks_cost() const { return looks_cost_; }

  // To be called for each block that the cursor passes over. True: a milestone is due, at milestone().
  bool Passed(const Place& place, Direction direction);
  const Entry& milestone() const { return milestone_; }

 private:
  // The key that all keys of the block are above; empty when it is the first one.
  void FenceBefore(const Place& place, std::string* out) const;

  const DataBlock& top_;
  TableScan& scan_;
  FilesBeneath& beneath_;
  TableZones zones_;
  size_t looks_cost_ = 0;
  std::string first_, last_;  // The span of the block asked last.
  std::string milestone_key_;
  Entry milestone_;
};

}  // namespace partita

#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/block_predicate.h"
#include "sstable/properties.h"
#include "sstable/zone_map.h"

namespace partita {

// Asks one predicate of the zone maps of one table. What it was made of outlives it.
//
// Cost: making it compares the file's property names with the predicate's; asking allocates nothing and
// reads only the zones that the predicate wants.
class TableZones {
 public:
  TableZones(const BlockPredicate& predicate, const TableProperties& properties);

  // False: surely no put of the file matches.
  bool FileMayMatch();
  // The same of the block of a data index record. One that does not parse rules nothing out.
  bool BlockMayMatch(std::string_view index_record);

  // The highest version in that block. REQUIRES: the record's zone map parses, as it does where
  // BlockMayMatch(index_record) was false.
  static Version BlockVersionMax(std::string_view index_record);

 private:
  static constexpr int kNotKept = -1;

  const BlockPredicate& predicate_;
  const TableProperties& properties_;
  std::vector<int> numbers_;  // Of each wanted property, its number in the file; or kNotKept.
  std::vector<PropertyZone> zones_;
};

}  // namespace partita

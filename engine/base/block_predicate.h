#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/base/ids.h"

namespace partita {

// What is known of one property in a set of puts (a data block, a file).
struct PropertyZone {
  bool known = false;   // False: nothing is, and the rest says nothing.
  bool absent = false;  // Some put lacks it.
  uint16_t types = 0;   // Bit t: a value of PropertyType t occurs. 0: no put has the property.
  // The least and greatest ordered code (property_value.h) of all values, whatever their types: so bounds
  // of each type's codes too. Meaningless when `types` is 0.
  uint64_t least = 0;
  uint64_t greatest = 0;
};

// What is known of a set of puts.
struct BlockZones {
  Version version_min;
  Version version_max;
  std::span<const PropertyZone> properties;  // One for each of BlockPredicate::properties(), in its order.
};

// A condition that can be asked of zone maps: it rules out sets of puts without seeing one. What it rules
// out, the reader of the rows would refuse: blocks that it rules out are not read where nothing that they
// hide can match (DESIGN 9).
//
// Given by who knows the codec of stored values; the engine does not. Thread-safe: several shards may ask
// at once.
class BlockPredicate {
 public:
  virtual ~BlockPredicate() = default;

  // The properties whose zones it wants to see; the same throughout its life.
  virtual std::span<const std::string> properties() const = 0;

  // False: surely no put with such zones matches.
  // REQUIRES: zones.properties.size() == properties().size().
  virtual bool MayMatch(const BlockZones& zones) const = 0;

  // How many comparisons one MayMatch may take: what bounds the blocks that are passed over in one go.
  virtual size_t cost() const = 0;
};

}  // namespace partita

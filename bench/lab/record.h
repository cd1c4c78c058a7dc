#pragma once
#include <cstdint>
#include <vector>

#include "engine/base/property_value.h"

namespace partita::lab {

// What the application knows of one thing: a value for each field of the experiment, in their order.
struct Record {
  uint64_t number = 0;
  std::vector<PropertyValue> values;
};

}  // namespace partita::lab

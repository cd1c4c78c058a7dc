#pragma once
#include <cstdint>
#include <string>

#include "bench/lab/experiment.h"

namespace partita::lab {

// What stands before a PartitionKey so that the load of one partition goes to several.
struct Spread {
  std::string key;  // "{hash(device) % 5}", or "{salt(5)}" where no field would do.
  uint64_t pieces = 1;
  double rate = 0;  // Of the fullest piece.
};

// The best one for a partition of `place` that is asked for `rate` units a second where `most` are given: of
// those that suffice by a field that readers name, by one of many values, in no more pieces than it takes.
// REQUIRES: rate > most > 0.
Spread BestSpread(const Experiment& experiment, const EntityPlan& place, const std::string& partition_key,
                  double rate, double most);

}  // namespace partita::lab

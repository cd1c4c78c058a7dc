#pragma once
#include <string>
#include <vector>

#include "bench/lab/experiment.h"
#include "engine/base/result.h"

namespace partita::lab {

// How many operations a second one core of this machine makes, in steps that build on each other.
struct GeneratorRate {
  double stream = 0;  // The operations, with the values of the records that they write.
  struct OfLayout {
    double requests = 0;  // And as requests: keys, entities, filters.
    double clients = 0;   // And by a client that sends them to a store that answers at once, and measures.
  };
  std::vector<OfLayout> layouts;  // In the experiment's order.
};

// Takes some second a layout; one thread.
Result<GeneratorRate> MeasureGenerator(const Experiment& experiment);

// For people.
std::string GeneratorText(const Experiment& experiment, const GeneratorRate& rate);

}  // namespace partita::lab

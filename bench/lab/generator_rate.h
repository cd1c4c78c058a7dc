#pragma once
#include <string>
#include <vector>

#include "bench/lab/experiment.h"
#include "engine/base/result.h"

namespace partita::lab {

// How many operations a second one core of this machine makes, in steps that build on each other.
struct GeneratorRate {
  // A second by the clock, in which others may have had the core, and one of CPU time.
  struct Rate {
    double by_clock = 0, by_cpu = 0;
  };
  Rate stream;  // The operations, with the values of the records that they write.
  struct OfLayout {
    Rate requests;  // And as requests: keys, entities, filters.
    Rate clients;   // And by a client that sends them to a store that answers at once, and measures.
  };
  std::vector<OfLayout> layouts;  // In the experiment's order.
};

// Takes some second a layout; one thread.
Result<GeneratorRate> MeasureGenerator(const Experiment& experiment);

// For people.
std::string GeneratorText(const Experiment& experiment, const GeneratorRate& rate);

}  // namespace partita::lab

#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/lab/run.h"

namespace partita::lab {

// The highest rate at which something holds, sought between two bounds.
struct CapacitySearch {
  double rate = 0;       // 0: not even the lowest holds.
  double broken_at = 0;  // The lowest rate that was seen not to hold; 0: none, `rate` is the highest bound.
  std::vector<double> probes;  // In the order they were tried.
};

// Tries the upper bound, the lower one, then halves the ratio between what held and what did not until it is
// 1.1. What it gives held twice; where the second run does not, the next lower step is tried.
// REQUIRES: 0 < lowest < highest.
Result<CapacitySearch> SearchCapacity(double lowest, double highest,
                                      const std::function<Result<bool>(double rate)>& holds);

// Of one layout.
struct LayoutCapacity {
  CapacitySearch search;
  std::optional<double> p99_ms;    // When it held last at that rate, of its slowest operation,
  std::string broken;              // and what the goal missed when it did not, at the lowest such rate.
  bool generator_limited = false;  // In any run: the machine, not the store, may be the limit,
  bool clients_limited = false;    // or how many clients there are.
};

// What of its experiment's goal a run missed, in a word or two, and which operation of several; empty:
// nothing. Each must meet it. Whatever the goal names, none may fail, no more than one in a hundred find
// nothing, and in a second as many must be done or refused as were due in one, but for 5 %.
std::string MissedBy(const Experiment& experiment, const CellFigures& cell);

// For each layout the highest rate that meets the experiment's goal, from a 64th of its highest rate up to
// that. One run a probe, each on a new store. kInvalidArgument: it has no goal, or its arrival is not
// constant or poisson. kCancelled as RunExperiment.
Result<std::vector<LayoutCapacity>> FindCapacities(const RecordGenerator& generator, const RunPlace& place,
                                                   const RunProgress& progress);

// The layouts whose lowest rate did not meet the goal, a line each that says why; empty: there are none.
std::vector<std::string> FailedCapacities(const Experiment& experiment,
                                          const std::vector<LayoutCapacity>& capacities);

// For people, and for programs.
std::string CapacityText(const Experiment& experiment, const std::vector<LayoutCapacity>& capacities);
std::string CapacityJson(const Experiment& experiment, const std::vector<LayoutCapacity>& capacities);

}  // namespace partita::lab

#pragma once
#include <string>
#include <utility>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/run.h"

namespace partita::lab {

// Under what an experiment was run, as result.json tells it: names and texts.
using Conditions = std::vector<std::pair<std::string, std::string>>;

// What was asked for. Runs that differ in it did not do the same, and are not compared.
Conditions AskedForBy(const Experiment& experiment);
// What it ran on, which may be what is to be compared: the target, how many clients an open loop has and, of
// stores of this machine, memory, shards and how they reach the disk.
Conditions RanOn(const Experiment& experiment, const RunResult& result);

}  // namespace partita::lab

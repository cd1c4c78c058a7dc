#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/run.h"

namespace partita::lab {

// What to change on a layout, and why, in a sentence or two, with the figures that say so.
struct Advice {
  size_t layout = 0;
  std::optional<size_t> op;  // What it is about; nothing: the layout as a whole.
  std::string text;
};

// By rules, from what was predicted and what was measured at the highest rate; the gravest first for each
// layout. Empty: nothing to find fault with.
std::vector<Advice> AdviceOn(const Experiment& experiment, const RunResult& result);

}  // namespace partita::lab

#pragma once
#include <string>

#include "bench/compare/report.h"

namespace partita::bench {

// The result as one page that needs nothing else, no network and no script: the goals as a chart of
// ratios with their intervals, floors and targets; the rates of all engines in every workload as bars;
// the tables; the probes.
std::string ToHtml(const Report& report);

}  // namespace partita::bench

#pragma once
#include <string>

#include "bench/lab/experiment.h"
#include "bench/lab/run.h"

namespace partita::lab {

// What a run gave, in the forms that it is kept in.

// result.json; bench/lab/result.schema.json says what stands in it.
std::string ResultJson(const Experiment& experiment, const RunResult& result);
// summary.csv: a line for each cell and operation, a column for each metric; empty where it has no figure
// (HasFigure in metrics.h), which is a dash in VerdictTable and in result.json 0, or a density of 1, or null
// where the store did not tell. Here and below a layout's rate is that of its own arrival, where it has one.
std::string SummaryCsv(const Experiment& experiment, const RunResult& result);
// timeline.csv: a line for each second of each cell.
std::string TimelineCsv(const Experiment& experiment, const RunResult& result);
// heat.csv: where load lay, a line for each column of a cell's timeline (second: when it begins, seconds: how
// wide it is) and row of keys in which there was some: entities that count against the targets, and tries
// that were refused.
std::string HeatCsv(const Experiment& experiment, const RunResult& result);
// What a rate is called in all of them: "constant 1000/s", "ramp 10 to 500/s", "steps 10, 20, 30/s".
std::string RateText(const Arrival& arrival, size_t rate);
// The same of a layout's own arrival, of all its rates: "ramp 10 to 500/s, ramp 10 to 900/s"; empty: it has
// none.
std::string OwnArrivalText(const Layout& layout);
// For people: layouts by operations, medians over the repeats; a star where one layout is best beyond doubt.
std::string VerdictTable(const Experiment& experiment, const RunResult& result);

}  // namespace partita::lab

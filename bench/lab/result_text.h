#pragma once
#include <string>

#include "bench/lab/experiment.h"
#include "bench/lab/run.h"

namespace partita::lab {

// What a run gave, in the forms that it is kept in.

// result.json; bench/lab/result.schema.json says what stands in it.
std::string ResultJson(const Experiment& experiment, const RunResult& result);
// summary.csv: a line for each cell and operation, a column for each metric.
std::string SummaryCsv(const Experiment& experiment, const RunResult& result);
// timeline.csv: a line for each second of each cell.
std::string TimelineCsv(const Experiment& experiment, const RunResult& result);
// For people: layouts by operations, medians over the repeats; a star where one layout is best beyond doubt.
std::string VerdictTable(const Experiment& experiment, const RunResult& result);

}  // namespace partita::lab

#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/cell.h"
#include "bench/lab/connection_string.h"
#include "bench/lab/experiment.h"
#include "bench/lab/explain.h"
#include "bench/lab/unfinished_run.h"
#include "engine/base/io_backend.h"
#include "engine/base/result.h"

namespace partita::lab {

// What an experiment gave.
struct RunResult {
  Prediction prediction;
  TargetKind kind = TargetKind::kEmbedded;
  std::string target = "embedded";           // Its name, or the endpoint of a service.
  IoBackend io_backend = IoBackend::kUring;  // kEmbedded.
  std::vector<std::vector<std::string>>
      key_rows;              // Of each layout, what the rows of its cells' timelines are.
  uint64_t stream_hash = 0;  // Of the first operations, as many as a cell has (HashOfStream).
  uint64_t stream_operations = 0;
  std::vector<CellFigures> cells;  // In the order they ran: all layouts, then the next rate, then the next
                                   // repeat, which begins with the next layout, so that none is always first.
  size_t cells_kept = 0;           // So many were done before an interruption; 0: it went through at once.

  bool is_embedded() const { return kind == TargetKind::kEmbedded; }
  // What it says of its limits, where they are not the experiment's.
  std::string LimitsElsewhere() const;
};

// Tells how far it is: seconds of load that were run, and all there will be; `cell` is what is done now, the
// layout and whether it is being loaded. Called some times a second. False stops it.
using RunProgress = std::function<bool(double done_s, double all_s, const std::string& cell)>;

// Where an experiment runs.
struct RunPlace {
  // For new stores: a new directory of the run's own below this one, which is made where it is missing.
  std::string directory;
  IoBackend io_backend = IoBackend::kUring;
  TargetKind kind = TargetKind::kEmbedded;
  std::optional<Connection> connection;  // kHttp: tables of the run's own are made in that service.
  // Where cells are kept as they are done, with those that were done before; null: nowhere. Then stores lie
  // there, not in `directory`. Outlives the run.
  UnfinishedRun* unfinished = nullptr;
  // Told what is left behind there, where something is.
  std::function<void(const std::string&)> warn = [](const std::string&) {};

  // "embedded", "rocksdb", or the service's endpoint.
  std::string TargetName() const;
};

// Runs one layout at one rate on a store of its own, which is at `directory`, or tables of the place's
// service. `tell` is told how many seconds of load were run, and what is done now; false stops it:
// kCancelled.
Result<CellFigures> RunOnNewStore(const RecordGenerator& generator, const RunPlace& place,
                                  const std::string& directory, const Layout& layout, double rate,
                                  const std::function<bool(double seconds, const std::string& cell)>& tell);

// Runs every layout at every rate, in turns, as often as the experiment says; each on a new store, or new
// tables; but for the cells that the place has kept. kCancelled when `progress` says so.
Result<RunResult> RunExperiment(const RecordGenerator& generator, const RunPlace& place,
                                const RunProgress& progress);

// The rates that are cells of their own: for steps and replay it is one.
size_t RateCountOf(const Arrival& arrival);

// Of them the highest, where layouts differ most.
size_t HighestRateOf(const Arrival& arrival);

// Runs of a layout at a rate that an experiment consists of.
size_t CellCountOf(const Experiment& experiment);

// The figures of one layout at one rate for a metric, one for each repeat that has one (WasMeasured); `op`
// unset: of all operations together.
std::vector<double> FiguresOf(const RunResult& result, size_t layout, size_t rate, std::optional<size_t> op,
                              std::string_view metric);

// What of the experiment's expectations did not come out, and the runs in which no operation was completed
// though some were due, a line each; empty: all came out.
std::vector<std::string> FailedExpectations(const Experiment& experiment, const RunResult& result);

}  // namespace partita::lab

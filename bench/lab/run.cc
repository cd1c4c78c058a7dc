#include "bench/lab/run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

#include "bench/compare/statistics.h"
#include "bench/lab/embedded_store.h"
#include "bench/lab/http_store.h"
#include "bench/lab/metrics.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/ordered_table_store.h"
#include "bench/lab/table_store.h"
#include "bench/lab/target.h"
#include "bench/lab/work_directory.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

// The hash looks at so many operations at most: it takes about as long as making them.
constexpr uint64_t kHashedMax = 200'000;

std::string FineFigure(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", number);
  return text;
}

OpFigures Together(const CellFigures& cell, std::optional<size_t> op) {
  if (op.has_value()) return cell.ops[*op];
  OpFigures all;
  for (const OpFigures& figures : cell.ops) all.Add(figures);
  return all;
}

// In which run of a layout there is nothing that the metric could be a figure of; empty: in none.
std::string NothingMeasured(const RunResult& result, const Expectation& expectation, size_t layout,
                            size_t rate) {
  const MetricBasis basis = BasisOf(expectation.metric);
  if (basis == MetricBasis::kPrediction) return "";
  bool any = false;
  for (const CellFigures& cell : result.cells) {
    if (cell.layout != layout || cell.rate != rate) continue;
    any = true;
    const OpFigures figures = Together(cell, expectation.op);
    if (IsUntold(expectation.metric, figures)) {
      const bool is_looked_at = figures.untold > 0 && expectation.metric != "returned";
      return "nothing was measured: " + (is_looked_at ? result.target + " does not tell what it looks at"
                                                      : "the client filters what is folded");
    }
    if (basis == MetricBasis::kDue ? figures.operations > 0 : figures.completed > 0) continue;
    return "nothing was measured: of " + std::to_string(figures.operations) +
           " operations none was completed in run " + std::to_string(cell.repeat + 1);
  }
  return any ? "" : "nothing was measured: it was not run";
}

// Empty when it came out.
std::string Judge(const Experiment& experiment, const RunResult& result, const Expectation& expectation) {
  const std::string of = "metric " + expectation.metric + " of layout " +
                         experiment.layouts[expectation.layout].name +
                         (expectation.op ? ", operation " + experiment.ops[*expectation.op].name : "");
  if (expectation.metric == "plan") {
    const std::string& plan = result.prediction.layouts[expectation.layout].ops[*expectation.op].plan;
    return plan == *expectation.is ? "" : of + " is " + plan + ", not " + *expectation.is;
  }
  const size_t rate = HighestRateOf(experiment.arrival);
  for (const size_t layout : {expectation.layout, expectation.times_of.value_or(expectation.layout)}) {
    const std::string nothing = NothingMeasured(result, expectation, layout, rate);
    if (nothing.empty()) continue;
    return of + (layout == expectation.layout ? "" : " against " + experiment.layouts[layout].name) + ": " +
           nothing;
  }
  const auto median = [&](size_t layout) {
    return bench::Median(FiguresOf(result, layout, rate, expectation.op, expectation.metric));
  };
  double figure = median(expectation.layout);
  std::string shown = FineFigure(figure);
  if (expectation.times_of) {
    figure /= median(*expectation.times_of);
    shown = FineFigure(figure) + " times that of " + experiment.layouts[*expectation.times_of].name;
  }
  const auto misses = [&](const char* what, double bound) {
    return of + " is " + shown + what + FineFigure(bound);
  };
  if (expectation.above && !(figure > *expectation.above)) return misses(", not above ", *expectation.above);
  if (expectation.below && !(figure < *expectation.below)) return misses(", not below ", *expectation.below);
  if (expectation.equals &&
      !(std::abs(figure - *expectation.equals) <= 0.01 * std::abs(*expectation.equals))) {
    return misses(", not ", *expectation.equals);
  }
  return "";
}

// Which cell is the n-th of a run.
struct CellPlace {
  size_t layout = 0, rate = 0;
  uint32_t repeat = 0;
};

CellPlace PlaceOf(const Experiment& experiment, size_t number) {
  const size_t layouts = experiment.layouts.size(), rates = RateCountOf(experiment.arrival);
  const size_t repeat = number / (layouts * rates);
  return {.layout = (number % layouts + repeat) % layouts,
          .rate = number / layouts % rates,
          .repeat = static_cast<uint32_t>(repeat)};
}

// kCorruption: what was kept are not the first cells of this experiment.
Status TakeKept(const RunPlace& place, const Experiment& experiment, RunResult* result) {
  if (place.unfinished == nullptr) return Status();
  result->cells = place.unfinished->kept();
  result->cells_kept = result->cells.size();
  bool fit = result->cells.size() <= CellCountOf(experiment);
  for (size_t i = 0; fit && i < result->cells.size(); ++i) {
    const CellFigures& cell = result->cells[i];
    const CellPlace wanted = PlaceOf(experiment, i);
    fit = cell.layout == wanted.layout && cell.rate == wanted.rate && cell.repeat == wanted.repeat &&
          cell.ops.size() == experiment.ops.size();
  }
  return fit ? Status() : Status::Corruption(place.unfinished->path() + ": its cells are of another run");
}

// What killed runs left in the service. What cannot be dropped is tried again by the next run.
Status DropTablesLeft(const RunPlace& place, const Experiment& experiment) {
  if (place.unfinished == nullptr || place.unfinished->tables().empty()) return Status();
  std::unique_ptr<HttpStore> store;
  if (place.kind == TargetKind::kHttp) {
    PARTITA_ASSIGN(store, HttpStore::Make(*place.connection, experiment.fields, place.warn));
  }
  const std::vector<RemoteTable> left = place.unfinished->tables();
  for (const RemoteTable& table : left) {
    if (!IsLabTable(table.name)) continue;
    const bool is_here = store != nullptr && table.endpoint == place.TargetName();
    const Status dropped =
        is_here ? store->DeleteTable(table.name) : Status::NotFound("it is not the target");
    if (dropped.ok()) {
      place.unfinished->TableIsGone(table);
      continue;
    }
    place.warn("table " + table.name + " of " + table.endpoint +
               ", which a run that was killed made, is left: " + dropped.ToString() +
               "; partita lab clean --target deletes it");
  }
  return Status();
}

// Empty when something was completed, or nothing was due.
std::string NothingDone(const Experiment& experiment, const CellFigures& cell) {
  const OpFigures all = Together(cell, std::nullopt);
  if (all.completed > 0 || all.operations == 0) return "";
  std::string text = "layout " + experiment.layouts[cell.layout].name;
  if (RateCountOf(experiment.arrival) > 1)
    text += ", rate " + FineFigure(experiment.arrival.rates[cell.rate]);
  text += ", run " + std::to_string(cell.repeat + 1) + ": none of " + std::to_string(all.operations) +
          " operations was completed";
  return all.first_error.empty() ? text : text + ": " + all.first_error;
}

// A store of its own for one run: at `directory`, or the place's service.
Result<std::unique_ptr<TableStore>> OpenStore(const RunPlace& place, const std::string& directory,
                                              const Experiment& experiment) {
  std::unique_ptr<TableStore> store;
  switch (place.kind) {
    case TargetKind::kHttp: {
      PARTITA_ASSERT(place.connection.has_value());
      PARTITA_ASSIGN(store,
                     HttpStore::Make(*place.connection, experiment.fields, place.warn, place.unfinished));
      break;
    }
    case TargetKind::kRocksDb: {
      PARTITA_ASSIGN(store, OrderedTableStore::Open("rocksdb", directory, experiment));
      break;
    }
    case TargetKind::kEmbedded: {
      PARTITA_ASSIGN(store, EmbeddedStore::Open(directory, experiment, place.io_backend));
      break;
    }
  }
  return store;
}

}  // namespace

std::string RunPlace::TargetName() const {
  return connection ? connection->Endpoint() : TargetKindName(kind);
}

std::string RunResult::LimitsElsewhere() const {
  return "on " + target +
         (kind == TargetKind::kHttp ? ", whose limits are its own" : ", which has no limits");
}

size_t RateCountOf(const Arrival& arrival) {
  return arrival.model == ArrivalModel::kSteps ? 1 : arrival.rates.size();
}

size_t HighestRateOf(const Arrival& arrival) {
  const auto end = arrival.rates.begin() + static_cast<std::ptrdiff_t>(RateCountOf(arrival));
  return static_cast<size_t>(std::max_element(arrival.rates.begin(), end) - arrival.rates.begin());
}

size_t CellCountOf(const Experiment& experiment) {
  return experiment.repeats * RateCountOf(experiment.arrival) * experiment.layouts.size();
}

Result<CellFigures> RunOnNewStore(const RecordGenerator& generator, const RunPlace& place,
                                  const std::string& directory, const Layout& layout, double rate,
                                  const std::function<bool(double seconds, const std::string& cell)>& tell) {
  std::atomic<bool> stop{false};
  const auto tell_of = [&](double seconds, const std::string& cell) {
    if (!tell(seconds, cell)) stop.store(true);
    return !stop.load();
  };
  const auto running = [&](double seconds) { return tell_of(seconds, layout.name); };
  const auto loading = [&](double share) {
    return tell_of(0, layout.name + ", loading " + std::to_string(static_cast<int>(100 * share)) + " %");
  };
  PARTITA_ASSIGN(auto store, OpenStore(place, directory, generator.experiment()));
  PARTITA_ASSIGN(const auto target, Target::Make(std::move(store), layout, generator, stop, loading));
  PARTITA_ASSIGN(CellFigures cell, RunCell(*target, generator, rate, running));
  if (stop.load()) return Status::Cancelled("stopped");
  return cell;
}

Result<RunResult> RunExperiment(const RecordGenerator& generator, const RunPlace& place,
                                const RunProgress& progress) {
  const Experiment& experiment = generator.experiment();
  const Arrival& arrival = experiment.arrival;
  const double cell_s = arrival.warmup_s + arrival.duration_s;
  const double all_s = cell_s * static_cast<double>(CellCountOf(experiment));
  RunResult result{.prediction = Predict(generator),
                   .kind = place.kind,
                   .target = place.TargetName(),
                   .io_backend = place.io_backend,
                   .key_rows = {},
                   .cells = {}};
  const double operations = result.prediction.rate * cell_s;
  result.stream_operations = std::clamp(static_cast<uint64_t>(operations), uint64_t{1'000}, kHashedMax);
  result.stream_hash = HashOfStream(generator, result.stream_operations);
  for (const Layout& layout : experiment.layouts) {
    result.key_rows.push_back(KeyRows(layout, generator).labels());
  }
  PARTITA_TRY(TakeKept(place, experiment, &result));
  PARTITA_TRY(DropTablesLeft(place, experiment));
  PARTITA_ASSIGN(const WorkDirectory work,
                 WorkDirectory::Make(place.unfinished ? place.unfinished->path() : place.directory));
  for (size_t number = result.cells.size(); number < CellCountOf(experiment); ++number) {
    const CellPlace cell_place = PlaceOf(experiment, number);
    const Layout& layout = experiment.layouts[cell_place.layout];
    const double done_s = cell_s * static_cast<double>(number);
    const double rate = experiment.ArrivalOf(layout).rates[cell_place.rate];
    const auto tell = [&](double seconds, const std::string& what) {
      return progress(done_s + seconds, all_s, what);
    };
    PARTITA_ASSIGN(CellFigures cell,
                   RunOnNewStore(generator, place, work.path() + "/store", layout, rate, tell));
    cell.layout = cell_place.layout;
    cell.rate = cell_place.rate;
    cell.repeat = cell_place.repeat;
    if (place.unfinished) PARTITA_TRY(place.unfinished->Keep(cell));
    result.cells.push_back(std::move(cell));
  }
  return result;
}

std::vector<double> FiguresOf(const RunResult& result, size_t layout, size_t rate, std::optional<size_t> op,
                              std::string_view metric) {
  std::vector<double> figures;
  for (const CellFigures& cell : result.cells) {
    if (cell.layout != layout || cell.rate != rate) continue;
    if (metric == kHotShare) {
      figures.push_back(cell.timeline.HotShare());
      continue;
    }
    const OpFigures of = Together(cell, op);
    if (!WasMeasured(metric, of)) continue;
    figures.push_back(MetricOf(metric, of, cell.measured_s, result.prediction.layouts[layout]));
  }
  return figures;
}

std::vector<std::string> FailedExpectations(const Experiment& experiment, const RunResult& result) {
  std::vector<std::string> failed;
  for (const Expectation& expectation : experiment.expectations) {
    const std::string what = Judge(experiment, result, expectation);
    if (!what.empty()) failed.push_back("line " + std::to_string(expectation.line) + ": " + what);
  }
  for (const CellFigures& cell : result.cells) {
    const std::string what = NothingDone(experiment, cell);
    if (!what.empty()) failed.push_back(what);
  }
  return failed;
}

}  // namespace partita::lab

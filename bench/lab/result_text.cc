#include "bench/lab/result_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "api/cli/version.h"
#include "bench/compare/statistics.h"
#include "bench/lab/advice.h"
#include "bench/lab/conditions.h"
#include "bench/lab/json_text.h"
#include "bench/lab/metrics.h"
#include "bench/lab/name_column.h"
#include "bench/lab/unfinished_run.h"

namespace partita::lab {
namespace {

// A layout that refuses more than this share is no candidate for the shortest latency.
constexpr double kThrottledMax = 0.01;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();  // In JSON it is null.

std::string Number(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", number);
  return text;
}

void WriteMetrics(const OpFigures& figures, double seconds, const LayoutPrediction& told, JsonText* json) {
  for (const std::string& metric : MetricNames()) {
    const bool is_told = !IsUntold(metric, figures);
    json->Member(metric, is_told ? MetricOf(metric, figures, seconds, told) : kNoNumber);
  }
  json->Member("throttled_by_account", figures.throttled_by_account);
  if (!figures.first_error.empty()) json->Member("first_error", figures.first_error);
  json->Key("latency_us_counts").BeginLine();
  figures.latency.ForEach([&](uint64_t nanos, uint64_t count) {
    json->BeginArray().Value(nanos / 1000).Value(count).EndArray();
  });
  json->EndLine();
}

// What is spread over rows has endless digits. Four keep the one try that was refused, in a 32nd of its rows.
double Rounded(double number) { return std::round(number * 1e4) / 1e4; }

void WriteTimeline(const Timeline& timeline, JsonText* json) {
  std::vector<uint64_t> due, completed, throttled, ended;
  std::vector<double> p50_ms, p99_ms, max_ms, entities, refused;
  for (const Timeline::Column& column : timeline.columns()) {
    due.push_back(column.due);
    completed.push_back(column.completed);
    throttled.push_back(column.throttled);
    ended.push_back(column.ended);
    max_ms.push_back(static_cast<double>(column.latency_max_ns / 1000) / 1000);
    p50_ms.push_back(std::min(column.latencies.PercentileMs(0.5), max_ms.back()));
    p99_ms.push_back(std::min(column.latencies.PercentileMs(0.99), max_ms.back()));
    for (size_t row = 0; row < timeline.rows(); ++row) {
      entities.push_back(Rounded(column.entities[row]));
      refused.push_back(Rounded(column.refused[row]));
    }
  }
  json->Key("timeline").BeginObject().Member("column_s", timeline.column_s()).Member("rows", timeline.rows());
  json->Numbers("due", due)
      .Numbers("completed", completed)
      .Numbers("throttled", throttled)
      .Numbers("ended", ended);
  json->Numbers("p50_ms", p50_ms).Numbers("p99_ms", p99_ms).Numbers("max_ms", max_ms);
  json->Numbers("entities", entities).Numbers("refused", refused).EndObject();
}

void WriteCell(const Experiment& experiment, const RunResult& result, const CellFigures& cell,
               JsonText* json) {
  json->BeginObject().Member("layout", experiment.layouts[cell.layout].name);
  json->Member("rate", RateText(experiment.arrival, cell.rate)).Member("repeat", cell.repeat);
  json->Member("generator_limited", cell.generator_limited()).Member("late_starts", cell.late_starts);
  json->Member("clients_limited", cell.clients_limited()).Member(kHotShare, cell.timeline.HotShare());
  json->Key("ops").BeginArray();
  for (size_t op = 0; op < cell.ops.size(); ++op) {
    json->BeginObject().Member("op", experiment.ops[op].name);
    WriteMetrics(cell.ops[op], cell.measured_s, result.prediction.layouts[cell.layout], json);
    json->EndObject();
  }
  json->EndArray();
  WriteTimeline(cell.timeline, json);
  json->EndObject();
}

void WriteKeys(const Layout& layout, const std::vector<std::string>& rows, JsonText* json) {
  json->Key("entities").BeginArray();
  for (const EntityPlan& plan : layout.entities) {
    json->BeginObject().Member("copy", plan.name).Member("table", plan.table);
    json->Member("pk", plan.partition_key.text()).Member("rk", plan.row_key.text()).EndObject();
  }
  json->EndArray().Key("key_rows").BeginArray();
  for (const std::string& row : rows) json->Value(row);
  json->EndArray();
}

void WritePrediction(const Experiment& experiment, const RunResult& result, JsonText* json) {
  const Prediction& prediction = result.prediction;
  json->Key("explain").BeginArray();
  for (size_t i = 0; i < experiment.layouts.size(); ++i) {
    const LayoutPrediction& told = prediction.layouts[i];
    json->BeginObject()
        .Member("layout", experiment.layouts[i].name)
        .Member("stored_bytes", told.stored_bytes);
    json->Member("hottest_partition", told.hottest_partition).Member("hottest_rate", told.hottest_rate);
    json->Member("account_rate", told.account_rate);
    json->Member("own_arrival", OwnArrivalText(experiment.layouts[i]));
    WriteKeys(experiment.layouts[i], result.key_rows[i], json);
    json->Key("ops").BeginArray();
    for (size_t op = 0; op < told.ops.size(); ++op) {
      const OpPrediction& of = told.ops[op];
      json->BeginObject()
          .Member("op", experiment.ops[op].name)
          .Member("kind", OpKindName(experiment.ops[op].kind))
          .Member("plan", of.plan)
          .Member("filter", of.filter);
      json->Member("copy", of.from).Member("lookups", of.lookups).Member("sorts", of.sorts);
      json->Member("client_filters", of.client_filters);
      json->Member("partitions", of.partitions).Member("transactions", of.requests);
      json->Member("scanned", of.scanned).Member("returned", of.returned).Member("written", of.written);
      json->Member("atomic", of.atomic).EndObject();
    }
    json->EndArray().EndObject();
  }
  json->EndArray();
}

bool IsSlow(const CellFigures& cell) { return cell.generator_limited(); }
bool IsBusy(const CellFigures& cell) { return cell.clients_limited(); }

// Of the runs of a layout at a rate.
template <typename Is>
bool AnyRun(const RunResult& result, size_t layout, size_t rate, const Is& is) {
  return std::any_of(result.cells.begin(), result.cells.end(), [&](const CellFigures& cell) {
    return cell.layout == layout && cell.rate == rate && is(cell);
  });
}

bool MissesP99(const Experiment& experiment, const RunResult& result, size_t layout, size_t rate, size_t op) {
  return experiment.goal.p99_ms &&
         bench::Median(FiguresOf(result, layout, rate, op, "p99_ms")) > *experiment.goal.p99_ms;
}

// Of each run of a layout, 0 where nothing was completed: runs of one repeat are compared.
std::vector<double> P99OfEachRun(const RunResult& result, size_t layout, size_t rate, size_t op) {
  std::vector<double> figures;
  for (const CellFigures& cell : result.cells) {
    if (cell.layout != layout || cell.rate != rate) continue;
    figures.push_back(MetricOf("p99_ms", cell.ops[op], cell.measured_s, {}));
  }
  return figures;
}

// Why a layout may not win: it did not do all in every run, or not as the goal wants it, or the machine was
// too slow for the load, or there were too few clients. Empty: it may.
std::string BarredBy(const Experiment& experiment, const RunResult& result, size_t layout, size_t rate,
                     size_t op) {
  const auto any = [&](const auto& is) { return AnyRun(result, layout, rate, is); };
  const auto share = [&](const char* metric) {
    return bench::Median(FiguresOf(result, layout, rate, op, metric));
  };
  const double refused_max = experiment.goal.throttled.value_or(kThrottledMax);
  if (any([&](const CellFigures& cell) { return cell.ops[op].failed > 0; })) return "operations failed";
  const bool finds_nothing = any([&](const CellFigures& cell) { return FindsNothingTooOften(cell.ops[op]); });
  if (finds_nothing) return "found nothing too often";
  const bool completed_none = any(
      [&](const CellFigures& cell) { return cell.ops[op].operations > 0 && cell.ops[op].completed == 0; });
  if (share("throttled") > refused_max) return "throttled";
  if (share("dropped") > refused_max) return "not all was done";
  if (completed_none) return "none was completed in a run";
  if (MissesP99(experiment, result, layout, rate, op)) return "p99 above the goal";
  if (any(IsSlow)) return "machine too slow";
  if (any(IsBusy)) return "all clients were busy";
  return "";
}

// Who is asked for less is no faster for it.
bool LoadsDiffer(const Experiment& experiment) {
  return std::any_of(experiment.layouts.begin(), experiment.layouts.end(), [&](const Layout& layout) {
    return experiment.ArrivalOf(layout) != experiment.ArrivalOf(experiment.layouts.front());
  });
}

// The layout that is best beyond doubt, or why there is none.
struct Verdict {
  std::optional<size_t> winner;
  std::string why;
};

Verdict VerdictOn(const Experiment& experiment, const RunResult& result, size_t rate, size_t op) {
  const auto none = [](std::string why) { return Verdict{.winner = {}, .why = std::move(why)}; };
  const bool was_due = std::any_of(result.cells.begin(), result.cells.end(), [&](const CellFigures& cell) {
    return cell.rate == rate && cell.ops[op].operations > 0;
  });
  if (!was_due) return none("nothing was due");
  if (LoadsDiffer(experiment)) return none("loads differ: a layout has an arrival of its own");
  std::vector<size_t> candidates;
  std::vector<std::vector<double>> figures;
  std::string barred;
  for (size_t layout = 0; layout < experiment.layouts.size(); ++layout) {
    const std::string& name = experiment.layouts[layout].name;
    const std::string why = BarredBy(experiment, result, layout, rate, op);
    if (!why.empty()) barred += (barred.empty() ? "" : ", ") + name + " (" + why + ")";
    if (!why.empty()) continue;
    candidates.push_back(layout);
    figures.push_back(P99OfEachRun(result, layout, rate, op));
  }
  if (const auto best = SmallestBeyondDoubt(figures)) return {.winner = candidates[*best], .why = {}};
  if (experiment.layouts.size() == 1) return none("there is one layout only");
  if (candidates.empty()) return none("no layout qualifies: " + barred);
  if (candidates.size() == 1) {
    return none("only " + experiment.layouts[candidates[0]].name + " qualifies: " + barred);
  }
  if (experiment.repeats < kRoundsMin) return none("it takes three repeats");
  return none("not beyond doubt");
}

// Of each operation at each rate: the layout that is best beyond doubt, if there is one.
void WriteVerdicts(const Experiment& experiment, const RunResult& result, JsonText* json) {
  json->Key("verdicts").BeginArray();
  for (size_t rate = 0; rate < RateCountOf(experiment.arrival); ++rate) {
    for (size_t op = 0; op < experiment.ops.size(); ++op) {
      const Verdict verdict = VerdictOn(experiment, result, rate, op);
      json->BeginObject().Member("rate", RateText(experiment.arrival, rate));
      json->Member("op", experiment.ops[op].name);
      json->Member("winner", verdict.winner ? experiment.layouts[*verdict.winner].name : "");
      json->Member("why", verdict.why).EndObject();
    }
  }
  json->EndArray();
}

void WriteConditions(const Experiment& experiment, const RunResult& result, JsonText* json) {
  const auto write = [&](const char* name, const Conditions& conditions) {
    json->Key(name).BeginObject();
    for (const auto& [condition, text] : conditions) json->Member(condition, text);
    json->EndObject();
  };
  write("asked_for", AskedForBy(experiment));
  write("ran_on", RanOn(experiment, result));
}

void WriteAdvice(const Experiment& experiment, const RunResult& result, JsonText* json) {
  json->Key("advice").BeginArray();
  for (const Advice& advice : AdviceOn(experiment, result)) {
    json->BeginObject().Member("layout", experiment.layouts[advice.layout].name);
    json->Member("op", advice.op ? experiment.ops[*advice.op].name : "")
        .Member("text", advice.text)
        .EndObject();
  }
  json->EndArray();
}

}  // namespace

std::string RateText(const Arrival& arrival, size_t rate) {
  if (arrival.model == ArrivalModel::kClosed)
    return std::to_string(arrival.clients) + " clients, closed loop";
  if (arrival.model == ArrivalModel::kReplay) return "replay";
  std::string text = std::string(ArrivalModelName(arrival.model)) + " " + Number(arrival.rates[rate]);
  if (arrival.model == ArrivalModel::kRamp) text += " to " + Number(arrival.rate_end);
  for (size_t step = 1; arrival.model == ArrivalModel::kSteps && step < arrival.rates.size(); ++step) {
    text += ", " + Number(arrival.rates[step]);
  }
  return text + "/s";
}

std::string OwnArrivalText(const Layout& layout) {
  std::string text;
  for (size_t rate = 0; layout.arrival && rate < RateCountOf(*layout.arrival); ++rate) {
    text += (text.empty() ? "" : ", ") + RateText(*layout.arrival, rate);
  }
  return text;
}

std::string ResultJson(const Experiment& experiment, const RunResult& result) {
  char hash[24];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(result.stream_hash));
  JsonText json;
  json.BeginObject().Member("format", 1).Member("partita", kPartitaVersion).Member("name", experiment.name);
  json.Member("seed", experiment.seed).Member("stream_hash", hash);
  json.Member("seed_text", std::to_string(experiment.seed));
  json.Member("stream_operations", result.stream_operations).Member("repeats", experiment.repeats);
  json.Member("records", experiment.records).Member("arrival", ArrivalModelName(experiment.arrival.model));
  json.Member("warmup_s", experiment.arrival.warmup_s).Member("duration_s", experiment.arrival.duration_s);
  json.Member("limits", ThroughputText(experiment.limits));
  json.Member("target", result.target)
      .Member("description", experiment.description)
      .Member("rate", result.prediction.rate);
  json.Member("build", BuildOfProgram()).Member("cells_kept", result.cells_kept);
  json.Member("partition_rate", experiment.limits.partition_rate);
  json.Member("account_rate", experiment.limits.account_rate);
  WriteConditions(experiment, result, &json);
  WriteVerdicts(experiment, result, &json);
  WriteAdvice(experiment, result, &json);
  WritePrediction(experiment, result, &json);
  json.Key("cells").BeginArray();
  for (const CellFigures& cell : result.cells) WriteCell(experiment, result, cell, &json);
  json.EndArray().Key("failed_expectations").BeginArray();
  for (const std::string& failed : FailedExpectations(experiment, result)) json.Value(failed);
  json.EndArray().EndObject();
  return json.text() + "\n";
}

namespace {

std::string LimitsText(const Experiment& experiment, const RunResult& result) {
  if (!result.is_embedded()) return result.LimitsElsewhere();
  return "limits " + ThroughputText(experiment.limits);
}

// Of all runs.
OpFigures AllOf(const RunResult& result, size_t layout, size_t rate, size_t op) {
  OpFigures all;
  for (const CellFigures& cell : result.cells) {
    if (cell.layout == layout && cell.rate == rate) all.Add(cell.ops[op]);
  }
  return all;
}

// A line of its own for what was not done in any of the runs; empty: all was.
std::string TroubleText(const OpFigures& all) {
  if (all.operations == 0) return "  ! nothing was due\n";
  std::string text;
  if (all.failed > 0) text += std::to_string(all.failed) + " failed: " + all.first_error;
  if (all.missing > 0) text += (text.empty() ? "" : "; ") + std::to_string(all.missing) + " found nothing";
  return text.empty() ? "" : "  ! " + text + "\n";
}

// The first columns of the table.
struct VerdictNames {
  NameColumn ops, layouts;
  std::string Of(std::string_view op, std::string_view layout) const {
    return ops.Of(op) + layouts.Of(layout);
  }
};

std::string VerdictRow(const Experiment& experiment, const RunResult& result, const VerdictNames& names,
                       size_t layout, size_t rate, size_t op, bool wins) {
  // The median of the runs that have such a figure, or a dash where none has.
  const auto median = [&](std::string_view metric, const char* form, double times = 1) {
    std::vector<double> figures;
    for (const CellFigures& cell : result.cells) {
      if (cell.layout != layout || cell.rate != rate || !HasFigure(metric, cell.ops[op])) continue;
      figures.push_back(times *
                        MetricOf(metric, cell.ops[op], cell.measured_s, result.prediction.layouts[layout]));
    }
    char text[40] = "-";
    if (!figures.empty()) std::snprintf(text, sizeof(text), form, bench::Median(figures));
    return std::string(text);
  };
  char line[120];
  std::snprintf(line, sizeof(line), "%10s %9s %9s %9s %9s %9s %8s", median("throughput", "%.1f").c_str(),
                median("p50_ms", "%.3f").c_str(), median("p99_ms", "%.3f").c_str(),
                median("throttled", "%.1f%%", 100).c_str(), median("scanned", "%.1f").c_str(),
                median("transactions", "%.2f").c_str(), median("density", "%.3f").c_str());
  std::string text =
      names.Of(layout == 0 ? experiment.ops[op].name : "", experiment.layouts[layout].name) + line;
  if (wins) text += " *";
  if (const auto& own = experiment.layouts[layout].arrival) text += " under " + RateText(*own, rate);
  if (MissesP99(experiment, result, layout, rate, op)) text += " p99-above-goal";
  if (AnyRun(result, layout, rate, IsSlow)) text += " generator-limited";
  if (AnyRun(result, layout, rate, IsBusy)) text += " clients-limited";
  return text + "\n" + TroubleText(AllOf(result, layout, rate, op));
}

// Beneath the table: what its marks mean, and what the figures do not tell.
std::string NotesText(const Experiment& experiment, const RunResult& result) {
  std::string text =
      "* shortest p99 beyond doubt (95 % intervals), where nothing failed, all was found and the goal was "
      "met; "
      "latency counts from when an operation was due\n";
  if (LoadsDiffer(experiment)) text += "loads differ, so no layout gets a star: see under which each was\n";
  for (size_t layout = 0; result.is_embedded() && layout < experiment.layouts.size(); ++layout) {
    const std::string allowed = AllowanceText(experiment, result.prediction.layouts[layout]);
    if (!allowed.empty()) text += experiment.layouts[layout].name + ": " + allowed + "\n";
  }
  if (result.cells_kept > 0) {
    text += "resumed: " + std::to_string(result.cells_kept) + " of " + std::to_string(result.cells.size()) +
            " runs were done before an interruption\n";
  }
  if (std::any_of(result.cells.begin(), result.cells.end(), IsSlow)) {
    text += "generator-limited: this machine was too slow for the load in some runs, which get no star\n";
  }
  if (std::any_of(result.cells.begin(), result.cells.end(), IsBusy)) {
    text +=
        "clients-limited: all " + std::to_string(experiment.arrival.clients) +
        " clients were busy in some runs, which get no star: more of them (clients in [arrival]) might do "
        "more\n";
  }
  return text;
}

}  // namespace

std::string VerdictTable(const Experiment& experiment, const RunResult& result) {
  std::string text;
  const VerdictNames names{.ops = NameColumn("operation", experiment.ops),
                           .layouts = NameColumn("layout", experiment.layouts)};
  char line[120];
  std::snprintf(line, sizeof(line), "%10s %9s %9s %9s %9s %9s %8s\n", "done/s", "p50 ms", "p99 ms",
                "throttled", "scanned", "requests", "density");
  for (size_t rate = 0; rate < RateCountOf(experiment.arrival); ++rate) {
    text += experiment.name + ", " + RateText(experiment.arrival, rate) + ", " +
            LimitsText(experiment, result) + "; medians of " + std::to_string(experiment.repeats) +
            " run(s)\n";
    text += names.Of("operation", "layout") + line;
    for (size_t op = 0; op < experiment.ops.size(); ++op) {
      const std::optional<size_t> winner = VerdictOn(experiment, result, rate, op).winner;
      for (size_t layout = 0; layout < experiment.layouts.size(); ++layout) {
        text += VerdictRow(experiment, result, names, layout, rate, op, winner == layout);
      }
    }
  }
  return text + NotesText(experiment, result);
}

}  // namespace partita::lab

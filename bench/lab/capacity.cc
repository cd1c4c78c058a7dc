#include "bench/lab/capacity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "bench/lab/json_text.h"
#include "bench/lab/metrics.h"
#include "bench/lab/name_column.h"
#include "bench/lab/work_directory.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

constexpr double kRangeSearched = 64;
constexpr double kRatioWanted = 1.1;
constexpr double kRefusedMax = 0.01;  // Where the goal does not say.
constexpr double kPaceMin = 0.95;     // Of the rate at which operations were due.
constexpr int kProbesTold = 9;        // About as many a layout takes.

std::string CapacityOf(const LayoutCapacity& capacity) {
  char text[64];
  if (capacity.search.rate == 0) {
    std::snprintf(text, sizeof(text), "below %.0f", capacity.search.broken_at);
  } else {
    std::snprintf(text, sizeof(text), "%s%.0f", capacity.search.broken_at == 0 ? "at least " : "",
                  capacity.search.rate);
  }
  return text;
}

std::string MissedByOne(const Goal& goal, const OpFigures& figures, double measured_s) {
  const auto metric = [&](const char* name) { return MetricOf(name, figures, measured_s, {}); };
  const double refused_max = goal.throttled.value_or(kRefusedMax);
  if (figures.failed > 0) {
    return "operations failed" + (figures.first_error.empty() ? "" : ": " + figures.first_error);
  }
  if (FindsNothingTooOften(figures)) return "found nothing too often";
  if (metric("throttled") > refused_max) return "throttled";
  if (metric("dropped") > refused_max) return "not done";
  if (goal.p99_ms && metric("p99_ms") > *goal.p99_ms) return "p99";
  return "";
}

// Of the operation whose p99 is the longest.
double LongestP99Ms(const CellFigures& cell) {
  double longest = 0;
  for (const OpFigures& figures : cell.ops) {
    longest = std::max(longest, MetricOf("p99_ms", figures, cell.measured_s, {}));
  }
  return longest;
}

}  // namespace

std::string MissedBy(const Experiment& experiment, const CellFigures& cell) {
  OpFigures all;
  for (size_t op = 0; op < cell.ops.size(); ++op) {
    const std::string missed = MissedByOne(experiment.goal, cell.ops[op], cell.measured_s);
    if (!missed.empty()) return missed + (cell.ops.size() > 1 ? " (" + experiment.ops[op].name + ")" : "");
    all.Add(cell.ops[op]);
  }
  // What is due for longer than it was asked for lags behind, however short the goal lets it wait. One
  // operation more or less is no sign of it.
  const double due = static_cast<double>(all.operations) * cell.measured_s / experiment.arrival.duration_s;
  if (static_cast<double>(all.completed + all.dropped) + 1 < kPaceMin * due) return "fell behind";
  return "";
}

Result<CapacitySearch> SearchCapacity(double lowest, double highest,
                                      const std::function<Result<bool>(double rate)>& holds) {
  PARTITA_ASSERT(lowest > 0 && lowest < highest);
  CapacitySearch search;
  const auto probe = [&](double rate) -> Result<bool> {
    search.probes.push_back(rate);
    PARTITA_ASSIGN(const bool held, holds(rate));
    if (!held && (search.broken_at == 0 || rate < search.broken_at)) search.broken_at = rate;
    return held;
  };
  PARTITA_ASSIGN(const bool all_hold, probe(highest));
  if (all_hold) {
    search.rate = highest;
    return search;
  }
  PARTITA_ASSIGN(const bool any_holds, probe(lowest));
  if (!any_holds) return search;
  double below = lowest, above = highest;
  while (above / below > kRatioWanted) {
    const double middle = std::sqrt(below * above);
    PARTITA_ASSIGN(const bool held, probe(middle));
    (held ? below : above) = middle;
  }
  // What held once, near the edge, may have been luck: it must hold twice.
  int held_times = 1;
  for (double rate = below; rate > lowest;) {
    PARTITA_ASSIGN(const bool held, probe(rate));
    if (!held) {
      rate /= kRatioWanted;
      held_times = 0;
    } else if (++held_times == 2) {
      search.rate = rate;
      return search;
    }
  }
  search.rate = lowest;
  return search;
}

Result<std::vector<LayoutCapacity>> FindCapacities(const RecordGenerator& generator, const RunPlace& place,
                                                   const RunProgress& progress) {
  const Experiment& experiment = generator.experiment();
  const Arrival& arrival = experiment.arrival;
  const bool all_alike = std::none_of(experiment.layouts.begin(), experiment.layouts.end(),
                                      [](const Layout& layout) { return layout.arrival.has_value(); });
  if (!all_alike) {
    return Status::InvalidArgument("a capacity is sought where no layout has an arrival of its own");
  }
  if (arrival.model != ArrivalModel::kConstant && arrival.model != ArrivalModel::kPoisson) {
    return Status::InvalidArgument("a capacity is sought with arrival constant or poisson");
  }
  if (!experiment.goal.p99_ms && !experiment.goal.throttled) {
    return Status::InvalidArgument("a capacity is the highest rate that meets [goal], which is missing");
  }
  PARTITA_ASSIGN(const WorkDirectory work, WorkDirectory::Make(place.directory));
  const double cell_s = arrival.warmup_s + arrival.duration_s;
  const double all_s = cell_s * kProbesTold * static_cast<double>(experiment.layouts.size());
  const double highest = *std::max_element(arrival.rates.begin(), arrival.rates.end());
  std::vector<LayoutCapacity> capacities;
  for (const Layout& layout : experiment.layouts) {
    LayoutCapacity capacity;
    size_t probes = 0;
    double broken_at = 0;
    std::map<double, double> p99_ms;  // By rate.
    const auto holds = [&](double rate) -> Result<bool> {
      const double done_s = cell_s * static_cast<double>(capacities.size() * kProbesTold +
                                                         std::min<size_t>(probes++, kProbesTold - 1));
      const auto tell = [&](double seconds, const std::string& what) {
        return progress(done_s + seconds, all_s, what);
      };
      PARTITA_ASSIGN(const CellFigures cell,
                     RunOnNewStore(generator, place, work.path() + "/store", layout, rate, tell));
      capacity.generator_limited |= cell.generator_limited();
      capacity.clients_limited |= cell.clients_limited();
      const std::string missed = MissedBy(experiment, cell);
      if (missed.empty()) {
        p99_ms[rate] = LongestP99Ms(cell);
        return true;
      }
      if (broken_at == 0 || rate < broken_at) capacity.broken = missed;
      broken_at = broken_at == 0 ? rate : std::min(broken_at, rate);
      return false;
    };
    PARTITA_ASSIGN(capacity.search, SearchCapacity(highest / kRangeSearched, highest, holds));
    if (capacity.search.rate > 0) capacity.p99_ms = p99_ms.at(capacity.search.rate);
    capacities.push_back(std::move(capacity));
  }
  return capacities;
}

std::vector<std::string> FailedCapacities(const Experiment& experiment,
                                          const std::vector<LayoutCapacity>& capacities) {
  std::vector<std::string> failed;
  for (size_t i = 0; i < capacities.size(); ++i) {
    if (capacities[i].search.rate > 0) continue;
    char rate[32];
    std::snprintf(rate, sizeof(rate), "%.6g", capacities[i].search.broken_at);
    failed.push_back(
        "layout " + experiment.layouts[i].name + ": not even " + rate +
        " operations a second, the lowest rate that is tried, meet the goal: " + capacities[i].broken);
  }
  return failed;
}

std::string CapacityText(const Experiment& experiment, const std::vector<LayoutCapacity>& capacities) {
  std::string text = experiment.name + ": operations a second that meet the goal\n";
  const NameColumn names("layout", experiment.layouts);
  char line[100];
  std::snprintf(line, sizeof(line), "%16s %9s  %s\n", "operations/s", "p99 ms", "above it");
  text += names.Of("layout") + line;
  for (size_t i = 0; i < capacities.size(); ++i) {
    char p99[32] = "-";
    if (capacities[i].p99_ms) std::snprintf(p99, sizeof(p99), "%.3f", *capacities[i].p99_ms);
    std::snprintf(line, sizeof(line), "%16s %9s  ", CapacityOf(capacities[i]).c_str(), p99);
    text += names.Of(experiment.layouts[i].name) + line + capacities[i].broken +
            (capacities[i].generator_limited ? " (this machine may be the limit)\n" : "\n");
    if (capacities[i].clients_limited) {
      text += "  ! in some runs all " + std::to_string(experiment.arrival.clients) +
              " clients were busy: more of them (clients in [arrival]) might carry more\n";
    }
  }
  text += "sought from a 64th of the experiment's highest rate up to that; what lies between held twice\n";
  if (!experiment.limits.IsOff()) {
    text +=
        "a target lets two seconds' worth through before it refuses: runs of a few seconds carry more than "
        "long ones\n";
  }
  return text;
}

std::string CapacityJson(const Experiment& experiment, const std::vector<LayoutCapacity>& capacities) {
  JsonText json;
  json.BeginObject().Member("format", 1).Member("name", experiment.name).Member("seed", experiment.seed);
  json.Key("capacities").BeginArray();
  for (size_t i = 0; i < capacities.size(); ++i) {
    const LayoutCapacity& of = capacities[i];
    json.BeginObject().Member("layout", experiment.layouts[i].name).Member("rate", of.search.rate);
    json.Member("broken_at", of.search.broken_at).Member("broken", of.broken);
    json.Member("p99_ms", of.p99_ms.value_or(std::numeric_limits<double>::quiet_NaN()));  // Null in JSON.
    json.Member("generator_limited", of.generator_limited).Member("clients_limited", of.clients_limited);
    json.Numbers("probes", of.search.probes).EndObject();
  }
  return json.EndArray().EndObject().text() + "\n";
}

}  // namespace partita::lab

#include "bench/compare/report.h"

#include "bench/load/format_text.h"
#include "bench/load/tally.h"

namespace partita::bench {
namespace {

uint64_t RowBytes(const Report& report) { return kRowKeyBytes + report.config.load.value_size; }

const char* DurabilityText(DurabilityLevel level) {
  if (level == DurabilityLevel::kPower) return "power";
  return level == DurabilityLevel::kProcess ? "process" : "memory";
}

std::string GoalsTable(const Report& report) {
  std::string table =
      Format("| %-25s | %-19s | %-10s | %-17s | %10s | %6s | %-13s | %6s | %9s | %9s | %-14s | %-10s |\n",
             "workload", "figure", report.subject().c_str(), "peer", "its figure", "ratio", "95 %", "rounds",
             "floor", "target", "verdict", "durability");
  table += "|---|---|--:|---|--:|--:|---|--:|--:|--:|---|---|\n";
  for (const GoalResult& goal : report.goals) {
    const bool bound = goal.goal->against.empty();
    const char* form = bound || !goal.goal->metric->more_is_better ? "<= %.6g" : "%.6g";
    table += Format(
        "| %-25s | %-19s | %10s | %-17s | %10s | %6s | %-13s | %6zu | %9s | %9s | %-14s | %-10s |\n",
        std::string(goal.goal->workload).c_str(), std::string(goal.goal->metric->name).c_str(),
        ShortNumber(goal.own).c_str(), bound ? "" : goal.peer.c_str(),
        bound ? "" : ShortNumber(goal.peers).c_str(), bound ? "" : Format("%.2f", goal.ratio.median).c_str(),
        bound ? "" : Format("%.2f to %.2f", goal.ratio.lower, goal.ratio.upper).c_str(), goal.ratio.rounds,
        Format(form, goal.goal->floor).c_str(), Format(form, goal.goal->target).c_str(),
        std::string(VerdictText(goal.verdict)).c_str(), DurabilityOf(report, goal.goal->workload));
  }
  return table;
}

std::string FiguresOfAll(const Report& report, const std::string& workload, const Metric& metric) {
  std::string cells;
  for (const std::string& engine : report.config.engines) {
    const double figure = MedianOf(report, engine, workload, metric);
    cells += Format(" %10s |", figure > 0 ? ShortNumber(figure).c_str() : "");
  }
  return cells;
}

std::string RatesTable(const Report& report) {
  std::string table = Format("| %-25s |", "ops/s"), rule = "|---|";
  for (const std::string& engine : report.config.engines) {
    table += Format(" %10s |", engine.c_str());
    rule += "--:|";
  }
  table += Format(" %8s | %-17s | %-10s |\n", "of limit", "which is", "durability") + rule + "--:|---|---|\n";
  const Probes probes = MedianProbes(report);
  const LoadConfig& load = report.config.load;
  const double memory_times = static_cast<double>(load.keys * RowBytes(report)) /
                              static_cast<double>(load.engine_config.memory_bytes);
  for (const std::string& workload : report.config.workloads) {
    table += Format("| %-25s |", workload.c_str()) + FiguresOfAll(report, workload, RateMetric());
    const std::optional<Limit> limit =
        LimitOf(workload, probes, RowBytes(report), report.machine.usable_cores, memory_times);
    const double share = limit.has_value() && limit->rate > 0
                             ? MedianOf(report, report.subject(), workload, RateMetric()) / limit->rate
                             : 0;
    const char* durability = DurabilityOf(report, workload);
    table += share > 0
                 ? Format(" %8.2f | %-17s | %-10s |\n", share, std::string(limit->by).c_str(), durability)
                 : Format(" %8s | %-17s | %-10s |\n", "", "", durability);
    if (!IsPaced(workload)) continue;
    table += Format("| %-25s |", (workload + ", p99 us").c_str()) +
             FiguresOfAll(report, workload, LatencyMetric()) +
             Format(" %8s | %-17s | %-10s |\n", "", "", durability);
  }
  return table;
}

std::string ProbesTable(const Report& report) {
  if (report.result.probes.empty()) return "";
  std::string table = Format("| %-17s | %10s | %-52s |\n|---|--:|---|\n", "probe", "a second", "what");
  const Probes probes = MedianProbes(report);
  for (const ProbeInfo& info : ProbeInfos()) {
    table += Format("| %-17s | %10s | %-52s |\n", std::string(info.name).c_str(),
                    ShortNumber(probes.*info.figure).c_str(), std::string(info.meaning).c_str());
  }
  return table;
}

std::string Quoted(const std::string& text) { return "\"" + EscapedForJson(text) + "\""; }

std::string GoalJson(const GoalResult& goal) {
  return "{\"workload\": " + Quoted(std::string(goal.goal->workload)) +
         ", \"figure\": " + Quoted(std::string(goal.goal->metric->name)) +
         ", \"peer\": " + Quoted(goal.peer) +
         Format(", \"own\": %.4f, \"peers\": %.4f, \"ratio\": %.4f, \"lower\": %.4f, \"upper\": %.4f, ",
                goal.own, goal.peers, goal.ratio.median, goal.ratio.lower, goal.ratio.upper) +
         Format("\"rounds\": %zu, \"floor\": %.4g, \"target\": %.4g, \"verdict\": ", goal.ratio.rounds,
                goal.goal->floor, goal.goal->target) +
         Quoted(std::string(VerdictText(goal.verdict))) + "}";
}

std::string ProbesJson(const Probes& probes) {
  std::string json = "{";
  for (const ProbeInfo& info : ProbeInfos()) {
    if (json.size() > 1) json += ", ";
    json += Quoted(std::string(info.name)) + Format(": %.1f", probes.*info.figure);
  }
  return json + "}";
}

// "name": [item, item], each item on a line.
template <typename Items, typename Print>
std::string JsonList(const char* name, const Items& items, const Print& print) {
  std::string json = std::string("  \"") + name + "\": [";
  bool first = true;
  for (const auto& item : items) {
    json += (first ? "\n    " : ",\n    ") + print(item);
    first = false;
  }
  return json + "]";
}

}  // namespace

Report MakeReport(const ComparisonConfig& config, ComparisonResult result) {
  Report report{.config = config,
                .result = std::move(result),
                .machine = Machine::Describe(config.load.engine_config.directory),
                .goals = {}};
  report.goals = JudgeGoals(report.result, report.subject(),
                            {.data_bytes = config.load.keys * RowBytes(report),
                             .memory_bytes = config.load.engine_config.memory_bytes,
                             .value_bytes = config.load.value_size,
                             .seconds = config.load.seconds});
  return report;
}

std::vector<std::string> ConditionsOf(const Report& report) {
  const LoadConfig& load = report.config.load;
  std::vector<std::string> lines;
  lines.push_back(report.machine.ToText());
  lines.push_back(Format("%llu rows of %llu bytes with their keys; budget of each engine %llu MiB",
                         static_cast<unsigned long long>(load.keys),
                         static_cast<unsigned long long>(RowBytes(report)),
                         static_cast<unsigned long long>(load.engine_config.memory_bytes >> 20)));
  lines.push_back("memory is bounded by " + report.result.memory_limit);
  lines.push_back(std::string("writes last a loss of ") + DurabilityText(load.engine_config.durability) +
                  "; those of sync-write, async-write and egt-if a loss of power");
  lines.push_back(
      Format("%u rounds in turns, %.3g s each, %.1f minutes in all; load of the machine %.1f before, "
             "%.1f after",
             report.config.rounds, load.seconds, report.result.minutes, report.result.load_before,
             report.result.load_after));
  if (report.result.stopped) lines.emplace_back("ended before all was measured");
  return lines;
}

std::string ToText(const Report& report) {
  std::string text;
  for (const std::string& line : ConditionsOf(report)) text += line + "\n";
  if (!report.goals.empty()) text += "\n" + GoalsTable(report);
  text += "\n" + RatesTable(report);
  const std::string probes = ProbesTable(report);
  if (!probes.empty()) text += "\n" + probes;
  for (size_t i = 1; i < report.config.engines.size(); ++i) {
    const std::vector<std::string> led = WorkloadsLedBy(report, report.config.engines[i]);
    if (led.empty()) continue;
    text += "\n" + report.config.engines[i] + " is ahead in rate in:";
    for (const std::string& workload : led) text += " " + workload;
  }
  for (const std::string& line : WhatIsMissing(report)) text += "\nnot measured: " + line;
  return text + "\n";
}

std::string ToJson(const Report& report) {
  const LoadConfig& load = report.config.load;
  std::string json = "{\n  \"machine\": " + Quoted(report.machine.ToText()) + ",\n";
  json += Format("  \"keys\": %llu, \"value_bytes\": %zu, \"memory_bytes\": %llu, \"seconds\": %.3f,\n",
                 static_cast<unsigned long long>(load.keys), load.value_size,
                 static_cast<unsigned long long>(load.engine_config.memory_bytes), load.seconds);
  json += JsonList("conditions", ConditionsOf(report), Quoted) + ",\n";
  json += JsonList("probes", report.result.probes, ProbesJson) + ",\n";
  json += JsonList("measurements", report.result.measurements,
                   [&](const RoundMeasurement& m) {
                     return "{\"round\": " + std::to_string(m.round) + ", \"durability\": \"" +
                            DurabilityOf(report, m.workload) + "\", " + JsonObject(m).substr(1);
                   }) +
          ",\n";
  json += JsonList("goals", report.goals, GoalJson) + ",\n";
  json += JsonList("failures", report.result.failures, [](const Failure& failure) {
    return "{\"engine\": " + Quoted(failure.engine) + ", \"workload\": " + Quoted(failure.workload) +
           ", \"round\": " + std::to_string(failure.round) + ", \"error\": " + Quoted(failure.error) + "}";
  });
  return json + "\n}\n";
}

double MedianOf(const Report& report, const std::string& engine, const std::string& workload,
                const Metric& metric) {
  std::vector<double> rounds = RoundsOf(report.result, engine, workload, metric);
  std::erase(rounds, 0.0);
  return Median(std::move(rounds));
}

Probes MedianProbes(const Report& report) {
  Probes median;
  for (const ProbeInfo& info : ProbeInfos()) {
    std::vector<double> values;
    for (const Probes& probes : report.result.probes) values.push_back(probes.*info.figure);
    median.*info.figure = Median(std::move(values));
  }
  return median;
}

const char* DurabilityOf(const Report& report, std::string_view workload) {
  return DurabilityText(IsDurable(std::string(workload)) ? DurabilityLevel::kPower
                                                         : report.config.load.engine_config.durability);
}

std::string_view VerdictText(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTarget:
      return "target met";
    case Verdict::kFloor:
      return "floor met";
    case Verdict::kMissed:
      return "BELOW FLOOR";
    case Verdict::kTooFewRounds:
      return "too few rounds";
    case Verdict::kTooFewRows:
      return "too few rows";
    case Verdict::kTooShort:
      return "too short";
    case Verdict::kOtherValues:
      return "other values";
  }
  return "";
}

std::vector<std::string> WhatIsMissing(const Report& report) {
  std::vector<std::string> lines;
  for (const RoundMeasurement& m : report.result.measurements) {
    if (!m.IsCorrect()) lines.push_back(m.engine + ", " + m.workload + ": " + WrongAnswersText(m));
    if (!m.KeptPace()) lines.push_back(m.engine + ", " + m.workload + ": " + PaceLostText(m));
  }
  for (const Failure& failure : report.result.failures) {
    lines.push_back(failure.engine + ", " + failure.workload + ": " + failure.error);
  }
  return lines;
}

std::vector<std::string> WorkloadsLedBy(const Report& report, const std::string& engine) {
  std::vector<std::string> led;
  for (const std::string& workload : report.config.workloads) {
    if (IsPaced(workload)) continue;
    const double own = MedianOf(report, report.subject(), workload, RateMetric());
    if (own > 0 && MedianOf(report, engine, workload, RateMetric()) > own) led.push_back(workload);
  }
  return led;
}

}  // namespace partita::bench

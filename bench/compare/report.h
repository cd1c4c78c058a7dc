#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/comparison.h"
#include "bench/compare/goals.h"
#include "bench/compare/machine.h"

namespace partita::bench {

// Everything that the three forms of a comparison's result tell.
struct Report {
  ComparisonConfig config;
  ComparisonResult result;
  Machine machine;
  std::vector<GoalResult> goals;  // Of the first engine.

  const std::string& subject() const { return config.engines.front(); }
};
Report MakeReport(const ComparisonConfig& config, ComparisonResult result);

// The lines that say under what conditions it was measured.
std::vector<std::string> ConditionsOf(const Report& report);

// The goals with their verdicts, the rates of all engines, the probes: tables that read well as text and
// as Markdown.
std::string ToText(const Report& report);

// One JSON object: machine, how many rows of what size, with what memory and for how long, conditions,
// probes, measurements, goals, failures.
std::string ToJson(const Report& report);

// The medians that the tables and charts show.
double MedianOf(const Report& report, const std::string& engine, const std::string& workload,
                const Metric& metric);
// Of each probe over the rounds.
Probes MedianProbes(const Report& report);
std::string_view VerdictText(Verdict verdict);
// What writes of the workload, and of those who made its rows, outlast: "power", "process" or "memory".
const char* DurabilityOf(const Report& report, std::string_view workload);
// Why there is nothing of an engine in a workload: wrong answers, and what could not be measured. A line
// each.
std::vector<std::string> WhatIsMissing(const Report& report);
// Workloads in which `engine` had a higher median rate than the subject, but for those at a pace.
std::vector<std::string> WorkloadsLedBy(const Report& report, const std::string& engine);

}  // namespace partita::bench

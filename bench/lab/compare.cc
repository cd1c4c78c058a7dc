#include "bench/lab/compare.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "bench/compare/statistics.h"
#include "bench/lab/metrics.h"
#include "bench/lab/name_column.h"

namespace partita::lab {
namespace {

constexpr double kShareRise = 0.01;

// Layout, rate and operation: its figures in each repeat.
using Key = std::tuple<std::string, std::string, std::string>;
struct Figures {
  std::vector<double> p99_ms, throttled, dropped, failed, missing;  // All but the first as shares of all.
  // In any of them.
  bool generator_limited = false;
  bool clients_limited = false;  // A closed loop never is: there clients that are busy are the load.
};
struct Run {
  std::string stream_hash;
  std::map<std::string, std::string> asked_for, ran_on;  // Conditions.
  std::map<Key, Figures> figures;
};

std::string TextOf(simdjson::simdjson_result<simdjson::dom::element> element) {
  std::string_view text;
  return element.get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

double NumberOf(simdjson::simdjson_result<simdjson::dom::element> element) {
  double number = 0;
  return element.get(number) == simdjson::SUCCESS ? number : 0;
}

std::string NumberText(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", number);
  return text;
}

bool IsTrue(simdjson::simdjson_result<simdjson::dom::element> element) {
  bool is_true = false;
  return element.get(is_true) == simdjson::SUCCESS && is_true;
}

std::map<std::string, std::string> ConditionsIn(simdjson::simdjson_result<simdjson::dom::element> element) {
  std::map<std::string, std::string> conditions;
  simdjson::dom::object members;
  if (element.get(members) != simdjson::SUCCESS) return conditions;
  for (const simdjson::dom::key_value_pair member : members) {
    std::string_view text;
    if (member.value.get(text) == simdjson::SUCCESS) conditions.emplace(member.key, text);
  }
  return conditions;
}

// "memory 256 MiB, then 512 MiB" of each condition that both tell and that is not alike.
std::vector<std::string> Differences(const std::map<std::string, std::string>& before,
                                     const std::map<std::string, std::string>& after) {
  std::vector<std::string> differences;
  for (const auto& [name, text] : before) {
    const auto found = after.find(name);
    if (found == after.end() || found->second == text) continue;
    differences.push_back(name + " " + text + ", then " + found->second);
  }
  return differences;
}

Result<Run> ReadRun(std::string_view json, const char* which) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array cells;
  if (parser.parse(simdjson::padded_string(json)).get(root) != simdjson::SUCCESS ||
      NumberOf(root["format"]) != 1 || root["cells"].get(cells) != simdjson::SUCCESS) {
    return Status::InvalidArgument(std::string("the ") + which +
                                   " file is no result.json of partita lab run");
  }
  const bool is_open = TextOf(root["arrival"]) != ArrivalModelName(ArrivalModel::kClosed);
  Run run{.stream_hash = TextOf(root["stream_hash"]),
          .asked_for = ConditionsIn(root["asked_for"]),
          .ran_on = ConditionsIn(root["ran_on"]),
          .figures = {}};
  // These stand in older results as well.
  run.asked_for["limits"] = TextOf(root["limits"]);
  run.asked_for["seconds of warm-up"] = NumberText(NumberOf(root["warmup_s"]));
  run.asked_for["seconds"] = NumberText(NumberOf(root["duration_s"]));
  run.ran_on["target"] = TextOf(root["target"]);
  for (const simdjson::dom::element cell : cells) {
    simdjson::dom::array ops;
    if (cell["ops"].get(ops) != simdjson::SUCCESS) continue;
    for (const simdjson::dom::element op : ops) {
      Figures& figures = run.figures[{TextOf(cell["layout"]), TextOf(cell["rate"]), TextOf(op["op"])}];
      figures.p99_ms.push_back(NumberOf(op["p99_ms"]));
      figures.throttled.push_back(NumberOf(op["throttled"]));
      figures.dropped.push_back(NumberOf(op["dropped"]));
      const double operations = std::max(1.0, NumberOf(op["operations"]));
      figures.failed.push_back(NumberOf(op["failed"]) / operations);
      figures.missing.push_back(NumberOf(op["missing"]) / operations);
      figures.generator_limited |= IsTrue(cell["generator_limited"]);
      figures.clients_limited |= is_open && IsTrue(cell["clients_limited"]);
    }
  }
  return run;
}

double Rise(const std::vector<double>& before, const std::vector<double>& after) {
  return bench::Median(after) - bench::Median(before);
}

// Empty when the second is not worse in that it did less.
std::string LessDone(const Figures& before, const Figures& after) {
  const auto any = [](const std::vector<double>& shares) {
    return std::any_of(shares.begin(), shares.end(), [](double share) { return share > 0; });
  };
  if (any(after.failed) && !any(before.failed)) return "operations failed";
  if (Rise(before.failed, after.failed) > kShareRise) return "more operations failed";
  if (Rise(before.dropped, after.dropped) > kShareRise) return "more is dropped";
  if (Rise(before.throttled, after.throttled) > kShareRise) return "more is throttled";
  if (Rise(before.missing, after.missing) > kShareRise) return "more finds nothing";
  return "";
}

// Why nobody can say that the second is no slower; empty: it can be said. `is_faster`: beyond doubt, by what
// was measured.
std::string DoubtOn(const Figures& before, const Figures& after, bool is_faster) {
  const size_t repeats = std::min(before.p99_ms.size(), after.p99_ms.size());
  if (repeats < kRoundsMin) return "fewer than " + std::to_string(kRoundsMin) + " repeats";
  size_t told = 0, lost = 0;
  for (size_t i = 0; i < repeats; ++i) {
    if (before.p99_ms[i] > 0) ++(after.p99_ms[i] > 0 ? told : lost);
  }
  const auto of_all = [&](size_t some) { return std::to_string(some) + " of " + std::to_string(repeats); };
  if (lost > 0) return "nothing completes any more in " + of_all(lost) + " repeats";
  // Of repeats in which nothing ever completed there is nothing to tell.
  if (told > 0 && told < kRoundsMin) return "only " + of_all(told) + " repeats completed anything before";
  if (before.generator_limited || after.generator_limited) return "this machine was too slow for the load";
  // Who was held back before and is faster without is all the more so.
  if (after.clients_limited || (before.clients_limited && !is_faster)) return "all clients were busy";
  return "";
}

RunComparison::Row Compare(const Key& key, const Figures& before, const Figures& after, double threshold) {
  RunComparison::Row row;
  std::tie(row.layout, row.rate, row.op) = key;
  row.p99_before_ms = bench::Median(before.p99_ms);
  row.p99_after_ms = bench::Median(after.p99_ms);
  row.throttled_before = bench::Median(before.throttled);
  row.throttled_after = bench::Median(after.throttled);
  const bench::RatioSummary ratio = bench::SummarizeRatio(after.p99_ms, before.p99_ms);
  const bool sure = ratio.rounds >= kRoundsMin;
  if (sure) row.ratio_lower = ratio.lower, row.ratio_upper = ratio.upper;
  row.why = LessDone(before, after);
  if (row.why.empty() && row.p99_before_ms > 0 && row.p99_after_ms == 0) row.why = "none completes";
  if (row.why.empty() && sure && ratio.lower > 1 + threshold) row.why = "slower";
  row.worse = !row.why.empty();
  if (row.worse) return row;
  const bool is_faster = sure && ratio.upper < 1;
  row.why = DoubtOn(before, after, is_faster);
  row.undecided = !row.why.empty();
  const bool less_throttled = row.throttled_before - row.throttled_after > kShareRise;
  const bool less_held_back = is_faster && before.clients_limited;
  row.better =
      !row.undecided && (less_held_back || (sure && ratio.upper < 1 / (1 + threshold)) || less_throttled);
  return row;
}

}  // namespace

bool RunComparison::any_worse() const {
  return !broken.empty() || std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.worse; });
}

bool RunComparison::any_undecided() const {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.undecided; });
}

Result<RunComparison> CompareRuns(std::string_view before_json, std::string_view after_json,
                                  double threshold) {
  PARTITA_ASSIGN(const Run before, ReadRun(before_json, "first"));
  PARTITA_ASSIGN(const Run after, ReadRun(after_json, "second"));
  if (before.stream_hash != after.stream_hash) {
    return Status::InvalidArgument("the two runs did not do the same: their operation streams differ (" +
                                   before.stream_hash + ", " + after.stream_hash + ")");
  }
  if (const auto differences = Differences(before.asked_for, after.asked_for); !differences.empty()) {
    std::string text = "the two runs did not do the same: ";
    for (size_t i = 0; i < differences.size(); ++i) text += (i > 0 ? "; " : "") + differences[i];
    return Status::InvalidArgument(text);
  }
  RunComparison comparison;
  comparison.ran_on = Differences(before.ran_on, after.ran_on);
  size_t common = 0;
  for (const auto& [key, figures] : before.figures) {
    const auto found = after.figures.find(key);
    if (found != after.figures.end()) {
      ++common;
      comparison.rows.push_back(Compare(key, figures, found->second, threshold));
      continue;
    }
    RunComparison::Row& row = comparison.rows.emplace_back();
    std::tie(row.layout, row.rate, row.op) = key;
    row.p99_before_ms = bench::Median(figures.p99_ms);
    row.throttled_before = bench::Median(figures.throttled);
    row.worse = true;
    row.why = "missing";
  }
  if (common == 0) comparison.broken = "the two runs have no layout, rate and operation in common";
  return comparison;
}

std::string ComparisonText(const RunComparison& comparison) {
  NameColumn layouts("layout"), rates("rate"), ops("operation");
  for (const RunComparison::Row& row : comparison.rows) {
    layouts.Add(row.layout);
    rates.Add(row.rate);
    ops.Add(row.op);
  }
  const auto names = [&](const std::string& layout, const std::string& rate, const std::string& op) {
    return layouts.Of(layout) + rates.Of(rate) + ops.Of(op);
  };
  char line[120];
  std::snprintf(line, sizeof(line), "%9s %9s %17s %19s\n", "p99 ms", "then", "times (95 %)",
                "throttled, then");
  std::string text;
  for (const std::string& difference : comparison.ran_on) text += "not on the same: " + difference + "\n";
  text += names("layout", "rate", "operation") + line;
  for (const RunComparison::Row& row : comparison.rows) {
    char interval[40] = "-";
    if (row.ratio_upper > 0)
      std::snprintf(interval, sizeof(interval), "%8.2f-%8.2f", row.ratio_lower, row.ratio_upper);
    std::snprintf(line, sizeof(line), "%9.3f %9.3f %17s %8.1f%% %8.1f%%", row.p99_before_ms, row.p99_after_ms,
                  interval, 100 * row.throttled_before, 100 * row.throttled_after);
    text += names(row.layout, row.rate, row.op) + line;
    text += row.worse       ? " WORSE: " + row.why
            : row.undecided ? " undecided: " + row.why
            : row.better    ? " better"
                            : "";
    text += "\n";
  }
  if (!comparison.broken.empty()) text += "WORSE: " + comparison.broken + "\n";
  if (comparison.any_undecided()) {
    text += "undecided: nobody can say that nothing became slower. That takes repeats = " +
            std::to_string(kRoundsMin) +
            " or more, in which something completes, on a machine and with clients enough for the load\n";
  }
  return text;
}

}  // namespace partita::lab

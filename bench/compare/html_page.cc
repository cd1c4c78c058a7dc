#include "bench/compare/html_page.h"

#include <algorithm>
#include <cmath>

#include "bench/load/format_text.h"

namespace partita::bench {
namespace {

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

constexpr const char* kStyle = R"(
body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1d2430;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2.5rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #e3e6eb}td:first-child,th:first-child{text-align:left}
.missed{color:#b3261e;font-weight:600}.floor{color:#8a6100}.target{color:#1b6e3c}
svg text{font:12px system-ui,sans-serif;fill:#1d2430}.charts{display:flex;flex-wrap:wrap;gap:1rem 2rem}
@media(prefers-color-scheme:dark){body{color:#dfe3ea;background:#14181f}td,th{border-color:#2c333f}svg text{fill:#dfe3ea}
.missed{color:#ff8a80}.floor{color:#e8c268}.target{color:#7fd6a0}}
)";

const char* ClassOf(Verdict verdict) {
  if (verdict == Verdict::kTarget) return "target";
  if (verdict == Verdict::kMissed) return "missed";
  return verdict == Verdict::kFloor ? "floor" : "unjudged";
}
const char* ColorOf(Verdict verdict) {
  if (verdict == Verdict::kTarget) return "#2e9e5b";
  if (verdict == Verdict::kMissed) return "#d3453b";
  return verdict == Verdict::kFloor ? "#d19a1b" : "#7a8699";
}

// A ratio as how much better we are: above 1 always is.
double Better(const GoalResult& goal, double ratio) {
  return goal.goal->metric->more_is_better || ratio <= 0 ? ratio : 1 / ratio;
}

// Ratios on a logarithmic axis: a dot with its interval, a tick at the floor, a longer one at the target.
std::string GoalsChart(const Report& report) {
  constexpr double kLeft = 330, kWidth = 560, kRow = 22, kLow = 0.1, kHigh = 20;
  const auto x = [&](double ratio) {
    const double at = std::log(std::clamp(ratio, kLow, kHigh) / kLow) / std::log(kHigh / kLow);
    return kLeft + at * kWidth;
  };
  std::string rows;
  double y = 30;
  for (const GoalResult& goal : report.goals) {
    if (goal.goal->against.empty()) continue;
    const std::string name =
        std::string(goal.goal->workload) + ", " + std::string(goal.goal->metric->name) + " / " + goal.peer;
    const double from = Better(goal, goal.ratio.lower), to = Better(goal, goal.ratio.upper);
    const double middle = Better(goal, goal.ratio.median);
    const char* color = ColorOf(goal.verdict);
    rows += Format("<text x='%g' y='%g' text-anchor='end'>", kLeft - 10, y + 4) + Escaped(name) + "</text>";
    rows += Format("<line x1='%.1f' x2='%.1f' y1='%g' y2='%g' stroke='%s' stroke-width='3' opacity='.45'/>",
                   x(from), x(to), y, y, color);
    rows += Format("<path d='M%.1f %gv10M%.1f %gv16' stroke='#7a8699' stroke-width='1.5'/>",
                   x(Better(goal, goal.goal->floor)), y - 5, x(Better(goal, goal.goal->target)), y - 8);
    rows += Format("<circle cx='%.1f' cy='%g' r='5' fill='%s'><title>%.2f</title></circle>", x(middle), y,
                   color, middle);
    rows += Format("<text x='%g' y='%g'>%.2f</text>", kLeft + kWidth + 12, y + 4, middle);
    y += kRow;
  }
  std::string axis;
  for (double tick : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0}) {
    axis += Format("<line x1='%.1f' x2='%.1f' y1='18' y2='%g' stroke='#8a94a6' opacity='%s'/>", x(tick),
                   x(tick), y - 8, tick == 1 ? ".9" : ".25");
    axis += Format("<text x='%.1f' y='12' text-anchor='middle'>%g</text>", x(tick), tick);
  }
  return Format("<svg role='img' aria-label='ratios' width='%g' height='%g'>", kLeft + kWidth + 60, y) +
         axis + rows + "</svg>";
}

// One workload: a bar for each engine.
std::string BarsChart(const Report& report, const std::string& workload, const Metric& metric) {
  constexpr double kLeft = 130, kWidth = 220, kRow = 20;
  double most = 0;
  for (const std::string& engine : report.config.engines) {
    most = std::max(most, MedianOf(report, engine, workload, metric));
  }
  if (most == 0) return "";
  std::string bars;
  double y = 24;
  for (const std::string& engine : report.config.engines) {
    const double figure = MedianOf(report, engine, workload, metric);
    bars += Format("<text x='%g' y='%g' text-anchor='end'>", kLeft - 8, y + 12) + Escaped(engine) + "</text>";
    bars += Format("<rect x='%g' y='%g' width='%.1f' height='14' rx='2' fill='%s'/>", kLeft, y,
                   figure / most * kWidth, engine == report.subject() ? "#2f6fde" : "#9aa7ba");
    bars += Format("<text x='%.1f' y='%g'>%s</text>", kLeft + figure / most * kWidth + 6, y + 12,
                   figure > 0 ? ShortNumber(figure).c_str() : "not measured");
    y += kRow;
  }
  const std::string title = Escaped(workload) + ", " + Escaped(metric.name);
  return "<svg role='img' aria-label='" + title + "' width='440' " + Format("height='%g'>", y + 4) +
         "<text x='0' y='14' font-weight='600'>" + title + "</text>" + bars + "</svg>";
}

std::string GoalsHtml(const Report& report) {
  std::string table =
      "<table><tr><th>workload<th>figure<th>" + Escaped(report.subject()) +
      "<th>peer<th>its figure<th>ratio<th>95 %<th>rounds<th>floor<th>target<th>verdict<th>durability</tr>";
  for (const GoalResult& goal : report.goals) {
    const bool bound = goal.goal->against.empty();
    const char* at_most = bound || !goal.goal->metric->more_is_better ? "&le; " : "";
    table += "<tr><td>" + Escaped(goal.goal->workload) + "<td>" + Escaped(goal.goal->metric->name) + "<td>" +
             ShortNumber(goal.own);
    table +=
        bound ? "<td><td><td><td>"
              : "<td>" + Escaped(goal.peer) + "<td>" + ShortNumber(goal.peers) +
                    Format("<td>%.2f<td>%.2f to %.2f", goal.ratio.median, goal.ratio.lower, goal.ratio.upper);
    table += Format("<td>%zu<td>%s%.6g<td>%s%.6g<td class='%s'>", goal.ratio.rounds, at_most,
                    goal.goal->floor, at_most, goal.goal->target, ClassOf(goal.verdict)) +
             Escaped(VerdictText(goal.verdict)) + "<td>" + DurabilityOf(report, goal.goal->workload) +
             "</tr>";
  }
  return table + "</table>";
}

std::string ProbesHtml(const Report& report) {
  std::string table = "<table><tr><th>probe<th>a second<th>what</tr>";
  const Probes probes = MedianProbes(report);
  for (const ProbeInfo& info : ProbeInfos()) {
    table += "<tr><td>" + Escaped(info.name) + "<td>" + ShortNumber(probes.*info.figure) + "<td>" +
             Escaped(info.meaning) + "</tr>";
  }
  return table + "</table>";
}

}  // namespace

std::string ToHtml(const Report& report) {
  std::string page =
      "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>partita-bench compare</title>";
  page += std::string("<meta name='viewport' content='width=device-width'><style>") + kStyle +
          "</style></head><body>";
  page += "<h1>" + Escaped(report.subject()) + " beside its peers</h1><ul>";
  for (const std::string& line : ConditionsOf(report)) page += "<li>" + Escaped(line);
  page += "</ul>";
  if (!report.goals.empty()) {
    page +=
        "<h2>Ratios</h2><p>How many times better (above 1), with the 95 % interval; the short tick is the "
        "floor, the long one the target.</p>" +
        GoalsChart(report) + "<h2>Goals</h2>" + GoalsHtml(report);
  }
  page += "<h2>Rates</h2><div class='charts'>";
  for (const std::string& workload : report.config.workloads) {
    page += BarsChart(report, workload, RateMetric());
    if (IsPaced(workload)) page += BarsChart(report, workload, LatencyMetric());
  }
  page += "</div>";
  if (!report.result.probes.empty()) page += "<h2>What the machine can do</h2>" + ProbesHtml(report);
  const std::vector<std::string> missing = WhatIsMissing(report);
  if (!missing.empty()) page += "<h2>Not measured</h2><ul>";
  for (const std::string& line : missing) page += "<li>" + Escaped(line);
  return page + "</body></html>\n";
}

}  // namespace partita::bench

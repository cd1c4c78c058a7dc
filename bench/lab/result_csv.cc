#include <cmath>
#include <cstdio>

#include "bench/lab/metrics.h"
#include "bench/lab/result_text.h"

namespace partita::lab {
namespace {

// Counts have all of their digits, what was measured six.
std::string CsvNumber(double number) {
  constexpr double kWholeMax = 1e15;
  const bool is_whole = number == std::trunc(number) && std::abs(number) < kWholeMax;
  char text[32];
  std::snprintf(text, sizeof(text), is_whole ? "%.0f" : "%.6g", number);
  return text;
}

std::string Csv(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

// What each line begins with.
std::string CellColumns(const Experiment& experiment, const CellFigures& cell) {
  const Layout& layout = experiment.layouts[cell.layout];
  return Csv(layout.name) + "," + Csv(RateText(experiment.ArrivalOf(layout), cell.rate)) + "," +
         std::to_string(cell.repeat);
}

}  // namespace

std::string SummaryCsv(const Experiment& experiment, const RunResult& result) {
  std::string text = "layout,rate,repeat,op,generator_limited,clients_limited";
  for (const std::string& metric : MetricNames()) text += "," + metric;
  text += "\n";
  for (const CellFigures& cell : result.cells) {
    for (size_t op = 0; op < cell.ops.size(); ++op) {
      text += CellColumns(experiment, cell) + "," + Csv(experiment.ops[op].name) + "," +
              (cell.generator_limited() ? "1" : "0") + "," + (cell.clients_limited() ? "1" : "0");
      for (const std::string& metric : MetricNames()) {
        text += ",";
        if (!HasFigure(metric, cell.ops[op])) continue;
        text += CsvNumber(
            MetricOf(metric, cell.ops[op], cell.measured_s, result.prediction.layouts[cell.layout]));
      }
      text += "\n";
    }
  }
  return text;
}

std::string TimelineCsv(const Experiment& experiment, const RunResult& result) {
  std::string text = "layout,rate,repeat,second,due,completed,throttled,latency_max_ms,backlog\n";
  for (const CellFigures& cell : result.cells) {
    uint64_t due = 0, ended = 0;
    for (size_t second = 0; second < cell.seconds.size(); ++second) {
      const SecondFigures& figures = cell.seconds[second];
      due += figures.due;
      ended += figures.ended;
      text += CellColumns(experiment, cell) + "," + std::to_string(second) + "," +
              std::to_string(figures.due) + "," + std::to_string(figures.completed) + "," +
              std::to_string(figures.throttled) + "," +
              CsvNumber(static_cast<double>(figures.latency_max_ns) * 1e-6) + "," +
              std::to_string(due > ended ? due - ended : 0) + "\n";
    }
  }
  return text;
}

std::string HeatCsv(const Experiment& experiment, const RunResult& result) {
  std::string text = "layout,rate,repeat,second,seconds,row,first_key,entities,refused\n";
  for (const CellFigures& cell : result.cells) {
    const Timeline& timeline = cell.timeline;
    for (size_t column = 0; column < timeline.columns().size(); ++column) {
      const Timeline::Column& figures = timeline.columns()[column];
      for (size_t row = 0; row < timeline.rows(); ++row) {
        if (figures.entities[row] == 0 && figures.refused[row] == 0) continue;
        text += CellColumns(experiment, cell) + "," +
                CsvNumber(static_cast<double>(column) * timeline.column_s()) + "," +
                CsvNumber(timeline.column_s()) + "," + std::to_string(row) + "," +
                Csv(result.key_rows[cell.layout][row]) + "," + CsvNumber(figures.entities[row]) + "," +
                CsvNumber(figures.refused[row]) + "\n";
      }
    }
  }
  return text;
}

}  // namespace partita::lab

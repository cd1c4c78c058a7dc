#include "bench/lab/metrics.h"

#include <algorithm>
#include <initializer_list>

#include "bench/compare/statistics.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

constexpr double kRatioMin = 1.05;
constexpr double kMissingMax = 0.01;

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double Milliseconds(const bench::Histogram& histogram, double fraction) {
  return static_cast<double>(histogram.Percentile(fraction)) * 1e-6;
}

}  // namespace

std::vector<std::string> MetricNames() {
  return {"operations",     "throughput", "p50_ms",  "p90_ms",  "p99_ms",       "p999_ms",     "max_ms",
          "service_p99_ms", "throttled",  "dropped", "failed",  "missing",      "scanned",     "returned",
          "transactions",   "bytes",      "written", "density", "stored_bytes", "hottest_rate"};
}

MetricBasis BasisOf(std::string_view metric) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), metric) != names.end();
  };
  if (is_one_of({"plan", "stored_bytes", "hottest_rate"})) return MetricBasis::kPrediction;
  if (is_one_of({"operations", "throttled", "dropped"})) return MetricBasis::kDue;
  return MetricBasis::kCompleted;
}

bool IsUntold(std::string_view metric, const OpFigures& figures) {
  if (metric == "scanned") return figures.untold > 0;
  if (metric == "returned") return figures.unfiltered > 0;
  return metric == "density" && figures.untold + figures.unfiltered > 0;
}

bool WasMeasured(std::string_view metric, const OpFigures& figures) {
  // None completed, none failed, none found missing: also that is something to know.
  if (metric == "throughput" || metric == "failed" || metric == "missing") return figures.operations > 0;
  if (IsUntold(metric, figures)) return false;
  switch (BasisOf(metric)) {
    case MetricBasis::kPrediction:
      return true;
    case MetricBasis::kDue:
      return figures.operations > 0;
    case MetricBasis::kCompleted:
      return figures.completed > 0;
  }
  return true;
}

bool HasFigure(std::string_view metric, const OpFigures& figures) {
  return WasMeasured(metric, figures) && (metric != "density" || figures.scanned > 0);
}

double MetricOf(std::string_view metric, const OpFigures& figures, double seconds,
                const LayoutPrediction& told) {
  if (metric == "operations") return static_cast<double>(figures.operations);
  if (metric == "throughput") return static_cast<double>(figures.completed) / seconds;
  if (metric == "p50_ms") return Milliseconds(figures.latency, 0.5);
  if (metric == "p90_ms") return Milliseconds(figures.latency, 0.9);
  if (metric == "p99_ms") return Milliseconds(figures.latency, 0.99);
  if (metric == "p999_ms") return Milliseconds(figures.latency, 0.999);
  if (metric == "max_ms") return Milliseconds(figures.latency, 1);
  if (metric == "service_p99_ms") return Milliseconds(figures.service, 0.99);
  if (metric == "throttled") return Share(figures.throttled, figures.operations);
  if (metric == "dropped") return Share(figures.dropped + figures.unfinished, figures.operations);
  if (metric == "failed") return static_cast<double>(figures.failed);
  if (metric == "missing") return static_cast<double>(figures.missing);
  if (metric == "scanned") return Share(figures.scanned, figures.completed);
  if (metric == "returned") return Share(figures.returned, figures.completed);
  if (metric == "transactions") return Share(figures.requests, figures.completed);
  if (metric == "bytes") return Share(figures.bytes, figures.completed);
  if (metric == "written") return Share(figures.written, figures.completed);
  if (metric == "density") return figures.scanned == 0 ? 1 : Share(figures.returned, figures.scanned);
  if (metric == "stored_bytes") return told.stored_bytes;
  PARTITA_ASSERT(metric == "hottest_rate");
  return told.hottest_rate;
}

bool FindsNothingTooOften(const OpFigures& figures) {
  return static_cast<double>(figures.missing) > kMissingMax * static_cast<double>(figures.operations);
}

std::optional<size_t> SmallestBeyondDoubt(const std::vector<std::vector<double>>& figures) {
  if (figures.size() < 2) return std::nullopt;
  size_t best = 0;
  for (size_t i = 1; i < figures.size(); ++i) {
    if (bench::Median(figures[i]) < bench::Median(figures[best])) best = i;
  }
  for (size_t i = 0; i < figures.size(); ++i) {
    if (i == best) continue;
    const bench::RatioSummary ratio = bench::SummarizeRatio(figures[i], figures[best]);
    if (ratio.rounds < kRoundsMin || ratio.lower <= kRatioMin) return std::nullopt;
  }
  return best;
}

}  // namespace partita::lab

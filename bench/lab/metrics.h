#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/cell.h"
#include "bench/lab/explain.h"

namespace partita::lab {

// The figures of an operation on a layout, as summary.csv, result.json and [[expect]] name them:
//
//   operations (due)  throughput (completed a second that it really took)  p50_ms p90_ms p99_ms p999_ms
//   max_ms (from the intended start) service_p99_ms (from the actual start)  throttled (share of operations
//   refused at the first try) dropped (share never done, or given up)  failed  missing (operations that found
//   nothing) of completed operations, for each: scanned (what was looked at: on stores of this machine what
//   the service would look at, with older versions) returned transactions written bytes (that were answered:
//   by the service's formula of sizes, on a service the length of its answers to queries);
//   density (returned of scanned; both figures are untold where the client filters what is folded)
//   stored_bytes (per record, by the service's formula)  hottest_rate (predicted of one partition, in units a
//   second as the targets count: entity_units.h; 0 for a closed loop)
std::vector<std::string> MetricNames();
// That of all operations together which [[expect]] knows besides: hot_share, the share of the units that were
// asked for which lay where most did, of the at most 32 rows of keys that the heat map has, in each tenth of
// the run (Timeline::HotShare); a try that was throttled is one.
inline constexpr const char* kHotShare = "hot_share";

// In more than one operation of a hundred, so that its latency is none to compare: what is not there is
// quickly not found.
bool FindsNothingTooOften(const OpFigures& figures);

// An interval takes so many rounds.
inline constexpr size_t kRoundsMin = 3;

// Without what there is no figure.
enum class MetricBasis : uint8_t {
  kPrediction,  // Nothing: it is told by the experiment alone.
  kDue,         // Operations that were due.
  kCompleted,   // Operations that were completed.
};
MetricBasis BasisOf(std::string_view metric);
// Whether the metric hangs on what was looked at, which the store did not tell, or on what is left of what
// came where the client filters it.
bool IsUntold(std::string_view metric, const OpFigures& figures);
// False: those figures have nothing that the metric could be told of, so that MetricOf is no more than a
// number: no operation of its basis, or it is untold.
bool WasMeasured(std::string_view metric, const OpFigures& figures);
// And it is worth showing: where nothing was scanned there is no density.
bool HasFigure(std::string_view metric, const OpFigures& figures);

// Its figure in one cell. REQUIRES: one of MetricNames.
double MetricOf(std::string_view metric, const OpFigures& figures, double seconds,
                const LayoutPrediction& told);

// Which of several layouts has the smallest figure beyond doubt: each has one for each repeat, measured in
// turns. Nothing when intervals overlap: the 95 % interval of how many times the best another one is must lie
// above 1.05.
std::optional<size_t> SmallestBeyondDoubt(const std::vector<std::vector<double>>& figures);

}  // namespace partita::lab

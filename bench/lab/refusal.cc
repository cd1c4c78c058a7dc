#include "bench/lab/refusal.h"

#include <algorithm>

#include "engine/base/assert.h"

namespace partita::lab {
namespace {

// Of a target, that its bucket holds.
constexpr double kBucket_s = 2;
// The bucket is looked at so often, and in a run so many times at least and at most.
constexpr double kStep_s = 0.01, kStepsMin = 1'000, kStepsMax = 1'000'000;

// Units a second for as long as the run may go on; 0: with the run the arrival is over.
double LastingRate(const Arrival& arrival, double peak_rate) {
  switch (arrival.model) {
    case ArrivalModel::kBurst:
      return peak_rate * arrival.on_s / (arrival.on_s + arrival.off_s);
    case ArrivalModel::kDiurnal:
      return peak_rate * *std::max_element(arrival.rates.begin(), arrival.rates.end()) /
             *arrival.HighestRate();
    case ArrivalModel::kReplay:
      return arrival.TimesReplayed() < arrival.times.size() ? peak_rate : 0;
    case ArrivalModel::kRamp:
    case ArrivalModel::kSteps:
      return 0;
    default:
      return peak_rate;
  }
}

// When the bucket is empty, in this run.
std::optional<double> RefusedInRun(const Arrival& arrival, double peak_rate, double most) {
  const double units = peak_rate / *arrival.HighestRate();  // Of an operation.
  const double end_s = arrival.warmup_s + arrival.duration_s;
  const double steps = std::clamp(end_s / kStep_s, kStepsMin, kStepsMax), step_s = end_s / steps;
  double asked = 0, owed = 0;
  for (double step = 1; step <= steps; ++step) {
    const double by_now = units * arrival.OperationsBy(step * step_s);
    owed = std::max(owed + by_now - asked - most * step_s, 0.0);
    if (owed > kBucket_s * most) return step * step_s;
    asked = by_now;
  }
  return std::nullopt;
}

}  // namespace

bool ExceedsBucket(double units, uint64_t target) {
  return target > 0 && units > kBucket_s * static_cast<double>(target);
}

std::optional<Refusal> FirstRefusal(const Arrival& arrival, double peak_rate, uint64_t target) {
  const auto most = static_cast<double>(target);
  const bool is_mean = arrival.model == ArrivalModel::kReplay;
  if (target == 0 || peak_rate == 0 || (peak_rate <= most && !is_mean)) return std::nullopt;
  PARTITA_ASSERT(arrival.HighestRate().value_or(0) > 0);
  const double lasting = LastingRate(arrival, peak_rate);
  const bool lasts = lasting > most;
  const double empty_s = lasts ? kBucket_s * most / (lasting - most) : 0;
  const bool is_even = arrival.model == ArrivalModel::kConstant || arrival.model == ArrivalModel::kPoisson;
  if (is_even) return Refusal{.after_s = empty_s, .lasts = true};
  if (const auto in_run = RefusedInRun(arrival, peak_rate, most)) return Refusal{*in_run, lasts};
  if (!lasts) return std::nullopt;
  return Refusal{.after_s = std::max(empty_s, arrival.warmup_s + arrival.duration_s), .lasts = true};
}

}  // namespace partita::lab

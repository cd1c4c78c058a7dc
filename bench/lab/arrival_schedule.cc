#include "bench/lab/arrival_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "bench/lab/exact_math.h"

// As in exact_math.cc: when an operation is due must not depend on the machine.
#pragma STDC FP_CONTRACT OFF

namespace partita::lab {
namespace {

// Of a period, until nothing is left of it that a nanosecond would show.
constexpr int kHalvings = 48;

}  // namespace

std::optional<double> ArrivalSchedule::Next() {
  const uint64_t number = count_++;
  std::optional<double> at;
  switch (arrival_.model) {
    case ArrivalModel::kReplay:
      if (number < arrival_.times.size()) at = arrival_.times[number] / arrival_.scale;
      break;
    case ArrivalModel::kPoisson:
      at = at_ - ExactLog(1 - Draw(seed_, number).Uniform()) / rate_;
      break;
    case ArrivalModel::kRamp:
      at = TimeOnRamp(static_cast<double>(number));
      break;
    case ArrivalModel::kSteps:
      at = TimeOnSteps(static_cast<double>(number));
      break;
    case ArrivalModel::kBurst:
      at = TimeInBursts(static_cast<double>(number));
      break;
    case ArrivalModel::kDiurnal:
      at = TimeOfDay(static_cast<double>(number));
      break;
    default:
      at = static_cast<double>(number) / rate_;
  }
  if (!at || *at >= End()) return std::nullopt;
  at_ = *at;
  return at;
}

// Where the integral of the rate, rate_ * t + slope * t * t / 2, is `number`; in the form that loses no
// digits when the slope is small.
std::optional<double> ArrivalSchedule::TimeOnRamp(double number) const {
  const double slope = (arrival_.rate_end - rate_) / End();
  const double square = rate_ * rate_ + 2 * slope * number;
  if (square < 0) return std::nullopt;  // It ends before.
  return number == 0 ? 0 : 2 * number / (rate_ + std::sqrt(square));
}

std::optional<double> ArrivalSchedule::TimeOnSteps(double number) const {
  const double length = End() / static_cast<double>(arrival_.rates.size());
  for (size_t i = 0; i < arrival_.rates.size(); ++i) {
    const double here = arrival_.rates[i] * length;
    if (number < here) return static_cast<double>(i) * length + number / arrival_.rates[i];
    number -= here;
  }
  return std::nullopt;
}

double ArrivalSchedule::TimeInBursts(double number) const {
  const double busy_s = number / rate_;
  double burst = std::floor(busy_s / arrival_.on_s);
  double within = busy_s - burst * arrival_.on_s;
  if (within >= arrival_.on_s) burst += 1, within = 0;  // Rounded down.
  return burst * (arrival_.on_s + arrival_.off_s) + (within > 0 ? within : 0);
}

// Where the integral of the rate, rate_ * (t + swing * (1 - cos(turns of t)) / 2), is `number`. It rises, and
// the cosine moves that by no more than the swing.
double ArrivalSchedule::TimeOfDay(double number) const {
  const double swing = arrival_.amplitude * arrival_.period_s / std::numbers::pi;
  const double on_average = number / rate_;
  double early = std::max(on_average - swing, 0.0), late = on_average;
  for (int step = 0; step < kHalvings && early < late; ++step) {
    const double middle = early + (late - early) / 2;
    const double cosine = ExactSinTurns(std::fmod(middle / arrival_.period_s + 0.25, 1));
    (middle + swing * (1 - cosine) / 2 < on_average ? early : late) = middle;
  }
  return late;
}

}  // namespace partita::lab

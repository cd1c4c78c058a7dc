#include "bench/lab/arrival_schedule.h"

#include <algorithm>
#include <cmath>

#include "bench/lab/exact_math.h"

// As in exact_math.cc: when an operation is due must not depend on the machine.
#pragma STDC FP_CONTRACT OFF

namespace partita::lab {
namespace {

constexpr double kRateMin = 0.01;  // So that a schedule always gets on.

}  // namespace

double ArrivalSchedule::RateAt(double second) const {
  const double share = std::clamp(second / End(), 0.0, 1.0);
  switch (arrival_.model) {
    case ArrivalModel::kRamp:
      return rate_ + (arrival_.rate_end - rate_) * share;
    case ArrivalModel::kSteps: {
      const auto step = static_cast<size_t>(share * static_cast<double>(arrival_.rates.size()));
      return arrival_.rates[std::min(step, arrival_.rates.size() - 1)];
    }
    case ArrivalModel::kBurst:
      return std::fmod(second, arrival_.on_s + arrival_.off_s) < arrival_.on_s ? rate_ : 0;
    case ArrivalModel::kDiurnal:
      return rate_ * (1 + arrival_.amplitude * ExactSinTurns(std::fmod(second / arrival_.period_s, 1)));
    default:
      return rate_;
  }
}

std::optional<double> ArrivalSchedule::Next() {
  const uint64_t number = count_++;
  if (arrival_.model == ArrivalModel::kReplay) {
    if (number >= arrival_.times.size()) return std::nullopt;
    at_ = arrival_.times[number] / arrival_.scale;
  } else if (arrival_.model == ArrivalModel::kConstant) {
    at_ = static_cast<double>(number) / rate_;
  } else if (arrival_.model == ArrivalModel::kPoisson) {
    at_ -= ExactLog(1 - Draw(seed_, number).Uniform()) / rate_;
  } else if (number > 0) {
    at_ += 1 / std::max(RateAt(at_), kRateMin);
  }
  if (arrival_.model == ArrivalModel::kBurst) {
    const double period = arrival_.on_s + arrival_.off_s;
    if (std::fmod(at_, period) >= arrival_.on_s) at_ = (std::floor(at_ / period) + 1) * period;
  }
  return at_ < End() ? std::optional(at_) : std::nullopt;
}

}  // namespace partita::lab

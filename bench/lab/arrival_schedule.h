#pragma once
#include <cstdint>
#include <optional>

#include "bench/lab/draw.h"
#include "bench/lab/experiment.h"

namespace partita::lab {

// When each operation of an open loop is to begin, in seconds from the start: a function of the arrival, the
// rate and the seed. Used by one thread.
class ArrivalSchedule {
 public:
  // `rate` is one of arrival.rates; unused by kSteps and kReplay. REQUIRES: the model is not kClosed.
  ArrivalSchedule(const Arrival& arrival, double rate, uint64_t seed)
      : arrival_(arrival), rate_(rate), seed_(seed) {}

  // Nothing when the time (warm-up and duration) is over.
  std::optional<double> Next();

 private:
  double End() const { return arrival_.warmup_s + arrival_.duration_s; }
  // When operation `number` is due: once as many are wanted, by the integral of the rate.
  std::optional<double> TimeOnRamp(double number) const;
  std::optional<double> TimeOnSteps(double number) const;
  double TimeInBursts(double number) const;
  double TimeOfDay(double number) const;

  const Arrival& arrival_;
  const double rate_;
  const uint64_t seed_;
  uint64_t count_ = 0;
  double at_ = 0;  // Of the last one.
};

}  // namespace partita::lab

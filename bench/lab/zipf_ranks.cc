#include "bench/lab/zipf_ranks.h"

#include <algorithm>
#include <cmath>

#include "bench/lab/exact_math.h"
#include "engine/base/assert.h"

// As in exact_math.cc: what is drawn must not depend on what the compiler fuses.
#pragma STDC FP_CONTRACT OFF

// 1. The weights of the ranks 1 to n lie under the curve h(x) = x^-theta, shifted by a half: rank k has the
//    strip from k - 1/2 to k + 1/2, whose area is at least h(k) because h is convex.
// 2. A point drawn from the area under the curve is found by the inverse of its integral; the nearest whole
//    number is the rank.
// 3. It is taken with probability h(k) over the strip's area: the part of the strip's integral that ends at
//    k + 1/2 and is h(k) long. Most points lie so near to their rank from below that this need not be asked.
// The hard case is theta near 1, where the integral is a difference of two nearly equal numbers over a small
// one: there both it and its inverse come from a series.
namespace partita::lab {
namespace {

constexpr double kSeriesMax = 0.05;
constexpr int kTerms = 12;

// (e^x - 1) / x.
double ExpRatio(double x) {
  if (std::abs(x) > kSeriesMax) return (ExactExp(x) - 1) / x;
  double term = 1, sum = 1;
  for (int k = 2; k <= kTerms; ++k) {
    term *= x / k;
    sum += term;
  }
  return sum;
}

// ln(1 + x) / x. REQUIRES: x > -1.
double LogRatio(double x) {
  if (std::abs(x) > kSeriesMax) return ExactLog(1 + x) / x;
  double power = 1, sum = 1;
  for (int k = 1; k <= kTerms; ++k) {
    power *= -x;
    sum += power / (k + 1);
  }
  return sum;
}

}  // namespace

ZipfRanks::ZipfRanks(uint64_t n, double theta) : theta_(theta), first_(Integral(1.5) - 1) {
  PARTITA_ASSERT(theta > 0 && theta <= 10);
  sure_ = 2 - InverseIntegral(Integral(2.5) - Weight(2));
  Resize(n);
}

void ZipfRanks::Resize(uint64_t n) {
  PARTITA_ASSERT(n > 0 && n <= 1'000'000'000'000'000);
  n_ = n;
  last_ = Integral(static_cast<double>(n) + 0.5);
}

double ZipfRanks::Weight(double x) const { return ExactExp(-theta_ * ExactLog(x)); }

double ZipfRanks::Integral(double x) const {
  const double log = ExactLog(x);
  return ExpRatio((1 - theta_) * log) * log;
}

double ZipfRanks::InverseIntegral(double y) const {
  // Rounding may lead to where the integral never comes; there is no rank so far away.
  const double shifted = std::max(y * (1 - theta_), -1 + 0x1p-52);
  return ExactExp(std::min(LogRatio(shifted) * y, 50.0));
}

uint64_t ZipfRanks::Of(Draw* draw) const {
  while (true) {
    const double at = last_ + draw->Uniform() * (first_ - last_);
    const double x = InverseIntegral(at);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
    if (rank - x <= sure_ || at >= Integral(rank + 0.5) - Weight(rank))
      return static_cast<uint64_t>(rank) - 1;
  }
}

}  // namespace partita::lab

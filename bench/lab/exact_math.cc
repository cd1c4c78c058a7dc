#include "bench/lab/exact_math.h"

#include <cmath>
#include <numbers>

#include "engine/base/assert.h"

// A fused multiply-add rounds once where two operations round twice, so whether it is used would show.
#pragma STDC FP_CONTRACT OFF

namespace partita::lab {
namespace {

// ln 2 in two parts: the first has so few digits that a multiple of it is exact.
constexpr double kLn2High = 0x1.62e42fefa0000p-1;
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
constexpr int kLogTerms = 12;
constexpr int kExpTerms = 18;
constexpr int kCosTerms = 11;

// Of sin (first = 1) or cos (first = 0) by their series. |x| <= pi / 4.
double Series(double x, int first) {
  double term = first == 1 ? x : 1, sum = term;
  for (int k = 1; k <= kCosTerms; ++k) {
    const int n = 2 * k + first;
    term *= -(x * x) / (n * (n - 1));
    sum += term;
  }
  return sum;
}

}  // namespace

double ExactLog(double x) {
  PARTITA_ASSERT(x > 0);
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // Exact.
  if (mantissa < std::numbers::sqrt2 / 2) {
    mantissa *= 2;
    --exponent;
  }
  // ln m = 2 artanh((m - 1) / (m + 1)), which is small.
  const double s = (mantissa - 1) / (mantissa + 1), square = s * s;
  double power = s, sum = s;
  for (int k = 1; k <= kLogTerms; ++k) {
    power *= square;
    sum += power / (2 * k + 1);
  }
  return exponent * kLn2High + (2 * sum + exponent * kLn2Low);
}

double ExactExp(double x) {
  PARTITA_ASSERT(x <= 700);
  // Not far below no normal number stands for it, and then none at all.
  if (x < -700) return 0;
  const double whole = std::floor(x / std::numbers::ln2 + 0.5);
  const double rest = (x - whole * kLn2High) - whole * kLn2Low;
  double term = 1, sum = 1;
  for (int k = 1; k <= kExpTerms; ++k) {
    term *= rest / k;
    sum += term;
  }
  return std::ldexp(sum, static_cast<int>(whole));  // Exact.
}

double ExactPow(double x, double power) {
  const double exponent = power * ExactLog(x);
  // Its error, a part of its own size, is one of the result itself.
  PARTITA_ASSERT(std::abs(exponent) <= 100);
  return ExactExp(exponent);
}

double ExactCosTurns(double turns) {
  PARTITA_ASSERT(turns >= 0 && turns <= 1);
  const double eighths = turns * 8;
  // The nearest quarter turn, and what is left of it.
  const int quarter = static_cast<int>(eighths + 1) / 2;
  const double rest = (turns - quarter * 0.25) * (2 * std::numbers::pi);
  switch (quarter % 4) {
    case 0:
      return Series(rest, 0);
    case 1:
      return -Series(rest, 1);
    case 2:
      return -Series(rest, 0);
    default:
      return Series(rest, 1);
  }
}

double ExactSinTurns(double turns) { return ExactCosTurns(turns < 0.25 ? turns + 0.75 : turns - 0.25); }

}  // namespace partita::lab

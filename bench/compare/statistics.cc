#include "bench/compare/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace partita::bench {
namespace {

// The 97.5 % point of Student's t by degrees of freedom, from 1 on; then the normal distribution's.
double StudentT(size_t degrees) {
  constexpr std::array kPoints = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                  2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
  return degrees <= kPoints.size() ? kPoints[degrees - 1] : 1.96 + 2.4 / static_cast<double>(degrees);
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

RatioSummary SummarizeRatio(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(numerators.size(), denominators.size()); ++i) {
    if (numerators[i] > 0 && denominators[i] > 0) ratios.push_back(numerators[i] / denominators[i]);
  }
  RatioSummary summary{.median = Median(ratios), .rounds = ratios.size()};
  summary.lower = summary.upper = summary.median;
  if (ratios.size() < 2) return summary;
  const double count = static_cast<double>(ratios.size());
  double mean = 0, squares = 0;
  for (double ratio : ratios) mean += std::log(ratio) / count;
  for (double ratio : ratios) squares += (std::log(ratio) - mean) * (std::log(ratio) - mean);
  const double half = StudentT(ratios.size() - 1) * std::sqrt(squares / (count - 1) / count);
  // The interval is the mean's; the median is never outside of what is shown.
  summary.lower = std::min(summary.median, std::exp(mean - half));
  summary.upper = std::max(summary.median, std::exp(mean + half));
  return summary;
}

}  // namespace partita::bench

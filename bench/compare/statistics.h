#pragma once
#include <cstddef>
#include <vector>

namespace partita::bench {

// 0 when empty.
double Median(std::vector<double> values);

// How many times one figure is the other, over rounds that measured both.
struct RatioSummary {
  double median = 0;
  // 95 % interval, by Student's t over the logarithms; both are the median with fewer than two rounds.
  double lower = 0, upper = 0;
  size_t rounds = 0;
};

// Pairs the rounds: `numerators[i]` and `denominators[i]` were measured in the same round, with other engines
// between them where there are more than two. Rounds where one of them is not above 0 are left out.
RatioSummary SummarizeRatio(const std::vector<double>& numerators, const std::vector<double>& denominators);

}  // namespace partita::bench

#include "bench/lab/arrival_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace partita::lab {
namespace {

std::vector<double> TimesOf(const Arrival& arrival, double rate) {
  ArrivalSchedule schedule(arrival, rate, 7);
  std::vector<double> times;
  while (const auto at = schedule.Next()) times.push_back(*at);
  return times;
}

size_t CountBetween(const std::vector<double>& times, double from, double to) {
  return static_cast<size_t>(std::lower_bound(times.begin(), times.end(), to) -
                             std::lower_bound(times.begin(), times.end(), from));
}

double LongestGap(const std::vector<double>& times) {
  double longest = 0;
  for (size_t i = 1; i < times.size(); ++i) longest = std::max(longest, times[i] - times[i - 1]);
  return longest;
}

TEST(ArrivalScheduleTest, EveryBurstIsWhole) {
  for (const double on : {0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5}) {
    for (const double off : {0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 3.0}) {
      SCOPED_TRACE(std::to_string(on) + " on, " + std::to_string(off) + " off");
      const Arrival burst{
          .model = ArrivalModel::kBurst, .on_s = on, .off_s = off, .warmup_s = 1, .duration_s = 30};
      const std::vector<double> times = TimesOf(burst, 1000);
      ASSERT_TRUE(std::is_sorted(times.begin(), times.end()));
      EXPECT_LT(LongestGap(times), off + 0.0011);
      const double bursts = std::floor(31 / (on + off));
      EXPECT_GE(times.size() + 1, bursts * on * 1000);
      for (const double at : times) ASSERT_LT(std::fmod(at + 1e-9, on + off), on + 1e-6) << at;
    }
  }
}

TEST(ArrivalScheduleTest, ARampFromNextToNothingRises) {
  Arrival ramp{.model = ArrivalModel::kRamp, .rate_end = 1000, .warmup_s = 1, .duration_s = 5};
  for (const double from : {0.1, 1.0, 50.0}) {
    const std::vector<double> times = TimesOf(ramp, from);
    EXPECT_NEAR(static_cast<double>(times.size()), 6 * (from + 1000) / 2, 2) << from;
    EXPECT_NEAR(static_cast<double>(CountBetween(times, 2.9, 3.1)), 100 + from / 10, 3) << from;
  }
  // And one that falls ends at its rate.
  ramp.rate_end = 0.1;
  const std::vector<double> falling = TimesOf(ramp, 1000);
  EXPECT_NEAR(static_cast<double>(falling.size()), 3000, 2);
  EXPECT_NEAR(static_cast<double>(CountBetween(falling, 0, 0.1)), 99, 2);
}

TEST(ArrivalScheduleTest, ASlowStepIsFollowedByTheNext) {
  const Arrival steps{.model = ArrivalModel::kSteps, .rates = {0.1, 1000}, .warmup_s = 1, .duration_s = 9};
  const std::vector<double> times = TimesOf(steps, 0.1);
  EXPECT_NEAR(static_cast<double>(CountBetween(times, 5, 10)), 5000, 2);
}

TEST(ArrivalScheduleTest, ADayWhoseNightIsStillGoesOn) {
  const Arrival day{
      .model = ArrivalModel::kDiurnal, .amplitude = 1, .period_s = 10, .warmup_s = 1, .duration_s = 59};
  const std::vector<double> times = TimesOf(day, 1000);
  ASSERT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_NEAR(static_cast<double>(times.size()), 60'000, 30);
  EXPECT_LT(LongestGap(times), 0.5);
  for (int period = 0; period < 6; ++period) {
    EXPECT_NEAR(static_cast<double>(CountBetween(times, 10 * period + 2, 10 * period + 3)), 1984, 10);
    EXPECT_NEAR(static_cast<double>(CountBetween(times, 10 * period + 7, 10 * period + 8)), 16, 6);
  }
}

TEST(ArrivalScheduleTest, AFewOperationsADayComeWhenTheyAreDue) {
  const Arrival day{
      .model = ArrivalModel::kDiurnal, .amplitude = 0.5, .period_s = 1, .warmup_s = 1, .duration_s = 94};
  const std::vector<double> times = TimesOf(day, 0.1);
  ASSERT_EQ(times.size(), 10u);
  for (size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(times[i], 10.0 * static_cast<double>(i), 0.1);
}

}  // namespace
}  // namespace partita::lab

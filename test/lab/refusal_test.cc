#include "bench/lab/refusal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bench/lab/arrival_schedule.h"

namespace partita::lab {
namespace {

constexpr double kUnits = 3;  // Of an operation.

// When a bucket of 2,000 units, into which 1,000 a second flow, refuses one of the operations; -1: none.
double FirstRefusedOf(const Arrival& arrival) {
  ArrivalSchedule schedule(arrival, *std::max_element(arrival.rates.begin(), arrival.rates.end()), 7);
  double owed = 0, last = 0;
  while (const auto at = schedule.Next()) {
    owed = std::max(owed - 1'000 * (*at - last), 0.0) + kUnits;
    last = *at;
    if (owed > 2'000) return *at;
  }
  return -1;
}

std::optional<Refusal> RefusalOf(const Arrival& arrival) {
  return FirstRefusal(arrival, *arrival.HighestRate() * kUnits, 1'000);
}

TEST(RefusalTest, IsWhenABucketOfTheScheduledOperationsIsEmpty) {
  std::vector<double> crowded;
  for (int i = 0; i < 2'000; ++i) crowded.push_back(i < 1'000 ? 0.01 * i : 10 + 0.001 * (i - 1'000));
  const std::vector<Arrival> all = {
      {.model = ArrivalModel::kRamp, .rates = {33}, .rate_end = 2'000},
      {.model = ArrivalModel::kRamp, .rates = {2'000}, .rate_end = 33},
      {.model = ArrivalModel::kRamp, .rates = {33}, .rate_end = 500},
      {.model = ArrivalModel::kSteps, .rates = {100, 800, 100}},
      {.model = ArrivalModel::kSteps, .rates = {100, 400, 100}},
      {.model = ArrivalModel::kBurst, .rates = {1'400}, .on_s = 1, .off_s = 3},
      {.model = ArrivalModel::kBurst, .rates = {1'400}, .on_s = 0.5, .off_s = 3},
      {.model = ArrivalModel::kBurst, .rates = {1'400}, .on_s = 0.5, .off_s = 0.5},
      {.model = ArrivalModel::kDiurnal, .rates = {300}, .amplitude = 0.9, .period_s = 10},
      {.model = ArrivalModel::kDiurnal, .rates = {300}, .amplitude = 0.9, .period_s = 50},
      {.model = ArrivalModel::kReplay, .rates = {1}, .times = crowded},
      {.model = ArrivalModel::kReplay, .rates = {1}, .times = crowded, .scale = 4},
  };
  for (size_t i = 0; i < all.size(); ++i) {
    Arrival arrival = all[i];
    arrival.warmup_s = 1;
    arrival.duration_s = 11;
    const double first = FirstRefusedOf(arrival);
    const std::optional<Refusal> told = RefusalOf(arrival);
    const bool in_run = told && told->after_s < 12;
    ASSERT_EQ(in_run, first >= 0) << i << ": " << first;
    if (in_run) EXPECT_NEAR(told->after_s, first, 0.05) << i;
  }
}

TEST(RefusalTest, OfWhatGoesOnComesSoonerOrLater) {
  Arrival arrival{.rates = {400}, .on_s = 3, .off_s = 1, .warmup_s = 0, .duration_s = 1};
  ASSERT_TRUE(RefusalOf(arrival).has_value());
  EXPECT_DOUBLE_EQ(RefusalOf(arrival)->after_s, 10);
  EXPECT_TRUE(RefusalOf(arrival)->lasts);
  arrival.model = ArrivalModel::kRamp;
  arrival.rate_end = 400;
  EXPECT_FALSE(RefusalOf(arrival).has_value()) << "it ends with the run";
  arrival.model = ArrivalModel::kBurst;
  EXPECT_FALSE(RefusalOf(arrival).has_value()) << "900 units a second on average";
  arrival.rates = {500};
  ASSERT_TRUE(RefusalOf(arrival).has_value());
  EXPECT_NEAR(RefusalOf(arrival)->after_s, 16, 0.1);
  EXPECT_TRUE(RefusalOf(arrival)->lasts);
  arrival.rates = {300};
  EXPECT_FALSE(RefusalOf(arrival).has_value()) << "no peak is above the target";
}

TEST(RefusalTest, OneOperationMayAskForMoreThanABucketHolds) {
  EXPECT_FALSE(ExceedsBucket(2'000, 1'000));
  EXPECT_TRUE(ExceedsBucket(2'001, 1'000));
  EXPECT_FALSE(ExceedsBucket(1e9, 0)) << "no target";
}

}  // namespace
}  // namespace partita::lab

#include "engine/flush_rate.h"

#include <gtest/gtest.h>

#include "engine/base/clock.h"

namespace partita {
namespace {

TEST(FlushRateTest, FollowsASteadyRateAndForgetsIt) {
  FlushRate rate;
  EXPECT_EQ(rate.PerSecond(100 * kNanosPerSecond), 0u);
  uint64_t now = 5 * kNanosPerSecond;
  for (int i = 0; i < 200; ++i) rate.Add(now += kNanosPerSecond / 2, 20'000'000);
  EXPECT_NEAR(static_cast<double>(rate.PerSecond(now)), 40e6, 2e6);
  EXPECT_NEAR(static_cast<double>(rate.PerSecond(now + 8 * kNanosPerSecond)), 40e6 / 2.718, 1e6);
  EXPECT_LT(rate.PerSecond(now + 60 * kNanosPerSecond), 40'000u);
  // Slower, and then a burst.
  for (int i = 0; i < 40; ++i) rate.Add(now += 2 * kNanosPerSecond, 2'000'000);
  EXPECT_NEAR(static_cast<double>(rate.PerSecond(now)), 1e6, 3e5);
  rate.Add(now, 80'000'000);
  EXPECT_GT(rate.PerSecond(now), 10'000'000u);
}

TEST(FlushRateTest, AClockThatGoesBackChangesNothing) {
  FlushRate rate;
  rate.Add(10 * kNanosPerSecond, 8'000'000);
  EXPECT_EQ(rate.PerSecond(9 * kNanosPerSecond), 1'000'000u);
}

}  // namespace
}  // namespace partita

#include "engine/flush_rate.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/base/clock.h"

namespace partita {
namespace {

double PerSecond(const FlushRate& rate, uint64_t now) { return static_cast<double>(rate.PerSecond(now)); }

TEST(FlushRateTest, FollowsASteadyRateAndForgetsIt) {
  FlushRate rate;
  EXPECT_EQ(rate.PerSecond(100 * kNanosPerSecond), 0u);
  uint64_t now = 5 * kNanosPerSecond;
  for (int i = 0; i < 200; ++i) rate.Add(now += kNanosPerSecond / 2, 20'000'000);
  EXPECT_NEAR(PerSecond(rate, now), 40e6, 1e5);
  EXPECT_NEAR(PerSecond(rate, now + 8 * kNanosPerSecond), 40e6 / 2.718, 2e6);
  EXPECT_LT(rate.PerSecond(now + 60 * kNanosPerSecond), 40'000u);
  // Slower, and then a burst.
  for (int i = 0; i < 40; ++i) rate.Add(now += 2 * kNanosPerSecond, 2'000'000);
  EXPECT_NEAR(PerSecond(rate, now), 1e6, 1e5);
  rate.Add(now, 80'000'000);
  EXPECT_NEAR(PerSecond(rate, now), 11e6, 1e6);
}

// A few large flushes, far apart: also just before the next one the rate is about what it was.
TEST(FlushRateTest, DoesNotFallBetweenFlushesThatAreFarApart) {
  using Pauses = std::vector<uint64_t>;
  for (const Pauses& pauses : {Pauses{21}, Pauses{16, 5}, Pauses{20, 10}, Pauses{10, 1, 1}}) {
    FlushRate rate;
    uint64_t now = 5 * kNanosPerSecond;
    for (int i = 0; i < 40; ++i) {
      const uint64_t seconds = pauses[static_cast<size_t>(i) % pauses.size()];
      now += seconds * kNanosPerSecond;
      if (i > 10) {
        EXPECT_GT(PerSecond(rate, now), 2.5e6) << pauses[0] << " " << i;
        EXPECT_LT(PerSecond(rate, now), 5e6) << pauses[0] << " " << i;
      }
      rate.Add(now, seconds * 4'000'000);
    }
    EXPECT_LT(rate.PerSecond(now + 60 * kNanosPerSecond), 2e5);
  }
}

// Writers that were away for an hour flush a little, and go again.
TEST(FlushRateTest, AnHourWithoutFlushesIsNoReasonToWaitForAnother) {
  FlushRate rate;
  uint64_t now = 3600 * kNanosPerSecond;
  rate.Add(now, 64'000'000);
  for (int i = 0; i < 3; ++i) rate.Add(now += (i == 0 ? 3600 : 1) * kNanosPerSecond, 64'000'000);
  EXPECT_GT(PerSecond(rate, now), 10e6);
  EXPECT_LT(PerSecond(rate, now + 60 * kNanosPerSecond), 5e5);
}

TEST(FlushRateTest, AClockThatGoesBackChangesNothing) {
  FlushRate rate;
  rate.Add(10 * kNanosPerSecond, 8'000'000);
  EXPECT_EQ(rate.PerSecond(9 * kNanosPerSecond), 1'000'000u);
}

}  // namespace
}  // namespace partita

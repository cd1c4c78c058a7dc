#include "bench/lab/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "bench/lab/draw.h"
#include "engine/base/checksum.h"

namespace partita::lab {
namespace {

TEST(ExactMathTest, AgreesWithTheLibraryToThirteenDigits) {
  Draw draw(7, 0);
  for (int i = 0; i < 100'000; ++i) {
    const double x = std::ldexp(draw.Uniform() + 1e-9, static_cast<int>(draw.Below(80)) - 40);
    EXPECT_NEAR(ExactLog(x), std::log(x), 1e-14 * std::max(1.0, std::abs(std::log(x))));
    const double y = (draw.Uniform() - 0.5) * 200;
    EXPECT_NEAR(ExactExp(y) / std::exp(y), 1, 1e-14);
    const double turns = draw.Uniform();
    EXPECT_NEAR(ExactCosTurns(turns), std::cos(2 * std::numbers::pi * turns), 1e-14);
    EXPECT_NEAR(ExactPow(x, -0.99) / std::pow(x, -0.99), 1, 1e-13);
    EXPECT_NEAR(ExactPow(x, 2) / std::pow(x, 2), 1, 1e-13);  // |2 ln x| goes up to 97.
  }
  EXPECT_EQ(ExactLog(1), 0);
  EXPECT_EQ(ExactExp(0), 1);
  EXPECT_EQ(ExactCosTurns(0), 1);
  EXPECT_EQ(ExactCosTurns(1), 1);
}

TEST(ExactMathTest, ExponentialsBelowTheSmallestAreZero) {
  EXPECT_NEAR(ExactExp(-700) / std::exp(-700), 1, 1e-13);
  EXPECT_EQ(ExactExp(std::nextafter(-700, -1'000)), 0);
  EXPECT_EQ(ExactExp(-1e6), 0);
  EXPECT_NEAR(ExactExp(700) / std::exp(700), 1, 1e-13);
}

TEST(ExactMathTest, EveryBitIsTheSameOnEveryMachine) {
  StreamHash hash;
  Draw draw(11, 0);
  for (int i = 0; i < 10'000; ++i) {
    const double figures[] = {draw.Normal(), ExactExp(draw.Normal()), ExactPow(1 + draw.Uniform(), -0.9)};
    hash.Update({reinterpret_cast<const char*>(figures), sizeof(figures)});
  }
  EXPECT_EQ(hash.Digest(), 517418409491731698u);
}

}  // namespace
}  // namespace partita::lab

#include "bench/load/zipf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace partita::bench {
namespace {

TEST(ZipfTest, DrawsEachRankAsOftenAsItShould) {
  constexpr uint64_t kSize = 1000;
  constexpr int kDraws = 1'000'000;
  const Zipf zipf(kSize);
  std::mt19937_64 random(7);
  std::vector<int> drawn(kSize);
  for (int i = 0; i < kDraws; ++i) ++drawn.at(zipf.Draw(random));

  double zeta = 0;
  for (uint64_t rank = 1; rank <= kSize; ++rank) zeta += std::pow(static_cast<double>(rank), -0.99);
  // The first two ranks are exact, the others within the method's few percent.
  EXPECT_NEAR(drawn[0], kDraws / zeta, 0.02 * kDraws / zeta);
  EXPECT_NEAR(drawn[1], kDraws / zeta * std::pow(2.0, -0.99), 0.03 * kDraws / zeta);
  int last_half = 0;
  for (uint64_t rank = kSize / 2; rank < kSize; ++rank) last_half += drawn[rank];
  EXPECT_NEAR(last_half, kDraws * 0.0934, kDraws * 0.01);
}

TEST(ZipfTest, OneRankIsDrawnAlways) {
  std::mt19937_64 random(7);
  EXPECT_EQ(Zipf(1).Draw(random), 0u);
}

}  // namespace
}  // namespace partita::bench

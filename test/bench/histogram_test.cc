#include "bench/load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace partita::bench {
namespace {

TEST(HistogramTest, AnEmptyOneReportsZero) {
  Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Percentile(0.5), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.min(), 0u);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 63; ++value) histogram.Record(value);
  EXPECT_EQ(histogram.Percentile(0), 1u);
  EXPECT_EQ(histogram.Percentile(0.5), 32u);
  EXPECT_EQ(histogram.Percentile(1), 63u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 32);
}

TEST(HistogramTest, PercentilesAreAtMostOneSixtyFourthAboveTheExactOnes) {
  std::mt19937_64 random(7);
  std::vector<uint64_t> values;
  Histogram histogram;
  for (int i = 0; i < 100000; ++i) {
    // Spread over all magnitudes from nanoseconds to minutes.
    const uint64_t value = random() >> (28 + random() % 36);
    values.push_back(value);
    histogram.Record(value);
  }
  std::sort(values.begin(), values.end());
  for (double fraction : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const uint64_t exact = values[static_cast<size_t>(fraction * 100000) - 1];
    const uint64_t reported = histogram.Percentile(fraction);
    EXPECT_GE(reported, exact) << fraction;
    EXPECT_LE(static_cast<double>(reported), static_cast<double>(exact) * (1 + 1.0 / 64) + 1) << fraction;
  }
}

TEST(HistogramTest, AValueBeyondTheLastBucketIsReportedAsTheMaximum) {
  Histogram histogram;
  histogram.Record(uint64_t{1} << 50);
  histogram.Record(UINT64_MAX);
  EXPECT_EQ(histogram.Percentile(1), UINT64_MAX);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
}

TEST(HistogramTest, MergingEqualsRecordingInOne) {
  std::mt19937_64 random(11);
  Histogram left, right, both;
  for (int i = 0; i < 10000; ++i) {
    const uint64_t value = random() % 1'000'000;
    (i % 3 == 0 ? left : right).Record(value);
    both.Record(value);
  }
  left.Merge(right);
  EXPECT_EQ(left.count(), both.count());
  EXPECT_EQ(left.max(), both.max());
  EXPECT_EQ(left.min(), both.min());
  for (double fraction : {0.1, 0.5, 0.99, 0.9999})
    EXPECT_EQ(left.Percentile(fraction), both.Percentile(fraction));
}

}  // namespace
}  // namespace partita::bench

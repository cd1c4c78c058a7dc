#include "engine/heat_history.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/checksum.h"
#include "engine/base/clock.h"
#include "engine/base/user_key.h"

namespace partita {
namespace {

std::string HeatPrefix(uint64_t partition) {
  return EncodeUserKey(TableId(1), "p" + std::to_string(100'000 + partition), "");
}

// One read of 1 us and 100 bytes.
LoadSample Sample(uint64_t partition, uint64_t second, double weight = 1) {
  LoadSample sample{
      .time_ns = second * kNanosPerSecond, .weight = weight, .bytes = 100, .rows = 1, .cpu_ns = 1'000};
  const std::string prefix = HeatPrefix(partition);
  sample.hash = Hash64(prefix);
  sample.partition_size = static_cast<uint8_t>(prefix.size());
  std::copy(prefix.begin(), prefix.end(), sample.partition_bytes.begin());
  return sample;
}

double Sum(const HeatHistory::Picture& picture, HeatMetric metric) {
  double sum = 0;
  for (const HeatValues& cell : picture.cells) sum += cell[static_cast<size_t>(metric)];
  return sum;
}

class HeatHistoryTest : public testing::Test {
 protected:
  // Evenly over `count` partitions from `first` on.
  void Load(uint64_t second, uint64_t first, uint64_t count, double weight = 1) {
    std::vector<LoadSample> samples;
    for (uint64_t i = 0; i < count; ++i) samples.push_back(Sample(first + i, second, weight));
    history_.Take(samples);
    history_.CutAnew();
  }
  HeatHistory::Picture Read(HeatHistory::Window window, uint64_t second) {
    return history_.Read(window, second * kNanosPerSecond);
  }

  HeatHistory history_;
};

TEST(HeatAxisTest, CutsIntoBucketsOfTheSameWeight) {
  std::vector<HeatAxis::WeightedKey> keys;
  for (uint64_t i = 0; i < 1'000; ++i) keys.push_back({HeatPrefix(i), 1});
  const HeatAxis axis = HeatAxis::Cut(keys, 10);
  ASSERT_EQ(axis.size(), 10u);
  std::vector<int> counts(10);
  for (const auto& key : keys) ++counts[axis.BucketOf(key.key)];
  for (const int count : counts) EXPECT_NEAR(count, 100, 2);
  EXPECT_EQ(axis.BucketOf(""), 0u);
  EXPECT_EQ(axis.BucketOf("\xFF"), 9u);
}

TEST(HeatAxisTest, AHeavyKeyIsAloneAndTheOthersAreEven) {
  std::vector<HeatAxis::WeightedKey> keys;
  for (uint64_t i = 0; i < 1'000; ++i) keys.push_back({HeatPrefix(i), i == 500 ? 5'000.0 : 1.0});
  const HeatAxis axis = HeatAxis::Cut(keys, 11);
  std::vector<int> counts(axis.size());
  for (const auto& key : keys) ++counts[axis.BucketOf(key.key)];
  EXPECT_EQ(counts[axis.BucketOf(HeatPrefix(500))], 1);
  EXPECT_GE(axis.size(), 6u);
  EXPECT_LE(*std::max_element(counts.begin(), counts.end()), 505);
}

TEST(HeatAxisTest, ASingleKeyOrNoneIsOneBucket) {
  EXPECT_EQ(HeatAxis::Cut({}, 10).size(), 1u);
  EXPECT_EQ(HeatAxis::Cut({{HeatPrefix(1), 3}}, 10).size(), 1u);
}

TEST(HeatAxisTest, KnowsWhichBucketsOverlap) {
  std::vector<HeatAxis::WeightedKey> keys;
  for (uint64_t i = 0; i < 100; ++i) keys.push_back({HeatPrefix(i), 1});
  const HeatAxis fine = HeatAxis::Cut(keys, 20), coarse = HeatAxis::Cut(keys, 5);
  size_t buckets = 0;
  for (size_t bucket = 0; bucket < coarse.size(); ++bucket) {
    const HeatAxis::Overlap over = fine.Over(coarse, bucket);
    EXPECT_LE(over.first, over.last);
    buckets += over.last - over.first + 1;
    const HeatAxis::Overlap itself = coarse.Over(coarse, bucket);
    EXPECT_EQ(itself.first, bucket);
    EXPECT_EQ(itself.last, bucket);
  }
  EXPECT_GE(buckets, 20u);
  EXPECT_LE(buckets, 25u);
}

TEST_F(HeatHistoryTest, ShowsEachSecondOfTheLastMinutes) {
  for (uint64_t second = 1'000; second < 1'100; ++second) Load(second, 0, 200, second < 1'050 ? 1 : 3);
  const auto picture = Read({.seconds = 100, .columns_max = 100}, 1'099);
  ASSERT_EQ(picture.columns, 100u);
  EXPECT_EQ(picture.column_ns, kNanosPerSecond);
  EXPECT_EQ(picture.begin_ns, 1'000 * kNanosPerSecond);
  EXPECT_GT(picture.axis.size(), 30u);
  EXPECT_NEAR(Sum(picture, HeatMetric::kReads), 50 * 200 + 50 * 600, 1);
  EXPECT_NEAR(Sum(picture, HeatMetric::kBytes), 100.0 * (50 * 200 + 50 * 600), 100);
  double early = 0, late = 0;
  for (size_t bucket = 0; bucket < picture.axis.size(); ++bucket) {
    early += picture.at(20, bucket)[0];
    late += picture.at(70, bucket)[0];
  }
  EXPECT_NEAR(early, 200, 1);
  EXPECT_NEAR(late, 600, 1);
}

TEST_F(HeatHistoryTest, AHotPlaceStaysInItsPlaceWhenTheAxisIsCutAnew) {
  for (uint64_t second = 1'000; second < 1'280; ++second) {
    const uint64_t hot = second < 1'140 ? 100 : 800;  // It shifts to the other end.
    Load(second, 0, 1'000);
    Load(second, hot, 50, 100);
  }
  const auto picture = Read({.seconds = 280, .columns_max = 280}, 1'279);
  const size_t left = picture.axis.BucketOf(HeatPrefix(125)), right = picture.axis.BucketOf(HeatPrefix(825));
  ASSERT_LT(left, right);
  const auto around = [&](size_t column, size_t bucket) {
    double sum = 0;
    for (size_t at = bucket < 12 ? 0 : bucket - 12; at < bucket + 13 && at < picture.axis.size(); ++at) {
      sum += picture.at(column, at)[0];
    }
    return sum;
  };
  // Before it was hot, the other end was coarse there; its load lies near, not elsewhere.
  EXPECT_GT(around(100, left), 4'000);
  EXPECT_LT(around(100, right), 1'500);
  EXPECT_GT(around(270, right), 4'000);
  EXPECT_LT(around(270, left), 1'500);
}

TEST_F(HeatHistoryTest, KeepsTwoWeeksInTiersWithinItsMemory) {
  constexpr uint64_t kDays = 15, kStep = 10;
  for (uint64_t second = 0; second < kDays * 86'400; second += kStep) {
    Load(1'000 + second, second / 3'600 % 24 * 40, 40);
  }
  const uint64_t now = 1'000 + kDays * 86'400 - kStep;
  for (const uint64_t seconds : {300, 3'600, 86'400, 14 * 86'400}) {
    const auto picture = Read({.seconds = static_cast<uint64_t>(seconds), .columns_max = 2'016}, now);
    EXPECT_NEAR(Sum(picture, HeatMetric::kReads), static_cast<double>(seconds) / kStep * 40,
                std::max(200.0, static_cast<double>(seconds) * 0.02))
        << seconds;
    EXPECT_LE(picture.columns, 2'016u);
  }
  EXPECT_LT(history_.memory_bytes(), 15u << 20);
  EXPECT_EQ(Read({.seconds = 14 * 86'400, .columns_max = 100}, now).columns, 96u);
}

TEST_F(HeatHistoryTest, ShowsAPartOfTheKeys) {
  for (uint64_t second = 1'000; second < 1'060; ++second) Load(second, 0, 640);
  const auto picture = Read({.seconds = 50, .lower = HeatPrefix(320), .upper = HeatPrefix(480)}, 1'059);
  EXPECT_NEAR(Sum(picture, HeatMetric::kReads), 50 * 160, 50 * 25);
}

// More than a second's share for the axis, by which each seventh stands for seven.
TEST_F(HeatHistoryTest, ABusyStoreIsCutAsEvenly) {
  for (uint64_t second = 1'000; second < 1'010; ++second) {
    for (int turn = 0; turn < 9; ++turn) Load(second, 0, 1'001);
  }
  const auto picture = Read({.seconds = 5, .columns_max = 1}, 1'009);
  EXPECT_GT(picture.axis.size(), HeatAxis::kBucketsMax / 2);
  double most = 0;
  for (size_t bucket = 0; bucket < picture.axis.size(); ++bucket)
    most = std::max(most, picture.at(0, bucket)[0]);
  EXPECT_LT(most, 3 * Sum(picture, HeatMetric::kReads) / static_cast<double>(picture.axis.size()));
}

// The end of a second that others wait for does not cut.
TEST_F(HeatHistoryTest, ACutThatIsDueWaitsUntilItIsAskedFor) {
  const auto take = [&](uint64_t second) {
    std::vector<LoadSample> samples;
    for (uint64_t i = 0; i < 200; ++i) samples.push_back(Sample(i, second));
    history_.Take(samples);
  };
  take(1'000);
  EXPECT_FALSE(history_.IsCutDue());
  for (uint64_t second = 1'001; second < 1'005; ++second) take(second);
  EXPECT_TRUE(history_.IsCutDue());
  EXPECT_EQ(Read({.seconds = 10}, 1'004).axis.size(), 1u);
  history_.CutAnew();
  EXPECT_FALSE(history_.IsCutDue());
  take(1'005);
  const auto picture = Read({.seconds = 1}, 1'005);
  EXPECT_GT(picture.axis.size(), HeatAxis::kBucketsMax / 2);
  EXPECT_NEAR(Sum(picture, HeatMetric::kReads), 200, 1);
}

// The first bucket reaches from the beginning of all keys: what it holds must not be spread over others.
TEST_F(HeatHistoryTest, AFewPartitionsAreShownEachForItself) {
  for (uint64_t second = 1'000; second < 1'060; ++second) {
    for (uint64_t partition = 0; partition < 8; ++partition)
      Load(second, partition, 1, 10.0 - static_cast<double>(partition));
  }
  const auto picture = Read({.seconds = 30, .columns_max = 1}, 1'059);
  ASSERT_EQ(picture.axis.size(), 8u);
  for (size_t bucket = 0; bucket < 8; ++bucket) {
    EXPECT_EQ(picture.axis.BucketOf(HeatPrefix(bucket)), bucket);
    EXPECT_NEAR(picture.at(0, bucket)[0], 30 * (10.0 - static_cast<double>(bucket)), 0.1);
  }
}

TEST_F(HeatHistoryTest, AnEmptyOneIsEmpty) {
  const auto picture = Read({.seconds = 60}, 5);
  EXPECT_EQ(picture.axis.size(), 1u);
  EXPECT_DOUBLE_EQ(Sum(picture, HeatMetric::kReads), 0);
  EXPECT_DOUBLE_EQ(Sum(Read({.seconds = 60}, 1'000'000), HeatMetric::kReads), 0);
}

}  // namespace
}  // namespace partita

#include "engine/hot_partitions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/load_sampler.h"
#include "test/support/hand_set_clock.h"

namespace partita {
namespace {

std::string PartitionKeyOf(uint64_t partition) {
  return EncodeUserKey(TableId(1), "p" + std::to_string(partition), "r");
}

// A zipf distribution over [0, count) by its exact sums.
class ExactZipf {
 public:
  ExactZipf(size_t count, double theta) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sums_.push_back(sum += std::pow(static_cast<double>(i + 1), -theta));
  }
  size_t Draw(std::mt19937_64& random) {
    const double at = std::uniform_real_distribution<double>(0, sums_.back())(random);
    return static_cast<size_t>(std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin());
  }
  double Share(size_t i) const { return (sums_[i] - (i == 0 ? 0 : sums_[i - 1])) / sums_.back(); }

 private:
  std::vector<double> sums_;
};

class HotPartitionsTest : public testing::Test {
 protected:
  HotPartitionsTest() { sampler_.AddConsumer(&hot_); }
  void Pass(uint64_t nanos) {
    sampler_.Collect();
    clock_.now_ns += nanos;
  }
  std::string NameOf(const HotPartitions::Partition& partition) {
    return std::string(DecodeUserKey(partition.prefix)->partition_key);
  }

  HandSetClock clock_;
  LoadSampler sampler_{clock_, [] {}};
  HotPartitions hot_;
};

// 100,000 partitions under YCSB's skew, 200,000 reads a second, for half a minute: through the
// sampler, as in a store.
TEST_F(HotPartitionsTest, TheTopTenOfAZipfLoadAreTheTrueTopTen) {
  constexpr size_t kPartitions = 100'000;
  ExactZipf zipf(kPartitions, 0.99);
  std::mt19937_64 random(11);
  std::vector<std::string> keys;
  for (size_t i = 0; i < kPartitions; ++i) keys.push_back(PartitionKeyOf(i));
  for (int period = 0; period < 30 * 40; ++period) {
    for (int i = 0; i < 25'000 / 5; ++i) {
      sampler_.Note(LoadKind::kRead, keys[zipf.Draw(random)], 1, 100, 500);
    }
    Pass(25'000'000);
  }
  const auto top = hot_.Top(HeatMetric::kReads, 10, clock_.now_ns);
  ASSERT_EQ(top.size(), 10u);
  std::vector<bool> seen(10);
  for (const HotPartitions::Partition& partition : top) {
    const size_t rank = std::stoul(NameOf(partition).substr(1));
    ASSERT_LT(rank, 10u);
    seen[rank] = true;
    const double truly = 200'000 * zipf.Share(rank);
    EXPECT_NEAR(partition.per_second, truly, truly * 0.1);
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 10);
  EXPECT_NEAR(hot_.TotalPerSecond(clock_.now_ns)[0], 200'000, 6'000);
}

TEST_F(HotPartitionsTest, EachMetricHasItsOwnOrder) {
  for (int i = 0; i < 10; ++i) sampler_.Note(LoadKind::kRead, PartitionKeyOf(1), 1, 50, 10'000);
  for (int i = 0; i < 5; ++i) sampler_.Note(LoadKind::kWrite, PartitionKeyOf(2), 3, 90'000, 2'000);
  sampler_.Note(LoadKind::kScan, PartitionKeyOf(3), 64, 10, 3'000);
  for (int i = 0; i < 7; ++i) sampler_.Note(LoadKind::kThrottled, PartitionKeyOf(4), 1, 0, 0);
  Pass(2 * kNanosPerSecond);
  const auto first = [&](HeatMetric metric) { return NameOf(hot_.Top(metric, 1, clock_.now_ns).front()); };
  EXPECT_EQ(first(HeatMetric::kReads), "p1");
  EXPECT_EQ(first(HeatMetric::kWrites), "p2");
  EXPECT_EQ(first(HeatMetric::kScanned), "p3");
  EXPECT_EQ(first(HeatMetric::kThrottled), "p4");
  EXPECT_EQ(first(HeatMetric::kBytes), "p2");
  EXPECT_EQ(first(HeatMetric::kCpu), "p1");
  EXPECT_EQ(hot_.Top(HeatMetric::kWrites, 10, clock_.now_ns).size(), 1u);
}

TEST_F(HotPartitionsTest, HotMeansNow) {
  for (int second = 0; second < 600; ++second) {
    const uint64_t partition = second < 500 ? 1 : 2;
    for (int i = 0; i < 20; ++i) sampler_.Note(LoadKind::kRead, PartitionKeyOf(partition), 1, 50, 500);
    Pass(kNanosPerSecond);
  }
  const auto top = hot_.Top(HeatMetric::kReads, 2, clock_.now_ns);
  EXPECT_EQ(NameOf(top[0]), "p2");
  EXPECT_NEAR(top[0].per_second, 18, 1);  // 100 seconds are 3.3 half-lives.
  EXPECT_NEAR(top[1].per_second, 2, 0.5);
  // Years later the weights have been brought down many times.
  for (uint64_t year = 0; year < 3; ++year) {
    Pass(365 * 86'400 * kNanosPerSecond);
    for (int i = 0; i < 100; ++i) sampler_.Note(LoadKind::kRead, PartitionKeyOf(9), 1, 50, 500);
  }
  sampler_.Collect();
  const auto later = hot_.Top(HeatMetric::kReads, 2, clock_.now_ns);
  EXPECT_EQ(NameOf(later[0]), "p9");
  EXPECT_GT(later[0].per_second, 1);
  EXPECT_NEAR(later[1].per_second, 0, 1e-9);
}

// Metwally's bound holds for what was counted, here all.
TEST_F(HotPartitionsTest, NoValueIsOffByMoreThanItsBound) {
  std::mt19937_64 random(5);
  std::vector<double> truly(5'000);
  double whole = 0;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t partition = random() % 100 < 30 ? random() % 20 : random() % truly.size();
    LoadSample sample{.time_ns = kNanosPerSecond, .weight = 1, .rows = 1};
    const std::string prefix(PartitionPrefix(PartitionKeyOf(partition)));
    sample.hash = partition * 0x9E3779B97F4A7C15 + 1;
    sample.partition_size = static_cast<uint8_t>(prefix.size());
    std::copy(prefix.begin(), prefix.end(), sample.partition_bytes.begin());
    hot_.Take({&sample, 1});
    truly[partition] += 1;
    whole += 1;
  }
  const double rate = hot_.TotalPerSecond(kNanosPerSecond)[0] / whole;
  for (const auto& partition : hot_.Top(HeatMetric::kReads, HotPartitions::kCounters, kNanosPerSecond)) {
    const double counted = truly[std::stoul(NameOf(partition).substr(1))] * rate;
    EXPECT_GE(partition.per_second, counted * 0.999);
    EXPECT_LE(partition.per_second - partition.above, counted * 1.001);
    EXPECT_LE(partition.above, whole * rate / HotPartitions::kCounters * 1.001);
  }
}

}  // namespace
}  // namespace partita

#include "bench/lab/operation_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "bench/lab/arrival_schedule.h"
#include "bench/lab/zipf_ranks.h"
#include "engine/base/checksum.h"
#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

constexpr const char* kOtherLayouts = R"(
[[layout]]
name = "one"
pk = "all"
rk = "{ticks(ts)}_{device}"
[limits]
profile = "storage"
[target]
durability = "memory"
)";

TEST(OperationStreamTest, OneSeedGivesOneStreamWhateverLayoutAndTarget) {
  const Experiment a = ParseSound(ReadingsText(kDeviceLayout));
  const Experiment b = ParseSound(ReadingsText(kOtherLayouts));
  const Experiment c = ParseSound(ReadingsText(kDeviceLayout, "43"));
  const uint64_t hash = HashOfStream(RecordGenerator(a), 5'000);
  EXPECT_EQ(hash, HashOfStream(RecordGenerator(b), 5'000));
  EXPECT_NE(hash, HashOfStream(RecordGenerator(c), 5'000));
  // What is asked for counts too.
  Experiment d = ParseSound(ReadingsText(kDeviceLayout));
  d.ops[1].limit = 11;
  EXPECT_NE(hash, HashOfStream(RecordGenerator(d), 5'000));
  // The same on every machine and in every version: else old results compare with nothing.
  EXPECT_EQ(hash, 12295904149464335674u);
}

TEST(OperationStreamTest, OperationsComeByTheirWeightAndNewRecordsInOrder) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  const RecordGenerator generator(experiment);
  OperationStream stream(generator);
  std::map<size_t, int> counts;
  uint64_t next = experiment.records;
  for (int i = 0; i < 10'000; ++i) {
    const Operation operation = stream.Next();
    ++counts[operation.op];
    EXPECT_EQ(operation.existing, next);
    if (operation.op == 0) {
      EXPECT_EQ(operation.record, next);
      next += 5;
    } else {
      EXPECT_LT(operation.record, next);
    }
  }
  EXPECT_NEAR(counts[0], 8'000, 200);
  EXPECT_NEAR(counts[1], 1'000, 150);
}

TEST(OperationStreamTest, WhatTheOtherClientsMayStillBeWritingIsNotChosen) {
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  for (Op& op : experiment.ops) op.pick = Pick::kLatest;
  const RecordGenerator generator(experiment);
  OperationStream stream(generator);
  std::vector<uint64_t> existing(experiment.arrival.clients, experiment.records);  // Behind each operation.
  uint64_t latest = 0, chosen = 0;
  for (int i = 0; i < 5'000; ++i) {
    const Operation operation = stream.Next();
    const uint64_t settled = existing[existing.size() - experiment.arrival.clients];
    if (operation.op != 0) {
      EXPECT_LT(operation.record, settled);
      ++chosen;
      if (operation.record + 1 == settled) ++latest;
    }
    existing.push_back(operation.existing + (operation.op == 0 ? 5 : 0));
  }
  EXPECT_GT(latest, chosen / 20) << "of the others the latest is the likeliest";
}

TEST(DistributionTest, ValuesFollowTheirDistributions) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  const RecordGenerator generator(experiment);
  std::map<std::string, int> devices, types;
  double sum = 0, squares = 0;
  Record record;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) {
    generator.Make(static_cast<uint64_t>(i), &record);
    ++devices[*record.values[0].if_string()];
    ++types[*record.values[3].if_string()];
    const double value = *record.values[4].if_double();
    sum += value / kCount;
    squares += value * value / kCount;
  }
  EXPECT_NEAR(types["alarm"], kCount * 0.05, 120);
  EXPECT_NEAR(sum, 21.0, 0.1);
  EXPECT_NEAR(std::sqrt(squares - sum * sum), 3.0, 0.1);
  EXPECT_EQ(devices.size(), 100u);
  EXPECT_NEAR(static_cast<double>(devices["dev-000"]) / devices["dev-001"], std::pow(2.0, 0.9), 0.2);
}

// The sum of 1 / k^theta for k from 1 on to below `end`: Euler and Maclaurin behind the first thousand.
double ZipfSum(double end, double theta) {
  double sum = 0;
  const double exact = std::min(end, 1'000.0);
  for (double k = 1; k < exact; ++k) sum += std::pow(k, -theta);
  if (end <= exact) return sum;
  const auto integral = [&](double x) {
    return theta == 1 ? std::log(x) : std::pow(x, 1 - theta) / (1 - theta);
  };
  return sum + integral(end) - integral(exact) + (std::pow(exact, -theta) - std::pow(end, -theta)) / 2;
}

TEST(ZipfRanksTest, RanksHaveTheirShareUpToABillionAndAroundTheSkewOfOne) {
  constexpr int kCount = 200'000;
  for (const uint64_t n : {uint64_t{1}, uint64_t{2}, uint64_t{1'000}, uint64_t{1'000'000'000}}) {
    for (const double theta : {0.3, 0.99, 1.0, 1.0000001, 1.4, 3.0}) {
      const ZipfRanks ranks(n, theta);
      Draw draw(5, n);
      const double ends[] = {1, 2, 3, 10, 1'000, 1'000'000, 100'000'000, 1'000'000'000};
      int below[std::size(ends)] = {};
      for (int i = 0; i < kCount; ++i) {
        const uint64_t rank = ranks.Of(&draw);
        ASSERT_LT(rank, n);
        for (size_t k = 0; k < std::size(ends); ++k) below[k] += static_cast<double>(rank) < ends[k] ? 1 : 0;
      }
      const double all = ZipfSum(static_cast<double>(n) + 1, theta);
      for (size_t k = 0; k < std::size(ends); ++k) {
        const double end = std::min(ends[k], static_cast<double>(n));
        const double share = ZipfSum(end + 1, theta) / all;
        // Five standard deviations.
        const double slack = 5 * std::sqrt(share * (1 - share) / kCount) + 1e-6;
        EXPECT_NEAR(below[k] / double{kCount}, share, slack)
            << "n " << n << " theta " << theta << " below " << end;
      }
    }
  }
}

TEST(ZipfRanksTest, ResizedIsMadeAnew) {
  ZipfRanks resized(10, 0.99);
  resized.Resize(12'345);
  const ZipfRanks made(12'345, 0.99);
  Draw one(1, 2), other(1, 2);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(resized.Of(&one), made.Of(&other));
}

double RateOf(Arrival arrival, double rate, double from, double to) {
  arrival.warmup_s = 0;
  arrival.duration_s = 10;
  ArrivalSchedule schedule(arrival, rate, 7);
  double last = 0;
  int count = 0;
  while (const auto at = schedule.Next()) {
    EXPECT_GE(*at, last);
    last = *at;
    if (*at >= from && *at < to) ++count;
  }
  return count / (to - from);
}

TEST(ArrivalScheduleTest, EveryModelKeepsItsRate) {
  EXPECT_NEAR(RateOf({.model = ArrivalModel::kConstant}, 1000, 0, 10), 1000, 1);
  EXPECT_NEAR(RateOf({.model = ArrivalModel::kPoisson}, 1000, 0, 10), 1000, 40);
  const Arrival ramp{.model = ArrivalModel::kRamp, .rate_end = 2000};
  EXPECT_NEAR(RateOf(ramp, 1000, 0, 1), 1050, 15);
  EXPECT_NEAR(RateOf(ramp, 1000, 9, 10), 1950, 25);
  const Arrival steps{.model = ArrivalModel::kSteps, .rates = {100, 1000}};
  EXPECT_NEAR(RateOf(steps, 100, 0, 5), 100, 3);
  EXPECT_NEAR(RateOf(steps, 100, 5, 10), 1000, 5);
  const Arrival burst{.model = ArrivalModel::kBurst, .on_s = 1, .off_s = 1};
  EXPECT_NEAR(RateOf(burst, 1000, 0, 1), 1000, 5);
  EXPECT_EQ(RateOf(burst, 1000, 1.01, 1.99), 0);
  const Arrival diurnal{.model = ArrivalModel::kDiurnal, .amplitude = 0.5, .period_s = 10};
  EXPECT_NEAR(RateOf(diurnal, 1000, 2, 3), 1500, 30);
  EXPECT_NEAR(RateOf(diurnal, 1000, 7, 8), 500, 20);
  const Arrival replay{.model = ArrivalModel::kReplay, .times = {0, 1, 4}, .scale = 2};
  EXPECT_NEAR(RateOf(replay, 1, 0, 2.5), 3 / 2.5, 0.01);
}

TEST(ArrivalScheduleTest, EveryBitIsTheSameOnEveryMachine) {
  StreamHash hash;
  for (const ArrivalModel model : {ArrivalModel::kPoisson, ArrivalModel::kDiurnal, ArrivalModel::kRamp}) {
    const Arrival arrival{.model = model, .rate_end = 700, .period_s = 3};
    ArrivalSchedule schedule(arrival, 300, 11);
    while (const auto at = schedule.Next()) hash.Update({reinterpret_cast<const char*>(&*at), sizeof(*at)});
  }
  EXPECT_EQ(hash.Digest(), 5153952974438536204u);
}

}  // namespace
}  // namespace partita::lab

#include "engine/range_balancer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>

namespace partita {
namespace {

using StepKind = RangeBalancer::Step::Kind;

constexpr double kCore = 1e9;
constexpr uint64_t kTick = 1'000'000'000;

std::string Bound(int partition) {
  char text[16];
  std::snprintf(text, sizeof text, "t%05d", partition);
  return std::string(text) + '\0';
}

// Ranges of a table with partitions 0 to n - 1, whose load the test sets, and a balancer that is asked twice
// a second. Steps are done at once.
class Cluster {
 public:
  Cluster(uint32_t shards, int partitions) : shards_(shards), load(partitions, 0.0) {
    ranges.push_back({"t", "", ShardId(0), RangeEpoch(1)});
  }

  void Tick() {
    now_ns_ += kTick;
    std::vector<RangeBalancer::Partition> partitions;
    for (size_t i = 0; i < load.size(); ++i) {
      if (load[i] > 0) partitions.push_back({Bound(static_cast<int>(i)), load[i]});
    }
    for (const auto& step : balancer_.Plan({now_ns_, shards_, ranges, partitions, tables})) {
      if (fails != nullptr && fails(step)) {
        ++failed;
        balancer_.Failed(step, now_ns_);
        break;
      }
      Do(step);
      balancer_.Done(step, now_ns_);
    }
  }
  void Run(int seconds) {
    for (int i = 0; i < seconds; ++i) Tick();
  }

  void Restart() { balancer_ = RangeBalancer(); }

  uint32_t OwnerOf(int partition) const { return RangeOf(Bound(partition)).owner.value; }
  double LoadOf(uint32_t shard) const {
    double sum = 0;
    for (size_t i = 0; i < load.size(); ++i) {
      if (OwnerOf(static_cast<int>(i)) == shard) sum += load[i];
    }
    return sum;
  }
  double Fair() const {
    double sum = 0;
    for (const double each : load) sum += each;
    return sum / shards_;
  }
  // Of the busiest shard, in fair shares.
  double Unevenness() const {
    double most = 0;
    for (uint32_t shard = 0; shard < shards_; ++shard) most = std::max(most, LoadOf(shard));
    return most / Fair();
  }

  uint32_t shards_;
  std::vector<double> load;
  std::vector<RangeDescriptor> ranges;
  size_t tables = 1;
  std::function<bool(const RangeBalancer::Step&)> fails;
  int splits = 0, merges = 0, moves = 0, failed = 0;

 private:
  const RangeDescriptor& RangeOf(const std::string& key) const {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), key,
                         [](const std::string& k, const RangeDescriptor& range) { return k < range.lower; });
    return *(after - 1);
  }

  void Do(const RangeBalancer::Step& step) {
    const auto at = static_cast<size_t>(&RangeOf(step.at) - ranges.data());
    switch (step.kind) {
      case StepKind::kSplit: {
        ASSERT_NE(ranges[at].lower, step.at) << "a range begins there";
        RangeDescriptor back = ranges[at];
        ranges[at].upper = back.lower = step.at;
        back.made_by_load = true;
        ranges.insert(ranges.begin() + static_cast<ptrdiff_t>(at) + 1, back);
        ++splits;
        break;
      }
      case StepKind::kMerge:
        ASSERT_EQ(ranges[at].lower, step.at);
        ASSERT_GT(at, 0u);
        ASSERT_EQ(ranges[at - 1].owner, ranges[at].owner);
        ranges[at - 1].upper = ranges[at].upper;
        ranges.erase(ranges.begin() + static_cast<ptrdiff_t>(at));
        ++merges;
        break;
      case StepKind::kMove:
        ASSERT_EQ(ranges[at].lower, step.at);
        ASSERT_NE(ranges[at].owner, step.to) << "it is there";
        ranges[at].owner = step.to;
        ++moves;
        break;
    }
  }

  RangeBalancer balancer_;
  uint64_t now_ns_ = 1'000'000'000;
};

// Partition i has the popularity of rank ranks[i].
void SetZipf(Cluster* cluster, double total, uint32_t seed) {
  std::vector<size_t> ranks(cluster->load.size());
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
  std::shuffle(ranks.begin(), ranks.end(), std::mt19937(seed));
  double sum = 0;
  for (size_t i = 0; i < ranks.size(); ++i) sum += cluster->load[i] = 1 / std::pow(ranks[i] + 1.0, 0.99);
  for (double& each : cluster->load) each *= total / sum;
}

TEST(RangeBalancerTest, LittleLoadIsLeftWhereItIs) {
  Cluster cluster(2, 10);
  for (double& load : cluster.load) load = 0.009 * kCore;
  cluster.Run(60);
  EXPECT_EQ(cluster.ranges.size(), 1u);
}

TEST(RangeBalancerTest, AFreshHotTableIsSpreadOverAllShardsAtOnce) {
  for (const uint32_t shards : {2u, 4u, 8u}) {
    Cluster cluster(shards, 2000);
    SetZipf(&cluster, kCore, shards);
    cluster.Tick();
    EXPECT_EQ(cluster.moves, 0) << "one look is none";
    cluster.Tick();
    EXPECT_LT(cluster.Unevenness(), RangeBalancer::kUnevenShare) << shards;
    EXPECT_LE(cluster.ranges.size(), 3 * shards);
    cluster.Run(30);
    EXPECT_LT(cluster.Unevenness(), RangeBalancer::kUnevenShare) << shards;
  }
}

TEST(RangeBalancerTest, AHotPartitionStaysWholeAndItsNeighboursMoveAway) {
  Cluster cluster(2, 101);
  for (double& load : cluster.load) load = 0.003 * kCore;
  cluster.load[50] = 0.7 * kCore;
  cluster.Run(2);
  for (int i = 0; i < 101; ++i) EXPECT_EQ(cluster.OwnerOf(i), i == 50 ? 0u : 1u) << i;
  EXPECT_EQ(cluster.moves, 2);
  cluster.Run(600);
  EXPECT_EQ(cluster.moves, 2) << "there is nothing better";
}

TEST(RangeBalancerTest, OneHotPartitionDoesNotKeepTheOthersFromBeingSpread) {
  Cluster cluster(4, 100);
  for (double& load : cluster.load) load = 0.02 * kCore;
  cluster.load[0] = 0.8 * kCore;
  cluster.Run(5);
  const uint32_t hot = cluster.OwnerOf(0);
  for (uint32_t shard = 0; shard < 4; ++shard) {
    if (shard != hot) EXPECT_NEAR(cluster.LoadOf(shard), 2.0 / 3 * kCore, 0.15 * kCore);
  }
}

TEST(RangeBalancerTest, NoiseMovesNothing) {
  Cluster cluster(4, 400);
  SetZipf(&cluster, 2 * kCore, 3);
  cluster.Run(5);
  const int moves = cluster.moves;
  const std::vector<double> quiet = cluster.load;
  std::mt19937 random(1);
  std::normal_distribution<double> noise(1, 0.1);
  for (int tick = 0; tick < 3600; ++tick) {
    for (size_t i = 0; i < quiet.size(); ++i) cluster.load[i] = quiet[i] * std::max(0.0, noise(random));
    cluster.Tick();
  }
  EXPECT_LE(cluster.moves, moves + 1);
}

TEST(RangeBalancerTest, AHotSpotThatShiftsIsFollowed) {
  Cluster cluster(4, 1000);
  std::mt19937 random(5);
  for (int minute = 0; minute < 60; ++minute) {
    std::fill(cluster.load.begin(), cluster.load.end(), 1e-4 * kCore);
    const size_t from = random() % 960;
    for (size_t i = from; i < from + 40; ++i) cluster.load[i] = 0.05 * kCore;
    cluster.Run(5);
    EXPECT_LT(cluster.Unevenness(), 1.5) << "minute " << minute;
    cluster.Run(55);
  }
  RecordProperty("moves", cluster.moves);
}

// All load falls on what one shard has at that moment, the shard of most partitions.
TEST(RangeBalancerTest, AnHourOfAdversarialLoadDoesNotMakeItOscillate) {
  Cluster cluster(4, 1000);
  std::mt19937 random(7);
  for (int round = 0; round < 1200; ++round) {
    std::vector<int> owned(4, 0);
    for (int i = 0; i < 1000; ++i) ++owned[cluster.OwnerOf(i)];
    const auto target = static_cast<uint32_t>(std::max_element(owned.begin(), owned.end()) - owned.begin());
    for (int i = 0; i < 1000; ++i) {
      cluster.load[static_cast<size_t>(i)] =
          cluster.OwnerOf(i) == target ? 2 * kCore / owned[target] * (0.5 + (random() % 1000) / 1000.0) : 0;
    }
    cluster.Run(3);
  }
  std::printf("%d moves, %d splits and %d merges an hour, %zu ranges at its end\n", cluster.moves,
              cluster.splits, cluster.merges, cluster.ranges.size());
  EXPECT_LE(cluster.moves, 3600 / 5 + 12);
  EXPECT_LE(cluster.ranges.size(), RangeBalancer::BoundsMax(4) + 1);
}

TEST(RangeBalancerTest, WhatFailsIsPlannedAnewAfterARestThatDoubles) {
  Cluster cluster(2, 100);
  for (double& load : cluster.load) load = 0.01 * kCore;
  cluster.fails = [](const RangeBalancer::Step&) { return true; };
  cluster.Run(10);
  EXPECT_GE(cluster.failed, 2);
  cluster.Run(600);
  EXPECT_EQ(cluster.moves, 0);
  EXPECT_LE(cluster.failed, 4 + 600 / 60 + 1);
  cluster.fails = nullptr;
  cluster.Run(RangeBalancer::kFailedRestNanosMax / kTick + 1);
  EXPECT_LT(cluster.Unevenness(), RangeBalancer::kEvenShare);
}

TEST(RangeBalancerTest, ARangeThatCannotMoveKeepsNoOtherFromMoving) {
  Cluster cluster(2, 100);
  cluster.ranges = {{"t", Bound(40), ShardId(0), RangeEpoch(1)},
                    {Bound(40), Bound(80), ShardId(0), RangeEpoch(1)},
                    {Bound(80), "", ShardId(0), RangeEpoch(1)}};
  for (double& load : cluster.load) load = 0.01 * kCore;
  cluster.fails = [](const RangeBalancer::Step& step) { return step.at < Bound(40); };
  cluster.Run(60);
  EXPECT_EQ(cluster.OwnerOf(0), 0u);
  EXPECT_LT(cluster.Unevenness(), RangeBalancer::kUnevenShare);
}

TEST(RangeBalancerTest, ManyTablesWithoutLoadLeaveOneThatHasItsCuts) {
  Cluster cluster(2, 100);
  const RangeDescriptor hot = cluster.ranges[0];
  cluster.ranges.clear();
  for (int i = 0; i < 5000; ++i) {
    const std::string lower = "s" + std::to_string(10'000 + i);
    cluster.ranges.push_back({lower, lower + "~", ShardId(0), RangeEpoch(1)});
  }
  cluster.ranges.push_back(hot);
  cluster.tables = cluster.ranges.size();
  for (double& load : cluster.load) load = 0.01 * kCore;
  cluster.Run(2);
  EXPECT_LT(cluster.Unevenness(), RangeBalancer::kEvenShare);
}

TEST(RangeBalancerTest, BoundsThatWentWithTheirTableLeaveRoomForOthers) {
  Cluster cluster(2, 1000);
  for (int life = 0; life < 200; ++life) {
    for (double& load : cluster.load) load = 0.001 * kCore;
    cluster.Run(3);
    ASSERT_LT(cluster.Unevenness(), RangeBalancer::kUnevenShare) << life;
    cluster.ranges = {{"t", "", ShardId(0), RangeEpoch(1)}};
    std::fill(cluster.load.begin(), cluster.load.end(), 0.0);
    cluster.Run(900);  // Until moves may be made again.
  }
}

TEST(RangeBalancerTest, ItsOwnBoundsGoWhenTheyAreColdAndOthersStay) {
  Cluster cluster(2, 100);
  cluster.ranges = {{"t", Bound(90), ShardId(0), RangeEpoch(1)}, {Bound(90), "", ShardId(0), RangeEpoch(1)}};
  for (double& load : cluster.load) load = 0.01 * kCore;
  cluster.load[50] = 0.8 * kCore;
  cluster.Run(30);
  EXPECT_GE(cluster.splits, 2);
  std::fill(cluster.load.begin(), cluster.load.end(), 0.0);
  cluster.Run(600);
  // Neighbours of different shards stay apart.
  for (size_t i = 1; i < cluster.ranges.size(); ++i) {
    if (cluster.ranges[i].lower == Bound(90)) continue;
    EXPECT_NE(cluster.ranges[i - 1].owner, cluster.ranges[i].owner);
  }
  EXPECT_EQ(std::count_if(cluster.ranges.begin(), cluster.ranges.end(),
                          [](const RangeDescriptor& range) { return range.lower == Bound(90); }),
            1);
}

// It is not known how long they were cold.
TEST(RangeBalancerTest, BoundsMadeByLoadBeforeARestartGoToo) {
  Cluster cluster(2, 100);
  cluster.ranges = {{"t", Bound(30), ShardId(0), RangeEpoch(1)},
                    {Bound(30), Bound(60), ShardId(0), RangeEpoch(1), 0, true},
                    {Bound(60), "", ShardId(0), RangeEpoch(1)}};
  cluster.Run(RangeBalancer::kColdNanos / kTick);
  EXPECT_EQ(cluster.ranges.size(), 3u);
  cluster.Restart();
  cluster.Run(RangeBalancer::kColdNanos / kTick);
  EXPECT_EQ(cluster.ranges.size(), 3u);
  cluster.Run(20);
  ASSERT_EQ(cluster.ranges.size(), 2u);
  EXPECT_EQ(cluster.ranges[1].lower, Bound(60));
}

// A table a day, hot on its day: else those of the past would keep today's on one shard.
TEST(RangeBalancerTest, HotTablesOfThePastUseNoBoundsUp) {
  constexpr int kDays = 100, kPartitions = 10;
  Cluster cluster(2, kDays * kPartitions);
  cluster.tables = kDays;
  cluster.ranges.clear();
  for (int day = 0; day < kDays; ++day) {
    const std::string upper = day + 1 < kDays ? Bound((day + 1) * kPartitions) : "";
    cluster.ranges.push_back({Bound(day * kPartitions), upper, ShardId(0), RangeEpoch(1)});
  }
  for (int day = 0; day < kDays; ++day) {
    std::fill(cluster.load.begin(), cluster.load.end(), 0.0);
    for (int i = 0; i < kPartitions; ++i) cluster.load[day * kPartitions + i] = 0.1 * kCore;
    cluster.Run(1200);
    EXPECT_LT(cluster.Unevenness(), 1.5) << day;
  }
}

}  // namespace
}  // namespace partita

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "bench/lab/operation_stream.h"
#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

// Gets alone, of records that are picked in so many ranges.
Experiment HotRangesOf(const std::string& ranges, const std::string& more = "") {
  Experiment experiment = ParseSound(
      ReadingsText(kDeviceLayout) +
      "\n[[op]]\nname = \"hot\"\nkind = \"get\"\npick = \"ranges\"\nranges = " + ranges + "\n" + more);
  experiment.ops.erase(experiment.ops.begin(), experiment.ops.end() - 1);
  return experiment;
}

// How often each record is picked.
std::vector<int> PicksOf(const Experiment& experiment, int count) {
  const RecordGenerator generator(experiment);
  OperationStream stream(generator);
  std::vector<int> picks(experiment.records);
  for (int i = 0; i < count; ++i) ++picks.at(stream.Next().record);
  return picks;
}

// The weights of the last of many ranges are less than what a number can be.
TEST(HotRangesTest, ManyRangesLeaveTheHottestItsShare) {
  constexpr int kPicks = 5'000;
  const std::vector<int> picks = PicksOf(HotRangesOf("300"), kPicks);
  constexpr size_t kRecordsOfARange = 2'000 / 300 + 1;
  int hottest = 0;
  for (size_t first = 0; first + kRecordsOfARange <= picks.size(); ++first) {
    int sum = 0;
    for (size_t k = 0; k < kRecordsOfARange; ++k) sum += picks[first + k];
    hottest = std::max(hottest, sum);
  }
  EXPECT_NEAR(hottest / double{kPicks}, 0.777, 0.05) << "e^-2.917 of 14.18, and e^-0.081 of 0.0164";
}

TEST(HotRangesTest, TheMostRangesAndTheSteepestWeightsGiveRecords) {
  const std::string steep = "range_dist = [1.0, -100.0, 1.0, -100.0]\n";
  for (const std::string& more : {std::string(), steep}) {
    const std::vector<int> picks = PicksOf(HotRangesOf("10000", more), 1'000);
    EXPECT_EQ(std::accumulate(picks.begin(), picks.end(), 0), 1'000);
  }
}

}  // namespace
}  // namespace partita::lab

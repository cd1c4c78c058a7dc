#include "bench/lab/timeline.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/lab/key_rows.h"
#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::Le;
using ::testing::SizeIs;

constexpr uint64_t kMillisecond = 1'000'000;

TEST(TimelineTest, HasABoundedNumberOfColumnsHoweverLongTheRun) {
  for (const double seconds : {0.2, 4.0, 59.0, 3'600.0, 604'800.0}) {
    Timeline timeline(seconds, 3);
    for (int i = 0; i <= 200; ++i) timeline.Due(seconds * i / 100);  // Twice as long as planned.
    EXPECT_LE(timeline.columns().size(), Timeline::kColumnsMax) << seconds;
    uint64_t due = 0;
    for (const Timeline::Column& column : timeline.columns()) due += column.due;
    EXPECT_EQ(due, 201u) << seconds;
  }
}

TEST(TimelineTest, WhatIsBegunWithinFiveSecondsOfTheEndIsNotHeapedUp) {
  for (const double seconds : {0.2, 4.0, 6.0, 7.0, 9.0, 12.0, 59.0}) {
    Timeline timeline(seconds, 1);
    for (int i = 0; i < 490; ++i) timeline.Ended(seconds + i * 0.01);
    const double each = timeline.column_s() / 0.01;
    EXPECT_LE(static_cast<double>(timeline.columns().back().ended), each + 1) << seconds;
  }
}

TEST(TimelineTest, ToldPercentilesAreAboveTheRecordedOnesByAQuarterAtMost) {
  for (const uint64_t micros : {0u, 1u, 3u, 4u, 5u, 99u, 1'000u, 123'456u, 60'000'000u}) {
    Timeline::Latencies latencies;
    latencies.Record(micros * 1'000);
    const double told_us = latencies.PercentileMs(0.99) * 1'000;
    EXPECT_GT(told_us, static_cast<double>(micros));
    EXPECT_LE(told_us, static_cast<double>(micros) * 1.25 + 1.001);
  }
  EXPECT_EQ(Timeline::Latencies().PercentileMs(0.5), 0);
}

TEST(TimelineTest, SpreadsWhatIsReadOverItsRowsAndAddsUp) {
  Timeline one(1, 4), other(1, 4);
  one.Touched(0.05, {.rows = {.first = 1, .last = 2}, .entities = 10});
  other.Touched(0.05, {.rows = {.first = 2, .last = 2}, .entities = 1, .refused = 3});
  other.Completed(0.55, 7 * kMillisecond);
  one.Add(other);
  EXPECT_THAT(one.columns()[0].entities, ElementsAre(0, 5, 6, 0));
  EXPECT_THAT(one.columns()[0].refused, ElementsAre(0, 0, 3, 0));
  EXPECT_EQ(one.columns().back().completed, 1u);
  EXPECT_EQ(one.columns().back().latency_max_ns, 7 * kMillisecond);
}

TEST(TimelineTest, TheHotShareIsThatOfAMomentThoughTheHeatMoves) {
  Timeline moving(10, 4), spread(10, 4);
  EXPECT_EQ(moving.HotShare(), 0) << "nothing was touched";
  for (int i = 0; i < 1'000; ++i) {
    const auto row = static_cast<uint16_t>(i / 250);
    moving.Touched(i * 0.01, {.rows = {.first = row, .last = row}, .entities = 3});
    spread.Touched(i * 0.01, {.rows = {.first = 0, .last = 3}, .entities = 3});
  }
  // Of ten moments two are shared by two rows, half and half.
  EXPECT_NEAR(moving.HotShare(), 0.9, 0.02);
  EXPECT_NEAR(spread.HotShare(), 0.25, 0.001);
}

TEST(TimelineTest, WhatIsThrottledIsNoLessHot) {
  Timeline timeline(10, 4);
  for (int i = 0; i < 1'000; ++i) {
    const bool is_hot = i % 10 > 0, is_let_through = !is_hot || i % 10 < 3;
    const auto row = static_cast<uint16_t>(is_hot ? 0 : 1);
    timeline.Touched(i * 0.01, {.rows = {.first = row, .last = row},
                                .entities = is_let_through ? 1.0 : 0.0,
                                .refused = is_let_through ? 0u : 1u});
  }
  EXPECT_NEAR(timeline.HotShare(), 0.9, 0.001);
}

TEST(KeyRowsTest, AFewKeysHaveARowEach) {
  const Experiment experiment = ParseSound(ReadingsText(R"(
[[layout]]
name = "type"
pk = "{type}"
rk = "{ticks(ts)}"
)"));
  const RecordGenerator generator(experiment);
  const KeyRows rows(experiment.layouts[0], generator);
  EXPECT_THAT(rows.labels(), ElementsAre("alarm", "door", "temp"));
  EXPECT_EQ(rows.Of("Lab", "door").first, 1);
  EXPECT_EQ(rows.Of("Lab", "door").last, 1);
  EXPECT_EQ(rows.Of("Lab", "aaa").first, 0) << "what lies before all of them is in the first row";
  const KeyRows::Span all = rows.Of("Lab", "", "");
  EXPECT_EQ(all.first, 0);
  EXPECT_EQ(all.last, 2);
  const KeyRows::Span two = rows.Of("Lab", "alarm", "temp");
  EXPECT_EQ(two.last, 1) << "the upper end is outside";
}

TEST(KeyRowsTest, ManyKeysAreCutIntoRowsOfAboutAsManyRecords) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  const RecordGenerator generator(experiment);
  const KeyRows rows(experiment.layouts[0], generator);
  EXPECT_THAT(rows.labels(), SizeIs(AllOf(Gt(8u), Le(KeyRows::kRowsMax))));
  EXPECT_TRUE(std::is_sorted(rows.labels().begin(), rows.labels().end()));
  EXPECT_EQ(rows.labels()[0], "dev-000") << "the hottest device has the first row for itself";
  EXPECT_EQ(rows.labels()[1], "dev-001");
}

TEST(KeyRowsTest, AreCutOverRecordsThatAreThereOrAreLikelyToCome) {
  const auto row_of_last = [](const std::string& arrival, const std::string& own) {
    const Experiment experiment = ParseSound(RareBatchesText(arrival, own));
    const RecordGenerator generator(experiment);
    const KeyRows rows(experiment.layouts[0], generator);
    EXPECT_EQ(rows.labels().size(), KeyRows::kRowsMax);
    return rows.Of("Lab", "00019999").first;
  };
  // In six seconds come 15,000 more, if as many inserts are drawn as their weight says.
  EXPECT_EQ(row_of_last("rate = 2500\n", ""), 18) << "four in seven of 32 rows are of what is there";
  EXPECT_EQ(row_of_last("rate = 2500\n", "[layout.arrival]\nrate = 250\n"), 29);
  EXPECT_EQ(row_of_last("model = \"burst\"\nrate = 2500\non = \"1s\"\noff = \"2s\"\n", ""), 25);
  EXPECT_EQ(row_of_last("model = \"closed\"\n", ""), 15) << "as many operations as records";
}

TEST(KeyRowsTest, CopiesInAnotherTableHaveRowsOfTheirOwn) {
  const Experiment experiment = ParseSound(ReadingsText(R"(
[[layout]]
name = "two"
pk = "all"
rk = "{ticks(ts)}"
[[layout.copy]]
name = "by-type"
table = "Types"
pk = "{type}"
rk = "{ticks(ts)}"
)"));
  const RecordGenerator generator(experiment);
  const KeyRows rows(experiment.layouts[0], generator);
  EXPECT_THAT(rows.labels(), ElementsAre("Lab all", "Types alarm", "Types door", "Types temp"));
  EXPECT_EQ(rows.Of("Lab", "", "").last, 0) << "all of one table ends before the next";
  EXPECT_EQ(rows.Of("Types", "", "").first, 1);
}

}  // namespace
}  // namespace partita::lab

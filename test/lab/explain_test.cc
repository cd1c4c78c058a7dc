#include "bench/lab/explain.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Prediction PredictionOf(const Experiment& experiment) { return Predict(RecordGenerator(experiment)); }

TEST(ExplainTest, CountsWhatEachOperationDoes) {
  const Experiment experiment = ParseSound(ReadingsText(std::string(kDeviceLayout) + R"(
[[layout]]
name = "one"
pk = "all"
rk = "{ticks(ts)}"
[[layout.copy]]
name = "twin"
pk = "all"
rk = "by-device_{device}_{ticks(ts)}"
atomic = true
)"));
  const Prediction prediction = PredictionOf(experiment);
  const LayoutPrediction& device = prediction.layouts[0];
  EXPECT_DOUBLE_EQ(device.ops[0].written, 5);
  EXPECT_GT(device.ops[0].requests, 4);
  EXPECT_FALSE(device.ops[0].atomic);
  EXPECT_EQ(device.ops[1].plan, "partition");
  EXPECT_NEAR(device.ops[1].scanned, 9.5, 0.5);  // Some devices have less than ten records.
  EXPECT_DOUBLE_EQ(device.ops[2].scanned, 1);
  const LayoutPrediction& one = prediction.layouts[1];
  EXPECT_DOUBLE_EQ(one.ops[0].written, 10);
  EXPECT_DOUBLE_EQ(one.ops[0].requests, 1);
  EXPECT_TRUE(one.ops[0].atomic);
  EXPECT_EQ(one.ops[1].from, "twin");
  EXPECT_TRUE(one.ops[1].sorts);
  // 1,000 operations a second, 8 of 10 write 10 entities, 1 of 10 reads one, 1 of 10 a device's records.
  EXPECT_EQ(one.hottest_partition, "all");
  EXPECT_NEAR(one.hottest_rate, 1000 * (0.8 * 10 + 0.1 + 0.1 * one.ops[1].scanned), 800);
}

TEST(ExplainTest, OfPartitionsThatAreAskedForAlikeNoneIsHotByChance) {
  const auto told = [](const std::string& dist) {
    return PredictionOf(ParseSound(R"(name = "customers"
[data]
records = 100_000
[data.fields]
customer = { dist = )" + dist + R"(, n = 1000 }
id = { dist = "sequence" }
[[op]]
name = "list"
kind = "query"
where = { customer = "@record" }
[[layout]]
name = "customer"
pk = "{customer}"
rk = "{id}"
[limits]
profile = "partition=2000"
[arrival]
rate = 5000
)"))
        .layouts[0];
  };
  // Each has a hundred entities and is asked five times a second, more or less; the fullest of a sample of
  // 5,000 operations has a dozen.
  const LayoutPrediction alike = told("\"uniform\"");
  EXPECT_GT(alike.hottest_rate, 400);
  EXPECT_LT(alike.hottest_rate, 900);
  EXPECT_FALSE(alike.partition_refusal.has_value());
  // What is hot beyond chance is told as it is in the sample. Who has most records is asked for most, too.
  const LayoutPrediction skewed = told("\"zipf\", theta = 0.99");
  EXPECT_EQ(skewed.hottest_partition, "0");
  EXPECT_NEAR(skewed.hottest_share, 0.13 * 0.13 / 0.029, 0.1);
}

TEST(ExplainTest, ForeseesThrottlingAndDensity) {
  const Experiment experiment = ParseSound(ReadingsText(R"(
[[layout]]
name = "one"
pk = "all"
rk = "{ticks(ts)}"
[[op]]
name = "alarms"
kind = "query"
where = { type = "alarm" }
[limits]
profile = "storage"
)"));
  const Prediction prediction = PredictionOf(experiment);
  const OpPrediction& alarms = prediction.layouts[0].ops[3];
  EXPECT_DOUBLE_EQ(alarms.scanned, 2000);
  EXPECT_NEAR(alarms.density(), 0.05, 0.01);
  EXPECT_THAT(PredictionText(experiment, prediction),
              AllOf(HasSubstr("WILL BE THROTTLED"), HasSubstr("the client reads all of them and sorts"),
                    HasSubstr("and device eq 'dev-")));
}

TEST(ExplainTest, WhatAllPartitionsAreAskedForIsHeldAgainstTheAccountsTarget) {
  const Experiment experiment =
      ParseSound(ReadingsText(std::string(kDeviceLayout) + "[limits]\nprofile = \"account=1000\"\n"));
  EXPECT_THAT(PredictionText(experiment, PredictionOf(experiment)),
              ContainsRegex("all: [0-9]+ units/s, [0-9]+ % of its target: WILL BE THROTTLED"));
}

TEST(ExplainTest, APeakIsThrottledWhereItLastsForLongerThanTheTargetBears) {
  Experiment experiment =
      ParseSound(ReadingsText("[[layout]]\nname = \"one\"\npk = \"all\"\nrk = \"{ticks(ts)}\"\n"
                              "[limits]\nprofile = \"partition=1000\"\n"));
  experiment.ops = {experiment.ops[2]};
  const auto text = [&](const Arrival& arrival) {
    experiment.arrival = arrival;
    return PredictionText(experiment, PredictionOf(experiment));
  };
  Arrival ramp{
      .model = ArrivalModel::kRamp, .rates = {100}, .rate_end = 1'900, .warmup_s = 0, .duration_s = 4};
  EXPECT_THAT(text(ramp), AllOf(HasSubstr("190 % of its target at the peak"), Not(HasSubstr("THROTTLED"))));
  ramp.rate_end = 5'900;
  EXPECT_THAT(text(ramp), HasSubstr("590 % of its target: WILL BE THROTTLED"));
  Arrival burst{.model = ArrivalModel::kBurst, .rates = {4'000}, .off_s = 3, .warmup_s = 0, .duration_s = 4};
  EXPECT_THAT(text(burst), HasSubstr("400 % of its target: WILL BE THROTTLED"));
  burst.on_s = 0.5;
  EXPECT_THAT(text(burst), Not(HasSubstr("THROTTLED")));
}

TEST(ExplainTest, OfADayItsPeakIsPredicted) {
  Arrival arrival{.model = ArrivalModel::kDiurnal,
                  .rates = {150},
                  .amplitude = 0.5,
                  .period_s = 20,
                  .warmup_s = 0,
                  .duration_s = 10};
  EXPECT_DOUBLE_EQ(*arrival.HighestRate(), 225);
  arrival.period_s = 120;  // It ends when the sine is at 30 of its 360 degrees.
  EXPECT_NEAR(*arrival.HighestRate(), 150 * (1 + 0.5 * 0.5), 1e-9);
}

TEST(ExplainTest, PartitionsOfTwoTablesAreTwo) {
  const std::string layout = "[[layout]]\nname = \"x\"\npk = \"all\"\nrk = \"{ticks(ts)}\"\n";
  const std::string copy =
      "[[layout.copy]]\nname = \"c\"\ntable = \"Other\"\npk = \"all\"\nrk = \"{ticks(ts)}\"\n";
  const auto rate = [](const std::string& text) {
    Experiment experiment = ParseSound(ReadingsText(text));
    experiment.ops.resize(1);
    return PredictionOf(experiment).layouts[0];
  };
  const LayoutPrediction one = rate(layout), two = rate(layout + copy);
  EXPECT_DOUBLE_EQ(two.hottest_rate, one.hottest_rate);
  EXPECT_DOUBLE_EQ(two.account_rate, 2 * one.account_rate);
  EXPECT_DOUBLE_EQ(two.ops[0].partitions, 2);
}

TEST(ExplainTest, WhatIsLookedUpHeatsThePartitionsOfTheRecords) {
  Experiment experiment = ParseSound(ReadingsText(R"(
[[layout]]
name = "copied"
pk = "{type}"
rk = "{desc_ticks(ts)}"
[[layout.copy]]
name = "by-device"
table = "Devices"
pk = "{device}"
rk = "{desc_ticks(ts)}"
props = ["type", "ts"]
[[layout]]
name = "listed"
pk = "{ts:%Y%m%d}"
rk = "{device}_{ticks(ts)}"
[[layout.copy]]
name = "times"
table = "Devices"
pk = "{device}"
rk = "list"
list = "ts"
)"));
  experiment.ops = {experiment.ops[1]};  // The latest of a device.
  const Prediction prediction = PredictionOf(experiment);
  const LayoutPrediction &copied = prediction.layouts[0], &listed = prediction.layouts[1];
  ASSERT_TRUE(copied.ops[0].lookups && listed.ops[0].lookups);
  EXPECT_EQ(copied.hottest_partition, "temp");
  EXPECT_NEAR(copied.hottest_rate, 1000 * 0.7 * copied.ops[0].returned, 0.05 * copied.hottest_rate);
  EXPECT_EQ(listed.hottest_partition, "20260101") << "where all records are";
  EXPECT_TRUE(listed.ops[0].sorts) << "they are listed as they were added";
  const double looked_up = listed.ops[0].scanned - 1;
  EXPECT_GT(looked_up, 3 * listed.ops[0].returned) << "all of a device, for the latest ten";
  EXPECT_NEAR(listed.hottest_rate, 1000 * looked_up, 1);
  // Each record, and the index, which is a KiB or some.
  EXPECT_GE(listed.account_rate, 1000 * (1 + looked_up) - 1);
  EXPECT_LT(listed.account_rate, 1000 * (20 + looked_up));
}

TEST(ExplainTest, AnEntityCountsForEachOfItsKib) {
  const auto hottest_rate = [](const std::string& op) {
    return PredictionOf(ParseSound(LargeRecordsText(op))).layouts[0].hottest_rate;
  };
  EXPECT_DOUBLE_EQ(hottest_rate("kind = \"get\"\n"), 16'000);
  EXPECT_DOUBLE_EQ(hottest_rate("kind = \"query\"\nwhere = { n = 3 }\n"), 20 * 16'000)
      << "all of the partition";
  EXPECT_DOUBLE_EQ(hottest_rate("kind = \"insert\"\n"), 16'000);
  EXPECT_DOUBLE_EQ(hottest_rate("kind = \"replace\"\n"), 16'000);
  EXPECT_DOUBLE_EQ(hottest_rate("kind = \"merge\"\nset = [\"n\"]\n"), 1'000) << "what is sent";
  EXPECT_DOUBLE_EQ(hottest_rate("kind = \"delete\"\n"), 1'000);
  EXPECT_DOUBLE_EQ(hottest_rate("kind = \"modify\"\nset = [\"n\"]\n"), 17'000);
  const Experiment experiment = ParseSound(LargeRecordsText("kind = \"get\"\n"));
  EXPECT_THAT(PredictionText(experiment, PredictionOf(experiment)),
              AllOf(HasSubstr("16000 units/s, 800 % of its target: WILL BE THROTTLED"),
                    HasSubstr("a unit is a KiB of an entity, rounded up")));
}

TEST(ExplainTest, AListCountsForEachOfItsKib) {
  const std::string one_city = "dist = \"constant\", value = \"c1\"";
  std::string text = R"(name = "staff"
[data]
records = 400
[data.fields]
id = { dist = "sequence", format = "{:06}" }
city = { )" + one_city +
                     R"( }
[[op]]
name = "in-city"
kind = "query"
where = { city = "@record" }
[[op]]
name = "hire"
kind = "insert"
[arrival]
rate = 10
)" + std::string(kListedLayout);
  Experiment experiment = ParseSound(text);
  const std::vector<Op> ops = experiment.ops;
  experiment.ops = {ops[0]};
  // The list of 5,638 bytes, and each of the records.
  EXPECT_NEAR(PredictionOf(experiment).layouts[0].account_rate, 10 * (6 + 400), 0.1);
  experiment.ops = {ops[1]};
  // The record; the list is read, and written whole.
  EXPECT_NEAR(PredictionOf(experiment).layouts[0].account_rate, 10 * (1 + 2 * 6), 0.1);
  // Some 1,500 bytes are read whole, however few of the records that they name.
  text.replace(text.find(one_city), one_city.size(), R"(dist = "uniform", n = 4, format = "c{:01}")");
  experiment = ParseSound(text);
  experiment.ops.resize(1);
  experiment.ops[0].limit = 4;
  const LayoutPrediction few = PredictionOf(experiment).layouts[0];
  EXPECT_NEAR(few.account_rate, 10 * (2 + 4), 0.1);
  EXPECT_DOUBLE_EQ(few.ops[0].scanned, 1 + 4);
}

TEST(ExplainTest, AReplayIsPredictedAtItsMeanRateAndWhatItLeavesOutIsTold) {
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  experiment.ops = {experiment.ops[2]};
  // Ten a second in the trace, from 5 s on, replayed twice as fast.
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) times.push_back(5 + 0.1 * i);
  experiment.arrival = {.model = ArrivalModel::kReplay,
                        .rates = {1},
                        .times = times,
                        .scale = 2,
                        .warmup_s = 1,
                        .duration_s = 9};
  const Prediction prediction = PredictionOf(experiment);
  EXPECT_NEAR(prediction.rate, 20, 0.01);
  EXPECT_NEAR(prediction.layouts[0].account_rate, 20, 0.01);
  EXPECT_THAT(PredictionText(experiment, prediction),
              AllOf(HasSubstr("at 20 operations/s on average, a replay"),
                    HasSubstr("the run replays 150 of 200 times")));
  experiment.arrival.duration_s = 12;
  EXPECT_EQ(LeftOutText(experiment.arrival), "");
}

TEST(ExplainTest, ARareOperationIsLookedAtAndCountsByItsWeight) {
  const Experiment experiment = ParseSound(R"(name = "rare"
[data]
records = 30_000
[data.fields]
id = { dist = "sequence", format = "{:08}" }
flag = { dist = "uniform", n = 20, format = "f{:02}" }
[[op]]
name = "report"
kind = "query"
weight = 1e-6
where = { flag = "f03" }
[[op]]
name = "get"
kind = "get"
[[layout]]
name = "l"
pk = "c{id}"
rk = ""
[arrival]
rate = 1000
)");
  const RecordGenerator generator(experiment);
  double matches = 0;
  for (uint64_t number = 0; number < experiment.records; ++number) {
    if (*generator.ValueAt(0, number).if_string() == "f03") ++matches;  // Fields are in order of names.
  }
  const LayoutPrediction told = Predict(generator).layouts[0];
  EXPECT_EQ(told.ops[0].plan, "partition-range");
  EXPECT_DOUBLE_EQ(told.ops[0].scanned, 30'000);
  EXPECT_DOUBLE_EQ(told.ops[0].returned, matches) << "all are looked at where the conditions are constant";
  EXPECT_NEAR(told.account_rate, 1000 * (1 + 0.03), 1e-2);
}

TEST(ExplainTest, OfAClosedLoopNoRateIsJudged) {
  Experiment experiment = ParseSound(ReadingsText(R"(
[[layout]]
name = "one"
pk = "all"
rk = "{ticks(ts)}"
[limits]
profile = "storage"
)"));
  experiment.arrival.model = ArrivalModel::kClosed;
  const Prediction prediction = PredictionOf(experiment);
  EXPECT_EQ(prediction.rate, 0);
  EXPECT_EQ(prediction.layouts[0].hottest_rate, 0);
  EXPECT_EQ(prediction.layouts[0].account_rate, 0);
  EXPECT_THAT(PredictionText(experiment, prediction),
              AllOf(HasSubstr("closed loop of 8 clients: how many operations/s is known when it has run"),
                    HasSubstr("hottest partition: 'all', 100 % of all units"),
                    Not(HasSubstr("of its target")), Not(HasSubstr("units/s"))));
  std::string text = ReadingsText(std::string(kDeviceLayout) +
                                  "[[expect]]\nlayout = \"device\"\nmetric = \"hottest_rate\"\nbelow = 5\n");
  const std::string open = "model = \"constant\"\nrate = 1000";
  text.replace(text.find(open), open.size(), "model = \"closed\"");
  EXPECT_THAT(FindingsText("x", ParseExperiment(text, "x").findings), HasSubstr("hottest_rate is predicted"));
}

TEST(ExplainTest, AModifyReadsBeforeItWrites) {
  std::string text = ReadingsText("[[layout]]\nname = \"one\"\npk = \"all\"\nrk = \"{ticks(ts)}\"\n");
  text.replace(text.find("kind = \"get\""), 12, "kind = \"modify\"\nset = [\"value\"]");
  Experiment experiment = ParseSound(text);
  experiment.ops = {experiment.ops[2]};
  EXPECT_DOUBLE_EQ(PredictionOf(experiment).layouts[0].hottest_rate, 2'000);
}

TEST(ExplainTest, TransactionsAreCutBetweenRecordsAndByBytes) {
  const auto largest = [](const std::string& bytes, const std::string& batch, const std::string& copy) {
    const Experiment experiment = ParseSound(
        "name = \"x\"\n[data]\nrecords = 20\n[data.fields]\nid = { dist = \"sequence\" }\n"
        "a = { dist = \"text\", bytes = " +
        bytes + " }\n[[op]]\nname = \"w\"\nkind = \"insert\"\nbatch = " + batch +
        // The largest of some writes is that of many: most operations are cheap ones.
        "\n[[op]]\nname = \"r\"\nkind = \"get\"\nweight = 49\n"
        "[[layout]]\nname = \"l\"\npk = \"a\"\nrk = \"{id}\"\n" +
        copy + "[arrival]\nmodel = \"closed\"\n");
    return PredictionOf(experiment).layouts[0].ops[0].largest_transaction;
  };
  std::string copies;
  for (const char* name : {"b", "c"}) {
    copies += std::string("[[layout.copy]]\nname = \"") + name + "\"\npk = \"a\"\nrk = \"" + name +
              "{id}\"\natomic = true\n";
  }
  EXPECT_DOUBLE_EQ(largest("10", "100", ""), 100);
  EXPECT_DOUBLE_EQ(largest("10", "100", copies), 99) << "three of each record";
  EXPECT_DOUBLE_EQ(largest("32000", "100", ""), 65) << "64,000 bytes each";
}

TEST(ExplainTest, StoredBytesFollowTheFormula) {
  const Experiment experiment =
      ParseSound(ReadingsText("[[layout]]\nname = \"x\"\npk = \"{device}\"\nrk = \"{ticks(ts)}\"\nprops = "
                              "[\"device\", \"value\"]\n"));
  // 4 + 2 * (7 + 19) + device 8 + 12 + 2 * 7 + 4 + value 8 + 10 + 8; the get has every field, the query is
  // sorted.
  EXPECT_DOUBLE_EQ(PredictionOf(experiment).layouts[0].stored_bytes, 4 + 52 + 38 + 26);
}

TEST(ExplainTest, ALayoutsOwnArrivalIsToldWithWhatItAsksFor) {
  const Experiment experiment =
      ParseSound(RareBatchesText("rate = 10\n", "[layout.arrival]\nmodel = \"ramp\"\nrate = 10\nto = 500\n"));
  const Prediction prediction = PredictionOf(experiment);
  EXPECT_DOUBLE_EQ(prediction.layouts[0].rate, 500);
  EXPECT_THAT(PredictionText(experiment, prediction),
              HasSubstr("  arrival of its own: ramp 10 to 500/s, at 500 operations/s\n"));
  const Experiment common = ParseSound(RareBatchesText("rate = 10\n"));
  EXPECT_THAT(PredictionText(common, PredictionOf(common)), Not(HasSubstr("of its own")));
}

// Of large records, which are 16 units each: one operation in ten seconds, where 100 units a second are
// given.
std::string TextOfSeldom(const std::string& op) {
  std::string text = LargeRecordsText(op);
  text.replace(text.find("rate = 1000"), 11, "rate = 0.1");
  text.replace(text.find("\"storage\""), 9, "\"partition=100,account=150\"");
  const Experiment experiment = ParseSound(text);
  return PredictionText(experiment, PredictionOf(experiment));
}

TEST(ExplainTest, AnOperationLargerThanABucketIsThrottledHoweverSeldomItComes) {
  EXPECT_THAT(
      TextOfSeldom("kind = \"query\"\nwhere = { n = 3 }\n"),
      AllOf(HasSubstr("32 units/s, 32 % of its target;"),
            HasSubstr("WILL BE THROTTLED: one op alone asks partition 'all' for 320 units, more than its "
                      "target of 100 units/s saves up"),
            HasSubstr("WILL BE THROTTLED: one op alone asks the account for 320 units")));
  EXPECT_THAT(TextOfSeldom("kind = \"get\"\n"), Not(HasSubstr("THROTTLED")));
  // One transaction, which the bucket lets through and is paid for later.
  EXPECT_THAT(TextOfSeldom("kind = \"insert\"\nbatch = 20\n"), Not(HasSubstr("THROTTLED")));
}

}  // namespace
}  // namespace partita::lab

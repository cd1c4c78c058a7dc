#include <gtest/gtest.h>
#include <simdjson.h>

#include <filesystem>
#include <map>
#include <string>

#include "bench/compare/comparison.h"
#include "bench/compare/goals.h"
#include "bench/compare/html_page.h"
#include "bench/compare/report.h"
#include "bench/compare/statistics.h"

namespace partita::bench {
namespace {

TEST(StatisticsTest, MedianIsTheMiddleOrBetweenTheTwo) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
}

TEST(StatisticsTest, ARatioPairsRoundsAndLeavesOutWhatIsMissing) {
  const RatioSummary ratio = SummarizeRatio({10, 0, 40, 90}, {5, 5, 0, 30});
  EXPECT_EQ(ratio.rounds, 2u);
  EXPECT_DOUBLE_EQ(ratio.median, 2.5);
}

TEST(StatisticsTest, TheIntervalIsStudentsOverTheLogarithms) {
  const RatioSummary same = SummarizeRatio({2, 4, 6}, {1, 2, 3});
  EXPECT_DOUBLE_EQ(same.lower, same.upper);
  // Logarithms 0, 0.693, 1.386: mean 0.693, deviation 0.693, half width 4.303 * 0.693 / sqrt(3) = 1.722.
  const RatioSummary spread = SummarizeRatio({1, 2, 4}, {1, 1, 1});
  EXPECT_NEAR(spread.lower, 2 * std::exp(-1.722), 0.001);
  EXPECT_NEAR(spread.upper, 2 * std::exp(1.722), 0.02);
  const RatioSummary one = SummarizeRatio({3}, {2});
  EXPECT_EQ(one.lower, one.upper);
}

TEST(GoalsTest, EachNamesAWorkloadThatThereIs) {
  for (const Goal& goal : Goals()) {
    EXPECT_TRUE(IsWorkload(goal.workload)) << goal.workload;
    const std::string name(goal.workload);
    EXPECT_EQ(FullWorkloadNames({name}).front(), name);  // Else it would judge nothing.
    const bool more = goal.metric->more_is_better && !goal.against.empty();
    EXPECT_TRUE(more ? goal.floor <= goal.target : goal.floor >= goal.target) << goal.workload;
  }
}

RoundMeasurement Measured(const std::string& engine, const std::string& workload, uint32_t round,
                          uint64_t operations) {
  RoundMeasurement m;
  m.engine = engine;
  m.workload = workload;
  m.round = round;
  m.operations = operations;
  m.seconds = 1;
  m.cpu_seconds = 0.001;
  m.latency.Record(50'000);
  return m;
}

// Of 4 million rows.
constexpr Scale kLarge = {.data_bytes = 4'256'000'000, .memory_bytes = uint64_t{1} << 30, .seconds = 60};

ComparisonResult Rounds(uint32_t rounds) {
  ComparisonResult result;
  for (uint32_t round = 0; round < rounds; ++round) {
    result.measurements.push_back(Measured("partita", "read-hot:1", round, 2400 + round));
    result.measurements.push_back(Measured("rocksdb", "read-hot:1", round, 500));
    result.measurements.push_back(Measured("rocksdb-blob", "read-hot:1", round, 1000));
    result.measurements.push_back(Measured("lmdb", "read-hot:1", round, 4000));
    result.measurements.push_back(Measured("partita", "delete-seek:1", round, 20));
  }
  return result;
}

TEST(GoalsTest, TheBestVariantCountsAndBoundsStandAlone) {
  const std::vector<GoalResult> judged = JudgeGoals(Rounds(5), "partita", kLarge);
  ASSERT_EQ(judged.size(), 3u);
  EXPECT_EQ(judged[0].peer, "rocksdb-blob");
  EXPECT_NEAR(judged[0].ratio.median, 2.4, 0.01);
  EXPECT_EQ(judged[0].verdict, Verdict::kFloor);
  EXPECT_EQ(judged[1].peer, "lmdb");
  EXPECT_EQ(judged[1].verdict, Verdict::kMissed);
  EXPECT_EQ(judged[2].goal->workload, "delete-seek:1");
  EXPECT_EQ(judged[2].verdict, Verdict::kFloor);  // 50 us, of at most 100.
}

TEST(GoalsTest, OneSlowSeekOfTwentyMissesTheGoal) {
  ComparisonResult result;
  for (uint32_t round = 0; round < 5; ++round) {
    result.measurements.push_back(Measured("partita", "delete-seek:1", round, 20));
    for (int seek = 1; seek < 20; ++seek) result.measurements.back().latency.Record(10'000);
  }
  EXPECT_EQ(JudgeGoals(result, "partita", kLarge).at(0).verdict, Verdict::kFloor);
  for (RoundMeasurement& m : result.measurements) m.latency.Record(300'000'000);
  EXPECT_EQ(JudgeGoals(result, "partita", kLarge).at(0).verdict, Verdict::kMissed);
}

TEST(GoalsTest, FewerThanFiveRoundsAreNotJudged) {
  for (const GoalResult& goal : JudgeGoals(Rounds(4), "partita", kLarge)) {
    EXPECT_EQ(goal.verdict, Verdict::kTooFewRounds) << goal.goal->workload;
    EXPECT_GT(goal.own, 0);
  }
}

TEST(GoalsTest, DropIsJudgedByItsBoundOnlyOfTenGigabytes) {
  ComparisonResult result;
  for (uint32_t round = 0; round < 5; ++round) {
    result.measurements.push_back(Measured("partita", "drop:1", round, 1));
  }
  EXPECT_EQ(JudgeGoals(result, "partita", kLarge).at(0).verdict, Verdict::kTooFewRows);
  EXPECT_EQ(JudgeGoals(result, "partita", {.data_bytes = uint64_t{10} << 30}).at(0).verdict,
            Verdict::kTarget);
}

TEST(GoalsTest, FloorsAreOfTheirSizeTimeAndValues) {
  ComparisonResult result;
  for (uint32_t round = 0; round < 5; ++round) {
    for (const char* workload : {"ycsb-a:16", "overwrite:1", "scan-hot:1"}) {
      result.measurements.push_back(Measured("partita", workload, round, 220));
      result.measurements.push_back(Measured("rocksdb", workload, round, 100));
    }
  }
  const auto verdicts = [&](const Scale& scale) {
    std::map<std::string, Verdict> by_name;
    for (const GoalResult& goal : JudgeGoals(result, "partita", scale)) {
      const auto name = std::string(goal.goal->workload) + ", " + std::string(goal.goal->metric->name);
      EXPECT_TRUE(by_name.emplace(name, goal.verdict).second) << name << " twice";
    }
    return by_name;
  };
  const auto large = verdicts(kLarge);
  EXPECT_EQ(large.size(), 4u);
  EXPECT_EQ(large.at("ycsb-a:16, ops/s"), Verdict::kFloor);
  EXPECT_EQ(large.at("overwrite:1, ops/s, settled"), Verdict::kFloor);
  EXPECT_EQ(large.at("scan-hot:1, ops/s"), Verdict::kMissed);
  // As --small, which fits the limit of memory once it is compressed.
  const auto small =
      verdicts({.data_bytes = 319'200'000, .memory_bytes = uint64_t{128} << 20, .seconds = 0.3});
  EXPECT_EQ(small.at("ycsb-a:16, ops/s"), Verdict::kTooFewRows);
  EXPECT_EQ(small.at("overwrite:1, ops/s"), Verdict::kTooShort);
  EXPECT_EQ(small.at("scan-hot:1, ops/s"), Verdict::kMissed);
  Scale of_100_bytes = kLarge;
  of_100_bytes.value_bytes = 100;
  EXPECT_EQ(verdicts(of_100_bytes).at("scan-hot:1, ops/s"), Verdict::kFloor);
  EXPECT_EQ(verdicts(of_100_bytes).at("ycsb-a:16, ops/s"), Verdict::kOtherValues);
}

TEST(GoalsTest, TheSubjectIsNoPeerOfItsOwnAndAFailedRoundIsNoZero) {
  ComparisonResult result;
  for (uint32_t round = 0; round < 5; ++round) {
    result.measurements.push_back(Measured("rocksdb-lz4", "read-cold:1", round, 100));
    result.measurements.push_back(Measured("rocksdb", "read-cold:1", round, 100));
    result.measurements.push_back(Measured("rocksdb-blob", "read-cold:1", round, 100));
    result.measurements.back().latency.Record(70'000'000);
  }
  // Of rocksdb-blob, the slowest, three rounds failed.
  std::erase_if(result.measurements, [](const RoundMeasurement& m) {
    return m.engine == "rocksdb-blob" && m.round != 1 && m.round != 4;
  });
  for (RoundMeasurement& m : result.measurements) {
    if (m.engine == "rocksdb-blob") m.cpu_seconds = 1;
  }
  const std::vector<GoalResult> judged = JudgeGoals(result, "rocksdb-lz4", kLarge);
  ASSERT_EQ(judged.size(), 2u);
  EXPECT_EQ(judged[0].peer, "rocksdb");
  EXPECT_EQ(judged[1].peer, "rocksdb");  // By CPU.
}

TEST(GoalsTest, WrongAnswersInOneRoundTakeAllFiguresOfTheWorkload) {
  ComparisonResult result = Rounds(5);
  result.measurements[2].wrong = 1;  // Of rocksdb-blob.
  EXPECT_TRUE(RoundsOf(result, "rocksdb-blob", "read-hot:1", RateMetric()).empty());
  EXPECT_EQ(JudgeGoals(result, "partita", kLarge).at(0).peer, "rocksdb");
  result.measurements[0].missing = 1;  // Of partita.
  const std::vector<GoalResult> judged = JudgeGoals(result, "partita", kLarge);
  ASSERT_EQ(judged.size(), 1u);
  EXPECT_EQ(judged[0].goal->workload, "delete-seek:1");
}

TEST(GoalsTest, WrongAnswersBeforeTheMeasuredPartDoSoToo) {
  ComparisonResult result = Rounds(6);
  result.failures.push_back(
      {.engine = "rocksdb-blob", .workload = "read-hot:1", .error = "", .code = Code::kCorruption});
  EXPECT_EQ(JudgeGoals(result, "partita", kLarge).at(0).peer, "rocksdb");
}

TEST(GoalsTest, AVariantThatLacksRoundsIsTheBestOnlyWhereAllDo) {
  ComparisonResult result = Rounds(5);
  std::erase_if(result.measurements,
                [](const RoundMeasurement& m) { return m.engine == "rocksdb-blob" && m.round == 3; });
  EXPECT_EQ(JudgeGoals(result, "partita", kLarge).at(0).peer, "rocksdb");
  std::erase_if(result.measurements,
                [](const RoundMeasurement& m) { return m.engine == "rocksdb" && m.round < 2; });
  EXPECT_EQ(JudgeGoals(result, "partita", kLarge).at(0).peer, "rocksdb-blob");
}

TEST(GoalsTest, WhatDidNotKeepItsPaceDoesNotCountAndIsTold) {
  ComparisonResult result;
  for (uint32_t round = 0; round < 6; ++round) {
    for (const char* engine : {"partita", "rocksdb"}) {
      result.measurements.push_back(Measured(engine, "read-while-writing:4", round, 1000));
      result.measurements.back().paced_due = 100'000;
      result.measurements.back().paced_done = 100'000;
    }
    result.measurements.back().operations = 4000;
    result.measurements.back().paced_done = round < 3 ? 94'000 : 96'000;
  }
  const std::vector<double> rounds = RoundsOf(result, "rocksdb", "read-while-writing:4", RateMetric());
  EXPECT_EQ(std::count(rounds.begin(), rounds.end(), 0.0), 3);
  EXPECT_EQ(JudgeGoals(result, "partita", kLarge).at(0).verdict, Verdict::kTooFewRounds);
  ComparisonConfig config;
  config.engines = {"partita", "rocksdb"};
  config.workloads = {"read-while-writing:4"};
  const std::string text = ToText(MakeReport(config, std::move(result)));
  EXPECT_NE(text.find("did 94 % of what was due"), std::string::npos) << text;
  EXPECT_EQ(text.find("did 96 %"), std::string::npos) << text;
}

Report SmallReport() {
  ComparisonConfig config;
  config.engines = {"partita", "rocksdb", "rocksdb-blob", "lmdb"};
  config.workloads = {"read-hot:1", "delete-seek:1"};
  ComparisonResult result = Rounds(5);
  result.failures.push_back(
      {.engine = "lmdb", .workload = "delete-seek:1", .error = "a <tag> & \"more\"", .round = 1});
  result.probes.push_back({.random_copies = 5000});
  return MakeReport(config, std::move(result));
}

TEST(ReportTest, TheTextHasVerdictsSharesAndWhatIsMissing) {
  const std::string text = ToText(SmallReport());
  EXPECT_NE(text.find("floor met"), std::string::npos) << text;
  EXPECT_NE(text.find("BELOW FLOOR"), std::string::npos) << text;
  EXPECT_NE(text.find("0.48 | random copies"), std::string::npos) << text;
  EXPECT_NE(text.find("lmdb is ahead in rate in: read-hot:1"), std::string::npos) << text;
  EXPECT_NE(text.find("not measured: lmdb, delete-seek:1"), std::string::npos) << text;
}

TEST(ReportTest, EachRowNamesItsDurability) {
  Report report = SmallReport();
  report.config.workloads = {"read-hot:1", "sync-write:16"};
  for (RoundMeasurement& m : report.result.measurements) {
    if (m.workload == "delete-seek:1") m.workload = "sync-write:16";
  }
  const std::string text = ToText(report), json = ToJson(report);
  EXPECT_NE(text.find("random copies     | process"), std::string::npos) << text;
  EXPECT_NE(text.find("|                   | power"), std::string::npos) << text;
  EXPECT_NE(json.find("\"durability\": \"power\", \"engine\": \"partita\", \"workload\": \"sync-write"),
            std::string::npos);
  EXPECT_NE(json.find("\"value_bytes\": 1024"), std::string::npos);
  EXPECT_NE(ToHtml(report).find("<td>process</tr>"), std::string::npos);
}

TEST(ReportTest, WrongAnswersStandWhereTheirFiguresWouldBe) {
  Report report = SmallReport();
  report.result.measurements[0].wrong = 3;
  report.result.measurements[0].first_error = "<odd>";
  const Report again = MakeReport(report.config, report.result);
  EXPECT_NE(ToText(again).find("not measured: partita, read-hot:1: WRONG ANSWERS: 3 wrong"),
            std::string::npos);
  EXPECT_EQ(ToText(again).find("2.4 k"), std::string::npos) << ToText(again);
  EXPECT_NE(ToHtml(again).find("<li>partita, read-hot:1: WRONG ANSWERS: 3 wrong"), std::string::npos);
  EXPECT_EQ(ToHtml(again).find("2.4 k"), std::string::npos);
  EXPECT_NE(ToText(report).find("2.4 k"), std::string::npos);
}

TEST(ReportTest, WhatRunsAtAPaceIsShownByItsP99AndLeadsNobody) {
  Report report = SmallReport();
  report.config.workloads = {"paced-70:4", "read-hot:1"};
  for (RoundMeasurement& m : report.result.measurements) {
    if (m.workload != "delete-seek:1") m.workload = "paced-70:4";
  }
  const std::string text = ToText(report), page = ToHtml(report);
  EXPECT_NE(text.find("| paced-70:4, p99 us        |         50 |"), std::string::npos) << text;
  EXPECT_NE(page.find("paced-70:4, p99 us</text>"), std::string::npos);
  EXPECT_EQ(text.find("is ahead in rate"), std::string::npos) << text;
}

TEST(ReportTest, TheJsonIsWellFormedAndComplete) {
  const std::string json = ToJson(SmallReport());
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  ASSERT_EQ(parser.parse(json).get(document), simdjson::SUCCESS) << json;
  EXPECT_EQ(document["measurements"].get_array().size(), 25u);
  EXPECT_EQ(document["goals"].get_array().size(), 3u);
  EXPECT_EQ(std::string_view(document["goals"].at(0)["peer"]), "rocksdb-blob");
  EXPECT_EQ(std::string_view(document["failures"].at(0)["error"]), "a <tag> & \"more\"");
}

TEST(ReportTest, ThePageNeedsNoNetworkAndEscapesWhatEnginesSay) {
  const std::string page = ToHtml(SmallReport());
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<tag>"), std::string::npos);
  EXPECT_NE(page.find("a &lt;tag&gt; &amp;"), std::string::npos);
  EXPECT_NE(page.find("<circle"), std::string::npos);
}

TEST(LimitTest, GrowsWithWritersAndOnlyStandsWhereThereIsOne) {
  Probes probes;
  probes.flushes = 1000;
  EXPECT_EQ(LimitOf("sync-write:16", probes, 1064, 2, 4)->rate, 16'000);
  EXPECT_FALSE(LimitOf("ycsb-a:2", probes, 1064, 2, 4).has_value());
}

TEST(LimitTest, CountsTheCoresThatThreadsCanUseAndTheReadsThatTheyCanHaveOutstanding) {
  const Probes probes{.random_reads_1 = 1, .random_reads_32 = 20, .random_reads_64 = 30, .copy_bytes = 1e9};
  EXPECT_EQ(LimitOf("scan-hot:1", probes, 1000, 4, 4)->rate, 10'000);
  EXPECT_EQ(LimitOf("scan-hot:3", probes, 1000, 4, 4)->rate, 30'000);
  EXPECT_EQ(LimitOf("scan-hot:16", probes, 1000, 4, 4)->rate, 40'000);
  for (const char* name : {"read-cold", "async-read"}) {
    EXPECT_EQ(LimitOf(std::string(name) + ":1", probes, 1000, 4, 20)->rate, 1);
    EXPECT_EQ(LimitOf(std::string(name) + ":16", probes, 1000, 4, 20)->rate, 20);
    EXPECT_EQ(LimitOf(std::string(name) + ":100", probes, 1000, 4, 20)->rate, 30);
    // A quarter and more of the reads is answered from memory.
    EXPECT_FALSE(LimitOf(std::string(name) + ":100", probes, 1000, 4, 4).has_value());
  }
}

// All engines of this program, in processes of their own.
TEST(ComparisonTest, MeasuresEachEngineInEachRoundAndGoesOnAfterAFailure) {
  std::string pattern = testing::TempDir() + "/compare-XXXXXX";
  const std::string directory = mkdtemp(pattern.data());
  ComparisonConfig config;
  config.load.keys = 500;
  config.load.value_size = 128;
  config.load.seconds = 0.01;
  config.load.engine_config.directory = directory;
  config.load.engine_config.memory_bytes = uint64_t{64} << 20;
  config.engines = {"partita", "abacus"};
  config.workloads = {"read-hot:2", "recovery:1"};
  config.rounds = 2;
  config.probe_seconds = 0;
  std::vector<size_t> after_rounds;
  const Result<ComparisonResult> result = RunComparison(config, [&](const ComparisonResult& so_far) {
    after_rounds.push_back(so_far.measurements.size());
    EXPECT_GT(so_far.minutes, 0);
  });
  std::filesystem::remove_all(directory);
  EXPECT_EQ(after_rounds, (std::vector<size_t>{2, 4}));
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  ASSERT_EQ(result->measurements.size(), 4u);
  for (const RoundMeasurement& m : result->measurements) {
    EXPECT_EQ(m.engine, "partita");
    EXPECT_TRUE(m.IsCorrect()) << m.workload << ": " << m.first_error << ", " << m.missing << " missing";
    EXPECT_GT(m.operations, 0u);
  }
  EXPECT_EQ(result->measurements[2].round, 1u);
  ASSERT_EQ(result->failures.size(), 4u);
  EXPECT_NE(result->failures[0].error.find("abacus"), std::string::npos) << result->failures[0].error;
  EXPECT_FALSE(result->stopped);
}

TEST(ProbesTest, EachFigureIsMeasured) {
  const Result<Probes> probes = RunProbes(testing::TempDir(), /*value_size=*/100, /*seconds=*/0.05);
  // A file system without O_DIRECT has no device to ask.
  if (!probes.ok()) {
    EXPECT_EQ(probes.code(), Code::kIoError);
    return;
  }
  for (const ProbeInfo& info : ProbeInfos()) EXPECT_GT((*probes).*info.figure, 0) << info.name;
}

TEST(ComparisonTest, BeginsNothingAfterItsTime) {
  ComparisonConfig config;
  config.load.engine_config.directory = testing::TempDir() + "/compare-never";
  config.engines = {"partita"};
  config.workloads = {"fill-seq"};
  config.minutes_max = 0;
  const Result<ComparisonResult> result = RunComparison(config);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->stopped);
  EXPECT_TRUE(result->measurements.empty());
  std::filesystem::remove_all(config.load.engine_config.directory);
}

}  // namespace
}  // namespace partita::bench

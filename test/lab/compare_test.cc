#include "bench/lab/compare.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <functional>

#include "bench/lab/result_text.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"

namespace partita::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A result with these p99 of one operation, in the repeats.
std::string ResultOf(const std::vector<double>& p99_ms, const std::string& throttled = "0",
                     const std::string& hash = "abc") {
  std::string json = R"({"format": 1, "stream_hash": ")" + hash + R"(", "cells": [)";
  for (size_t i = 0; i < p99_ms.size(); ++i) {
    json += std::string(i == 0 ? "" : ",") +
            R"({"layout": "x", "rate": "constant 10/s", "ops": [{"op": "read",)" + R"("p99_ms": )" +
            std::to_string(p99_ms[i]) + R"(, "throttled": )" + throttled + "}]}";
  }
  return json + "]}";
}

TEST(LabCompareTest, WorseIsWhatIsSlowerBeyondDoubtAndTheThreshold) {
  const std::string before = ResultOf({1.0, 1.1, 1.05});
  const auto judge = [&](const std::string& after) {
    const Result<RunComparison> comparison = CompareRuns(before, after, 0.1);
    EXPECT_TRUE(comparison.ok()) << comparison.status().ToString();
    return comparison.ok() && comparison->any_worse();
  };
  EXPECT_TRUE(judge(ResultOf({2.0, 2.1, 2.2})));
  EXPECT_FALSE(judge(ResultOf({1.02, 1.12, 1.05}))) << "slower, but within the threshold";
  EXPECT_FALSE(judge(ResultOf({0.5, 4.0, 1.5}))) << "slower maybe, but the interval holds 1";
  EXPECT_FALSE(judge(ResultOf({2.0, 2.1}))) << "two repeats say nothing for sure";
  EXPECT_TRUE(judge(ResultOf({1.0, 1.1, 1.05}, "0.05"))) << "throttled more often";
  EXPECT_THAT(ComparisonText(*CompareRuns(before, ResultOf({2.0, 2.1, 2.2}), 0.1)), HasSubstr("WORSE"));
  EXPECT_THAT(ComparisonText(*CompareRuns(before, ResultOf({0.2, 0.21, 0.22}), 0.1)), HasSubstr("better"));
}

TEST(LabCompareTest, OfFewerThanThreeRepeatsNothingIsSaidToBeNoSlower) {
  for (const std::vector<double>& after : {std::vector<double>{50.0}, std::vector<double>{50.0, 50.0}}) {
    const Result<RunComparison> comparison =
        CompareRuns(ResultOf(std::vector<double>(after.size(), 1.0)), ResultOf(after), 0.1);
    ASSERT_TRUE(comparison.ok());
    EXPECT_TRUE(comparison->any_undecided());
    EXPECT_FALSE(comparison->any_worse());
    EXPECT_THAT(ComparisonText(*comparison), HasSubstr("repeats = 3 or more"));
    EXPECT_THAT(ComparisonText(*comparison), Not(HasSubstr("50.00-")));
  }
  // Nor where none completed, which is worse only when some did.
  EXPECT_FALSE(CompareRuns(ResultOf({0, 0, 0}), ResultOf({0, 0, 0}), 0.1)->any_undecided());
  EXPECT_FALSE(CompareRuns(ResultOf({0, 0, 0}), ResultOf({1, 1, 1}), 0.1)->any_undecided());
  EXPECT_TRUE(CompareRuns(ResultOf({1, 1, 1}), ResultOf({0, 0, 0}), 0.1)->any_worse());
  const Result<RunComparison> sure = CompareRuns(ResultOf({1, 1, 1}), ResultOf({1, 1, 1}), 0.1);
  EXPECT_FALSE(sure->any_undecided());
  EXPECT_TRUE(CompareRuns(ResultOf({1}), ResultOf({1}, "0.5"), 0.1)->any_worse());
}

TEST(LabCompareTest, WhatCannotBeToldIsUndecidedAndSaysWhy) {
  const auto text = [](const std::string& before, const std::string& after) {
    const Result<RunComparison> comparison = CompareRuns(before, after, 0.1);
    EXPECT_TRUE(comparison.ok()) << comparison.status().ToString();
    EXPECT_EQ(comparison->any_undecided(),
              ComparisonText(*comparison).find(" undecided: ") != std::string::npos);
    return ComparisonText(*comparison);
  };
  const auto limited = [](const std::string& by, const std::vector<double>& p99_ms) {
    std::string json = ResultOf(p99_ms);
    return json.insert(json.find("\"ops\""), "\"" + by + "_limited\": true, ");
  };
  const std::string sound = ResultOf({1, 1, 1}), faster = ResultOf({0.5, 0.5, 0.5});
  EXPECT_THAT(text(sound, ResultOf({0, 1, 1})),
              HasSubstr(" undecided: nothing completes any more in 1 of 3"));
  EXPECT_THAT(text(ResultOf({1, 1, 1, 1}), ResultOf({1, 1, 1, 0})),
              HasSubstr(" undecided: nothing completes"));
  EXPECT_THAT(text(ResultOf({0, 0, 1}), sound), HasSubstr(" undecided: only 1 of 3 repeats"));
  EXPECT_THAT(text(limited("generator", {1, 1, 1}), faster),
              HasSubstr(" undecided: this machine was too slow"));
  EXPECT_THAT(text(sound, limited("generator", {1, 1, 1})),
              HasSubstr(" undecided: this machine was too slow"));
  EXPECT_THAT(text(sound, limited("clients", {1, 1, 1})), HasSubstr(" undecided: all clients were busy"));
  EXPECT_THAT(text(limited("clients", {1, 1, 1}), sound), HasSubstr(" undecided: all clients were busy"));
  EXPECT_THAT(text(limited("clients", {1, 1, 1}), ResultOf({0.95, 0.95, 0.95})), HasSubstr(" better\n"))
      << "the clients held back what was slower";
  EXPECT_THAT(text(limited("clients", {1, 1, 1}), limited("clients", {0.5, 0.5, 0.5})),
              HasSubstr(" undecided: all clients were busy"));
  const auto closed = [&](const std::vector<double>& p99_ms) {
    return limited("clients", p99_ms).insert(1, R"("arrival": "closed", )");
  };
  EXPECT_THAT(text(closed({1, 1, 1}), closed({1, 1, 1})), Not(HasSubstr("undecided")));
  EXPECT_THAT(text(sound, limited("clients", {9, 9, 9})), HasSubstr("WORSE: slower"))
      << "that is sure all the same";
  EXPECT_THAT(text(sound, faster), HasSubstr(" better\n"));
}

// A result of one run with more members of its one operation, such as `, "failed": 1`.
std::string ResultWith(const std::string& members, const std::string& op = "read") {
  return R"({"format": 1, "stream_hash": "abc", "cells": [{"layout": "x", "rate": "1/s", "ops": [{"op": ")" +
         op + R"(", "operations": 100, "p99_ms": 1, "throttled": 0)" + members + "}]}]}";
}

TEST(LabCompareTest, WorseIsWhatDidLess) {
  const auto text = [](const std::string& after) {
    const Result<RunComparison> comparison = CompareRuns(ResultWith(""), after, 0.1);
    EXPECT_TRUE(comparison.ok()) << comparison.status().ToString();
    EXPECT_EQ(comparison->any_worse(), ComparisonText(*comparison).find("WORSE") != std::string::npos);
    return ComparisonText(*comparison);
  };
  EXPECT_THAT(text(ResultWith(R"(, "failed": 1)")), HasSubstr("WORSE: operations failed"));
  EXPECT_THAT(text(ResultWith(R"(, "dropped": 0.5)")), HasSubstr("WORSE: more is dropped"));
  EXPECT_THAT(text(ResultWith(R"(, "missing": 50)")), HasSubstr("WORSE: more finds nothing"));
  EXPECT_THAT(text(ResultWith("", "write")), HasSubstr("WORSE: missing"));
  EXPECT_THAT(text(ResultWith("", "write")), HasSubstr("WORSE: the two runs have no"));
  EXPECT_THAT(text(ResultOf({})), HasSubstr("WORSE: the two runs have no"));
  EXPECT_THAT(text(ResultWith(R"(, "missing": 1)")), Not(HasSubstr("WORSE")));
}

TEST(LabCompareTest, WhatFailedBeforeAsWellIsWorseOnlyWhereMoreFails) {
  const auto text = [](const std::string& before, const std::string& after) {
    return ComparisonText(*CompareRuns(ResultWith(before), ResultWith(after), 0.1));
  };
  EXPECT_THAT(text(R"(, "failed": 10)", R"(, "failed": 11)"), Not(HasSubstr("WORSE")));
  EXPECT_THAT(text(R"(, "failed": 10)", R"(, "failed": 20)"), HasSubstr("WORSE: more operations failed"));
}

TEST(LabCompareTest, NamesStandWholeAndColumnsBeneathEachOther) {
  RunComparison comparison;
  for (const char* layout : {"gr\u00f6\u00dfe-nach-Gr\u00f6\u00dfenklasse-und-Tag",
                             "gr\u00f6\u00dfe-nach-Gr\u00f6\u00dfenklasse-und-Jahr"}) {
    comparison.rows.push_back({.layout = layout, .rate = "constant 10/s", .op = "read", .why = {}});
  }
  const std::string text = ComparisonText(comparison);
  EXPECT_THAT(text, HasSubstr("\ngr\u00f6\u00dfe-nach-Gr\u00f6\u00dfenklasse-und-Tag  constant 10/s read "));
  EXPECT_THAT(text, HasSubstr("\ngr\u00f6\u00dfe-nach-Gr\u00f6\u00dfenklasse-und-Jahr constant 10/s read "));
}

TEST(LabCompareTest, RefusesRunsThatDidNotDoTheSame) {
  const std::string before = ResultOf({1.0});
  EXPECT_THAT(CompareRuns(before, ResultOf({1.0}, "0", "abd"), 0.1).status().message(),
              HasSubstr("operation streams differ"));
  EXPECT_THAT(CompareRuns(before, "{}", 0.1).status().message(),
              HasSubstr("the second file is no result.json"));
}

// Of a run without cells.
std::string ResultOf(const Experiment& experiment, TargetKind kind = TargetKind::kEmbedded) {
  RunResult result{.prediction = Predict(RecordGenerator(experiment)),
                   .kind = kind,
                   .target = TargetKindName(kind),
                   .key_rows = {{}},
                   .cells = {}};
  return ResultJson(experiment, result);
}

TEST(LabCompareTest, RefusesRunsThatWereNotAskedForTheSame) {
  Experiment burst = ParseSound(ReadingsText(kDeviceLayout));
  burst.arrival.model = ArrivalModel::kBurst;
  const auto refusal = [&](const std::function<void(Experiment*)>& change) {
    Experiment changed = burst;
    change(&changed);
    return CompareRuns(ResultOf(burst), ResultOf(changed), 0.1).status().message();
  };
  EXPECT_EQ(refusal([](Experiment*) {}), "");
  EXPECT_THAT(refusal([](Experiment* e) { e->arrival.off_s = 3; }),
              HasSubstr("did not do the same: arrival burst, on 1 s, off 1 s, then burst, on 1 s, off 3 s"));
  EXPECT_THAT(refusal([](Experiment* e) { e->durability = 3; }),
              HasSubstr("did not do the same: durability process, then memory"));
  EXPECT_THAT(refusal([](Experiment* e) {
                e->limits = ThroughputTargets::Storage();
                e->on_throttled = OnThrottled::kRetry;
              }),
              HasSubstr("limits off, then storage; throttled drop, then retry"));
  EXPECT_THAT(refusal([](Experiment* e) { e->arrival.duration_s = 1; }), HasSubstr("seconds 0.4, then 1"));
  EXPECT_THAT(refusal([&](Experiment* e) { e->layouts[0].arrival = burst.arrival; }),
              HasSubstr("arrival of device as all, then burst 1000/s"));
  EXPECT_EQ(refusal([](Experiment* e) { e->arrival.rates = {2000}; }), "") << "that is another row";
}

TEST(LabCompareTest, SaysWhereRunsWereNotOnTheSame) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  Experiment larger = experiment;
  larger.memory_bytes *= 2;
  larger.arrival.clients = 64;
  const Result<RunComparison> comparison =
      CompareRuns(ResultOf(experiment), ResultOf(larger, TargetKind::kRocksDb), 0.1);
  ASSERT_TRUE(comparison.ok()) << comparison.status().ToString();
  EXPECT_THAT(ComparisonText(*comparison), HasSubstr("not on the same: clients 8, then 64\n"
                                                     "not on the same: memory 256 MiB, then 512 MiB\n"
                                                     "not on the same: target embedded, then rocksdb\n"));
}

TEST_F(LabCommandTest, CompareEndsWithOneWhereItCannotTell) {
  const std::string once = Write("once.json", ResultOf({1})),
                    thrice = Write("thrice.json", ResultOf({1, 1, 1}));
  EXPECT_EQ(Lab({"compare", thrice, thrice}).code, ExitCode::kOk);
  EXPECT_EQ(Lab({"compare", once, once}).code, ExitCode::kFindings);
  EXPECT_EQ(Lab({"compare", thrice, Write("slow.json", ResultOf({5, 5, 5}))}).code, ExitCode::kFindings);
}

}  // namespace
}  // namespace partita::lab

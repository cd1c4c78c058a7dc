#include "bench/lab/run.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bench/lab/draw.h"
#include "bench/lab/embedded_store.h"
#include "bench/lab/hdr_log.h"
#include "bench/lab/metrics.h"
#include "bench/lab/result_text.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"
#include "test/support/paths.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LabRunTest : public LabCommandTest {
 protected:
  RunResult RunOf(const Experiment& experiment) {
    const RecordGenerator generator(experiment);
    Result<RunResult> result =
        RunExperiment(generator, {.directory = directory_, .io_backend = backend_, .connection = {}},
                      [](double, double, const std::string&) { return true; });
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    return result.ok() ? std::move(*result) : RunResult{};
  }
};

// Some of the library, each of a kind; `test/long lab` checks all of it.
class LabLibraryTest : public LabRunTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(LabLibraryTest, GivesWhatTheDesignGuidesSay) {
  Experiment experiment =
      ParseSound(Read(std::string(kSourceDirectory) + "/bench/lab/library/" + GetParam() + ".toml"));
  ASSERT_FALSE(experiment.layouts.empty());
  for (const Expectation& expectation : experiment.expectations) {
    ASSERT_NE(expectation.metric, "throttled") << "which takes a load its time: ground_truth_test.cc";
  }
  // What is counted for each operation needs no more than a few of them.
  experiment.arrival.warmup_s = 0;
  experiment.arrival.duration_s = std::clamp(16 / experiment.arrival.rates[0], 0.15, 0.4);
  MakeSmall(&experiment);
  const RunResult result = RunOf(experiment);
  EXPECT_THAT(FailedExpectations(experiment, result), IsEmpty()) << VerdictTable(experiment, result);
}

INSTANTIATE_TEST_SUITE_P(Library, LabLibraryTest,
                         ::testing::Values("L02-date-append", "L08-log-tail", "L10-intra-partition-index",
                                           "L14-mixed-entity-types", "L15-data-series", "L16-packed-lines",
                                           "L18-or-on-row-keys", "L19-batches", "L22-key-length"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

TEST_F(LabRunTest, LatencyCountsFromWhenAnOperationWasDue) {
  Experiment experiment = ParseSound(ReadingsText(R"(
[[layout]]
name = "one"
pk = "all"
rk = "{ticks(ts)}"
)"));
  // One client, and far more scans of 2,000 entities than it can do: most wait for long, each is done soon.
  experiment.repeats = 1;
  experiment.ops.erase(experiment.ops.begin());
  experiment.arrival = {.rates = {50'000}, .clients = 1, .warmup_s = 0, .duration_s = 0.01};
  const RunResult result = RunOf(experiment);
  ASSERT_EQ(result.cells.size(), 1u);
  const OpFigures& figures = result.cells[0].ops[0];
  EXPECT_GT(figures.latency.Percentile(0.5), 3 * figures.service.Percentile(0.5));
  EXPECT_EQ(figures.operations, figures.completed + figures.unfinished);
}

TEST_F(LabRunTest, TheCommandMakesChecksExplainsAndRunsAnExperiment) {
  const std::string path = Write("x.toml", Once(Small(ReadingsText(std::string(kDeviceLayout) + R"(
[[expect]]
layout = "device"
op = "read"
metric = "scanned"
equals = 2
)"))));
  EXPECT_THAT(Lab({"check", path}).out, HasSubstr("sound"));
  EXPECT_THAT(Lab({"explain", path}).out, HasSubstr("hottest partition"));
  const std::string out = directory_ + "/result";
  const CommandOutcome run =
      Lab({"run", path, "--out", out, "--io", backend_ == IoBackend::kUring ? "uring" : "threads"});
  EXPECT_EQ(run.code, ExitCode::kFindings) << run.err;
  const CommandOutcome again = Lab({"run", path, "--out", out});
  EXPECT_EQ(again.code, ExitCode::kFindings);
  EXPECT_THAT(again.err, HasSubstr("result.json exists; --force writes over it"));
  EXPECT_THAT(run.err, HasSubstr("metric scanned of layout device, operation read is 1, not 2"));
  EXPECT_THAT(run.out, AllOf(HasSubstr("latest"), HasSubstr("medians of 1 run(s)")));
  EXPECT_THAT(Read(out + "/summary.csv"),
              HasSubstr("layout,rate,repeat,op,generator_limited,clients_limited,operations"));
  EXPECT_THAT(Read(out + "/timeline.csv"), HasSubstr("backlog"));
  EXPECT_THAT(Read(out + "/report.html"), HasSubstr("</html>"));
  const CommandOutcome report = Lab({"report", out + "/result.json", "--out", out + "/again.html"});
  EXPECT_EQ(report.code, ExitCode::kOk) << report.err;
  EXPECT_EQ(Read(out + "/again.html"), Read(out + "/report.html"));
  EXPECT_EQ(Lab({"report", out + "/result.json", "--out", out + "/again.html"}).code, ExitCode::kOk);
  const CommandOutcome over = Lab({"report", out + "/result.json", "--out", path});
  EXPECT_EQ(over.code, ExitCode::kFindings);
  EXPECT_THAT(over.err, HasSubstr("x.toml exists and is no report of the lab, so it is left alone"));
  EXPECT_THAT(Read(path), HasSubstr("[data]"));
  EXPECT_EQ(Lab({"report", out + "/result.json", "--out", Write("empty.html", "")}).code, ExitCode::kOk);
  EXPECT_THAT(Lab({"report", out + "/result.json", "--out", "/dev/null"}).err, HasSubstr("is no report"));
  EXPECT_THAT(Lab({"report", out + "/result.json", "--out", out}).err,
              HasSubstr("a directory; the path of a file is wanted"));
  for (const auto& left : std::filesystem::directory_iterator(out)) {
    EXPECT_TRUE(left.is_regular_file()) << left.path() << ": the stores are gone";
  }
  simdjson::dom::parser parser, schema_parser;
  simdjson::dom::element json, schema;
  ASSERT_EQ(parser.load(out + "/result.json").get(json), simdjson::SUCCESS);
  ASSERT_EQ(schema_parser.load(std::string(kSourceDirectory) + "/bench/lab/result.schema.json").get(schema),
            simdjson::SUCCESS);
  for (const auto name : schema["required"].get_array()) {
    EXPECT_EQ(json[name.get_string().value()].error(), simdjson::SUCCESS) << name;
  }
  const auto of_op =
      schema["properties"]["cells"]["items"]["properties"]["ops"]["items"]["required"].get_array();
  for (const auto name : of_op) {
    const auto op = json["cells"].at(0)["ops"].at(0);
    EXPECT_EQ(op[name.get_string().value()].error(), simdjson::SUCCESS) << name;
  }
  const auto of_timeline =
      schema["properties"]["cells"]["items"]["properties"]["timeline"]["required"].get_array();
  const auto timeline = json["cells"].at(0)["timeline"];
  for (const auto name : of_timeline) {
    EXPECT_EQ(timeline[name.get_string().value()].error(), simdjson::SUCCESS) << name;
  }
  const size_t columns = timeline["due"].get_array().size();
  EXPECT_EQ(timeline["entities"].get_array().size(), columns * timeline["rows"].get_uint64().value());
  EXPECT_EQ(json["explain"].at(0)["key_rows"].get_array().size(), timeline["rows"].get_uint64().value());
}

TEST_F(LabRunTest, NothingThatBearsANameOfItsResultsIsWrittenOver) {
  const std::string path = Write("x.toml", Once(Small(ReadingsText(kDeviceLayout))));
  for (const char* name : {"report.html", "summary.csv", "timeline.csv", "heat.csv", "latency.hdr.log"}) {
    const std::string out = directory_ + "/of-" + name;
    std::filesystem::create_directories(out);
    std::ofstream(out + "/" + name) << "mine";
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--resume"}}) {
      std::vector<std::string> words = {"run", path, "--out", out};
      words.insert(words.end(), more.begin(), more.end());
      const CommandOutcome run = Lab(words);
      EXPECT_EQ(run.code, ExitCode::kFindings) << name;
      EXPECT_THAT(run.err, HasSubstr(std::string(name) + " exists; --force writes over it"));
    }
    EXPECT_EQ(Read(out + "/" + name), "mine");
  }
}

TEST_F(LabRunTest, WithoutItsReportARunIsKeptAndTold) {
  const std::string path = Write("x.toml", Once(Small(ReadingsText(kDeviceLayout))));
  const std::string out = directory_ + "/result";
  std::filesystem::create_directories(out + "/report.html");  // Where no file can be written.
  const CommandOutcome run = Lab(
      {"run", path, "--force", "--out", out, "--io", backend_ == IoBackend::kUring ? "uring" : "threads"});
  EXPECT_EQ(run.code, ExitCode::kFailed);
  EXPECT_THAT(run.err, HasSubstr("report.html: it cannot be written"));
  EXPECT_THAT(run.out, HasSubstr("medians of 1 run(s)"));
  for (const char* name : {"/result.json", "/summary.csv", "/timeline.csv"}) {
    EXPECT_GT(Read(out + name).size(), 0u) << name;
  }
}

TEST_F(LabRunTest, EachRepeatBeginsWithTheNextLayout) {
  Experiment experiment = ParseSound(ReadingsText(std::string(kDeviceLayout) + R"(
[[layout]]
name = "one"
pk = "all"
rk = "{ticks(ts)}"
)"));
  experiment.records = 10;
  MakeSmall(&experiment);
  experiment.repeats = 2;
  experiment.arrival.warmup_s = 0;
  experiment.arrival.duration_s = 0.1;
  std::vector<size_t> order;
  for (const CellFigures& cell : RunOf(experiment).cells) order.push_back(cell.layout);
  EXPECT_THAT(order, ElementsAre(0, 1, 1, 0));
}

TEST_F(LabRunTest, RemovesNothingThatItDidNotMake) {
  const std::string mine = directory_ + "/result/work/store", leftover = directory_ + "/result/work-AAAAAA";
  for (const std::string& directory : {mine, leftover + "/store"}) {
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/precious") << "kept";
  }
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  experiment.repeats = 1;
  experiment.arrival.warmup_s = 0;
  experiment.arrival.duration_s = 0.1;
  const RecordGenerator generator(experiment);
  const auto on = [](double, double, const std::string&) { return true; };
  const auto run = RunExperiment(
      generator, {.directory = directory_ + "/result", .io_backend = backend_, .connection = {}}, on);
  EXPECT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_EQ(Read(mine + "/precious"), "kept");
  EXPECT_EQ(Read(leftover + "/store/precious"), "kept");
  const std::filesystem::directory_iterator left(directory_ + "/result");
  EXPECT_EQ(std::distance(begin(left), end(left)), 2) << "its own stores are gone";
  const auto refused = EmbeddedStore::Open(mine, experiment, backend_);
  EXPECT_EQ(refused.status().code(), Code::kAlreadyExists);
  EXPECT_EQ(Read(mine + "/precious"), "kept");
}

TEST_F(LabRunTest, NewWritesAnExperimentThatIsSoundAndNothingOverAnotherFile) {
  const std::string path = directory_ + "/first.toml";
  EXPECT_EQ(Lab({"new", path}).code, ExitCode::kOk);
  ParseSound(Read(path));
  EXPECT_EQ(Lab({"new", path}).code, ExitCode::kFindings);
  EXPECT_EQ(Lab({"check", path}).code, ExitCode::kOk);
  EXPECT_EQ(Lab({"check", directory_ + "/none.toml"}).code, ExitCode::kFailed);
  EXPECT_EQ(Lab({"chekc", path}).code, ExitCode::kUsage);
}

// Three runs each of two layouts with one operation; the first is the faster one.
struct Rivals {
  Rivals() {
    experiment.layouts.resize(2);
    experiment.ops.resize(1);
    experiment.arrival.rates = {1};
    result.prediction.layouts.resize(2);
    for (uint32_t repeat = 0; repeat < 3; ++repeat) {
      for (const size_t layout : {0, 1}) {
        OpFigures op{.operations = 100, .completed = 100};
        op.latency.Record(layout == 0 ? 1'000'000 : 9'000'000);
        result.cells.push_back(
            {.layout = layout, .repeat = repeat, .ops = {op}, .seconds = {}, .measured_s = 1});
      }
    }
  }
  bool has_star() const { return VerdictTable(experiment, result).find(" *\n") != std::string::npos; }

  Experiment experiment;
  RunResult result;
};

TEST(VerdictTest, WhatFailsOrFindsNothingDoesNotWin) {
  EXPECT_TRUE(Rivals().has_star());
  Rivals failing, missing;
  failing.result.cells[0].ops[0].failed = 1;
  EXPECT_FALSE(failing.has_star()) << "in one of three runs, which no median shows";
  missing.result.cells[0].ops[0].missing = 2;
  EXPECT_FALSE(missing.has_star());
  missing.result.cells[0].ops[0].missing = 1;
  EXPECT_TRUE(missing.has_star());
}

TEST(VerdictTest, WhatWaitedForAClientDoesNotWinAndToldIsTheRemedy) {
  Rivals rivals;
  rivals.result.cells[0].ops[0].waited = 1;
  EXPECT_TRUE(rivals.has_star()) << "one of a hundred";
  rivals.result.cells[0].ops[0].waited = 2;
  EXPECT_FALSE(rivals.has_star());
  EXPECT_THAT(VerdictTable(rivals.experiment, rivals.result),
              AllOf(HasSubstr(" clients-limited\n"), HasSubstr("all 64 clients were busy"),
                    HasSubstr("clients in [arrival]")));
}

TEST(VerdictTest, WhatFailedIsCountedOverAllRunsAndItsFirstErrorTold) {
  Rivals rivals;
  rivals.result.cells[0].ops[0].failed = 3;
  rivals.result.cells[0].ops[0].first_error = "IoError: gone";
  rivals.result.cells[4].ops[0].failed = 4;
  rivals.result.cells[1].ops[0].missing = 5;
  EXPECT_THAT(VerdictTable(rivals.experiment, rivals.result),
              AllOf(HasSubstr("  ! 7 failed: IoError: gone\n"), HasSubstr("  ! 5 found nothing\n")));
}

TEST(VerdictTest, WhatWasNotMeasuredIsADashAndNoZero) {
  Rivals rivals;
  rivals.experiment.layouts[1].name = "second";
  for (CellFigures& cell : rivals.result.cells) {
    if (cell.layout == 1) cell.ops[0] = {.operations = 100, .completed = 0, .throttled = 50};
    if (cell.layout == 0) cell.ops[0].scanned = 400, cell.ops[0].returned = 100;
  }
  const std::string table = VerdictTable(rivals.experiment, rivals.result);
  EXPECT_THAT(table, ContainsRegex("second +0\\.0 +- +- +50\\.0% +- +- +-\n"));
  EXPECT_THAT(table, ContainsRegex(" 100\\.0 +1\\.[0-9]+ .* 4\\.0 +0\\.00 +0\\.250"));
  const std::string csv = SummaryCsv(rivals.experiment, rivals.result);
  EXPECT_THAT(csv, HasSubstr(",,,,,")) << "p50_ms to service_p99_ms";
  // A service that tells no cost: what it returned was looked at, nobody knows among how much.
  for (CellFigures& cell : rivals.result.cells)
    cell.ops[0] = {.operations = 1, .completed = 1, .scanned = 7, .returned = 7, .untold = 1};
  EXPECT_THAT(VerdictTable(rivals.experiment, rivals.result), ContainsRegex("second .* - +0\\.00 +-\n"));
}

TEST(VerdictTest, ARunInWhichNothingWasCompletedIsNotWhatWasExpected) {
  Rivals rivals;
  EXPECT_THAT(FailedExpectations(rivals.experiment, rivals.result), IsEmpty());
  rivals.experiment.layouts[1].name = "second";
  rivals.result.cells[3].ops[0].completed = 0;
  rivals.result.cells[3].ops[0].first_error = "IoError: gone";
  EXPECT_THAT(FailedExpectations(rivals.experiment, rivals.result),
              ElementsAre("layout second, run 2: none of 100 operations was completed: IoError: gone"));
  rivals.result.cells[3].ops[0].operations = 0;
  EXPECT_THAT(FailedExpectations(rivals.experiment, rivals.result), IsEmpty()) << "nothing was due";
}

TEST(VerdictTest, WhatWasNotMeasuredDidNotComeOut) {
  Rivals rivals;
  rivals.experiment.layouts[0].name = "first";
  rivals.experiment.layouts[1].name = "second";
  rivals.experiment.ops[0].name = "op";
  const auto expects = [&](const std::string& metric, double equals) {
    rivals.experiment.expectations = {{.metric = metric, .layout = 0, .op = 0, .equals = equals, .is = {}}};
    return FailedExpectations(rivals.experiment, rivals.result);
  };
  for (const char* metric : {"density", "failed", "missing", "scanned", "hot_share"}) {
    EXPECT_THAT(expects(metric, metric == std::string("density") ? 1 : 0), IsEmpty()) << metric;
  }
  EXPECT_THAT(expects("throttled", 0), IsEmpty());
  OpFigures& figures = rivals.result.cells[2].ops[0];  // Of the second run of the first layout.
  figures.completed = figures.operations = 0;
  for (const char* metric : {"density", "failed", "missing", "scanned", "p99_ms", "throttled"}) {
    EXPECT_THAT(expects(metric, 0), ElementsAre(HasSubstr("metric " + std::string(metric) +
                                                          " of layout first, operation op: nothing was "
                                                          "measured: of 0 operations none was completed in "
                                                          "run 2")));
  }
  rivals.experiment.expectations = {
      {.metric = "scanned", .layout = 1, .op = 0, .times_of = 0, .below = 5, .is = {}}};
  EXPECT_THAT(FailedExpectations(rivals.experiment, rivals.result),
              ElementsAre(HasSubstr("of layout second, operation op against first: nothing was measured")));
  figures.operations = 7;
  EXPECT_THAT(expects("throttled", 0), Not(Contains(HasSubstr("throttled")))) << "of seven none was";
}

TEST(VerdictTest, WhyThereIsNoWinnerIsTrue) {
  Rivals rivals;
  rivals.experiment.ops[0].name = "op";
  rivals.experiment.layouts[0].name = "first";
  rivals.experiment.layouts[1].name = "second";
  rivals.result.key_rows.resize(2);
  rivals.result.prediction.layouts[0].ops.resize(1);
  rivals.result.prediction.layouts[1].ops.resize(1);
  EXPECT_THAT(ResultJson(rivals.experiment, rivals.result),
              AllOf(HasSubstr("\"winner\": \"first\""), HasSubstr("\"why\": \"\"")));
  Rivals few = rivals;
  few.result.cells.resize(4);
  few.experiment.repeats = 2;
  EXPECT_THAT(ResultJson(few.experiment, few.result), HasSubstr("\"why\": \"it takes three repeats\""));
  Rivals alike = rivals;
  for (CellFigures& cell : alike.result.cells) cell.ops[0].latency.Record(9'000'000);
  EXPECT_THAT(ResultJson(alike.experiment, alike.result), HasSubstr("\"why\": \"not beyond doubt\""));
  Rivals one_fails = rivals;
  one_fails.result.cells[1].ops[0].failed = 1;
  EXPECT_THAT(ResultJson(one_fails.experiment, one_fails.result),
              HasSubstr("\"why\": \"only first qualifies: second (operations failed)\""));
  one_fails.result.cells[0].ops[0].waited = 50;
  EXPECT_THAT(ResultJson(one_fails.experiment, one_fails.result),
              HasSubstr("\"why\": \"no layout qualifies: first (all clients were busy), second (operations "
                        "failed)\""));
  Rivals idle = rivals;
  for (CellFigures& cell : idle.result.cells) cell.ops[0] = {};
  EXPECT_THAT(ResultJson(idle.experiment, idle.result), HasSubstr("\"why\": \"nothing was due\""));
  EXPECT_THAT(VerdictTable(idle.experiment, idle.result), HasSubstr("  ! nothing was due\n"));
}

TEST(VerdictTest, WhoseP99MissesTheGoalDoesNotWin) {
  Rivals rivals;
  rivals.experiment.goal.p99_ms = 20;
  EXPECT_TRUE(rivals.has_star());
  rivals.experiment.goal.p99_ms = 0.5;
  EXPECT_FALSE(rivals.has_star());
  EXPECT_THAT(VerdictTable(rivals.experiment, rivals.result), HasSubstr(" p99-above-goal\n"));
}

TEST(VerdictTest, ARunInWhichNothingCompletesTellsNoLatency) {
  Rivals rivals;
  rivals.experiment.layouts[0].name = "first";
  rivals.experiment.layouts[1].name = "second";
  // Of three runs of the first two completed nothing, though nothing failed.
  for (const size_t cell : {0, 2}) rivals.result.cells[cell].ops[0] = {.operations = 100, .unfinished = 1};
  EXPECT_THAT(FiguresOf(rivals.result, 0, 0, 0, "p99_ms"), ElementsAre(Gt(0.9)));
  EXPECT_THAT(FiguresOf(rivals.result, 0, 0, 0, "throughput"), ElementsAre(0, 0, 100));
  EXPECT_FALSE(rivals.has_star());
  rivals.experiment.goal.p99_ms = 0.5;
  EXPECT_THAT(VerdictTable(rivals.experiment, rivals.result), ContainsRegex("first .* p99-above-goal\n"));
}

TEST(VerdictTest, WhereLoadsDifferNoLayoutWinsAndEachTellsItsOwn) {
  Rivals rivals;
  rivals.experiment.ops[0].name = "op";
  rivals.experiment.layouts[0].name = "first";
  rivals.experiment.layouts[1].name = "second";
  rivals.result.key_rows.resize(2);
  for (LayoutPrediction& told : rivals.result.prediction.layouts) told.ops.resize(1);
  // One that is written out and equal is no other.
  rivals.experiment.layouts[0].arrival = rivals.experiment.arrival;
  EXPECT_THAT(VerdictTable(rivals.experiment, rivals.result), Not(HasSubstr("loads differ")));
  rivals.experiment.layouts[0].arrival = Arrival{.model = ArrivalModel::kRamp, .rates = {1}, .rate_end = 300};
  EXPECT_THAT(VerdictTable(rivals.experiment, rivals.result),
              AllOf(ContainsRegex("first .* under ramp 1 to 300/s\n"), ContainsRegex("second .* -\n"),
                    HasSubstr("\nloads differ, so no layout gets a star"), Not(HasSubstr(" *\n"))));
  EXPECT_THAT(ResultJson(rivals.experiment, rivals.result),
              AllOf(HasSubstr("\"own_arrival\": \"ramp 1 to 300/s\""), HasSubstr("\"own_arrival\": \"\""),
                    HasSubstr("\"why\": \"loads differ: a layout has an arrival of its own\"")));
  EXPECT_THAT(SummaryCsv(rivals.experiment, rivals.result),
              AllOf(HasSubstr("\nfirst,ramp 1 to 300/s,"), HasSubstr("\nsecond,constant 1/s,")));
  EXPECT_THAT(HdrLog(rivals.experiment, rivals.result), HasSubstr("Tag=first/ramp_1_to_300/s/0/op,"));
}

TEST(VerdictTest, OneLateStartOfAFewIsChance) {
  CellFigures cell{.ops = {}, .seconds = {}, .timeline = {}, .late_starts = 4, .on_time_possible = 20};
  EXPECT_FALSE(cell.generator_limited());
  cell.late_starts = 5;
  EXPECT_TRUE(cell.generator_limited());
  cell.on_time_possible = 500;
  EXPECT_FALSE(cell.generator_limited()) << "one of a hundred";
}

TEST(RateTextTest, TellsAllRatesOfOneRun) {
  EXPECT_EQ(RateText({.model = ArrivalModel::kRamp, .rates = {1, 5}, .rate_end = 300}, 0), "ramp 1 to 300/s");
  EXPECT_EQ(RateText({.model = ArrivalModel::kSteps, .rates = {10, 20.5, 30}}, 0), "steps 10, 20.5, 30/s");
  EXPECT_EQ(RateText({.model = ArrivalModel::kBurst, .rates = {10, 20}}, 1), "burst 20/s");
}

TEST(TimelineTextTest, AnOperationThatWasRefusedAndTriedAgainEndsOnce) {
  Rivals rivals;
  rivals.result.cells.resize(1);
  rivals.result.cells[0].seconds = {{.due = 100, .completed = 40, .throttled = 40, .ended = 40},
                                    {.due = 0, .completed = 50, .throttled = 50, .ended = 60}};
  EXPECT_THAT(TimelineCsv(rivals.experiment, rivals.result),
              AllOf(HasSubstr(",0,100,40,40,0,60\n"), HasSubstr(",1,0,50,50,0,0\n")));
}

// Figures of three repeats of two layouts with some noise.
std::vector<std::vector<double>> Noisy(uint64_t seed, double second) {
  Draw draw(seed, 0);
  std::vector<std::vector<double>> figures(2);
  for (int repeat = 0; repeat < 3; ++repeat) {
    figures[0].push_back(std::exp(0.05 * draw.Normal()));
    figures[1].push_back(second * std::exp(0.05 * draw.Normal()));
  }
  return figures;
}

TEST(MetricsTest, OfTwoLayoutsThatAreAlikeNoneWins) {
  int winners = 0, right = 0;
  constexpr int kTrials = 2'000;
  for (int trial = 0; trial < kTrials; ++trial) {
    if (SmallestBeyondDoubt(Noisy(static_cast<uint64_t>(trial), 1)).has_value()) ++winners;
    if (SmallestBeyondDoubt(Noisy(static_cast<uint64_t>(trial), 2)) == 0u) ++right;
  }
  EXPECT_LT(winners, kTrials / 20);
  EXPECT_GT(right, kTrials * 95 / 100);
}

}  // namespace
}  // namespace partita::lab

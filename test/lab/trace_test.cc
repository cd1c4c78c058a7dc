#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/lab/operation_stream.h"
#include "bench/lab/run.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"
#include "test/support/paths.h"

namespace partita::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TraceTest : public LabCommandTest {
 protected:
  static Experiment Shipped(const std::string& name) {
    return ParseSound(Read(std::string(kSourceDirectory) + "/bench/lab/traces/" + name + ".toml"));
  }
  // What is wrong with a replay of `arrival`, in an experiment beside the files written.
  ExperimentFile Replay(const std::string& arrival) const {
    Write("x.toml",
          "name = \"x\"\n[data]\nrecords = 10\n[data.fields]\nid = { dist = \"sequence\" }\n[[op]]\nname = "
          "\"r\"\n"
          "kind = \"get\"\n[[layout]]\nname = \"l\"\npk = \"{id}\"\nrk = \"\"\n[arrival]\nmodel = "
          "\"replay\"\n" +
              arrival);
    Result<ExperimentFile> file = ReadExperimentFile(directory_ + "/x.toml");
    EXPECT_TRUE(file.ok());
    return std::move(*file);
  }
};

// One of those of Twitter's clusters, which differ in figures; `test/long lab` runs the others too.
class ShippedTraceTest : public TraceTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ShippedTraceTest, ItsOperationsRunOnEveryLayout) {
  Experiment experiment = Shipped(GetParam());
  ASSERT_EQ(experiment.layouts.size(), 3u);
  experiment.records = 400;
  experiment.repeats = 1;
  MakeSmall(&experiment);
  experiment.limits = {};
  // One client: two could meet at a record that one of them is just writing.
  experiment.arrival = {.rates = {1'000}, .clients = 1, .warmup_s = 0, .duration_s = 0.15};
  const Result<RunResult> result = RunExperiment(
      RecordGenerator(experiment), {.directory = directory_, .io_backend = backend_, .connection = {}},
      [](double, double, const std::string&) { return true; });
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  const bool deletes = std::any_of(experiment.ops.begin(), experiment.ops.end(),
                                   [](const Op& op) { return op.kind == OpKind::kDelete; });
  EXPECT_EQ(result->cells.size(), experiment.layouts.size());
  for (const CellFigures& cell : result->cells) {
    uint64_t completed = 0;
    for (const OpFigures& figures : cell.ops) completed += figures.completed;
    EXPECT_GT(completed, 0u);
    for (const OpFigures& figures : cell.ops) {
      EXPECT_EQ(figures.failed, 0u) << figures.first_error;
      if (!deletes) EXPECT_EQ(figures.missing, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, ShippedTraceTest,
                         ::testing::Values("mixgraph", "azure-functions-blobs", "twitter-cluster14"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_F(TraceTest, MixGraphHasThePublishedSizesScansAndHotRanges) {
  const Experiment experiment = Shipped("mixgraph");
  const RecordGenerator generator(experiment);
  size_t value = experiment.fields[0].name == "value" ? 0 : 1;
  std::vector<double> sizes, scans;
  Record record;
  for (uint64_t i = 0; i < 20'000; ++i) {
    generator.Make(i, &record);
    sizes.push_back(static_cast<double>(record.values[value].if_string()->size()));
  }
  // Those of the generalised Pareto distribution: scale (2^shape - 1) / shape, scale / (1 - shape).
  std::sort(sizes.begin(), sizes.end());
  EXPECT_NEAR(sizes[sizes.size() / 2], 25.45 * (std::pow(2, 0.2615) - 1) / 0.2615, 1);
  EXPECT_NEAR(std::accumulate(sizes.begin(), sizes.end(), 0.0) / 20'000, 25.45 / (1 - 0.2615), 1.5);

  OperationStream stream(generator);
  std::vector<double> by_range(30);
  uint64_t gets = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Operation operation = stream.Next();
    if (operation.op == 2) scans.push_back(static_cast<double>(operation.limit));
    if (operation.op != 0) continue;
    ++gets;
    ++by_range[operation.record * 30 / experiment.records];
  }
  EXPECT_NEAR(static_cast<double>(gets) / 100'000, 0.83, 0.01);
  std::sort(scans.begin(), scans.end());
  EXPECT_NEAR(scans[scans.size() / 2], 14.236 * (std::pow(2, 2.517) - 1) / 2.517, 3);
  EXPECT_LE(scans.back(), 10'000);
  std::vector<double> due;
  for (int k = 1; k <= 30; ++k) due.push_back(14.18 * std::exp(-2.917 * k) + 0.0164 * std::exp(-0.08082 * k));
  const double all = std::accumulate(due.begin(), due.end(), 0.0);
  std::sort(by_range.rbegin(), by_range.rend());
  for (int k = 0; k < 30; ++k) {
    const double share = due[static_cast<size_t>(k)] / all;
    EXPECT_NEAR(by_range[static_cast<size_t>(k)] / static_cast<double>(gets), share, 0.004) << k;
  }
}

TEST_F(TraceTest, AClustersKeysHaveItsSkew) {
  const Experiment experiment = Shipped("twitter-cluster29");
  const RecordGenerator generator(experiment);
  OperationStream stream(generator);
  double first = 0, second = 0;
  for (int i = 0; i < 50'000; ++i) {
    const Operation operation = stream.Next();
    first += operation.record == 0 ? 1 : 0;
    second += operation.record == 1 ? 1 : 0;
  }
  EXPECT_NEAR(first / second, std::pow(2, 1.2323), 0.15);
}

TEST_F(TraceTest, TimesOfATraceAreReplayed) {
  Write("trace.csv", "1606089600031,a\n1606089600131,b\n1606089602031,c\n");
  const ExperimentFile file =
      Replay("file = \"trace.csv\"\ncolumn = \"at\"\ncolumns = [\"at\", \"key\"]\nunit = \"ms\"\n");
  EXPECT_EQ(FindingsText("x", file.findings), "");
  EXPECT_THAT(file.experiment.arrival.times, ElementsAre(0, 0.1, 2));
  Write("times.csv", "at\n2026-01-01T00:00:00Z\n2026-01-01T00:00:01.5Z\n");
  EXPECT_THAT(Replay("file = \"times.csv\"\ncolumn = \"at\"\n").experiment.arrival.times,
              ElementsAre(0, 1.5));
}

TEST_F(TraceTest, TimesThatFallOrAreNoneAreTold) {
  Write("trace.csv", "at\n5\n4\nsoon\n");
  const auto findings = [&](const std::string& arrival) {
    return FindingsText("x", Replay("file = \"trace.csv\"\n" + arrival).findings);
  };
  EXPECT_THAT(findings("column = \"at\"\nunit = \"s\"\n"),
              HasSubstr("trace.csv:4: column \"at\": \"soon\" is no number"));
  EXPECT_THAT(findings("column = \"time\"\nunit = \"s\"\n"), HasSubstr("has no column \"time\""));
  Write("trace.csv", "at\n5\n4\n");
  EXPECT_THAT(findings("column = \"at\"\nunit = \"s\"\n"), HasSubstr("times must not fall"));
}

TEST_F(TraceTest, PlainTimesComeFromAPlainFile) {
  Write("times", "0\n0.5 1e0\n");
  EXPECT_THAT(Replay("file = \"times\"\n").experiment.arrival.times, ElementsAre(0, 0.5, 1));
  const auto findings = [&](const std::string& name) {
    return FindingsText("x", Replay("file = \"" + name + "\"\n").findings);
  };
  ASSERT_EQ(mkfifo((directory_ + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(findings("pipe"), HasSubstr("'pipe' is no plain file"));
  EXPECT_THAT(findings("none"), HasSubstr("'none' is no plain file"));
  Write("soon", "0\nsoon\n");
  EXPECT_THAT(findings("soon"), HasSubstr("a time in seconds on each line is expected"));
}

TEST_F(TraceTest, DistributionsThatAreNoneAreTold) {
  const std::string text = Read(std::string(kSourceDirectory) + "/bench/lab/traces/mixgraph.toml");
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string changed = text;
    changed.replace(changed.find(old), old.size(), now);
    return FindingsText("x", ParseExperiment(changed, "x").findings);
  };
  EXPECT_THAT(with("[0.002312, 0.3467]\n[[op]]", "[0.002312]\n[[op]]"),
              HasSubstr("key_dist: is two numbers"));
  EXPECT_THAT(with("range_dist = [14.18,", "range_dist = [-14.18,"),
              HasSubstr("range_dist: gives no weights above 0"));
  EXPECT_THAT(with("[0.2615, 25.45] }", "[0.2615] }"), HasSubstr("pareto: is two numbers above 0"));
  EXPECT_THAT(with("limit = 10_000\n", ""), HasSubstr("limit_pareto: needs limit"));
}

}  // namespace
}  // namespace partita::lab

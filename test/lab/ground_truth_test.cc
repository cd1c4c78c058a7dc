#include <gtest/gtest.h>

#include "bench/lab/metrics.h"
#include "bench/lab/result_text.h"
#include "bench/lab/run.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"
#include "test/support/paths.h"

namespace partita::lab {
namespace {

// What can be worked out, within 1 %.
class GroundTruthTest : public LabCommandTest {
 protected:
  Experiment Library(const std::string& name) {
    return ParseSound(Read(std::string(kSourceDirectory) + "/bench/lab/library/" + name + ".toml"));
  }
  RunResult RunOf(Experiment experiment) {
    MakeSmall(&experiment);
    const RecordGenerator generator(experiment);
    Result<RunResult> result =
        RunExperiment(generator, {.directory = directory_, .io_backend = backend_, .connection = {}},
                      [](double, double, const std::string&) { return true; });
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    return result.ok() ? std::move(*result) : RunResult{};
  }
};

TEST_F(GroundTruthTest, OfAConstantPartitionAllButItsTargetIsThrottled) {
  Experiment experiment = Library("L01-constant-partition");
  ASSERT_EQ(experiment.on_throttled, OnThrottled::kDrop);
  ASSERT_EQ(experiment.layouts[0].name, "one");
  experiment.layouts.resize(1);
  // A quarter of its load: a busy machine keeps up with it.
  experiment.arrival.rates = {1'000};
  experiment.limits.partition_rate = 500;
  experiment.arrival.warmup_s = 2.3;
  experiment.arrival.duration_s = 1.5;  // A share of 1,500 operations.
  // The warm-up empties the bucket within 2 s. A run that is late by more than the rest of it finds some
  // left, and says nothing of shares.
  constexpr double kLateMax_s = 0.3;
  RunResult result;
  double late_s = 1;
  for (int tries = 0; tries < 3 && late_s > kLateMax_s; ++tries) {
    result = RunOf(experiment);
    ASSERT_EQ(result.cells.size(), 1u);
    late_s = static_cast<double>(result.cells[0].ops[0].latency.max()) * 1e-9;
  }
  const CellFigures& cell = result.cells[0];
  const OpFigures& figures = cell.ops[0];
  EXPECT_EQ(figures.throttled + figures.completed, figures.operations - figures.unfinished);
  if (late_s > kLateMax_s) return;
  // A busy machine asks for them in more time than they were due in: of the rate that it reached the share
  // is the same.
  const double rate = static_cast<double>(figures.operations) / cell.measured_s;
  EXPECT_GT(rate, 625);
  const double throttled = MetricOf("throttled", figures, cell.measured_s, {});
  // What flows in while the machine is late for the last of them is let through as well.
  const double slack = late_s * 500 / static_cast<double>(figures.operations);
  EXPECT_GE(throttled, 1 - 500 / rate - 0.01 - slack) << VerdictTable(experiment, result);
  // What the bucket does not hold any more is lost where the machine keeps us from asking for it.
  EXPECT_LE(throttled, 1 - 500 / rate + 0.05 + slack) << VerdictTable(experiment, result);
}

TEST_F(GroundTruthTest, OfWritesThatAreSpreadNoneIsThrottled) {
  Experiment experiment = Library("L01-constant-partition");
  ASSERT_EQ(experiment.layouts[1].name, "spread");
  experiment.layouts.erase(experiment.layouts.begin());
  experiment.arrival.warmup_s = 0;
  experiment.arrival.duration_s = 0.2;
  const RunResult result = RunOf(experiment);
  ASSERT_EQ(result.cells.size(), 1u);
  EXPECT_EQ(result.cells[0].ops[0].throttled, 0u);
  EXPECT_GT(result.cells[0].ops[0].completed, 0u);
}

TEST_F(GroundTruthTest, OfAFilterThatOneInAHundredMeetsTheDensityIsAHundredth) {
  Experiment experiment = Library("L17-low-density");
  experiment.arrival.warmup_s = 0;
  experiment.arrival.duration_s = 0.2;
  const RecordGenerator generator(experiment);
  Record record;
  uint64_t open = 0;
  for (uint64_t number = 0; number < experiment.records; ++number) {
    generator.Make(number, &record);
    for (const PropertyValue& value : record.values) open += value == PropertyValue("open") ? 1 : 0;
  }
  EXPECT_EQ(open * 100, experiment.records);
  for (const CellFigures& cell : RunOf(experiment).cells) {
    const bool is_filtered = experiment.layouts[cell.layout].name == "filtered";
    EXPECT_NEAR(MetricOf("density", cell.ops[0], cell.measured_s, {}), is_filtered ? 0.01 : 1, 0.0001);
    EXPECT_GT(cell.ops[0].completed, 0u);
  }
}

}  // namespace
}  // namespace partita::lab

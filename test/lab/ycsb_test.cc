#include <gtest/gtest.h>

#include "bench/lab/run.h"
#include "test/cli/command_fixture.h"
#include "test/lab/experiments.h"
#include "test/support/paths.h"

namespace partita::lab {
namespace {

class YcsbTest : public CommandTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(YcsbTest, TheMixRunsAndMissesNothing) {
  Experiment experiment =
      ParseSound(Read(std::string(kSourceDirectory) + "/bench/lab/ycsb/" + GetParam() + ".toml"));
  ASSERT_EQ(experiment.layouts.size(), 2u);
  experiment.records = 500;
  experiment.repeats = 1;
  MakeSmall(&experiment);
  // One client: two could meet at a record that one of them is just writing.
  experiment.arrival = {.rates = {1'000}, .clients = 1, .warmup_s = 0, .duration_s = 0.15};
  const RecordGenerator generator(experiment);
  const Result<RunResult> result =
      RunExperiment(generator, {.directory = directory_, .io_backend = backend_, .connection = {}},
                    [](double, double, const std::string&) { return true; });
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->cells.size(), experiment.layouts.size());
  for (const CellFigures& cell : result->cells) {
    for (const OpFigures& figures : cell.ops) {
      EXPECT_GT(figures.completed, 0u);
      EXPECT_EQ(figures.failed + figures.missing, 0u) << figures.first_error;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mixes, YcsbTest, ::testing::Values("a", "b", "c", "d", "e", "f"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace partita::lab

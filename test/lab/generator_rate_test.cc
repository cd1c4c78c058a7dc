#include "bench/lab/generator_rate.h"

#include <gtest/gtest.h>

#include <regex>

#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"

namespace partita::lab {
namespace {

using GeneratorRateTest = LabCommandTest;

TEST_F(GeneratorRateTest, EachStepCostsMoreThanTheOneBeforeAndIsTold) {
  const CommandOutcome told = Lab({"generator", Write("x.toml", ReadingsText(kDeviceLayout))});
  EXPECT_EQ(told.code, ExitCode::kOk) << told.err;
  const auto figure_of = [&](const std::string& step) {
    std::smatch found;
    const bool is_told = std::regex_search(told.out, found, std::regex(step + " +\\d+ +(\\d+)\n"));
    EXPECT_TRUE(is_told) << step << " in " << told.out;
    return is_told ? std::stod(found[1].str()) : 0;
  };
  const double stream = figure_of("operations with their records");
  const double requests = figure_of("on device, as requests");
  const double clients = figure_of("on device, sent and measured");
  // Of what a step adds, half is left to a busy machine; of CPU time it takes little.
  EXPECT_GT(clients, 100);
  EXPECT_GT(requests, clients / 2);
  EXPECT_GT(stream, requests / 2);
}

}  // namespace
}  // namespace partita::lab

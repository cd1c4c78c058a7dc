#include "bench/lab/generator_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using GeneratorRateTest = LabCommandTest;

TEST_F(GeneratorRateTest, EachStepCostsMoreThanTheOneBeforeAndIsTold) {
  const std::string text = ReadingsText(kDeviceLayout);
  const Result<GeneratorRate> rate = MeasureGenerator(ParseSound(text));
  ASSERT_TRUE(rate.ok()) << rate.status().ToString();
  ASSERT_EQ(rate->layouts.size(), 1u);
  // Of what a step adds, half is left to a busy machine.
  EXPECT_GT(rate->layouts[0].clients, 100);
  EXPECT_GT(rate->layouts[0].requests, rate->layouts[0].clients / 2);
  EXPECT_GT(rate->stream, rate->layouts[0].requests / 2);
  const CommandOutcome told = Lab({"generator", Write("x.toml", text)});
  EXPECT_EQ(told.code, ExitCode::kOk) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("operations with their records"), HasSubstr("on device, as requests"),
                              HasSubstr("on device, sent and measured")));
}

}  // namespace
}  // namespace partita::lab

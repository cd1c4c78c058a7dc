#include "bench/lab/capacity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bench/lab/lab_command.h"
#include "test/cli/command_fixture.h"
#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(CapacityTest, IsFoundToWithinATenthInAFewRuns) {
  for (const double edge : {11.0, 100.0, 555.5, 639.0}) {
    const auto found = SearchCapacity(10, 640, [&](double rate) -> Result<bool> { return rate <= edge; });
    ASSERT_TRUE(found.ok());
    EXPECT_LE(found->rate, edge);
    EXPECT_GT(found->rate * 1.1, edge);
    EXPECT_GT(found->broken_at, edge);
    EXPECT_LE(found->probes.size(), 10u);
  }
}

TEST(CapacityTest, WhatHoldsOrBreaksThroughoutIsSaid) {
  const auto all = SearchCapacity(10, 640, [](double) -> Result<bool> { return true; });
  EXPECT_EQ(all->rate, 640);
  EXPECT_EQ(all->broken_at, 0);
  EXPECT_THAT(all->probes, SizeIs(1));
  const auto none = SearchCapacity(10, 640, [](double) -> Result<bool> { return false; });
  EXPECT_EQ(none->rate, 0);
  EXPECT_EQ(none->broken_at, 10);
}

TEST(CapacityTest, WhatHeldOnceByLuckIsNotTaken) {
  std::map<double, int> seen;
  const auto found = SearchCapacity(10, 640, [&](double rate) -> Result<bool> {
    return rate <= 100 || (rate <= 200 && ++seen[rate] == 1);  // Holds but once between.
  });
  EXPECT_LE(found->rate, 100);
  EXPECT_GT(found->rate, 80);
}

TEST(CapacityTest, AnErrorEndsTheSearch) {
  const auto found = SearchCapacity(10, 640, [](double) -> Result<bool> { return Status::Cancelled("x"); });
  EXPECT_EQ(found.status().code(), Code::kCancelled);
}

class CapacityCommandTest : public CommandTest {
 protected:
  CommandOutcome Lab(const std::vector<std::string>& words) {
    std::ostringstream out, err;
    CountdownInterrupts interrupts;
    Console console{.out = out, .err = err, .interrupts = interrupts};
    const ExitCode code = RunLab(words, console);
    return {.code = code, .out = out.str(), .err = err.str()};
  }
};

TEST_F(CapacityCommandTest, TheCommandTellsWhatEachLayoutCarries) {
  const std::string path = Write("x.toml", ReadingsText(std::string(kDeviceLayout) + R"(
[goal]
throttled = 1.0
)"));
  const std::string io = backend_ == IoBackend::kUring ? "uring" : "threads";
  const CommandOutcome found = Lab({"run", path, "--capacity", "--out", directory_ + "/out", "--io", io});
  EXPECT_EQ(found.code, ExitCode::kOk) << found.err;
  EXPECT_THAT(found.out, AllOf(HasSubstr("device"), HasSubstr("at least 1000")));
  EXPECT_THAT(Read(directory_ + "/out/capacity.json"), HasSubstr("\"rate\": 1000"));
  const std::string aimless = Write("y.toml", ReadingsText(kDeviceLayout));
  EXPECT_THAT(Lab({"run", aimless, "--capacity", "--out", directory_ + "/out"}).err, HasSubstr("[goal]"));
}

}  // namespace
}  // namespace partita::lab

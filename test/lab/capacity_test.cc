#include "bench/lab/capacity.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "test/lab/experiments.h"
#include "test/lab/fake_store.h"
#include "test/lab/lab_fixture.h"

namespace partita::lab {
namespace {

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

TEST(CapacityTest, WhatBoundsItIsWritten) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  LayoutCapacity capacity{.search = {.rate = 1000, .broken_at = 0, .probes = {1000}}, .broken = {}};
  EXPECT_THAT(CapacityText(experiment, {capacity}), HasSubstr("at least 1000"));
  capacity.generator_limited = true;
  EXPECT_THAT(CapacityText(experiment, {capacity}), HasSubstr("this machine may be the limit"));
  capacity.clients_limited = true;
  EXPECT_THAT(CapacityText(experiment, {capacity}), HasSubstr("all 8 clients were busy"));
  capacity.search = {.rate = 0, .broken_at = 16, .probes = {1000, 16}};
  EXPECT_THAT(CapacityText(experiment, {capacity}), HasSubstr("below 16         -"));
  EXPECT_THAT(CapacityJson(experiment, {capacity}), HasSubstr("\"p99_ms\": null"));
}

Experiment WithGoal(const Goal& goal) {
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  experiment.goal = goal;
  experiment.arrival = {.rates = {500}, .clients = 4, .warmup_s = 0, .duration_s = 1};
  return experiment;
}

// A run of a second, as one that met every goal would leave it.
CellFigures Sound() {
  OpFigures op{.operations = 500, .completed = 500};
  for (int i = 0; i < 500; ++i) op.latency.Record(1'000'000);
  return {.ops = {op}, .seconds = {}, .timeline = {}, .measured_s = 1};
}

TEST(MissedByTest, EachPartOfAGoalIsMissedByItself) {
  const Experiment experiment = WithGoal({.p99_ms = 10, .throttled = 0.2});
  EXPECT_EQ(MissedBy(experiment, Sound()), "");
  CellFigures failed = Sound(), throttled = Sound(), refused = Sound(), slow = Sound(), late = Sound();
  failed.ops[0].failed = 1;
  EXPECT_EQ(MissedBy(experiment, failed), "operations failed");
  CellFigures missing = Sound();
  missing.ops[0].missing = 5;
  EXPECT_EQ(MissedBy(experiment, missing), "");
  missing.ops[0].missing = 6;
  EXPECT_EQ(MissedBy(experiment, missing), "found nothing too often");
  throttled.ops[0].throttled = 101;
  EXPECT_EQ(MissedBy(experiment, throttled), "throttled");
  refused.ops[0].unfinished = 101;
  EXPECT_EQ(MissedBy(experiment, refused), "not done");
  for (int i = 0; i < 6; ++i) slow.ops[0].latency.Record(50'000'000);
  EXPECT_EQ(MissedBy(experiment, slow), "p99");
  late.measured_s = 1.1;  // The last was done 100 ms after its time, and so were those before.
  EXPECT_EQ(MissedBy(experiment, late), "fell behind");
}

TEST(MissedByTest, OneRareOperationThatMissesTheGoalIsNotHiddenByTheOthers) {
  const Experiment experiment = WithGoal({.p99_ms = 10, .throttled = 0.2});
  CellFigures cell = Sound();
  OpFigures rare{.operations = 2, .completed = 2};
  for (int i = 0; i < 2; ++i) rare.latency.Record(1'000'000);
  cell.ops.push_back(rare);
  EXPECT_EQ(MissedBy(experiment, cell), "");
  cell.ops[1].throttled = 1;
  EXPECT_EQ(MissedBy(experiment, cell), "throttled (latest)");
  cell.ops[1] = {.operations = 2, .completed = 2};
  for (int i = 0; i < 2; ++i) cell.ops[1].latency.Record(50'000'000);
  EXPECT_EQ(MissedBy(experiment, cell), "p99 (latest)");
}

TEST(MissedByTest, WhatTheGoalAllowsToBeRefusedIsNotBehind) {
  const Experiment experiment = WithGoal({.p99_ms = {}, .throttled = 0.2});
  CellFigures refused = Sound();
  refused.ops[0].completed = 410;
  refused.ops[0].throttled = refused.ops[0].dropped = 90;
  EXPECT_EQ(MissedBy(experiment, refused), "");
}

// Takes so long for each request that four clients do 80 a second.
class SlowStore final : public FakeStore {
  Status Serve() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return Status();
  }
};

TEST(MissedByTest, AStoreThatNeverRefusesButCannotKeepUpDoesNotHold) {
  Experiment experiment = WithGoal({.p99_ms = {}, .throttled = 0.01});
  experiment.ops.erase(experiment.ops.begin(), experiment.ops.begin() + 2);  // Of "read" each is one request.
  experiment.arrival.duration_s = 0.5;
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  const auto target = Target::Make(std::make_unique<SlowStore>(), experiment.layouts[0], generator, stop,
                                   [](double) { return true; });
  ASSERT_TRUE(target.ok());
  const CellFigures cell = RunCell(**target, generator, 150, [](double) { return true; }).value();
  EXPECT_EQ(MissedBy(experiment, cell), "fell behind");
}

// One request near the end takes long, as one that was refused and tried again.
class StragglingStore final : public FakeStore {
  Status Serve() override {
    if (++served_ == 95) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    return Status();
  }
  std::atomic<int> served_{0};
};

TEST(MissedByTest, OneThatTakesLongIsNoLagOfAll) {
  Experiment experiment = WithGoal({.p99_ms = {}, .throttled = 0.01});
  experiment.ops.erase(experiment.ops.begin(), experiment.ops.begin() + 2);
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  const auto target = Target::Make(std::make_unique<StragglingStore>(), experiment.layouts[0], generator,
                                   stop, [](double) { return true; });
  ASSERT_TRUE(target.ok());
  const CellFigures cell = RunCell(**target, generator, 100, [](double) { return true; }).value();
  EXPECT_GE(cell.ops[0].latency.max(), 600'000'000u);
  // The straggler's 600 ms do not count, whatever else a busy machine adds.
  EXPECT_LT(cell.measured_s, 1.5);
}

using CapacityCommandTest = LabCommandTest;

TEST_F(CapacityCommandTest, TheCommandTellsWhatEachLayoutCarries) {
  std::string text = ReadingsText(std::string(kDeviceLayout) + "[goal]\nthrottled = 1.0\n");
  text.replace(text.find("rate = 1000"), 11, "rate = 64");
  text.replace(text.find("400ms"), 5, "200ms");
  const std::string path = Write("x.toml", Small(text));
  const std::string io = backend_ == IoBackend::kUring ? "uring" : "threads";
  const CommandOutcome found = Lab({"run", path, "--capacity", "--out", directory_ + "/out", "--io", io});
  EXPECT_EQ(found.code, ExitCode::kOk) << found.err;
  EXPECT_THAT(found.out, HasSubstr("device"));
  // How much it is tells a busy machine nothing.
  EXPECT_THAT(Read(directory_ + "/out/capacity.json"), HasSubstr("\"rate\": "));
  const CommandOutcome again = Lab({"run", path, "--capacity", "--out", directory_ + "/out", "--io", io});
  EXPECT_EQ(again.code, ExitCode::kFindings);
  EXPECT_THAT(again.err, HasSubstr("capacity.json exists; --force writes over it"));
  const std::string aimless = Write("y.toml", ReadingsText(kDeviceLayout));
  EXPECT_THAT(Lab({"run", aimless, "--capacity", "--out", directory_ + "/other"}).err, HasSubstr("[goal]"));
}

TEST_F(CapacityCommandTest, ALayoutWhoseLowestRateFailsIsAFailure) {
  std::string text = ReadingsText(std::string(kDeviceLayout) + "[goal]\np99 = \"1us\"\n");
  text.replace(text.find("rate = 1000"), 11, "rate = 640");
  text.replace(text.find("400ms"), 5, "200ms");
  const std::string path = Write("x.toml", Small(text));
  const std::string io = backend_ == IoBackend::kUring ? "uring" : "threads";
  const CommandOutcome found = Lab({"run", path, "--capacity", "--out", directory_ + "/out", "--io", io});
  EXPECT_EQ(found.code, ExitCode::kFindings);
  EXPECT_THAT(found.err, HasSubstr("layout device: not even 10 operations a second, the lowest rate that is "
                                   "tried, meet the goal: p99"));
  EXPECT_THAT(Read(directory_ + "/out/capacity.json"), HasSubstr("\"rate\": 0"));
}

}  // namespace
}  // namespace partita::lab

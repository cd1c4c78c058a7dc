#include "test/support/simulation.h"

#include <gtest/gtest.h>

#include "engine/io/sim_runtime.h"
#include "test/support/slowdown.h"

// covers: F6 F9 F10 F12 F13 F14 F15 F16 F17 F18 F19 F20 F21 F22 F23 F25 F28 F29 F31 F33 F37 F39 F40 F41 F42
// F43 F44 F45 F46 F47 F48 F50 F53 F54 F56 F67 F68
//
// The whole engine in one thread from one seed, with faults at every step, recovery included. A seed that
// fails here: test/simulate --seed N shows it, and makes it smaller.

namespace partita {
namespace {

constexpr uint64_t kSeeds = 700;

void Add(const SimulationReport& report, SimulationReport* total) {
  total->lives += report.lives;
  total->crashes += report.crashes;
  total->damages += report.damages;
  total->counts.Add(report.counts);
  total->rare.Add(report.rare);
}

TEST(SimulationTest, NoSeedBreaksAPromiseAndAllRareStatesAreReached) {
  SimulationReport total;
  for (uint64_t seed = 1; seed <= kSeeds / kSlowdown; ++seed) {
    Simulation simulation;
    simulation.seed = seed;
    const SimulationReport report = RunSimulation(simulation);
    ASSERT_TRUE(report.violations.empty())
        << report.violations[0] << "\nagain: test/simulate --seed " << seed;
    Add(report, &total);
  }
  std::printf("%llu calls, %llu disk operations, %u lives, %llu crashes, %llu faults\n",
              (unsigned long long)total.counts.calls(), (unsigned long long)total.counts.disk_operations,
              total.lives, (unsigned long long)total.crashes, (unsigned long long)total.counts.faults_hit);
  for (size_t i = 0; i < kRareStateCount; ++i) {
    const RareState state = static_cast<RareState>(i);
    const uint64_t count = total.rare.count(state);
    std::printf("%8llu  %s\n", (unsigned long long)count, std::string(RareStateName(state)).c_str());
    if (kSlowdown == 1) EXPECT_GT(count, 0u) << "never reached: " << RareStateName(state);
  }
  EXPECT_GT(total.counts.backups, 0u);
  EXPECT_GT(total.counts.restores, 0u);
  EXPECT_GT(total.counts.scrubs, 0u);
  EXPECT_GT(total.counts.continued, 0u);
  EXPECT_GT(total.damages, kSeeds / kSlowdown / 10);
}

// test/long ranges makes a million of them.
TEST(SimulationTest, RangesAreSplitMovedAndMergedUnderFaultsAllTheTime) {
  SimulationReport total;
  for (uint64_t seed = 1; seed <= 40 / kSlowdown; ++seed) {
    Simulation simulation;
    simulation.seed = seed;
    simulation.keeps = 250;
    simulation.range_percent = 90;
    const SimulationReport report = RunSimulation(simulation);
    ASSERT_TRUE(report.violations.empty())
        << report.violations[0] << "\nagain: test/simulate --group ranges --seed " << seed;
    Add(report, &total);
  }
  EXPECT_GT(total.counts.splits, 200u / kSlowdown);
  EXPECT_GT(total.counts.merges, 200u / kSlowdown);
  EXPECT_GT(total.counts.moves, 200u / kSlowdown);
  EXPECT_GE(total.rare.count(RareState::kCrashInMove), 10u / kSlowdown);
}

TEST(SimulationTest, OneSeedGivesOneCourse) {
  Simulation simulation;
  simulation.seed = 77;
  const SimulationReport first = RunSimulation(simulation);
  const SimulationReport second = RunSimulation(simulation);
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(first.counts.disk_operations, second.counts.disk_operations);
  simulation.seed = 78;
  EXPECT_NE(RunSimulation(simulation).hash, first.hash);
}

TEST(SimulationTest, WhatIsCutIsReadBackFromItsText) {
  const std::string text =
      "life.0,life.3,crash.2,damage.1,fault.4.0,fault.4.10,request.5.0.0-7,request.5.1.9-9";
  const auto cuts = SimulationCuts::Parse(text);
  ASSERT_TRUE(cuts.has_value());
  EXPECT_EQ(cuts->ToString(), text);
  EXPECT_EQ(SimulationCuts::Parse("")->ToString(), "");
  for (const char* wrong :
       {"life", "life.x", "life.1.2", "request.1.2.3", "request.1.2.5-3", "crash.", ","}) {
    EXPECT_FALSE(SimulationCuts::Parse(wrong).has_value()) << wrong;
  }
}

TEST(SimulationTest, AFailingSeedIsMadeSmallerAndStillFails) {
  Simulation simulation;
  simulation.planted_log = LogDefect::kSkipFlush;
  SimulationReport report;
  for (simulation.seed = 1; simulation.seed < 50; ++simulation.seed) {
    report = RunSimulation(simulation);
    if (!report.violations.empty()) break;
  }
  ASSERT_FALSE(report.violations.empty());
  uint32_t tries = 0;
  const std::function<bool(const Simulation&)> fails = [&tries](const Simulation& candidate) {
    ++tries;
    return !RunSimulation(candidate).violations.empty();
  };
  simulation.cuts = MinimiseSimulation(simulation, report.lives, 150, fails);
  EXPECT_LE(tries, 150u);
  const SimulationReport smaller = RunSimulation(simulation);
  EXPECT_FALSE(smaller.violations.empty());
  EXPECT_LT(smaller.counts.calls(), report.counts.calls() / 3);
}

// Seed 219, made smaller: the first catalog's rename failed, and the store was called damaged.
TEST(SimulationTest, AStoreThatCouldNotBeCreatedIsNotCalledDamaged) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  SimFault fault;
  fault.operations = SimOps(SimOp::kRename);
  fault.count = 1;
  runtime.AddFault(fault);
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.log_segment_bytes = 32u << 10;
  options.log_tail_bytes = 16u << 10;
  const auto failed = runtime.RunToEnd(Store::Open(runtime, options));
  EXPECT_EQ(failed.code(), Code::kUnknown) << failed.status().ToString();
  auto opened = runtime.RunToEnd(Store::Open(runtime, options));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
}

// F40 to F45, F52: whatever bit flips, what is read is right or an error.
TEST(SimulationTest, AFlippedBitNeverLeadsToOtherRows) {
  FlipReport total;
  for (uint64_t seed = 1; seed <= 40 / kSlowdown; ++seed) {
    const FlipReport report = RunFlips(seed, 100);
    ASSERT_TRUE(report.violations.empty())
        << report.violations[0] << "\nagain: test/simulate --group flips --seed " << seed;
    total.refused += report.refused;
    total.damaged += report.damaged;
    total.harmless += report.harmless;
  }
  EXPECT_GT(total.refused, 0u);
  EXPECT_GT(total.damaged, 0u);
  EXPECT_GT(total.harmless, 0u);
}

// F20 to F26, F54, F56: one fault, at any operation of a life, and then a loss of power.
TEST(SimulationTest, NoSingleFaultBreaksAPromise) {
  Simulation simulation;
  simulation.lives = 2;
  simulation.requests = 15;
  simulation.only_fault = Simulation::OnlyFault{UINT32_MAX, {}};
  const uint64_t operations = RunSimulation(simulation).life_operations[0];
  uint64_t hits = 0;
  for (uint64_t at = 1; at <= operations; at += kSlowdown * 2) {
    for (const Code code : {Code::kIoError, Code::kNoSpace}) {
      SimFault fault;
      fault.first_operation = at;
      fault.count = 1;
      fault.code = code;
      simulation.only_fault = Simulation::OnlyFault{0, fault};
      const SimulationReport report = RunSimulation(simulation);
      ASSERT_TRUE(report.violations.empty()) << report.violations[0] << "\noperation " << at;
      hits += report.counts.faults_hit;
    }
  }
  EXPECT_GT(hits, operations / 4 / kSlowdown);
}

// ---- The proof is proved.

TEST(SimulationPlantedTest, FlipsFindALogThatTakesDamageForATornTail) {
  bool found = false;
  for (uint64_t seed = 25; seed <= 125 && !found; ++seed) {
    found = !RunFlips(seed, 200, LogDefect::kEveryBadIsTorn).violations.empty();
  }
  EXPECT_TRUE(found);
}

uint64_t SeedThatFinds(Simulation simulation, uint64_t seeds_max) {
  for (const uint64_t end = simulation.seed + seeds_max; simulation.seed < end; ++simulation.seed) {
    if (!RunSimulation(simulation).violations.empty()) return simulation.seed;
  }
  return 0;
}

TEST(SimulationPlantedTest, FindsDefectsOfTheEngine) {
  for (EngineDefect defect : {EngineDefect::kPublishBeforeDurable, EngineDefect::kReuseVersions,
                              EngineDefect::kSkipConditionRecheck}) {
    Simulation simulation;
    simulation.planted = defect;
    simulation.seed = 101;  // Of kSkipConditionRecheck one in a hundred and more finds it.
    EXPECT_GT(SeedThatFinds(simulation, 400), 0u) << static_cast<int>(defect);
  }
}

// By writes that are lost or misplaced; without damage a store never meets a bad frame that is none of a torn
// tail.
TEST(SimulationPlantedTest, FindsALogThatTakesDamageForATornTail) {
  Simulation simulation;
  simulation.planted_log = LogDefect::kEveryBadIsTorn;
  simulation.damage_percent = 60;
  simulation.damage_place = "log-";
  EXPECT_GT(SeedThatFinds(simulation, 200), 0u);
}

TEST(SimulationPlantedTest, FindsDefectsOfTheLog) {
  for (LogDefect defect : {LogDefect::kSkipFlush, LogDefect::kForgetTail}) {
    Simulation simulation;
    simulation.planted_log = defect;
    EXPECT_GT(SeedThatFinds(simulation, 100), 0u) << static_cast<int>(defect);
  }
}

}  // namespace
}  // namespace partita

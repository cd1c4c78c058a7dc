#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "test/support/slowdown.h"
#include "test/support/store_workload.h"

// Crash safety, proved on the simulator: random lives of a store, each ended by a crash at a random
// I/O operation, each crash drawn several times over, and everything compared with an independent
// model afterwards (test/support/store_model.h says what is checked).
//
// covers: F1 F2 F3 F4 F6 F8 F9 F10 F12 F13 F15 F17 F18 F28 F36 F37 F65: writes of all levels, barriers, table
// changes; the wall clock steps both ways.
//
// One seed again: PARTITA_SEED=<seed> bin/test_engine --gtest_filter=<the test>; more of them:
// PARTITA_SEEDS=<count>.

namespace partita {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string TestName() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->test_suite_name()) + "." + info->name();
}

void Print(const CrashReport& report) {
  auto number = [](uint64_t value) { return std::to_string(value); };
  const WorkloadCounts& counts = report.counts;
  std::string text =
      number(report.crash_points) + " crash points, " + number(report.crashes_in_recovery) +
      " of them in recovery; " + number(counts.requests) + " writes: " + number(counts.acknowledged) +
      " acknowledged, " + number(counts.refused) + " refused, " + number(counts.in_doubt) + " in doubt; " +
      number(counts.flushes) + " flushes, " + number(counts.compactions) + " compactions, " +
      number(counts.drops) + " table drops, " + number(counts.layouts) + " changes of layout, " +
      number(counts.glimpses) + " read-only opens; " + number(counts.rows_compared) + " rows compared";
  std::puts(text.c_str());
}

// Runs histories until `points` crash points were reached; fails at the first violation.
void ExpectNoViolation(uint64_t first_seed, uint64_t points, CrashHistory history) {
  points /= kSlowdown;
  bool one = std::getenv("PARTITA_SEED") != nullptr;
  first_seed = FromEnvironment("PARTITA_SEED", first_seed);
  uint64_t seeds_max = FromEnvironment("PARTITA_SEEDS", one ? 1 : UINT64_MAX);
  CrashReport total;
  for (uint64_t i = 0; i < seeds_max && (one || total.crash_points < points); ++i) {
    history.seed = first_seed + i;
    CrashReport report = RunCrashHistory(history);
    total.crash_points += report.crash_points;
    total.crashes_in_recovery += report.crashes_in_recovery;
    total.counts.Add(report.counts);
    for (const std::string& violation : report.violations) {
      ADD_FAILURE() << violation << "\nagain: PARTITA_SEED=" << history.seed
                    << " bin/test_engine --gtest_filter=" << TestName();
    }
    if (!report.violations.empty()) return;
  }
  Print(total);
  if (one) return;
  EXPECT_GE(total.crash_points, points);
  // The runs were what they are meant to be.
  EXPECT_GT(total.counts.rows_compared, points);
  EXPECT_GT(total.counts.acknowledged, points);
  EXPECT_GT(total.counts.refused, points / 10);
  EXPECT_GT(total.counts.flushes, points / 10);
  EXPECT_GT(total.counts.compactions, points / 100);
  EXPECT_GT(total.counts.drops, points / 200);
  EXPECT_GT(total.counts.layouts, points / 100);
  if (history.workload.glimpses) EXPECT_GT(total.counts.glimpses, points / 10);
}

// Runs histories until one shows a violation; fails when `seeds` histories show none.
void ExpectFound(CrashHistory history, uint64_t seeds) {
  uint64_t points = 0;
  uint64_t first_seed = FromEnvironment("PARTITA_SEED", 1);
  seeds = FromEnvironment("PARTITA_SEEDS", seeds);
  for (uint64_t i = 0; i < seeds; ++i) {
    history.seed = first_seed + i;
    CrashReport report = RunCrashHistory(history);
    points += report.crash_points;
    if (report.violations.empty()) continue;
    std::printf("found with seed %llu after %llu crash points: %s\n", (unsigned long long)history.seed,
                (unsigned long long)points, report.violations[0].c_str());
    return;
  }
  ADD_FAILURE() << "a planted defect was not found in " << points << " crash points";
}

TEST(CrashSimulationTest, NoCrashBreaksAPromise) { ExpectNoViolation(1'000'000, 8'000, CrashHistory()); }
TEST(CrashSimulationTest, NoCrashBreaksAPromiseWithOtherSeeds) {
  ExpectNoViolation(2'000'000, 8'000, CrashHistory());
}

TEST(CrashSimulationTest, NoCrashInLongLivesBreaksAPromise) {
  CrashHistory history;
  history.workload.requests = 120;
  history.operations_max = 4000;
  ExpectNoViolation(3'000'000, 6'000, history);
}

// F64, F15, F28: what a read-only open shows before recovery is what recovery leaves.
TEST(CrashSimulationTest, AReadOnlyOpenAfterACrashShowsWhatRecoveryKeepsAndChangesNothing) {
  CrashHistory history;
  history.workload.glimpses = true;
  ExpectNoViolation(5'000'000, 3'000, history);
}

TEST(CrashSimulationTest, NoFaultBreaksAPromise) {
  CrashHistory history;
  history.workload.faults = true;
  ExpectNoViolation(4'000'000, 4'000, history);
}

// ---- The proof is proved: each planted defect is found. Those of the log that show only where stored
// bytes rot, or where one group takes several frames, are planted in test/wal.

CrashHistory Planted(EngineDefect defect) {
  CrashHistory history;
  history.workload.planted = defect;
  return history;
}

CrashHistory Planted(LogDefect defect) {
  CrashHistory history;
  history.workload.planted_log = defect;
  return history;
}

TEST(CrashSimulationPlantedTest, FindsADroppedConditionRecheck) {
  ExpectFound(Planted(EngineDefect::kSkipConditionRecheck), 500);
}
TEST(CrashSimulationPlantedTest, FindsAnswersBeforeTheLogIsDurable) {
  ExpectFound(Planted(EngineDefect::kPublishBeforeDurable), 200);
}
// The engine's own checks may stop it first (F27): that is found too.
TEST(CrashSimulationPlantedTest, FindsReplayOfWhatWasFlushed) {
  auto stopped = [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) == 3; };
  EXPECT_EXIT(
      {
        CrashHistory history = Planted(EngineDefect::kForgetReplayFrom);
        for (history.seed = 1; history.seed <= 500; ++history.seed) {
          if (!RunCrashHistory(history).violations.empty()) std::_Exit(3);
        }
        std::_Exit(0);
      },
      stopped, "");
}
TEST(CrashSimulationPlantedTest, FindsReusedVersions) {
  ExpectFound(Planted(EngineDefect::kReuseVersions), 500);
}
TEST(CrashSimulationPlantedTest, FindsASkippedFlush) { ExpectFound(Planted(LogDefect::kSkipFlush), 200); }
TEST(CrashSimulationPlantedTest, FindsAForgottenTail) { ExpectFound(Planted(LogDefect::kForgetTail), 200); }

}  // namespace
}  // namespace partita

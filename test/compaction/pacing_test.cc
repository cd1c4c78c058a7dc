#include "compaction/pacing.h"

#include <gtest/gtest.h>

#include <random>

#include "test/compaction/lsm_simulation.h"

namespace partita {
namespace {

CompactionDebt Pending(uint64_t bytes) { return {.pending_bytes = bytes}; }

TEST(PacingTest, NobodyWaitsUpToHalfTheBudget) {
  EXPECT_EQ(WriteDelayNanos(Pending(0), 1000, 1024), 0u);
  EXPECT_EQ(WriteDelayNanos(Pending(500), 1000, 1024), 0u);
  EXPECT_EQ(WriteDelayNanos({.level0_sublevels = kLevel0SublevelsMax / 2}, 1000, 1024), 0u);
}

TEST(PacingTest, TheDelayRisesInProportionWithoutAStep) {
  uint64_t previous = 0;
  for (uint64_t debt = 500; debt <= 3000; ++debt) {
    uint64_t delay = WriteDelayNanos(Pending(debt), 1000, 1024);
    ASSERT_GE(delay, previous);
    ASSERT_LE(delay - previous, kDelayNanosPerKiB / 400);
    previous = delay;
  }
  EXPECT_NEAR(static_cast<double>(WriteDelayNanos(Pending(1000), 1000, 1024)), kDelayNanosPerKiB, 1);
  EXPECT_NEAR(static_cast<double>(WriteDelayNanos(Pending(750), 1000, 1024)), kDelayNanosPerKiB / 2.0, 1);
  EXPECT_EQ(WriteDelayNanos(Pending(1000), 1000, 4096), 4 * WriteDelayNanos(Pending(1000), 1000, 1024));
}

TEST(PacingTest, TooManySublevelsDelayLikeDebt) {
  CompactionDebt deep{.level0_sublevels = kLevel0SublevelsMax};
  EXPECT_EQ(WriteDelayNanos(deep, 1000, 1024), kDelayNanosPerKiB);
}

TEST(PacingTest, AQuietShapeOwesNothing) {
  LsmSimulation simulation({.flush_bytes = 1 << 20, .target_file_bytes = 1 << 18});
  EXPECT_EQ(DebtOf(simulation.Shape(), simulation.options()).pending_bytes, 0u);
  std::mt19937 random(3);
  for (uint32_t i = 0; i < kLevel0DepthMax + 40; ++i) {
    std::vector<uint32_t> keys;
    for (int k = 0; k < 1024; ++k) keys.push_back(random() % 50'000);
    simulation.Flush(keys);
  }
  EXPECT_GT(DebtOf(simulation.Shape(), simulation.options()).pending_bytes, 30ull << 20);
  EXPECT_EQ(DebtOf(simulation.Shape(), simulation.options()).level0_bytes, simulation.Shape().LevelBytes(0));
  simulation.RunUntilQuiet();
  uint64_t budget = DebtBudget(simulation.Shape(), simulation.options());
  EXPECT_LT(DebtOf(simulation.Shape(), simulation.options()).pending_bytes, budget / 4);
}

TEST(PacingTest, AFileSetAsideIsSeenOnAnyLevel) {
  for (const size_t level : {size_t{0}, size_t{1}, kLevels - 1}) {
    LevelShape shape;
    shape.levels[level].resize(3);
    EXPECT_FALSE(HoldsBusyFile(shape));
    shape.levels[level][1].busy = true;
    EXPECT_TRUE(HoldsBusyFile(shape));
  }
}

struct LoadOutcome {
  uint64_t debt_worst_percent = 0;  // Of the budget.
  uint64_t delay_worst_ns = 0;      // Of one 1 KiB write.
  uint32_t sublevels_worst = 0;
  double seconds = 0;
};

// Writers go as fast as they are let, 4 GB/s otherwise; one job at a time rewrites `merge_rate` bytes/s.
LoadOutcome RunLoad(LsmSimulation* simulation, double merge_rate, int flushes) {
  LoadOutcome outcome;
  std::mt19937 random(5);
  double now = 0;
  for (int i = 0; i < flushes; ++i) {
    std::vector<uint32_t> keys;
    double started = now;
    for (int k = 0; k < 256; ++k) keys.push_back(random() % 20'000);
    LevelShape shape = simulation->Shape();
    CompactionDebt debt = DebtOf(shape, simulation->options());
    uint64_t budget = DebtBudget(shape, simulation->options());
    uint64_t delay = WriteDelayNanos(debt, budget, LsmSimulation::kEntryBytes);
    outcome.delay_worst_ns = std::max(outcome.delay_worst_ns, delay);
    outcome.debt_worst_percent = std::max(outcome.debt_worst_percent, debt.pending_bytes * 100 / budget);
    outcome.sublevels_worst = std::max(outcome.sublevels_worst, debt.level0_sublevels);
    now += 256 * (static_cast<double>(delay) + 256) * 1e-9;
    simulation->Flush(keys);
    uint64_t work = static_cast<uint64_t>((now - started) * merge_rate);
    while (work > 0 && (simulation->job_runs() || simulation->StartJob())) work = simulation->Work(work);
  }
  outcome.seconds = now;
  return outcome;
}

TEST(PacingTest, DebtStaysBoundedHoweverSlowTheMerging) {
  for (double merge_rate : {1000e6, 200e6, 20e6}) {
    LsmSimulation simulation({.flush_bytes = 256 << 10, .target_file_bytes = 64 << 10});
    LoadOutcome outcome = RunLoad(&simulation, merge_rate, 500);
    std::printf(
        "merging %.0f MB/s: admitted %.1f MB/s, debt at most %llu %% of the budget, %u sublevels, a 1 KiB "
        "write waits at most %.0f us, write amplification %.1f\n",
        merge_rate / 1e6, 500 * 0.25 * 1.048576 / outcome.seconds,
        static_cast<unsigned long long>(outcome.debt_worst_percent), outcome.sublevels_worst,
        static_cast<double>(outcome.delay_worst_ns) / 1e3, simulation.WriteAmplification());
    EXPECT_LT(outcome.debt_worst_percent, 600u);
    EXPECT_LT(outcome.delay_worst_ns, 10'000'000u);
    simulation.RunUntilQuiet();
    simulation.ExpectRightAnswers();
  }
}

}  // namespace
}  // namespace partita

#include "engine/hybrid_clock.h"

#include <gtest/gtest.h>

#include "engine/io/sim_runtime.h"

// covers: F17 F65

namespace partita {
namespace {

constexpr int64_t kMinuteTicks = 60 * static_cast<int64_t>(kTicksPerSecond);

class HybridClockTest : public testing::Test {
 protected:
  uint64_t Wall() { return runtime_.clock().WallTicks(); }
  // The wall clock steps, and is read.
  void Step(int64_t ticks) {
    runtime_.StepWallClock(ticks);
    clock_.FollowWall();
  }

  SimDisk disk_{1};
  SimRuntime runtime_{{}, disk_};
  HybridClock clock_{runtime_.clock(), Version(0)};
};

TEST_F(HybridClockTest, FollowsAJumpOfTheWallClockUpToFiveMinutes) {
  for (const int64_t jump : {4 * kMinuteTicks, 5 * kMinuteTicks}) {
    Step(jump);
    EXPECT_EQ(clock_.NowTicks(), Wall());
    EXPECT_EQ(clock_.Next(), Version(Wall()));
  }
  for (const int64_t jump : {5 * kMinuteTicks + 1, 6 * kMinuteTicks}) {
    const uint64_t before = Wall();
    Step(jump);
    EXPECT_EQ(clock_.NowTicks(), before);
    EXPECT_LT(clock_.Next().value, before + kMinuteTicks);
    Step(-jump);
  }
}

TEST_F(HybridClockTest, AStepBackChangesNothing) {
  const Version before = clock_.Next();
  Step(-6 * kMinuteTicks);
  EXPECT_EQ(clock_.Next(), Version(before.value + 1));
  runtime_.AdvanceTime(kNanosPerSecond);
  clock_.FollowWall();
  EXPECT_EQ(clock_.Next(), Version(before.value + kTicksPerSecond));
}

// As long as something is written now and then.
TEST_F(HybridClockTest, FollowsSmallStepsOneByOne) {
  for (int step = 0; step < 3; ++step) {
    runtime_.StepWallClock(3 * kMinuteTicks);
    runtime_.AdvanceTime(2 * kNanosPerSecond);
    EXPECT_EQ(clock_.Next(), Version(Wall()));
  }
}

TEST_F(HybridClockTest, TellsHowFarItIsAheadOfTheWallClock) {
  EXPECT_EQ(clock_.TicksAhead(), 0);
  Step(6 * kMinuteTicks);
  EXPECT_EQ(clock_.TicksAhead(), -6 * kMinuteTicks);
  Step(-8 * kMinuteTicks);
  EXPECT_EQ(clock_.TicksAhead(), 2 * kMinuteTicks);
  clock_.RaiseTo(Version(Wall() + 5 * kMinuteTicks));
  EXPECT_EQ(clock_.TicksAhead(), 5 * kMinuteTicks);
}

TEST_F(HybridClockTest, EachVersionIsAboveTheOneBeforeAndTheFloor) {
  const Version floor(Wall() + kTicksPerSecond);
  HybridClock ahead(runtime_.clock(), floor);
  EXPECT_EQ(ahead.Next(), Version(floor.value + 1));
  EXPECT_EQ(ahead.Next(), Version(floor.value + 2));
  ahead.RaiseTo(floor);  // Lower than the last.
  EXPECT_EQ(ahead.Next(), Version(floor.value + 3));
  ahead.RaiseTo(Version(floor.value + 10));
  EXPECT_EQ(ahead.Next(), Version(floor.value + 11));
  runtime_.AdvanceTime(2 * kNanosPerSecond);
  EXPECT_EQ(ahead.Next(), Version(Wall()));
}

}  // namespace
}  // namespace partita

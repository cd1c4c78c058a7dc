#include "engine/base/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "engine/base/event.h"
#include "engine/base/task_group.h"
#include "test/base/test_executor.h"

namespace partita {
namespace {

Task<void> NoteMode(std::vector<Executor*>* seen) {
  seen->push_back(Executor::Current());
  co_await Yield();
  seen->push_back(Executor::Current());
  co_await YieldIfDue();
  seen->push_back(Executor::Current());
  co_await SleepFor(1);
  seen->push_back(Executor::Current());
}

TEST(ExecutorTest, InBlockingModeNothingSuspends) {
  std::vector<Executor*> seen;
  RunBlocking(NoteMode(&seen));
  EXPECT_EQ(seen, std::vector<Executor*>(4, nullptr));
}

TEST(ExecutorTest, OnAnExecutorAwaitsSuspendAndComeBackToIt) {
  TestThread executor;
  std::vector<Executor*> seen;
  TaskGroup group;
  group.Spawn(executor, NoteMode(&seen));
  RunBlocking(group.Join());
  EXPECT_EQ(seen, std::vector<Executor*>(4, &executor));
}

TEST(ExecutorTest, AScopeRestoresWhatWasCurrentBefore) {
  TestThread a;
  TestThread b;
  EXPECT_EQ(Executor::Current(), nullptr);
  {
    const Executor::Scope outer(&a);
    {
      const Executor::Scope inner(&b);
      EXPECT_EQ(Executor::Current(), &b);
    }
    EXPECT_EQ(Executor::Current(), &a);
  }
  EXPECT_EQ(Executor::Current(), nullptr);
}

Task<void> Sleep(uint64_t duration_ns) { co_await SleepFor(duration_ns); }

TEST(ExecutorTest, ABlockingSleepTakesAtLeastItsTime) {
  TestThread clock;
  const uint64_t start = clock.MonotonicNanos();
  RunBlocking(Sleep(2'000'000));
  EXPECT_GE(clock.MonotonicNanos() - start, 2'000'000u);
}

TEST(ExecutorDeathTest, BlockingOnAnExecutorsThreadAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        TestThread executor;
        const Executor::Scope scope(&executor);
        RunBlocking(Sleep(1));
      },
      "broken invariant");
}

}  // namespace
}  // namespace partita

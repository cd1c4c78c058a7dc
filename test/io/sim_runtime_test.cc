#include "engine/io/sim_runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "engine/base/async_mutex.h"
#include "engine/base/event.h"
#include "test/support/bytes.h"

namespace partita {
namespace {

Task<void> WriteSome(SimRuntime& runtime, std::string path, int count) {
  auto opened = co_await runtime.files().Open(path, OpenMode::kCreateOrOpen, FileIo::kBuffered);
  EXPECT_TRUE(opened.ok()) << opened.status().ToString();
  File& file = **opened;
  for (int i = 0; i < count; ++i) {
    const std::string text(static_cast<size_t>(1 + i % 900), static_cast<char>('a' + i % 26));
    const Status wrote = co_await file.WriteAt(static_cast<uint64_t>(i) * 700, AsBytes(text));
    EXPECT_TRUE(wrote.ok()) << wrote.ToString();
    if (i % 3 == 0) {
      const Status flushed = co_await file.Flush();
      EXPECT_TRUE(flushed.ok()) << flushed.ToString();
    }
    co_await YieldIfDue();
  }
}

Task<void> Nothing() { co_return; }

uint64_t TraceOf(uint64_t seed) {
  SimDisk disk(seed);
  SimRuntime runtime({.seed = seed}, disk);
  for (int i = 0; i < 3; ++i) runtime.Spawn(WriteSome(runtime, "file" + std::to_string(i), 40));
  runtime.Run(WriteSome(runtime, "root", 40));
  runtime.RunUntilIdle();
  EXPECT_EQ(runtime.spawned_running(), 0u);
  return runtime.TraceHash();
}

TEST(SimRuntimeTest, TheSameSeedGivesTheSameCourse) {
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(TraceOf(seed), TraceOf(seed)) << "seed " << seed;
}

TEST(SimRuntimeTest, AnotherSeedGivesAnotherCourse) {
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_NE(TraceOf(seed), TraceOf(seed + 1)) << "seed " << seed;
}

Task<void> Note(SimRuntime& runtime, std::vector<uint64_t>& times, uint64_t sleep_ns) {
  co_await SleepFor(sleep_ns);
  times.push_back(runtime.now_ns());
}

TEST(SimRuntimeTest, TimersFireInOrderOfTheirDeadlines) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  const uint64_t start = runtime.now_ns();
  std::vector<uint64_t> times;
  runtime.Spawn(Note(runtime, times, 3'000'000'000));
  runtime.Spawn(Note(runtime, times, 1'000'000'000));
  runtime.Spawn(Note(runtime, times, 2'000'000'000));
  runtime.Run(Note(runtime, times, 4'000'000'000));
  ASSERT_EQ(times.size(), 4u);
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_GE(times[i] - start, (i + 1) * 1'000'000'000);
    EXPECT_LT(times[i] - start, (i + 1) * 1'000'000'000 + 1'000'000);
  }
}

TEST(SimRuntimeTest, RunUntilIdleDoesNotWaitForTimersAndAdvanceTimeDoes) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  std::vector<uint64_t> times;
  runtime.Spawn(Note(runtime, times, 5'000'000'000));
  runtime.Spawn(WriteSome(runtime, "file", 10));
  runtime.RunUntilIdle();
  EXPECT_EQ(runtime.spawned_running(), 1u);
  EXPECT_TRUE(times.empty());
  runtime.AdvanceTime(4'000'000'000);
  EXPECT_TRUE(times.empty());
  const uint64_t before = runtime.now_ns();
  runtime.AdvanceTime(2'000'000'000);
  EXPECT_EQ(times.size(), 1u);
  EXPECT_EQ(runtime.now_ns(), before + 2'000'000'000);
}

Task<void> StepClock(SimRuntime& runtime) {
  Clock& clock = runtime.clock();
  const uint64_t wall = clock.WallTicks();
  const uint64_t monotonic = clock.MonotonicNanos();
  runtime.StepWallClock(-static_cast<int64_t>(3600 * kTicksPerSecond));
  EXPECT_EQ(clock.WallTicks(), wall - 3600 * kTicksPerSecond);
  runtime.StepWallClock(static_cast<int64_t>(7200 * kTicksPerSecond));
  EXPECT_EQ(clock.WallTicks(), wall + 3600 * kTicksPerSecond);
  EXPECT_EQ(clock.MonotonicNanos(), monotonic);
  co_await SleepFor(1'000'000'000);
  EXPECT_GE(clock.WallTicks(), wall + 3601 * kTicksPerSecond);
  EXPECT_GE(clock.MonotonicNanos(), monotonic + 1'000'000'000);
}

TEST(SimRuntimeTest, TheWallClockStepsAndTheMonotonicOneDoesNot) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  runtime.Run(StepClock(runtime));
}

struct Posted : Runnable {
  std::vector<int>* order;
  int number;
};

TEST(SimRuntimeTest, WorkOfOneExecutorRunsInTheOrderPosted) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimDisk disk(seed);
    SimRuntime runtime({.seed = seed, .shards = 2}, disk);
    std::vector<int> order[2];
    std::vector<Posted> posted(40);
    for (int i = 0; i < 40; ++i) {
      posted[static_cast<size_t>(i)].order = &order[i % 2];
      posted[static_cast<size_t>(i)].number = i;
      posted[static_cast<size_t>(i)].run = [](Runnable* self) {
        Posted* work = static_cast<Posted*>(self);
        work->order->push_back(work->number);
      };
      runtime.shard_executor(ShardId(static_cast<uint32_t>(i % 2))).Post(&posted[static_cast<size_t>(i)]);
    }
    runtime.RunUntilIdle();
    for (const auto& numbers : order) {
      EXPECT_EQ(numbers.size(), 20u);
      EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end())) << "seed " << seed;
    }
  }
}

Task<void> LogRun(std::string* log, char name) {
  for (int i = 0; i < 3; ++i) {
    log->push_back(name);
    co_await Yield();
  }
}

TEST(SimRuntimeTest, ExecutorsInterleaveInManyOrders) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SimDisk disk(seed);
    SimRuntime runtime({.seed = seed}, disk);
    std::string log;
    runtime.Spawn(LogRun(&log, 'a'));
    runtime.Spawn(LogRun(&log, 'b'));
    runtime.RunUntilIdle();
    seen.insert(log);
  }
  EXPECT_EQ(seen.size(), 20u);  // All of 6! / (3! 3!).
}

Task<void> WaitFor(Event& event) { co_await event.Wait(); }

TEST(SimRuntimeDeathTest, ADeadlockAbortsAndSaysWhatWaits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        SimDisk disk(1);
        SimRuntime runtime({.seed = 77}, disk);
        Event event;
        runtime.Spawn(WaitFor(event), "the one that waits");
        runtime.Run(WaitFor(event));
      },
      "deadlock.*\n.*seed 77.*\n.*waiting:\n *the one that waits");
}

Task<void> SleepForever() {
  while (true) co_await SleepFor(1'000'000'000);
}

TEST(SimRuntimeDeathTest, ADeadlockBesideATimerThatComesForEverAbortsToo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        SimDisk disk(1);
        SimRuntime runtime({.seed = 1}, disk);
        Event event;
        runtime.Spawn(SleepForever(), "the timer");
        runtime.Run(WaitFor(event));
      },
      "deadlock.*run_ns_max");
}

Task<void> YieldForever() {
  while (true) co_await Yield();
}

TEST(SimRuntimeDeathTest, ALoopThatNeverEndsAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        SimDisk disk(1);
        SimRuntime runtime({.seed = 1, .steps_max = 10'000}, disk);
        runtime.Run(YieldForever());
      },
      "loop that never ends");
}

Task<void> Increment(AsyncMutex& mutex, int& value, int& inside) {
  for (int i = 0; i < 10; ++i) {
    auto guard = co_await mutex.Lock();
    EXPECT_EQ(++inside, 1);
    const int read = value;
    co_await Yield();
    co_await SleepFor(1000);
    value = read + 1;
    --inside;
  }
}

TEST(SimRuntimeTest, AMutexHeldAcrossAwaitsExcludesAllOthers) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimDisk disk(seed);
    SimRuntime runtime({.seed = seed}, disk);
    AsyncMutex mutex;
    int value = 0;
    int inside = 0;
    for (int i = 0; i < 4; ++i) runtime.Spawn(Increment(mutex, value, inside));
    runtime.Run(Increment(mutex, value, inside));
    runtime.AdvanceTime(1'000'000'000);
    EXPECT_EQ(value, 50) << "seed " << seed;
  }
}

Task<void> CountAfter(Event& event, int& count) {
  co_await event.Wait();
  ++count;
}

Task<void> SetAfterSleep(Event& event) {
  co_await SleepFor(1'000'000);
  event.Set();
}

TEST(SimRuntimeTest, AnEventLetsAllWhoWaitGoOn) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  Event event;
  int count = 0;
  for (int i = 0; i < 10; ++i) runtime.Spawn(CountAfter(event, count));
  runtime.RunUntilIdle();
  EXPECT_EQ(count, 0);
  runtime.Run(SetAfterSleep(event));
  runtime.RunUntilIdle();
  EXPECT_EQ(count, 10);
}

Task<void> JoinMany(SimRuntime& runtime, int& done) {
  TaskGroup group;
  Event event;
  for (uint32_t i = 0; i < 20; ++i)
    group.Spawn(runtime.shard_executor(ShardId(i % 2)), CountAfter(event, done));
  group.Spawn(runtime.background(BackgroundClass::kIdle), SetAfterSleep(event));
  co_await group.Join();
  EXPECT_EQ(done, 20);
  EXPECT_EQ(group.running(), 0u);
}

TEST(SimRuntimeTest, AGroupsJoinEndsAfterAllItsTasks) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimDisk disk(seed);
    SimRuntime runtime({.seed = seed, .shards = 2}, disk);
    int done = 0;
    runtime.Run(JoinMany(runtime, done));
    EXPECT_EQ(done, 20);
  }
}

Task<int> Answer() {
  co_await Yield();
  co_return 42;
}

TEST(SimRuntimeTest, RunToEndReturnsTheValue) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  EXPECT_EQ(runtime.RunToEnd(Answer()), 42);
  runtime.Run(Nothing());
}

TEST(SimRuntimeTest, CallsFromOutsideAnExecutorAreDoneAtOnce) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  RunBlocking(WriteSome(runtime, "file", 4));
  EXPECT_TRUE(disk.FileExists("file"));
  EXPECT_EQ(disk.ReadFile("file").value().substr(0, 1), "a");
}

Task<void> TakeLock(SimRuntime& runtime, uint64_t wait_ns, Code expected) {
  const uint64_t start = runtime.now_ns();
  auto lock = co_await runtime.files().Lock(wait_ns);
  EXPECT_EQ(lock.code(), expected);
  if (expected == Code::kLocked) {
    EXPECT_GE(runtime.now_ns(), start + wait_ns);
    EXPECT_NE(lock.status().message().find("process 1"), std::string::npos) << lock.status().ToString();
  }
  if (lock.ok()) co_await SleepFor(2'000'000'000);
}

TEST(SimRuntimeTest, ALockIsWaitedForAndThenRefused) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  runtime.Spawn(TakeLock(runtime, 0, Code::kOk));
  runtime.RunUntilIdle();
  runtime.Run(TakeLock(runtime, 1'000'000'000, Code::kLocked));
  runtime.Run(TakeLock(runtime, 5'000'000'000, Code::kOk));
}

TEST(SimRuntimeTest, AnotherProcessFindsTheLockHeldUntilTheFirstDies) {
  SimDisk disk(1);
  SimRuntime first({.seed = 1}, disk);
  auto held = RunBlocking(first.files().Lock(0));
  ASSERT_TRUE(held.ok());
  SimRuntime second({.seed = 2}, disk);
  second.Run(TakeLock(second, 100'000'000, Code::kLocked));
  first.CrashNow();
  second.Run(TakeLock(second, 0, Code::kOk));
}

}  // namespace
}  // namespace partita

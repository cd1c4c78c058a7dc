#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <latch>

#include "engine/base/event.h"
#include "engine/io/slice_watch.h"
#include "engine/io/system_clock.h"
#include "test/io/real_world.h"

namespace partita {
namespace {

constexpr uint64_t kMilli = 1'000'000;

// Stalls of a worker, of either backend.
class StallTest : public RealRuntimeBackendTest {
 protected:
  void SetUp() override { OpenRuntime({}); }
  Executor& worker() { return runtime_->shard_executor(ShardId(0)); }
  void RunThere(Task<void> task) {
    TaskGroup group;
    group.Spawn(worker(), std::move(task));
    RunBlocking(group.Join());
  }
  // Of the function of this name.
  std::vector<Stall> StallsFrom(std::string_view function) {
    std::vector<Stall> stalls = worker().stalls()->Read().last;
    std::erase_if(stalls, [&](const Stall& stall) { return !PlaceName(stall.from).ends_with(function); });
    return stalls;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, StallTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Ring" : "Threads";
                         });

// By the thread's own time: how long that lasts is up to who else wants its core.
void Compute(uint64_t nanos) {
  SystemClock clock;
  const uint64_t begin = clock.ThreadCpuNanos();
  while (clock.ThreadCpuNanos() - begin < nanos) {
  }
}

void GiveCoreAway(uint64_t nanos) {
  const timespec time{0, static_cast<long>(nanos)};
  nanosleep(&time, nullptr);
}

Task<void> ComputeAfterYield() {
  co_await Yield();
  Compute(3 * kMilli);
  co_await Yield();
}

Task<void> LoseCoreAfterYield() {
  co_await Yield();
  GiveCoreAway(3 * kMilli);
  co_await Yield();
}

Task<void> ComputeAndYield() {
  co_await Yield();
  for (int i = 0; i < 50; ++i) {
    Compute(kMilli / 5);
    co_await YieldIfDue();
  }
  co_await Yield();
}

TEST_P(StallTest, ALongSliceIsNamedByTheAwaitsAroundIt) {
  RunThere(ComputeAfterYield());
  const std::vector<Stall> stalls = StallsFrom("ComputeAfterYield");
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_TRUE(PlaceName(stalls[0].from).starts_with("io/stall_test.cc:")) << PlaceName(stalls[0].from);
  EXPECT_EQ(stalls[0].to.line(), stalls[0].from.line() + 2) << PlaceName(stalls[0].to);
  EXPECT_GE(stalls[0].ran_ns, 3 * kMilli);
  EXPECT_GE(stalls[0].lasted_ns, stalls[0].ran_ns);
  EXPECT_TRUE(stalls[0].IsOwn());
}

TEST_P(StallTest, ALoopThatYieldsHasNoStallOfItsOwn) {
  // A core that the machine below takes away is counted as CPU time: once or twice in these 10 ms, at times
  // for as long as they take. Without yields it were one stall of them all each time, with too few of them a
  // dozen.
  const auto yields = [&] {
    const uint64_t begin_ns = runtime_->clock().MonotonicNanos();
    RunThere(ComputeAndYield());
    size_t own = 0;
    uint64_t ran_ns_max = 0;
    for (const Stall& stall : StallsFrom("ComputeAndYield")) {
      if (stall.began_ns < begin_ns) continue;
      ran_ns_max = std::max(ran_ns_max, stall.ran_ns);
      own += stall.IsOwn() ? 1 : 0;
    }
    return ran_ns_max < 5 * kMilli && own <= 3;
  };
  bool once = false;
  for (int tries = 0; tries < 10 && !once; ++tries) once = yields();
  EXPECT_TRUE(once);
}

TEST_P(StallTest, WhoLosesItsCoreIsNotSaidToHaveRun) {
  RunThere(LoseCoreAfterYield());
  const std::vector<Stall> stalls = StallsFrom("LoseCoreAfterYield");
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_GE(stalls[0].lasted_ns, 3 * kMilli);
  EXPECT_LT(stalls[0].ran_ns, kMilli);
  EXPECT_FALSE(stalls[0].IsOwn());
}

TEST_P(StallTest, WorkThatIsNoCoroutineIsCountedToo) {
  struct Posted : Runnable {
    std::latch done{1};
  } posted;
  posted.where = std::source_location::current();
  posted.run = [](Runnable* self) {
    Compute(2 * kMilli);
    static_cast<Posted*>(self)->done.count_down();
  };
  worker().Post(&posted);
  posted.done.wait();
  RunThere([]() -> Task<void> { co_return; }());  // The slice has ended when the next one begins.
  const std::vector<Stall> stalls = StallsFrom("TestBody");
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(PlaceName(stalls[0].to), "");
}

Stall At(const std::source_location& from, uint64_t lasted_ns, uint64_t ran_ns) {
  return {from, {}, 0, lasted_ns, ran_ns};
}

TEST(StallLogTest, CountsByPlaceAndKeepsTheLast) {
  const auto first = std::source_location::current();
  const auto second = std::source_location::current();
  StallLog log;
  for (int i = 0; i < 100; ++i) log.Note(At(first, 2 * kMilli, kMilli / 2));
  log.Note(At(second, 900 * kMilli, 800 * kMilli));
  const StallReport report = log.Read();
  EXPECT_EQ(report.total.stalls, 101u);
  EXPECT_EQ(report.total.own, 1u);
  EXPECT_EQ(report.total.lasted_ns, 1'100 * kMilli);
  EXPECT_EQ(report.total.lasted_ns_max, 900 * kMilli);
  ASSERT_EQ(report.places.size(), 2u);
  EXPECT_EQ(report.places[0].from.line(), second.line());  // What lasted longest in all.
  EXPECT_EQ(report.places[1].counts.stalls, 100u);
  EXPECT_EQ(report.places[1].counts.ran_ns, 50 * kMilli);
  ASSERT_EQ(report.last.size(), StallLog::kLastMax);
  EXPECT_EQ(report.last[0].from.line(), second.line());
  EXPECT_EQ(report.last[1].from.line(), first.line());
}

TEST(StallLogTest, ShortNamesOfPlacesLeaveOutWhereTheSourceLies) {
  EXPECT_EQ(PlaceName({}), "");
  const std::string name = PlaceName(std::source_location::current());
  EXPECT_TRUE(name.starts_with("io/stall_test.cc:")) << name;
  EXPECT_TRUE(name.ends_with("::TestBody")) << name;
}

}  // namespace
}  // namespace partita

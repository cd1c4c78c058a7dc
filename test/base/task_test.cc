#include "engine/base/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/base/executor.h"
#include "engine/base/result.h"

namespace partita {
namespace {

// A queue of work turned by hand, whose Scope makes awaits suspend.
class ManualExecutor : public Executor {
 public:
  void Post(Runnable* work) override { queue_.push_back(work); }
  void PostAt(uint64_t, Runnable* work) override { queue_.push_back(work); }
  uint64_t MonotonicNanos() override { return 0; }
  bool ShouldYield() override { return true; }

  bool RunOne() {
    if (next_ == queue_.size()) return false;
    Runnable* work = queue_[next_++];
    const Scope scope(this);
    work->run(work);
    return true;
  }
  size_t RunAll() {
    size_t count = 0;
    while (RunOne()) ++count;
    queue_.clear();
    next_ = 0;
    return count;
  }

 private:
  std::vector<Runnable*> queue_;
  size_t next_ = 0;
};

Task<int> One() { co_return 1; }

Task<uint64_t> SumOfTasksThatEndAtOnce(int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += static_cast<uint64_t>(co_await One());
  co_return sum;
}

TEST(TaskTest, FiveMillionTasksThatEndAtOnceUseNoStack) {
  EXPECT_EQ(RunBlocking(SumOfTasksThatEndAtOnce(5'000'000)), 5'000'000u);
}

Task<uint64_t> SumOnExecutor(uint64_t* out) {
  *out = co_await SumOfTasksThatEndAtOnce(1'000'000);
  co_return *out;
}

TEST(TaskTest, AMillionTasksThatEndAtOnceUseNoStackOnAnExecutorEither) {
  ManualExecutor executor;
  const Executor::Scope scope(&executor);
  uint64_t sum = 0;
  Task<uint64_t> task = SumOnExecutor(&sum);
  task.Start();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(sum, 1'000'000u);
}

Task<int> YieldThenOne() {
  co_await Yield();
  co_return 1;
}

Task<void> SumOfTasksThatSuspend(int count, uint64_t* sum) {
  for (int i = 0; i < count; ++i) *sum += static_cast<uint64_t>(co_await YieldThenOne());
}

TEST(TaskTest, AMillionTasksThatSuspendUseNoStack) {
  ManualExecutor executor;
  uint64_t sum = 0;
  Task<void> task = SumOfTasksThatSuspend(1'000'000, &sum);
  {
    const Executor::Scope scope(&executor);
    task.Start();
  }
  EXPECT_FALSE(task.done());
  executor.RunAll();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(sum, 1'000'000u);
}

// Ends at once or suspends, in turn: the awaiting side must take both ways in one loop.
Task<void> SumOfMixedTasks(int count, uint64_t* sum) {
  for (int i = 0; i < count; ++i) {
    *sum += static_cast<uint64_t>(i % 3 == 0 ? co_await YieldThenOne() : co_await One());
  }
}

TEST(TaskTest, TasksThatSuspendAndTasksThatEndAtOnceMix) {
  ManualExecutor executor;
  uint64_t sum = 0;
  Task<void> task = SumOfMixedTasks(300'000, &sum);
  {
    const Executor::Scope scope(&executor);
    task.Start();
  }
  EXPECT_EQ(executor.RunAll(), 100'000u);
  EXPECT_TRUE(task.done());
  EXPECT_EQ(sum, 300'000u);
}

Task<int> Deep(int depth) {
  if (depth == 0) {
    co_await Yield();
    co_return 0;
  }
  co_return 1 + co_await Deep(depth - 1);
}

Task<void> Store(Task<int> task, int* out) { *out = co_await std::move(task); }

TEST(TaskTest, AChainThatSuspendsAtItsEndUnwindsToItsRoot) {
  ManualExecutor executor;
  int depth = 0;
  Task<void> task = Store(Deep(1000), &depth);
  {
    const Executor::Scope scope(&executor);
    task.Start();
  }
  EXPECT_EQ(depth, 0);
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_EQ(depth, 1000);
}

Task<void> MarkStarted(bool* started) {
  *started = true;
  co_return;
}

TEST(TaskTest, ATaskIsLazy) {
  bool started = false;
  {
    Task<void> never = MarkStarted(&started);
    EXPECT_TRUE(never.valid());
  }
  EXPECT_FALSE(started);
  RunBlocking(MarkStarted(&started));
  EXPECT_TRUE(started);
}

struct CountsLife {
  explicit CountsLife(int* alive_in) : alive(alive_in) { ++*alive; }
  CountsLife(CountsLife&& other) noexcept : alive(other.alive) { ++*alive; }
  ~CountsLife() { --*alive; }
  int* alive;
};

Task<void> HoldAcrossYield(CountsLife held) {
  co_await Yield();
  EXPECT_GE(*held.alive, 1);
}

TEST(TaskTest, DestroyingATaskDestroysWhatItsFrameHolds) {
  int alive = 0;
  { Task<void> never_started = HoldAcrossYield(CountsLife(&alive)); }
  EXPECT_EQ(alive, 0);
  ManualExecutor executor;
  {
    const Executor::Scope scope(&executor);
    Task<void> suspended = HoldAcrossYield(CountsLife(&alive));
    suspended.Start();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(TaskTest, MovingATaskMovesItsFrame) {
  int alive = 0;
  Task<void> first = HoldAcrossYield(CountsLife(&alive));
  Task<void> second = std::move(first);
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(alive, 1);
  second = Task<void>();
  EXPECT_EQ(alive, 0);
}

Task<std::unique_ptr<std::string>> MoveOnly() { co_return std::make_unique<std::string>("moved"); }

Task<Result<std::unique_ptr<std::string>>> MoveOnlyResult(bool fails) {
  if (fails) co_return Status::IoError("no");
  co_return std::make_unique<std::string>("moved");
}

Task<Result<size_t>> LengthOfMoveOnly(bool fails) {
  PARTITA_CO_ASSIGN(const std::unique_ptr<std::string> text, co_await MoveOnlyResult(fails));
  co_return text->size();
}

TEST(TaskTest, ValuesThatOnlyMoveAndResultsPassThrough) {
  EXPECT_EQ(*RunBlocking(MoveOnly()), "moved");
  EXPECT_EQ(RunBlocking(LengthOfMoveOnly(false)).value(), 5u);
  EXPECT_EQ(RunBlocking(LengthOfMoveOnly(true)).code(), Code::kIoError);
}

Task<Status> TryTwice(Status first, bool* reached) {
  PARTITA_CO_TRY(first);
  *reached = true;
  co_return Status();
}

TEST(TaskTest, TryReturnsTheFirstFailure) {
  bool reached = false;
  EXPECT_EQ(RunBlocking(TryTwice(Status::NoSpace("full"), &reached)).code(), Code::kNoSpace);
  EXPECT_FALSE(reached);
  EXPECT_TRUE(RunBlocking(TryTwice(Status(), &reached)).ok());
  EXPECT_TRUE(reached);
}

TEST(TaskDeathTest, AwaitingAnEmptyTaskAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        int out;
        RunBlocking(Store(Task<int>(), &out));
      },
      "broken invariant");
}

}  // namespace
}  // namespace partita

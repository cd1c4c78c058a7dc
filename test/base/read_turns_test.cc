#include "engine/base/read_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "engine/base/task_group.h"
#include "test/base/test_executor.h"

// covers: F58: what is read at once has a bound.

namespace partita {
namespace {

constexpr uint64_t kBytesMax = 100;

class TurnClock final : public Clock {
 public:
  uint64_t WallTicks() override { return 0; }
  uint64_t MonotonicNanos() override { return now_ns.load(); }
  std::atomic<uint64_t> now_ns{1};
};

class ReadTurnsTest : public testing::Test {
 protected:
  // Takes a turn, and says when it has it by adding its number to `order`.
  Task<void> Read(uint64_t bytes, int number, Event* end) {
    const ReadTurns::Turn turn = co_await ReadTurns::Take(&turns_, bytes);
    order_.push_back(number);
    waited_ns_.push_back(turn.waited_ns());
    if (end != nullptr) co_await end->Wait();
  }
  // Runs what was posted so far.
  void Settle() {
    Event settled;
    TaskGroup group;
    group.Spawn(thread_, SetIt(&settled));
    RunBlocking(group.Join());
  }
  static Task<void> SetIt(Event* event) {
    event->Set();
    co_return;
  }

  TurnClock clock_;
  ReadTurns turns_{kBytesMax, clock_};
  TestThread thread_;
  // The executor's thread's.
  std::vector<int> order_;
  std::vector<uint64_t> waited_ns_;
};

TEST_F(ReadTurnsTest, ThoseThatFitGoTogetherAndTheNextWaitsInItsOrder) {
  Event first, second;
  TaskGroup group;
  group.Spawn(thread_, Read(60, 1, &first));
  group.Spawn(thread_, Read(40, 2, &second));
  group.Spawn(thread_, Read(30, 3, nullptr));
  group.Spawn(thread_, Read(1, 4, nullptr));  // It would fit before the third does.
  Settle();
  EXPECT_EQ(order_, (std::vector<int>{1, 2}));
  EXPECT_EQ(turns_.bytes_in_flight(), kBytesMax);
  clock_.now_ns += 500;
  second.Set();
  Settle();
  Settle();
  EXPECT_EQ(order_, (std::vector<int>{1, 2, 3, 4}));
  first.Set();
  RunBlocking(group.Join());
  EXPECT_EQ(waited_ns_, (std::vector<uint64_t>{0, 0, 500, 500}));
  EXPECT_EQ(turns_.bytes_in_flight(), 0u);
}

TEST_F(ReadTurnsTest, OneAboveTheBoundGoesAloneAndIsNotPassed) {
  Event first, large, last;
  TaskGroup group;
  group.Spawn(thread_, Read(1, 1, &first));
  group.Spawn(thread_, Read(5 * kBytesMax, 2, &large));
  group.Spawn(thread_, Read(1, 3, &last));
  Settle();
  EXPECT_EQ(order_, (std::vector<int>{1}));
  first.Set();
  Settle();
  Settle();
  EXPECT_EQ(order_, (std::vector<int>{1, 2}));
  EXPECT_EQ(turns_.bytes_in_flight(), 5 * kBytesMax);
  large.Set();
  last.Set();
  RunBlocking(group.Join());
  EXPECT_EQ(order_, (std::vector<int>{1, 2, 3}));
}

TEST_F(ReadTurnsTest, WithoutABoundNobodyWaits) {
  std::optional<ReadTurns::Turn> turn;
  const auto take = [](std::optional<ReadTurns::Turn>* out) -> Task<void> {
    out->emplace(co_await ReadTurns::Take(nullptr, UINT64_MAX));
  };
  RunBlocking(take(&turn));
  EXPECT_EQ(turn->waited_ns(), 0u);
}

struct Flood {
  ReadTurns* turns;
  std::atomic<uint64_t> in_flight{0};
  std::atomic<uint64_t> beyond{0};
  std::atomic<uint64_t> done{0};
};

Task<void> ReadMany(Flood* flood, int seed, int times) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (int i = 0; i < times; ++i) {
    const uint64_t bytes = 1 + random() % (random() % 10 == 0 ? 3 * kBytesMax : kBytesMax / 2);
    const ReadTurns::Turn turn = co_await ReadTurns::Take(flood->turns, bytes);
    const uint64_t all = flood->in_flight.fetch_add(bytes) + bytes;
    if (all > kBytesMax && all != bytes) flood->beyond.fetch_add(1);
    co_await Yield();
    flood->in_flight.fetch_sub(bytes);
    flood->done.fetch_add(1);
  }
}

// Blocked threads and tasks of two executors wait in one line; nobody is forgotten there.
TEST_F(ReadTurnsTest, ThreadsAndTasksTogetherStayWithinTheBound) {
  constexpr int kTimes = 3000;
  Flood flood{.turns = &turns_};
  TestThread other;
  TaskGroup group;
  for (int i = 0; i < 6; ++i) group.Spawn(i % 2 == 0 ? thread_ : other, ReadMany(&flood, i, kTimes));
  std::vector<std::thread> threads;
  for (int i = 6; i < 10; ++i)
    threads.emplace_back([&flood, i] { RunBlocking(ReadMany(&flood, i, kTimes)); });
  for (std::thread& thread : threads) thread.join();
  RunBlocking(group.Join());
  EXPECT_EQ(flood.done.load(), uint64_t{10} * kTimes);
  EXPECT_EQ(flood.beyond.load(), 0u);
  EXPECT_EQ(turns_.bytes_in_flight(), 0u);
}

}  // namespace
}  // namespace partita

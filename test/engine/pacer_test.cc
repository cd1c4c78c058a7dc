#include "engine/pacer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <thread>
#include <vector>

namespace partita {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kFullBudget = 100 * 1024;  // Of debt: 10 MB/s.
constexpr uint64_t kWall = 400'000;           // 2.6 MB/s.
constexpr uint64_t kServiceNanos = 30'000;    // Of a write that does not wait.

// Writers that each write again as soon as the last write was let through, on a clock of their own.
class Writers {
 public:
  explicit Writers(Pacer& pacer, Pacer::Walls walls = {}) : pacer_(pacer), walls_(walls) {}

  void Add(size_t count, uint64_t batch_bytes) {
    for (size_t i = 0; i < count; ++i) {
      events_.push({now_ns_, writers_.size()});
      writers_.push_back({.batch_bytes = batch_bytes, .turn = {}, .began_ns = 0});
    }
  }

  // `each` is called with the time and what was let through then.
  template <typename Each>
  void RunFor(uint64_t nanos, const Each& each) {
    const uint64_t end_ns = now_ns_ + nanos;
    while (events_.top().at_ns < end_ns) {
      const Event event = events_.top();
      events_.pop();
      now_ns_ = event.at_ns;
      Writer& writer = writers_[event.writer];
      if (!writer.waits) {
        writer.turn = {.all = {.left = writer.batch_bytes}};
        if (walls_.tail > 0) writer.turn.tail.left = writer.batch_bytes;
        writer.began_ns = now_ns_;
      }
      const uint64_t wait = pacer_.Look(&writer.turn, walls_, now_ns_);
      EXPECT_TRUE(wait == 0 || (wait >= PacingLine::kPieceNanos && wait <= PacingLine::kWaitNanosMax))
          << wait;
      writer.waits = wait > 0;
      if (!writer.waits) {
        passed_ += writer.batch_bytes;
        writer.longest_ns = std::max(writer.longest_ns, now_ns_ - writer.began_ns);
        each(now_ns_, writer.batch_bytes);
      }
      events_.push({now_ns_ + (wait > 0 ? wait : kServiceNanos), event.writer});
    }
    now_ns_ = end_ns;
  }
  double MegabytesPerSecond(uint64_t nanos) {
    passed_ = 0;
    RunFor(nanos, [](uint64_t, uint64_t) {});
    return static_cast<double>(passed_) * 1e3 / static_cast<double>(nanos);
  }
  uint64_t LongestNanos(size_t writer) const { return writers_[writer].longest_ns; }
  uint64_t now_ns() const { return now_ns_; }

 private:
  struct Writer {
    uint64_t batch_bytes;
    Pacer::Turn turn;
    uint64_t began_ns;
    bool waits = false;
    uint64_t longest_ns = 0;
  };
  struct Event {
    uint64_t at_ns;
    size_t writer;
    bool operator>(const Event& other) const { return at_ns > other.at_ns; }
  };
  Pacer& pacer_;
  const Pacer::Walls walls_;
  std::vector<Writer> writers_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t now_ns_ = kSecond;
  uint64_t passed_ = 0;
};

struct PacedLoad {
  size_t writers;
  uint64_t batch_bytes;
};
constexpr PacedLoad kLoads[] = {{1, 1024},      {16, 1024},   {256, 1024},
                                {16, 64 << 10}, {1, 4 << 20}, {8, 4 << 20}};

uint64_t LookOnce(Pacer* pacer, uint64_t bytes, uint64_t now_ns) {
  Pacer::Turn turn{.all = {.left = bytes}};
  return pacer->Look(&turn, {}, now_ns);
}

TEST(PacerTest, NothingIsAskedUpToHalfOfTheMemory) {
  Pacer pacer;
  pacer.SetMemory(0.5);
  EXPECT_FALSE(pacer.presses());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(LookOnce(&pacer, 1 << 20, kSecond), 0u);
}

// Else as many writers as there are would come through at that rate each.
TEST(PacerTest, DebtHoldsAllWritersTogetherToItsRate) {
  for (const PacedLoad& load : kLoads) {
    Pacer pacer;
    pacer.SetDebt(kFullBudget);
    Writers writers(pacer);
    writers.Add(load.writers, load.batch_bytes);
    const double rate = writers.MegabytesPerSecond(20 * kSecond);
    EXPECT_GT(rate, 7) << load.writers << " of " << load.batch_bytes;
    EXPECT_LT(rate, 11) << load.writers << " of " << load.batch_bytes;
  }
}

TEST(PacerTest, FullMemoryHoldsAllWritersTogetherToItsRate) {
  Pacer pacer;
  pacer.SetMemory(1);
  Writers writers(pacer);
  writers.Add(16, 1024);
  EXPECT_NEAR(writers.MegabytesPerSecond(kSecond), 40, 3);
}

TEST(PacerTest, WhatMemoryAsksForIsBesideWhatDebtAsksFor) {
  Pacer pacer;
  pacer.SetDebt(kFullBudget);
  Writers writers(pacer);
  writers.Add(16, 1024);
  pacer.SetMemory(1);
  EXPECT_NEAR(writers.MegabytesPerSecond(10 * kSecond), 8, 0.5);
  pacer.SetMemory(0.5);
  EXPECT_NEAR(writers.MegabytesPerSecond(10 * kSecond), 10, 0.5);
  pacer.SetMemory(1);
  pacer.SetDebt(0);
  EXPECT_NEAR(writers.MegabytesPerSecond(10 * kSecond), 40, 3);
}

TEST(PacerTest, AWallHoldsAllWritersTogetherToItsRate) {
  for (const Pacer::Walls walls : {Pacer::Walls{.memory = kWall}, Pacer::Walls{.tail = kWall}}) {
    for (const PacedLoad& load : kLoads) {
      Pacer pacer;
      Writers writers(pacer, walls);
      writers.Add(load.writers, load.batch_bytes);
      EXPECT_LT(writers.MegabytesPerSecond(40 * kSecond), 3) << load.writers << " of " << load.batch_bytes;
    }
  }
}

// Merges of 128 MB/s, six bytes of work for each that is admitted.
TEST(PacerTest, DebtRestsBelowItsBudgetHoweverManyWrite) {
  constexpr double kBudget = 8.0 * (64 << 20) * 6;
  for (const PacedLoad& load : kLoads) {
    Pacer pacer;
    Writers writers(pacer);
    writers.Add(load.writers, load.batch_bytes);
    double debt = kBudget / 2, debt_max = 0;
    uint64_t before_ns = writers.now_ns();
    writers.RunFor(20 * kSecond, [&](uint64_t now_ns, uint64_t bytes) {
      debt = std::max(0.0, debt - static_cast<double>(now_ns - before_ns) * 0.128);
      before_ns = now_ns;
      debt += static_cast<double>(bytes) * 6;
      debt_max = std::max(debt_max, debt);
      const double over_half = std::max(0.0, 2 * debt / kBudget - 1);
      pacer.SetDebt(static_cast<uint64_t>(over_half * kFullBudget));
    });
    EXPECT_LT(debt_max, kBudget) << load.writers << " of " << load.batch_bytes;
  }
}

TEST(PacerTest, NobodyPaysForABadMinuteThatIsOver) {
  Pacer pacer;
  pacer.SetDebt(kFullBudget);
  for (int i = 0; i < 1000; ++i) EXPECT_GT(LookOnce(&pacer, 4 << 20, kSecond), 0u);  // And each gives up.
  pacer.SetDebt(1);
  EXPECT_EQ(LookOnce(&pacer, 1024, kSecond), 0u);
}

TEST(PacerTest, WhoWaitsGoesOnOnceNothingIsBehind) {
  Pacer pacer;
  pacer.SetMemory(1);
  for (int i = 0; i < 100; ++i) EXPECT_GT(LookOnce(&pacer, 16 << 10, kSecond), 0u);  // 40 ms.
  Pacer::Turn turn{.all = {.left = 100u << 20}};
  EXPECT_EQ(pacer.Look(&turn, {}, kSecond), PacingLine::kWaitNanosMax) << "no wait is longer";
  EXPECT_TRUE(turn.stands());
  pacer.SetMemory(0.5);
  EXPECT_EQ(pacer.Look(&turn, {}, kSecond), 0u);
  pacer.SetMemory(1);
  EXPECT_EQ(LookOnce(&pacer, 1, kSecond), 0u);
}

TEST(PacerTest, ASmallWriteStandsBehindAPartOfALargeOneOnly) {
  Pacer pacer;
  pacer.SetDebt(kFullBudget);
  Writers writers(pacer);
  writers.Add(8, 4 << 20);
  writers.Add(1, 1024);
  (void)writers.MegabytesPerSecond(10 * kSecond);
  EXPECT_LT(writers.LongestNanos(8), kSecond / 50);
}

TEST(PacerTest, WhatNobodyUsesIsNotSavedUp) {
  Pacer pacer;
  pacer.SetDebt(kFullBudget);
  EXPECT_GT(LookOnce(&pacer, 4096, kSecond), 0u);
  EXPECT_GT(LookOnce(&pacer, 4096, 1000 * kSecond), 0u);
}

TEST(PacerTest, NobodySleepsForLessThanAPiece) {
  constexpr uint64_t kCost = PacingLine::kPieceNanos * 2 / 3;
  Pacer pacer;
  pacer.SetDebt(kCost);
  EXPECT_EQ(LookOnce(&pacer, 1024, kSecond), 0u);
  EXPECT_EQ(LookOnce(&pacer, 1024, kSecond), 2 * kCost);
}

TEST(PacerTest, NobodyWaitsOnceItIsStopped) {
  Pacer pacer;
  pacer.SetMemory(1);
  pacer.SetDebt(kFullBudget);
  Pacer::Turn turn{.all = {.left = 4 << 20}};
  EXPECT_GT(pacer.Look(&turn, {}, kSecond), 0u);
  pacer.Stop();
  EXPECT_EQ(pacer.Look(&turn, {}, kSecond), 0u);
}

TEST(PacerTest, AWallAsksNothingFarFromItAndMuchNearIt) {
  EXPECT_EQ(Pacer::WallNanosPerKib(0.5, 0.5), 0u);
  EXPECT_EQ(Pacer::WallNanosPerKib(0.75, 0.5), 25'000u);
  EXPECT_EQ(Pacer::WallNanosPerKib(1, 0.5), 400'000u);
  EXPECT_EQ(Pacer::WallNanosPerKib(9, 0.5), 400'000u);
}

TEST(PacerThreadsTest, EachByteEntersOnce) {
  constexpr uint64_t kThreads = 4, kWrites = 200'000, kNanosOfAll = kThreads * kWrites * kFullBudget;
  Pacer pacer;
  pacer.SetDebt(kFullBudget);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&pacer] {
      for (uint64_t i = 0; i < kWrites; ++i) (void)LookOnce(&pacer, 1024, kSecond);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(LookOnce(&pacer, 1, kSecond + kNanosOfAll - 2 * PacingLine::kPieceNanos), 0u);
  EXPECT_EQ(LookOnce(&pacer, 1, kSecond + kNanosOfAll), 0u);
}

}  // namespace
}  // namespace partita

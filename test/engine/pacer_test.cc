#include "engine/pacer.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace partita {
namespace {

// With all memory used a KiB takes 25 us.
constexpr uint64_t kNanosPerKib = 25'000;

TEST(PacerTest, NothingIsOwedUpToHalfOfTheMemory) {
  Pacer pacer;
  pacer.SetPressure(0.5, 0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(pacer.Charge(1 << 20), 0u);
}

TEST(PacerTest, WhatIsOwedIsPaidInPiecesOfSomeLength) {
  Pacer pacer;
  pacer.SetPressure(1, 0);
  uint64_t paid = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t wait = pacer.Charge(1024);
    EXPECT_TRUE(wait == 0 || (wait >= Pacer::kPieceNanos && wait <= Pacer::kWaitNanosMax)) << wait;
    paid += wait;
  }
  EXPECT_LE(paid, 1000 * kNanosPerKib);
  EXPECT_GT(paid + Pacer::kPieceNanos, 1000 * kNanosPerKib);
  EXPECT_EQ(pacer.Charge(100 << 20), Pacer::kWaitNanosMax) << "no wait is longer";
}

TEST(PacerTest, WhatWasOwedIsForgottenOnceNothingIsBehind) {
  Pacer pacer;
  pacer.SetPressure(1, 0);
  EXPECT_EQ(pacer.Charge(100 << 20), Pacer::kWaitNanosMax);  // Of 2.5 s.
  pacer.SetPressure(0.5, 0);
  pacer.SetPressure(1, 0);
  EXPECT_EQ(pacer.Charge(1), 0u);
}

TEST(PacerTest, AWallAsksNothingFarFromItAndMuchNearIt) {
  EXPECT_EQ(Pacer::WallNanosPerKib(0.5, 0.5), 0u);
  EXPECT_EQ(Pacer::WallNanosPerKib(0.75, 0.5), 25'000u);
  EXPECT_EQ(Pacer::WallNanosPerKib(1, 0.5), 400'000u);
  EXPECT_EQ(Pacer::WallNanosPerKib(9, 0.5), 400'000u);
}

// Else as many writers as there are would come through at that rate each.
TEST(PacerTest, AtAWallOneWriterWaitsBehindTheOther) {
  constexpr uint64_t kNow = 1'000'000'000, kAsked = 400'000;
  Pacer pacer;
  for (uint64_t writer = 1; writer <= 3; ++writer) {
    EXPECT_EQ(pacer.ChargeWall(1024, kAsked, kNow), writer * kAsked);
  }
  EXPECT_EQ(pacer.ChargeWall(1024, kAsked, kNow + 2 * kAsked), 2 * kAsked);
  EXPECT_EQ(pacer.total_us(), 8 * kAsked / 1000);
}

TEST(PacerTest, NothingIsOwedAtAWallForLongerThanOneWait) {
  constexpr uint64_t kNow = 1'000'000'000;
  Pacer pacer;
  EXPECT_EQ(pacer.ChargeWall(100u << 20, 400'000, kNow), Pacer::kWaitNanosMax);
  EXPECT_EQ(pacer.ChargeWall(1, 1, kNow + Pacer::kWaitNanosMax), 0u);
}

TEST(PacerTest, AtAWallNobodySleepsForLessThanAPiece) {
  constexpr uint64_t kNow = 1'000'000'000, kCost = Pacer::kPieceNanos * 2 / 3;
  Pacer pacer;
  EXPECT_EQ(pacer.ChargeWall(1024, kCost, kNow), 0u);
  EXPECT_EQ(pacer.ChargeWall(1024, kCost, kNow), 2 * kCost);
}

// Two that paid the same piece would leave less than nothing owed, which is a great deal: from then on each
// write waited 20 ms until there was no pressure at all.
TEST(PacerThreadsTest, NobodyPaysWhatAnotherHasPaid) {
  constexpr int kThreads = 4, kWrites = 2'000'000;
  Pacer pacer;
  pacer.SetPressure(1, 0);
  std::vector<uint64_t> paid(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kWrites; ++i) paid[static_cast<size_t>(t)] += pacer.Charge(1024);
    });
  }
  uint64_t sum = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads[static_cast<size_t>(t)].join();
    sum += paid[static_cast<size_t>(t)];
  }
  const uint64_t owed = uint64_t{kThreads} * kWrites * kNanosPerKib;
  EXPECT_LE(sum, owed);
  EXPECT_GT(sum + Pacer::kPieceNanos, owed);
}

}  // namespace
}  // namespace partita

#include "engine/io/write_hold.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/base/task_group.h"
#include "engine/io/local_object_store.h"
#include "engine/io/sim_runtime.h"

namespace partita {
namespace {

// How long an object takes to write beside a hold, which `release_ns` later ends; 0: by itself.
Task<void> WriteHeld(SimRuntime& runtime, uint64_t release_ns, uint64_t* took_ns) {
  WriteHold hold(runtime.clock());
  auto store = co_await LocalObjectStore::Open(runtime.files(), IfMissing::kCreate,
                                               &runtime.background(BackgroundClass::kTransfer), &hold);
  auto writer = co_await (*store)->Create(ObjectId(1));
  const uint64_t begun = runtime.clock().MonotonicNanos();
  WriteHold::Guard held = hold.Begin();
  TaskGroup beside;
  const auto release = [](WriteHold::Guard* guard, uint64_t after_ns) -> Task<void> {
    co_await SleepFor(after_ns);
    guard->End();
  };
  if (release_ns > 0) {
    beside.Spawn(runtime.background(BackgroundClass::kOrdinary), release(&held, release_ns));
  }
  EXPECT_TRUE((co_await (*writer)->Append(std::string(600'000, 'x'))).ok());
  EXPECT_TRUE((co_await (*writer)->Finish()).ok());
  *took_ns = runtime.clock().MonotonicNanos() - begun;
  co_await beside.Join();
  EXPECT_EQ((co_await (*store)->List()).value().size(), 1u);
}

TEST(WriteHoldTest, WhatIsWrittenWaitsForTheEndOfAHoldAndForNoneThatDoesNotEnd) {
  const auto took = [](uint64_t release_ns) {
    SimDisk disk(1);
    SimRuntime runtime({.seed = 1}, disk);
    uint64_t took_ns = 0;
    runtime.Run(WriteHeld(runtime, release_ns, &took_ns));
    return took_ns;
  };
  const uint64_t shortly = took(3'000'000), never = took(0);
  EXPECT_GE(shortly, 3'000'000u);
  EXPECT_LT(shortly, WriteHold::kNanosMax);
  EXPECT_GE(never, WriteHold::kNanosMax);
  EXPECT_LT(never, 2 * WriteHold::kNanosMax);
}

Task<void> PassBesideRenewedHolds(SimRuntime& runtime, uint64_t* took_ns) {
  WriteHold hold(runtime.clock());
  WriteHold::Guard held = hold.Begin();
  const auto renew = [](WriteHold* hold, WriteHold::Guard* guard) -> Task<void> {
    for (int i = 0; i < 40; ++i) {
      co_await SleepFor(5'000'000);
      *guard = hold->Begin();
    }
  };
  TaskGroup beside;
  beside.Spawn(runtime.background(BackgroundClass::kOrdinary), renew(&hold, &held));
  const uint64_t begun = runtime.clock().MonotonicNanos();
  co_await hold.Pass();
  *took_ns = runtime.clock().MonotonicNanos() - begun;
  co_await beside.Join();
}

TEST(WriteHoldTest, HoldsThatFollowEachOtherKeepNobodyForLonger) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  uint64_t took_ns = 0;
  runtime.Run(PassBesideRenewedHolds(runtime, &took_ns));
  EXPECT_GE(took_ns, WriteHold::kNanosMax);  // That a later one begins ends no hold.
  EXPECT_LT(took_ns, WriteHold::kNanosMax + 5'000'000);
}

}  // namespace
}  // namespace partita

#include "engine/base/timed_waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engine/base/clock.h"
#include "engine/io/sim_runtime.h"
#include "test/base/test_executor.h"

// covers: F26 F62: who waits for a read is answered at the deadline; the read keeps what it writes to.

namespace partita {
namespace {

constexpr uint64_t kDeadline = 30 * kNanosPerSecond;

// Is over when the test says so.
class HeldRead final : public Overlapped {
 public:
  void Finish() { go_.Set(); }
  int performed() const { return performed_; }

 private:
  Task<Status> Perform() override {
    ++performed_;
    co_await go_.Wait();
    co_return Status::IoError("as it came out");
  }

  Event go_;
  std::atomic<int> performed_{0};
};

// The same place for all that are of the same number.
TimedWaits::Place PlaceOf(uint64_t number) { return {ObjectId(7), number << 12, (number + 1) << 12}; }

Task<void> ArriveInto(TimedWaits* waits, std::shared_ptr<Overlapped> read, TimedWaits::Place place,
                      uint64_t bytes, std::optional<Code>* out) {
  const Status status = co_await waits->Arrive(std::move(read), place, bytes);
  *out = status.code();
}

// As ArriveInto, of a task: what it uses is its own.
Task<Status> Await(std::shared_ptr<HeldRead> read) { co_return co_await read->Arrive(); }
Task<void> AwaitInTime(TimedWaits* waits, std::shared_ptr<HeldRead> read, TimedWaits::Place place,
                       std::optional<Code>* out) {
  const Status status = co_await TimedWaits::InTime(waits, Await(std::move(read)), place, 4096);
  *out = status.code();
}

// A worker whose clock the test moves, and that tells how often it was asked.
class LeapingThread final : public TestThread {
 public:
  uint64_t MonotonicNanos() override {
    looks_.fetch_add(1);
    return now_ns_.fetch_add(1000);
  }
  void Leap(uint64_t nanos) { now_ns_.fetch_add(nanos); }
  void AwaitLooks(uint64_t more) {
    const uint64_t from = looks_.load();
    while (looks_.load() < from + more) std::this_thread::yield();
  }

 private:
  std::atomic<uint64_t> looks_{0}, now_ns_{kNanosPerSecond};
};

class TimedWaitsTest : public testing::Test {
 protected:
  void TearDown() override { runtime_.Run(waits_.Join()); }

  // Waits for it on an executor; the answer comes in the last of `answers_`.
  void Begin(std::shared_ptr<Overlapped> read, TimedWaits::Place place, uint64_t bytes = 4096) {
    answers_.push_back(std::make_unique<std::optional<Code>>());
    runtime_.Spawn(ArriveInto(&waits_, std::move(read), place, bytes, answers_.back().get()));
    runtime_.AdvanceTime(kNanosPerSecond / 1000);
  }
  void Begin(std::shared_ptr<Overlapped> read) { Begin(std::move(read), PlaceOf(1000 + answers_.size())); }
  std::optional<Code> answer() const { return *answers_.back(); }

  SimDisk disk_{1};
  SimRuntime runtime_{{.seed = 1, .shards = 1}, disk_};
  TimedWaits waits_{runtime_.shard_executor(ShardId(0)), kDeadline};
  std::vector<std::unique_ptr<std::optional<Code>>> answers_;
};

TEST_F(TimedWaitsTest, GivesWhatCameInTime) {
  auto read = std::make_shared<HeldRead>();
  Begin(read);
  runtime_.AdvanceTime(kDeadline - kNanosPerSecond);
  EXPECT_FALSE(answer());
  read->Finish();
  runtime_.RunUntilIdle();
  EXPECT_EQ(answer(), Code::kIoError);
  Begin(read);  // It is over already.
  EXPECT_EQ(answer(), Code::kIoError);
  EXPECT_EQ(read->performed(), 1);
  EXPECT_EQ(waits_.overdue_total(), 0u);
}

TEST_F(TimedWaitsTest, AnswersAtTheDeadlineAndKeepsTheReadUntilItIsOver) {
  auto read = std::make_shared<HeldRead>();
  HeldRead* const held = read.get();
  const std::weak_ptr<HeldRead> alive = read;
  Begin(std::move(read));
  runtime_.AdvanceTime(kDeadline - kNanosPerSecond / 1000);
  EXPECT_FALSE(answer());
  runtime_.AdvanceTime(kNanosPerSecond / 20);
  EXPECT_EQ(answer(), Code::kDeadlineExceeded);
  EXPECT_EQ(waits_.overdue(), 1u);
  runtime_.AdvanceTime(kDeadline);
  ASSERT_FALSE(alive.expired());

  held->Finish();
  runtime_.RunUntilIdle();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(answer(), Code::kDeadlineExceeded);
  EXPECT_EQ(waits_.overdue(), 0u);
  EXPECT_EQ(waits_.overdue_total(), 1u);
}

TEST_F(TimedWaitsTest, EachHasItsOwnDeadline) {
  auto first = std::make_shared<HeldRead>();
  auto second = std::make_shared<HeldRead>();
  auto third = std::make_shared<HeldRead>();
  Begin(first);
  runtime_.AdvanceTime(kDeadline / 2);
  Begin(second);
  Begin(third);
  third->Finish();
  runtime_.AdvanceTime(kDeadline * 3 / 4);
  EXPECT_EQ(*answers_[0], Code::kDeadlineExceeded);
  EXPECT_FALSE(*answers_[1]);
  EXPECT_EQ(*answers_[2], Code::kIoError);
  runtime_.AdvanceTime(kDeadline / 2);
  EXPECT_EQ(*answers_[1], Code::kDeadlineExceeded);
  EXPECT_EQ(waits_.overdue(), 2u);
  first->Finish();
  second->Finish();
}

TEST_F(TimedWaitsTest, TheSameReadIsNotBegunAgainWhileOneIsOverdue) {
  auto read = std::make_shared<HeldRead>();
  Begin(read, PlaceOf(1));
  runtime_.AdvanceTime(kDeadline + kNanosPerSecond);
  auto same = std::make_shared<HeldRead>();
  Begin(same, PlaceOf(1));
  EXPECT_EQ(answer(), Code::kDeadlineExceeded);
  EXPECT_EQ(same->performed(), 0);
  auto other = std::make_shared<HeldRead>();
  Begin(other, PlaceOf(2));
  EXPECT_EQ(other->performed(), 1);
  other->Finish();
  read->Finish();
  runtime_.RunUntilIdle();
  EXPECT_EQ(answer(), Code::kIoError);

  Begin(same, PlaceOf(1));
  EXPECT_EQ(same->performed(), 1);
  same->Finish();
  runtime_.RunUntilIdle();
  EXPECT_EQ(answer(), Code::kIoError);
  EXPECT_EQ(waits_.overdue_total(), 1u);
}

TEST_F(TimedWaitsTest, BeginsNothingMoreWhileTooMuchIsNotOver) {
  std::vector<std::shared_ptr<HeldRead>> reads;
  constexpr uint64_t kEach = TimedWaits::kOverdueBytesMax / 200;
  for (uint64_t i = 0; i < 201; ++i) {  // More than places are known of.
    reads.push_back(std::make_shared<HeldRead>());
    Begin(reads.back(), PlaceOf(i), kEach);
  }
  runtime_.AdvanceTime(kDeadline + kNanosPerSecond);
  EXPECT_EQ(waits_.overdue(), 201u);
  auto more = std::make_shared<HeldRead>();
  Begin(more);
  EXPECT_EQ(answer(), Code::kDeadlineExceeded);
  EXPECT_EQ(more->performed(), 0);

  for (const auto& read : reads) read->Finish();
  runtime_.RunUntilIdle();
  EXPECT_EQ(waits_.overdue(), 0u);
  for (uint64_t i = 0; i < 201; ++i) {  // All are begun again.
    auto again = std::make_shared<HeldRead>();
    again->Finish();
    Begin(again, PlaceOf(i), kEach);
    ASSERT_EQ(answer(), Code::kIoError) << i;
  }
}

// A read that somebody began ahead, and that has come, is used.
TEST_F(TimedWaitsTest, WhatIsThereIsGivenWhileAnotherIsOverdue) {
  auto read = std::make_shared<HeldRead>();
  Begin(read, PlaceOf(1));
  auto ahead = std::make_shared<HeldRead>();
  ahead->Finish();
  Begin(ahead, PlaceOf(1));
  EXPECT_EQ(answer(), Code::kIoError);
  runtime_.AdvanceTime(kDeadline + kNanosPerSecond);
  Begin(ahead, PlaceOf(1));
  EXPECT_EQ(answer(), Code::kIoError);
  read->Finish();
}

TEST_F(TimedWaitsTest, ATaskIsAnsweredAtTheDeadlineAndGoesOnToItsEnd) {
  auto read = std::make_shared<HeldRead>();
  HeldRead* const held = read.get();
  const std::weak_ptr<HeldRead> alive = read;
  std::optional<Code> code, refused, unwatched, quick;
  runtime_.Spawn(AwaitInTime(&waits_, std::move(read), PlaceOf(1), &code));
  auto waited_for = std::make_shared<HeldRead>();
  runtime_.Spawn(AwaitInTime(nullptr, waited_for, PlaceOf(2), &unwatched));
  auto done = std::make_shared<HeldRead>();
  done->Finish();
  runtime_.Spawn(AwaitInTime(&waits_, done, PlaceOf(3), &quick));
  runtime_.AdvanceTime(kDeadline - kNanosPerSecond / 1000);
  EXPECT_FALSE(code);
  EXPECT_EQ(quick, Code::kIoError);
  runtime_.AdvanceTime(kNanosPerSecond / 10);
  EXPECT_EQ(code, Code::kDeadlineExceeded);
  EXPECT_FALSE(unwatched);
  EXPECT_EQ(waits_.overdue(), 1u);
  ASSERT_FALSE(alive.expired());
  runtime_.Spawn(AwaitInTime(&waits_, std::make_shared<HeldRead>(), PlaceOf(1), &refused));
  runtime_.AdvanceTime(kNanosPerSecond / 1000);
  EXPECT_EQ(refused, Code::kDeadlineExceeded);

  held->Finish();
  waited_for->Finish();
  runtime_.RunUntilIdle();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(code, Code::kDeadlineExceeded);
  EXPECT_EQ(unwatched, Code::kIoError);
  EXPECT_EQ(waits_.overdue(), 0u);
  EXPECT_EQ(waits_.overdue_total(), 1u);
}

// Blocking mode: the thread that performs a read itself comes back when that is over, and knows that it was
// late; one that waits for another thread comes back at the deadline.
TEST(TimedWaitsThreadsTest, AThreadThatDoesNotReadItselfIsAnsweredAtTheDeadline) {
  TestThread worker, helper;
  TimedWaits waits(worker, kNanosPerSecond / 100);
  TimedWaits patient(worker, kDeadline);
  auto quick = std::make_shared<HeldRead>();
  quick->Finish();
  EXPECT_EQ(RunBlocking(patient.Arrive(quick, PlaceOf(1), 4096)).code(), Code::kIoError);
  RunBlocking(patient.Join());

  auto own = std::make_shared<HeldRead>();
  std::thread finisher([&] {
    while (waits.overdue() == 0) std::this_thread::yield();
    own->Finish();
  });
  EXPECT_EQ(RunBlocking(waits.Arrive(own, PlaceOf(1), 4096)).code(), Code::kDeadlineExceeded);
  finisher.join();
  EXPECT_EQ(waits.overdue(), 0u);
  EXPECT_EQ(waits.overdue_total(), 1u);

  auto read = std::make_shared<HeldRead>();
  TaskGroup helped;
  Overlapped::Start(helped, helper, read);
  while (read->performed() == 0) std::this_thread::yield();
  EXPECT_EQ(RunBlocking(waits.Arrive(read, PlaceOf(1), 4096)).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(waits.overdue(), 1u);
  read->Finish();
  RunBlocking(waits.Join());
  RunBlocking(helped.Join());
  EXPECT_EQ(waits.overdue(), 0u);
}

// A process that was stopped finds its reads still in time: the clock leapt, and nobody looked meanwhile.
TEST(TimedWaitsThreadsTest, TimeInWhichNobodyWatchedDoesNotCount) {
  LeapingThread worker;
  TimedWaits waits(worker, kDeadline);
  auto read = std::make_shared<HeldRead>();
  TaskGroup helped;
  TestThread helper;
  Overlapped::Start(helped, helper, read);
  while (read->performed() == 0) std::this_thread::yield();
  std::thread finisher([&] {
    worker.AwaitLooks(6);
    worker.Leap(10 * kDeadline);
    worker.AwaitLooks(6);
    read->Finish();
  });
  EXPECT_EQ(RunBlocking(waits.Arrive(read, PlaceOf(1), 4096)).code(), Code::kIoError);
  finisher.join();
  RunBlocking(waits.Join());
  RunBlocking(helped.Join());
}

// Reads that end at the moment of their deadline: each wait has one answer, and nothing is forgotten.
template <typename Wait>
void EndReadsAtTheDeadline(TimedWaits* waits, Wait wait) {
  TestThread helper;
  TaskGroup helped;
  uint64_t in_time = 0, late = 0;
  // On a slow machine few may be in time, or late.
  constexpr uint64_t kRoundsMax = 20'000;
  for (uint64_t round = 0; round < 400 || (std::min(in_time, late) < 10 && round < kRoundsMax); ++round) {
    auto read = std::make_shared<HeldRead>();
    Overlapped::Start(helped, helper, read);
    while (read->performed() == 0) std::this_thread::yield();
    std::thread finisher([&read, round] {
      std::this_thread::sleep_for(std::chrono::microseconds(round % 400));
      read->Finish();
    });
    const Code code = wait(read, PlaceOf(round));
    (code == Code::kDeadlineExceeded ? late : in_time) += 1;
    finisher.join();
  }
  RunBlocking(waits->Join());
  RunBlocking(helped.Join());
  EXPECT_GE(std::min(in_time, late), 10u);
  EXPECT_EQ(waits->overdue_total(), late);
  EXPECT_EQ(waits->overdue(), 0u);
}

TEST(TimedWaitsThreadsTest, WhatEndsAtTheDeadlineHasOneAnswer) {
  TestThread worker;
  TimedWaits waits(worker, 100'000);
  EndReadsAtTheDeadline(&waits, [&](std::shared_ptr<HeldRead> read, TimedWaits::Place place) {
    return RunBlocking(waits.Arrive(std::move(read), place, 4096)).code();
  });
}

// The same where the one who waits, who watches and who ends it are three threads.
template <typename Begin>
void EndReadsOfAWorkerAtTheDeadline(Begin begin) {
  TestThread worker, other;
  TimedWaits waits(worker, 100'000);
  EndReadsAtTheDeadline(&waits, [&](std::shared_ptr<HeldRead> read, TimedWaits::Place place) {
    std::optional<Code> code;
    TaskGroup waiting;
    waiting.Spawn(other, begin(&waits, std::move(read), place, &code));
    RunBlocking(waiting.Join());
    return *code;
  });
}

TEST(TimedWaitsThreadsTest, WhatEndsAtTheDeadlineHasOneAnswerOnAWorker) {
  EndReadsOfAWorkerAtTheDeadline(
      [](TimedWaits* waits, std::shared_ptr<HeldRead> read, TimedWaits::Place place,
         std::optional<Code>* code) { return ArriveInto(waits, std::move(read), place, 4096, code); });
}

TEST(TimedWaitsThreadsTest, ATaskThatEndsAtTheDeadlineHasOneAnswer) {
  EndReadsOfAWorkerAtTheDeadline(AwaitInTime);
}

}  // namespace
}  // namespace partita

#include "engine/base/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "engine/base/task_group.h"
#include "test/base/test_executor.h"

namespace partita {
namespace {

Task<void> WaitAndCount(Event& event, std::atomic<int>& count) {
  co_await event.Wait();
  count.fetch_add(1);
}

TEST(EventTest, ASetEventLetsEveryoneThrough) {
  Event event;
  EXPECT_FALSE(event.is_set());
  event.Set();
  event.Set();
  EXPECT_TRUE(event.is_set());
  std::atomic<int> count{0};
  RunBlocking(WaitAndCount(event, count));
  EXPECT_EQ(count, 1);
}

TEST(EventTest, SetWakesBlockedThreadsAndSuspendedTasks) {
  for (int round = 0; round < 50; ++round) {
    TestThread executor;
    Event event;
    std::atomic<int> count{0};
    TaskGroup group;
    for (int i = 0; i < 3; ++i) group.Spawn(executor, WaitAndCount(event, count));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { RunBlocking(WaitAndCount(event, count)); });
    event.Set();
    for (std::thread& thread : threads) thread.join();
    RunBlocking(group.Join());
    EXPECT_EQ(count, 6);
  }
}

// One thread wakes the other at any moment of its falling asleep. With a release store in Wake() this hung
// within some 100,000 rounds: the sleeper was not counted yet when the waker looked, the store not yet to be
// seen.
TEST(EventTest, NoWakeIsLost) {
  constexpr uint64_t kRounds = 100'000;
  constexpr int kSpins = 100;
  std::atomic<Waiter*> box{nullptr}, asleep{nullptr};
  std::atomic<uint64_t> rounds{0};
  std::thread waker([&] {
    std::mt19937_64 random(1);
    while (rounds < kRounds) {
      Waiter* waiter = box.exchange(nullptr);
      if (waiter == nullptr) continue;
      for (uint64_t i = random() % 1000; i > 0; --i) __builtin_ia32_pause();
      waiter->Wake();
    }
  });
  std::thread sleeper([&] {
    while (rounds < kRounds) {
      Waiter waiter;
      asleep = &waiter;
      box = &waiter;
      waiter.BlockUntilWoken(kSpins);
      asleep = nullptr;
      ++rounds;
    }
  });
  uint64_t seen = 0;
  int still = 0;
  while (rounds < kRounds && still < 100) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    still = rounds == seen ? still + 1 : 0;
    seen = rounds;
  }
  EXPECT_GE(rounds, kRounds) << "asleep for 10 s though it was woken";
  rounds.fetch_add(kRounds);  // Ends both.
  if (Waiter* stuck = asleep.load(); stuck != nullptr && still > 0) stuck->Wake();
  waker.join();
  sleeper.join();
}

TEST(EventTest, WhatWasWrittenBeforeSetIsSeenAfterWait) {
  TestThread executor;
  for (int round = 0; round < 300; ++round) {
    Event event;
    int plain = 0;  // ThreadSanitizer watches it.
    std::thread setter([&] {
      plain = round;
      event.Set();
    });
    std::atomic<int> count{0};
    RunBlocking(WaitAndCount(event, count));
    EXPECT_EQ(plain, round);
    setter.join();
  }
}

struct SetsEvent : Runnable {
  Event* event;
};

// The usual shape of a call to a worker: an event in the caller's frame, gone as soon as the caller
// goes on. Set must not touch it after that.
TEST(EventTest, AWaiterMayDestroyTheEventAsSoonAsItGoesOn) {
  TestThread executor;
  for (int round = 0; round < 5'000; ++round) {
    auto event = std::make_unique<Event>();
    SetsEvent work;
    work.event = event.get();
    work.run = [](Runnable* self) { static_cast<SetsEvent*>(self)->event->Set(); };
    executor.Post(&work);
    std::atomic<int> count{0};
    RunBlocking(WaitAndCount(*event, count));
    event.reset();
    ASSERT_EQ(count, 1);
  }
}

Task<void> WaitThenDestroy(std::unique_ptr<Event> event, std::atomic<int>& destroyed) {
  co_await event->Wait();
  event.reset();
  destroyed.fetch_add(1);
}

TEST(EventTest, ATaskMayDestroyTheEventAsSoonAsItGoesOn) {
  TestThread waits;
  TestThread sets;
  std::vector<SetsEvent> work(5'000);
  std::atomic<int> destroyed{0};
  TaskGroup group;
  for (SetsEvent& one : work) {
    auto event = std::make_unique<Event>();
    one.event = event.get();
    one.run = [](Runnable* self) { static_cast<SetsEvent*>(self)->event->Set(); };
    group.Spawn(waits, WaitThenDestroy(std::move(event), destroyed));
    sets.Post(&one);
  }
  RunBlocking(group.Join());
  EXPECT_EQ(destroyed, 5'000);
}

}  // namespace
}  // namespace partita

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

TEST(EventTest, AForgottenWaiterIsNotWokenAndTheOthersAre) {
  Event event;
  Waiter first, second, third;
  for (Waiter* waiter : {&first, &second, &third}) EXPECT_TRUE(event.Enqueue(waiter));
  EXPECT_TRUE(event.Forget(&second));
  EXPECT_FALSE(event.Forget(&second));
  event.Set();
  first.BlockUntilWoken();
  third.BlockUntilWoken();
  EXPECT_FALSE(event.Forget(&third));    // It was woken.
  EXPECT_FALSE(event.Enqueue(&second));  // The event is set.
}

// One thread wakes the other at any moment of its falling asleep, for two seconds. With a release store in
// Wake() a sleeper stayed asleep in one run of four (two quiet cores): it had not been counted yet when the
// waker looked, and the store could not be seen yet.
TEST(EventTest, NoWakeIsLost) {
  constexpr uint64_t kRounds = 2'000'000;
  constexpr int kSpins = 100;
  constexpr auto kTick = std::chrono::milliseconds(100);
  std::atomic<Waiter*> box{nullptr}, asleep{nullptr};
  std::atomic<uint64_t> rounds{0};
  std::atomic<bool> stop{false}, ended{false};
  std::thread waker([&] {
    std::mt19937_64 random(1);
    while (!ended) {
      Waiter* waiter = box.load(std::memory_order_acquire);
      if (waiter == nullptr) continue;
      for (uint64_t i = random() % 400; i > 0; --i) __builtin_ia32_pause();
      // Its line is the sleeper's, so this store takes a while, and those behind it wait for it.
      box.store(nullptr, std::memory_order_relaxed);
      waiter->Wake();
    }
  });
  std::thread sleeper([&] {
    while (!stop && rounds < kRounds) {
      Waiter waiter;
      asleep = &waiter;
      box = &waiter;
      waiter.BlockUntilWoken(kSpins);
      ++rounds;
    }
    ended = true;
  });
  for (int tick = 0; tick < 20 && !ended; ++tick) std::this_thread::sleep_for(kTick);
  stop = true;
  for (int tick = 0; tick < 100 && !ended; ++tick) std::this_thread::sleep_for(kTick);
  EXPECT_TRUE(ended) << "asleep for 10 s though it was woken, in round " << rounds;
  if (!ended) asleep.load()->Wake();
  sleeper.join();
  waker.join();
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

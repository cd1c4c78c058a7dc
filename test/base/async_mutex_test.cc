#include "engine/base/async_mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/base/task_group.h"
#include "test/base/test_executor.h"

namespace partita {
namespace {

Task<void> Increment(AsyncMutex& mutex, int& value, int times) {
  for (int i = 0; i < times; ++i) {
    auto guard = co_await mutex.Lock();
    const int read = value;
    co_await Yield();  // Held across an await.
    value = read + 1;
  }
}

TEST(AsyncMutexTest, BlockedThreadsAndTasksExcludeOneAnother) {
  AsyncMutex mutex;
  int value = 0;  // Plain: ThreadSanitizer watches it.
  TestThread a;
  TestThread b;
  TaskGroup group;
  for (int i = 0; i < 3; ++i) {
    group.Spawn(a, Increment(mutex, value, 500));
    group.Spawn(b, Increment(mutex, value, 500));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { RunBlocking(Increment(mutex, value, 500)); });
  for (std::thread& thread : threads) thread.join();
  RunBlocking(group.Join());
  EXPECT_EQ(value, 10 * 500);
}

Task<void> TakeAndNote(AsyncMutex& mutex, std::vector<int>& order, int number) {
  auto guard = co_await mutex.Lock();
  order.push_back(number);
}

Task<AsyncMutex::Guard> Take(AsyncMutex& mutex) { co_return co_await mutex.Lock(); }

TEST(AsyncMutexTest, ComesFirstServedFirst) {
  AsyncMutex mutex;
  std::vector<int> order;
  TestThread executor;
  TaskGroup group;
  auto held = RunBlocking(Take(mutex));
  for (int i = 0; i < 10; ++i) group.Spawn(executor, TakeAndNote(mutex, order, i));
  held.Release();
  RunBlocking(group.Join());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(AsyncMutexTest, AGuardReleasesOnceWhereverItWasMoved) {
  AsyncMutex mutex;
  auto first = RunBlocking(Take(mutex));
  AsyncMutex::Guard second = std::move(first);
  first.Release();  // Holds nothing any more.
  second = AsyncMutex::Guard();
  auto third = mutex.TryLock();
  EXPECT_TRUE(third.held());
  EXPECT_FALSE(mutex.TryLock().held());
  third.Release();
  third.Release();
  EXPECT_TRUE(mutex.TryLock().held());
}

}  // namespace
}  // namespace partita

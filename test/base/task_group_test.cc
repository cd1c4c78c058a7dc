#include "engine/base/task_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "test/base/test_executor.h"

namespace partita {
namespace {

Task<void> CountAfterYields(std::atomic<int>& count, int yields) {
  for (int i = 0; i < yields; ++i) co_await Yield();
  count.fetch_add(1);
}

TEST(TaskGroupTest, JoinEndsOnceAllTasksHaveEnded) {
  TestThread a;
  TestThread b;
  std::atomic<int> count{0};
  for (int round = 0; round < 500; ++round) {
    TaskGroup group;
    count = 0;
    for (int i = 0; i < 6; ++i) group.Spawn(i % 2 == 0 ? a : b, CountAfterYields(count, i));
    RunBlocking(group.Join());
    EXPECT_EQ(count, 6);
    EXPECT_EQ(group.running(), 0u);
  }  // Destroyed at once: the last task's thread must not touch the group any more.
}

TEST(TaskGroupTest, JoinOfAnEmptyGroupEndsAtOnce) {
  TaskGroup group;
  RunBlocking(group.Join());
  RunBlocking(group.Join());
  EXPECT_EQ(group.running(), 0u);
}

Task<void> SpawnAndJoin(Executor& executor, std::atomic<int>& count) {
  for (int round = 0; round < 200; ++round) {
    auto group = std::make_unique<TaskGroup>();
    for (int i = 0; i < 4; ++i) group->Spawn(executor, CountAfterYields(count, i));
    co_await group->Join();
    group.reset();
  }
}

TEST(TaskGroupTest, ATaskOnOneExecutorJoinsTasksOnAnother) {
  TestThread a;
  TestThread b;
  std::atomic<int> count{0};
  TaskGroup group;
  group.Spawn(a, SpawnAndJoin(b, count));
  RunBlocking(group.Join());
  EXPECT_EQ(count, 800);
}

TEST(TaskGroupTest, AGroupMayBeUsedAgainAfterJoin) {
  TestThread executor;
  std::atomic<int> count{0};
  TaskGroup group;
  for (int round = 1; round <= 100; ++round) {
    group.Spawn(executor, CountAfterYields(count, 1));
    RunBlocking(group.Join());
    EXPECT_EQ(count, round);
  }
}

struct NotesItsEnd {
  NotesItsEnd(std::atomic<int>* ended_in) : ended(ended_in) {}
  NotesItsEnd(NotesItsEnd&& other) noexcept : ended(std::exchange(other.ended, nullptr)) {}
  ~NotesItsEnd() {
    if (ended != nullptr) ended->fetch_add(1);
  }
  std::atomic<int>* ended;
};

Task<void> Hold(NotesItsEnd held) {
  co_await Yield();
  EXPECT_NE(held.ended, nullptr);
}

TEST(TaskGroupTest, ATasksFrameIsGoneBeforeJoinEnds) {
  TestThread executor;
  std::atomic<int> ended{0};
  for (int round = 1; round <= 500; ++round) {
    TaskGroup group;
    group.Spawn(executor, Hold(NotesItsEnd(&ended)));
    RunBlocking(group.Join());
    EXPECT_EQ(ended, round);
  }
}

}  // namespace
}  // namespace partita

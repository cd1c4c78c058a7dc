#include "api/http/buffer_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace partita::http {
namespace {

TEST(BufferBudgetTest, SetCountsWhatIsHeldAndTellsWhenItGrewTooFar) {
  BufferBudget budget(100);
  BufferShare first(&budget), second(&budget);
  EXPECT_TRUE(first.Set(60));
  EXPECT_FALSE(second.Set(50));
  EXPECT_EQ(budget.held(), 110u);
  EXPECT_TRUE(second.Set(45)) << "less than before is never too much";
  EXPECT_EQ(budget.held(), 105u);
}

TEST(BufferBudgetTest, TrySetTakesAllOrNothing) {
  BufferBudget budget(100);
  BufferShare first(&budget), second(&budget);
  EXPECT_TRUE(first.Set(60));
  EXPECT_FALSE(second.TrySet(41));
  EXPECT_EQ(budget.held(), 60u);
  EXPECT_TRUE(second.TrySet(40));
  EXPECT_EQ(second.bytes(), 40u);
  EXPECT_FALSE(second.TrySet(41));
  EXPECT_EQ(second.bytes(), 40u);
  EXPECT_TRUE(second.TrySet(10));
  EXPECT_EQ(budget.held(), 70u);
}

TEST(BufferBudgetTest, SharesGiveBackWhatTheyHeldWithThem) {
  BufferBudget budget(100);
  {
    BufferShare first(&budget);
    EXPECT_TRUE(first.Set(60));
    BufferShare moved(std::move(first));
    EXPECT_EQ(budget.held(), 60u);
    moved = BufferShare(&budget);
    EXPECT_EQ(budget.held(), 0u);
    EXPECT_TRUE(moved.Set(5));
  }
  EXPECT_EQ(budget.held(), 0u);
  BufferShare uncounted(nullptr);
  EXPECT_TRUE(uncounted.TrySet(UINT64_MAX));
}

TEST(BufferBudgetTest, TogetherTheyNeverTryMoreThanThereIs) {
  BufferBudget budget(100);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&budget] {
      BufferShare share(&budget);
      for (int round = 0; round < 20'000; ++round) {
        if (share.TrySet(40)) EXPECT_LE(budget.held(), 100u);
        share.Set(0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.held(), 0u);
}

}  // namespace
}  // namespace partita::http

#include "engine/base/memory_budget.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "engine/base/chunk_pool.h"

namespace partita {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGiB = size_t{1} << 30;

size_t Sum(const MemoryPlan& plan, size_t shards) {
  return plan.memtable_bytes + plan.cache_bytes + plan.compaction_bytes + plan.log_buffer_bytes * shards +
         plan.request_bytes;
}

TEST(MemoryBudgetTest, SharesOfAGibibyteForTwoShardsAreThese) {
  Result<MemoryPlan> plan = DeriveMemoryPlan(kGiB, 2);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->memtable_bytes, 320 * kMiB);
  EXPECT_EQ(plan->memtable_freeze_bytes, 40 * kMiB);
  EXPECT_EQ(plan->compaction_bytes, 128 * kMiB);
  EXPECT_EQ(plan->log_buffer_bytes, 8 * kMiB);
  EXPECT_EQ(plan->request_bytes, 64 * kMiB);
  EXPECT_EQ(plan->cache_bytes, 496 * kMiB);
  EXPECT_EQ(plan->fixed_bytes, 44 * kMiB);
}

TEST(MemoryBudgetTest, TheSharesAreTheBudgetWhateverItsSizeAndTheShards) {
  for (size_t budget : {64 * kMiB, 64 * kMiB + 12'345, 100 * kMiB, 777 * kMiB + 1, 3 * kGiB, 512 * kGiB}) {
    for (size_t shards : {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{64}}) {
      Result<MemoryPlan> plan = DeriveMemoryPlan(budget, shards);
      if (budget < shards * kMemoryBudgetPerShardMin) {
        EXPECT_FALSE(plan.ok());
        continue;
      }
      ASSERT_TRUE(plan.ok()) << plan.status().ToString();
      EXPECT_EQ(Sum(*plan, shards), budget);
      EXPECT_GE(plan->cache_bytes, budget / 3);
      EXPECT_EQ(plan->memtable_bytes % ChunkPool::kChunkSize, 0u);
      EXPECT_GE(plan->memtable_freeze_bytes, kMiB);
      EXPECT_LE(plan->memtable_freeze_bytes * shards * 4, plan->memtable_bytes);
      EXPECT_GE(plan->log_buffer_bytes, 2 * kMiB);
    }
  }
}

TEST(MemoryBudgetTest, WhatNothingElseCanFillIsTheCaches) {
  Result<MemoryPlan> plan = DeriveMemoryPlan(16 * kGiB, 2);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->memtable_bytes, 512 * kMiB);
  EXPECT_EQ(plan->memtable_freeze_bytes, 64 * kMiB);
  EXPECT_EQ(plan->compaction_bytes, 128 * kMiB);
  EXPECT_EQ(plan->request_bytes, 512 * kMiB);
  EXPECT_EQ(plan->cache_bytes, 15 * kGiB - 128 * kMiB - 2 * 8 * kMiB);
  // Many shards can fill it.
  EXPECT_EQ(DeriveMemoryPlan(16 * kGiB, 64)->memtable_bytes, 5 * kGiB);
}

TEST(MemoryBudgetTest, WhatTheHostTakesComesFromTheCacheAlone) {
  const Result<MemoryPlan> whole = DeriveMemoryPlan(256 * kMiB, 2);
  const Result<MemoryPlan> shared = DeriveMemoryPlan(256 * kMiB, 2, 32 * kMiB);
  ASSERT_TRUE(whole.ok() && shared.ok());
  MemoryPlan expected = *whole;
  expected.cache_bytes -= 32 * kMiB;
  EXPECT_EQ(*shared, expected);
  EXPECT_TRUE(DeriveMemoryPlan(64 * kMiB, 4, 16 * kMiB).ok());
  const Result<MemoryPlan> greedy = DeriveMemoryPlan(256 * kMiB, 2, 64 * kMiB + 1);
  EXPECT_EQ(greedy.code(), Code::kInvalidArgument);
  EXPECT_THAT(greedy.status().message(),
              HasSubstr("host_memory_bytes is 67108865; it must be at most a quarter"));
}

TEST(MemoryBudgetTest, TooLittleIsRefusedWithTheMinimumInTheMessage) {
  Result<MemoryPlan> plan = DeriveMemoryPlan(64 * kMiB - 1, 1);
  EXPECT_EQ(plan.code(), Code::kInvalidArgument);
  EXPECT_THAT(plan.status().message(), HasSubstr("(64 MiB) that 1 shard needs"));
  plan = DeriveMemoryPlan(100 * kMiB, 8);
  EXPECT_EQ(plan.code(), Code::kInvalidArgument);
  EXPECT_THAT(plan.status().message(), HasSubstr("(128 MiB) that 8 shards need"));
  EXPECT_FALSE(DeriveMemoryPlan(0, 1).ok());
  EXPECT_FALSE(DeriveMemoryPlan(kGiB, SIZE_MAX).ok());
}

}  // namespace
}  // namespace partita

// What a shard tells of what it cannot do, and goes on trying.
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "compaction/level_targets.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

class ShardTroubleTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, SmallStoreOptions(1)));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
    table_ = runtime_.RunToEnd(MakeRawTable(store_.get(), "rows"))->id;
  }
  void TearDown() override { EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok()); }

  Status Put() {
    const std::string key = EncodeUserKey(table_, "p", "r");
    std::string content;  // Does not compress.
    for (int i = 0; i < 200; ++i) content.push_back(static_cast<char>(i * i % 251));
    const WriteOp op{.user_key = key, .content = content};
    const WriteRequest request{
        .table = table_, .ops = std::span<const WriteOp>(&op, 1), .durability = DurabilityLevel::kPower};
    return runtime_.RunToEnd(store_->Write(request)).status;
  }
  // So many flushes of one row that they are merged when all is, and not before.
  void StackFlushes() {
    for (uint32_t flush = 0; flush < kLevel0DepthCalm; ++flush) {
      ASSERT_TRUE(Put().ok());
      ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
    }
    ASSERT_EQ(Statistics().compactions, 0u);
  }
  ShardStatistics Statistics() { return store_->Statistics().at(0); }

  SimDisk disk_{1};
  SimRuntime runtime_{{}, disk_};
  std::unique_ptr<Store> store_;
  TableId table_;
};

// covers: F22
TEST_F(ShardTroubleTest, WhatCannotBeFlushedIsToldUntilItCan) {
  for (const char* path : {"tables/", "meta/"}) {
    ASSERT_TRUE(Put().ok());
    EXPECT_TRUE(Statistics().flush_error.ok());
    const size_t fault = runtime_.AddFault({.operations = SimOps(SimOp::kFlush), .path_prefix = path});
    EXPECT_EQ(runtime_.RunToEnd(store_->FlushMemtables()).code(), Code::kIoError) << path;
    EXPECT_THAT(Statistics().flush_error.message(), testing::HasSubstr(path));
    EXPECT_TRUE(Put().ok()) << "there is room in memory";
    runtime_.RemoveFault(fault);
    runtime_.AdvanceTime(10 * kNanosPerSecond);
    EXPECT_TRUE(Statistics().flush_error.ok());
  }
  EXPECT_GT(Statistics().flushes_failed, 0u);
  EXPECT_GT(Statistics().saves_failed, 0u);
}

// covers: F22
TEST_F(ShardTroubleTest, WhatCannotBeMergedIsToldUntilItCan) {
  StackFlushes();
  EXPECT_EQ(Statistics().compactions_failed, 0u);
  const size_t fault = runtime_.AddFault({.operations = SimOps(SimOp::kFlush), .path_prefix = "tables/"});
  EXPECT_EQ(runtime_.RunToEnd(store_->CompactAll()).code(), Code::kIoError);
  runtime_.AdvanceTime(kNanosPerSecond / 10);
  EXPECT_THAT(Statistics().compaction_error.message(), testing::HasSubstr("tables/"));
  EXPECT_TRUE(Statistics().flush_error.ok());
  runtime_.RemoveFault(fault);
  EXPECT_TRUE(runtime_.RunToEnd(store_->CompactAll()).ok());
  EXPECT_GT(Statistics().compactions, 0u);
  EXPECT_TRUE(Statistics().compaction_error.ok());
  EXPECT_GT(Statistics().compactions_failed, 0u);
  EXPECT_EQ(Statistics().references_set_aside, 0u);
}

// A failure is none any more when what failed is not due.
TEST_F(ShardTroubleTest, WhatNeedNotBeMergedAnyMoreIsNotTold) {
  StackFlushes();
  runtime_.AddFault({.operations = SimOps(SimOp::kFlush), .path_prefix = "tables/"});
  EXPECT_EQ(runtime_.RunToEnd(store_->CompactAll()).code(), Code::kIoError);
  ASSERT_TRUE(runtime_.RunToEnd(store_->DeleteTable("acct", "rows")).ok());
  runtime_.AdvanceTime(10 * kNanosPerSecond);
  EXPECT_TRUE(Statistics().compaction_error.ok());
}

// covers: F46
TEST_F(ShardTroubleTest, WhatMergesLeaveOutIsToldAsLongAsItIsThere) {
  StackFlushes();
  disk_.FlipBit(disk_.ListFiles("tables/").front(), 100, 3);
  (void)runtime_.RunToEnd(store_->CompactAll());  // Ok where a merge in the background met it first.
  runtime_.AdvanceTime(10 * kNanosPerSecond);
  EXPECT_EQ(Statistics().references_set_aside, 1u);
  EXPECT_TRUE(Statistics().compaction_error.ok()) << "what is left is merged";
  EXPECT_GT(Statistics().compactions_failed, 0u);
  ASSERT_TRUE(runtime_.RunToEnd(store_->DeleteTable("acct", "rows")).ok());
  EXPECT_EQ(Statistics().references_set_aside, 0u);
}

// covers: F20 F21
TEST_F(ShardTroubleTest, AFenceIsCountedThoughItIsSoonLeft) {
  const size_t fault = runtime_.AddFault({.operations = SimOps(SimOp::kFlush), .path_prefix = "log-"});
  EXPECT_EQ(Put().code(), Code::kUnknown);
  runtime_.RemoveFault(fault);
  runtime_.AdvanceTime(10 * kNanosPerSecond);
  EXPECT_FALSE(Statistics().fenced);
  EXPECT_TRUE(Put().ok());
  EXPECT_EQ(Statistics().fences, 1u);
}

// covers: F65
TEST_F(ShardTroubleTest, TellsHowFarItsClockIsOff) {
  constexpr int64_t kHour = 3600 * static_cast<int64_t>(kTicksPerSecond);
  ASSERT_TRUE(Put().ok());
  EXPECT_EQ(Statistics().clock_ticks_ahead, 0);
  runtime_.StepWallClock(kHour);
  EXPECT_EQ(Statistics().clock_ticks_ahead, -kHour);
  runtime_.StepWallClock(-2 * kHour);
  EXPECT_EQ(Statistics().clock_ticks_ahead, kHour);
}

// covers: F65. All writes of its shard would have it from then on.
TEST_F(ShardTroubleTest, ATableThatIsMadeDoesNotAdoptAJumpOfTheClock) {
  constexpr int64_t kYear = 365 * 86'400 * static_cast<int64_t>(kTicksPerSecond);
  ASSERT_TRUE(Put().ok());
  runtime_.StepWallClock(kYear);
  const Result<TableDescriptor> made = runtime_.RunToEnd(MakeRawTable(store_.get(), "others"));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ(Statistics().clock_ticks_ahead, -kYear);
  runtime_.StepWallClock(-kYear);
  ASSERT_TRUE(Put().ok());
  EXPECT_EQ(Statistics().clock_ticks_ahead, 0);
}

}  // namespace
}  // namespace partita

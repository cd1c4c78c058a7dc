#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

// A table of 50 partitions of 20 rows on two shards, in virtual time.
class StoreLoadTest : public testing::Test {
 protected:
  StoreLoadTest() : disk_(5), runtime_({.seed = 5, .shards = 2}, disk_) {
    store_ = std::move(runtime_.RunToEnd(Store::Open(runtime_, SmallStoreOptions(2, 256u << 10)))).value();
    Store::TableSpec spec;
    spec.account = "acme";
    spec.name = "rows";
    spec.raw = true;
    spec.split_partitions = {"p25"};
    table_ = runtime_.RunToEnd(store_->CreateTable(spec))->id;
    // So slowly that each call is sampled, then and later.
    for (int i = 0; i < 1'000; ++i) {
      Put(i / 20, i % 20);
      if (i % 20 == 0) NextSecond();
    }
    NextSecond();
  }
  ~StoreLoadTest() override { EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok()); }

  std::string Key(int partition, int row) {
    return EncodeUserKey(table_, "p" + std::to_string(10 + partition), std::to_string(10 + row));
  }
  void Put(int partition, int row) {
    const std::string key = Key(partition, row);
    const WriteOp op{.user_key = key, .content = "value"};
    const WriteOutcome outcome = runtime_.RunToEnd(
        store_->Write({.table = table_, .ops = {&op, 1}, .durability = DurabilityLevel::kMemory}));
    EXPECT_TRUE(outcome.status.ok());
  }
  // The load of the second that ends, which begins anew.
  std::vector<RecentLoad::Partition> NextSecond() {
    runtime_.AdvanceTime(kNanosPerSecond - runtime_.clock().MonotonicNanos() % kNanosPerSecond);
    store_->CollectLoad();
    return store_->recent_load().PerSecond(runtime_.clock().RecentNanos(), 1);
  }
  Load LoadOf(int partition, const std::vector<RecentLoad::Partition>& loads) {
    const std::string prefix(PartitionPrefix(Key(partition, 0)));
    return RecentLoad::Sum(RecentLoad::Within(loads, prefix, PrefixSuccessor(prefix)));
  }

  SimDisk disk_;
  SimRuntime runtime_;
  std::unique_ptr<Store> store_;
  TableId table_;
};

TEST_F(StoreLoadTest, ReadsAreLoadOfTheirPartition) {
  std::string content;
  for (int i = 0; i < 10; ++i) store_->TryGet(Key(3, i), &content);
  for (int i = 0; i < 5; ++i) store_->TryGet(Key(30, i), &content);
  const auto loads = NextSecond();
  EXPECT_DOUBLE_EQ(LoadOf(3, loads).calls, 10);
  EXPECT_DOUBLE_EQ(LoadOf(30, loads).calls, 5);
  EXPECT_GT(LoadOf(3, loads).cpu_ns, 0);
  EXPECT_EQ(loads.size(), 2u);
}

TEST_F(StoreLoadTest, TheHistorysAxisIsCutBehindCalls) {
  for (int second = 0; second < 4; ++second) {
    runtime_.AdvanceTime(2 * LoadSampler::kCollectNanos);  // So that the worker is asked to collect.
    for (int i = 0; i < 50; ++i) Put(i, 0);
    NextSecond();
  }
  const auto picture = store_->heat_history().Read({.seconds = 2}, runtime_.clock().RecentNanos());
  EXPECT_GT(picture.axis.size(), 25u);
}

TEST_F(StoreLoadTest, ReadsOfFilesAndWritesAreToo) {
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  NextSecond();
  std::string content;
  EXPECT_TRUE(runtime_.RunToEnd(store_->Get(Key(4, 1), &content)).ok());
  Put(6, 1);
  Put(6, 2);
  const auto loads = NextSecond();
  EXPECT_DOUBLE_EQ(LoadOf(4, loads).calls, 1);
  EXPECT_DOUBLE_EQ(LoadOf(6, loads).rows, 2);
  EXPECT_GT(LoadOf(6, loads).bytes, 10);
}

TEST_F(StoreLoadTest, AScanIsLoadWhereItPasses) {
  for (const bool in_files : {false, true}) {
    if (in_files) ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
    NextSecond();
    ScanRequest request;
    request.lower = TableLowerBound(table_);
    request.upper = TableUpperBound(table_);
    ASSERT_EQ(runtime_.RunToEnd(store_->Scan(request, nullptr))->rows, 1'000u);
    const auto loads = NextSecond();
    const Load whole = RecentLoad::Sum(loads);
    EXPECT_NEAR(whole.rows, 1'000, 100);
    EXPECT_GT(whole.bytes, 10'000);
    EXPECT_GT(loads.size(), 10u);
    const Load left = RecentLoad::Sum(RecentLoad::Within(loads, "", Key(25, 0)));
    EXPECT_NEAR(left.rows, 500, 100);
  }
}

// Where a page's bounds do not tell the partition that it begins in, too.
TEST_F(StoreLoadTest, RefusedScansAreThrottledCallsOfThePartitionThatRefusedThem) {
  ASSERT_TRUE(store_->throttle().SetTargets({.partition_rate = 1, .account_rate = 0}).ok());
  std::string content;
  for (const int partition : {0, 49}) {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(runtime_.RunToEnd(store_->Get(Key(partition, i), &content)).ok());
  }
  const auto is_refused = [&](std::string lower, std::string upper, Direction direction) {
    ScanRequest request;
    request.lower = std::move(lower);
    request.upper = std::move(upper);
    request.direction = direction;
    return runtime_.RunToEnd(store_->Scan(request, nullptr)).code() == Code::kThrottled;
  };
  const std::string first(PartitionPrefix(Key(0, 0))), last(PartitionPrefix(Key(49, 0)));
  const std::string lower = TableLowerBound(table_), upper = TableUpperBound(table_);
  EXPECT_TRUE(is_refused(lower, upper, Direction::kForward));
  EXPECT_TRUE(is_refused(lower, upper, Direction::kBackward));
  EXPECT_TRUE(is_refused(first, PrefixSuccessor(first), Direction::kForward));
  EXPECT_TRUE(is_refused(first, PrefixSuccessor(first), Direction::kBackward));
  NextSecond();
  const auto throttled =
      store_->hot_partitions().Top(HeatMetric::kThrottled, 10, runtime_.clock().RecentNanos());
  ASSERT_EQ(throttled.size(), 2u);
  EXPECT_EQ(throttled[0].prefix, first);
  EXPECT_EQ(throttled[1].prefix, last);
  EXPECT_NEAR(throttled[0].per_second, 3 * throttled[1].per_second, 1e-6);
}

// As writes that were not refused do.
TEST_F(StoreLoadTest, ARefusedTransactionCountsByItsOperations) {
  ASSERT_TRUE(store_->throttle().SetTargets({.partition_rate = 1, .account_rate = 0}).ok());
  std::string content;
  for (const int partition : {7, 8}) {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(runtime_.RunToEnd(store_->Get(Key(partition, i), &content)).ok());
  }
  std::vector<std::string> keys;
  for (int row = 0; row < 20; ++row) keys.push_back(Key(7, row));
  std::vector<WriteOp> ops;
  for (const std::string& key : keys) ops.push_back({.user_key = key, .content = "value"});
  const WriteOutcome refused =
      runtime_.RunToEnd(store_->Write({.table = table_, .ops = ops, .durability = DurabilityLevel::kMemory}));
  ASSERT_EQ(refused.status.code(), Code::kThrottled);
  ASSERT_EQ(runtime_.RunToEnd(store_->Get(Key(8, 0), &content)).code(), Code::kThrottled);
  NextSecond();
  const auto throttled =
      store_->hot_partitions().Top(HeatMetric::kThrottled, 10, runtime_.clock().RecentNanos());
  ASSERT_EQ(throttled.size(), 2u);
  EXPECT_EQ(throttled[0].prefix, PartitionPrefix(Key(7, 0)));
  EXPECT_NEAR(throttled[0].per_second, 20 * throttled[1].per_second, 1e-6);
}

TEST_F(StoreLoadTest, RefusedCallsAreNoLoad) {
  ASSERT_TRUE(store_->throttle().SetTargets({.partition_rate = 1, .account_rate = 0}).ok());
  std::string content;
  int admitted = 0;
  for (int i = 0; i < 5; ++i) admitted += runtime_.RunToEnd(store_->Get(Key(3, i), &content)).ok() ? 1 : 0;
  ASSERT_LT(admitted, 5);
  EXPECT_DOUBLE_EQ(LoadOf(3, NextSecond()).calls, admitted);
}

}  // namespace
}  // namespace partita

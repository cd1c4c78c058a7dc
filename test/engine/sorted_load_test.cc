#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"

namespace partita {
namespace {

class SortedLoadTest : public testing::Test {
 protected:
  static constexpr int kRows = 120'000;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Open());
    table_ = runtime_.RunToEnd(MakeRawTable(store_.get(), "rows"))->id;
  }
  void TearDown() override { EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok()); }
  void Open() {
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, OneShardStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }

  // Text of random digits, which LZ4 takes little of.
  static std::string Content(int row) {
    std::mt19937_64 random(static_cast<uint64_t>(row));
    std::string content;
    while (content.size() < 1'000) content += std::to_string(random());
    content += std::string(300, 'x');
    return content;
  }
  std::string Key(int row) const { return EncodeUserKey(table_, "p", std::to_string(1'000'000 + row)); }
  void Write(int row) {
    const std::string key = Key(row), content = Content(row);
    const WriteOp op{.user_key = key, .content = content};
    const WriteRequest request{
        .table = table_, .ops = std::span<const WriteOp>(&op, 1), .durability = DurabilityLevel::kMemory};
    ASSERT_TRUE(runtime_.RunToEnd(store_->Write(request)).status.ok());
  }
  void Settle() {
    ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
    ASSERT_TRUE(runtime_.RunToEnd(store_->CompactAll()).ok());
  }
  void ExpectRow(int row) {
    std::string content;
    const Result<Shard::ReadAnswer> found = runtime_.RunToEnd(store_->Get(Key(row), &content));
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    ASSERT_EQ(content, Content(row)) << row;
  }

  ShardStatistics Shard0() { return store_->Statistics()[0]; }

  SimDisk disk_{1};
  SimRuntime runtime_{{.seed = 1, .shards = 1}, disk_};
  std::unique_ptr<Store> store_;
  TableId table_;
};

TEST_F(SortedLoadTest, RowsInOrderAreWrittenOnceAndCompressed) {
  for (int row = 0; row < kRows; ++row) ASSERT_NO_FATAL_FAILURE(Write(row));
  ASSERT_NO_FATAL_FAILURE(Settle());
  const ShardStatistics shard = Shard0();
  EXPECT_GT(shard.levels[6].entries, kRows / 4u);  // Level 0 was full.
  EXPECT_EQ(shard.bytes_compaction_written, 0u);
  EXPECT_LT(shard.bytes_flushed, shard.bytes_user * 9 / 10);
  EXPECT_TRUE(runtime_.RunToEnd(store_->Verify(nullptr))->damages.empty());
  ASSERT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int row = 0; row < kRows; row += 97) ASSERT_NO_FATAL_FAILURE(ExpectRow(row));
}

TEST_F(SortedLoadTest, WhatLiesOnRowsIsNotCompressed) {
  ASSERT_NO_FATAL_FAILURE(Write(0));
  ASSERT_NO_FATAL_FAILURE(Write(kRows));
  ASSERT_NO_FATAL_FAILURE(Settle());
  for (int row = 1; row < 20'000; ++row) ASSERT_NO_FATAL_FAILURE(Write(row));
  ASSERT_NO_FATAL_FAILURE(Settle());
  EXPECT_GT(Shard0().bytes_flushed, Shard0().bytes_user * 95 / 100);
  ASSERT_NO_FATAL_FAILURE(ExpectRow(7'777));
}

}  // namespace
}  // namespace partita

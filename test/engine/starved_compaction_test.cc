#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "compaction/level_targets.h"
#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/into.h"
#include "test/support/row_collector.h"

namespace partita {
namespace {

constexpr int kRowsOfPass = 3000;

Task<Status> PutRow(Store* store, TableId table, int row, std::string content) {
  const std::string key = EncodeUserKey(table, "p", std::to_string(10'000 + row));
  const WriteOp op{.user_key = key, .content = content};
  const WriteRequest request{
      .table = table, .ops = std::span<const WriteOp>(&op, 1), .durability = DurabilityLevel::kMemory};
  WriteOutcome outcome = co_await store->Write(request);
  co_return outcome.status;
}

// On the simulator no job computes, so each of idle class that lasts is taken for one that starves.
class StarvedCompactionTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, OneShardStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
    table_ = runtime_.RunToEnd(MakeRawTable(store_.get(), "rows"))->id;
  }
  void TearDown() override { EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok()); }

  // Reads of tables take so long from now on.
  void SlowReads(uint64_t nanos) {
    runtime_.AddFault({.effect = SimEffect::kSlow,
                       .operations = SimOps(SimOp::kRead),
                       .path_prefix = "tables/",
                       .delay_ns = nanos});
  }
  // Writes all rows a few times over, each time into a table of its own.
  void WritePasses(uint32_t passes) {
    for (uint32_t pass = 0; pass < passes; ++pass) {
      ++passes_;
      for (int row = 0; row < kRowsOfPass; ++row)
        ASSERT_TRUE(runtime_.RunToEnd(PutRow(store_.get(), table_, row, std::to_string(passes_))).ok());
      ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
    }
  }
  void ExpectAllRows() {
    StoreModel::Rows rows;
    RowCollector sink(&rows);
    ScanRequest request{
        .lower = TableLowerBound(table_), .upper = TableUpperBound(table_), .limit = 2 * kRowsOfPass};
    const Result<ScanAnswer> answer = runtime_.RunToEnd(store_->Scan(request, &sink));
    ASSERT_TRUE(answer.ok() && answer->done);
    ASSERT_EQ(rows.size(), static_cast<size_t>(kRowsOfPass));
    for (const auto& [key, row] : rows) ASSERT_EQ(row.content, std::to_string(passes_)) << key;
  }
  ShardStatistics Shard0() { return store_->Statistics()[0]; }

  SimDisk disk_{GetParam()};
  SimRuntime runtime_{{.seed = GetParam(), .shards = 1}, disk_};
  std::unique_ptr<Store> store_;
  TableId table_;
  int passes_ = 0;
  std::optional<Status> compacted_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, StarvedCompactionTest, testing::Range(uint64_t{1}, uint64_t{5}));

// covers: F22: nothing is left of what was given up, and the other one does all of it.
TEST_P(StarvedCompactionTest, WhoeverWaitsForAStarvedOneTakesItOver) {
  WritePasses(kLevel0DepthCalm - 1);
  ASSERT_EQ(Shard0().compactions, 0u);
  SlowReads(5 * kNanosPerSecond);
  WritePasses(1);  // At whose end one of idle class begins.
  ASSERT_GT(runtime_.operations_in_flight(), 0u);
  ASSERT_EQ(Shard0().compactions, 0u);
  runtime_.Spawn(Into(store_->CompactAll(), &compacted_));
  for (int i = 0; i < 100 && Shard0().compactions_given_up == 0; ++i) runtime_.AdvanceTime(kNanosPerSecond);
  EXPECT_EQ(Shard0().compactions_given_up, 1u);
  EXPECT_EQ(Shard0().compactions, 0u);
  runtime_.ClearFaults();
  runtime_.AdvanceTime(10 * kNanosPerSecond);
  ASSERT_TRUE(compacted_);
  EXPECT_TRUE(compacted_->ok()) << compacted_->ToString();
  EXPECT_GT(Shard0().compactions, 0u);
  ExpectAllRows();
  uint64_t files = 0;
  for (const ShardStatistics::Level& level : Shard0().levels) files += level.files;
  EXPECT_EQ(disk_.ListFiles("tables/").size(), files);
  EXPECT_TRUE(runtime_.RunToEnd(store_->Verify({}))->damages.empty());
}

}  // namespace
}  // namespace partita

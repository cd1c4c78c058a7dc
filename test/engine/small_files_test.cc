#include <gtest/gtest.h>

#include <string>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/row_collector.h"

namespace partita {
namespace {

TEST(SmallFilesTest, RowsInKeyOrderThatAreFlushedOftenDoNotLeaveAFileEach) {
  constexpr int kFlushes = 100, kRowsEach = 5;
  SimDisk disk(7);
  SimRuntime runtime({.seed = 7, .shards = 1}, disk);
  std::unique_ptr<Store> store = std::move(runtime.RunToEnd(Store::Open(runtime, OneShardStore()))).value();
  const TableId table = runtime.RunToEnd(MakeRawTable(store.get(), "rows"))->id;
  for (int row = 0; row < kFlushes * kRowsEach; ++row) {
    const std::string key = EncodeUserKey(table, "p", std::to_string(10'000 + row));
    const std::string content = std::to_string(row);
    const WriteOp op{.user_key = key, .content = content};
    ASSERT_TRUE(
        runtime
            .RunToEnd(store->Write({.table = table, .ops = {&op, 1}, .durability = DurabilityLevel::kMemory}))
            .status.ok());
    if (row % kRowsEach == kRowsEach - 1) ASSERT_TRUE(runtime.RunToEnd(store->FlushMemtables()).ok());
  }
  runtime.AdvanceTime(60 * kNanosPerSecond);
  uint64_t files = 0;
  const ShardStatistics shard = store->Statistics()[0];
  for (const ShardStatistics::Level& level : shard.levels) files += level.files;
  EXPECT_LT(files, 24u);  // Seven of each size, and what came last.
  EXPECT_EQ(disk.ListFiles("tables/").size(), files);

  StoreModel::Rows rows;
  RowCollector sink(&rows);
  ScanRequest request{.lower = TableLowerBound(table), .upper = TableUpperBound(table), .limit = UINT32_MAX};
  const Result<ScanAnswer> answer = runtime.RunToEnd(store->Scan(request, &sink));
  ASSERT_TRUE(answer.ok() && answer->done);
  ASSERT_EQ(rows.size(), static_cast<size_t>(kFlushes * kRowsEach));
  int next = 0;
  for (const auto& [key, row] : rows) ASSERT_EQ(row.content, std::to_string(next++));
  EXPECT_TRUE(runtime.RunToEnd(store->Verify({}))->damages.empty());
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

}  // namespace
}  // namespace partita

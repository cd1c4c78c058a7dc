#include <gtest/gtest.h>

#include <string>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/meta_format.h"
#include "engine/io/sim_runtime.h"
#include "engine/manifest.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/row_collector.h"

namespace partita {
namespace {

// A store of many small tables, each a range: what every flush has something of.
class ManyTablesTest : public testing::Test {
 protected:
  static constexpr int kTables = 300;

  void SetUp() override {
    Open();
    for (int i = 0; i < kTables; ++i)
      tables_.push_back(runtime_.RunToEnd(MakeRawTable(store_.get(), "table" + std::to_string(i)))->id);
  }
  void Open() { store_ = std::move(runtime_.RunToEnd(Store::Open(runtime_, OneShardStore()))).value(); }
  void WriteRow(TableId table, const std::string& row, const std::string& content) {
    const std::string key = EncodeUserKey(table, "p", row);
    const WriteOp op{.user_key = key, .content = content};
    const WriteRequest write{.table = table, .ops = {&op, 1}, .durability = DurabilityLevel::kMemory};
    ASSERT_TRUE(runtime_.RunToEnd(store_->Write(write)).status.ok());
  }
  // A row of each table, flushed.
  void WriteRound(int round, bool in_key_order) {
    for (const TableId table : tables_) {
      const std::string row = std::to_string(in_key_order ? 10'000 + round : round % 3);
      ASSERT_NO_FATAL_FAILURE(WriteRow(table, row, std::to_string(round)));
    }
    ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  }
  std::vector<FileMeta> References() const {
    const std::string key = ManifestKey(1, ShardId(0)), path = "meta/" + key;
    return DecodeManifest(DecodeMeta(key, path, *disk_.ReadFile(path))->value.bytes)->files;
  }
  uint64_t TableBytes() const {
    uint64_t bytes = 0;
    for (const std::string& file : disk_.ListFiles("tables/")) bytes += disk_.ReadFile(file)->size();
    return bytes;
  }
  StoreModel::Rows RowsOf(TableId table) {
    StoreModel::Rows rows;
    RowCollector sink(&rows);
    ScanRequest request{
        .lower = TableLowerBound(table), .upper = TableUpperBound(table), .limit = UINT32_MAX};
    const Result<ScanAnswer> answer = runtime_.RunToEnd(store_->Scan(request, &sink));
    EXPECT_TRUE(answer.ok() && answer->done);
    return rows;
  }

  SimDisk disk_{7};
  SimRuntime runtime_{{.seed = 7, .shards = 1}, disk_};
  std::unique_ptr<Store> store_;
  std::vector<TableId> tables_;
};

TEST_F(ManyTablesTest, AreMergedTogether) {
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) WriteRound(round, /*in_key_order=*/false);
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  EXPECT_LT(store_->Statistics()[0].compactions, 40u);  // One by one: each table's ten.
  EXPECT_LT(disk_.ListFiles("tables/").size(), 20u);
  for (const TableId table : tables_) ASSERT_EQ(RowsOf(table).size(), 3u);
  EXPECT_TRUE(runtime_.RunToEnd(store_->Verify({}))->damages.empty());

  // As well when nothing is known any more of what the slices of files hold.
  ASSERT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  Open();
  for (int round = 0; round < kRounds; ++round) WriteRound(round, /*in_key_order=*/false);
  ASSERT_TRUE(runtime_.RunToEnd(store_->CompactAll()).ok());
  EXPECT_LT(store_->Statistics()[0].compactions, 40u);
  for (const TableId table : tables_) ASSERT_EQ(RowsOf(table).size(), 3u);
  EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
}

TEST_F(ManyTablesTest, RowsInKeyOrderDoNotLeaveEachTableASliceOfEachFlush) {
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) WriteRound(round, /*in_key_order=*/true);
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  EXPECT_LT(References().size(), kTables * 24u);
  for (const TableId table : tables_) ASSERT_EQ(RowsOf(table).size(), static_cast<size_t>(kRounds));
  EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
}

// A file that tables have in common goes when little of it is left.
TEST_F(ManyTablesTest, WhatDroppedTablesHadIsGivenBack) {
  for (int round = 0; round < 30; ++round) WriteRound(round, /*in_key_order=*/true);
  ASSERT_TRUE(runtime_.RunToEnd(store_->CompactAll()).ok());
  const uint64_t before = TableBytes();
  for (int i = 0; i < kTables; ++i) {
    if (i % 16 == 0) continue;
    ASSERT_TRUE(runtime_.RunToEnd(store_->DeleteTable("acct", "table" + std::to_string(i))).ok());
  }
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  ASSERT_TRUE(runtime_.RunToEnd(store_->CompactAll()).ok());
  EXPECT_LT(TableBytes(), before / 2);
  EXPECT_EQ(RowsOf(tables_[0]).size(), 30u);
  EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
}

// Their ranges, too: not only once an install counts all of them.
TEST_F(ManyTablesTest, ThoseThatAreOnlyMadeCountInFull) {
  constexpr uint64_t kOfOneFile = kTables * sizeof(RangeView) / 4;
  const uint64_t made = store_->bytes_beside_cache();
  WriteRow(tables_[0], "row", "content");
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  EXPECT_LT(store_->bytes_beside_cache(), made + kOfOneFile);
  EXPECT_GE(store_->bytes_beside_cache(), made);
  EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
}

// So that the process keeps to its memory however many tables there are (memory_lender.h).
TEST_F(ManyTablesTest, WhatTheyTakeIsTakenOutOfTheCache) {
  constexpr uint64_t kOfTableMax = 800, kOfReferenceMax = 600;
  const uint64_t made = store_->bytes_beside_cache();
  EXPECT_GT(made, kTables * (sizeof(TableDescriptor) + 2 * sizeof(RangeDescriptor)));
  EXPECT_LT(made, kTables * kOfTableMax);
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds; ++round) WriteRound(round, /*in_key_order=*/true);
  const uint64_t written = store_->bytes_beside_cache();
  ASSERT_EQ(References().size(), kRounds * kTables);
  EXPECT_GT(written, made + kRounds * kTables * sizeof(FileRef));
  EXPECT_LT(written, made + kRounds * kTables * kOfReferenceMax);

  ASSERT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  Open();
  EXPECT_GT(store_->bytes_beside_cache(), made + kRounds * kTables * sizeof(FileRef));
  EXPECT_LE(store_->bytes_beside_cache(), written);
  for (int i = 0; i < kTables; ++i)
    ASSERT_TRUE(runtime_.RunToEnd(store_->DeleteTable("acct", "table" + std::to_string(i))).ok());
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  EXPECT_LT(store_->bytes_beside_cache(), 10'000u);
  EXPECT_EQ(store_->bytes_beyond_budget(), 0u);
  EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
}

}  // namespace
}  // namespace partita

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "compaction/level_targets.h"
#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"

namespace partita {
namespace {

// Level 0 less deep than writers may leave it, over a base that the cache holds a part of.
class SeekCompactionTest : public testing::Test {
 protected:
  static constexpr int kRows = 80'000, kStep = 8;
  static constexpr uint32_t kPasses = 3;
  static_assert(kPasses < kLevel0DepthCalm);

  void SetUp() override {
    StoreOptions options = OneShardStore();
    options.caches_flushes = false;
    options.host_memory_bytes = options.memory_bytes / 4;  // So that level 0 is more than the cache.
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, std::move(options)));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
    table_ = runtime_.RunToEnd(MakeRawTable(store_.get(), "rows"))->id;
    // In strides, so that files overlap and go down together; on until level 0 is as good as empty.
    constexpr int kStrides = 20;
    for (int stride = 0; stride < kStrides || Shard0().levels[0].bytes > 6'000'000; ++stride) {
      ASSERT_LT(stride, 3 * kStrides);
      ASSERT_NO_FATAL_FAILURE(WriteRows(stride % kStrides, kRows, kStrides, 0));
      ASSERT_TRUE(runtime_.RunToEnd(store_->CompactAll()).ok());
    }
    for (uint32_t pass = 1; pass <= kPasses; ++pass)
      ASSERT_NO_FATAL_FAILURE(WriteRows(0, kRows, kStep, pass));
    ASSERT_TRUE(runtime_.RunToEnd(store_->CompactAll()).ok());
    ASSERT_GE(Shard0().levels[0].files, kPasses);
    compactions_ = Shard0().compactions;
  }
  void TearDown() override { EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok()); }

  std::string Key(int row) const { return EncodeUserKey(table_, "p", std::to_string(100'000 + row)); }
  static std::string Content(int row, uint32_t pass) {
    std::mt19937_64 random(static_cast<uint64_t>(row) * 16 + pass);
    std::string content(1000, '\0');
    std::generate(content.begin(), content.end(), [&random] { return static_cast<char>(random()); });
    return content;
  }
  void WriteRows(int first, int last, int step, uint32_t pass) {
    for (int row = first; row < last; row += step) {
      const std::string key = Key(row), content = Content(row, pass);
      const WriteOp op{.user_key = key, .content = content};
      const WriteRequest request{
          .table = table_, .ops = std::span<const WriteOp>(&op, 1), .durability = DurabilityLevel::kMemory};
      ASSERT_TRUE(runtime_.RunToEnd(store_->Write(request)).status.ok());
    }
    ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  }

  // The row as a scan of one finds it.
  void ScanRow(int row) {
    struct Sink final : RowSink {
      std::string content;
      Verdict Add(std::string_view, Version, std::string_view found) override {
        content = found;
        return Verdict::kTaken;
      }
    } sink;
    const ScanRequest request{.lower = Key(row), .upper = TableUpperBound(table_), .limit = 1};
    const Result<ScanAnswer> answer = runtime_.RunToEnd(store_->Scan(request, &sink));
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    ASSERT_EQ(sink.content, Content(row, row % kStep == 0 ? kPasses : 0)) << row;
  }

  ShardStatistics Shard0() { return store_->Statistics()[0]; }

  std::set<std::string> outputs_;  // Files of tables written to, where a test notes them.
  SimDisk disk_{1};
  SimRuntime runtime_{{.seed = 1, .shards = 1}, disk_};
  std::unique_ptr<Store> store_;
  TableId table_;
  uint64_t compactions_ = 0;
};

TEST_F(SeekCompactionTest, ScansThatReadManySublevelsHaveThemMerged) {
  const uint64_t files_before = Shard0().levels[0].files;
  const uint64_t level0_bytes = Shard0().levels[0].bytes;
  std::mt19937 random(1);
  int scans = 0;
  for (; Shard0().compactions == compactions_; ++scans) {
    ASSERT_LT(scans, 60'000);
    ASSERT_NO_FATAL_FAILURE(ScanRow(static_cast<int>(random() % kRows)));
  }
  // Not before they have read as much: a block of 4 KiB, and a row more, for each sublevel.
  EXPECT_GT(static_cast<uint64_t>(scans) * (kPasses - 1) * 6'000, level0_bytes);
  EXPECT_LT(Shard0().levels[0].files, files_before);
  for (int row = 0; row < kRows; row += 7) ASSERT_NO_FATAL_FAILURE(ScanRow(row));
}

TEST_F(SeekCompactionTest, WhatTheCacheHoldsIsNotMergedForThem) {
  for (int scan = 0; scan < 30'000; ++scan) ASSERT_NO_FATAL_FAILURE(ScanRow(scan % 1'000));
  ASSERT_NO_FATAL_FAILURE(WriteRows(0, 1, 1, kPasses));  // One row, behind whose flush one looks what is due.
  runtime_.AdvanceTime(10 * kNanosPerSecond);
  EXPECT_EQ(Shard0().compactions, compactions_);
}

// covers: F22. Scans go on asking for it; it is tried again when its time has come.
TEST_F(SeekCompactionTest, AMergeThatFailedIsNotBegunAgainByEachScan) {
  runtime_.OnCompletion([this](const SimOperationRecord& record) {
    if (record.op == SimOp::kWrite && record.path.starts_with("tables/")) outputs_.emplace(record.path);
  });
  runtime_.AddFault({.operations = SimOps(SimOp::kWrite), .path_prefix = "tables/"});
  std::mt19937 random(1);
  const auto scan = [&] { ScanRow(static_cast<int>(random() % kRows)); };
  for (int scans = 0; outputs_.empty(); ++scans) {
    ASSERT_LT(scans, 60'000);
    ASSERT_NO_FATAL_FAILURE(scan());
  }
  const uint64_t failed_ns = runtime_.now_ns();
  for (int scans = 0; runtime_.now_ns() < failed_ns + 5 * kNanosPerSecond; ++scans) {
    ASSERT_LT(scans, 1'000'000);
    ASSERT_NO_FATAL_FAILURE(scan());
  }
  EXPECT_LE(outputs_.size(), 3u);  // After one second, and after two more.
  runtime_.OnCompletion({});
  EXPECT_EQ(Shard0().compactions, compactions_);
  runtime_.ClearFaults();
  runtime_.AdvanceTime(60 * kNanosPerSecond);
  EXPECT_GT(Shard0().compactions, compactions_);
  for (int row = 0; row < kRows; row += 7) ASSERT_NO_FATAL_FAILURE(ScanRow(row));
}

}  // namespace
}  // namespace partita

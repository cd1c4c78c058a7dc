#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"

// covers: F28 F67
//
// A store whose process died is opened with fewer shards and less memory: the old shards' logs hold more than
// the new memtables may take, were all of them replayed at once.

namespace partita {
namespace {

constexpr uint32_t kShardsBefore = 8;
constexpr int kRowsAShard = 60;
const std::string kContent(16u << 10, 'c');

StoreOptions ReshardOptions(uint32_t shards, uint64_t memory_bytes) {
  StoreOptions options;
  options.create_if_missing = true;
  options.shards = shards;
  options.memory_bytes = memory_bytes;
  options.log_segment_bytes = 8u << 20;
  options.log_tail_bytes = 64u << 10;
  options.reserve_bytes = 1u << 20;
  return options;
}

class ReshardTest : public testing::Test {
 protected:
  ~ReshardTest() override {
    if (store_ != nullptr) EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
  }

  // `crash_at`: which operation is the last one; 0: none.
  Status Open(uint32_t shards, uint64_t memory_bytes, uint64_t crash_at = 0) {
    runtime_.emplace(SimOptions{.seed = ++lives_, .shards = shards}, *disk_);
    runtime_->CrashAtOperation(crash_at, SimCrashMoment::kAfter);
    runtime_->OnCompletion([this](const SimOperationRecord& done) { Note(done); });
    auto opened = runtime_->RunToEnd(Store::Open(*runtime_, ReshardOptions(shards, memory_bytes)));
    if (opened.ok()) store_ = std::move(opened).value();
    return opened.status();
  }
  void Crash() {
    runtime_->CrashNow();
    if (store_ != nullptr) (void)runtime_->RunToEnd(store_->Close());
    store_.reset();
    runtime_.reset();
    disk_->CrashProcess();
  }

  Status Close() {
    const Status closed = runtime_->RunToEnd(store_->Close());
    store_.reset();
    runtime_.reset();
    return closed;
  }
  bool WasClean() const { return store_->open_report().clean_shutdown; }

  // A table with a range of each shard, and rows in all of them that no flush has written to tables.
  void FillAllShards() {
    Store::TableSpec spec{.account = "default", .name = "rows", .raw = true, .split_partitions = {}};
    for (uint32_t i = 1; i < kShardsBefore; ++i) spec.split_partitions.push_back(Partition(i));
    table_ = runtime_->RunToEnd(store_->CreateTable(std::move(spec)))->id;
    for (int row = 0; row < kRowsAShard; ++row) {
      for (uint32_t i = 0; i < kShardsBefore; ++i) {
        const std::string key = EncodeUserKey(table_, Partition(i), std::to_string(row));
        const WriteOp op{.user_key = key, .content = kContent};
        WriteRequest request{.table = table_, .ops = std::span<const WriteOp>(&op, 1)};
        ASSERT_TRUE(runtime_->RunToEnd(store_->Write(request)).status.ok());
      }
    }
    ASSERT_TRUE(disk_->ListFiles("tables/").empty());
  }
  int RowsFound() {
    int found = 0;
    std::string content;
    for (uint32_t i = 0; i < kShardsBefore; ++i) {
      for (int row = 0; row < kRowsAShard; ++row) {
        const std::string key = EncodeUserKey(table_, Partition(i), std::to_string(row));
        const auto answer = runtime_->RunToEnd(store_->Get(key, &content));
        if (answer.ok() && answer->state == Shard::ReadState::kFound && content == kContent) ++found;
      }
    }
    return found;
  }

  std::unique_ptr<SimDisk> disk_ = std::make_unique<SimDisk>(7);
  std::set<std::string> tables_seen_;
  std::vector<std::string> logs_in_turn_;  // Of the first layout, as the last life used them.

 private:
  static std::string Partition(uint32_t index) { return "p" + std::to_string(index); }

  void Note(const SimOperationRecord& done) {
    const std::string path(done.path);
    if (path.starts_with("tables/")) tables_seen_.insert(path);
    const std::string log = path.substr(0, path.find('/'));
    const bool is_old = log.starts_with("log-1-") && done.op == SimOp::kRead;
    if (is_old && (logs_in_turn_.empty() || logs_in_turn_.back() != log)) logs_in_turn_.push_back(log);
  }

  std::optional<SimRuntime> runtime_;
  std::unique_ptr<Store> store_;
  TableId table_;
  uint64_t lives_ = 0;
};

TEST_F(ReshardTest, OneShardInThePlaceOfManyReplaysTheirLogsOneAfterTheOther) {
  ASSERT_TRUE(Open(kShardsBefore, uint64_t{128} << 20).ok());
  FillAllShards();
  Crash();
  logs_in_turn_.clear();

  const Status opened = Open(1, uint64_t{64} << 20);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(tables_seen_.size(), kShardsBefore);   // Each wrote one table, not one a row,
  EXPECT_EQ(logs_in_turn_.size(), kShardsBefore);  // and had ended before the next began.
  EXPECT_EQ(RowsFound(), int{kShardsBefore} * kRowsAShard);
}

TEST_F(ReshardTest, KilledAtAnyStepItGoesOnWithYetAnotherNumber) {
  ASSERT_TRUE(Open(kShardsBefore, uint64_t{128} << 20).ok());
  FillAllShards();
  Crash();
  const std::unique_ptr<SimDisk> before = disk_->Clone();
  bool killed = true;
  int kills = 0;
  for (uint64_t at = 1; killed; at += at / 4 + 1, ++kills) {
    disk_ = before->Clone();
    killed = !Open(3, uint64_t{64} << 20, at).ok();
    Crash();
    const Status opened = Open(5, uint64_t{96} << 20);
    ASSERT_TRUE(opened.ok()) << opened.ToString() << ", killed at operation " << at;
    ASSERT_EQ(RowsFound(), int{kShardsBefore} * kRowsAShard) << "killed at operation " << at;
    Crash();
  }
  EXPECT_GT(kills, 15);
}

TEST_F(ReshardTest, WhatWasClosedWellIsNotCalledUnclean) {
  ASSERT_TRUE(Open(kShardsBefore, uint64_t{128} << 20).ok());
  FillAllShards();
  ASSERT_TRUE(Close().ok());
  ASSERT_TRUE(Open(3, uint64_t{64} << 20).ok());
  EXPECT_TRUE(WasClean());
  Crash();
  ASSERT_TRUE(Open(5, uint64_t{96} << 20).ok());
  EXPECT_FALSE(WasClean());
}

}  // namespace
}  // namespace partita

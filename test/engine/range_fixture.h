#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/row_collector.h"
#include "test/support/small_store.h"

namespace partita {

// A simulated store whose ranges split, merge and move, and what was acknowledged of it.
class RangeTest : public testing::Test {
 public:
  static constexpr uint32_t kShards = 3;
  static constexpr int kPartitions = 6;
  static constexpr int kRows = 8;

  explicit RangeTest(uint64_t seed = 7) : disk_(std::make_unique<SimDisk>(seed)), lives_(100 * seed) {}
  explicit RangeTest(const SimDisk& disk) : disk_(disk.Clone()) {}
  void TestBody() override {}

  // `crash_at`: which operation is the last one; 0: none.
  Status Open(uint32_t shards = kShards, uint64_t crash_at = 0) {
    SimOptions world{.seed = ++lives_, .shards = shards};
    world.clients = 2;
    world.wall_ticks_start += wall_ahead_ticks_;
    runtime_.emplace(world, *disk_);
    runtime_->CrashAtOperation(crash_at, SimCrashMoment::kAfter);
    auto opened = runtime_->RunToEnd(Store::Open(*runtime_, SmallStoreOptions(shards, memtable_data_bytes_)));
    if (opened.ok()) store_ = std::move(opened).value();
    return opened.status();
  }
  Status Close() {
    Status closed = store_ == nullptr ? Status() : runtime_->RunToEnd(store_->Close());
    store_.reset();
    runtime_.reset();
    return closed;
  }
  void Crash(bool power) {
    runtime_->CrashNow();
    (void)Close();
    if (power)
      disk_->CrashPower();
    else
      disk_->CrashProcess();
  }
  void LosePower() { Crash(/*power=*/true); }
  void MakeTable() {
    Store::TableSpec spec{.account = "default", .name = "rows", .raw = true, .split_partitions = {}};
    Result<TableDescriptor> made = runtime_->RunToEnd(store_->CreateTable(std::move(spec)));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    table_ = made->id;
  }
  std::string Key(int partition, int row) const {
    return EncodeUserKey(table_, "p" + std::to_string(partition), "r" + std::to_string(row));
  }
  std::string Bound(int partition) const {
    return EncodeUserKey(table_, "p" + std::to_string(partition), "");
  }

  WriteOutcome Write(WriteOp op, std::string key, DurabilityLevel level = DurabilityLevel::kPower) {
    op.user_key = key;
    WriteRequest request;
    request.table = table_;
    request.ops = std::span<const WriteOp>(&op, 1);
    request.durability = level;
    WriteOutcome outcome = runtime_->RunToEnd(store_->Write(request));
    if (outcome.status.ok()) versions_[key] = std::max(versions_[key], outcome.version);
    return outcome;
  }
  Status Put(int partition, int row, const std::string& value,
             DurabilityLevel level = DurabilityLevel::kPower) {
    WriteOp op;
    op.content = value;
    unanswered_ = {Key(partition, row), value};
    Status status = Write(op, Key(partition, row), level).status;
    if (status.ok()) Answered();
    return status;
  }
  Status Delete(int partition, int row) {
    WriteOp op;
    op.kind = WriteKind::kDelete;
    unanswered_ = {Key(partition, row), std::nullopt};
    Status status = Write(op, Key(partition, row)).status;
    if (status.ok()) Answered();
    return status;
  }
  void Answered() {
    const auto [key, value] = *std::exchange(unanswered_, std::nullopt);
    if (value)
      rows_[key] = *value;
    else
      rows_.erase(key);
  }
  // The write that the crash cut off happened or did not: the store says which.
  void AskForUnanswered() {
    if (!unanswered_) return;
    std::string content;
    auto answer = runtime_->RunToEnd(store_->Get(unanswered_->first, &content));
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    const bool found = answer->state == Shard::ReadState::kFound;
    if (unanswered_->second ? found && content == *unanswered_->second : !found) Answered();
  }
  void Fill() {
    for (int p = 0; p < kPartitions; ++p) {
      for (int r = 0; r < kRows; ++r) ASSERT_TRUE(Put(p, r, "first " + std::to_string(p * kRows + r)).ok());
    }
  }
  // Everything that was acknowledged is there and nothing else, by scans both ways and by gets.
  void ExpectRows(const std::string& where) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      ScanRequest request;
      request.lower = TableLowerBound(table_);
      request.upper = TableUpperBound(table_);
      request.direction = direction;
      // In order, so that a row that is given twice, by one page or by two, is one too many.
      std::vector<std::pair<std::string, std::string>> seen;
      while (true) {
        StoreModel::Rows found;
        RowCollector rows(&found);
        Result<ScanAnswer> page = runtime_->RunToEnd(store_->Scan(request, &rows));
        ASSERT_TRUE(page.ok()) << where << ": " << page.status().ToString();
        ASSERT_EQ(found.size(), page->rows) << where;
        if (direction == Direction::kForward) {
          for (const auto& [key, row] : found) seen.emplace_back(key, row.content);
        } else {
          for (auto at = found.rbegin(); at != found.rend(); ++at)
            seen.emplace_back(at->first, at->second.content);
        }
        if (page->done) break;
        (direction == Direction::kForward ? request.lower : request.upper) = page->next_key;
      }
      if (direction == Direction::kBackward) std::reverse(seen.begin(), seen.end());
      ASSERT_EQ(seen, (std::vector<std::pair<std::string, std::string>>(rows_.begin(), rows_.end())))
          << where;
    }
    for (int p = 0; p < kPartitions; ++p) {
      for (int r = 0; r < kRows; ++r) {
        std::string content;
        auto answer = runtime_->RunToEnd(store_->Get(Key(p, r), &content));
        ASSERT_TRUE(answer.ok()) << where << ": " << answer.status().ToString();
        const auto row = rows_.find(Key(p, r));
        ASSERT_EQ(answer->state == Shard::ReadState::kFound, row != rows_.end())
            << where << ": " << Key(p, r);
        if (row != rows_.end()) EXPECT_EQ(content, row->second) << where;
      }
    }
  }
  ShardId OwnerOf(int partition) const { return store_->CatalogCopy().FindRange(Bound(partition))->owner; }
  Status Split(int partition) { return runtime_->RunToEnd(store_->SplitRange(Bound(partition))); }
  Status Merge(int partition) { return runtime_->RunToEnd(store_->MergeRanges(Bound(partition))); }
  Result<Store::MoveReport> Move(int partition, uint32_t to) {
    return runtime_->RunToEnd(store_->MoveRange(Bound(partition), ShardId(to)));
  }
  void Compact() { EXPECT_TRUE(runtime_->RunToEnd(store_->CompactAll()).ok()); }

  std::unique_ptr<SimDisk> disk_;
  std::optional<SimRuntime> runtime_;
  std::unique_ptr<Store> store_;
  TableId table_;
  std::map<std::string, std::string> rows_;  // Acknowledged.
  std::map<std::string, Version> versions_;  // The last one acknowledged of each key, deletes included.
  std::optional<std::pair<std::string, std::optional<std::string>>>
      unanswered_;      // Key and what it should be.
  uint64_t lives_ = 0;  // Seeds of the runtimes.
  uint64_t wall_ahead_ticks_ = 0;
  uint64_t memtable_data_bytes_ = 32u << 10;
};

}  // namespace partita

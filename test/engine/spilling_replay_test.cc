#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"

// covers: F12 F28 F31
//
// A process died, and only the log's tail holds what it was told at level process. Whoever opens the store
// next has less memory, so that the replay writes tables before the log has taken the tail over; then the
// power goes.

namespace partita {
namespace {

using ::testing::Contains;
using ::testing::Not;

constexpr size_t kSpilledBytes = 256u << 10;
constexpr int kSpilledRows = 100;  // 25 MiB: more than the 20 MiB of memtables that 64 MiB of memory give.
constexpr int kLaterRows = 20;

StoreOptions OptionsWith(uint64_t memory_bytes) {
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = memory_bytes;
  options.log_segment_bytes = 8u << 20;
  options.log_tail_bytes = 64u << 20;
  options.reserve_bytes = 1u << 20;
  return options;
}

// Without the tail the log would end before what the manifest asks for: a store that does not open.
class SpillingReplayTest : public testing::TestWithParam<uint64_t> {
 protected:
  SpillingReplayTest() : disk_(GetParam()) {}

  void Open(uint64_t memory_bytes) {
    runtime_.emplace(SimOptions{.seed = GetParam() + ++lives_, .shards = 1}, disk_);
    if (watch_) runtime_->OnCompletion(watch_);
    StoreOptions options = OptionsWith(memory_bytes);
    options.opening = tell_;
    auto opened = runtime_->RunToEnd(Store::Open(*runtime_, std::move(options)));
    if (opened.ok()) store_ = std::move(opened).value();
    opened_ = opened.status();
  }
  void End() {
    runtime_->CrashNow();
    if (store_ != nullptr) (void)runtime_->RunToEnd(store_->Close());
    store_.reset();
    runtime_.reset();
  }
  Status Put(TableId table, const std::string& row, DurabilityLevel level) {
    const std::string key = EncodeUserKey(table, "p", row);
    const std::string value(kSpilledBytes, row.back());
    const WriteOp op{.user_key = key, .content = value};
    WriteRequest request{.table = table, .ops = std::span<const WriteOp>(&op, 1)};
    request.durability = level;
    return runtime_->RunToEnd(store_->Write(request)).status;
  }
  bool Has(TableId table, const std::string& row) {
    std::string content;
    auto answer = runtime_->RunToEnd(store_->Get(EncodeUserKey(table, "p", row), &content));
    return answer.ok() && answer->state == Shard::ReadState::kFound &&
           content == std::string(kSpilledBytes, row.back());
  }
  TableId MakeTable(std::string name = "rows") {
    Store::TableSpec spec{.account = "default", .name = std::move(name), .raw = true, .split_partitions = {}};
    return runtime_->RunToEnd(store_->CreateTable(std::move(spec)))->id;
  }

  void PutMoreThanFits(TableId table) {
    // The first takes the lease of versions; from then on no flush of the log ends.
    ASSERT_TRUE(Put(table, "first0", DurabilityLevel::kProcess).ok());
    ASSERT_TRUE(runtime_->RunToEnd(store_->Barrier()).ok());
    SimFault slow{.effect = SimEffect::kSlow, .operations = SimOps(SimOp::kFlush), .path_prefix = "log-"};
    runtime_->AddFault(slow);
    for (int i = 0; i < kSpilledRows; ++i) {
      const Status written = Put(table, "old" + std::to_string(i), DurabilityLevel::kProcess);
      ASSERT_TRUE(written.ok()) << i << ": " << written.ToString();
    }
  }

  void NoteProgress() {
    tell_ = [this](uint64_t done, uint64_t due) {
      EXPECT_LE(done, due);
      if (!told_.empty()) EXPECT_LE(told_.back().first, done);
      if (!told_.empty()) EXPECT_LE(told_.back().second, due);
      told_.emplace_back(done, due);
    };
  }

  SimDisk disk_;
  std::optional<SimRuntime> runtime_;
  std::unique_ptr<Store> store_;
  std::function<void(const SimOperationRecord&)> watch_;
  OpeningProgress::Tell tell_;
  std::vector<std::pair<uint64_t, uint64_t>> told_;  // Done and due.
  Status opened_;
  uint64_t lives_ = 0;
};

TEST_P(SpillingReplayTest, TheLogReachesAsFarAsTheTablesAfterALossOfPower) {
  Open(uint64_t{256} << 20);
  ASSERT_TRUE(opened_.ok()) << opened_.ToString();
  const TableId table = MakeTable();
  PutMoreThanFits(table);
  End();
  disk_.CrashProcess();

  // The power goes when the manifest that names the spilled tables is durable.
  bool named = false, spilled = false;
  watch_ = [&](const SimOperationRecord& done) {
    if (done.op == SimOp::kRename && done.path.starts_with("meta/shard-1-0.")) named = true;
    if (!named || spilled || done.op != SimOp::kFlushDirectory || done.path != "meta") return;
    spilled = true;
    runtime_->CrashNow();
  };
  Open(uint64_t{64} << 20);
  EXPECT_FALSE(opened_.ok());
  End();
  watch_ = nullptr;
  ASSERT_TRUE(spilled);
  ASSERT_FALSE(disk_.ListFiles("tables/").empty());
  disk_.CrashPower();

  Open(uint64_t{256} << 20);
  ASSERT_TRUE(opened_.ok()) << opened_.ToString();
  for (int i = 0; i < kLaterRows; ++i) {
    ASSERT_TRUE(Put(table, "new" + std::to_string(i), DurabilityLevel::kPower).ok());
  }
  End();
  disk_.CrashPower();

  Open(uint64_t{256} << 20);
  ASSERT_TRUE(opened_.ok()) << opened_.ToString();
  for (int i = 0; i < kLaterRows; ++i) EXPECT_TRUE(Has(table, "new" + std::to_string(i))) << i;
  EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
  store_.reset();
}

// The process dies before they are removed, and the manifest that the spilling replay saves does not name
// them any more. covers: F37
TEST_P(SpillingReplayTest, FilesOfATableThatWasDroppedAreRemoved) {
  bool dropping = false;
  watch_ = [&](const SimOperationRecord& done) {
    if (dropping && done.op == SimOp::kFlushDirectory && done.path == "meta") runtime_->CrashNow();
  };
  Open(uint64_t{256} << 20);
  ASSERT_TRUE(opened_.ok()) << opened_.ToString();
  const TableId gone = MakeTable("gone"), table = MakeTable();
  ASSERT_TRUE(Put(gone, "row0", DurabilityLevel::kPower).ok());
  ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok());
  const std::vector<std::string> files = disk_.ListFiles("tables/");
  ASSERT_EQ(files.size(), 1u);
  PutMoreThanFits(table);
  dropping = true;
  (void)runtime_->RunToEnd(store_->DeleteTable("default", "gone"));
  ASSERT_TRUE(runtime_->crashed());
  End();
  watch_ = nullptr;
  disk_.CrashProcess();

  Open(uint64_t{64} << 20);
  ASSERT_TRUE(opened_.ok()) << opened_.ToString();
  const auto idle = [](uint64_t nanos) -> Task<void> { co_await SleepFor(nanos); };
  runtime_->Run(idle(5'000'000'000));
  EXPECT_GE(disk_.ListFiles("tables/").size(), 1u);
  EXPECT_THAT(disk_.ListFiles("tables/"), Not(Contains(files[0])));
  EXPECT_TRUE(Has(table, "old" + std::to_string(kSpilledRows - 1)));
  EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
  store_.reset();
}

// covers: F38
TEST_P(SpillingReplayTest, ItTellsHowFarItIs) {
  Open(uint64_t{256} << 20);
  ASSERT_TRUE(opened_.ok()) << opened_.ToString();
  PutMoreThanFits(MakeTable());
  End();
  disk_.CrashProcess();

  NoteProgress();
  Open(uint64_t{64} << 20);
  ASSERT_TRUE(opened_.ok()) << opened_.ToString();
  EXPECT_GT(told_.size(), 5u);
  EXPECT_EQ(told_.back().first, told_.back().second);
  EXPECT_GT(told_.back().first, (uint64_t{16} << 20) + OptionsWith(0).log_segment_bytes)
      << "the tables count, too";
  EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
  store_.reset();
}

// covers: F38. What is not read yet when memory is full is read behind what is written then.
TEST_P(SpillingReplayTest, WhatIsDueDoesNotFallWhenItSpills) {
  Open(uint64_t{256} << 20);
  ASSERT_TRUE(opened_.ok()) << opened_.ToString();
  const TableId table = MakeTable();
  runtime_->AddFault(
      {.effect = SimEffect::kSlow, .operations = SimOps(SimOp::kFlush), .path_prefix = "tables/"});
  for (int i = 0; i < kSpilledRows; ++i) {
    ASSERT_TRUE(Put(table, "old" + std::to_string(i), DurabilityLevel::kPower).ok());
  }
  End();
  disk_.CrashProcess();

  NoteProgress();
  Open(uint64_t{64} << 20);
  ASSERT_TRUE(opened_.ok()) << opened_.ToString();
  ASSERT_FALSE(told_.empty());
  EXPECT_GT(told_.front().second, kSpilledRows * kSpilledBytes);
  EXPECT_GT(told_.back().second, told_.front().second + (uint64_t{16} << 20)) << "the tables";
  EXPECT_EQ(told_.back().first, told_.back().second);
  EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
  store_.reset();
}

INSTANTIATE_TEST_SUITE_P(Seeds, SpillingReplayTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace partita

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/pacing_line.h"
#include "engine/store.h"
#include "test/support/into.h"

// covers: F57
//
// What a writer at level `process` may run into where the disk is slow: it slows down before, and does not
// stand.

namespace partita {
namespace {

constexpr uint64_t kMilli = 1'000'000;
constexpr size_t kValueBytes = 8u << 10;

struct Row {
  TableId table;
  std::string key = "";
  std::string value = std::string(kValueBytes, 'v');
};

Task<WriteOutcome> Put(Store* store, Row row, DurabilityLevel level) {
  const WriteOp op{.user_key = row.key, .content = row.value};
  const WriteRequest request{
      .table = row.table, .ops = std::span<const WriteOp>(&op, 1), .durability = level};
  co_return co_await store->Write(request);
}

Task<WriteOutcome> PutWherePresent(Store* store, Row row) {
  const WriteOp op{.precondition = Precondition::kPresent, .user_key = row.key, .content = row.value};
  const WriteRequest request{
      .table = row.table, .ops = std::span<const WriteOp>(&op, 1), .durability = DurabilityLevel::kMemory};
  co_return co_await store->Write(request);
}

uint64_t merges_made = 0;
Result<std::string> CountedMerge(std::string_view, std::string_view, std::string_view patch) {
  ++merges_made;
  return std::string(patch);
}

Task<WriteOutcome> MergeCounted(Store* store, Row row) {
  const WriteOp op{.kind = WriteKind::kMerge, .user_key = row.key, .content = row.value};
  const WriteRequest request{.table = row.table,
                             .ops = std::span<const WriteOp>(&op, 1),
                             .durability = DurabilityLevel::kMemory,
                             .merge = CountedMerge};
  co_return co_await store->Write(request);
}

// Time of the simulation.
struct Spent {
  uint64_t all_ns = 0;
  uint64_t longest_ns = 0;
  bool ok = true;
};

Task<Spent> PutMany(Runtime* runtime, Store* store, TableId table, int first, int count,
                    DurabilityLevel level) {
  Spent spent;
  for (int i = first; i < first + count; ++i) {
    const uint64_t began_ns = runtime->clock().MonotonicNanos();
    const WriteOutcome outcome =
        co_await Put(store, Row{table, EncodeUserKey(table, "p", std::to_string(i))}, level);
    const uint64_t took_ns = runtime->clock().MonotonicNanos() - began_ns;
    spent.ok = spent.ok && outcome.status.ok();
    spent.all_ns += took_ns;
    spent.longest_ns = std::max(spent.longest_ns, took_ns);
  }
  co_return spent;
}

class WriteWallsTest : public testing::Test {
 protected:
  void SetUp() override {
    StoreOptions options;
    options.create_if_missing = true;
    options.memory_bytes = 256u << 20;
    options.log_segment_bytes = kSegmentBytes;
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, std::move(options)));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
    Store::TableSpec spec{.account = "acct", .name = "rows", .raw = true, .split_partitions = {}};
    Result<TableDescriptor> table = runtime_.RunToEnd(store_->CreateTable(std::move(spec)));
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = table->id;
    ASSERT_TRUE(Write(1).ok);  // Leases the versions of the rest, by a flush.
    runtime_.AdvanceTime(1000 * kMilli);
  }
  void TearDown() override {
    if (store_ != nullptr) EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  }

  Spent Write(int count, DurabilityLevel level = DurabilityLevel::kProcess) {
    const int first = written_;
    written_ += count;
    return runtime_.RunToEnd(PutMany(&runtime_, store_.get(), table_, first, count, level));
  }
  void SlowDown(SimOpSet operations, uint64_t delay_ns) {
    runtime_.AddFault(
        {.effect = SimEffect::kSlow, .operations = operations, .path_prefix = "log-", .delay_ns = delay_ns});
  }
  // What is decided is not flushed any more.
  void BreakTheLog() {
    runtime_.AddFault({.operations = SimOps(SimOp::kWrite, SimOp::kFlush), .path_prefix = "log-"});
    runtime_.AdvanceTime(100 * kMilli);
    ASSERT_TRUE(store_->Statistics()[0].fenced);
  }
  void MendTheLog() {
    runtime_.ClearFaults();
    runtime_.AdvanceTime(10'000 * kMilli);
    ASSERT_FALSE(store_->Statistics()[0].fenced);
  }
  // To a twentieth; nothing is flushed meanwhile.
  void FillTheMemory() {
    runtime_.AddFault({.operations = SimOps(SimOp::kWrite), .path_prefix = "tables/"});
    const uint64_t enough = store_->memory_plan().memtable_bytes / 20 * 19;
    while (store_->Statistics()[0].memtable_bytes < enough) {
      ASSERT_TRUE(Write(100, DurabilityLevel::kMemory).ok);
    }
  }
  // They wait for their turn, and take no memory when it comes.
  void BeginLargeWritesThatWillBeRefused(size_t count) {
    refused_.resize(count);
    for (std::optional<WriteOutcome>& outcome : refused_) {
      Row row{table_, EncodeUserKey(table_, "p", "absent"), std::string(kLargeBytes, 'v')};
      runtime_.Spawn(Into(PutWherePresent(store_.get(), std::move(row)), &outcome));
    }
  }
  // All of them that have an answer.
  int64_t Refused() {
    return std::ranges::count_if(refused_, [](const std::optional<WriteOutcome>& outcome) {
      if (outcome) EXPECT_EQ(outcome->status.code(), Code::kNotFound) << outcome->status.ToString();
      return outcome.has_value();
    });
  }
  size_t LogFiles() {
    const std::vector<std::string> paths = disk_.ListFiles("log-1-0/");
    return static_cast<size_t>(
        std::ranges::count_if(paths, [](const std::string& path) { return path.ends_with(".log"); }));
  }

  static constexpr uint64_t kSegmentBytes = 16u << 20;
  static constexpr size_t kLargeBytes = 1u << 20;
  // The longest wait that a wall asks for, and what a sleep and a copy take.
  static constexpr uint64_t kLongestNanos = PacingLine::kWaitNanosMax + 5 * kMilli;

  SimDisk disk_{3};
  SimRuntime runtime_{{.seed = 3, .shards = 1}, disk_};
  std::unique_ptr<Store> store_;
  TableId table_;
  int written_ = 0;
  std::vector<std::optional<WriteOutcome>> refused_;
};

// Else it copies half of the tail in no time and then stands until the disk has taken all of it.
TEST_F(WriteWallsTest, AWriterSlowsDownBeforeTheTailIsFull) {
  constexpr uint64_t kFlushNanos = 100 * kMilli;
  SlowDown(SimOps(SimOp::kFlush), kFlushNanos);
  const Spent spent = Write(kSegmentBytes / kValueBytes / 4 * 3);  // Twice the tail.
  EXPECT_TRUE(spent.ok);
  EXPECT_GT(spent.all_ns, 2 * kFlushNanos) << "the disk was no bound, so nothing is shown";
  EXPECT_LE(spent.longest_ns, kLongestNanos);
}

// Who waits for the disk itself needs no tail.
TEST_F(WriteWallsTest, OthersDoNotWaitForTheTail) {
  SlowDown(SimOps(SimOp::kFlush), 1000 * kMilli);
  const Spent spent = Write(2000, DurabilityLevel::kMemory);
  EXPECT_TRUE(spent.ok);
  EXPECT_EQ(spent.all_ns, 0u);
}

// F57: the log's next file is there before it is needed, and not before writes show that it will be.
TEST_F(WriteWallsTest, TheNextFileOfTheLogIsMadeAhead) {
  EXPECT_EQ(LogFiles(), 1u);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Write(kSegmentBytes / kValueBytes / 4).ok);
    runtime_.AdvanceTime(1000 * kMilli);
  }
  EXPECT_EQ(LogFiles(), 2u);
}

// Nor does a write stand for the making of it.
TEST_F(WriteWallsTest, AWriterDoesNotStandForTheNextFileOfTheLog) {
  SlowDown(SimOps(SimOp::kOpen), 200 * kMilli);
  Spent spent = Write(2 * kSegmentBytes / kValueBytes);
  EXPECT_TRUE(spent.ok);
  EXPECT_GE(LogFiles(), 2u);
  EXPECT_LE(spent.longest_ns, kLongestNanos);
}

// It would only be told later that its write is refused.
TEST_F(WriteWallsTest, WhoIsRefusedDoesNotWaitBefore) {
  ASSERT_TRUE(Write(400).ok);  // Most of what may be unflushed.
  BreakTheLog();
  const Spent spent = Write(100);
  EXPECT_FALSE(spent.ok);
  EXPECT_EQ(spent.all_ns, 0u);
  MendTheLog();
}

// However much is before it.
TEST_F(WriteWallsTest, NobodyWaitsForLongerThanTwoSeconds) {
  constexpr int kWriters = 400;
  FillTheMemory();
  BeginLargeWritesThatWillBeRefused(kWriters);
  runtime_.AdvanceTime(1'900 * kMilli);
  EXPECT_LT(Refused(), kWriters);
  runtime_.AdvanceTime(150 * kMilli);
  EXPECT_EQ(Refused(), kWriters);
  EXPECT_GE(store_->Statistics()[0].delay_us_max, 2'000'000u);
  EXPECT_LT(store_->Statistics()[0].delay_us_max, 2'050'000u);
}

TEST_F(WriteWallsTest, NobodyWaitsOnceTheStoreIsAboutToClose) {
  constexpr int kWriters = 400;
  FillTheMemory();
  BeginLargeWritesThatWillBeRefused(kWriters);
  runtime_.AdvanceTime(100 * kMilli);
  EXPECT_LT(Refused(), kWriters);
  store_->StopPacing();
  runtime_.AdvanceTime(kLongestNanos);
  EXPECT_EQ(Refused(), kWriters);
}

// Each time that it is resolved it looks its rows up, and makes the merge.
TEST_F(WriteWallsTest, WhoFindsNoMemoryIsNotResolvedAnewBeforeSomeIsFree) {
  constexpr size_t kWriters = 100;
  FillTheMemory();
  while (Write(1, DurabilityLevel::kMemory).ok) {
  }
  merges_made = 0;
  std::vector<std::optional<WriteOutcome>> outcomes(kWriters);
  for (size_t i = 0; i < kWriters; ++i) {
    const std::string key = EncodeUserKey(table_, "merged", std::to_string(i));
    const std::string value(2 * kValueBytes, 'v');
    runtime_.Spawn(Into(MergeCounted(store_.get(), Row{table_, key, value}), &outcomes[i]));
  }
  runtime_.AdvanceTime(3'000 * kMilli);
  EXPECT_GE(merges_made, kWriters) << "not all of them have come so far";
  EXPECT_LT(merges_made, 10 * kWriters);
  runtime_.ClearFaults();
  runtime_.AdvanceTime(4'000 * kMilli);
  for (const std::optional<WriteOutcome>& outcome : outcomes) {
    ASSERT_TRUE(outcome);
    EXPECT_TRUE(outcome->status.ok()) << outcome->status.ToString();
  }
}

// What its new file was given is not to be written any more: else the driver of the log would go on for ever.
TEST_F(WriteWallsTest, ALogThatFailedWithMuchToWriteRestsAfterwards) {
  ASSERT_TRUE(Write(1500, DurabilityLevel::kMemory).ok);  // Several rounds.
  BreakTheLog();
  MendTheLog();
  EXPECT_TRUE(Write(1).ok);
}

}  // namespace
}  // namespace partita

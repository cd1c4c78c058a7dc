#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/manifest.h"
#include "engine/store.h"
#include "test/support/pause.h"
#include "test/support/row_collector.h"
#include "test/support/slowdown.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

// Ranges that split, merge and move. covers: F1 F10 F17 F19 F36 F67

constexpr uint32_t kRangeShards = 3;
constexpr int kPartitions = 6;
constexpr int kRows = 8;

std::string PartitionOf(int i) { return "p" + std::to_string(i); }
std::string RowOf(int i) { return "r" + std::to_string(i); }

class RangeTest : public testing::Test {
 public:
  explicit RangeTest(uint64_t seed = 7) : disk_(std::make_unique<SimDisk>(seed)), lives_(100 * seed) {}
  explicit RangeTest(const SimDisk& disk) : disk_(disk.Clone()) {}
  void TestBody() override {}

  // `crash_at`: which operation is the last one; 0: none.
  Status Open(uint32_t shards = kRangeShards, uint64_t crash_at = 0) {
    SimOptions world{.seed = ++lives_, .shards = shards};
    world.clients = 2;
    runtime_.emplace(world, *disk_);
    runtime_->CrashAtOperation(crash_at, SimCrashMoment::kAfter);
    auto opened = runtime_->RunToEnd(Store::Open(*runtime_, SmallStoreOptions(shards)));
    if (opened.ok()) store_ = std::move(opened).value();
    return opened.status();
  }
  Status Close() {
    Status closed = store_ == nullptr ? Status() : runtime_->RunToEnd(store_->Close());
    store_.reset();
    runtime_.reset();
    return closed;
  }
  void LosePower() {
    runtime_->CrashNow();
    (void)Close();
    disk_->CrashPower();
  }
  void MakeTable() {
    Store::TableSpec spec{.account = "default", .name = "rows", .raw = true, .split_partitions = {}};
    Result<TableDescriptor> made = runtime_->RunToEnd(store_->CreateTable(std::move(spec)));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    table_ = made->id;
  }
  std::string Key(int partition, int row) const {
    return EncodeUserKey(table_, PartitionOf(partition), RowOf(row));
  }
  std::string Bound(int partition) const { return EncodeUserKey(table_, PartitionOf(partition), ""); }

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
      std::map<std::string, std::string> seen;
      while (true) {
        StoreModel::Rows found;
        RowCollector rows(&found);
        Result<ScanAnswer> page = runtime_->RunToEnd(store_->Scan(request, &rows));
        ASSERT_TRUE(page.ok()) << where << ": " << page.status().ToString();
        for (const auto& [key, row] : found) seen[key] = row.content;
        if (page->done) break;
        (direction == Direction::kForward ? request.lower : request.upper) = page->next_key;
      }
      ASSERT_EQ(seen, rows_) << where;
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
};

TEST_F(RangeTest, SplitsAndMergesKeepEveryRow) {
  ASSERT_TRUE(Open().ok());
  MakeTable();
  Fill();
  Compact();
  ASSERT_TRUE(Put(1, 0, "in a memtable").ok());
  for (int p : {3, 1, 5, 2}) ASSERT_TRUE(Split(p).ok());
  ExpectRows("split");
  EXPECT_EQ(store_->RangesOf(table_).size(), 5u);
  ASSERT_TRUE(Delete(2, 3).ok());
  ASSERT_TRUE(Put(5, 1, "after the split").ok());
  Compact();
  ExpectRows("compacted in pieces");
  for (int p : {1, 5, 3}) ASSERT_TRUE(Merge(p).ok());
  ExpectRows("merged");
  Compact();
  LosePower();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(store_->RangesOf(table_).size(), 2u);
  ExpectRows("opened again");
  ASSERT_TRUE(Close().ok());
}

TEST_F(RangeTest, ChangesThatCannotBeAreRefused) {
  ASSERT_TRUE(Open().ok());
  MakeTable();
  Fill();
  EXPECT_EQ(runtime_->RunToEnd(store_->SplitRange(EncodeUserKey(TableId(99), "p", ""))).code(),
            Code::kNotFound);
  // An EGT of a partition is decided in one place: there is none to cut within.
  EXPECT_EQ(runtime_->RunToEnd(store_->SplitRange(Key(3, 1))).code(), Code::kInvalidArgument);
  ASSERT_TRUE(Split(3).ok());
  EXPECT_EQ(Split(3).code(), Code::kAlreadyExists);
  EXPECT_EQ(Merge(2).code(), Code::kInvalidArgument);
  EXPECT_EQ(runtime_->RunToEnd(store_->MergeRanges(TableLowerBound(table_))).code(), Code::kInvalidArgument);
  EXPECT_EQ(Move(3, kRangeShards).status().code(), Code::kInvalidArgument);
  const uint32_t elsewhere = (OwnerOf(3).value + 1) % kRangeShards;
  ASSERT_TRUE(Move(3, elsewhere).ok());
  EXPECT_EQ(Merge(3).code(), Code::kPreconditionFailed);
  ExpectRows("after refusals");
  ASSERT_TRUE(Close().ok());
}

TEST_F(RangeTest, ItsOneRangeATableHasWhateverTheLimitOfSplits) {
  ASSERT_TRUE(Open().ok());
  Store::TableSpec spec;
  spec.account = "account";
  spec.name = "cut";
  for (size_t i = 0; i < kSplitsMax - 1; ++i) {
    spec.split_partitions.push_back("q" + std::to_string(100'000 + i));
  }
  ASSERT_TRUE(runtime_->RunToEnd(store_->CreateTable(spec)).ok());
  for (int i = 0; i < 3; ++i) {
    spec.name = "whole" + std::to_string(i);
    spec.split_partitions.clear();
    ASSERT_TRUE(runtime_->RunToEnd(store_->CreateTable(spec)).ok());
  }
  MakeTable();
  EXPECT_TRUE(Split(3).ok());
  EXPECT_EQ(Split(4).code(), Code::kResourceExhausted);
  ASSERT_TRUE(Merge(3).ok());
  EXPECT_TRUE(Split(4).ok());
  ASSERT_TRUE(Close().ok());
}

TEST_F(RangeTest, AMoveTakesEverythingAlong) {
  ASSERT_TRUE(Open().ok());
  MakeTable();
  Fill();
  Compact();
  ASSERT_TRUE(Split(3).ok());
  ASSERT_TRUE(Put(4, 0, "in a table of level 0").ok());
  ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok());
  ASSERT_TRUE(Put(4, 1, "in the memtable", DurabilityLevel::kMemory).ok());
  ASSERT_TRUE(Delete(4, 2).ok());
  const ShardId from = OwnerOf(4);
  const uint32_t to = (from.value + 1) % kRangeShards;
  const Result<Store::MoveReport> moved = Move(4, to);
  ASSERT_TRUE(moved.ok()) << moved.status().ToString();
  EXPECT_EQ(moved->from, from);
  EXPECT_EQ(OwnerOf(4).value, to);
  EXPECT_EQ(OwnerOf(1), from);
  ExpectRows("moved");
  // Versions go on above what the old owner gave (F17), and conditions hold against what came along (F16).
  WriteOp update;
  update.content = "under its new owner";
  update.precondition = Precondition::kVersionEquals;
  update.expected_version = versions_[Key(4, 1)];
  const Version before = versions_[Key(4, 1)];
  const WriteOutcome outcome = Write(update, Key(4, 1));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_GT(outcome.version, before);
  rows_[Key(4, 1)] = "under its new owner";
  LosePower();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(OwnerOf(4).value, to);
  ExpectRows("after a loss of power");
  ASSERT_TRUE(Move(4, to).ok());  // Where it is.
  ASSERT_TRUE(Close().ok());
}

// What its log still holds of a range that was away must stay dead (F36): deleted, and older than what was
// written elsewhere. Without the compaction, which flushes all shards, that log holds all of it.
TEST_F(RangeTest, ARangeThatComesBackBringsNothingOldBackToLife) {
  for (const bool compacted : {false, true}) {
    for (const bool reopened : {false, true}) {
      SCOPED_TRACE(std::string(compacted ? "compacted" : "not compacted") + (reopened ? ", reopened" : ""));
      RangeTest store;
      ASSERT_TRUE(store.Open().ok());
      store.MakeTable();
      store.Fill();
      const uint32_t home = store.OwnerOf(0).value, away = (home + 1) % kRangeShards;
      ASSERT_TRUE(store.Move(0, away).ok());
      for (int r = 0; r < kRows; ++r) ASSERT_TRUE(store.Delete(2, r).ok());
      for (int r = 0; r < kRows; ++r) ASSERT_TRUE(store.Put(3, r, "written elsewhere").ok());
      if (compacted) store.Compact();  // No tombstone is left.
      if (reopened) {
        store.LosePower();
        ASSERT_TRUE(store.Open().ok());
      }
      ASSERT_TRUE(store.Move(0, home).ok());
      store.ExpectRows("back again");
      store.LosePower();
      ASSERT_TRUE(store.Open().ok());
      store.ExpectRows("back again, and opened");
      EXPECT_TRUE(store.Close().ok());
    }
  }
}

// What came along as one record may be cut, and a part of it move on, before it is in a table.
TEST_F(RangeTest, APartOfWhatCameAlongMayMoveOn) {
  for (const bool loses_power : {true, false}) {
    for (const int moves_on : {3, 5}) {
      SCOPED_TRACE(std::to_string(moves_on) + (loses_power ? " moves on, power" : " moves on, closed"));
      RangeTest store;
      ASSERT_TRUE(store.Open().ok());
      store.MakeTable();
      store.Fill();
      ASSERT_TRUE(store.Split(3).ok());
      const uint32_t home = store.OwnerOf(4).value, away = (home + 1) % kRangeShards,
                     third = (home + 2) % kRangeShards;
      ASSERT_TRUE(store.Move(3, away).ok());
      ASSERT_TRUE(store.Split(5).ok());
      ASSERT_TRUE(store.Move(moves_on, third).ok());
      ASSERT_TRUE(store.Delete(moves_on, 0).ok());
      store.ExpectRows("moved on");
      if (loses_power) {
        store.LosePower();
      } else {
        ASSERT_TRUE(store.Close().ok());
      }
      ASSERT_TRUE(store.Open().ok());
      store.ExpectRows("opened again");
      ASSERT_TRUE(store.Close().ok());
    }
  }
}

Task<void> MoveBeside(Store* store, std::string key, uint32_t to, Status* status, bool* ended) {
  *status = (co_await store->MoveRange(std::move(key), ShardId(to))).status();
  *ended = true;
}

// What a move brings along lies in the new owner's memtable before it is decided whether it counts: the
// memtable that has it may be frozen, but becomes no table until then (F36).
TEST_F(RangeTest, TheNewOwnersFlushWaitsUntilTheMoveIsDecided) {
  for (const bool made : {true, false}) {
    SCOPED_TRACE(made ? "made" : "not made");
    RangeTest store;
    ASSERT_TRUE(store.Open().ok());
    store.MakeTable();
    store.Fill();
    ASSERT_TRUE(store.Split(3).ok());
    const uint32_t home = store.OwnerOf(1).value, away = (home + 1) % kRangeShards;
    ASSERT_TRUE(store.Move(1, away).ok());
    // So that no flush of what came along is under way below, where entries are counted.
    ASSERT_TRUE(store.runtime_->RunToEnd(store.store_->FlushMemtables()).ok());
    for (int i = 0; i < 2; ++i)
      ASSERT_TRUE(store.Put(4, 0, "of several versions the newest goes along").ok());
    ASSERT_TRUE(store.Delete(4, 1).ok());
    SimFault swap;
    swap.effect = made ? SimEffect::kSlow : SimEffect::kError;
    swap.operations = SimOps(SimOp::kRename);
    swap.path_prefix = "meta/catalog";
    swap.delay_ns = 2'000'000'000;
    swap.count = 1;
    store.runtime_->AddFault(swap);
    if (!made) {  // In doubt until a read of it ends.
      SimFault read = swap;
      read.effect = SimEffect::kSlow;
      read.operations = SimOps(SimOp::kSize);
      store.runtime_->AddFault(read);
    }
    Status moved;
    bool ended = false;
    const uint64_t entries = store.store_->Statistics()[away].memtable_entries;
    store.runtime_->Spawn(MoveBeside(store.store_.get(), store.Bound(4), away, &moved, &ended));
    while (!ended && store.store_->Statistics()[away].memtable_entries == entries) {
      store.runtime_->RunToEnd(Pause(1'000'000));
    }
    const uint64_t flushes = store.store_->Statistics()[away].flushes;
    std::string large(900, 'x');
    for (int i = 0; i < 120; ++i) {
      ASSERT_TRUE(store.Put(1, i % kRows, large + std::to_string(i), DurabilityLevel::kMemory).ok());
    }
    EXPECT_FALSE(ended) << "the memtable was to fill up before the move is decided";
    EXPECT_GT(store.store_->Statistics()[away].frozen_memtables, 0u);
    EXPECT_EQ(store.store_->Statistics()[away].flushes, flushes);
    ASSERT_TRUE(store.runtime_->RunToEnd(store.store_->FlushMemtables()).ok());
    EXPECT_GT(store.store_->Statistics()[away].flushes, flushes);
    EXPECT_TRUE(ended);
    EXPECT_EQ(moved.ok(), made) << moved.ToString();
    store.runtime_->ClearFaults();
    EXPECT_EQ(store.OwnerOf(4).value, made ? away : home);
    store.ExpectRows("decided");
    store.LosePower();
    ASSERT_TRUE(store.Open().ok());
    store.ExpectRows("opened again");
    ASSERT_TRUE(store.Close().ok());
  }
}

// Moves beside a log whose flushes take long.
class SlowLogTest : public RangeTest {
 public:
  using RangeTest::RangeTest;

 protected:
  static constexpr uint64_t kSlowFlushNanos = 2'000'000'000;

  // Rows in two ranges, all durable, as are versions for the next writes.
  void OpenSplitAndFlushed() {
    ASSERT_TRUE(Open().ok());
    MakeTable();
    Fill();
    ASSERT_TRUE(Split(3).ok());
    ASSERT_TRUE(Put(1, 1, "takes the lease of versions", DurabilityLevel::kMemory).ok());
    ASSERT_TRUE(runtime_->RunToEnd(store_->Barrier()).ok());
  }
  void SlowLogOf(int partition) {
    SimFault slow;
    slow.effect = SimEffect::kSlow;
    slow.operations = SimOps(SimOp::kFlush);
    slow.path_prefix = "log-1-" + std::to_string(OwnerOf(partition).value) + "/";
    slow.delay_ns = kSlowFlushNanos;
    runtime_->AddFault(slow);
  }
};

// What of unflushed or failed writes a loss of power leaves on the disk depends on the seed.
class RangeSeedTest : public SlowLogTest, public testing::WithParamInterface<uint64_t> {
 public:
  RangeSeedTest() : SlowLogTest(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Seeds, RangeSeedTest, testing::Range(uint64_t{1}, uint64_t{13}));

// A prefix of what a shard decided, also where a part of it went away (F12).
TEST_P(RangeSeedTest, WhatIsOlderThanWhatMovedSurvivesToo) {
  ASSERT_NO_FATAL_FAILURE(OpenSplitAndFlushed());
  SlowLogOf(4);
  ASSERT_TRUE(Put(1, 0, "stays", DurabilityLevel::kMemory).ok());
  ASSERT_TRUE(Put(4, 0, "moves", DurabilityLevel::kMemory).ok());
  ASSERT_TRUE(Move(4, (OwnerOf(4).value + 1) % kRangeShards).ok());
  LosePower();
  ASSERT_TRUE(Open().ok());
  ExpectRows("opened again");
  ASSERT_TRUE(Close().ok());
}

// What came after the last write of the range does not go along, so nothing of it need survive the move.
TEST_F(SlowLogTest, AMoveDoesNotWaitForWhatItsOldShardTookLater) {
  ASSERT_NO_FATAL_FAILURE(OpenSplitAndFlushed());
  ASSERT_TRUE(Put(4, 0, "moves").ok());
  SlowLogOf(4);
  ASSERT_TRUE(Put(1, 0, "stays", DurabilityLevel::kMemory).ok());
  const auto moved = Move(4, (OwnerOf(4).value + 1) % kRangeShards);
  ASSERT_TRUE(moved.ok()) << moved.status().ToString();
  EXPECT_LT(moved->pause_ns, kSlowFlushNanos);
  ExpectRows("moved");
  ASSERT_TRUE(Close().ok());
}

TEST_P(RangeSeedTest, AMoveToAShardWhoseLogFailsIsNotMadeAndCostsNothing) {
  ASSERT_TRUE(Open().ok());
  MakeTable();
  Fill();
  Compact();
  ASSERT_TRUE(Split(3).ok());
  const ShardId home = OwnerOf(4);
  const uint32_t away = (home.value + 1) % kRangeShards;
  ASSERT_TRUE(Move(1, away).ok());
  SimFault fault;
  fault.operations = SimOps(SimOp::kWrite, SimOp::kFlush);
  fault.path_prefix = "log-1-" + std::to_string(away) + "/";
  runtime_->AddFault(fault);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Move(4, away).status().code(), Code::kIoError);
  EXPECT_EQ(OwnerOf(4), home);
  ASSERT_TRUE(Put(4, 0, "its fence was lifted").ok());
  LosePower();
  ASSERT_TRUE(Open().ok());
  ExpectRows("opened again");
  ASSERT_TRUE(Put(1, 0, "the log works again").ok());
  LosePower();
  ASSERT_TRUE(Open().ok());
  ExpectRows("its next record counts");
  ASSERT_TRUE(Move(4, away).ok());
  for (int r = 1; r < kRows; ++r) ASSERT_TRUE(Put(4, r, "moved at last").ok());
  LosePower();
  ASSERT_TRUE(Open().ok());
  ExpectRows("moved and opened again");
  ASSERT_TRUE(Close().ok());
}

// What happens to the range of partitions 3 to 5 and the one in front, as far as nothing fails.
bool ThereAndBackWithDeletes(RangeTest& store, uint32_t home, uint32_t away) {
  if (!store.Put(4, 0, "at home").ok() || !store.Move(4, away).ok()) return false;
  for (int r = 1; r < kRows; ++r) {
    if (!store.Delete(4, r).ok()) return false;
  }
  return store.Put(5, 0, "away").ok() && store.Move(4, home).ok() && store.Put(5, 1, "back").ok();
}

bool BothAndThenJoined(RangeTest& store, uint32_t home, uint32_t away) {
  return store.Put(4, 0, "at home").ok() && store.Move(1, away).ok() && store.Move(4, away).ok() &&
         store.Merge(3).ok() && store.Put(5, 0, "away").ok() && store.Delete(1, 0).ok() &&
         store.Split(2).ok() && store.Move(1, home).ok() && store.Put(1, 1, "back").ok();
}

class RangeCrashTest : public testing::TestWithParam<bool (*)(RangeTest&, uint32_t, uint32_t)> {};

// Crashed after each disk operation of it.
TEST_P(RangeCrashTest, AtAnyStepLeavesOneOwnerAndEveryRow) {
  RangeTest first;
  ASSERT_TRUE(first.Open().ok());
  first.MakeTable();
  first.Fill();
  first.Compact();
  ASSERT_TRUE(first.Split(3).ok());
  ASSERT_TRUE(first.Close().ok());
  uint64_t steps = 0, moved = 0, stayed = 0;
  for (bool ended = false; !ended; ++steps) {
    for (const bool power : {true, false}) {
      RangeTest copy(*first.disk_);
      copy.table_ = first.table_;
      copy.rows_ = first.rows_;
      ASSERT_TRUE(copy.Open().ok());
      const uint32_t home = copy.OwnerOf(4).value, away = (home + 1) % kRangeShards;
      copy.runtime_->CrashAtOperation(copy.runtime_->operations_completed() + 1 + steps,
                                      SimCrashMoment::kAfter);
      ended = GetParam()(copy, home, away);
      copy.runtime_->CrashNow();
      (void)copy.Close();
      if (power)
        copy.disk_->CrashPower();
      else
        copy.disk_->CrashProcess();
      ASSERT_TRUE(copy.Open().ok()) << "step " << steps;
      (copy.OwnerOf(4).value == home ? stayed : moved) += 1;
      copy.AskForUnanswered();
      copy.ExpectRows("crash of " + std::string(power ? "power" : "process") + " after step " +
                      std::to_string(steps));
      ASSERT_TRUE(copy.Close().ok());
    }
  }
  EXPECT_GT(steps, 40u);
  EXPECT_GT(moved, 10u);
  EXPECT_GT(stayed, 10u);
}

INSTANTIATE_TEST_SUITE_P(Courses, RangeCrashTest,
                         testing::Values(&ThereAndBackWithDeletes, &BothAndThenJoined));

// ---- Another number of shards.

// Crashes are tried at every so many operations.
constexpr uint64_t kStride = kSlowdown == 1 ? 1 : 5;

class OtherShardsCrashTest : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

// Crashed after each disk operation of the opening, and then opened with either number.
TEST_P(OtherShardsCrashTest, AtAnyStepLeavesOneOwnerAndEveryRow) {
  const auto [before, after] = GetParam();
  RangeTest first;
  ASSERT_TRUE(first.Open(before).ok());
  first.MakeTable();
  first.Fill();
  first.Compact();
  ASSERT_TRUE(first.Split(2).ok());
  ASSERT_TRUE(first.Split(4).ok());
  ASSERT_TRUE(first.Move(4, before - 1).ok());
  ASSERT_TRUE(first.Delete(4, 1).ok());  // What is in logs only has to be replayed first.
  ASSERT_TRUE(first.Put(1, 2, "second").ok());
  first.LosePower();
  uint64_t steps = 0, old_layouts = 0, new_layouts = 0;
  for (bool ended = false; !ended; steps += kStride) {
    for (const bool power : {true, false}) {
      RangeTest copy(*first.disk_);
      copy.table_ = first.table_;
      copy.rows_ = first.rows_;
      ended = copy.Open(after, 1 + steps).ok() && !copy.runtime_->crashed();
      copy.runtime_->CrashNow();
      (void)copy.Close();
      if (power)
        copy.disk_->CrashPower();
      else
        copy.disk_->CrashProcess();
      ASSERT_TRUE(copy.Open(steps % 2 == 0 ? before : after).ok()) << "step " << steps;
      ++(copy.store_->open_report().shards_before == before ? old_layouts : new_layouts);
      copy.ExpectRows("crash of " + std::string(power ? "power" : "process") + " after step " +
                      std::to_string(steps));
      ASSERT_TRUE(copy.Put(4, 3, "third").ok());
      ASSERT_TRUE(copy.Close().ok());
      ASSERT_TRUE(copy.Open(after).ok()) << "step " << steps;
      copy.ExpectRows("opened again after step " + std::to_string(steps));
      ASSERT_TRUE(copy.Close().ok());
    }
  }
  EXPECT_GT(steps, 40u);
  EXPECT_GT(old_layouts, 10u / kSlowdown);
  EXPECT_GT(new_layouts, 10u / kSlowdown);
}

INSTANTIATE_TEST_SUITE_P(Counts, OtherShardsCrashTest,
                         testing::Values(std::pair(3, 1), std::pair(1, 4), std::pair(3, 4)));

}  // namespace
}  // namespace partita

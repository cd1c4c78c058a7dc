#include <gtest/gtest.h>

#include <string>

#include "test/engine/range_fixture.h"
#include "test/support/pause.h"

namespace partita {
namespace {

// Ranges that split, merge and move. covers: F1 F10 F17 F19 F36 F67

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

// As the balancer finds them when the store is opened anew.
TEST_F(RangeTest, ABoundMadeByLoadIsSuchUntilSomebodyAsksForIt) {
  const auto made_by_load = [this] {
    std::vector<bool> made;
    for (const RangeDescriptor& range : store_->RangesOf(table_)) made.push_back(range.made_by_load);
    return made;
  };
  ASSERT_TRUE(Open().ok());
  MakeTable();
  ASSERT_TRUE(Split(1).ok());
  ASSERT_TRUE(runtime_->RunToEnd(store_->SplitRange(Bound(3), /*by_load=*/true)).ok());
  ASSERT_TRUE(runtime_->RunToEnd(store_->SplitRange(Bound(5), /*by_load=*/true)).ok());
  LosePower();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(made_by_load(), std::vector<bool>({false, false, true, true}));
  EXPECT_EQ(Split(3).code(), Code::kAlreadyExists);
  LosePower();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(made_by_load(), std::vector<bool>({false, false, false, true}));
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
  EXPECT_EQ(Move(3, kShards).status().code(), Code::kInvalidArgument);
  const uint32_t elsewhere = (OwnerOf(3).value + 1) % kShards;
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

TEST_F(RangeTest, AFileThatShardsShareIsCountedOnce) {
  ASSERT_TRUE(Open().ok());
  MakeTable();
  Fill();
  ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok());
  const auto files = [this] {
    uint64_t files = 0, entries = 0;
    for (const ShardStatistics& shard : store_->Statistics()) {
      for (const ShardStatistics::Level& level : shard.levels) files += level.files, entries += level.entries;
    }
    return std::pair(files, entries);
  };
  const auto before = files();
  ASSERT_TRUE(Split(3).ok());
  ASSERT_TRUE(Move(3, (OwnerOf(3).value + 1) % kShards).ok());
  EXPECT_EQ(files(), before);
  EXPECT_EQ(disk_->ListFiles("tables/").size(), before.first);
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
  const uint32_t to = (from.value + 1) % kShards;
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

// An entry takes its time behind the fence however small it is: many tombstones are flushed before it, as
// many bytes are.
TEST_F(RangeTest, ManySmallEntriesAreFlushedBeforeTheFence) {
  memtable_data_bytes_ = 1u << 20;
  ASSERT_TRUE(Open().ok());
  MakeTable();
  const uint32_t home = OwnerOf(4).value, away = (home + 1) % kShards;
  const auto write = [&](WriteKind kind, int rows) {
    for (int first = 0; first < rows; first += 100) {
      std::vector<std::string> keys;
      for (int i = 0; i < 100; ++i) keys.push_back(Key(4, first + i));
      std::vector<WriteOp> ops(keys.size());
      for (size_t i = 0; i < ops.size(); ++i) {
        ops[i].kind = kind;
        ops[i].user_key = keys[i];
      }
      WriteRequest request;
      request.table = table_;
      request.ops = ops;
      ASSERT_TRUE(runtime_->RunToEnd(store_->Write(request)).status.ok());
    }
  };
  constexpr int kMany = 4500;
  ASSERT_NO_FATAL_FAILURE(write(WriteKind::kPut, kMany));
  ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok());
  ASSERT_NO_FATAL_FAILURE(write(WriteKind::kDelete, 500));
  const Result<Store::MoveReport> few = Move(4, away);
  ASSERT_TRUE(few.ok()) << few.status().ToString();
  EXPECT_GT(few->rest_bytes, 500u * 10);
  ASSERT_NO_FATAL_FAILURE(write(WriteKind::kPut, 500));
  ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok());
  ASSERT_NO_FATAL_FAILURE(write(WriteKind::kDelete, kMany));
  const Result<Store::MoveReport> many = Move(4, home);
  ASSERT_TRUE(many.ok()) << many.status().ToString();
  EXPECT_EQ(many->rest_bytes, 0u);
  ExpectRows("all are deleted");
  ASSERT_TRUE(Close().ok());
}

// covers: F17
// A table made anew begins above what the one before it gave. So does its range wherever it moves, though
// nothing was written to it yet.
TEST_F(RangeTest, WhatAnEmptyRangeGivesBeginsAboveWhatATableOfThatNameGave) {
  wall_ahead_ticks_ = 3600 * kTicksPerSecond;
  ASSERT_TRUE(Open().ok());
  MakeTable();
  Fill();
  const Version given = versions_[Key(kPartitions - 1, kRows - 1)];
  const ShardId first = OwnerOf(0);
  ASSERT_TRUE(Close().ok());
  wall_ahead_ticks_ = 0;  // The clock is put right.
  ASSERT_TRUE(Open().ok());
  do {
    ASSERT_TRUE(runtime_->RunToEnd(store_->DeleteTable("default", "rows")).ok());
    MakeTable();
  } while (OwnerOf(0) == first);
  const uint32_t third = kShards - first.value - OwnerOf(0).value;
  ASSERT_TRUE(Move(0, third).ok());
  rows_.clear();
  ASSERT_TRUE(Put(0, 0, "anew").ok());
  EXPECT_GT(versions_[Key(0, 0)], given);
  ExpectRows("moved");
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
      const uint32_t home = store.OwnerOf(0).value, away = (home + 1) % kShards;
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
      const uint32_t home = store.OwnerOf(4).value, away = (home + 1) % kShards, third = (home + 2) % kShards;
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
    const uint32_t home = store.OwnerOf(1).value, away = (home + 1) % kShards;
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

}  // namespace
}  // namespace partita

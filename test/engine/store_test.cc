#include "engine/store.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/manifest.h"
#include "test/support/small_store.h"

namespace partita {
namespace {

std::unique_ptr<Store> OpenStore(SimRuntime& runtime, StoreOptions options) {
  Result<std::unique_ptr<Store>> store = runtime.RunToEnd(Store::Open(runtime, std::move(options)));
  EXPECT_TRUE(store.ok()) << store.status().ToString();
  return store.ok() ? std::move(store).value() : nullptr;
}

TableId MakeTable(SimRuntime& runtime, Store& store, std::string name) {
  Store::TableSpec spec;
  spec.account = "default";
  spec.name = std::move(name);
  spec.raw = true;
  Result<TableDescriptor> table = runtime.RunToEnd(store.CreateTable(std::move(spec)));
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  return table->id;
}

WriteOutcome WriteOne(SimRuntime& runtime, Store& store, TableId table, WriteOp op,
                      DurabilityLevel level = DurabilityLevel::kPower) {
  WriteRequest request;
  request.table = table;
  request.ops = std::span<const WriteOp>(&op, 1);
  request.durability = level;
  return runtime.RunToEnd(store.Write(request));
}

Status PutInto(SimRuntime& runtime, Store& store, TableId table, std::string_view pk, std::string_view rk,
               std::string_view value, DurabilityLevel level = DurabilityLevel::kPower) {
  std::string key = EncodeUserKey(table, pk, rk);
  WriteOp op;
  op.user_key = key;
  op.content = value;
  return WriteOne(runtime, store, table, op, level).status;
}

std::string GetText(SimRuntime& runtime, Store& store, TableId table, std::string_view pk,
                    std::string_view rk) {
  std::string content;
  std::string key = EncodeUserKey(table, pk, rk);
  Result<Shard::ReadAnswer> answer = runtime.RunToEnd(store.Get(key, &content));
  if (!answer.ok()) return answer.status().ToString();
  return answer->state == Shard::ReadState::kFound ? content : "absent";
}

TEST(StoreTest, GivesBackWhatWasPutAfterACleanRestart) {
  SimDisk disk(1);
  TableId table;
  {
    SimRuntime runtime({.seed = 1, .shards = 2}, disk);
    std::unique_ptr<Store> store = OpenStore(runtime, SmallStoreOptions(2));
    ASSERT_NE(store, nullptr);
    table = MakeTable(runtime, *store, "first");
    EXPECT_TRUE(PutInto(runtime, *store, table, "p", "r", "value").ok());
    EXPECT_EQ(GetText(runtime, *store, table, "p", "r"), "value");
    EXPECT_EQ(GetText(runtime, *store, table, "p", "other"), "absent");
    EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
  }
  SimRuntime runtime({.seed = 2, .shards = 2}, disk);
  std::unique_ptr<Store> store = OpenStore(runtime, SmallStoreOptions(2));
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(GetText(runtime, *store, table, "p", "r"), "value");
  EXPECT_TRUE(store->open_report().clean_shutdown);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

TEST(StoreTest, KeepsEverythingThroughFlushesAndCompactions) {
  SimDisk disk(7);
  SimRuntime runtime({.seed = 7, .shards = 2}, disk);
  std::unique_ptr<Store> store = OpenStore(runtime, SmallStoreOptions(2));
  ASSERT_NE(store, nullptr);
  TableId table = MakeTable(runtime, *store, "many");
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 3000; ++i) {
    std::string row = "row" + std::to_string(i * 7919 % 1000);
    std::string value = "value" + std::to_string(i) + std::string(100, 'x');
    ASSERT_TRUE(PutInto(runtime, *store, table, "p", row, value, DurabilityLevel::kProcess).ok());
    expected[row] = value;
  }
  ASSERT_TRUE(runtime.RunToEnd(store->CompactAll()).ok());
  for (const auto& [row, value] : expected) ASSERT_EQ(GetText(runtime, *store, table, "p", row), value);
  std::vector<ShardStatistics> statistics = store->Statistics();
  EXPECT_GT(statistics[table.value % 2].flushes, 3u);
  EXPECT_GT(statistics[table.value % 2].compactions, 0u);
  Result<Store::VerifyResult> verified = runtime.RunToEnd(store->Verify(nullptr));
  ASSERT_TRUE(verified.ok());
  EXPECT_THAT(verified->damages, testing::IsEmpty());
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

Task<void> Idle(uint64_t nanos) { co_await SleepFor(nanos); }

// While much is flushed level 0 may become deep; once nobody writes it is merged without being asked.
TEST(StoreTest, MergesADeepLevel0WhenWritersAreDone) {
  SimDisk disk(9);
  SimRuntime runtime({.seed = 9, .shards = 1}, disk);
  StoreOptions options = SmallStoreOptions(1);
  options.merged_per_second = 100'000;  // A disk so slow that half a megabyte in a few seconds is much.
  std::unique_ptr<Store> store = OpenStore(runtime, options);
  ASSERT_NE(store, nullptr);
  TableId table = MakeTable(runtime, *store, "many");
  std::mt19937_64 random(9);
  const auto put = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const std::string row = std::to_string(10'000 + i * 7919 % 1000);
      std::string value(1000, ' ');
      for (char& byte : value) byte = static_cast<char>(random());
      EXPECT_TRUE(PutInto(runtime, *store, table, "p", row, value, DurabilityLevel::kProcess).ok());
      if (i % 16 == 0) runtime.Run(Idle(50'000'000));  // For flushes: each takes what is there.
    }
  };
  const auto files = [&] { return store->Statistics()[0].levels[0].files; };
  put(1500);
  ASSERT_TRUE(runtime.RunToEnd(store->CompactAll()).ok());
  EXPECT_LT(files(), kLevel0DepthCalm);
  const uint64_t compactions = store->Statistics()[0].compactions;
  put(500);
  runtime.Run(Idle(2'000'000'000));  // Flushes are done by then, and a merge that is due would be, too.
  EXPECT_EQ(store->Statistics()[0].compactions, compactions);
  EXPECT_GT(files(), kLevel0DepthCalm + 2) << store->Statistics()[0].flushes;
  runtime.Run(Idle(120'000'000'000));
  EXPECT_LT(files(), kLevel0DepthCalm);
  EXPECT_GT(store->Statistics()[0].compactions, compactions);
  // The wait for calm does not hold up the end.
  put(500);
  runtime.Run(Idle(2'000'000'000));
  EXPECT_GT(files(), kLevel0DepthCalm);
  const uint64_t closed_at_ns = runtime.now_ns();
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
  EXPECT_LT(runtime.now_ns() - closed_at_ns, 200'000'000u);
}

// What conditions ask for is read together when memory does not have it; each is decided by its own row.
TEST(StoreTest, TransactionsDecideOnRowsThatOnlyTheDiskHas) {
  SimDisk disk(11);
  TableId table;
  const auto name = [](int row) { return std::to_string(10'000 + row); };
  {
    SimRuntime runtime({.seed = 11, .shards = 1}, disk);
    std::unique_ptr<Store> store = OpenStore(runtime, SmallStoreOptions(1));
    ASSERT_NE(store, nullptr);
    table = MakeTable(runtime, *store, "cold");
    const std::string value(1000, 'v');
    for (int row = 0; row < 400; ++row) {
      ASSERT_TRUE(PutInto(runtime, *store, table, "p", name(row), value).ok());
    }
    EXPECT_GT(store->Statistics()[0].flushes, 5u);
    EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
  }
  SimRuntime runtime({.seed = 12, .shards = 1}, disk);
  std::unique_ptr<Store> store = OpenStore(runtime, SmallStoreOptions(1));
  ASSERT_NE(store, nullptr);
  // The rows from `first` on, in no order; row `absent` is asked for under a name that none has.
  const auto write = [&](int first, int absent, std::string_view content) {
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i) {
      const int row = first + i * 37 % 100;
      keys.push_back(EncodeUserKey(table, "p", name(row) + (row == absent ? "x" : "")));
    }
    std::vector<WriteOp> ops;
    for (const std::string& key : keys) {
      ops.push_back({.precondition = Precondition::kPresent, .user_key = key, .content = content});
    }
    const WriteRequest request{.table = table, .ops = ops};
    return runtime.RunToEnd(store->Write(request));
  };
  const WriteOutcome refused = write(0, /*absent=*/37, "refused");  // The second operation's row.
  EXPECT_EQ(refused.status.code(), Code::kNotFound);
  EXPECT_EQ(refused.failed_op, 1u);
  const WriteOutcome written = write(150, /*absent=*/-1, "written");
  EXPECT_TRUE(written.status.ok()) << written.status.ToString();
  for (int row = 0; row < 400; ++row) {
    const std::string expected = row >= 150 && row < 250 ? "written" : std::string(1000, 'v');
    ASSERT_EQ(GetText(runtime, *store, table, "p", name(row)), expected) << row;
  }
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

// Rows that were read while they were in a memtable, or took the place of rows that were in memory, need not
// be read from the disk once they are flushed; others do.
TEST(StoreTest, WhatReadersWantIsAtHandAfterTheFlush) {
  SimDisk disk(13);
  SimRuntime runtime({.seed = 13, .shards = 1}, disk);
  std::unique_ptr<Store> store = OpenStore(runtime, SmallStoreOptions(1, /*memtable_data_bytes=*/4u << 20));
  ASSERT_NE(store, nullptr);
  const TableId table = MakeTable(runtime, *store, "wanted");
  const std::string value(1000, 'v');
  const auto key_of = [&](int row) { return EncodeUserKey(table, "p", std::to_string(10'000 + row)); };
  const auto write = [&](int first, int last, Precondition precondition) {
    std::vector<std::string> keys;
    for (int row = first; row < last; ++row) keys.push_back(key_of(row));
    std::vector<WriteOp> ops;
    for (const std::string& key : keys)
      ops.push_back({.precondition = precondition, .user_key = key, .content = value});
    const WriteRequest request{.table = table, .ops = ops};
    ASSERT_TRUE(runtime.RunToEnd(store->Write(request)).status.ok()) << first;
  };
  // Rows beside them may lie in the same block.
  const auto at_hand = [&](int first, int last) {
    int count = 0;
    for (int row = first; row < last; ++row) {
      std::string content;
      count += store->TryGet(key_of(row), &content).state == Shard::ReadState::kFound;
    }
    return count;
  };
  const auto flush = [&] { ASSERT_TRUE(runtime.RunToEnd(store->FlushMemtables()).ok()); };
  for (int first = 0; first < 300; first += 100) write(first, first + 100, Precondition::kNone);
  write(100, 200, Precondition::kPresent);
  EXPECT_EQ(at_hand(250, 251), 1);
  flush();
  EXPECT_EQ(at_hand(100, 200), 100);
  EXPECT_EQ(at_hand(250, 251), 1);
  EXPECT_EQ(at_hand(0, 90) + at_hand(210, 240) + at_hand(260, 300), 0);

  write(0, 90, Precondition::kPresent);  // Which nobody has read since the last time.
  write(100, 200, Precondition::kPresent);
  flush();
  EXPECT_EQ(at_hand(100, 200), 100);
  EXPECT_EQ(at_hand(0, 80), 0);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

TEST(StoreTest, WhatIsFlushedIsAtHandWhereTheCacheHasMemoryToSpare) {
  for (const uint32_t rows : {1'000u, 90'000u}) {
    SimDisk disk(13);
    SimRuntime runtime({.seed = 13, .shards = 1}, disk);
    StoreOptions options = SmallStoreOptions(1, /*memtable_data_bytes=*/4u << 20);
    options.caches_flushes = true;
    options.reserve_bytes = 0;
    std::unique_ptr<Store> store = OpenStore(runtime, options);
    ASSERT_NE(store, nullptr);
    const TableId table = MakeTable(runtime, *store, "flushed");
    const std::string value(1000, 'v');
    const auto key_of = [&](uint32_t row) {
      return EncodeUserKey(table, "p", std::to_string(100'000 + row));
    };
    for (uint32_t first = 0; first < rows; first += 100) {
      std::vector<std::string> keys;
      for (uint32_t row = first; row < first + 100; ++row) keys.push_back(key_of(row));
      std::vector<WriteOp> ops;
      for (const std::string& key : keys) ops.push_back({.user_key = key, .content = value});
      ASSERT_TRUE(runtime.RunToEnd(store->Write({.table = table, .ops = ops})).status.ok()) << first;
    }
    ASSERT_TRUE(runtime.RunToEnd(store->FlushMemtables()).ok());
    ASSERT_TRUE(runtime.RunToEnd(store->CompactAll()).ok());
    uint32_t at_hand = 0;
    for (uint32_t row = 0; row < rows; ++row) {
      std::string content;
      at_hand += store->TryGet(key_of(row), &content).state == Shard::ReadState::kFound;
    }
    // All, or as much as there is memory for.
    if (rows == 1'000) {
      EXPECT_EQ(at_hand, rows);
    } else {
      EXPECT_GT(at_hand, 20'000u);
      EXPECT_LT(at_hand, 60'000u);
    }
    EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
  }
}

// One table keeps one shard busy: it may fill what the other leaves unused, but for a memtable's room.
TEST(StoreTest, AShardThatWritesAloneFreezesLargerMemtables) {
  SimDisk disk(9);
  SimRuntime runtime({.seed = 9, .shards = 2}, disk);
  StoreOptions options = SmallStoreOptions(2);
  options.memtable_data_bytes = SIZE_MAX;
  options.log_segment_bytes = 8u << 20;
  std::unique_ptr<Store> store = OpenStore(runtime, options);
  ASSERT_NE(store, nullptr);
  const MemoryPlan plan = store->memory_plan();
  const TableId alone = MakeTable(runtime, *store, "alone");
  const std::string value(16u << 10, 'v');
  // The largest that the active memtable of the table's shard becomes, in so many puts.
  const auto fill = [&](TableId table, int puts) {
    uint64_t largest = 0;
    for (int i = 0; i < puts; ++i) {
      EXPECT_TRUE(
          PutInto(runtime, *store, table, "p", std::to_string(i), value, DurabilityLevel::kMemory).ok());
      const ShardStatistics shard = store->Statistics()[table.value % 2];
      if (shard.frozen_memtables == 0) largest = std::max(largest, shard.memtable_bytes);
    }
    return largest;
  };
  const uint64_t share = plan.memtable_bytes - plan.memtable_freeze_bytes;
  const uint64_t reached = fill(alone, static_cast<int>(share / value.size()));
  EXPECT_GT(reached, plan.memtable_freeze_bytes * 3 / 2);
  EXPECT_LE(reached, share / kMemtablesAShard + 2 * value.size());
  EXPECT_GT(store->Statistics()[alone.value % 2].flushes, 0u);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

// What one shard has in its log may be more than its part of the memory that replay needs.
TEST(StoreTest, ManyShardsOfWhichOneWritesOpenForReadingOnly) {
  constexpr uint32_t kShards = 8;
  SimDisk disk(10);
  SimRuntime runtime({.seed = 10, .shards = kShards}, disk);
  StoreOptions options = SmallStoreOptions(kShards);
  options.memory_bytes = 128u << 20;
  options.memtable_data_bytes = SIZE_MAX;
  options.log_segment_bytes = 8u << 20;
  std::unique_ptr<Store> store = OpenStore(runtime, options);
  ASSERT_NE(store, nullptr);
  const uint64_t freeze_bytes = store->memory_plan().memtable_freeze_bytes;
  const TableId alone = MakeTable(runtime, *store, "alone");
  const std::string value(16u << 10, 'v');
  const auto unflushed = [&] { return store->Statistics()[alone.value % kShards].memtable_bytes; };
  int rows = 0;
  for (; unflushed() < freeze_bytes * kMemtableGrowthAlone - 4 * value.size(); ++rows) {
    ASSERT_LT(rows, 1000);
    ASSERT_TRUE(PutInto(runtime, *store, alone, "p", std::to_string(rows), value).ok());
  }
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
  store.reset();

  options.read_only = true;
  options.create_if_missing = false;
  store = OpenStore(runtime, options);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(GetText(runtime, *store, alone, "p", std::to_string(rows - 1)), value);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

// Bytes of the log files of both shards.
uint64_t LogBytes(SimRuntime& runtime, uint32_t shards) {
  uint64_t size = 0;
  for (uint32_t shard = 0; shard < shards; ++shard) {
    Result<std::vector<DirectoryEntry>> entries =
        runtime.RunToEnd(runtime.files().List(LogDirectory(/*layout=*/1, ShardId(shard))));
    EXPECT_TRUE(entries.ok()) << entries.status().ToString();
    if (!entries.ok()) continue;
    for (const DirectoryEntry& entry : *entries) size += entry.size;
  }
  return size;
}

// One shard holds a row, the other nothing. Every opening begins a log segment.
TEST(StoreTest, OpeningOverAndOverTakesNoMoreRoom) {
  SimDisk disk(11);
  TableId table;
  uint64_t early = 0;
  for (uint64_t life = 1; life <= 60; ++life) {
    SimRuntime runtime({.seed = life, .shards = 2}, disk);
    std::unique_ptr<Store> store = OpenStore(runtime, SmallStoreOptions(2));
    ASSERT_NE(store, nullptr);
    if (life == 1) {
      table = MakeTable(runtime, *store, "one");
      ASSERT_TRUE(PutInto(runtime, *store, table, "p", "r", "value").ok());
    }
    ASSERT_EQ(GetText(runtime, *store, table, "p", "r"), "value") << life;
    ASSERT_TRUE(runtime.RunToEnd(store->Close()).ok());
    const uint64_t size = LogBytes(runtime, 2);
    if (life == 20) early = size;
    if (life > 20) {
      ASSERT_LE(size, early + 2 * SmallStoreOptions(2).log_segment_bytes) << life;
    }
  }
}

// Versions given before a log was let go of are not given again.
TEST(StoreTest, VersionsGoOnRisingOverOpeningsWithNothingInTheLog) {
  SimDisk disk(12);
  TableId table;
  Version last;
  for (uint64_t life = 1; life <= 8; ++life) {
    SimRuntime runtime({.seed = life, .shards = 1}, disk);
    std::unique_ptr<Store> store = OpenStore(runtime, SmallStoreOptions(1));
    ASSERT_NE(store, nullptr);
    table = MakeTable(runtime, *store, "t" + std::to_string(life));
    const std::string key = EncodeUserKey(table, "p", "r");
    WriteOp op;
    op.user_key = key;
    op.content = "value";
    const WriteOutcome outcome = WriteOne(runtime, *store, table, op);
    ASSERT_TRUE(outcome.status.ok());
    ASSERT_GT(outcome.version, last) << life;
    last = outcome.version;
    ASSERT_TRUE(runtime.RunToEnd(store->DeleteTable("default", "t" + std::to_string(life)))
                    .ok());  // Its record counts no more.
    ASSERT_TRUE(runtime.RunToEnd(store->Close()).ok());
  }
}

// F5: where flushes are refused no level is given, so no store is opened; nothing is harmed by trying.
TEST(StoreTest, IsNotOpenedWhereTheFileSystemRefusesToFlush) {
  SimDisk disk(5);
  TableId table;
  for (int life = 0; life < 3; ++life) {
    SimRuntime runtime({.seed = 5, .shards = 1}, disk);
    for (SimOp flush : {SimOp::kFlush, SimOp::kFlushDirectory}) {
      const size_t fault = runtime.AddFault({.operations = SimOps(flush), .code = Code::kUnsupported});
      const Result<std::unique_ptr<Store>> refused =
          runtime.RunToEnd(Store::Open(runtime, SmallStoreOptions(1)));
      EXPECT_FALSE(refused.ok()) << life;
      runtime.RemoveFault(fault);
    }
    std::unique_ptr<Store> store = OpenStore(runtime, SmallStoreOptions(1));
    ASSERT_NE(store, nullptr);
    if (life == 0) table = MakeTable(runtime, *store, "rows");
    for (int before = 0; before < life; ++before) {
      std::string content;
      const std::string key = EncodeUserKey(table, "p", "r" + std::to_string(before));
      EXPECT_EQ(runtime.RunToEnd(store->Get(key, &content))->state, Shard::ReadState::kFound);
    }
    ASSERT_TRUE(PutInto(runtime, *store, table, "p", "r" + std::to_string(life), "value").ok());
    ASSERT_TRUE(runtime.RunToEnd(store->Close()).ok());
  }
}

}  // namespace
}  // namespace partita

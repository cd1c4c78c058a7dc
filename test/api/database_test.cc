#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "test/api/database_fixture.h"

// covers: F7 F10 F11 F14 F16 F64 F67 F69, on both real backends.

namespace partita {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

INSTANTIATE_TEST_SUITE_P(Backends, DatabaseTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Uring" : "Threads";
                         });

TEST_P(DatabaseTest, EachWriteActionKeepsItsCondition) {
  Table table = MakeTable();
  EXPECT_EQ(table.Replace(Thing("p", "r", 1)).status.code(), Code::kNotFound);
  EXPECT_EQ(table.Merge(Thing("p", "r", 1)).status.code(), Code::kNotFound);
  EXPECT_EQ(table.Delete("p", "r").status.code(), Code::kNotFound);
  EXPECT_TRUE(table.Insert(Thing("p", "r", 1)).ok());
  EXPECT_EQ(table.Insert(Thing("p", "r", 2)).status.code(), Code::kAlreadyExists);
  EXPECT_EQ(*table.Get("p", "r")->GetInt32("N"), 1);

  Entity patch("p", "r");
  patch.Set("Extra", true);
  EXPECT_TRUE(table.Merge(patch).ok());
  Result<Entity> merged = table.Get("p", "r");
  EXPECT_EQ(merged->property_count(), 3u);
  EXPECT_TRUE(*merged->GetBoolean("Extra"));

  EXPECT_TRUE(table.InsertOrReplace(patch).ok());
  EXPECT_EQ(table.Get("p", "r")->property_count(), 1u);
  EXPECT_TRUE(table.InsertOrMerge(Thing("p", "r", 5)).ok());
  EXPECT_EQ(table.Get("p", "r")->property_count(), 3u);
  EXPECT_TRUE(table.Delete("p", "r").ok());
  EXPECT_EQ(table.Get("p", "r").code(), Code::kNotFound);
  EXPECT_TRUE(table.InsertOrMerge(Thing("p", "r", 6)).ok());
  EXPECT_EQ(*table.Get("p", "r")->GetInt32("N"), 6);
}

TEST_P(DatabaseTest, AStaleEtagIsRefusedAndTheRightOneIsNot) {
  Table table = MakeTable();
  WriteResult first = table.Insert(Thing("p", "r", 1));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(table.Get("p", "r")->etag(), first.etag);
  WriteResult second = table.Replace(Thing("p", "r", 2), first.etag);
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second.etag, first.etag);
  EXPECT_EQ(table.Replace(Thing("p", "r", 3), first.etag).status.code(), Code::kPreconditionFailed);
  EXPECT_EQ(table.Delete("p", "r", first.etag).status.code(), Code::kPreconditionFailed);
  EXPECT_EQ(table.Delete("p", "r", "W/\"wrong\"").status.code(), Code::kPreconditionFailed);
  EXPECT_EQ(table.Delete("p", "r", "nonsense").status.code(), Code::kInvalidArgument);
  EXPECT_EQ(table.Delete("p", "missing", first.etag).status.code(), Code::kNotFound);
  EXPECT_TRUE(table.Merge(Thing("p", "r", 4), "*").ok());
  EXPECT_EQ(*table.Get("p", "r")->GetInt32("N"), 4);
}

TEST_P(DatabaseTest, ATransactionIsAllOrNothingAndNamesTheOperationThatFailed) {
  Table table = MakeTable();
  ASSERT_TRUE(table.Insert(Thing("p", "taken", 0)).ok());
  std::vector<Write> writes;
  for (int i = 0; i < 99; ++i) {
    writes.push_back({WriteAction::kInsert, Thing("p", "row" + std::to_string(i), i), ""});
  }
  writes.push_back({WriteAction::kInsert, Thing("p", "taken", 1), ""});
  WriteResult refused = table.Transact(writes);
  EXPECT_EQ(refused.status.code(), Code::kAlreadyExists);
  EXPECT_EQ(refused.failed_operation, 99u);
  EXPECT_EQ(*table.Count({}), 1u);

  writes.back().action = WriteAction::kReplace;
  WriteResult done = table.Transact(writes);
  ASSERT_TRUE(done.ok()) << done.status.ToString();
  EXPECT_EQ(*table.Count({}), 100u);
  EXPECT_EQ(table.Get("p", "row7")->etag(), done.etag);
  EXPECT_EQ(table.Get("p", "taken")->etag(), done.etag);
}

TEST_P(DatabaseTest, ATransactionBeyondTheRulesIsRefusedBeforeAnythingHappens) {
  Table table = MakeTable();
  std::vector<Write> two_partitions = {{WriteAction::kInsert, Thing("p", "a", 1), ""},
                                       {WriteAction::kInsert, Thing("q", "b", 1), ""}};
  EXPECT_EQ(table.Transact(two_partitions).status.code(), Code::kInvalidArgument);
  std::vector<Write> twice = {{WriteAction::kInsert, Thing("p", "a", 1), ""},
                              {WriteAction::kDelete, Thing("p", "a", 1), ""}};
  EXPECT_EQ(table.Transact(twice).failed_operation, 1u);
  std::vector<Write> many;
  for (int i = 0; i < 101; ++i) many.push_back({WriteAction::kInsert, Thing("p", std::to_string(i), i), ""});
  EXPECT_EQ(table.Transact(many).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(table.Transact(std::span<const Write>()).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(*table.Count({}), 0u);
}

TEST_P(DatabaseTest, ScansGiveKeyOrderInBothDirectionsThroughPages) {
  TableOptions split;
  split.split_partition_keys = {"p3", "p6"};
  Table table = MakeTable("Split", split);
  std::vector<std::string> expected;
  for (int p = 0; p < 9; ++p) {
    for (int r = 0; r < 20; ++r) {
      std::string row = (r < 10 ? "0" : "") + std::to_string(r);
      ASSERT_TRUE(
          table.Insert(Thing("p" + std::to_string(p), row, r), {.durability = Durability::kProcess}).ok());
      expected.push_back("p" + std::to_string(p) + "/" + row);
    }
  }
  for (ScanOrder order : {ScanOrder::kAscending, ScanOrder::kDescending}) {
    for (uint32_t limit : {1u, 7u, 20u, 1000u}) {
      ScanOptions options;
      options.order = order;
      options.limit = limit;
      std::vector<std::string> seen;
      do {
        Result<Page> page = table.Scan(options);
        ASSERT_TRUE(page.ok()) << page.status().ToString();
        EXPECT_LE(page->entities.size(), limit);
        for (const Entity& entity : page->entities)
          seen.push_back(entity.partition_key() + "/" + entity.row_key());
        options.continuation = page->continuation;
      } while (!options.continuation.empty());
      std::vector<std::string> wanted = expected;
      if (order == ScanOrder::kDescending) std::reverse(wanted.begin(), wanted.end());
      EXPECT_EQ(seen, wanted) << "limit " << limit;
    }
  }
  ScanOptions rows;
  rows.partition = "p4";
  rows.row_lower = "05";
  rows.row_upper = "08";
  EXPECT_EQ(table.Scan(rows)->entities.size(), 3u);
  ScanOptions partitions;
  partitions.partition_lower = "p2";
  partitions.partition_upper = "p5";
  EXPECT_EQ(*table.Count(partitions), 60u);
}

TEST_P(DatabaseTest, KeysSortByUtf16CodeUnits) {
  Table table = MakeTable();
  // U+10000 is D800 DC00 in UTF-16 and sorts before U+E000 and U+FFFD there, after them in UTF-8.
  for (const char* key : {"\xF0\x90\x80\x80", "\xEE\x80\x80", "\xEF\xBF\xBD", "z"}) {
    ASSERT_TRUE(table.Insert(Thing(key, "r", 1)).ok());
  }
  Result<Page> page = table.Scan({});
  std::vector<std::string> keys;
  for (const Entity& entity : page->entities) keys.push_back(entity.partition_key());
  EXPECT_THAT(keys, testing::ElementsAre("z", "\xF0\x90\x80\x80", "\xEE\x80\x80", "\xEF\xBF\xBD"));
}

TEST_P(DatabaseTest, EveryLevelSurvivesACleanClose) {
  Table table = MakeTable();
  ASSERT_TRUE(table.Insert(Thing("p", "power", 1), {.durability = Durability::kPower}).ok());
  ASSERT_TRUE(table.Insert(Thing("p", "process", 2), {.durability = Durability::kProcess}).ok());
  ASSERT_TRUE(table.Insert(Thing("p", "memory", 3), {.durability = Durability::kMemory}).ok());
  std::string etag = table.Get("p", "memory")->etag();
  Reopen();
  EXPECT_TRUE(database_->open_report().clean_shutdown);
  Table again = *database_->OpenTable("things");
  EXPECT_EQ(again.name(), "Things");
  EXPECT_EQ(*again.Count({}), 3u);
  EXPECT_EQ(again.Get("p", "memory")->etag(), etag);
  EXPECT_GT(again.Replace(Thing("p", "memory", 4)).etag, etag);
}

TEST_P(DatabaseTest, AnotherNumberOfShardsServesEveryKey) {
  std::vector<std::string> names = {"Alpha", "Beta", "Gamma", "Delta", "Epsilon"};
  for (const std::string& name : names) {
    Table table = MakeTable(name);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(
          table.Insert(Thing("p" + std::to_string(i), "r", i), {.durability = Durability::kProcess}).ok());
    }
  }
  for (uint32_t shards : {1u, 3u, 4u, 2u}) {
    Reopen(shards);
    for (const std::string& name : names) {
      Table table = *database_->OpenTable(name);
      EXPECT_EQ(*table.Count({}), 50u) << name << " with " << shards << " shards";
      EXPECT_EQ(*table.Get("p17", "r")->GetInt32("N"), 17);
    }
    EXPECT_THAT(database_->Verify()->damages, IsEmpty());
  }
}

TEST_P(DatabaseTest, ShardsByDefaultAreTheCoresOfTheThreadThatOpens) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  Reopen(/*shards=*/0);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(database_->open_report().shards, 1u);
  Reopen(/*shards=*/0);
  const int of_memory = 4;  // 64 MiB.
  EXPECT_EQ(database_->open_report().shards, static_cast<uint32_t>(std::min(CPU_COUNT(&before), of_memory)));
}

// It may capture what owns the database.
TEST_P(DatabaseTest, WhatWasToldOfTheOpeningIsNotKeptBehindIt) {
  ASSERT_TRUE(database_->Close().ok());
  const auto captured = std::make_shared<int>(0);
  Options options = OptionsOf();
  options.opening_progress = [captured](uint64_t, uint64_t) {};
  Result<std::unique_ptr<Database>> opened = Database::Open(options);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  options.opening_progress = nullptr;
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_TRUE((*opened)->Close().ok());
}

// Who keeps a handle would take every row of a table that was made anew for an absent one.
TEST_P(DatabaseTest, AHandleToADroppedTableSaysSoWhateverIsAsked) {
  const Table old = MakeTable("Orders");
  const RawTable old_raw = *database_->CreateRawTable("Raw");
  for (const char* name : {"Orders", "Raw"}) ASSERT_TRUE(database_->DeleteTable(name).ok());
  const Table made = MakeTable("Orders");
  const RawTable made_raw = *database_->CreateRawTable("Raw");
  ASSERT_TRUE(made.Insert(Thing("p", "r", 1)).ok());
  ASSERT_TRUE(made_raw.Put("p", "r", "v").ok());

  const auto expect = [](const Table& table, const RawTable& raw, Missing missing) {
    const Entity thing = Thing("p", "none", 1);
    const std::vector<Table::Key> keys = {{"p", "none"}};
    std::string value;
    for (const Status& status :
         {table.Get("p", "none").status(), table.GetMany(keys)[0].status(), table.Replace(thing).status,
          table.Merge(thing).status, table.Delete("p", "none").status, raw.Get("p", "none", &value),
          raw.GetMany(keys)[0].status()}) {
      EXPECT_EQ(status.code(), Code::kNotFound);
      EXPECT_EQ(MissingOf(status), missing) << status.ToString();
    }
  };
  expect(made, made_raw, Missing::kOther);
  expect(old, old_raw, Missing::kTable);
  EXPECT_EQ(MissingOf(old.Get("p", "r").status()), Missing::kTable);
  EXPECT_EQ(MissingOf(old.Query({}).status()), Missing::kTable);
  EXPECT_EQ(MissingOf(old.Aggregate({{}}).status()), Missing::kTable);
  EXPECT_EQ(MissingOf(old_raw.Scan({}).status()), Missing::kTable);
  EXPECT_EQ(MissingOf(old_raw.Put("p", "r", "v").status), Missing::kTable);
}

TEST_P(DatabaseTest, ADroppedTableIsGoneAndItsNameIsFree) {
  Table table = MakeTable("Gone");
  ASSERT_TRUE(table.Insert(Thing("p", "r", 1)).ok());
  ASSERT_TRUE(database_->Flush().ok());
  ASSERT_TRUE(database_->DeleteTable("gone").ok());
  EXPECT_EQ(database_->DeleteTable("gone").code(), Code::kNotFound);
  EXPECT_EQ(table.Get("p", "r").code(), Code::kNotFound);
  EXPECT_EQ(table.Insert(Thing("p", "r", 1)).status.code(), Code::kNotFound);
  EXPECT_EQ(MissingOf(database_->OpenTable("gone").status()), Missing::kTable);
  EXPECT_EQ(MissingOf(database_->DeleteTable("gone")), Missing::kTable);
  Table fresh = MakeTable("GONE");
  EXPECT_EQ(*fresh.Count({}), 0u);
  Reopen();
  EXPECT_EQ(*database_->OpenTable("Gone")->Count({}), 0u);
}

TEST_P(DatabaseTest, BadNamesAndKeysAreRefusedByRule) {
  EXPECT_EQ(database_->CreateTable("ab").code(), Code::kInvalidArgument);
  EXPECT_EQ(database_->CreateTable("1abc").code(), Code::kInvalidArgument);
  EXPECT_EQ(database_->CreateTable("tables").code(), Code::kInvalidArgument);
  EXPECT_EQ(database_->OpenTable("nothing").code(), Code::kNotFound);
  Table table = MakeTable();
  EXPECT_EQ(database_->CreateTable("THINGS").code(), Code::kAlreadyExists);
  EXPECT_EQ(database_->OpenRawTable("Things").code(), Code::kInvalidArgument);
  EXPECT_EQ(table.Insert(Thing("a/b", "r", 1)).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(table.Insert(Thing("p", std::string(513, 'x'), 1)).status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(table.Insert(Thing("p", std::string(512, 'x'), 1)).ok());
  ScanOptions scan;
  scan.limit = 0;
  EXPECT_EQ(table.Scan(scan).code(), Code::kInvalidArgument);
  scan.limit = 1;
  scan.continuation = "made up";
  EXPECT_EQ(table.Scan(scan).code(), Code::kInvalidArgument);
}

TEST_P(DatabaseTest, NamesOfFullLengthAreKeptToTheLastLetter) {
  const std::string stem(62, 'n');
  Table first = MakeTable(stem + "a");
  Table second = MakeTable(stem + "b");
  ASSERT_TRUE(first.Insert(Thing("p", "r", 1)).ok());
  EXPECT_EQ(database_->CreateTable(stem + "ab").code(), Code::kInvalidArgument);
  Reopen();
  auto again = database_->OpenTable(stem + "a");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(*again->Count({}), 1u);
  EXPECT_EQ(*database_->OpenTable(stem + "b")->Count({}), 0u);
  EXPECT_EQ(database_->OpenTable(stem).code(), Code::kNotFound);
}

TEST_P(DatabaseTest, RawTablesKeepBytes) {
  RawTable raw = *database_->CreateRawTable("Bytes");
  std::string value("\x00\x01\xFF binary", 10);
  ASSERT_TRUE(raw.Put("\xEE\xEF", "\x01", value).ok());
  std::string read;
  ASSERT_TRUE(raw.Get("\xEE\xEF", "\x01", &read).ok());
  EXPECT_EQ(read, value);
  EXPECT_EQ(raw.Get("\xEE\xEF", "\x02", &read).code(), Code::kNotFound);
  EXPECT_EQ(raw.Put(std::string_view("a\0b", 3), "r", value).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.Put("p", std::string(4096, 'k'), value).status.code(), Code::kInvalidArgument);
  std::string large(3u << 20, 'L');
  ASSERT_TRUE(raw.Put("large", "r", large).ok());
  ASSERT_TRUE(database_->Flush().ok());
  ASSERT_TRUE(raw.Get("large", "r", &read).ok());
  EXPECT_EQ(read, large);
  EXPECT_EQ(raw.Scan({})->rows.size(), 2u);
}

TEST_P(DatabaseTest, AsynchronousCallsAnswerOnceEach) {
  Table table = MakeTable();
  constexpr int kCalls = 2000;
  std::mutex mutex;
  std::condition_variable all;
  int answered = 0, failed = 0;
  for (int i = 0; i < kCalls; ++i) {
    table.WriteAsync({WriteAction::kInsert, Thing("p" + std::to_string(i % 10), std::to_string(i), i), ""},
                     {}, [&](WriteResult result) {
                       std::lock_guard lock(mutex);
                       if (!result.ok()) ++failed;
                       if (++answered == kCalls) all.notify_one();
                     });
  }
  {
    std::unique_lock lock(mutex);
    all.wait(lock, [&] { return answered == kCalls; });
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(*table.Count({}), static_cast<uint64_t>(kCalls));
  std::vector<Table::Key> keys;
  for (int i = 0; i < 100; ++i) keys.push_back({"p" + std::to_string(i % 10), std::to_string(i)});
  keys.push_back({"p", "missing"});
  std::vector<Result<Entity>> entities = table.GetMany(keys);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*entities[static_cast<size_t>(i)]->GetInt32("N"), i);
  EXPECT_EQ(entities.back().code(), Code::kNotFound);
}

TEST_P(DatabaseTest, IndependentWritesEachHaveTheirAnswer) {
  Table table = MakeTable();
  ASSERT_TRUE(table.Insert(Thing("p", "1", 0)).ok());
  std::vector<Write> writes;
  for (int i = 0; i < 50; ++i) writes.push_back({WriteAction::kInsert, Thing("p", std::to_string(i), i), ""});
  std::vector<WriteResult> results = table.WriteMany(writes);
  ASSERT_EQ(results.size(), writes.size());
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].ok(), i != 1) << i;
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(*table.Get("p", std::to_string(i))->GetInt32("N"), i == 1 ? 0 : i) << "row 1 was there";
}

// Conditional increments from many threads: each success counts once, so the sum is exact (F16).
TEST_P(DatabaseTest, ConditionalWritersNeverLoseAnUpdate) {
  Table table = MakeTable();
  ASSERT_TRUE(table.Insert(Thing("p", "counter", 0)).ok());
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  std::atomic<int> refused{0};
  auto increment = [&](Durability durability) {
    for (int i = 0; i < kEach;) {
      Result<Entity> now = table.Get("p", "counter");
      ASSERT_TRUE(now.ok());
      Entity next = Thing("p", "counter", *now->GetInt32("N") + 1);
      WriteResult written = table.Replace(next, now->etag(), {.durability = durability});
      if (written.ok()) {
        ++i;
      } else {
        ASSERT_EQ(written.status.code(), Code::kPreconditionFailed) << written.status.ToString();
        ++refused;
      }
    }
  };
  std::vector<std::thread> threads;
  Durability levels[] = {Durability::kPower, Durability::kProcess, Durability::kMemory, Durability::kPower};
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(increment, levels[t]);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*table.Get("p", "counter")->GetInt32("N"), kThreads * kEach);
}

// Readers beside writers, flushes and compactions: a value once seen is never older later, and a
// transaction is seen whole (F10, F14).
TEST_P(DatabaseTest, ReadersSeeTransactionsWholeAndNeverGoBack) {
  RawTable raw = *database_->CreateRawTable("Pairs");
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    std::string filler(2000, 'f');
    for (int i = 0; i < 2000; ++i) {
      std::string text = std::to_string(1'000'000 + i);
      std::vector<RawTable::Operation> pair = {{false, "p", "a", text + filler},
                                               {false, "p", "b", text + filler}};
      ASSERT_TRUE(raw.Apply(pair, {.durability = Durability::kProcess}).ok());
      if (i % 500 == 499) ASSERT_TRUE(database_->Flush().ok());
    }
    stop = true;
  });
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      std::string last;
      while (!stop) {
        Result<RawPage> page = raw.Scan({});
        ASSERT_TRUE(page.ok()) << page.status().ToString();
        if (page->rows.empty()) continue;
        ASSERT_EQ(page->rows.size(), 2u);
        ASSERT_EQ(page->rows[0].value, page->rows[1].value);
        std::string now = page->rows[0].value.substr(0, 7);
        ASSERT_GE(now, last);
        last = now;
        std::string got;
        ASSERT_TRUE(raw.Get("p", "a", &got).ok());
        ASSERT_GE(got.substr(0, 7), last);
      }
    });
  }
  writer.join();
  for (std::thread& reader : readers) reader.join();
}

// covers: F58. A refused batch must not keep memtable memory: the pool here is 20 MiB, the refusals 60 MiB.
TEST_P(DatabaseTest, RefusalsDoNotUseUpTheMemory) {
  Table table = MakeTable();
  Entity entity = Thing("p", "taken", 1);
  for (int i = 0; i < 4; ++i) entity.Set("Fill" + std::to_string(i), std::string(30'000, 'f'));
  ASSERT_TRUE(table.Insert(entity).ok());
  for (int i = 0; i < 500; ++i) ASSERT_EQ(table.Insert(entity).status.code(), Code::kAlreadyExists);
  entity.set_row_key("free");
  EXPECT_TRUE(table.Insert(entity).ok());
}

TEST_P(DatabaseTest, ABatchThatMemoryCouldNeverTakeIsRefusedAtOnce) {
  RawTable raw = *database_->CreateRawTable("Large");
  std::vector<RawTable::Operation> operations;
  for (int i = 0; i < 3; ++i)
    operations.push_back({false, "p", std::to_string(i), std::string(5u << 20, 'x')});
  WriteResult result = raw.Apply(operations);
  EXPECT_EQ(result.status.code(), Code::kInvalidArgument) << result.status.ToString();
  EXPECT_TRUE(raw.Put("p", "small", "v").ok());
}

// Small as they are, their places in a memtable are more than all of its memory.
TEST_P(DatabaseTest, ABatchOfMoreOperationsThanMemoryHasPlacesForIsRefusedAtOnce) {
  const Table table = MakeTable();
  std::vector<Write> writes;
  for (int i = 0; i < 200'000; ++i) {
    writes.push_back({.action = WriteAction::kInsertOrReplace, .entity = Entity("p", std::to_string(i))});
  }
  BatchOptions options;
  options.operations_max = 200'000;
  const WriteResult refused = table.Transact(writes, options);
  EXPECT_EQ(refused.status.code(), Code::kInvalidArgument) << refused.status.ToString();
  EXPECT_THAT(refused.status.message(), HasSubstr("200000 operations"));
  writes.resize(50'000);
  const WriteResult taken = table.Transact(writes, options);
  EXPECT_TRUE(taken.ok()) << taken.status.ToString();
}

TEST_P(DatabaseTest, AForgedContinuationLeadsNowhereElse) {
  Table first = MakeTable("First");
  Table second = MakeTable("Second");
  ASSERT_TRUE(first.Insert(Thing("p", "1", 1)).ok());
  ASSERT_TRUE(first.Insert(Thing("p", "2", 1)).ok());
  ASSERT_TRUE(second.Insert(Thing("p", "1", 1)).ok());
  ScanOptions options;
  options.limit = 1;
  options.continuation = second.Scan({}).ok() ? first.Scan(options)->continuation : "";
  ASSERT_FALSE(options.continuation.empty());
  EXPECT_TRUE(first.Scan(options).ok());
  EXPECT_EQ(second.Scan(options).code(), Code::kInvalidArgument);
  options.order = ScanOrder::kDescending;
  EXPECT_EQ(first.Scan(options).code(), Code::kInvalidArgument);
}

TEST_P(DatabaseTest, ACallThatWouldWaitInACallbackSaysSo) {
  Table table = MakeTable();
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<WriteResult> inner;
  table.WriteAsync({WriteAction::kInsert, Thing("p", "1", 1), ""}, {}, [&](WriteResult) {
    WriteResult result = table.Insert(Thing("p", "2", 2));
    std::lock_guard lock(mutex);
    inner = std::move(result);
    answered.notify_one();
  });
  std::unique_lock lock(mutex);
  answered.wait(lock, [&] { return inner.has_value(); });
  EXPECT_EQ(inner->status.code(), Code::kInvalidArgument);
  EXPECT_THAT(inner->status.message(), HasSubstr("Async"));
}

// Also where there is an answer for each of several.
TEST_P(DatabaseTest, CallsForSeveralThatWouldWaitInACallbackSaySoForEach) {
  Table table = MakeTable();
  ASSERT_TRUE(table.Insert(Thing("p", "there", 1)).ok());
  ASSERT_TRUE(database_->Flush().ok());
  std::mutex mutex;
  std::condition_variable answered;
  std::vector<WriteResult> written;
  std::vector<Result<Entity>> read;
  bool done = false;
  table.WriteAsync({WriteAction::kInsert, Thing("p", "1", 1), ""}, {}, [&](WriteResult) {
    std::vector<Write> writes;
    writes.push_back({WriteAction::kInsert, Thing("p", "2", 2), ""});
    writes.push_back({WriteAction::kInsert, Thing("p", "bad/key", 2), ""});
    std::vector<WriteResult> results = table.WriteMany(writes);
    std::vector<Result<Entity>> found = table.GetMany(std::vector<Table::Key>{{"p", "there"}});
    std::lock_guard lock(mutex);
    written = std::move(results);
    read = std::move(found);
    done = true;
    answered.notify_one();
  });
  std::unique_lock lock(mutex);
  answered.wait(lock, [&] { return done; });
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].status.code(), Code::kInvalidArgument);
  EXPECT_THAT(written[0].status.message(), HasSubstr("Async"));
  EXPECT_THAT(written[1].status.message(), HasSubstr("bad/key"));
  EXPECT_EQ(table.Get("p", "2").code(), Code::kNotFound);
  // In memory it may be found at once; it is not said to be absent.
  ASSERT_EQ(read.size(), 1u);
  EXPECT_NE(read[0].code(), Code::kNotFound);
}

TEST_P(DatabaseTest, ASecondOpenIsToldWhoHoldsTheStore) {
  Options options = OptionsOf();
  Result<std::unique_ptr<Database>> second = Database::Open(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kLocked);
  EXPECT_THAT(second.status().message(), HasSubstr(std::to_string(getpid())));
  EXPECT_TRUE(MakeTable().Insert(Thing("p", "r", 1)).ok());
}

TEST_P(DatabaseTest, ADirectoryThatIsNotAStoreIsLeftAlone) {
  std::string path = directory_.path() + "/photos";
  std::filesystem::create_directory(path);
  std::ofstream(path + "/cat.jpg") << "not ours";
  Options options = OptionsOf();
  options.directory = path;
  Result<std::unique_ptr<Database>> opened = Database::Open(options);
  EXPECT_EQ(opened.code(), Code::kInvalidArgument);
  EXPECT_THAT(opened.status().message(), HasSubstr("cat.jpg"));
  // A file is no directory, nor is what is said to lie in it.
  for (const bool create : {true, false}) {
    for (const char* place : {"/cat.jpg", "/cat.jpg/store"}) {
      options.directory = path + place;
      options.create_if_missing = create;
      opened = Database::Open(options);
      EXPECT_EQ(opened.code(), Code::kInvalidArgument) << opened.status().ToString();
      EXPECT_THAT(opened.status().message(), HasSubstr("Not a directory"));
    }
  }
  options.directory = directory_.path() + "/nowhere";
  options.create_if_missing = false;
  EXPECT_EQ(Database::Open(options).code(), Code::kNotFound);
}

TEST_P(DatabaseTest, AMissingCatalogBesideStoreFilesIsDamage) {
  MakeTable();
  ASSERT_TRUE(database_->Close().ok());
  std::filesystem::remove(directory_.path() + "/store/meta/catalog");
  Result<std::unique_ptr<Database>> opened = Database::Open(OptionsOf());
  EXPECT_EQ(opened.code(), Code::kCorruption);
  EXPECT_THAT(opened.status().message(), HasSubstr("F69"));
}

// Its logs have other names then, and a repair has kept something beside them.
TEST_P(DatabaseTest, AMissingCatalogOfAStoreThatChangedIsDamageToo) {
  MakeTable();
  ASSERT_TRUE(database_->Close().ok());
  const std::string store = directory_.path() + "/store";
  {
    Options options = OptionsOf();
    options.shards = options.shards + 1;
    auto opened = Database::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    ASSERT_TRUE((*opened)->Close().ok());
  }
  ASSERT_TRUE(std::filesystem::exists(store + "/log-2-0"));
  std::filesystem::remove_all(store + "/meta");
  std::filesystem::create_directory(store + "/damaged-20260131T120000Z");
  for (const bool create : {false, true}) {
    Options options = OptionsOf();
    options.create_if_missing = create;
    const auto opened = Database::Open(options);
    EXPECT_EQ(opened.code(), Code::kCorruption) << opened.status().ToString();
    EXPECT_THAT(opened.status().message(), AllOf(HasSubstr("F69"), HasSubstr("partita repair")));
  }
  std::filesystem::remove_all(store + "/log-2-0");
  std::filesystem::create_directory(store + "/log-2-0");
  EXPECT_EQ(Database::Open(OptionsOf()).code(), Code::kCorruption) << "the log of another shard is there";
}

TEST_P(DatabaseTest, OptionsOutOfBoundsAreRefusedByName) {
  Options options = OptionsOf();
  options.memory_bytes = 1;
  EXPECT_THAT(Database::Open(options).status().message(), HasSubstr("memory_bytes"));
  options = OptionsOf(257);
  EXPECT_THAT(Database::Open(options).status().message(), HasSubstr("shards"));
  options = OptionsOf();
  options.directory.clear();
  EXPECT_THAT(Database::Open(options).status().message(), HasSubstr("directory"));
}

TEST_P(DatabaseTest, MemoryThatDoesNotSufficeIsRefusedByNameBeforeAnythingIsMade) {
  Options options = OptionsOf(/*shards=*/5);
  options.directory = directory_.path() + "/new";
  Status refused = Database::Open(options).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("memory_bytes"));
  EXPECT_THAT(refused.message(), HasSubstr("shards"));
  options.shards = 2;
  options.host_memory_bytes = options.memory_bytes / 2;
  refused = Database::Open(options).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("host_memory_bytes"));
  EXPECT_FALSE(std::filesystem::exists(options.directory));
}

}  // namespace
}  // namespace partita

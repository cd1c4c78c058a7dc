#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/small_store.h"

// covers: F64. What crashes leave is read in test/engine/crash_simulation_test.cc.

namespace partita {
namespace {

StoreOptions UnlockedStore(uint32_t shards) {
  StoreOptions options = SmallStoreOptions(shards);
  options.lock_wait_ns = 0;
  return options;
}

StoreOptions ForReading() {
  StoreOptions options = UnlockedStore(1);
  options.create_if_missing = false;
  options.read_only = true;
  return options;
}

Result<std::unique_ptr<Store>> Open(SimRuntime& runtime, StoreOptions options) {
  return runtime.RunToEnd(Store::Open(runtime, std::move(options)));
}

std::map<std::string, std::string> FilesOf(const SimDisk& disk) {
  std::map<std::string, std::string> files;
  for (const std::string& path : disk.ListFiles()) files[path] = *disk.ReadFile(path);
  return files;
}

class ReadOnlyOpenTest : public testing::Test {
 protected:
  // A store of two shards with tables and log, which its process leaves without closing.
  void FillAndCrash() {
    SimRuntime runtime({.seed = 1, .shards = 2}, disk_);
    auto store = Open(runtime, UnlockedStore(2));
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "first";
    spec.raw = true;
    spec.split_partitions = {"p1"};
    auto table = runtime.RunToEnd((*store)->CreateTable(std::move(spec)));
    ASSERT_TRUE(table.ok());
    for (int i = 0; i < 900; ++i) {
      const std::string key = EncodeUserKey(table->id, "p" + std::to_string(i % 2), "r" + std::to_string(i));
      rows_[key] = "value " + std::to_string(i) + std::string(100, 'x');
      EXPECT_TRUE(Put(runtime, **store, key, rows_[key]).status.ok());
    }
    table_ = table->id;
    runtime.CrashNow();
    (void)runtime.RunToEnd((*store)->Close());
  }

  WriteOutcome Put(SimRuntime& runtime, Store& store, std::string_view key, std::string_view value) {
    WriteOp op;
    op.user_key = key;
    op.content = value;
    WriteRequest request;
    request.table = TableId(1);
    request.ops = std::span<const WriteOp>(&op, 1);
    request.durability = DurabilityLevel::kProcess;
    return runtime.RunToEnd(store.Write(request));
  }

  void ExpectAllRows(SimRuntime& runtime, Store& store) {
    for (const auto& [key, value] : rows_) {
      std::string content;
      auto read = runtime.RunToEnd(store.Get(key, &content));
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      ASSERT_EQ(read->state, Shard::ReadState::kFound);
      ASSERT_EQ(content, value);
    }
  }

  SimDisk disk_{7};
  TableId table_;
  std::map<std::string, std::string> rows_;
};

TEST_F(ReadOnlyOpenTest, ReadsEverythingAndChangesNoByteAndNoName) {
  FillAndCrash();
  const auto before = FilesOf(disk_);
  {
    SimRuntime runtime({.seed = 2, .shards = 1}, disk_);
    auto store = Open(runtime, ForReading());
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    EXPECT_EQ((*store)->shard_count(), 2u);  // As the store is divided, whatever was asked for.
    EXPECT_FALSE((*store)->open_report().clean_shutdown);
    EXPECT_GT((*store)->open_report().records_replayed, 0u);
    ExpectAllRows(runtime, **store);
    runtime.AdvanceTime(10'000'000'000);
    EXPECT_TRUE(runtime.RunToEnd((*store)->Close()).ok());
  }
  EXPECT_EQ(FilesOf(disk_), before);
}

TEST_F(ReadOnlyOpenTest, RefusesEveryChange) {
  FillAndCrash();
  SimRuntime runtime({.seed = 3, .shards = 2}, disk_);
  auto opened = Open(runtime, ForReading());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Store& store = **opened;
  const std::string key = rows_.begin()->first;
  EXPECT_EQ(Put(runtime, store, key, "other").status.code(), Code::kUnsupported);
  Store::TableSpec spec;
  spec.account = "default";
  spec.name = "second";
  EXPECT_EQ(runtime.RunToEnd(store.CreateTable(spec)).code(), Code::kUnsupported);
  EXPECT_EQ(runtime.RunToEnd(store.DeleteTable("default", "first")).code(), Code::kUnsupported);
  EXPECT_EQ(runtime.RunToEnd(store.SetAccountAttributes("default", "x")).code(), Code::kUnsupported);
  EXPECT_EQ(runtime.RunToEnd(store.FlushMemtables()).code(), Code::kUnsupported);
  EXPECT_EQ(runtime.RunToEnd(store.CompactAll()).code(), Code::kUnsupported);
  EXPECT_TRUE(runtime.RunToEnd(store.Barrier()).ok());
  EXPECT_TRUE(store.FindTable("default", "first").ok());
  ExpectAllRows(runtime, store);
  EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
}

TEST_F(ReadOnlyOpenTest, GoesBesideOtherReadersButNotBesideAWriter) {
  FillAndCrash();
  SimRuntime first({.seed = 4, .shards = 1}, disk_);
  SimRuntime second({.seed = 5, .shards = 1}, disk_);
  auto reader = Open(first, ForReading());
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  auto other = Open(second, ForReading());
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  EXPECT_TRUE(second.RunToEnd((*other)->Close()).ok());
  EXPECT_EQ(Open(second, UnlockedStore(2)).code(), Code::kLocked);
  EXPECT_TRUE(first.RunToEnd((*reader)->Close()).ok());

  SimRuntime third({.seed = 6, .shards = 2}, disk_);
  auto writer = Open(third, UnlockedStore(2));
  ASSERT_TRUE(writer.ok()) << writer.status().ToString();
  EXPECT_EQ(Open(first, ForReading()).code(), Code::kLocked);
  EXPECT_TRUE(third.RunToEnd((*writer)->Close()).ok());
}

TEST_F(ReadOnlyOpenTest, SaysThatThereIsNoStore) {
  SimRuntime runtime({.seed = 8, .shards = 1}, disk_);
  EXPECT_EQ(Open(runtime, ForReading()).code(), Code::kNotFound);
  EXPECT_THAT(disk_.ListFiles(), testing::IsEmpty());
}

TEST_F(ReadOnlyOpenTest, SaysSoWhenMemoryDoesNotHoldTheLog) {
  {
    SimRuntime runtime({.seed = 9, .shards = 1}, disk_);
    StoreOptions large = UnlockedStore(1);
    large.memory_bytes = 1u << 30;
    large.memtable_data_bytes = SIZE_MAX;
    large.log_segment_bytes = 4u << 20;
    auto store = Open(runtime, large);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "large";
    spec.raw = true;
    auto table = runtime.RunToEnd((*store)->CreateTable(std::move(spec)));
    ASSERT_TRUE(table.ok());
    const std::string value(256u << 10, 'v');
    for (int i = 0; i < 100; ++i) {
      const std::string key = EncodeUserKey(table->id, "p", std::to_string(i));
      ASSERT_TRUE(Put(runtime, **store, key, value).status.ok());
    }
    EXPECT_TRUE(runtime.RunToEnd((*store)->Close()).ok());
  }
  SimRuntime runtime({.seed = 10, .shards = 1}, disk_);
  auto store = Open(runtime, ForReading());
  EXPECT_EQ(store.code(), Code::kResourceExhausted) << store.status().ToString();
  EXPECT_THAT(store.status().message(), testing::HasSubstr("more memory"));
}

}  // namespace
}  // namespace partita

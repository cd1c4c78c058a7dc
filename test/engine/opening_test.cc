#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/user_key.h"
#include "engine/io/runtime_over.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/forwarding_files.h"

// covers: a store with many tables waits for some of them at a time when it is opened.

namespace partita {
namespace {

constexpr uint32_t kRows = 96;
constexpr size_t kFilesMin = 16;
constexpr uint64_t kReadNanos = 1'000'000'000;

StoreOptions SmallTables() {
  StoreOptions options = OneShardStore();
  options.table_file_bytes = 64u << 10;
  return options;
}

// Does not compress.
std::string ContentOf(uint32_t row) {
  std::mt19937 random(row);
  std::string content(16'000, '\0');
  for (char& c : content) c = static_cast<char>(random());
  return content;
}

Task<Status> WriteRow(Store* store, TableId table, uint32_t row) {
  const std::string key = EncodeUserKey(table, "p", std::to_string(1000 + row));
  const std::string content = ContentOf(row);
  const WriteOp op{.user_key = key, .content = content};
  const WriteRequest request{.table = table, .ops = {&op, 1}};
  const WriteOutcome outcome = co_await store->Write(request);
  co_return outcome.status;
}

class OpeningTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::unique_ptr<Store> store = Open();
    ASSERT_NE(store, nullptr);
    Result<TableDescriptor> made = runtime_.RunToEnd(MakeRawTable(store.get(), "rows"));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    for (uint32_t row = 0; row < kRows; ++row)
      ASSERT_TRUE(runtime_.RunToEnd(WriteRow(store.get(), made->id, row)).ok());
    ASSERT_TRUE(runtime_.RunToEnd(store->FlushMemtables()).ok());
    ASSERT_TRUE(runtime_.RunToEnd(store->Close()).ok());
    table_ = made->id;
    files_ = disk_.ListFiles("tables/");
    ASSERT_GE(files_.size(), kFilesMin);
  }
  std::unique_ptr<Store> Open() {
    Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, SmallTables()));
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }

  SimDisk disk_{21};
  SimRuntime runtime_{{.seed = 21, .shards = 1}, disk_};
  TableId table_{0};
  std::vector<std::string> files_;
};

TEST_F(OpeningTest, WaitsForTablesBesideEachOther) {
  const size_t fault = runtime_.AddFault({.effect = SimEffect::kSlow,
                                          .operations = SimOps(SimOp::kRead),
                                          .path_prefix = "tables/",
                                          .delay_ns = kReadNanos});
  const uint64_t began = runtime_.clock().MonotonicNanos();
  const std::unique_ptr<Store> store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_GE(runtime_.FaultHits(fault), files_.size());
  EXPECT_LT(runtime_.clock().MonotonicNanos() - began, files_.size() * kReadNanos / 4);
  runtime_.RemoveFault(fault);
  EXPECT_TRUE(runtime_.RunToEnd(store->Close()).ok());
}

// covers: F52. Of catalog and manifest, in each read of them.
TEST_F(OpeningTest, OneBadReadOfAMetaValueIsNoDamage) {
  for (const std::string path : {"meta/catalog", "meta/shard-1-0"}) {
    for (const SimEffect effect : {SimEffect::kRotOnce, SimEffect::kError}) {
      size_t hits = 0;
      for (uint64_t skip = 0;; ++skip) {
        const size_t fault = runtime_.AddFault({.effect = effect,
                                                .operations = SimOps(SimOp::kRead),
                                                .path_prefix = path,
                                                .skip = skip,
                                                .count = 1});
        const std::unique_ptr<Store> store = Open();
        ASSERT_NE(store, nullptr) << path << ", read " << skip;
        const bool hit = runtime_.FaultHits(fault) == 1;
        runtime_.RemoveFault(fault);
        EXPECT_EQ(store->reads_transient(), hit ? 1u : 0u) << path << ", read " << skip;
        EXPECT_TRUE(runtime_.RunToEnd(store->Close()).ok());
        if (!hit) break;
        ++hits;
      }
      EXPECT_GE(hits, 1u) << path;
    }
  }
}

TEST_F(OpeningTest, WhatIsBadTwiceIsDamage) {
  for (const std::string path : {"meta/catalog", "meta/shard-1-0"}) {
    const size_t fault = runtime_.AddFault(
        {.effect = SimEffect::kRotOnce, .operations = SimOps(SimOp::kRead), .path_prefix = path});
    const Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, SmallTables()));
    EXPECT_EQ(opened.code(), Code::kCorruption) << opened.status().ToString();
    runtime_.RemoveFault(fault);
  }
}

// Each waits at the same time as those that can be read, and all of those have ended when the opening does.
TEST_F(OpeningTest, OneThatLacksWhatItNeedsEndsIt) {
  runtime_.AddFault({.operations = SimOps(SimOp::kRead),
                     .path_prefix = files_[files_.size() / 2],
                     .code = Code::kResourceExhausted});
  const Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(runtime_, SmallTables()));
  EXPECT_EQ(opened.code(), Code::kResourceExhausted) << opened.status().ToString();
}

TEST_F(OpeningTest, OneThatIsDamagedLeavesTheOthers) {
  disk_.WriteFile(files_[files_.size() / 2], "no table");
  const std::unique_ptr<Store> store = Open();
  ASSERT_NE(store, nullptr);
  size_t read = 0, damaged = 0;
  for (uint32_t row = 0; row < kRows; ++row) {
    std::string content;
    const std::string key = EncodeUserKey(table_, "p", std::to_string(1000 + row));
    const Status status = runtime_.RunToEnd(store->Get(key, &content)).status();
    if (status.ok()) {
      EXPECT_EQ(content, ContentOf(row));
      ++read;
    } else {
      EXPECT_EQ(status.code(), Code::kCorruption) << status.ToString();
      ++damaged;
    }
  }
  EXPECT_GT(damaged, 0u);
  EXPECT_LE(damaged, 8u);
  EXPECT_EQ(read + damaged, kRows);
  EXPECT_TRUE(runtime_.RunToEnd(store->Close()).ok());
}

// covers: F46. It is no input of a compaction, and is let go by nothing else.
TEST_F(OpeningTest, OneThatIsDamagedStaysUntilItsTablesAreDropped) {
  const std::string damaged = files_[files_.size() / 2];
  disk_.WriteFile(damaged, "no table");
  const std::unique_ptr<Store> store = Open();
  ASSERT_NE(store, nullptr);
  (void)runtime_.RunToEnd(store->CompactAll());
  runtime_.AdvanceTime(5'000'000'000);
  EXPECT_TRUE(disk_.FileExists(damaged));
  const auto set_aside = [&store] {
    uint64_t sum = 0;
    for (const ShardStatistics& shard : store->Statistics()) sum += shard.references_set_aside;
    return sum;
  };
  EXPECT_EQ(set_aside(), 1u);
  ASSERT_TRUE(runtime_.RunToEnd(store->DeleteTable("acct", "rows")).ok());
  runtime_.AdvanceTime(5'000'000'000);
  EXPECT_FALSE(disk_.FileExists(damaged));
  EXPECT_EQ(set_aside(), 0u);
  EXPECT_TRUE(runtime_.RunToEnd(store->Close()).ok());
}

// covers: F38
TEST_F(OpeningTest, TellsHowMuchOfItsLogsIsRead) {
  uint64_t written = 0;
  {
    const std::unique_ptr<Store> store = Open();
    ASSERT_NE(store, nullptr);
    for (uint32_t row = 0; row < kRows; ++row) {
      ASSERT_TRUE(runtime_.RunToEnd(WriteRow(store.get(), table_, row)).ok());
      written += ContentOf(row).size();
    }
    ASSERT_TRUE(runtime_.RunToEnd(store->Close()).ok());
  }
  std::vector<std::pair<uint64_t, uint64_t>> told;
  StoreOptions options = SmallTables();
  options.opening = [&told](uint64_t done, uint64_t due) { told.emplace_back(done, due); };
  const auto opened = runtime_.RunToEnd(Store::Open(runtime_, std::move(options)));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  ASSERT_GT(told.size(), kRows / 2);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back().first, told.back().second);
  EXPECT_GT(told.back().second, written);
  EXPECT_TRUE(runtime_.RunToEnd((*opened)->Close()).ok());
}

class NoDirectIo final : public ForwardingFiles {
 public:
  using ForwardingFiles::ForwardingFiles;
  bool direct_io_refused() const override { return true; }
};

TEST_F(OpeningTest, ThatDirectIoIsRefusedIsTold) {
  NoDirectIo files(runtime_.files());
  RuntimeOver through_cache(runtime_, files);
  for (const bool read_only : {true, false}) {
    StoreOptions options = SmallTables();
    options.create_if_missing = !(options.read_only = read_only);
    for (Runtime* runtime : {static_cast<Runtime*>(&runtime_), static_cast<Runtime*>(&through_cache)}) {
      Result<std::unique_ptr<Store>> opened = runtime_.RunToEnd(Store::Open(*runtime, options));
      ASSERT_TRUE(opened.ok()) << opened.status().ToString();
      EXPECT_EQ((*opened)->open_report().direct_io_refused, runtime == &through_cache);
      EXPECT_TRUE(runtime_.RunToEnd((*opened)->Close()).ok());
    }
  }
}

}  // namespace
}  // namespace partita

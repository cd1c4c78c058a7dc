#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "compaction/level_targets.h"
#include "engine/base/user_key.h"
#include "engine/io/meta_format.h"
#include "engine/io/sim_runtime.h"
#include "engine/manifest.h"
#include "engine/store.h"
#include "test/engine/stalled_fixture.h"
#include "test/support/small_store.h"

// Files that rows of several tables were flushed to together: which tables refer to them, and what the
// damage of one table's rows, or their end, means for the others.

namespace partita {
namespace {

using testing::ElementsAre;

class SharedTablesTest : public testing::Test {
 protected:
  void SetUp() override {
    Open();
    for (const char* name : {"a", "b", "c"}) {
      Result<TableDescriptor> made = runtime_->RunToEnd(MakeRawTable(store_.get(), name));
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      tables_.push_back(made->id);
    }
  }
  void TearDown() override { EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok()); }

  void Open(uint64_t memtable_data_bytes = 32u << 10) {
    StoreOptions options = SmallStoreOptions(/*shards=*/1, memtable_data_bytes);
    options.memory_bytes = std::max<uint64_t>(options.memory_bytes, 8 * memtable_data_bytes);
    runtime_ = std::make_unique<SimRuntime>(SimOptions{.seed = ++lives_, .shards = 1}, disk_);
    Result<std::unique_ptr<Store>> opened = runtime_->RunToEnd(Store::Open(*runtime_, std::move(options)));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }
  void Reopen(uint64_t memtable_data_bytes = 32u << 10) {
    EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
    store_.reset();
    Open(memtable_data_bytes);
  }

  std::string Key(size_t table, std::string_view row) const {
    return EncodeUserKey(tables_[table], "p", row);
  }
  void Write(size_t table, WriteOp op) {
    const WriteRequest request{.table = tables_[table], .ops = std::span<const WriteOp>(&op, 1)};
    const WriteOutcome outcome = runtime_->RunToEnd(store_->Write(request));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  }
  void PutKey(size_t table, const std::string& key, const std::string& content) {
    Write(table, {.user_key = key, .content = content});
  }
  void Put(size_t table, std::string_view row, const std::string& content = "some") {
    PutKey(table, Key(table, row), content);
  }
  void Delete(size_t table, std::string_view row) {
    const std::string key = Key(table, row);
    Write(table, {.kind = WriteKind::kDelete, .user_key = key});
  }
  void Flush() { ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok()); }
  std::optional<std::string> ContentOf(size_t table, std::string_view row) {
    std::string content;
    const auto answer = runtime_->RunToEnd(store_->Get(Key(table, row), &content));
    EXPECT_TRUE(answer.ok()) << answer.status().ToString();
    if (!answer.ok() || answer->state != Shard::ReadState::kFound) return std::nullopt;
    return content;
  }
  bool Has(size_t table, std::string_view row) { return ContentOf(table, row).has_value(); }

  uint64_t Compactions() { return store_->Statistics()[0].compactions; }
  uint64_t TableBytes() const {
    uint64_t bytes = 0;
    for (const std::string& file : disk_.ListFiles("tables/")) bytes += disk_.ReadFile(file)->size();
    return bytes;
  }

  // The references on disk of the ranges of a table.
  std::vector<FileMeta> References(size_t table) const {
    const std::string key = ManifestKey(1, ShardId(0)), path = "meta/" + key;
    const auto value = DecodeMeta(key, path, *disk_.ReadFile(path));
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    const auto manifest = DecodeManifest(value->value.bytes);
    EXPECT_TRUE(manifest.ok()) << manifest.status().ToString();
    std::vector<FileMeta> references;
    for (const FileMeta& file : manifest->files) {
      if (file.lower.starts_with(TableLowerBound(tables_[table]))) references.push_back(file);
    }
    return references;
  }
  std::vector<std::string> LowersOf(size_t table) const {
    std::vector<std::string> lowers;
    for (const FileMeta& file : References(table)) lowers.push_back(file.lower);
    return lowers;
  }

  SimDisk disk_{5};
  uint64_t lives_ = 0;
  std::unique_ptr<SimRuntime> runtime_;
  std::unique_ptr<Store> store_;
  std::vector<TableId> tables_;
};

TEST_F(SharedTablesTest, AFlushedFileIsReferredToWhereItHasARow) {
  Put(0, "row");
  Put(2, "row");
  Flush();
  EXPECT_EQ(References(0).size(), 1u);
  EXPECT_TRUE(References(1).empty());
  EXPECT_EQ(References(2).size(), 1u);
  Reopen();
  EXPECT_TRUE(Has(0, "row") && Has(2, "row"));
  EXPECT_FALSE(Has(1, "row"));
  // Nothing of the file counts any more: it goes.
  ASSERT_TRUE(runtime_->RunToEnd(store_->DeleteTable("acct", "a")).ok());
  ASSERT_TRUE(runtime_->RunToEnd(store_->DeleteTable("acct", "c")).ok());
  Put(1, "row");
  Flush();
  EXPECT_EQ(disk_.ListFiles("tables/").size(), 1u);
}

// It hides what lies in an older file.
TEST_F(SharedTablesTest, ADeletedRowIsOneOfAFlushedFile) {
  Put(1, "row");
  Flush();
  Put(0, "row");
  Delete(1, "row");
  Put(2, "row");
  Flush();
  EXPECT_EQ(References(1).size(), 2u);
  EXPECT_FALSE(Has(1, "row"));
  Reopen();
  EXPECT_FALSE(Has(1, "row"));
}

// A range ends in front of the first key of the next, which may be a row.
TEST_F(SharedTablesTest, TheFirstRowOfARangeIsNoneOfThatInFront) {
  const std::string first = EncodeUserKey(tables_[1], "q", "");
  ASSERT_TRUE(runtime_->RunToEnd(store_->SplitRange(first)).ok());
  Put(0, "row");
  PutKey(1, first, "some");
  Flush();
  EXPECT_THAT(LowersOf(1), ElementsAre(first));
}

// covers: F46 F48
TEST_F(SharedTablesTest, ADamagedBlockStopsTheCompactionOfItsTableAlone) {
  const std::string content(500, 'c');
  for (uint32_t flush = 0; flush < kLevel0DepthCalm; ++flush) {
    for (const size_t table : {0, 2}) {
      for (int row = 0; row < 20; ++row) Put(table, std::to_string(100 + row), content);
    }
    Flush();
    if (flush > 0) continue;
    // Of the oldest, on which all others lie, the first block.
    const std::vector<std::string> files = disk_.ListFiles("tables/");
    ASSERT_EQ(files.size(), 1u);
    disk_.FlipBit(files[0], 100, 3);
  }
  int failed = 0;
  while (failed < 5 && !runtime_->RunToEnd(store_->CompactAll()).ok()) ++failed;
  EXPECT_LT(failed, 5);
  const auto on_level0 = [this](size_t table) {
    const std::vector<FileMeta> files = References(table);
    return std::count_if(files.begin(), files.end(), [](const FileMeta& file) { return file.level == 0; });
  };
  EXPECT_GT(on_level0(0), 0);
  EXPECT_EQ(on_level0(2), 0);
  EXPECT_TRUE(Has(2, "100"));
}

// Of megabytes a few rows are left, and keep the file.
TEST_F(SharedTablesTest, WhatDroppedTablesLeftGoesAlthoughAFewRowsShareTheirFiles) {
  Reopen(/*memtable_data_bytes=*/32u << 20);
  std::mt19937_64 random(4);
  std::string content(9'000, ' ');  // A block for each row.
  for (int row = 0; row < 1500; ++row) {
    for (char& byte : content) byte = static_cast<char>(random());
    Put(0, std::to_string(1000 + row), content);
  }
  Put(2, "kept", "some");
  Delete(2, "deleted");
  Flush();
  Put(2, "kept", "newer");
  Flush();
  ASSERT_EQ(References(2).size(), 2u);
  ASSERT_GT(TableBytes(), 12'000'000u);
  ASSERT_TRUE(runtime_->RunToEnd(store_->CompactAll()).ok());
  EXPECT_EQ(Compactions(), 0u);  // As long as the other rows count.
  ASSERT_TRUE(runtime_->RunToEnd(store_->DeleteTable("acct", "a")).ok());
  runtime_->AdvanceTime(10'000'000'000);
  EXPECT_LT(TableBytes(), 100'000u);
  EXPECT_EQ(Compactions(), 1u);
  ASSERT_TRUE(runtime_->RunToEnd(store_->CompactAll()).ok());
  EXPECT_EQ(Compactions(), 1u);  // The newer file, and what was written anew, are nobody else's.
  EXPECT_EQ(References(2).size(), 2u);
  EXPECT_EQ(ContentOf(2, "kept"), "newer");
  Reopen();
  EXPECT_EQ(ContentOf(2, "kept"), "newer");
}

}  // namespace
}  // namespace partita

#include "engine/write_batch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/base/chunk_pool.h"
#include "engine/base/executor.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"
#include "engine/read_view.h"
#include "sstable/table_writer.h"
#include "test/support/memory_object_store.h"

namespace partita {
namespace {

constexpr size_t kMiB = 1 << 20;

Result<std::string> Appended(std::string_view, std::string_view base, std::string_view patch) {
  return std::string(base) + std::string(patch);
}

// covers: F58
TEST(WriteBatchTest, ABatchThatWaitsForMemoryDoesNotKeepWhatWasEncodedBefore) {
  ChunkPool pool(20 * kMiB);
  const BatchRoom room{.record_bytes = 10 * kMiB, .memory_bytes = 20 * kMiB};
  const std::string key = EncodeUserKey(TableId(1), "p", "r"), content(9 * kMiB, 'c');
  WriteOp op{.user_key = key, .content = content};
  WriteRequest request;
  request.table = TableId(1);
  request.ops = {&op, 1};
  WriteBatch batch(request);
  auto first = std::make_shared<Memtable>(pool), second = std::make_shared<Memtable>(pool);
  ASSERT_NE(second->arena().Allocate(4 * kMiB), nullptr);
  ASSERT_TRUE(batch.Encode(first, room).ok());
  EXPECT_EQ(batch.Encode(second, room).code(), Code::kResourceExhausted);
  const std::weak_ptr<Memtable> frozen = first;
  first.reset();  // It was flushed.
  EXPECT_TRUE(frozen.expired());
  EXPECT_TRUE(batch.Encode(second, room).ok());
}

// covers: F49 F51. What is found first, and what is found newer when it is decided.
TEST(WriteBatchTest, AMergeWithAValueOfWhichABitFlippedInMemoryFails) {
  const std::string key = EncodeUserKey(TableId(1), "p", "r");
  const std::string intact = MakeStoredValue(key, EntryKind::kPut, "old");
  std::string flipped = intact;
  flipped.back() ^= 1;
  const WriteOp op{.kind = WriteKind::kMerge, .user_key = key, .content = "new"};
  WriteRequest request;
  request.table = TableId(1);
  request.ops = {&op, 1};
  request.merge = Appended;
  for (const bool at_first : {true, false}) {
    ChunkPool pool(kMiB);
    ReadView view;
    view.active = std::make_shared<Memtable>(pool);
    ASSERT_TRUE(view.active->Reserve(2));
    view.active->Insert({key, Version(1), EntryKind::kPut, at_first ? flipped : intact});
    WriteBatch batch(request);
    EXPECT_TRUE(batch.FindInMemory(view, LevelSet()).empty());
    EXPECT_EQ(batch.CheckOps(), !at_first);
    if (!at_first) {
      view.active->Insert({key, Version(2), EntryKind::kPut, flipped});
      batch.Renew(view);
      EXPECT_FALSE(batch.CheckOps());
    }
    EXPECT_EQ(batch.verdict, WriteBatch::Verdict::kRefused);
    EXPECT_EQ(batch.refusal.code(), Code::kCorruption) << batch.refusal.ToString();
    EXPECT_NE(batch.refusal.message().find("table 1 'p' 'r'"), std::string::npos);
  }
}

// Rows in a table's block, which is in the cache.
class MergeWithFilesTest : public testing::Test {
 protected:
  MergeWithFilesTest() {
    TableWriterOptions options;
    options.store = StoreId(1);
    options.id = ObjectId(1);
    std::unique_ptr<TableWriter> writer = RunBlocking(TableWriter::Create(store_, options)).value();
    for (const std::string& key : keys_) {
      const std::string value = MakeStoredValue(key, EntryKind::kPut, "old");
      EXPECT_TRUE(writer->Add({key, Version(1), EntryKind::kPut, value}).ok());
    }
    EXPECT_TRUE(RunBlocking(writer->Finish()).ok());
    FileRef file;
    file.table = *RunBlocking(TableReader::Open(store_, cache_, StoreId(1), ObjectId(1)));
    file.info = file.table->info();
    LevelEdit edit;
    edit.added.push_back({1, std::move(file)});
    levels_ = *LevelSet::Empty()->Apply(edit);
  }

  // In the cache.
  void FlipBitOf(const std::string& key) {
    BlockPin pin;
    ASSERT_TRUE(RunBlocking(levels_->Get(key, HashKey(key), kVersionMax, &pin)).ok());
    const TableLookup cached = levels_->TryGet(key, HashKey(key), kVersionMax, &pin);
    ASSERT_FALSE(cached.needs_io);
    const_cast<char&>(cached.lookup.value.back()) ^= 1;
  }

  // With the first rows, each in an operation; what the log record holds of it.
  Result<std::string> Merge(size_t rows) {
    std::vector<WriteOp> ops;
    for (size_t i = 0; i < rows; ++i)
      ops.push_back({.kind = WriteKind::kMerge, .user_key = keys_[i], .content = "new"});
    WriteRequest request;
    request.table = TableId(1);
    request.ops = ops;
    request.merge = Appended;
    ReadView view;
    view.active = std::make_shared<Memtable>(pool_);
    WriteBatch batch(request);
    std::vector<SoughtTogether> missing = batch.FindInMemory(view, *levels_);
    EXPECT_EQ(missing.size(), 1u);
    PARTITA_TRY(RunBlocking(batch.FindByReading(*levels_, std::move(missing), &cache_.faults())));
    if (!batch.CheckOps()) return batch.refusal;
    PARTITA_TRY(batch.Encode(view.active, {.record_bytes = kMiB, .memory_bytes = kMiB}));
    return std::string(batch.payload_view);
  }

  const std::vector<std::string> keys_ = {EncodeUserKey(TableId(1), "p", "r1"),
                                          EncodeUserKey(TableId(1), "p", "r2")};
  MemoryObjectStore store_;
  BlockCache cache_{8 << 20};
  ChunkPool pool_{8 * kMiB};
  std::shared_ptr<const LevelSet> levels_;
};

// covers: F51 F52
TEST_F(MergeWithFilesTest, AValueThatFlippedInTheCacheIsReadOnceMore) {
  for (size_t rows = 1; rows <= keys_.size(); ++rows) {
    FlipBitOf(keys_.front());
    const Result<std::string> merged = Merge(rows);
    ASSERT_TRUE(merged.ok()) << merged.status().ToString();
    size_t results = 0;
    for (size_t at = 0; (at = merged->find("oldnew", at)) != std::string::npos; ++at) ++results;
    EXPECT_EQ(results, rows);
    EXPECT_EQ(cache_.faults().transient.load(), rows) << "as often as it flipped";
    EXPECT_EQ(cache_.faults().damaged_parts.load(), 0u);
    BlockPin pin;
    EXPECT_TRUE(levels_->TryGet(keys_.front(), HashKey(keys_.front()), kVersionMax, &pin).needs_io);
  }
}

TEST_F(MergeWithFilesTest, WhatIsDamagedInItsFileTooFailsAndIsCountedSo) {
  FlipBitOf(keys_.front());
  store_.faults().on_read = [](ObjectId, uint64_t, std::span<uint8_t>, ReadCaching) {
    return Status::IoError("the test says so");
  };
  EXPECT_EQ(Merge(1).code(), Code::kCorruption);
  EXPECT_EQ(cache_.faults().transient.load(), 0u);
  EXPECT_EQ(cache_.faults().damaged_parts.load(), 1u);
}

}  // namespace
}  // namespace partita

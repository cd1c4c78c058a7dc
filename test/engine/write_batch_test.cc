#include "engine/write_batch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/base/chunk_pool.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"
#include "engine/read_view.h"

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

}  // namespace
}  // namespace partita

#include "engine/write_batch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/base/chunk_pool.h"
#include "engine/base/user_key.h"

namespace partita {
namespace {

constexpr size_t kMiB = 1 << 20;

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

}  // namespace
}  // namespace partita

#include "compaction/warm_entries.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sstable/cached_rows.h"
#include "test/compaction/job_test_world.h"

// What a merge replaces in the cache: the outputs' blocks in place of the inputs' that it held.

namespace partita {
namespace {

constexpr uint32_t kRows = 1'000;
// Rows within so many of the edge of what was read may lie in the same block as one that was.
constexpr uint32_t kBlockRows = 40;

std::string WarmKey(uint32_t row) {
  return EncodeUserKey(TableId(1), "p" + std::to_string(10 + row / 100), std::to_string(100'000 + row));
}

class WarmEntriesTest : public testing::TestWithParam<bool> {
 protected:
  void Flush(uint32_t step, uint64_t version) {
    std::vector<ModelEntry> entries;
    for (uint32_t row = 0; row < kRows; row += step) {
      std::string content = std::to_string(row * 7919 + version);
      while (content.size() < content_size_) content += std::to_string(content.size() * 31 + row);
      entries.push_back(MakeEntry(WarmKey(row), version, EntryKind::kPut, content));
    }
    Result<JobResult> result = world_.Flush(std::move(entries), {kVersionMax, {}});
    ASSERT_TRUE(result.ok()) << result.status().ToString();
  }

  void Read(uint32_t from, uint32_t to) {
    for (uint32_t row = from; row < to; ++row) {
      BlockPin pin;
      const std::string key = WarmKey(row);
      Result<Lookup> found = RunBlocking(world_.levels->Get(key, HashKey(key), kVersionMax, &pin));
      EXPECT_TRUE(found.ok() && found->state == LookupState::kFound) << row << found.status().ToString();
    }
  }

  void Merge(uint32_t input, bool drop = true) {
    MergeSpec spec = world_.SpecFor(world_.PlanOfLevels(input, 6), {kVersionMax, {}});
    spec.pass_through = GetParam();
    Result<JobResult> result = world_.Merge(std::move(spec));
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    replaced_ = result->replaced;
    if (!drop) return;
    for (const BlockKey& block : replaced_) world_.cache.Drop(block);
    world_.cache.CheckInvariants();
  }

  bool IsWarm(uint32_t row) {
    BlockPin pin;
    const std::string key = WarmKey(row);
    return !world_.levels->TryGet(key, HashKey(key), kVersionMax, &pin).needs_io;
  }

  // With blocks of nobody's, so that what is read is not kept as a whole.
  void FillCache() {
    for (uint64_t i = 0; i < 800; ++i) {
      const BlockKey key{ObjectId(999'999), i * 4096};
      (void)world_.cache.Insert(key, world_.cache.NewFrame(key, 2000), CachePriority::kScan);
    }
  }

  JobWorld world_;
  size_t content_size_ = 60;
  std::vector<BlockKey> replaced_;
};

TEST_P(WarmEntriesTest, WhatWasCachedStaysCachedAndNothingElseComes) {
  Flush(1, 5);
  Merge(0);
  EXPECT_TRUE(replaced_.empty());
  EXPECT_EQ(world_.cache.statistics().blocks, 0u);
  Flush(100, 6);  // One block over all others; they are taken apart, or pass.
  Read(501, 700);
  Read(801, 802);
  const uint64_t held = world_.cache.statistics().used_bytes;
  Merge(0);
  for (uint32_t row = 501; row < 700; ++row) EXPECT_TRUE(IsWarm(row)) << row;
  EXPECT_TRUE(IsWarm(801));
  for (uint32_t row = 0; row < kRows; ++row) {
    const bool near_read = (row + kBlockRows >= 500 && row < 700 + kBlockRows) ||
                           (row + kBlockRows >= 801 && row < 801 + kBlockRows);
    if (!near_read) EXPECT_FALSE(IsWarm(row)) << row;
  }
  // The inputs' blocks are gone: about as much is held as before.
  EXPECT_LT(world_.cache.statistics().used_bytes, held + held / 2);
  EXPECT_EQ(world_.cache.CountPinned(), 0u);
  Read(0, kRows);
}

TEST_P(WarmEntriesTest, ReplacedBlocksAreThoseOfTheInputsThatWereCached) {
  Flush(1, 5);
  Read(0, kRows);
  const uint64_t files = world_.last_id;
  Merge(0, /*drop=*/false);
  EXPECT_GE(replaced_.size(), 100u);
  for (const BlockKey& block : replaced_) {
    EXPECT_LE(block.object.value, files);
    EXPECT_TRUE(world_.cache.Contains(block));
  }
  for (uint32_t row = 0; row < kRows; ++row) ASSERT_TRUE(IsWarm(row)) << row;
}

TEST_P(WarmEntriesTest, RowsThatTheCacheHeldWithoutTheirBlocksStay) {
  world_.block_size = 4096;
  content_size_ = 300;
  Flush(1, 5);
  Merge(0);
  FillCache();
  for (const uint32_t row : {5u, 305u, 777u}) Read(row, row + 1);
  const uint64_t rows = world_.cache.statistics().rows;
  ASSERT_GE(rows, 3u);
  Flush(305, 6);  // Row 305 is in it: what is newest of it was not read.
  Merge(0);
  for (const uint32_t row : {5u, 777u}) EXPECT_TRUE(IsWarm(row)) << row;
  for (const uint32_t row : {4u, 6u, 305u, 776u, 778u}) EXPECT_FALSE(IsWarm(row)) << row;
  uint64_t replaced_rows = 0;
  for (const BlockKey& key : replaced_) replaced_rows += IsCachedRow(key);
  EXPECT_EQ(replaced_rows, 2u);
  EXPECT_GT(replaced_.size(), replaced_rows);  // And the index blocks that named them.
  EXPECT_EQ(world_.cache.statistics().rows, rows);
  Read(0, kRows);  // What is cached is what the outputs have.
}

TEST_P(WarmEntriesTest, AFailedMergeLeavesTheCacheAsItWas) {
  Flush(1, 5);
  Read(0, kRows);
  const CacheStatistics before = world_.cache.statistics();
  const ObjectId fourth(world_.last_id + 4);  // Of the outputs.
  world_.store.faults().on_read = [fourth](ObjectId id, uint64_t offset, std::span<uint8_t> bytes,
                                           ReadCaching) {
    if (id == fourth && offset == 0) bytes[100] ^= 1;
    return Status();
  };
  MergeSpec spec = world_.SpecFor(world_.PlanOfLevels(0, 6), {kVersionMax, {}});
  spec.pass_through = GetParam();
  EXPECT_FALSE(world_.Merge(std::move(spec)).ok());
  EXPECT_EQ(world_.cache.statistics().blocks, before.blocks);
  for (uint32_t row = 0; row < kRows; ++row) ASSERT_TRUE(IsWarm(row)) << row;
}

TEST(WarmEntriesCountTest, CountsWhatOverlapsEachBlock) {
  BlockCache cache(1u << 20);
  WarmEntries warm(cache, nullptr);
  warm.Out(true, 5);
  warm.Out(false, 5);
  EXPECT_TRUE(warm.Wants(10));  // Half of them.
  warm.Out(false, 1);
  warm.Out(true, 4);
  EXPECT_TRUE(warm.Wants(5));
  warm.Out(true, 3);  // The same run goes on.
  warm.Out(false, 4);
  EXPECT_FALSE(warm.Wants(7));
  for (int i = 0; i < 300'000; ++i) {  // What was read back leaves room for what comes.
    warm.Out(true, 1);
    warm.Out(false, 3);
    warm.Out(true, 2);
    ASSERT_FALSE(warm.Wants(4)) << i;
    ASSERT_TRUE(warm.Wants(2)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, WarmEntriesTest, testing::Bool(), [](const auto& passes) {
  return passes.param ? "PassWhereTheyCan" : "AreTakenApart";
});

}  // namespace
}  // namespace partita

#include "compaction/warm_entries.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sstable/cached_rows.h"
#include "test/compaction/job_test_world.h"

// What jobs put into the cache: of a merge the outputs' blocks in place of the inputs' that it held, of a
// flush what readers want.

namespace partita {
namespace {

constexpr uint32_t kRows = 1'000;
// Rows within so many of the edge of what was read may lie in the same block as one that was.
constexpr uint32_t kBlockRows = 40;

std::string WarmKey(uint32_t row) {
  return EncodeUserKey(TableId(1), "p" + std::to_string(10 + row / 100), std::to_string(100'000 + row));
}

class WarmEntriesWorld {
 protected:
  std::vector<ModelEntry> Entries(uint32_t step, uint64_t version) const {
    std::vector<ModelEntry> entries;
    for (uint32_t row = 0; row < kRows; row += step) {
      std::string content = std::to_string(row * 7919 + version);
      while (content.size() < content_size_) content += std::to_string(content.size() * 31 + row);
      entries.push_back(MakeEntry(WarmKey(row), version, EntryKind::kPut, content));
    }
    return entries;
  }

  // The rows of [from, to) are wanted.
  Status FlushWanted(uint32_t from, uint32_t to) {
    const auto is_wanted = [from, to](std::string_view key) {
      return key >= WarmKey(from) && key < WarmKey(to);
    };
    return world_.Flush(Entries(1, 5), {kVersionMax, {}}, {}, is_wanted).status();
  }

  void Flush(uint32_t step, uint64_t version) {
    Result<JobResult> result = world_.Flush(Entries(step, version), {kVersionMax, {}});
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
    spec.pass_through = pass_through_;
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
  bool pass_through_ = true;
};

class WarmEntriesTest : public WarmEntriesWorld, public testing::TestWithParam<bool> {
 protected:
  WarmEntriesTest() { pass_through_ = GetParam(); }
};

class WarmFlushTest : public WarmEntriesWorld, public testing::Test {};

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

TEST_F(WarmFlushTest, TheCacheGetsWhatReadersWant) {
  ASSERT_TRUE(FlushWanted(501, 700).ok());
  for (uint32_t row = 501; row < 700; ++row) EXPECT_TRUE(IsWarm(row)) << row;
  for (uint32_t row = 0; row < kRows; ++row) {
    const bool near_wanted = row + kBlockRows >= 501 && row < 700 + kBlockRows;
    if (!near_wanted) EXPECT_FALSE(IsWarm(row)) << row;
  }
  EXPECT_EQ(world_.cache.CountPinned(), 0u);
  Read(0, kRows);
}

TEST_F(WarmFlushTest, WhatNobodyWantsComesAsLongAsMemoryIsFree) {
  world_.fills_cache = true;
  ASSERT_TRUE(FlushWanted(501, 502).ok());
  for (uint32_t row = 0; row < kRows; ++row) ASSERT_TRUE(IsWarm(row)) << row;
  EXPECT_EQ(world_.cache.CountPinned(), 0u);
  world_.cache.CheckInvariants();
}

TEST_F(WarmFlushTest, NothingIsEvictedForWhatNobodyWants) {
  FillCache();
  const CacheStatistics before = world_.cache.statistics();
  world_.fills_cache = true;
  ASSERT_TRUE(FlushWanted(0, 0).ok());
  EXPECT_EQ(world_.cache.statistics().evictions, before.evictions);
  EXPECT_LT(world_.cache.statistics().blocks, before.blocks + 5);  // Where a partition had a little left.
  ASSERT_TRUE(FlushWanted(501, 700).ok());
  for (uint32_t row = 501; row < 700; ++row) EXPECT_TRUE(IsWarm(row)) << row;
}

TEST_P(WarmEntriesTest, WhatNobodyHasUsedStaysWhereMemoryIsFree) {
  world_.fills_cache = true;
  Flush(1, 5);
  const uint64_t evictions = world_.cache.statistics().evictions;
  Merge(0);
  EXPECT_FALSE(replaced_.empty());
  for (uint32_t row = 0; row < kRows; ++row) ASSERT_TRUE(IsWarm(row)) << row;
  EXPECT_EQ(world_.cache.statistics().evictions, evictions);
}

TEST_P(WarmEntriesTest, NothingIsEvictedForWhatNobodyHasUsed) {
  world_.fills_cache = true;
  Flush(1, 5);
  FillCache();
  const uint64_t evictions = world_.cache.statistics().evictions;
  Merge(0);
  EXPECT_EQ(world_.cache.statistics().evictions, evictions);
}

TEST_F(WarmFlushTest, OfABlockWithFewWantedRowsTheyComeAlone) {
  world_.block_size = 4096;
  content_size_ = 300;
  ASSERT_TRUE(FlushWanted(777, 778).ok());
  EXPECT_TRUE(IsWarm(777));
  for (const uint32_t row : {776u, 778u}) EXPECT_FALSE(IsWarm(row)) << row;
  EXPECT_EQ(world_.cache.statistics().rows, 1u);
}

// Of blocks with many small rows, which take a slot each. Rows lie about 60 in a block.
TEST_F(WarmFlushTest, WhereRowsAreNotWorthCuttingOutBlocksComeWhole) {
  world_.block_size = 4096;
  ASSERT_TRUE(FlushWanted(300, 302).ok());
  EXPECT_EQ(world_.cache.statistics().blocks, 0u);  // Two of a block are too few.
  const auto third = [](std::string_view key) { return key.back() % 3 == 0; };
  ASSERT_TRUE(world_.Flush(Entries(1, 6), {kVersionMax, {}}, {}, third).ok());
  uint32_t warm = 0;
  for (uint32_t row = 0; row < kRows; ++row) {
    warm += IsWarm(row);
    if (third(WarmKey(row))) ASSERT_TRUE(IsWarm(row)) << row;
  }
  EXPECT_GT(warm, kRows * 9 / 10);
  EXPECT_LT(world_.cache.statistics().rows, kRows / 50);  // Of small blocks at the ends of files.
}

TEST_F(WarmFlushTest, WhatIsNotWrittenIsNotCounted) {
  std::vector<ModelEntry> entries;
  for (uint32_t row = 0; row < 70; ++row)
    entries.push_back(MakeEntry(EncodeUserKey(TableId(0), "p", std::to_string(100 + row)), 9, EntryKind::kPut,
                                "of a table that is gone"));
  world_.dead_table = TableId(0);
  for (const ModelEntry& newest : Entries(1, 8)) {
    entries.push_back(newest);
    entries.push_back(MakeEntry(newest.key, 7, EntryKind::kPut, "older"));
    if (entries.size() % 3 == 0) entries.push_back(MakeEntry(newest.key, 6, EntryKind::kTombstone, ""));
  }
  const auto is_wanted = [](std::string_view key) { return key >= WarmKey(501) && key < WarmKey(700); };
  ASSERT_TRUE(world_.Flush(std::move(entries), {kVersionMax, {}}, {}, is_wanted).ok());
  for (uint32_t row = 501; row < 700; ++row) EXPECT_TRUE(IsWarm(row)) << row;
  for (const uint32_t row : {0u, 460u, 741u, 999u}) EXPECT_FALSE(IsWarm(row)) << row;
}

TEST_F(WarmFlushTest, TombstonesStayOut) {
  std::vector<ModelEntry> entries;
  for (uint32_t row = 0; row < kRows; ++row)
    entries.push_back(MakeEntry(WarmKey(row), 5, EntryKind::kTombstone, ""));
  const auto all = [](std::string_view) { return true; };
  ASSERT_TRUE(world_.Flush(std::move(entries), {kVersionMax, {}}, {}, all).ok());
  EXPECT_EQ(world_.cache.statistics().blocks, 0u);
}

TEST_F(WarmFlushTest, AFailedFlushLeavesTheCacheAsItWas) {
  const ObjectId fourth(world_.last_id + 4);  // Of the outputs.
  world_.store.faults().on_read = [fourth](ObjectId id, uint64_t offset, std::span<uint8_t> bytes,
                                           ReadCaching) {
    if (id == fourth && offset == 0) bytes[100] ^= 1;
    return Status();
  };
  EXPECT_FALSE(FlushWanted(0, kRows).ok());
  EXPECT_GE(world_.last_id, fourth.value);
  EXPECT_EQ(world_.cache.statistics().blocks, 0u);
  EXPECT_EQ(world_.ObjectCount(), 0u);
}

TEST(WarmEntriesCountTest, CountsWhatOverlapsEachBlock) {
  BlockCache cache(1u << 20);
  WarmEntries warm(cache, nullptr);
  warm.Out(true, 5);
  warm.Out(false, 6);
  warm.Out(true, 4);
  warm.Out(true, 3);  // The same run goes on.
  warm.Out(false, 4);
  const std::shared_ptr<WarmOutput> first = warm.EndOutput();
  warm.Out(true, 3);  // Of the next.
  warm.Out(false, 5);
  const std::shared_ptr<WarmOutput> second = warm.EndOutput();
  EXPECT_TRUE(first->Wants(10));  // Half of them.
  EXPECT_TRUE(first->Wants(5));
  EXPECT_FALSE(second->Wants(7));  // Each counts its own.
  EXPECT_FALSE(first->Wants(7));
  EXPECT_FALSE(second->Wants(1));
}

TEST(WarmEntriesCountTest, ARunReachesOverTheEndsOfBlocks) {
  BlockCache cache(1u << 20);
  WarmEntries warm(cache, nullptr);
  warm.Out(false, 3);
  warm.Out(true, 10);
  warm.Out(false, 3);
  const std::shared_ptr<WarmOutput> output = warm.EndOutput();
  EXPECT_FALSE(output->Wants(5));
  for (int block = 0; block < 4; ++block) EXPECT_TRUE(output->Wants(2)) << block;
  EXPECT_FALSE(output->Wants(3));
}

INSTANTIATE_TEST_SUITE_P(Blocks, WarmEntriesTest, testing::Bool(), [](const auto& passes) {
  return passes.param ? "PassWhereTheyCan" : "AreTakenApart";
});

}  // namespace
}  // namespace partita

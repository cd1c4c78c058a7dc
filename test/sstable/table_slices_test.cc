// A cursor that is sent on from slice to slice of one file (TableIterator::Rebound), beside a fresh one for
// each.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sstable/read_ahead_pool.h"
#include "sstable/table_scan.h"
#include "test/sstable/read_ahead_fixture.h"
#include "test/support/late_executor.h"

namespace partita {
namespace {

struct Slice {
  std::string lower;
  std::string upper;
};

// Of one file.
class TableSlicesTest : public testing::Test {
 protected:
  // What a cursor gives of a slice: its entries, but of blocks that may pass as they are only those.
  struct Given {
    std::vector<OwnedEntry> entries;
    std::vector<std::string> blocks;
  };

  void Write(std::vector<OwnedEntry> entries) {
    entries_ = std::move(entries);
    const ObjectId id{next_id_++};
    ASSERT_TRUE(RunBlocking(WriteOn(store_, entries_, id)).ok());
    auto opened = OpenTable(store_, cache_, id);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    table_ = std::move(opened).value();
    ASSERT_GT(table_->properties().index_blocks, 1u);
    bounds_.clear();
    auto it = table_->NewIterator(Direction::kForward, {.caching = IterCaching::kBypass});
    Status status;
    for (IterState state = it->SeekToFirst(); state != IterState::kEnd;) {
      if (state == IterState::kNeedsIo) {
        ASSERT_TRUE(RunBlocking(it->Fetch()).ok());
        state = it->state();
        continue;
      }
      const BlockSummary& block = it->CurrentBlock();
      bounds_.insert(bounds_.end(), {block.first_key, block.last_key, block.fence, block.fence + '\0'});
      state = it->SkipBlock();
    }
  }

  // Goes on to the end; `passes`: over whole blocks.
  Given Take(TableIterator& it, IterState state, bool passes, LateExecutor* helpers = nullptr) {
    Given given;
    while (state != IterState::kEnd) {
      if (state == IterState::kNeedsIo) {
        const Status fetched = RunBlocking(it.Fetch());
        EXPECT_TRUE(fetched.ok()) << fetched.ToString();
        if (!fetched.ok()) break;
        if (helpers != nullptr && random_() % 2 == 0) helpers->RunAll();
        state = it.state();
        continue;
      }
      if (passes && it.AtBlockStart()) {
        if (const std::optional<PassThroughBlock> block = it.CurrentPassThrough()) {
          given.blocks.emplace_back(block->stored);
          state = it.SkipBlock();
          continue;
        }
      }
      given.entries.push_back(Copy(it.entry()));
      state = it.Next();
    }
    return given;
  }

  // Where slices begin and end: at entries, between them, and at the bounds of blocks; all over the file or
  // near each other, where many lie in one block. In order, some twice.
  std::vector<std::string> Cuts(size_t count) {
    const bool is_near = random_() % 2 == 0;
    const size_t begin = is_near ? random_() % entries_.size() : 0;
    const size_t width = is_near ? std::min<size_t>(entries_.size() - begin, 60) : entries_.size();
    std::vector<std::string> cuts;
    while (cuts.size() < count) {
      const std::string& key = entries_[begin + random_() % width].user_key;
      switch (random_() % 4) {
        case 0:
          cuts.push_back(key);
          break;
        case 1:
          cuts.push_back(key + '\0');
          break;
        default: {
          const size_t at = is_near ? 4 * BlockOf(key) + random_() % 4 : random_() % bounds_.size();
          cuts.push_back(bounds_[at]);
        }
      }
      if (random_() % 8 == 0) cuts.push_back(cuts.back());
    }
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }
  // In order, with gaps, some without a key; at times from the first key of the file or to the last one.
  std::vector<Slice> Slices() {
    const std::vector<std::string> cuts = Cuts(2 + random_() % 60);
    std::vector<Slice> slices;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (random_() % 4 != 0) slices.push_back({cuts[i], cuts[i + 1]});
    }
    if (slices.empty()) slices.push_back({cuts.front(), cuts.back()});
    if (random_() % 4 == 0) slices.front().lower.clear();
    if (random_() % 4 == 0) slices.back().upper.clear();
    return slices;
  }
  size_t BlockOf(const std::string& key) const {
    size_t block = 0;
    while (bounds_[4 * block + 1] < key) ++block;
    return block;
  }

  // One cursor through all of them, each read whole; at times a seek goes before that.
  void WalkThrough(const std::vector<Slice>& slices, IterCaching caching, ReadAheadPool* pool,
                   LateExecutor* helpers) {
    IterOptions options{.caching = caching, .lower = slices[0].lower, .upper = slices[0].upper};
    options.read_ahead = pool;
    switch (random_() % 4) {
      case 0:
        break;  // To the end of each alone.
      case 1:   // Too far, or not far enough.
        options.reads_to = entries_[random_() % entries_.size()].user_key;
        break;
      default:
        options.reads_to = slices.back().upper;
    }
    auto it = table_->NewIterator(Direction::kForward, options);
    if (pool != nullptr && random_() % 2 == 0) it->Anticipate();
    options.read_ahead = nullptr;
    for (size_t i = 0; i < slices.size(); ++i) {
      SCOPED_TRACE("slice " + std::to_string(i));
      const auto& [lower, upper] = slices[i];
      options.lower = lower;
      options.upper = options.reads_to = upper;
      const auto fresh = table_->NewIterator(Direction::kForward, options);
      const bool passes = caching == IterCaching::kBypass && random_() % 2 == 0;
      IterState state = i == 0 ? it->SeekToFirst() : it->Rebound(lower, upper);
      const Given expected = Take(*fresh, fresh->SeekToFirst(), passes);
      if (!passes) ASSERT_EQ(expected.entries, Expected(entries_, Direction::kForward, lower, upper));
      const std::string& key = entries_[random_() % entries_.size()].user_key;
      if (random_() % 3 == 0 && (upper.empty() || key < upper)) {
        if (state == IterState::kEntry && random_() % 2 == 0) it->Next();
        const Given sought = Take(*it, it->Seek(key), passes, helpers);
        const Given sought_expected = Take(*fresh, fresh->Seek(key), passes);
        ASSERT_EQ(sought.entries, sought_expected.entries);
        ASSERT_EQ(sought.blocks, sought_expected.blocks);
        state = it->SeekToFirst();
      }
      const Given given = Take(*it, state, passes, helpers);
      ASSERT_EQ(given.entries, expected.entries);
      ASSERT_EQ(given.blocks, expected.blocks);
      blocks_passed_ += given.blocks.size();
      empty_slices_ += expected.entries.empty() && expected.blocks.empty();
    }
  }

  // Slices of some rows each, none of them left out; the last one ends before the end of the file.
  std::vector<Slice> SideBySide() const {
    std::vector<Slice> slices;
    for (size_t at = 0; at + 7 < entries_.size() - 1000; at += 7)
      slices.push_back({entries_[at].user_key, entries_[at + 7].user_key});
    return slices;
  }

  MemoryObjectStore store_;
  BlockCache cache_{256 << 10};
  uint64_t next_id_ = kTable.value;
  std::shared_ptr<TableReader> table_;
  std::vector<OwnedEntry> entries_;
  std::vector<std::string>
      bounds_;  // Of each block its first key, its last one, its fence, and what lies above.
  std::mt19937_64 random_{TestSeed()};
  size_t blocks_passed_ = 0;
  size_t empty_slices_ = 0;
};

TEST_F(TableSlicesTest, ACursorSentOnGivesOfEachWhatAFreshOneDoes) {
  for (const bool all_shapes : {false, true}) {
    Write(all_shapes ? RandomEntries(random_, 6000, 6000) : ManyEntries(TestSeed(), /*count=*/2000));
    for (const IterCaching caching : {IterCaching::kBypass, IterCaching::kFill, IterCaching::kLookOnly}) {
      for (const size_t pool_bytes : {size_t{0}, size_t{300} << 10, kPoolBytes}) {
        LateExecutor helpers;
        ReadAheadPool pool(helpers, pool_bytes);
        for (int round = 0; round < 8; ++round) {
          SCOPED_TRACE("pool of " + std::to_string(pool_bytes) + ", round " + std::to_string(round));
          WalkThrough(Slices(), caching, pool_bytes == 0 ? nullptr : &pool, &helpers);
          if (HasFatalFailure()) return;
        }
        helpers.RunAll();
        RunBlocking(pool.Join());
      }
    }
  }
  EXPECT_GT(blocks_passed_, 100u);
  EXPECT_GT(empty_slices_, 100u);
}

// Many slices lie in one block: it is neither read nor decoded for each of them.
TEST_F(TableSlicesTest, SideBySideTheyAreReadAsOne) {
  Write(ManyEntries(TestSeed()));
  const std::vector<Slice> slices = SideBySide();
  LateExecutor helpers;
  ReadAheadPool pool(helpers, kPoolBytes);
  for (ReadAheadPool* const read_ahead : {static_cast<ReadAheadPool*>(nullptr), &pool}) {
    TableScan scan;
    IterOptions options{.caching = IterCaching::kBypass, .lower = slices.front().lower};
    options.read_ahead = read_ahead;
    options.scan = &scan;
    const auto begin = [&](const std::string& upper) {
      options.upper = upper;
      scan.counts = BlockCounts();
      return table_->NewIterator(Direction::kForward, options);
    };
    const auto whole = begin(slices.back().upper);
    uint64_t before = store_.read_bytes();
    const size_t entries = Take(*whole, whole->SeekToFirst(), /*passes=*/false).entries.size();
    const uint64_t bytes = store_.read_bytes() - before, blocks = scan.counts.blocks_read;
    helpers.RunAll();
    ASSERT_LT(blocks, slices.size() * 2);

    options.reads_to = slices.back().upper;
    const auto it = begin(slices.front().upper);
    before = store_.read_bytes();
    size_t given = Take(*it, it->SeekToFirst(), /*passes=*/false).entries.size();
    for (size_t i = 1; i < slices.size(); ++i)
      given += Take(*it, it->Rebound(slices[i].lower, slices[i].upper), /*passes=*/false).entries.size();
    EXPECT_EQ(given, entries);
    EXPECT_EQ(store_.read_bytes() - before, bytes);
    EXPECT_EQ(scan.counts.blocks_read, blocks);
    options.reads_to.clear();
    helpers.RunAll();
  }
  RunBlocking(pool.Join());
}

// Which it is told, as its own slice ends before.
TEST_F(TableSlicesTest, ItReadsAheadAsFarAsItWillBeSentAndNoFurther) {
  Write(ManyEntries(TestSeed()));
  const std::string end = entries_[entries_.size() / 2].user_key;
  uint64_t end_offset = 0;  // No data behind it is wanted.
  {
    auto it = table_->NewIterator(Direction::kForward, {.caching = IterCaching::kFill});
    while (it->Seek(end) == IterState::kNeedsIo) ASSERT_TRUE(RunBlocking(it->Fetch()).ok());
    end_offset = it->block_key().offset + 2 * kPageSize;
  }
  const uint64_t index_begin = AlignDown(IndexRecordHandle(table_->top_index().value(0)).offset, kPageSize);
  uint64_t furthest = 0;
  store_.faults().on_read = [&](ObjectId, uint64_t offset, std::span<uint8_t> bytes, ReadCaching) {
    if (offset < index_begin) furthest = std::max(furthest, offset + bytes.size());
    return Status();
  };
  for (const std::string& reads_to : {std::string(), end}) {
    furthest = 0;
    IterOptions options{.caching = IterCaching::kBypass, .upper = entries_[3].user_key};
    options.reads_to = reads_to;
    const auto it = table_->NewIterator(Direction::kForward, options);
    EXPECT_EQ(Take(*it, it->SeekToFirst(), /*passes=*/false).entries.size(), 3u);
    if (reads_to.empty()) {
      EXPECT_LE(furthest, 4 * kPageSize);
      continue;
    }
    EXPECT_GE(furthest, 1u << 20);  // A whole piece.
    it->Rebound(entries_[100].user_key, end);
    Take(*it, it->state(), /*passes=*/false);
    EXPECT_GT(furthest, end_offset - 4 * kPageSize);
    EXPECT_LE(furthest, end_offset);
  }
}

}  // namespace
}  // namespace partita

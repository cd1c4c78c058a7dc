#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/executor.h"
#include "engine/base/task.h"
#include "sstable/block_cache.h"
#include "sstable/table_iterator.h"
#include "sstable/table_reader.h"

namespace partita {

// Which entries of a job's outputs come from blocks that the cache holds. It then gets the outputs' blocks in
// their place when they are read back: else a reader of what is hot would have to fetch from the disk
// whatever was merged. Of a memtable it gets the rows that readers want (FlushSpec).
//
// A block is wanted when at least half of its entries came from such blocks: one of a level above lies over
// many blocks of the level below, and says little about each of them. It comes in as a scan's would, so what
// was scanned once is no hotter for having been merged. Rows that the cache held without their block
// (sstable/cached_rows.h), and those of a memtable, come in as rows, unless half of their new block is
// wanted; where rows are not worth cutting out, an eighth of it is enough.
//
// Blocks that nobody wants may come in, too, as long as memory is free: of a flush (TakeSpare), and of a
// merge where the cache held an input that nobody had used since it came in so. What was written last is then
// read without the disk where there is memory for all.
//
// Used by one thread at a time; everything outlives it.
class WarmEntries final : public BlockTaker {
 public:
  // `executor`: does what takes the cache's locks, for a thread that must not (an idle one: DESIGN 7), and is
  // not that thread's. Null: whoever runs the job does.
  WarmEntries(BlockCache& cache, Executor* executor) : cache_(cache), executor_(executor) {}

  // From here on blocks that are not wanted come in as well, until the cache has nothing free for one.
  void TakeSpare() { takes_spare_ = !spare_ended_; }

  // An input block that the merge comes to: whether its entries are warm, as the cache has it and it was
  // used.
  bool Note(const TableIterator& at);
  // The next `count` entries of the outputs.
  void Out(bool warm, uint64_t count);
  // The next entry of the outputs, of the block in which `at` stands, or all of that block; `warm` as Note
  // said of it. Of a block that is not in the cache some rows may be.
  void OutEntry(const TableIterator& at, bool warm, std::string_view user_key);
  void OutBlock(const TableIterator& at, bool warm, const DataBlock& block);

  // The next entry of the outputs, which comes from no block.
  void OutRow(bool warm);

  bool Wants(uint64_t entries) override;
  void Take(const TableIterator& at) override;
  bool IsFull() const override { return bytes_.size() >= kBytesAtOnce; }
  Task<void> Put() override;

  // Gives up what was put: the outputs are discarded.
  Task<void> TakeBack();

  // The input blocks that were in the cache.
  const std::vector<BlockKey>& blocks() const { return blocks_; }

 private:
  // Copies that wait for Put.
  static constexpr size_t kBytesAtOnce = size_t{1} << 20;
  // Runs of entries not read back yet, 16 bytes each, and as many single ones; what comes beyond counts as
  // cold.
  static constexpr size_t kRunsMax = 262'144;

  struct Run {  // Of entries, counted from the first output's first one.
    uint64_t begin, end;
  };
  struct Piece {
    BlockKey key;
    size_t size;
    CachePriority priority;
    bool is_spare;
  };

  void NoteIndex(const TableIterator& at);
  void NoteRow(const TableIterator& at, const BlockKey& row);
  bool IsWorthTaking(const DataBlock& block) const;
  void TakeRows(const TableIterator& at, const DataBlock& block);
  void Copy(BlockKey key, std::string_view content, CachePriority priority, bool is_spare = false);
  Task<void> Elsewhere(void (WarmEntries::*work)());
  void PutHere();
  void TakeBackHere();

  BlockCache& cache_;
  Executor* executor_;
  std::vector<BlockKey> blocks_;
  std::optional<BlockKey> index_noted_, row_noted_;
  bool has_rows_ = false;  // The cache had some at the last Note.
  std::vector<Run> runs_;
  std::deque<uint64_t> rows_;        // Entries that are warm alone, counted alike, and not read back yet.
  std::vector<uint32_t> rows_here_;  // Of the block that Wants was asked of last.
  bool wants_block_ = false;         // All of it, whatever its rows are.
  bool takes_spare_ = false, spare_ended_ = false;
  uint64_t out_ = 0;
  uint64_t read_back_ = 0;
  size_t at_ = 0;  // The first run that does not end before read_back_.
  std::string bytes_;
  std::vector<Piece> pieces_;  // In bytes_, one after the other.
  std::optional<BlockKey> index_taken_;
  bool index_was_wanted_ = false;  // Of that: as part of what is wanted, or of what is spare.
  std::vector<BlockKey> put_;
};

}  // namespace partita

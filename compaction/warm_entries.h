#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "compaction/warm_output.h"
#include "engine/base/executor.h"
#include "engine/base/task.h"
#include "sstable/block_cache.h"
#include "sstable/table_iterator.h"

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
// Used by the thread of the job; everything outlives it.
class WarmEntries {
 public:
  // `executor`: see WarmOutput.
  WarmEntries(BlockCache& cache, Executor* executor) : cache_(cache), executor_(executor) {}

  // From here on blocks that are not wanted come in as well, until the cache has nothing free for one.
  void TakeSpare();

  // An input block that the merge comes to: whether its entries are warm, as the cache has it and it was
  // used.
  bool Note(const TableIterator& at);
  // The next `count` entries of the output at hand.
  void Out(bool warm, uint64_t count);
  // The next entry of it, of the block in which `at` stands, or all of that block; `warm` as Note
  // said of it. Of a block that is not in the cache some rows may be.
  void OutEntry(const TableIterator& at, bool warm, std::string_view user_key);
  void OutBlock(const TableIterator& at, bool warm, const DataBlock& block);

  // The next entry of it, which comes from no block.
  void OutRow(bool warm);

  // The output at hand has no more entries: for reading it back, beside the job's thread too. What comes out
  // from here on belongs to another.
  std::shared_ptr<WarmOutput> EndOutput();

  // Gives up what was put: the outputs are discarded. REQUIRES: none is being read back.
  Task<void> TakeBack();

  // The input blocks that were in the cache.
  const std::vector<BlockKey>& blocks() const { return blocks_; }

 private:
  // Runs of entries of an output, 16 bytes each, and as many single ones, held until it was read back; what
  // comes beyond counts as cold. There are two such outputs of a job at most.
  static constexpr size_t kRunsMax = 262'144;

  void NoteIndex(const TableIterator& at);
  void NoteRow(const TableIterator& at, const BlockKey& row);

  BlockCache& cache_;
  Executor* const executor_;
  std::vector<BlockKey> blocks_;
  std::optional<BlockKey> index_noted_, row_noted_;
  bool has_rows_ = false;  // The cache had some at the last Note.
  std::atomic<SpareBlocks> spare_{SpareBlocks::kStayOut};
  WarmRuns warm_;     // Of the output at hand.
  uint64_t out_ = 0;  // Its entries.
  std::vector<std::shared_ptr<WarmOutput>> ended_;
};

}  // namespace partita

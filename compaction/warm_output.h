#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
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

// Whether blocks that nobody wants enter the cache too, where it has memory to spare. Of a whole job; any of
// its threads.
enum class SpareBlocks : uint8_t { kStayOut, kEnter, kFoundNoRoom };

// Which entries of one output are warm, counted from its first one.
struct WarmRuns {
  struct Run {
    uint64_t begin, end;
  };
  std::vector<Run> runs;       // Rising, apart from each other.
  std::vector<uint64_t> rows;  // Entries that are warm alone; rising.
};

// Puts into the cache what it is to have of one output of a job, as that is read back (WarmEntries says what
// that is).
//
// Used by one thread at a time. Everything outlives its use; who never used it may hold it for longer.
class WarmOutput final : public BlockTaker {
 public:
  // `executor`: does what takes the cache's locks, for a thread that must not (an idle one: DESIGN 7), and is
  // not that thread's. Null: whoever reads the output back does.
  WarmOutput(BlockCache& cache, Executor* executor, std::atomic<SpareBlocks>* spare, WarmRuns warm)
      : cache_(cache), executor_(executor), spare_(spare), warm_(std::move(warm)) {}

  bool Wants(uint64_t entries) override;
  void Take(const TableIterator& at) override;
  bool IsFull() const override { return bytes_.size() >= kBytesAtOnce; }
  Task<void> Put() override;

  // Nothing more is read back: of what it holds only the keys of what was put are left, as a job has
  // hundreds.
  void End();
  // Gives up what was put: the outputs are discarded.
  Task<void> TakeBack();

 private:
  // Copies that wait for Put.
  static constexpr size_t kBytesAtOnce = size_t{1} << 20;

  struct Piece {
    BlockKey key;
    size_t size;
    CachePriority priority;
    bool is_spare;
  };

  bool TakesSpare() const { return spare_->load(std::memory_order_relaxed) == SpareBlocks::kEnter; }
  bool IsWorthTaking(const DataBlock& block) const;
  void TakeRows(const TableIterator& at, const DataBlock& block);
  void Copy(BlockKey key, std::string_view content, CachePriority priority, bool is_spare = false);
  Task<void> Elsewhere(void (WarmOutput::*work)());
  void PutHere();
  void TakeBackHere();

  BlockCache& cache_;
  Executor* const executor_;
  std::atomic<SpareBlocks>* const spare_;
  WarmRuns warm_;
  size_t run_at_ = 0, row_at_ = 0;  // The first that do not end before read_back_.
  uint64_t read_back_ = 0;
  std::vector<uint32_t> rows_here_;  // Of the block that Wants was asked of last.
  bool wants_block_ = false;         // All of it, whatever its rows are.
  std::string bytes_;
  std::vector<Piece> pieces_;  // In bytes_, one after the other.
  std::optional<BlockKey> index_taken_;
  bool index_was_wanted_ = false;  // Of that: as part of what is wanted, or of what is spare.
  std::vector<BlockKey> put_;
};

}  // namespace partita

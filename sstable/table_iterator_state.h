#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sstable/block_passing.h"
#include "sstable/read_ahead_window.h"
#include "sstable/table_iterator.h"
#include "sstable/table_reader.h"
#include "sstable/table_scan.h"

namespace partita {

// What a table's cursor is made of: how it moves is in table_iterator.cc, what it reads ahead in
// table_iterator_route.cc.
struct TableIterator::State final : private ReadAheadRoute {
  State(std::shared_ptr<const TableReader> t, Direction d, IterOptions o)
      : table(std::move(t)),
        forward(d == Direction::kForward),
        options(std::move(o)),
        window(WindowOptions()) {
    if (options.beneath != nullptr && options.scan != nullptr && options.scan->predicate != nullptr)
      BeginPassing();
  }

  IterState SeekTo(std::string_view key, bool whole);
  IterState Proceed();
  void BeginPassing();
  bool PassesOver();
  std::optional<IterState> PassOver();
  bool EndsBehind() const;
  void CountRead(uint64_t bytes) {
    if (options.scan != nullptr) options.scan->counts.bytes_read += bytes;
  }
  void CountSeek();
  bool EnterIndex();
  bool EnterBlock();
  void EnteredBlock();
  void CheckBound();
  void PrefetchNeighbours() const;
  bool PlaceInBlock();
  bool StepBlock();
  IterState StandAt(uint32_t where, bool new_key);
  IterState NextGroup();
  IterState EnterNext();
  EntryRun RunForward(std::optional<std::string_view> before) const;
  EntryRun RunBackward(std::optional<std::string_view> before) const;
  Task<Status> FetchIndex();
  Task<Status> FetchIndexes(PartHandle first);
  ReadAheadRun IndexRunFrom(PartHandle first, uint64_t size_max) const;
  void Anticipate();
  void BeginIndexes();
  Task<Status> FetchBlock();
  bool MaySkip(const Status& status) const {
    return status.code() == Code::kCorruption && options.scan != nullptr && options.scan->skipped != nullptr;
  }
  void SkipDamaged(Status why);
  bool EndsBehindPart() const;
  bool StepPart();
  ReadAheadWindow::Options WindowOptions() const;
  void Restart() override;
  std::optional<PartHandle> NextPart() override;
  bool IsAtEnd() const override { return route_ended; }
  bool CacheHas(const PartHandle& part) const override {
    return !bypass() && table->cache_.Contains(table->KeyOf(part));
  }
  bool EndsAt(const DataBlock& fences, uint32_t i, std::string_view upper) const;
  // Of what is read ahead.
  bool RouteEndsAt(const DataBlock& fences, uint32_t i) const {
    return EndsAt(fences, i, options.reads_to.empty() ? options.upper : options.reads_to);
  }
  std::optional<PartHandle> NextIndexOfRoute();
  bool LeavesOut(const DataBlock& records);
  BlockPin IndexFromWindow(const PartHandle& where);
  TableReader::LoadRequest DataRequest() const {
    return {.handle = handle,
            .kind = SealKind::kDataBlock,
            .priority = CachePriority::kScan,
            .fill_cache = options.caching == IterCaching::kFill,
            .is_miss = !bypass(),
            .waits = waits()};
  }
  bool bypass() const { return options.caching == IterCaching::kBypass; }
  // Jobs go past the cache, and read as long as it takes.
  TimedWaits* waits() const { return bypass() ? nullptr : table->cache_.waits(); }

  std::shared_ptr<const TableReader> table;
  const bool forward;
  IterOptions options;
  IterState state = IterState::kEnd;

  enum class Target : uint8_t {
    kKey,   // The key in `target_key`.
    kEdge,  // The block's first key in iteration order.
  };
  Target target = Target::kEdge;
  std::string target_key;

  uint32_t top_at = 0;
  bool has_index = false;
  BlockPin index_pin;
  DataBlock index;
  uint32_t index_at = 0;
  std::optional<BlockPassing> passing;  // Nothing: every block is read.
  bool wanted = false;                  // The block at index_at is not passed over.
  bool at_milestone = false;            // entry is one; the position is that of the next block.

  bool has_block = false;
  bool is_first_block = false;          // Since the cursor was placed no block was entered or read.
  bool window_is_suspect = false;       // The block's bytes in the window were bad: read it alone.
  uint64_t suspect_index = UINT64_MAX;  // Offset of an index block that was bad in such a read.
  PartHandle handle;
  BlockPin block_pin;
  DataBlock block;
  uint32_t at = 0;
  uint32_t group_begin = 0;  // Backward: the newest version of the current key.
  bool check_bound = false;  // The block reaches to the far bound.

  // The cursor came to the index block in front of it from its neighbour: it will come to those behind, too.
  bool index_in_order = options.read_in_stride > 0 || bypass();
  bool sought = false;
  std::shared_ptr<ReadAheadPiece> indexes;  // Index blocks, as they are stored; null: none.

  // Stored blocks read last; they are decoded when the cursor comes to them.
  ReadAheadWindow window;
  // What NextPart named last: an entry of an index block, of this one when route_top == top_at.
  uint32_t route_top = 0;
  uint32_t route_at = 0;
  BlockPin route_pin;
  DataBlock route_index;
  bool route_asked_index = false;  // It named the next index block.
  bool route_ended = false;        // Behind what it named nothing is wanted.

  // What pass-through needs of the current block (kBypass).
  TableReader::StoredPart stored_alone;
  std::string_view stored;
  bool has_summary = false;
  BlockSummary summary;

  std::string key;
  Entry entry;
};

}  // namespace partita

#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/entry_iterator.h"
#include "sstable/block_cache.h"
#include "sstable/table_writer.h"

namespace partita {

class ReadAheadPool;
class FilesBeneath;
class TableReader;
struct TableScan;

// How an iterator meets the cache.
enum class IterCaching : uint8_t {
  kFill,      // Uses the cache and leaves what it read in it (at scan priority).
  kLookOnly,  // Uses what is there, leaves nothing.
  kBypass,    // For compaction and verification: large reads in order, past the cache.
};

struct IterOptions {
  IterCaching caching = IterCaching::kFill;
  // Only keys in [lower, upper); an empty `upper` is no bound (virtual references: DESIGN 6).
  std::string lower;
  std::string upper;
  // Forward: how far it reads ahead, beyond `upper`, as it will be sent on there (Rebound); empty: to
  // `upper`.
  std::string reads_to;
  // Where a long scan has what comes next read while it works; null: it waits for each read.
  ReadAheadPool* read_ahead = nullptr;
  // About how many entries will be used, and how many bytes of keys and values; 0: unknown. Not many more are
  // read ahead.
  uint64_t entries_expected = 0;
  uint64_t raw_bytes_expected = 0;
  // The part of them that is likely to come from this cursor, where others go beside it.
  double expected_share = 1;
  // Bytes that the scan has read ahead, in order, in the files in front: it need not show anew that it is a
  // long one.
  uint64_t read_in_stride = 0;
  // What the scan's cursors share; null: nothing is passed over and nothing counted. Outlives the cursor.
  TableScan* scan = nullptr;
  // Counts the bytes of blocks that are read from the device as the first behind a seek
  // (FileRef::seek_bytes); null: nobody counts. Outlives the cursor.
  std::atomic<uint64_t>* seek_bytes = nullptr;
  // What lies beneath the table, which LevelIterator knows; null: that is not known, and nothing is passed
  // over. Outlives the cursor.
  FilesBeneath* beneath = nullptr;
};

// The current data block as a whole.
struct BlockSummary {
  std::string first_key;
  std::string last_key;
  std::string fence;  // What the index says of the block: no key of it is above.
  uint32_t entry_count = 0;
  uint32_t tombstone_count = 0;
  uint32_t older_versions = 0;  // Entries that have a newer version of their key in the block.
  Version version_min;
  Version version_max;
  std::string_view index_record;  // Valid while the cursor is in the block.
};

// A cursor over one table within bounds (contract: entry_iterator.h), which also shows the data
// blocks it walks, for block pass-through.
//
// Reads ahead: neighbouring blocks in one read, more and more of them while the cursor goes on in
// order (large ones from the start with kBypass); see read_ahead_window.h. A damaged block makes Fetch return
// kCorruption, and the cursor stays in front of it: it is never stepped over (F44), unless the scan says
// that it may (TableScan::skipped).
// The table must outlive it (it keeps the reader alive itself).
class TableIterator : public EntryIterator {
 public:
  TableIterator(std::shared_ptr<const TableReader> table, Direction direction, IterOptions options);
  ~TableIterator() override;

  IterState SeekToFirst() override;
  IterState Seek(std::string_view user_key) override;
  IterState Next() override;
  IterState state() const override;
  Task<Status> Fetch() override;

  // Goes on to the first entry of [lower, upper), without reading again what it has. REQUIRES: forward; it is
  // at its end, which lies at or below `lower`.
  IterState Rebound(std::string lower, std::string upper);

  // True when all that is left of the table, within the bounds, has been read ahead or is on its way, and the
  // scan will use more.
  bool ReadsToEnd() const;
  // Bytes read ahead in order, those of the files in front included.
  uint64_t read_in_stride() const;
  // It has used about as much as was expected, or more.
  bool IsBeyondExpected() const;
  // Instead of SeekToFirst, before it is known when the cursor will be wanted: begins the reads with which it
  // starts. Never waits, so it goes as far as it can each time it is called. REQUIRES: read_ahead.
  void Anticipate();

  const Entry& entry() const override;
  const BlockPin* pin() const override;
  EntryRun Run(std::optional<std::string_view> before) const override;
  void RunKeyTo(uint32_t i, std::string* out) const override;
  IterState SkipRun(const EntryRun& run) override;

  // True when entry() is the first entry of its data block.
  // REQUIRES: state() == kEntry, forward direction.
  bool AtBlockStart() const;

  // The current block; its keys outside the iterator's bounds included.
  // REQUIRES: state() == kEntry, kBypass (others do not keep what this needs).
  const BlockSummary& CurrentBlock();

  // The current block, decoded, and what the cache knows it by; and the index block that names it.
  // REQUIRES: state() == kEntry.
  BlockKey block_key() const;
  std::string_view block_content() const;
  BlockKey index_key() const;
  std::string_view index_content() const;

  // The current block for TableWriter::AddBlock, or nothing when it reaches outside the bounds.
  // REQUIRES: as CurrentBlock, and AtBlockStart().
  std::optional<PassThroughBlock> CurrentPassThrough();

  // Moves to the first entry after the current block. REQUIRES: state() == kEntry, forward direction.
  IterState SkipBlock();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace partita

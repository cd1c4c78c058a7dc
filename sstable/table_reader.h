#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/entry_iterator.h"
#include "engine/base/lookup.h"
#include "engine/base/object_store.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "sstable/block_cache.h"
#include "sstable/block_places.h"
#include "sstable/footer_format.h"
#include "sstable/fuse_filter.h"
#include "sstable/index_record.h"
#include "sstable/key_hash.h"
#include "sstable/properties.h"
#include "sstable/table_info.h"
#include "sstable/table_iterator.h"

namespace partita {

// What one step of a lookup knows without I/O.
struct TableLookup {
  Lookup lookup;
  bool needs_io = false;  // The answer lies in a block that is not in memory.
};

// What Verify counted.
struct TableVerifyReport {
  uint64_t entries = 0;
  uint64_t tombstones = 0;
  uint64_t data_blocks = 0;
  uint64_t index_blocks = 0;
  uint64_t bytes_read = 0;
};

// Takes blocks that a walk over a table comes to, to put them into the cache.
class BlockTaker {
 public:
  virtual ~BlockTaker() = default;
  // Asked of each data block, in order, by the number of its entries.
  virtual bool Wants(uint64_t entries) = 0;
  // Of a wanted one, and the index block that names it.
  virtual void Take(const TableIterator& at) = 0;
  // Put is due, which is awaited at the end, too.
  virtual bool IsFull() const = 0;
  virtual Task<void> Put() = 0;
};

// An open table file: footer, properties, top index and filters are verified and resident; index
// and data blocks are read through the cache.
//
// Immutable after Open and thread-safe; any thread may look up. Shared lifetime: level sets and
// iterators hold it. The cache and the store outlive it.
//
// Failing: a part whose seal is wrong is read once more past all caches (F52). If it is still
// wrong, or cannot be read, the answer is kCorruption naming object, offset and what was expected:
// for the keys of that block only (F43, F48), for the whole file when Open met it. A damaged filter
// is counted and means "maybe" (F45).
class TableReader : public std::enable_shared_from_this<TableReader> {
 public:
  // kNotFound when there is no such object (damage, if a manifest names it: F35), kCorruption for
  // truncated, foreign, swapped or rotted files, kUnsupported for newer formats (F66).
  static Task<Result<std::shared_ptr<TableReader>>> Open(ObjectStore& store, BlockCache& cache,
                                                         StoreId store_id, ObjectId id);
  ~TableReader() = default;
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  const TableInfo& info() const { return properties_.info; }
  // kCorruption when this is not the file that a manifest tells of so: one of the same id, say, of a copy of
  // the store that went on by itself (F41).
  Status CheckIs(const TableInfo& named) const;
  const TableProperties& properties() const { return properties_; }
  const Footer& footer() const { return footer_; }
  const std::string& name() const { return object_->name(); }
  // Memory that this reader holds outside the cache.
  uint64_t resident_bytes() const { return resident_.bytes(); }

  // False: surely no entry of this key, or of any key of this partition, is in the file.
  bool MayContainKey(const KeyHash& hash) const { return key_filter_.MayContain(hash.key); }
  bool MayContainPartition(const KeyHash& hash) const { return partition_filter_.MayContain(hash.partition); }
  // False: Get and TryGet find nothing.
  bool MayHold(const KeyHash& hash) const { return !LacksPartition(hash) && MayContainKey(hash); }

  // The newest entry of `user_key` with version <= `at_most`, as far as memory knows. A found value
  // is kept alive by `*pin`.
  TableLookup TryGet(const KeyHash& hash, std::string_view user_key, Version at_most, BlockPin* pin) const;

  // The same, reading what is missing into the cache.
  Task<Result<Lookup>> Get(KeyHash hash, std::string_view user_key, Version at_most, BlockPin* pin) const;

  // The same, reading the data block although it is in the cache, which loses what it has of it and of the
  // row where that is not the same; what has a pin stays.
  Task<Result<Lookup>> GetAnew(KeyHash hash, std::string_view user_key, Version at_most, BlockPin* pin) const;

  // Reads the data blocks that Get of these keys would read, those that the cache has not, with as few waits
  // as it can, and puts them there. What fails is left to Get, but for kDeadlineExceeded: nothing more is
  // read then. REQUIRES: `user_keys` rise; the caller keeps them alive.
  Task<Status> ReadTogether(std::span<const std::string_view> user_keys) const;

  // The top index (index_record.h), and the data index block that its entry `top_at` names, as far as memory
  // has it: else an empty pin.
  const DataBlock& top_index() const { return top_index_; }
  BlockPin CachedIndex(uint32_t top_at) const {
    return cache_.Lookup(KeyOf(IndexRecordHandle(top_index_.value(top_at))));
  }

  // Bytes of the file that the keys in [lower, upper) have; an empty `upper` is no bound. Between marks, as
  // the writer came by: above 0 exactly where there are any. Else known without I/O to an index block's share
  // of the file, some 100 data blocks, of which one begun at either end counts as a whole; data blocks are
  // taken to be of one size.
  uint64_t BytesWithin(std::string_view lower, std::string_view upper) const;

  // Whether BytesWithin knows that by marks.
  bool IsMarked(std::string_view lower, std::string_view upper) const;

  // What lies below `key`: entries, and bytes of the file. Kept in memory alone, by who wrote the file.
  struct SizeMark {
    std::string key;
    uint64_t entries = 0;
    uint64_t bytes = 0;
  };
  // REQUIRES: marks rise by key; nobody else uses the reader yet.
  void SetMarks(std::vector<SizeMark> marks);

  std::unique_ptr<TableIterator> NewIterator(Direction direction, IterOptions options = {}) const;

  // Reads every part past the cache and checks every seal, the order of all keys, every stored
  // value's checksum (F51), the filters against the keys (no false negative), and counts against
  // footer and properties (F47). Stops at the first damage. `report` counts what was read so far. `warm` is
  // given the blocks that it wants, as they were read; null: nobody wants any. `read_ahead`: as IterOptions.
  // kCancelled soon after `cancel` (may be null) is set.
  Task<Status> Verify(TableVerifyReport* report, BlockTaker* warm = nullptr,
                      ReadAheadPool* read_ahead = nullptr, const std::atomic<bool>* cancel = nullptr) const;

 private:
  friend class TableIterator;
  friend class TableVerifier;
  friend class RisingLookup;
  TableReader(std::shared_ptr<ObjectReader> object, BlockCache& cache, StoreId store);

  // The stored bytes of a part, checked.
  struct StoredPart {
    AlignedBuffer buffer;
    std::string_view bytes;  // Within the buffer, or the tail.
  };
  struct LoadRequest {
    PartHandle handle;
    SealKind kind = SealKind::kDataBlock;
    CachePriority priority = CachePriority::kPoint;
    bool fill_cache = true;
    bool is_miss = true;   // Whoever reads it would have taken it from the cache.
    bool evicts = true;    // When it fills the cache: not only where that has memory to spare.
    bool was_bad = false;  // As of ReadPart.
    TimedWaits* waits = nullptr;
    // Not null: the row of this key is all that is wanted of the block, and may come alone (DecodeRow), if
    // that is worth it. Outlives the request.
    const SoughtKey* row = nullptr;
  };
  // What came of a block of which one row was wanted.
  struct LoadedForRow {
    enum class What : uint8_t { kBlock, kRow, kNothing };  // kNothing: it has no such row.
    What what = What::kBlock;
    BlockPin pin;
  };

  // The file from `begin` to its end, read at once: most of what stands alone lies there.
  struct Tail {
    Status read;           // Why there are no bytes.
    AlignedBuffer buffer;  // Without data: there are none.
    uint64_t begin = 0;

    bool Holds(uint64_t offset, size_t size) const {
      return buffer.data() != nullptr && offset >= begin && offset + size <= begin + buffer.size();
    }
    std::string_view Bytes(uint64_t offset, size_t size) const { return buffer.view(offset - begin, size); }
  };
  // Of at most `size` bytes.
  Task<Tail> ReadTail(uint64_t size, ReadCaching caching) const;

  // Whole pages from there. It owns what it reads from and into.
  static Task<Result<AlignedBuffer>> ReadPages(std::shared_ptr<ObjectReader> object, uint64_t begin,
                                               AlignedBuffer pages, ReadCaching caching);

  // Reads and checks a part, with the one re-read of F52, for somebody who waits with `waits`. Who opens a
  // table or verifies it waits without a deadline (null): what it gives up would be taken for damage. What
  // `tail` holds is taken from there at first; the answer is then valid as long as that. `was_bad`: it was
  // read before, among others, and was bad; that counts as transient when it is good now.
  Task<Result<StoredPart>> ReadPart(PartHandle handle, SealKind kind, TimedWaits* waits,
                                    const Tail* tail = nullptr, bool was_bad = false) const;
  Task<Result<StoredPart>> ReadPartOnce(PartHandle handle, SealKind kind, ReadCaching caching,
                                        TimedWaits* waits, const Tail* tail = nullptr) const;
  [[gnu::noinline]] Task<Result<StoredPart>> ReadPartAgain(PartHandle handle, SealKind kind,
                                                           TimedWaits* waits) const;
  // Decodes and validates a checked block, into the cache when asked to.
  Result<BlockPin> DecodeBlock(std::string_view part, const LoadRequest& request) const;
  Result<BlockPin> DecodeInto(BlockFrame frame, std::string_view part, const LoadRequest& request) const;
  // Decodes a checked block as far as the row takes, keeps the row if that waits for nobody, and pins a copy.
  // kBlock, without a pin, where the block is wanted whole, if only to say what is wrong with it. `scratch`
  // is of the block's size.
  LoadedForRow DecodeRow(std::string_view part, const PartHandle& handle, const SoughtKey& key,
                         BlockFrame* scratch) const;
  // DecodeBlock, or DecodeRow where the cache has no memory to spare for the block.
  Result<LoadedForRow> DecodeForRow(std::string_view part, const LoadRequest& request) const;
  static Status ValidateData(std::string_view content);
  // The cache knows a block by its place alone: no part may be named both as index and as data (F77).
  static Status ValidateIndex(std::string_view content, const PartBounds& bounds);
  PartBounds DataBlocks() const { return {0, footer_.index_begin}; }
  PartBounds IndexBlocks() const { return {footer_.index_begin, footer_.index_end}; }
  // ReadPart and DecodeBlock; frames of their own, as these are larger than what malloc has at hand.
  [[gnu::noinline]] Task<Result<BlockPin>> LoadBlock(LoadRequest request) const;
  // The same for a row (LoadRequest::row).
  [[gnu::noinline]] Task<Result<LoadedForRow>> LoadForRow(LoadRequest request) const;

  Identity IdentityOf(uint64_t offset, SealKind kind) const {
    return PartIdentity(store_, object_->id(), offset, kind);
  }
  // `cause` with object, offset and kind; a failed read of a part is damage too (F43).
  Status Damaged(const Status& cause, uint64_t offset, SealKind kind) const;
  BlockKey KeyOf(const PartHandle& handle) const { return {object_->id(), handle.offset}; }

  // What lies below `key`, where it is a mark, or between two with no entry between them, or no entry is on
  // one of its sides; its own key is not told.
  std::optional<SizeMark> Marked(std::string_view key) const;

  // True when no key like it is in the file, which a filter knows that is small enough to be at hand.
  bool LacksPartition(const KeyHash& hash) const {
    return asks_partition_first_ && !MayContainPartition(hash);
  }

  // The row alone (cached_rows.h), as a block; an empty pin when the cache does not have it. The first may
  // not know where it is, and needs no block.
  BlockPin EnterKnownRow(const SoughtKey& key) const;
  BlockPin EnterRow(const PartHandle& handle, const SoughtKey& key) const;
  // The newest visible version in such a row, which `*pin` then keeps.
  static Lookup FindInRow(BlockPin row, std::string_view user_key, Version at_most, BlockPin* pin);
  // Finds the row in a block, which the cache has or was to keep only if it had memory to spare: then it
  // keeps the row, or the block after all.
  Lookup FindIn(BlockPin* block, const PartHandle& handle, const SoughtKey& key, Version at_most) const;

  // The index block of an entry of the top index, and the data block of an entry of that, as far as memory
  // has them; the lines that a search reads first are on their way.
  BlockPin EnterIndex(uint32_t top_at) const;
  BlockPin EnterData(const DataBlock& index, uint32_t top_at, uint32_t at) const;
  // Asks for what EnterData will touch of the cache and of the block, where the cache had it last. False:
  // that is not known.
  bool PrefetchData(uint32_t top_at, uint32_t at) const;
  // Reads the index block where memory does not have it.
  [[gnu::noinline]] Task<Result<BlockPin>> LoadIndex(uint32_t top_at) const;
  // Reads these data blocks in one batch. REQUIRES: they rise and are apart.
  Task<Status> ReadBatch(std::span<const PartHandle> handles) const;

  Task<Status> OpenFooter(const Tail& tail);
  Status TakeFooter(std::string_view bytes);
  Task<Status> OpenProperties(const Tail& tail);
  Task<Status> OpenTopIndex(const Tail& tail);
  Task<Status> OpenFilter(const Tail& tail, PartHandle handle, uint64_t keys, FuseFilter* filter);

  std::shared_ptr<ObjectReader> object_;
  BlockCache& cache_;
  StoreId store_;
  Footer footer_;
  TableProperties properties_;
  std::string top_index_content_;
  DataBlock top_index_;
  std::vector<uint64_t> data_blocks_before_;  // Each entry of the top index; and its end.
  BlockPlaces places_;
  FuseFilter key_filter_;
  FuseFilter partition_filter_;
  bool asks_partition_first_ = false;
  ResidentBytes resident_;
  std::vector<SizeMark> marks_;
  bool is_marked_ = false;
};

}  // namespace partita

#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"

namespace partita {

// Memory for one decoded block, still private to whoever fills it.
class BlockFrame;
// Keeps a decoded block, and every view into it, alive. Movable.
class BlockPin;
class RowPlaces;
class TimedWaits;

struct BlockKey {
  ObjectId object;      // Never reused, so what a removed file left behind just ages out.
  uint64_t offset = 0;  // Of the block in the object.
  friend bool operator==(const BlockKey&, const BlockKey&) = default;

  uint64_t HashValue() const {
    uint64_t h = object.value * 0x9E3779B97F4A7C15ULL ^ offset;
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93ULL;
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93ULL;
    return h ^ (h >> 32);
  }
  uint32_t PartitionBits() const { return static_cast<uint32_t>(HashValue() >> 56) & 15; }
};

// How long a block stays without being used again.
enum class CachePriority : uint8_t {
  kScan,   // Goes first: a scan touches it once.
  kPoint,  // Read by a point lookup.
  kIndex,  // Index blocks: each saves a read for many data blocks.
};

// Where a block was when it was last looked up, as Lookup says: no more than a hint, which may be out of
// date.
class BlockPlace {
 public:
  BlockPlace() = default;

 private:
  friend class BlockCache;
  // 4 bits of the partition, 30 of the slot, 30 of the granule; 0: not known.
  std::atomic<uint64_t> packed_{0};
};

struct CacheStatistics {
  uint64_t hits = 0;    // Blocks found, and rows.
  uint64_t misses = 0;  // Blocks read from the device, as CountMiss says.
  uint64_t inserts = 0;
  uint64_t evictions = 0;
  uint64_t refused = 0;     // Frames that should have found room and were served from the heap.
  uint64_t used_bytes = 0;  // Frames handed out, cached or being filled.
  uint64_t capacity_bytes = 0;
  uint64_t blocks = 0;
  uint64_t rows = 0;  // Kept of blocks that are not there.
};

// What reading tables met; counted here because every reader of a store shares the cache.
struct ReadFaults {
  std::atomic<uint64_t> transient{0};        // Bad at first, good when read again past caches (F52).
  std::atomic<uint64_t> damaged_parts{0};    // Bad twice: answered with kCorruption.
  std::atomic<uint64_t> damaged_filters{0};  // Bad twice, answered with "maybe" (F45).
};

// Decoded blocks of all tables of a store, in memory taken once.
//
// - Looking up takes no lock and writes only the slot it hits: one atomic add to pin, one to unpin.
// - Memory is an arena per partition, reserved at construction, in granules of 1 KiB (frames hold
//   decoded blocks, not disk pages; with 4 KiB granules a block of its own for a 2.5 KiB entity
//   would waste a third). It is touched by use, and given back where Resize makes it smaller. A frame
//   that finds no room (too large for the partition, or everything pinned) comes from the heap and
//   lives as long as its pin.
// - Of blocks of which few rows are read the rows alone are kept (cached_rows.h): when the block is evicted,
//   and when it was read while nothing was free, unless it is missed often. Rows lie side by side in pages
//   of 8 KiB and are moved together when others between them go.
// - Eviction is CLOCK with a small use count: scans and rows enter with none, points with one, index blocks
//   with the greatest, hits add one. A scan thus only displaces what was not used since the hand
//   last passed; that is the probation that makes it scan resistant.
// - Inserting locks its partition (never while reading a disk). Two threads that miss the same
//   block both read it; the second insert yields the first's frame.
//
// Atomics: see block_cache.cc. Outlives all pins and readers. Thread-safe.
class BlockCache {
 public:
  // Of capacity_bytes, the least that it has but for what is withheld; Resize gives it up to
  // capacity_max_bytes. 0: no more.
  explicit BlockCache(uint64_t capacity_bytes, uint64_t capacity_max_bytes = 0);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // An empty pin when the block is not there. Where it was found is told to `place` (may be null).
  BlockPin Lookup(BlockKey key, BlockPlace* place = nullptr);

  // To be told of each block that was read since it was not there. A look that finds nothing is none: whoever
  // reads looks more than once, and others look without reading.
  void CountMiss();

  // Asks for the memory that looking up touches, and for the first lines of the block, all at once, if the
  // block is where it was. Returns where that is; null when no place is known.
  const char* Prefetch(const BlockPlace& place) const;

  // Whether a table may have places of so many bytes, which lie beside the cache: all tables together a 48th
  // of the capacity.
  bool TryReservePlaces(uint64_t bytes);
  void GiveBackPlaces(uint64_t bytes) { places_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  // What is kept in memory beside the cache, and taken out of it (ResidentBytes, memory_lender.h).
  void CountResident(int64_t bytes) {
    resident_bytes_.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
  }
  uint64_t resident_bytes() const { return resident_bytes_.load(std::memory_order_relaxed); }
  // Whether that is little enough for tables to have long filters: a 16th of what the cache has at least.
  bool MayKeepMore() const { return resident_bytes() < capacity_bytes_ / 16; }

  // Whether the block is there, as far as can be told without a pin. Counts as no use.
  bool Contains(BlockKey key) const;

  // Whether it was used since it came in, too; a scan that brought it does not count.
  bool WasUsed(BlockKey key) const;

  // Gives the memory of a block back that nobody will look up any more; nothing while it has a pin.
  void Drop(BlockKey key);

  // For a scan, which knows what it will look up soon: the first asks for the memory that finding the block
  // touches, the second, some time later, for the first lines of the block if it is there. Nothing changes.
  void PrefetchSlot(BlockKey key) const;
  void PrefetchBlock(BlockKey key) const;
  // For a point read, whose block is most likely not there: asks for what it looks at then, of the block and
  // of its row, all at once.
  void PrefetchMiss(BlockKey block, BlockKey row) const;

  // To be told of each miss of a point read: whether it is the fourth of this block within about as many
  // misses as there is room for blocks. What is missed less often is not worth the memory of all its rows.
  // That holds for keys that the block turns out not to have, too.
  bool MissedOften(BlockKey key);

  // Memory of `size` bytes for a block about to be decoded, evicting as needed unless told not to: then it is
  // from the heap when nothing is free, or nothing was when that was asked last and another has the lock.
  // Always succeeds unless the heap is exhausted too: check data().
  BlockFrame NewFrame(BlockKey key, size_t size, bool evicts = true);
  // For a block that nobody has asked for: without data when nothing is free. For each that was given one
  // NewFrame that shall not evict may do so: what is read finds as much room as if this had not been.
  BlockFrame NewSpareFrame(BlockKey key, size_t size);

  // Like NewFrame, but from the heap: for reads that shall leave no trace in the cache.
  static BlockFrame NewHeapFrame(size_t size);

  // Makes a filled frame findable, and pins it. When the block is already there the frame is given
  // back and the existing one pinned. A heap frame is not cached, only pinned.
  BlockPin Insert(BlockKey key, BlockFrame frame, CachePriority priority);

  // Keeps a copy of a row (cached_rows.h), evicting as needed. Nothing happens when it is there, is too large
  // or finds no room. TryAddRow waits for nobody either: a reader does not stand behind another for what he
  // need not keep.
  void AddRow(BlockKey key, std::string_view content);
  void TryAddRow(BlockKey key, std::string_view content);
  // Lookup of a row whose block is not there.
  BlockPin LookupRow(BlockKey key);
  // A row of this object whose key has this hash, if it is where AddRow or LookupRow last had one: found
  // without the block that it is of. To be called before Lookup.
  BlockPin LookupRowByHash(ObjectId object, uint64_t key_hash);
  // Some time before: asks for the memory that says where that is.
  void PrefetchRowPlace(uint64_t key_hash) const;

  // Whether there are any; takes no lock.
  bool HasRows() const;

  // Makes it as large as that, within the bounds of construction; the memory that comes and goes is for rows.
  // It grows at once; where it shrinks it evicts the rows there, used or not, and gives the memory back, but
  // for what lies in front of a row that has a pin: to be tried again. One call at a time, beside all others.
  void Resize(uint64_t capacity_bytes);

  // Makes it smaller than at its least, for what lies beside it: takes so many bytes of frames, but for an
  // eighth of all, from itself, evicting as needed, and gives their memory back; less than before: gives
  // itself some again. What has a pin stays, to be tried again. One call at a time, beside all others but
  // Resize.
  void Withhold(uint64_t bytes);
  // The most that it withholds.
  uint64_t WithheldMax() const;

  // Touches a huge page of what has not been used so far (large_memory.h): of the index, or of the first
  // `bytes` of frames; of these none while some are withheld. False: there is none. One call at a time,
  // beside all others; takes no lock.
  bool TouchNext(uint64_t bytes);

  CacheStatistics statistics() const;
  // The least.
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  ReadFaults& faults() { return faults_; }
  // With these a table is read for who looks something up, or scans; null: without a deadline. Here, as the
  // faults are. Set before anyone reads.
  TimedWaits* waits() const { return waits_; }
  void set_waits(TimedWaits* waits) { waits_ = waits; }

  // These walk all partitions; for tests. Cached blocks with a pin at this moment:
  uint64_t CountPinned() const;
  void CheckInvariants() const;

 private:
  friend class BlockFrame;
  friend class BlockPin;
  struct Slot;
  struct Partition;
  struct Counters;

  uint64_t GranulesOfWithheld() const;  // Of a frame.
  // A row lies in the partition of its block, which leaves it there.
  uint32_t PartitionAt(const BlockKey& key, uint64_t hash) const;
  Partition& PartitionOf(const BlockKey& key, uint64_t hash) const {
    return *partitions_[PartitionAt(key, hash)];
  }
  BlockPin PinOf(Partition& partition, Slot* slot) const;
  static BlockFrame FrameAt(Partition& partition, uint32_t first, size_t size);
  void RememberRow(const BlockKey& key, uint64_t hash, uint32_t slot);
  void AddRowUnder(std::unique_lock<std::mutex> lock, Partition* partition, const BlockKey& key,
                   std::string_view content);

  uint64_t capacity_bytes_, capacity_max_bytes_;
  uint32_t pages_lent_max_ = 0;  // Of each partition.
  uint32_t partition_mask_ = 0;
  size_t touched_last_ = 0;  // The partition, by TouchNext.
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::unique_ptr<Counters[]> counters_;
  std::unique_ptr<RowPlaces> row_places_;
  // By a block's hash: 32 bits of the hash of what was missed there last. Anyone's, relaxed.
  std::unique_ptr<std::atomic<uint32_t>[]> missed_;
  uint64_t missed_mask_ = 0;
  std::vector<BlockFrame> withheld_;  // Of who calls Withhold.
  std::atomic<uint64_t> withheld_bytes_{0};
  std::atomic<uint64_t> places_bytes_{0};
  std::atomic<uint64_t> resident_bytes_{0};
  ReadFaults faults_;
  TimedWaits* waits_ = nullptr;
};

// What its owner keeps in memory beside a cache: the tops of an open table's indexes and its filters, a
// shard's ranges, names. Counted by the cache, which outlives it. One call at a time.
class ResidentBytes {
 public:
  explicit ResidentBytes(BlockCache& cache) : cache_(cache) {}
  ~ResidentBytes() { Set(0); }
  ResidentBytes(const ResidentBytes&) = delete;
  ResidentBytes& operator=(const ResidentBytes&) = delete;

  void Set(uint64_t bytes) {
    cache_.CountResident(static_cast<int64_t>(bytes) - static_cast<int64_t>(bytes_));
    bytes_ = bytes;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  BlockCache& cache_;
  uint64_t bytes_ = 0;
};

class BlockFrame {
 public:
  BlockFrame() = default;
  BlockFrame(BlockFrame&& other) noexcept { *this = std::move(other); }
  BlockFrame& operator=(BlockFrame&& other) noexcept;
  ~BlockFrame() { Release(); }

  uint8_t* data() { return data_; }
  size_t size() const { return size_; }
  // The cache had no room for it, and will not keep it.
  bool from_heap() const { return partition_ == nullptr; }
  std::string_view view() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  friend class BlockCache;
  friend class BlockPin;
  void Release();

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  BlockCache::Partition* partition_ = nullptr;  // Null: from the heap.
};

class BlockPin {
 public:
  BlockPin() = default;
  BlockPin(BlockPin&& other) noexcept { *this = std::move(other); }
  BlockPin& operator=(BlockPin&& other) noexcept;
  ~BlockPin() { Release(); }

  explicit operator bool() const { return content_.data() != nullptr; }
  // The decoded block.
  std::string_view content() const { return content_; }
  // Whether the cache holds it, not this pin alone.
  bool cached() const { return slot_ != nullptr; }
  // A point read was answered by this entry of the block, or a scan went over all: what is marked is what
  // shall stay when the block goes. Blocks of more than 24 entries are kept or go as a whole.
  void MarkEntry(uint32_t at);
  void MarkAll();
  // Another pin of the same block; empty when it is not in the cache, but lives as long as this pin.
  BlockPin Share() const;
  void Release();

 private:
  friend class BlockCache;
  std::string_view content_;
  BlockCache::Slot* slot_ = nullptr;  // Null: the frame below.
  BlockFrame frame_;
};

}  // namespace partita

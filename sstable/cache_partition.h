#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/large_memory.h"
#include "sstable/block_cache.h"
#include "sstable/cached_rows.h"
#include "sstable/frame_arena.h"

namespace partita {

// What the cache has, one slot each: found by hashing, and the next ones. The top of block_cache.cc says who
// writes what.
struct BlockCache::Slot {
  std::atomic<uint64_t> meta{0};
  std::atomic<uint64_t> object{0};
  std::atomic<uint64_t> offset{0};
  std::atomic<uint32_t> unit{0};  // Where its content begins in the arena, in units.
  std::atomic<uint32_t> size{0};

  static constexpr size_t kUnit = 8;
  static constexpr uint32_t kUnitsPerGranule = FrameArena::kGranule / kUnit;

  BlockKey key() const {
    return {ObjectId(object.load(std::memory_order_relaxed)), offset.load(std::memory_order_relaxed)};
  }
  bool Holds(const BlockKey& sought) const { return key() == sought; }
  // Pins it, and counts that as a use, if it is visible and `is_sought()` holds of its key, before and after.
  template <typename IsSought>
  bool TryPin(IsSought is_sought);
};

// Of Slot::meta, whose parts the top of block_cache.cc names.
namespace cache_meta {

constexpr uint64_t kPinMask = 0xFFFFFFFFULL;
constexpr unsigned kUseShift = 32;
constexpr uint64_t kUseOne = 1ULL << kUseShift;
// Of the 63 that there is room for: those who raise it do not wait for each other.
constexpr uint64_t kUseMax = 3;
constexpr unsigned kMarkShift = 38;
constexpr uint32_t kMarks = 24;  // One an entry: a block of more never leaves rows behind.
constexpr uint64_t kStateMask = 3ULL << 62;
constexpr uint64_t kChanging = 1ULL << 62;
constexpr uint64_t kVisible = 2ULL << 62;

constexpr uint64_t UseOf(uint64_t meta) { return meta >> kUseShift & 63; }
constexpr uint32_t MarksOf(uint64_t meta) {
  return static_cast<uint32_t>(meta >> kMarkShift) & ((1u << kMarks) - 1);
}
constexpr uint64_t VisibleWith(uint64_t use) { return kVisible | use << kUseShift; }
constexpr bool IsVisible(uint64_t meta) { return (meta & kStateMask) == kVisible; }

}  // namespace cache_meta

template <typename IsSought>
bool BlockCache::Slot::TryPin(IsSought is_sought) {
  if (!cache_meta::IsVisible(meta.load(std::memory_order_acquire)) || !is_sought()) return false;
  const uint64_t old = meta.fetch_add(1, std::memory_order_acq_rel);
  if (!cache_meta::IsVisible(old)) return false;
  if (is_sought()) {
    if (cache_meta::UseOf(old) < cache_meta::kUseMax)
      meta.fetch_add(cache_meta::kUseOne, std::memory_order_relaxed);
    return true;
  }
  meta.fetch_sub(1, std::memory_order_release);
  return false;
}

// A part of the cache, by the hash of what is looked for: its slots, and the arena that holds blocks, each an
// extent, and rows, many to a page. Hands go over the extents in turn.
//
// A page of rows is filled from its front: header, content, header, content; a header of no units ends it.
// One page is open, to be filled; one is spare, so that the rows of another find room when they are moved
// together. A row whose slot went leaves a hole, until its page is emptied.
//
// Behind the arena lie pages that may be taken away again (Lend, TakeBack). They are of rows alone, whose
// pins last for a copy, while a scan or a merge may hold a block for long.
struct BlockCache::Partition {
  Partition(uint32_t granules, uint32_t pages_lent_max, uint32_t slot_count)
      : arena(granules, pages_lent_max * kPageGranules),
        owner(granules + pages_lent_max * kPageGranules),
        slots(slot_count),
        displaced(slot_count),
        slot_count(slot_count) {}

  uint32_t HomeOf(uint64_t hash) const {
    return static_cast<uint32_t>(uint64_t{static_cast<uint32_t>(hash)} * slot_count >> 32);
  }
  uint32_t After(uint32_t at) const { return at + 1 == slot_count ? 0 : at + 1; }
  const char* ContentAt(uint32_t unit) const {
    return reinterpret_cast<const char*>(arena.At(0) + size_t{unit} * Slot::kUnit);
  }
  std::string_view ContentOf(const Slot& slot) const {
    return {ContentAt(slot.unit.load(std::memory_order_relaxed)), slot.size.load(std::memory_order_relaxed)};
  }

  Slot* Pin(const BlockKey& key, uint64_t hash);
  // Without a pin: it may be another's when the caller looks, but for the holder of the mutex.
  Slot* Find(const BlockKey& key, uint64_t hash) const;

  // ---- All below: for the holder of the mutex.

  // The slot's number. REQUIRES: MakeSlot.
  uint32_t Publish(const BlockKey& key, uint64_t hash, uint32_t unit, size_t size, uint64_t meta);
  // Empties a slot that was seen as `meta`; false when it has pins or is used meanwhile.
  bool TryRemove(uint32_t slot_index, uint64_t meta);
  // Of a used extent that no slot owns; the free one that it is part of now. Hands stay on extents' edges.
  uint32_t FreeExtent(uint32_t first);
  uint32_t AllocateEvicting(uint32_t granules);
  // Evicts until there is room for one more slot; false when pins prevent it.
  bool MakeSlot();
  uint32_t EntriesMax() const { return slot_count / 4 * 3; }
  bool HasSlot() const { return entries < EntriesMax(); }
  // Moves a hand, which begins anew at `behind`, over one extent or lent page; the free extent that it found
  // or made, or kNone.
  uint32_t Advance(uint32_t* hand, uint32_t behind);
  // Does so until `done`, which is given what it returned; false after so many rounds.
  template <typename Done>
  bool Walk(uint32_t* hand, uint32_t behind, Done done) {
    for (uint64_t walked = 0; walked < uint64_t{kRoundsMax} * behind;) {
      const uint32_t before = *hand >= behind ? 0 : *hand;
      const uint32_t free = Advance(hand, behind);
      walked += *hand > before ? *hand - before : 1;
      if (done(free)) return true;
    }
    return false;
  }
  uint32_t PassBlock(uint32_t first);
  void Drop(const BlockKey& key, uint64_t hash);
  // So many lent pages more.
  void Lend(uint32_t pages);
  // Evicts what the last lent pages hold, up to so many, and returns how many are taken away: fewer where a
  // row has a pin. Their memory is there until the caller closes it.
  uint32_t TakeBack(uint32_t pages);

  // cached_rows.cc:
  // Keeps a copy, evicting as needed, and returns its slot's number; kNone when it is there, is too large or
  // finds no room.
  uint32_t AddRow(const BlockKey& key, std::string_view content);
  uint32_t PassPage(uint32_t page);
  // Copies the rows of the marked entries of a block, if they are so few that they are worth more than all of
  // it, and find room once it is gone.
  bool TakesRowsOut(uint32_t first, const Slot& slot, uint64_t meta);
  // Puts them into the open page, or into one where the block was; the part of `free` that is left, or kNone.
  uint32_t PutRowsBack(uint32_t free);

  // Behind the last extent or lent page.
  uint32_t end() const { return LentPage(pages_lent); }
  uint32_t LentPage(uint32_t i) const { return arena.granules() + i * kPageGranules; }
  uint64_t used_granules() const {
    return arena.used_granules() + uint64_t{pages_lent} * kPageGranules - free_pages.size() * kPageGranules;
  }
  void CheckInvariants() const;

  std::mutex mutex;  // Guards everything below but for what the top of block_cache.cc says of slots.
  FrameArena arena;
  LargeArray<uint32_t> owner;  // Of a used extent's first granule: 1 + its slot, kPrivate or kRows.
  LargeArray<Slot> slots;
  LargeArray<std::atomic<uint32_t>> displaced;
  uint32_t slot_count;
  std::atomic<uint32_t> pages_lent{0};  // Read by anyone.
  std::vector<uint32_t> free_pages;     // Of them.
  // First granules of extents or lent pages. Whoever needs room for rows looks everywhere; for blocks in the
  // arena alone, as what goes behind it is no room for them.
  uint32_t row_hand = 0, block_hand = 0;
  uint32_t entries = 0;
  std::atomic<uint32_t> rows{0};  // Of them; read by anyone.
  uint64_t inserts = 0;
  uint64_t evictions = 0;
  uint64_t refused = 0;
  // Frames for what nobody asked for, less those that reads have evicted for since.
  uint64_t spare_given = 0;
  std::atomic<bool> was_full{false};  // When a read asked last for what is free; read by anyone.

  static constexpr uint32_t kPrivate = 0;        // No slot owns the extent.
  static constexpr uint32_t kRows = UINT32_MAX;  // A page of rows.
  // A frame may take an eighth of its partition; larger ones are not worth what they displace.
  static constexpr uint32_t kFrameShareMax = 8;
  uint64_t GranulesMax() const { return arena.granules() / kFrameShareMax; }
  static uint64_t GranulesOf(size_t size) { return (size + FrameArena::kGranule - 1) / FrameArena::kGranule; }
  // Rounds of the hand after which a frame goes to the heap: use counts are worn off after three.
  static constexpr uint32_t kRoundsMax = 5;

  // Seven rows of 1 KiB fill it, and a block that goes leaves room for one, unless its rows are of 3 KiB or
  // so.
  static constexpr uint32_t kPageGranules = 8;

 private:
  static constexpr uint32_t kPageUnits = kPageGranules * Slot::kUnitsPerGranule;
  struct RowHeader {
    uint32_t slot_plus_one;  // 0: a hole.
    uint32_t units;          // With the header; 0: nothing follows.
  };
  static_assert(sizeof(RowHeader) == Slot::kUnit);

  static uint32_t UnitsOf(size_t content_size) {
    return 1 + static_cast<uint32_t>((content_size + Slot::kUnit - 1) / Slot::kUnit);
  }
  RowHeader* HeaderAt(uint32_t unit) const {
    return reinterpret_cast<RowHeader*>(arena.At(0) + size_t{unit} * Slot::kUnit);
  }
  // The first row of a page, and the one behind; null at its end.
  RowHeader* FirstRow(uint32_t page) const;
  RowHeader* NextRow(uint32_t page, RowHeader* row) const;
  bool OpenHas(uint32_t units) const {
    return open_page != FrameArena::kNone && open_used + units <= kPageUnits;
  }
  bool IsLent(uint32_t page) const { return page >= arena.granules(); }
  // A free lent page; kNone: there is none.
  uint32_t TakeLentPage();
  // Rows of a page, used or not; false when some had to stay.
  bool EvictRows(uint32_t page);
  void CheckPage(uint32_t page, uint32_t* rows_found) const;
  bool HasPages() const { return kPageGranules <= GranulesMax(); }
  void OpenPage(uint32_t page);
  // The next `units` of the open page, as a row's. REQUIRES: OpenHas.
  RowHeader* TakeUnits(uint32_t units);
  uint32_t UnitOf(const RowHeader* row) const {
    return static_cast<uint32_t>((reinterpret_cast<const uint8_t*>(row) - arena.At(0)) / Slot::kUnit);
  }
  // As AddRow; kNone when it is there by now, or no slot is. REQUIRES: OpenHas.
  uint32_t PutRow(const BlockKey& key, std::string_view content);
  bool MoveRow(RowHeader* row);
  // Evicts what was not used; whether the page has room for more now.
  bool WearRows(uint32_t page);
  // False when some had to stay.
  bool MoveRows(uint32_t page);
  // Sees to it that the open page has them, evicting as needed; false when pins prevent it.
  bool MakeRowRoom(uint32_t units);

  uint32_t open_page = FrameArena::kNone;
  uint32_t open_used = 0;  // Units.
  uint32_t spare_page = FrameArena::kNone;
  std::vector<CachedRow> taken_out;
};

}  // namespace partita

#include "sstable/cache_partition.h"

#include <algorithm>

#include "engine/base/assert.h"

namespace partita {

// ---- Looking up.

BlockCache::Slot* BlockCache::Partition::Pin(const BlockKey& key, uint64_t hash) {
  for (uint32_t probe = 0, at = HomeOf(hash); probe < slot_count; ++probe, at = After(at)) {
    Slot& slot = slots[at];
    if (slot.TryPin([&] { return slot.Holds(key); })) return &slot;
    if (displaced[at].load(std::memory_order_relaxed) == 0) return nullptr;
  }
  return nullptr;
}

BlockCache::Slot* BlockCache::Partition::Find(const BlockKey& key, uint64_t hash) const {
  for (uint32_t probe = 0, at = HomeOf(hash); probe < slot_count; ++probe, at = After(at)) {
    Slot& slot = slots[at];
    if (cache_meta::IsVisible(slot.meta.load(std::memory_order_acquire)) && slot.Holds(key)) return &slot;
    if (displaced[at].load(std::memory_order_relaxed) == 0) return nullptr;
  }
  return nullptr;
}

// ---- Slots.

uint32_t BlockCache::Partition::Publish(const BlockKey& key, uint64_t hash, uint32_t unit, size_t size,
                                        uint64_t meta) {
  PARTITA_ASSERT(HasSlot());
  uint32_t at = HomeOf(hash);
  while ((slots[at].meta.load(std::memory_order_relaxed) & cache_meta::kStateMask) != 0) {
    displaced[at].fetch_add(1, std::memory_order_relaxed);
    at = After(at);
  }
  Slot& slot = slots[at];
  slot.meta.store(cache_meta::kChanging, std::memory_order_relaxed);
  slot.object.store(key.object.value, std::memory_order_relaxed);
  slot.offset.store(key.offset, std::memory_order_relaxed);
  slot.unit.store(unit, std::memory_order_relaxed);
  slot.size.store(static_cast<uint32_t>(size), std::memory_order_relaxed);
  slot.meta.store(meta, std::memory_order_release);
  ++entries;
  if (IsCachedRow(key)) rows.fetch_add(1, std::memory_order_relaxed);
  ++inserts;
  return at;
}

bool BlockCache::Partition::TryRemove(uint32_t slot_index, uint64_t meta) {
  Slot& slot = slots[slot_index];
  if ((meta & cache_meta::kPinMask) != 0) return false;
  if (!slot.meta.compare_exchange_strong(meta, cache_meta::kChanging, std::memory_order_acq_rel))
    return false;
  const BlockKey key = slot.key();
  for (uint32_t at = HomeOf(key.HashValue()); at != slot_index; at = After(at)) {
    displaced[at].fetch_sub(1, std::memory_order_relaxed);
  }
  slot.meta.store(0, std::memory_order_release);
  --entries;
  if (IsCachedRow(key)) rows.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool BlockCache::Partition::MakeSlot() {
  return HasSlot() || Walk(&row_hand, end(), [this](uint32_t) { return HasSlot(); });
}

void BlockCache::Partition::Drop(const BlockKey& key, uint64_t hash) {
  Slot* const slot = Find(key, hash);
  if (slot == nullptr) return;
  const uint32_t unit = slot->unit.load(std::memory_order_relaxed);
  const auto at = static_cast<uint32_t>(slot - slots.get());
  if (!TryRemove(at, slot->meta.load(std::memory_order_acquire))) return;
  if (IsCachedRow(key)) {
    HeaderAt(unit - 1)->slot_plus_one = 0;
    return;
  }
  FreeExtent(unit / Slot::kUnitsPerGranule);
}

// ---- The hand.

uint32_t BlockCache::Partition::FreeExtent(uint32_t first) {
  owner[first] = kPrivate;
  const uint32_t free = arena.Free(first);
  // Joining may have removed the edge that a hand stood on. It goes on behind: what is put here is newest.
  const uint32_t end = free + arena.LengthOf(free);
  for (uint32_t* hand : {&row_hand, &block_hand}) {
    if (*hand > free && *hand < end) *hand = end;
  }
  return free;
}

uint32_t BlockCache::Partition::Advance(uint32_t* hand, uint32_t behind) {
  if (*hand >= behind) *hand = 0;
  const uint32_t first = *hand;
  if (IsLent(first)) {
    *hand = first + kPageGranules;
    return owner[first] == kRows ? PassPage(first) : FrameArena::kNone;
  }
  *hand = first + arena.LengthOf(first);
  if (arena.IsFree(first)) return first;
  if (owner[first] == kPrivate) return FrameArena::kNone;
  return owner[first] == kRows ? PassPage(first) : PassBlock(first);
}

uint32_t BlockCache::Partition::PassBlock(uint32_t first) {
  const uint32_t at = owner[first] - 1;
  Slot& slot = slots[at];
  uint64_t meta = slot.meta.load(std::memory_order_acquire);
  if ((meta & cache_meta::kPinMask) != 0) return FrameArena::kNone;
  const uint64_t use = std::min(cache_meta::UseOf(meta), cache_meta::kUseMax);
  if (!TakesRowsOut(first, slot, meta) && use > 0) {
    // Worn off by the passing hand. Failing to is fine: someone just used it.
    slot.meta.compare_exchange_strong(meta, cache_meta::VisibleWith(use - 1), std::memory_order_relaxed);
    return FrameArena::kNone;
  }
  if (!TryRemove(at, meta)) return FrameArena::kNone;
  ++evictions;
  return PutRowsBack(FreeExtent(first));
}

// The hand walks in address order, so what it frees in a row grows together until it is enough.
uint32_t BlockCache::Partition::AllocateEvicting(uint32_t granules) {
  uint32_t first = arena.Allocate(granules);
  if (first != FrameArena::kNone) return first;
  Walk(&block_hand, arena.granules(), [&](uint32_t free) {
    if (free == FrameArena::kNone || arena.LengthOf(free) < granules) return false;
    first = arena.AllocateAt(free, granules);
    return true;
  });
  return first;
}

// ---- All of it.

void BlockCache::Partition::CheckInvariants() const {
  arena.CheckInvariants();
  uint32_t blocks_found = 0, rows_found = 0;
  uint32_t hands_found = (row_hand == end()) + (block_hand == arena.granules());
  for (uint32_t first = 0; first < arena.granules(); first += arena.LengthOf(first)) {
    hands_found += (first == row_hand) + (first == block_hand);
    if (arena.IsFree(first) || owner[first] == kPrivate) continue;
    if (owner[first] == kRows) {
      CheckPage(first, &rows_found);
      continue;
    }
    const Slot& slot = slots[owner[first] - 1];
    PARTITA_ASSERT(cache_meta::IsVisible(slot.meta.load()) && !IsCachedRow(slot.key()));
    PARTITA_ASSERT(slot.unit.load() == first * Slot::kUnitsPerGranule);
    PARTITA_ASSERT(arena.LengthOf(first) * FrameArena::kGranule >= slot.size.load());
    ++blocks_found;
  }
  size_t lent_free = 0;
  for (uint32_t i = 0; i < pages_lent; ++i) {
    hands_found += LentPage(i) == row_hand;
    if (owner[LentPage(i)] == kRows) {
      CheckPage(LentPage(i), &rows_found);
    } else {
      lent_free += LentPage(i) != spare_page;
    }
  }
  PARTITA_ASSERT(hands_found == 2);
  PARTITA_ASSERT(lent_free == free_pages.size());
  for (const uint32_t page : free_pages) PARTITA_ASSERT(page < end() && owner[page] == kPrivate);
  PARTITA_ASSERT(blocks_found + rows_found == entries);
  PARTITA_ASSERT(rows_found == rows);
  PARTITA_ASSERT(open_page == FrameArena::kNone || (open_page < end() && owner[open_page] == kRows));
  if (spare_page != FrameArena::kNone) {
    PARTITA_ASSERT(spare_page < end() && owner[spare_page] == kPrivate);
    PARTITA_ASSERT(IsLent(spare_page) ||
                   (!arena.IsFree(spare_page) && arena.LengthOf(spare_page) == kPageGranules));
  }
}

void BlockCache::Partition::CheckPage(uint32_t page, uint32_t* rows_found) const {
  uint32_t units = 0;
  for (RowHeader* row = FirstRow(page); row != nullptr; row = NextRow(page, row)) {
    units += row->units;
    if (row->slot_plus_one == 0) continue;
    const Slot& slot = slots[row->slot_plus_one - 1];
    PARTITA_ASSERT(cache_meta::IsVisible(slot.meta.load()) && IsCachedRow(slot.key()));
    PARTITA_ASSERT(slot.unit.load() == UnitOf(row) + 1);
    PARTITA_ASSERT(UnitsOf(slot.size.load()) == row->units);
    ++*rows_found;
  }
  PARTITA_ASSERT(units <= kPageUnits);
  PARTITA_ASSERT(page != open_page || units == open_used);
}

}  // namespace partita

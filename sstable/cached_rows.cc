#include "sstable/cached_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/checksum.h"
#include "sstable/cache_partition.h"
#include "sstable/data_block.h"

namespace partita {

namespace {

// A block goes, and the rows in it that were read stay, when these are at most a third of its entries; and a
// row that is more than a third of its block is not worth cutting out.
constexpr uint32_t kShareMax = 3;
// A page takes two rows at least.
constexpr size_t kRowBytesMax = 4096 - 8;

// About, and never too little.
size_t SizeOfRow(const DataBlock& block, uint32_t at) {
  constexpr size_t kEntryBytes = 8 + kSlotSize + 8 + 4 + 1;
  while (block.same_key_as_before(at)) --at;
  size_t bytes = kDataBlockHeaderSize + block.key_size(at);
  do {
    bytes += kEntryBytes + block.value(at).size();
  } while (++at < block.size() && block.same_key_as_before(at));
  return bytes;
}

}  // namespace

bool IsWorthCutting(const DataBlock& block, uint32_t at) {
  // Of small rows too many find room in a block, and too few slots in the cache.
  if (block.size() > cache_meta::kMarks || block.size() < kShareMax) return false;
  size_t block_bytes = 0;
  for (uint32_t i = 0; i < block.size(); ++i) block_bytes += block.value(i).size();
  const size_t bytes = SizeOfRow(block, at);
  return bytes <= kRowBytesMax && bytes * kShareMax <= block_bytes;
}

CachedRow CutRow(const BlockKey& key, uint64_t key_hash, const DataBlock& block, uint32_t at) {
  while (block.same_key_as_before(at)) --at;
  CachedRow row{CachedRowKey(key, key_hash), {}};
  const auto goes_on = [&block](uint32_t next) {
    return next < block.size() && block.same_key_as_before(next);
  };
  if (!goes_on(at + 1)) {
    block.AloneTo(at, &row.content);
    return row;
  }
  const std::string user_key = block.Key(at);
  DataBlockBuilder builder;
  do {
    builder.Add({user_key, block.version(at), block.kind(at), block.value(at)});
  } while (goes_on(++at));
  builder.Finish(&row.content);
  return row;
}

CachedRow CutRow(const BlockKey& key, const DataBlock& block, uint32_t at) {
  return CutRow(key, Hash64(block.Key(at)), block, at);
}

// ---- Pages.

auto BlockCache::Partition::FirstRow(uint32_t page) const -> RowHeader* {
  RowHeader* const row = HeaderAt(page * Slot::kUnitsPerGranule);
  return row->units == 0 ? nullptr : row;
}

auto BlockCache::Partition::NextRow(uint32_t page, RowHeader* row) const -> RowHeader* {
  RowHeader* const next = row + row->units;
  if (UnitOf(next) == page * Slot::kUnitsPerGranule + kPageUnits) return nullptr;
  return next->units == 0 ? nullptr : next;
}

void BlockCache::Partition::OpenPage(uint32_t page) {
  owner[page] = kRows;
  open_page = page;
  open_used = 0;
  *HeaderAt(page * Slot::kUnitsPerGranule) = {0, 0};
}

auto BlockCache::Partition::TakeUnits(uint32_t units) -> RowHeader* {
  PARTITA_ASSERT(OpenHas(units));
  RowHeader* const row = HeaderAt(open_page * Slot::kUnitsPerGranule + open_used);
  row->units = units;
  open_used += units;
  if (open_used < kPageUnits) *(row + units) = {0, 0};
  return row;
}

uint32_t BlockCache::Partition::PutRow(const BlockKey& key, std::string_view content) {
  const uint64_t hash = key.HashValue();
  if (!HasSlot() || Find(key, hash) != nullptr) return FrameArena::kNone;
  RowHeader* const row = TakeUnits(UnitsOf(content.size()));
  std::memcpy(row + 1, content.data(), content.size());
  // Until it is used again before the hand comes by, it is as good as a scan's.
  const uint32_t slot = Publish(key, hash, UnitOf(row) + 1, content.size(), cache_meta::VisibleWith(0));
  row->slot_plus_one = 1 + slot;
  return slot;
}

uint32_t BlockCache::Partition::AddRow(const BlockKey& key, std::string_view content) {
  if (content.size() > kRowBytesMax || !HasPages() || Find(key, key.HashValue()) != nullptr)
    return FrameArena::kNone;
  if (!MakeSlot() || !MakeRowRoom(UnitsOf(content.size()))) return FrameArena::kNone;
  return PutRow(key, content);
}

bool BlockCache::Partition::MakeRowRoom(uint32_t units) {
  if (spare_page == FrameArena::kNone) spare_page = TakeLentPage();
  if (spare_page == FrameArena::kNone) {
    const uint32_t page = AllocateEvicting(kPageGranules);
    if (spare_page == FrameArena::kNone) {
      spare_page = page;
    } else if (page != FrameArena::kNone) {
      FreeExtent(page);  // The hand has left a page over meanwhile.
    }
  }
  if (OpenHas(units)) return true;
  uint32_t page = TakeLentPage();
  if (page == FrameArena::kNone) page = arena.Allocate(kPageGranules);
  if (page != FrameArena::kNone) {
    OpenPage(page);
    return true;
  }
  return Walk(&row_hand, end(), [&](uint32_t free) {
    if (OpenHas(units)) return true;
    if (const uint32_t lent = TakeLentPage(); lent != FrameArena::kNone) {
      OpenPage(lent);
      return true;
    }
    if (free == FrameArena::kNone || arena.LengthOf(free) < kPageGranules) return false;
    OpenPage(arena.AllocateAt(free, kPageGranules));
    return true;
  });
}

// False when it is used just now.
bool BlockCache::Partition::MoveRow(RowHeader* row) {
  Slot& slot = slots[row->slot_plus_one - 1];
  uint64_t meta = slot.meta.load(std::memory_order_acquire);
  if ((meta & cache_meta::kPinMask) != 0) return false;
  if (!slot.meta.compare_exchange_strong(meta, cache_meta::kChanging, std::memory_order_acq_rel))
    return false;
  RowHeader* const moved = TakeUnits(row->units);
  std::memcpy(moved + 1, row + 1, (row->units - 1) * Slot::kUnit);
  moved->slot_plus_one = row->slot_plus_one;
  row->slot_plus_one = 0;
  slot.unit.store(UnitOf(moved) + 1, std::memory_order_relaxed);
  slot.meta.store(cache_meta::VisibleWith(cache_meta::UseOf(meta)), std::memory_order_release);
  return true;
}

// Rows that were not used since the last time go; the rest goes where there are no holes.
uint32_t BlockCache::Partition::PassPage(uint32_t page) {
  if (!WearRows(page) || page == open_page || !MoveRows(page)) return FrameArena::kNone;
  owner[page] = kPrivate;
  if (spare_page == FrameArena::kNone) {
    spare_page = page;
    return FrameArena::kNone;
  }
  if (IsLent(page)) {
    free_pages.push_back(page);
    return FrameArena::kNone;
  }
  return FreeExtent(page);
}

bool BlockCache::Partition::WearRows(uint32_t page) {
  // The slots lie anywhere: asked for all at once, they are waited for once.
  for (RowHeader* row = FirstRow(page); row != nullptr; row = NextRow(page, row)) {
    if (row->slot_plus_one != 0) __builtin_prefetch(&slots[row->slot_plus_one - 1], 1);
  }
  uint32_t count = 0, units = 0;
  for (RowHeader* row = FirstRow(page); row != nullptr; row = NextRow(page, row)) {
    if (row->slot_plus_one == 0) continue;
    const uint32_t slot = row->slot_plus_one - 1;
    uint64_t meta = slots[slot].meta.load(std::memory_order_acquire);
    const uint64_t use = std::min(cache_meta::UseOf(meta), cache_meta::kUseMax);
    if ((meta & cache_meta::kPinMask) == 0) {
      if (use == 0 && TryRemove(slot, meta)) {
        ++evictions;
        row->slot_plus_one = 0;
        continue;
      }
      if (use > 0) {
        slots[slot].meta.compare_exchange_strong(meta, cache_meta::VisibleWith(use - 1),
                                                 std::memory_order_relaxed);
      }
    }
    ++count;
    units += row->units;
  }
  // Nothing is gained where one more such row would find no room.
  return count == 0 || units + units / count <= kPageUnits;
}

bool BlockCache::Partition::MoveRows(uint32_t page) {
  for (RowHeader* row = FirstRow(page); row != nullptr; row = NextRow(page, row)) {
    if (row->slot_plus_one == 0) continue;
    if (!OpenHas(row->units)) {
      const uint32_t lent = TakeLentPage();
      if (lent == FrameArena::kNone && spare_page == FrameArena::kNone) return false;
      OpenPage(lent != FrameArena::kNone ? lent : std::exchange(spare_page, FrameArena::kNone));
    }
    if (!MoveRow(row)) return false;
  }
  return true;
}

// ---- Lent pages.

uint32_t BlockCache::Partition::TakeLentPage() {
  if (free_pages.empty()) return FrameArena::kNone;
  const uint32_t page = free_pages.back();
  free_pages.pop_back();
  return page;
}

void BlockCache::Partition::Lend(uint32_t pages) {
  if (row_hand >= end()) row_hand = 0;
  arena.Open(end(), pages * kPageGranules);
  // The first is taken first, so that the last, which go first, are used last.
  free_pages.reserve(free_pages.size() + pages);
  for (uint32_t i = pages; i > 0; --i) free_pages.push_back(LentPage(pages_lent + i - 1));
  pages_lent += pages;
}

uint32_t BlockCache::Partition::TakeBack(uint32_t pages) {
  uint32_t taken = 0;
  for (; taken < pages && pages_lent > 0; ++taken, --pages_lent) {
    const uint32_t last = LentPage(pages_lent - 1);
    if (owner[last] == kRows) {
      if (!EvictRows(last)) break;
      owner[last] = kPrivate;
      if (last == open_page) open_page = FrameArena::kNone;
    } else if (last == spare_page) {
      spare_page = FrameArena::kNone;
    }
  }
  std::erase_if(free_pages, [this](uint32_t page) { return page >= end(); });
  if (row_hand >= end()) row_hand = 0;
  return taken;
}

bool BlockCache::Partition::EvictRows(uint32_t page) {
  bool all = true;
  for (RowHeader* row = FirstRow(page); row != nullptr; row = NextRow(page, row)) {
    if (row->slot_plus_one == 0) continue;
    const uint32_t slot = row->slot_plus_one - 1;
    bool removed = false;
    // Again where somebody used it meanwhile and has no pin any more.
    for (int tries = 0; tries < 3 && !removed; ++tries) {
      removed = TryRemove(slot, slots[slot].meta.load(std::memory_order_acquire));
    }
    all &= removed;
    evictions += removed;
    if (removed) row->slot_plus_one = 0;
  }
  return all;
}

// ---- From blocks.

bool BlockCache::Partition::TakesRowsOut(uint32_t first, const Slot& slot, uint64_t meta) {
  taken_out.clear();
  uint32_t marks = cache_meta::MarksOf(meta);
  if (marks == 0 || !HasPages()) return false;
  const DataBlock block(ContentOf(slot));
  if (block.size() > cache_meta::kMarks ||
      static_cast<uint32_t>(std::popcount(marks)) > block.size() / kShareMax ||
      entries + static_cast<uint32_t>(std::popcount(marks)) > EntriesMax())
    return false;
  uint32_t units = 0;
  for (; marks != 0; marks &= marks - 1) {
    const auto at = static_cast<uint32_t>(std::countr_zero(marks));
    if (SizeOfRow(block, at) > kRowBytesMax) {
      taken_out.clear();
      return false;
    }
    taken_out.push_back(CutRow(slot.key(), block, at));
    units += UnitsOf(taken_out.back().content.size());
  }
  const bool page =
      spare_page != FrameArena::kNone || !free_pages.empty() || arena.LengthOf(first) >= kPageGranules;
  if (OpenHas(units) || (page && units <= kPageUnits)) return true;
  taken_out.clear();
  return false;
}

uint32_t BlockCache::Partition::PutRowsBack(uint32_t free) {
  for (const CachedRow& row : taken_out) {
    if (!OpenHas(UnitsOf(row.content.size()))) {
      if (const uint32_t lent = TakeLentPage(); lent != FrameArena::kNone) {
        OpenPage(lent);
      } else if (free != FrameArena::kNone && arena.LengthOf(free) >= kPageGranules) {
        const bool all = arena.LengthOf(free) == kPageGranules;
        OpenPage(arena.AllocateAt(free, kPageGranules));
        free = all ? FrameArena::kNone : free + kPageGranules;
      } else {
        PARTITA_ASSERT(spare_page != FrameArena::kNone);
        OpenPage(std::exchange(spare_page, FrameArena::kNone));
      }
    }
    PutRow(row.key, row.content);
  }
  taken_out.clear();
  return free;
}

}  // namespace partita

#include "sstable/block_cache.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/prefetch.h"
#include "sstable/cache_partition.h"
#include "sstable/cached_rows.h"
#include "sstable/frame_arena.h"
#include "sstable/heap_frame.h"
#include "sstable/row_places.h"
#include "sstable/table_writer.h"

// Who writes which atomic, and what orders it:
//
// Slot::meta = state (2 bits) | marks (24) | use count (6) | pins (32). Readers add and subtract pins, add
// use counts and set marks; everything else is written by the holder of the partition's mutex.
//   1. Publishing: the inserter writes key and place (relaxed) into an empty slot, then stores
//      `visible` (release), of a block with its own pin. A reader's pin (acquire) thus sees key, place and
//      content.
//   2. Looking up: find a visible slot with our key; pin it with one fetch_add. Only what that add
//      returned counts: visible -> the slot cannot change while we hold the pin, compare the key
//      again, undo when it is another block's by now. Not visible -> our stray pin is in a slot
//      that has no owner; there is nothing to undo, because whoever next publishes, moves or empties
//      the slot stores the whole word.
//   3. Evicting: compare-exchange `visible, no pins`, as it was seen, to `changing` (acquire, pairs with the
//      release of the last unpin), then the frame is free to be overwritten.
//   4. Moving a row: compare-exchange `visible, no pins` to `changing` likewise; copy it, write its new
//      place (relaxed), and store `visible` (release) as in 1. Whoever looks it up meanwhile misses it.
//   5. Marking: by who has a pin, relaxed; a mark says no more than that an entry was read.
// Partition::displaced counts the slots whose probe walked over this slot; a search ends at zero.
// Written under the mutex, read relaxed: too high costs a step; it is raised before the block behind
// it becomes visible.
// BlockPlace::packed_, RowPlaces, places_bytes_, withheld_bytes_, missed_, Partition::rows: relaxed; no other
// memory is read on their word.

namespace partita {

namespace {

constexpr size_t kPartitionBytesMin = 32u << 20;
constexpr size_t kPartitionsMax = 16;
constexpr size_t kCountersStripes = 16;
// With what says where it is, but for the slots.
constexpr uint64_t kBytesPerGranule =
    FrameArena::kGranule + FrameArena::kOverheadPerGranule + sizeof(uint32_t);
// Of the capacity: places for the blocks of data that is twenty times as large.
constexpr uint64_t kPlacesShareMax = 48;
static_assert(kPlacesShareMax * sizeof(uint64_t) * 20 <= kBlockSizeDefault);
// Of the capacity, for each block whose miss is remembered.
constexpr uint64_t kBytesPerMiss = kBlockSizeDefault;
// Pages that are taken back before others get the partition's lock: a hundred rows or so.
constexpr uint32_t kTakeBackStep = 16;
// Of a frame that is withheld: of a page at either end the memory stays, three in a hundred.
constexpr uint64_t kWithheldGranules = 256;
// This share of a partition is never withheld: with less each read of a row would read its index block, too.
constexpr uint64_t kWithheldRest = 8;
// Where rows take less of the slots than this share, most of what is read lies in blocks: then looking for it
// among rows first costs more than it saves. Whether it is so is looked at once for so many rows.
constexpr uint64_t kRowShareMin = 16;
constexpr uint32_t kRememberedPerLook = 256;
// The misses of a block are counted to so many; one more is often.
constexpr uint32_t kMissesMask = 3;

uint64_t FirstUse(CachePriority priority) {
  switch (priority) {
    case CachePriority::kScan:
      return 0;
    case CachePriority::kPoint:
      return 1;
    case CachePriority::kIndex:
      return cache_meta::kUseMax;
  }
  return 0;
}

size_t CounterOfThisThread() {
  static std::atomic<size_t> threads{0};
  thread_local size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % kCountersStripes;
  return mine;
}

}  // namespace

struct alignas(64) BlockCache::Counters {
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
};

BlockCache::BlockCache(uint64_t capacity_bytes, uint64_t capacity_max_bytes)
    : capacity_bytes_(capacity_bytes), capacity_max_bytes_(std::max(capacity_bytes, capacity_max_bytes)) {
  size_t count = 1;
  while (count < kPartitionsMax && capacity_bytes / (count * 2) >= kPartitionBytesMin) count *= 2;
  const uint64_t share = std::max<uint64_t>(capacity_bytes / count, 64 * FrameArena::kGranule);
  const uint64_t share_max = std::max<uint64_t>(capacity_max_bytes_ / count, share);
  // Five slots for four granules, of which three quarters are used at most: enough when all of it is rows of
  // 1 KiB, each with a place by its hash. The index is part of the capacity, and always as large as the
  // greatest capacity needs it.
  constexpr uint64_t kSlotBytesPerGranule = (sizeof(Slot) + 2 * sizeof(uint32_t)) * 5 / 4;
  const auto granules_max = static_cast<uint32_t>(std::min<uint64_t>(
      share_max / (kBytesPerGranule + kSlotBytesPerGranule), UINT32_MAX / Slot::kUnitsPerGranule));
  const uint64_t slots_bytes = std::min(share, kSlotBytesPerGranule * granules_max);
  const auto granules =
      static_cast<uint32_t>(std::clamp<uint64_t>((share - slots_bytes) / kBytesPerGranule, 1, granules_max));
  pages_lent_max_ = (granules_max - granules) / Partition::kPageGranules;
  const uint32_t slots = std::max<uint32_t>(granules_max / 4 * 5, 32);
  for (size_t i = 0; i < count; ++i) {
    partitions_.push_back(std::make_unique<Partition>(granules, pages_lent_max_, slots));
  }
  partition_mask_ = static_cast<uint32_t>(count - 1);
  row_places_ = std::make_unique<RowPlaces>(slots * count);
  counters_ = std::make_unique<Counters[]>(kCountersStripes);
  missed_mask_ = std::bit_ceil(std::max<uint64_t>(capacity_bytes / kBytesPerMiss, 64)) - 1;
  missed_ = std::make_unique<std::atomic<uint32_t>[]>(missed_mask_ + 1);
}

BlockCache::~BlockCache() {
  for (const auto& partition : partitions_) {
    for (uint32_t at = 0; at < partition->slot_count; ++at) {
      const uint64_t meta = partition->slots[at].meta.load();
      PARTITA_ASSERT(!cache_meta::IsVisible(meta) || (meta & cache_meta::kPinMask) == 0);  // All are gone.
    }
  }
}

uint32_t BlockCache::PartitionAt(const BlockKey& key, uint64_t hash) const {
  const uint64_t bits = IsCachedRow(key) ? PartitionBitsOfRow(key) : hash >> 56;
  return static_cast<uint32_t>(bits) & partition_mask_;
}

namespace {

constexpr unsigned kPlaceBits = 30;
constexpr uint64_t kPlaceMask = (uint64_t{1} << kPlaceBits) - 1;
static_assert(kPartitionsMax <= 1u << (64 - 2 * kPlaceBits));

}  // namespace

const char* BlockCache::Prefetch(const BlockPlace& place) const {
  const uint64_t packed = place.packed_.load(std::memory_order_relaxed);
  if (packed == 0) return nullptr;
  const Partition& partition = *partitions_[packed >> (2 * kPlaceBits)];
  __builtin_prefetch(&partition.slots[packed >> kPlaceBits & kPlaceMask]);
  const auto* content =
      reinterpret_cast<const char*>(partition.arena.At(static_cast<uint32_t>(packed & kPlaceMask)));
  PrefetchLines({content, FrameArena::kGranule}, FrameArena::kGranule);
  return content;
}

bool BlockCache::TryReservePlaces(uint64_t bytes) {
  const uint64_t before = places_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= capacity_bytes_ / kPlacesShareMax) return true;
  GiveBackPlaces(bytes);
  return false;
}

BlockPin BlockCache::Lookup(BlockKey key, BlockPlace* place) {
  const uint64_t hash = key.HashValue();
  Partition& partition = PartitionOf(key, hash);
  Slot* slot = partition.Pin(key, hash);
  if (slot == nullptr) return BlockPin();
  counters_[CounterOfThisThread()].hits.fetch_add(1, std::memory_order_relaxed);
  BlockPin pin = PinOf(partition, slot);
  if (place != nullptr) {
    const uint64_t at = static_cast<uint64_t>(slot - partition.slots.get());
    const uint32_t granule = slot->unit.load(std::memory_order_relaxed) / Slot::kUnitsPerGranule;
    const uint64_t packed = uint64_t{PartitionAt(key, hash)} << (2 * kPlaceBits) | at << kPlaceBits | granule;
    if (place->packed_.load(std::memory_order_relaxed) != packed)
      place->packed_.store(packed, std::memory_order_relaxed);
  }
  return pin;
}

void BlockCache::CountMiss() {
  counters_[CounterOfThisThread()].misses.fetch_add(1, std::memory_order_relaxed);
}

BlockPin BlockCache::PinOf(Partition& partition, Slot* slot) const {
  BlockPin pin;
  pin.slot_ = slot;
  pin.content_ = partition.ContentOf(*slot);
  return pin;
}

BlockPin BlockCache::LookupRow(BlockKey key) {
  PARTITA_ASSERT(IsCachedRow(key));
  const uint64_t hash = key.HashValue();
  Partition& partition = PartitionOf(key, hash);
  Slot* slot = partition.Pin(key, hash);
  if (slot == nullptr) return BlockPin();
  counters_[CounterOfThisThread()].hits.fetch_add(1, std::memory_order_relaxed);
  RememberRow(key, hash, static_cast<uint32_t>(slot - partition.slots.get()));
  return PinOf(partition, slot);
}

// The slots of all partitions are numbered in turns.
void BlockCache::RememberRow(const BlockKey& key, uint64_t hash, uint32_t slot) {
  row_places_->Remember(key.offset & kCachedRowHashMask,
                        slot * static_cast<uint32_t>(partitions_.size()) + PartitionAt(key, hash));
  if (slot % kRememberedPerLook != 0) return;
  uint64_t rows = 0, slots = 0;
  for (const auto& partition : partitions_) {
    rows += partition->rows.load(std::memory_order_relaxed);
    slots += partition->slot_count;
  }
  row_places_->TurnOn(rows * kRowShareMin >= slots);
}

BlockPin BlockCache::LookupRowByHash(ObjectId object, uint64_t key_hash) {
  const std::optional<uint32_t> place = row_places_->Of(key_hash & kCachedRowHashMask);
  if (!place) return BlockPin();
  Partition& partition = *partitions_[*place & partition_mask_];
  Slot& slot = partition.slots[*place >> std::bit_width(partition_mask_)];
  if (!slot.TryPin([&] { return IsRowWithHash(slot.key(), object, key_hash); })) return BlockPin();
  counters_[CounterOfThisThread()].hits.fetch_add(1, std::memory_order_relaxed);
  return PinOf(partition, &slot);
}

void BlockCache::PrefetchRowPlace(uint64_t key_hash) const {
  row_places_->Prefetch(key_hash & kCachedRowHashMask);
}

void BlockCache::PrefetchSlot(BlockKey key) const {
  const uint64_t hash = key.HashValue();
  const Partition& partition = PartitionOf(key, hash);
  __builtin_prefetch(&partition.slots[partition.HomeOf(hash)]);
}

void BlockCache::PrefetchMiss(BlockKey block, BlockKey row) const {
  PrefetchSlot(block);
  PrefetchSlot(row);
  __builtin_prefetch(&missed_[block.HashValue() & missed_mask_], 1);
}

// Without a pin: by the time it is used the address may be another block's, which costs a line or two.
// Blocks that were displaced are not searched for.
void BlockCache::PrefetchBlock(BlockKey key) const {
  constexpr size_t kKeyAreaBytes = 512;  // Header and key area of a block of fifteen entries.
  const uint64_t hash = key.HashValue();
  const Partition& partition = PartitionOf(key, hash);
  const Slot& slot = partition.slots[partition.HomeOf(hash)];
  if (!slot.Holds(key)) return;
  PrefetchLines(partition.ContentOf(slot), kKeyAreaBytes);
}

bool BlockCache::Contains(BlockKey key) const {
  const uint64_t hash = key.HashValue();
  const Partition& partition = PartitionOf(key, hash);
  return partition.Find(key, hash) != nullptr;
}

bool BlockCache::WasUsed(BlockKey key) const {
  const uint64_t hash = key.HashValue();
  const Slot* const slot = PartitionOf(key, hash).Find(key, hash);
  const uint64_t meta = slot == nullptr ? 0 : slot->meta.load(std::memory_order_relaxed);
  return cache_meta::UseOf(meta) > 0 || cache_meta::MarksOf(meta) > 0;
}

void BlockCache::Drop(BlockKey key) {
  const uint64_t hash = key.HashValue();
  Partition& partition = PartitionOf(key, hash);
  std::lock_guard lock(partition.mutex);
  partition.Drop(key, hash);
}

bool BlockCache::MissedOften(BlockKey key) {
  const uint64_t hash = key.HashValue();
  const auto tag = static_cast<uint32_t>(hash >> 32) & ~kMissesMask;
  std::atomic<uint32_t>& last = missed_[hash & missed_mask_];
  const uint32_t seen = last.load(std::memory_order_relaxed);
  const uint32_t before = (seen & ~kMissesMask) == tag ? seen & kMissesMask : 0;
  const bool often = before == kMissesMask;
  last.store(often ? 0 : tag | (before + 1), std::memory_order_relaxed);
  return often;
}

void BlockCache::AddRow(BlockKey key, std::string_view content) {
  Partition& partition = PartitionOf(key, key.HashValue());
  AddRowUnder(std::unique_lock(partition.mutex), &partition, key, content);
}

void BlockCache::TryAddRow(BlockKey key, std::string_view content) {
  Partition& partition = PartitionOf(key, key.HashValue());
  std::unique_lock lock(partition.mutex, std::try_to_lock);
  if (lock.owns_lock()) AddRowUnder(std::move(lock), &partition, key, content);
}

void BlockCache::AddRowUnder(std::unique_lock<std::mutex> lock, Partition* partition, const BlockKey& key,
                             std::string_view content) {
  PARTITA_ASSERT(IsCachedRow(key));
  const uint32_t slot = partition->AddRow(key, content);
  lock.unlock();
  if (slot != FrameArena::kNone) RememberRow(key, key.HashValue(), slot);
}

bool BlockCache::HasRows() const {
  return std::any_of(partitions_.begin(), partitions_.end(), [](const auto& partition) {
    return partition->rows.load(std::memory_order_relaxed) != 0;
  });
}

BlockFrame BlockCache::NewFrame(BlockKey key, size_t size, bool evicts) {
  PARTITA_ASSERT(size > 0);
  Partition& partition = PartitionOf(key, key.HashValue());
  const uint64_t granules = Partition::GranulesOf(size);
  {
    std::unique_lock lock(partition.mutex, std::defer_lock);
    if (evicts || !partition.was_full.load(std::memory_order_relaxed)) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return NewHeapFrame(size);  // Nobody is waited for to hear that nothing is free.
    }
    uint32_t first = FrameArena::kNone;
    if (granules <= partition.GranulesMax()) {
      if (!evicts) first = partition.arena.Allocate(static_cast<uint32_t>(granules));
      if (first == FrameArena::kNone && (evicts || partition.spare_given > 0)) {
        if (!evicts) --partition.spare_given;
        first = partition.AllocateEvicting(static_cast<uint32_t>(granules));
      }
      if (!evicts) partition.was_full.store(first == FrameArena::kNone, std::memory_order_relaxed);
    }
    if (first != FrameArena::kNone) return FrameAt(partition, first, size);
    partition.refused += evicts;
  }
  return NewHeapFrame(size);
}

BlockFrame BlockCache::NewSpareFrame(BlockKey key, size_t size) {
  PARTITA_ASSERT(size > 0);
  Partition& partition = PartitionOf(key, key.HashValue());
  const uint64_t granules = Partition::GranulesOf(size);
  std::lock_guard lock(partition.mutex);
  if (granules > partition.GranulesMax() || !partition.HasSlot()) return {};
  const uint32_t first = partition.arena.Allocate(static_cast<uint32_t>(granules));
  if (first == FrameArena::kNone) return {};
  ++partition.spare_given;
  return FrameAt(partition, first, size);
}

BlockFrame BlockCache::FrameAt(Partition& partition, uint32_t first, size_t size) {
  BlockFrame frame;
  frame.data_ = partition.arena.At(first);
  frame.size_ = size;
  frame.partition_ = &partition;
  return frame;
}

BlockFrame BlockCache::NewHeapFrame(size_t size) {
  BlockFrame frame;
  frame.data_ = TakeHeapFrame(size);
  frame.size_ = frame.data_ != nullptr ? size : 0;
  return frame;
}

BlockPin BlockCache::Insert(BlockKey key, BlockFrame frame, CachePriority priority) {
  BlockPin pin;
  if (frame.partition_ == nullptr) {
    pin.content_ = frame.view();
    pin.frame_ = std::move(frame);
    return pin;
  }
  const uint64_t hash = key.HashValue();
  Partition& partition = PartitionOf(key, hash);
  PARTITA_ASSERT(frame.partition_ == &partition);  // NewFrame was given the same key.
  BlockFrame unused;                               // Given back after the lock is.
  {
    std::lock_guard lock(partition.mutex);
    pin.slot_ = partition.Pin(key, hash);
    if (pin.slot_ == nullptr) {
      if (!partition.MakeSlot()) {
        // Every slot pinned: the block lives as long as this pin.
        pin.content_ = frame.view();
        pin.frame_ = std::move(frame);
        return pin;
      }
      const uint32_t granule = partition.arena.GranuleOf(frame.data_);
      const uint32_t slot = partition.Publish(key, hash, granule * Slot::kUnitsPerGranule, frame.size_,
                                              cache_meta::VisibleWith(FirstUse(priority)) | 1);
      partition.owner[granule] = slot + 1;
      pin.slot_ = &partition.slots[slot];
      frame.data_ = nullptr;  // The slot owns it now.
    } else {
      unused = std::move(frame);
    }
  }
  pin.content_ = partition.ContentOf(*pin.slot_);
  return pin;
}

void BlockCache::Resize(uint64_t capacity_bytes) {
  const uint64_t more = std::clamp(capacity_bytes, capacity_bytes_, capacity_max_bytes_) - capacity_bytes_;
  const uint64_t pages = more / partitions_.size() / (Partition::kPageGranules * kBytesPerGranule);
  const auto wanted = static_cast<uint32_t>(std::min<uint64_t>(pages, pages_lent_max_));
  std::vector<uint32_t> ends;  // Of the partitions, before.
  for (const auto& partition : partitions_) {
    std::lock_guard lock(partition->mutex);
    ends.push_back(partition->end());
    if (partition->pages_lent < wanted) partition->Lend(wanted - partition->pages_lent);
  }
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const auto& partition : partitions_) {
      std::lock_guard lock(partition->mutex);
      const uint32_t lent = partition->pages_lent;
      const uint32_t surplus = lent - std::min(lent, wanted);
      const uint32_t step = std::min(surplus, kTakeBackStep);
      goes_on |= step > 0 && partition->TakeBack(step) == step;
    }
  }
  // Without a lock: what was taken away is nobody's until this function lends it again.
  for (size_t i = 0; i < ends.size(); ++i) {
    const uint32_t end = partitions_[i]->end();
    if (end < ends[i]) partitions_[i]->arena.Close(end, ends[i] - end);
  }
}

// In frames that nobody fills. Partitions have one in turns, so that they stay of one size.
void BlockCache::Withhold(uint64_t bytes) {
  const uint64_t granules = GranulesOfWithheld();
  const uint64_t frame_bytes = granules * FrameArena::kGranule;
  const uint64_t frames = granules == 0 ? 0 : std::min(bytes, WithheldMax()) / frame_bytes;
  while (withheld_.size() > frames) withheld_.pop_back();
  withheld_bytes_.store(frames * frame_bytes, std::memory_order_relaxed);  // From here on nobody touches it.
  while (withheld_.size() < frames) {
    Partition& partition = *partitions_[withheld_.size() % partitions_.size()];
    std::lock_guard lock(partition.mutex);
    const uint32_t first = partition.AllocateEvicting(static_cast<uint32_t>(granules));
    if (first == FrameArena::kNone) break;
    partition.arena.GiveBack(first);
    withheld_.push_back(FrameAt(partition, first, frame_bytes));
  }
  withheld_bytes_.store(withheld_.size() * frame_bytes, std::memory_order_relaxed);
}

uint64_t BlockCache::GranulesOfWithheld() const {
  return std::min(kWithheldGranules, partitions_.front()->GranulesMax());
}

uint64_t BlockCache::WithheldMax() const {
  const uint64_t granules = GranulesOfWithheld();
  if (granules == 0) return 0;
  const uint64_t of_partition = partitions_.front()->arena.granules();
  const uint64_t frames = (of_partition - of_partition / kWithheldRest) / granules;
  return frames * granules * partitions_.size() * FrameArena::kGranule;
}

bool BlockCache::TouchNext(uint64_t bytes) {
  if (bytes < LargeMemory::kHugePageSize) return false;
  if (row_places_->TouchNext()) return true;
  if (withheld_bytes_.load(std::memory_order_relaxed) > 0) bytes = 0;
  const auto granules = static_cast<uint32_t>(
      std::min<uint64_t>(bytes / partitions_.size() / FrameArena::kGranule, UINT32_MAX));
  for (size_t i = 0; i < partitions_.size(); ++i) {  // In turns, as they are filled.
    touched_last_ = (touched_last_ + 1) % partitions_.size();
    Partition& partition = *partitions_[touched_last_];
    if (partition.slots.TouchNext() || partition.displaced.TouchNext() || partition.owner.TouchNext() ||
        partition.arena.TouchNext(std::min(granules, partition.end()))) {
      return true;
    }
  }
  return false;
}

CacheStatistics BlockCache::statistics() const {
  CacheStatistics out;
  out.capacity_bytes = capacity_bytes_;
  for (size_t i = 0; i < kCountersStripes; ++i) {
    out.hits += counters_[i].hits.load(std::memory_order_relaxed);
    out.misses += counters_[i].misses.load(std::memory_order_relaxed);
  }
  for (const auto& partition : partitions_) {
    std::lock_guard lock(partition->mutex);
    out.inserts += partition->inserts;
    out.evictions += partition->evictions;
    out.refused += partition->refused;
    out.blocks += partition->entries - partition->rows;
    out.rows += partition->rows;
    out.capacity_bytes += partition->pages_lent * uint64_t{Partition::kPageGranules} * kBytesPerGranule;
    out.used_bytes += partition->used_granules() * FrameArena::kGranule;
  }
  const uint64_t withheld = withheld_bytes_.load(std::memory_order_relaxed);
  out.capacity_bytes -= withheld;
  out.used_bytes -= std::min(out.used_bytes, withheld);  // It may have changed meanwhile.
  return out;
}

uint64_t BlockCache::CountPinned() const {
  uint64_t pinned = 0;
  for (const auto& partition : partitions_) {
    std::lock_guard lock(partition->mutex);
    for (uint32_t at = 0; at < partition->slot_count; ++at) {
      const uint64_t meta = partition->slots[at].meta.load(std::memory_order_relaxed);
      pinned += cache_meta::IsVisible(meta) && (meta & cache_meta::kPinMask) != 0;
    }
  }
  return pinned;
}

void BlockCache::CheckInvariants() const {
  for (const auto& partition : partitions_) {
    std::lock_guard lock(partition->mutex);
    partition->CheckInvariants();
  }
}

BlockFrame& BlockFrame::operator=(BlockFrame&& other) noexcept {
  if (this != &other) {
    Release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    partition_ = std::exchange(other.partition_, nullptr);
  }
  return *this;
}

void BlockFrame::Release() {
  if (data_ == nullptr) return;
  if (partition_ == nullptr) {
    LeaveHeapFrame(data_, size_);
  } else {
    std::lock_guard lock(partition_->mutex);
    partition_->FreeExtent(partition_->arena.GranuleOf(data_));
  }
  data_ = nullptr;
}

BlockPin& BlockPin::operator=(BlockPin&& other) noexcept {
  if (this != &other) {
    Release();
    content_ = std::exchange(other.content_, {});
    slot_ = std::exchange(other.slot_, nullptr);
    frame_ = std::move(other.frame_);
  }
  return *this;
}

BlockPin BlockPin::Share() const {
  BlockPin pin;
  if (slot_ == nullptr) return pin;
  slot_->meta.fetch_add(1, std::memory_order_relaxed);  // Ours keeps the slot as it is.
  pin.slot_ = slot_;
  pin.content_ = content_;
  return pin;
}

void BlockPin::MarkEntry(uint32_t at) {
  if (slot_ == nullptr || at >= cache_meta::kMarks) return;
  const uint64_t mark = uint64_t{1} << (cache_meta::kMarkShift + at);
  if ((slot_->meta.load(std::memory_order_relaxed) & mark) == 0)
    slot_->meta.fetch_or(mark, std::memory_order_relaxed);
}

void BlockPin::MarkAll() {
  if (slot_ == nullptr) return;
  const uint64_t all = uint64_t{(1u << cache_meta::kMarks) - 1} << cache_meta::kMarkShift;
  if ((slot_->meta.load(std::memory_order_relaxed) & all) != all)
    slot_->meta.fetch_or(all, std::memory_order_relaxed);
}

void BlockPin::Release() {
  if (slot_ != nullptr) slot_->meta.fetch_sub(1, std::memory_order_release);
  slot_ = nullptr;
  frame_ = BlockFrame();
  content_ = {};
}

}  // namespace partita

#include "sstable/block_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/large_memory.h"
#include "engine/base/prefetch.h"
#include "sstable/frame_arena.h"

// Who writes which atomic, and what orders it:
//
// Slot::meta = state (2 bits) | use count | pins (32 bits). Readers add and subtract pins and add
// use counts; everything else is written by the holder of the partition's mutex.
//   1. Publishing: the inserter writes key and place (relaxed) into an empty slot, then stores
//      `visible, one pin` (release). A reader's pin (acquire) thus sees key, place and content.
//   2. Looking up: find a visible slot with our key; pin it with one fetch_add. Only what that add
//      returned counts: visible -> the slot cannot change while we hold the pin, compare the key
//      again, undo when it is another block's by now. Not visible -> our stray pin is in a slot
//      that has no owner; there is nothing to undo, because whoever next publishes or empties the
//      slot stores the whole word.
//   3. Evicting: compare-exchange `visible, no pins, no use` to `changing` (acquire, pairs with the
//      release of the last unpin), then the frame is free to be overwritten.
// Slot::displaced counts the blocks whose probe walked over this slot; a search ends at zero.
// Written under the mutex, read relaxed: too high costs a step; it is raised before the block behind
// it becomes visible.
// BlockPlace::packed_ and places_bytes_: by anyone, relaxed; no other memory is read on their word.

namespace partita {

namespace {

constexpr uint64_t kPinMask = 0xFFFFFFFFULL;
constexpr uint64_t kUseOne = 1ULL << 32;
constexpr uint64_t kUseMask = 0xFFFFULL << 32;
constexpr uint64_t kUseMax = 3;
constexpr uint64_t kStateMask = 3ULL << 62;
constexpr uint64_t kChanging = 1ULL << 62;
constexpr uint64_t kVisible = 2ULL << 62;

constexpr size_t kPartitionBytesMin = 32u << 20;
constexpr size_t kPartitionsMax = 16;
constexpr size_t kCountersStripes = 16;
// A frame may take an eighth of its partition; larger ones are not worth what they displace.
constexpr uint32_t kFrameShareMax = 8;
// Rounds of the hand after which a frame goes to the heap: use counts are worn off after three.
constexpr uint32_t kRoundsMax = 5;
// Of the capacity: places for the blocks, of 12 KiB, of data that is twenty times as large.
constexpr uint64_t kPlacesShareMax = 64;
// Of an extent that no slot owns.
constexpr uint32_t kPrivate = 0;

uint64_t UseOf(uint64_t meta) { return (meta & kUseMask) >> 32; }

uint64_t HashOf(const BlockKey& key) {
  uint64_t h = key.object.value * 0x9E3779B97F4A7C15ULL ^ key.offset;
  h ^= h >> 32;
  h *= 0xD6E8FEB86659FD93ULL;
  h ^= h >> 32;
  h *= 0xD6E8FEB86659FD93ULL;
  return h ^ (h >> 32);
}

uint64_t FirstUse(CachePriority priority) {
  switch (priority) {
    case CachePriority::kScan:
      return 0;
    case CachePriority::kPoint:
      return 1;
    case CachePriority::kIndex:
      return kUseMax;
  }
  return 0;
}

size_t CounterOfThisThread() {
  static std::atomic<size_t> threads{0};
  thread_local size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % kCountersStripes;
  return mine;
}

}  // namespace

struct BlockCache::Slot {
  std::atomic<uint64_t> meta{0};
  std::atomic<uint64_t> object{0};
  std::atomic<uint64_t> offset{0};
  std::atomic<uint32_t> granule{0};
  std::atomic<uint32_t> size{0};

  bool Holds(const BlockKey& key) const {
    return object.load(std::memory_order_relaxed) == key.object.value &&
           offset.load(std::memory_order_relaxed) == key.offset;
  }
};

struct alignas(64) BlockCache::Counters {
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
};

struct BlockCache::Partition {
  Partition(uint32_t granules, uint32_t slot_count)
      : arena(granules), owner(granules), slots(slot_count), displaced(slot_count), mask(slot_count - 1) {}

  static uint32_t HomeOf(uint64_t hash) { return static_cast<uint32_t>(hash); }

  Slot* Pin(const BlockKey& key, uint64_t hash);
  // Without a pin: it may be another's when the caller looks, but for the holder of the mutex.
  const Slot* Find(const BlockKey& key, uint64_t hash) const;
  void Publish(const BlockKey& key, uint64_t hash, uint32_t granule, size_t size, uint64_t use);
  bool TryEvict(uint32_t slot_index);
  // Empties a slot that was seen as `meta`; false when it has pins or is used meanwhile.
  bool TryRemove(uint32_t slot_index, uint64_t meta);
  // Of a used extent that no slot owns; the hand stays on an extent's edge.
  void FreeExtent(uint32_t first);
  uint32_t AllocateEvicting(uint32_t granules);
  // Evicts until less than three quarters of the slots are used; false when pins prevent it.
  bool MakeSlot();
  // Moves the hand over one extent; the free extent it made, or kNone.
  uint32_t Advance();

  // What an idle moment touches: the slots, which are the first to be used everywhere, and then the arena.
  size_t size_bytes() const { return slots_bytes() + arena.size_bytes(); }
  size_t slots_bytes() const { return (size_t{mask} + 1) * sizeof(Slot); }
  void Populate(size_t offset, size_t bytes);

  std::mutex mutex;  // Guards everything below but for what the top of this file says of slots.
  FrameArena arena;
  LargeArray<uint32_t> owner;  // Of a used extent's first granule: 1 + its slot, or kPrivate.
  LargeArray<Slot> slots;
  LargeArray<std::atomic<uint32_t>> displaced;
  uint32_t mask;
  uint32_t hand = 0;  // First granule of an extent.
  uint32_t blocks = 0;
  uint64_t inserts = 0;
  uint64_t evictions = 0;
  uint64_t refused = 0;
};

BlockCache::Slot* BlockCache::Partition::Pin(const BlockKey& key, uint64_t hash) {
  for (uint32_t probe = 0, at = HomeOf(hash) & mask; probe <= mask; ++probe, at = (at + 1) & mask) {
    Slot& slot = slots[at];
    if ((slot.meta.load(std::memory_order_acquire) & kStateMask) == kVisible && slot.Holds(key)) {
      const uint64_t old = slot.meta.fetch_add(1, std::memory_order_acq_rel);
      if ((old & kStateMask) == kVisible) {
        if (slot.Holds(key)) {
          if (UseOf(old) < kUseMax) slot.meta.fetch_add(kUseOne, std::memory_order_relaxed);
          return &slot;
        }
        slot.meta.fetch_sub(1, std::memory_order_release);
      }
    }
    if (displaced[at].load(std::memory_order_relaxed) == 0) return nullptr;
  }
  return nullptr;
}

const BlockCache::Slot* BlockCache::Partition::Find(const BlockKey& key, uint64_t hash) const {
  for (uint32_t probe = 0, at = HomeOf(hash) & mask; probe <= mask; ++probe, at = (at + 1) & mask) {
    const Slot& slot = slots[at];
    if ((slot.meta.load(std::memory_order_acquire) & kStateMask) == kVisible && slot.Holds(key)) return &slot;
    if (displaced[at].load(std::memory_order_relaxed) == 0) return nullptr;
  }
  return nullptr;
}

void BlockCache::Partition::Publish(const BlockKey& key, uint64_t hash, uint32_t granule, size_t size,
                                    uint64_t use) {
  uint32_t at = HomeOf(hash) & mask;
  // Not full: slots are at most three quarters used (Insert).
  while ((slots[at].meta.load(std::memory_order_relaxed) & kStateMask) != 0) {
    displaced[at].fetch_add(1, std::memory_order_relaxed);
    at = (at + 1) & mask;
  }
  Slot& slot = slots[at];
  slot.meta.store(kChanging, std::memory_order_relaxed);
  slot.object.store(key.object.value, std::memory_order_relaxed);
  slot.offset.store(key.offset, std::memory_order_relaxed);
  slot.granule.store(granule, std::memory_order_relaxed);
  slot.size.store(static_cast<uint32_t>(size), std::memory_order_relaxed);
  slot.meta.store(kVisible | (use << 32) | 1, std::memory_order_release);
  owner[granule] = at + 1;
  ++blocks;
  ++inserts;
}

bool BlockCache::Partition::TryEvict(uint32_t slot_index) {
  Slot& slot = slots[slot_index];
  uint64_t meta = slot.meta.load(std::memory_order_acquire);
  if ((meta & kPinMask) != 0) return false;
  if (uint64_t use = std::min(UseOf(meta), kUseMax); use > 0) {
    // Worn off by the passing hand. Failing to is fine: someone just used it.
    slot.meta.compare_exchange_strong(meta, kVisible | ((use - 1) << 32), std::memory_order_relaxed);
    return false;
  }
  if (!TryRemove(slot_index, meta)) return false;
  ++evictions;
  return true;
}

bool BlockCache::Partition::TryRemove(uint32_t slot_index, uint64_t meta) {
  Slot& slot = slots[slot_index];
  if ((meta & kPinMask) != 0) return false;
  if (!slot.meta.compare_exchange_strong(meta, kChanging, std::memory_order_acq_rel)) return false;
  const BlockKey key{ObjectId(slot.object.load(std::memory_order_relaxed)),
                     slot.offset.load(std::memory_order_relaxed)};
  for (uint32_t at = HomeOf(HashOf(key)) & mask; at != slot_index; at = (at + 1) & mask) {
    displaced[at].fetch_sub(1, std::memory_order_relaxed);
  }
  slot.meta.store(0, std::memory_order_release);
  --blocks;
  return true;
}

void BlockCache::Partition::FreeExtent(uint32_t first) {
  const uint32_t free = arena.Free(first);
  // Joining may have removed the edge that the hand stood on.
  if (hand > free && hand < free + arena.LengthOf(free)) hand = free;
}

uint32_t BlockCache::Partition::Advance() {
  if (hand >= arena.granules()) hand = 0;
  const uint32_t first = hand;
  const uint32_t length = arena.LengthOf(first);
  hand = first + length;
  if (arena.IsFree(first)) return first;
  if (owner[first] == kPrivate || !TryEvict(owner[first] - 1)) return FrameArena::kNone;
  owner[first] = kPrivate;
  const uint32_t free = arena.Free(first);
  hand = free + arena.LengthOf(free);  // The hand stays on an extent's edge.
  return free;
}

// The hand walks in address order, so what it frees in a row grows together until it is enough.
uint32_t BlockCache::Partition::AllocateEvicting(uint32_t granules) {
  uint32_t first = arena.Allocate(granules);
  uint64_t walked = 0;
  while (first == FrameArena::kNone && walked < static_cast<uint64_t>(kRoundsMax) * arena.granules()) {
    const uint32_t before = hand >= arena.granules() ? 0 : hand;
    const uint32_t free = Advance();
    walked += hand > before ? hand - before : 1;
    if (free != FrameArena::kNone && arena.LengthOf(free) >= granules)
      first = arena.AllocateAt(free, granules);
  }
  return first;
}

bool BlockCache::Partition::MakeSlot() {
  const uint32_t blocks_max = (mask + 1) / 4 * 3;
  // An extent is at least one granule, so this is at least kRoundsMax rounds.
  for (uint64_t steps = 0; blocks >= blocks_max; ++steps) {
    if (steps > static_cast<uint64_t>(kRoundsMax) * arena.granules()) return false;
    Advance();
  }
  return true;
}

BlockCache::BlockCache(uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {
  size_t count = 1;
  while (count < kPartitionsMax && capacity_bytes / (count * 2) >= kPartitionBytesMin) count *= 2;
  const uint64_t share = std::max<uint64_t>(capacity_bytes / count, 64 * FrameArena::kGranule);
  // One slot for at least two granules; the index is part of the capacity.
  const uint64_t per_granule = FrameArena::kGranule + FrameArena::kOverheadPerGranule + sizeof(uint32_t) +
                               (sizeof(Slot) + sizeof(uint32_t)) / 2;
  const uint64_t granules = std::min<uint64_t>(share / per_granule, 1u << 30);
  const uint64_t slots = std::bit_floor(std::max<uint64_t>(granules / 2, 16)) * 2;
  for (size_t i = 0; i < count; ++i) {
    partitions_.push_back(
        std::make_unique<Partition>(static_cast<uint32_t>(granules), static_cast<uint32_t>(slots)));
  }
  partition_mask_ = static_cast<uint32_t>(count - 1);
  counters_ = std::make_unique<Counters[]>(kCountersStripes);
}

BlockCache::~BlockCache() {
  for (const auto& partition : partitions_) {
    for (uint32_t at = 0; at <= partition->mask; ++at) {
      const uint64_t meta = partition->slots[at].meta.load();
      PARTITA_ASSERT((meta & kStateMask) != kVisible || (meta & kPinMask) == 0);  // All pins are gone.
    }
  }
}

BlockCache::Partition& BlockCache::PartitionOf(uint64_t hash) const {
  return *partitions_[(hash >> 56) & partition_mask_];
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
  const uint64_t hash = HashOf(key);
  Partition& partition = PartitionOf(hash);
  Slot* slot = partition.Pin(key, hash);
  Counters& counters = counters_[CounterOfThisThread()];
  BlockPin pin;
  if (slot == nullptr) {
    counters.misses.fetch_add(1, std::memory_order_relaxed);
    return pin;
  }
  counters.hits.fetch_add(1, std::memory_order_relaxed);
  const uint32_t granule = slot->granule.load(std::memory_order_relaxed);
  pin.slot_ = slot;
  pin.content_ = {reinterpret_cast<const char*>(partition.arena.At(granule)),
                  slot->size.load(std::memory_order_relaxed)};
  if (place != nullptr) {
    const uint64_t at = static_cast<uint64_t>(slot - partition.slots.get());
    const uint64_t packed = ((hash >> 56) & partition_mask_) << (2 * kPlaceBits) | at << kPlaceBits | granule;
    if (place->packed_.load(std::memory_order_relaxed) != packed)
      place->packed_.store(packed, std::memory_order_relaxed);
  }
  return pin;
}

void BlockCache::PrefetchSlot(BlockKey key) const {
  const uint64_t hash = HashOf(key);
  const Partition& partition = PartitionOf(hash);
  __builtin_prefetch(&partition.slots[Partition::HomeOf(hash) & partition.mask]);
}

// Without a pin: by the time it is used the address may be another block's, which costs a line or two.
// Blocks that were displaced are not searched for.
void BlockCache::PrefetchBlock(BlockKey key) const {
  constexpr size_t kKeyAreaBytes = 512;  // Header and key area of a block of fifteen entries.
  const uint64_t hash = HashOf(key);
  const Partition& partition = PartitionOf(hash);
  const Slot& slot = partition.slots[Partition::HomeOf(hash) & partition.mask];
  if (!slot.Holds(key)) return;
  const uint8_t* content = partition.arena.At(slot.granule.load(std::memory_order_relaxed));
  const size_t size = slot.size.load(std::memory_order_relaxed);
  PrefetchLines({reinterpret_cast<const char*>(content), size}, kKeyAreaBytes);
}

bool BlockCache::Contains(BlockKey key) const {
  const uint64_t hash = HashOf(key);
  const Partition& partition = PartitionOf(hash);
  return partition.Find(key, hash) != nullptr;
}

void BlockCache::Drop(BlockKey key) {
  const uint64_t hash = HashOf(key);
  Partition& partition = PartitionOf(hash);
  std::lock_guard lock(partition.mutex);
  const Slot* slot = partition.Find(key, hash);
  if (slot == nullptr) return;
  const auto at = static_cast<uint32_t>(slot - partition.slots.get());
  const uint32_t granule = slot->granule.load(std::memory_order_relaxed);
  if (!partition.TryRemove(at, slot->meta.load(std::memory_order_acquire))) return;
  partition.owner[granule] = kPrivate;
  partition.FreeExtent(granule);
}

BlockFrame BlockCache::NewFrame(BlockKey key, size_t size) {
  PARTITA_ASSERT(size > 0);
  Partition& partition = PartitionOf(HashOf(key));
  const uint64_t granules = (size + FrameArena::kGranule - 1) / FrameArena::kGranule;
  {
    std::lock_guard lock(partition.mutex);
    uint32_t first = FrameArena::kNone;
    if (granules <= partition.arena.granules() / kFrameShareMax) {
      first = partition.AllocateEvicting(static_cast<uint32_t>(granules));
    }
    if (first != FrameArena::kNone) {
      BlockFrame frame;
      frame.data_ = partition.arena.At(first);
      frame.size_ = size;
      frame.partition_ = &partition;
      return frame;
    }
    ++partition.refused;
  }
  return NewHeapFrame(size);
}

BlockFrame BlockCache::NewHeapFrame(size_t size) {
  BlockFrame frame;
  frame.data_ = static_cast<uint8_t*>(std::malloc(size));
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
  const uint64_t hash = HashOf(key);
  Partition& partition = PartitionOf(hash);
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
      partition.Publish(key, hash, granule, frame.size_, FirstUse(priority));
      pin.slot_ = &partition.slots[partition.owner[granule] - 1];
      frame.data_ = nullptr;  // The slot owns it now.
    } else {
      unused = std::move(frame);
    }
  }
  pin.content_ = {
      reinterpret_cast<const char*>(partition.arena.At(pin.slot_->granule.load(std::memory_order_relaxed))),
      pin.slot_->size.load(std::memory_order_relaxed)};
  return pin;
}

void BlockCache::Partition::Populate(size_t offset, size_t bytes) {
  if (offset >= slots_bytes()) return arena.Populate(offset - slots_bytes(), bytes);
  const size_t of_slots = std::min(bytes, slots_bytes() - offset);
  (void)slots.memory().Populate(offset, of_slots);
  if (bytes > of_slots) arena.Populate(0, bytes - of_slots);
}

bool BlockCache::TouchMemory(size_t bytes) {
  std::lock_guard lock(touch_mutex_);
  const size_t partition_bytes = partitions_[0]->size_bytes();
  const size_t total = partition_bytes * partitions_.size();
  while (bytes > 0 && touched_ < total) {
    const size_t offset = touched_ % partition_bytes;
    const size_t step = std::min(bytes, partition_bytes - offset);
    partitions_[touched_ / partition_bytes]->Populate(offset, step);
    touched_ += step;
    bytes -= step;
  }
  return touched_ < total;
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
    out.blocks += partition->blocks;
    out.used_bytes += static_cast<uint64_t>(partition->arena.used_granules()) * FrameArena::kGranule;
  }
  return out;
}

uint64_t BlockCache::CountPinned() const {
  uint64_t pinned = 0;
  for (const auto& partition : partitions_) {
    std::lock_guard lock(partition->mutex);
    for (uint32_t at = 0; at <= partition->mask; ++at) {
      const uint64_t meta = partition->slots[at].meta.load(std::memory_order_relaxed);
      pinned += (meta & kStateMask) == kVisible && (meta & kPinMask) != 0;
    }
  }
  return pinned;
}

void BlockCache::CheckInvariants() const {
  for (const auto& partition : partitions_) {
    std::lock_guard lock(partition->mutex);
    partition->arena.CheckInvariants();
    uint32_t visible = 0;
    for (uint32_t at = 0; at <= partition->mask; ++at) {
      const Slot& slot = partition->slots[at];
      if ((slot.meta.load() & kStateMask) != kVisible) continue;
      ++visible;
      const uint32_t granule = slot.granule.load();
      PARTITA_ASSERT(partition->owner[granule] == at + 1);
      PARTITA_ASSERT(!partition->arena.IsFree(granule));
      PARTITA_ASSERT(partition->arena.LengthOf(granule) * FrameArena::kGranule >= slot.size.load());
    }
    PARTITA_ASSERT(visible == partition->blocks);
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
    std::free(data_);
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

void BlockPin::Release() {
  if (slot_ != nullptr) slot_->meta.fetch_sub(1, std::memory_order_release);
  slot_ = nullptr;
  frame_ = BlockFrame();
  content_ = {};
}

}  // namespace partita

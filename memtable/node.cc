#include "memtable/node.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "engine/base/assert.h"
#include "engine/base/checksum.h"

namespace partita::memtable_internal {

namespace {

// A split takes about two microseconds; past that the writer was probably interrupted.
constexpr unsigned kSpinsBeforeYield = 256;

void Pause() { __builtin_ia32_pause(); }

// Prefixes up to this much shorter than they could be are kept at a split: the bytes lost in the
// heads matter less than reading 64 keys to take new ones.
constexpr size_t kPrefixSlack = 2;

}  // namespace

uint64_t Node::BeginRead() const {
  for (unsigned spins = 0;; ++spins) {
    const uint64_t now = sequence.load(std::memory_order_acquire);
    if (now % 2 == 0) return now;
    if (spins < kSpinsBeforeYield) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

Position Node::Find(std::string_view key) const {
  const Shape now = LoadShape();
  const size_t count = now.count;
  if (count == 0) return {};
  if (!now.implied) {
    const std::string_view prefix = LoadRecord(0)->key().substr(0, now.prefix_size);
    const int order = key.substr(0, prefix.size()).compare(prefix);
    if (order != 0) return {order < 0 ? 0 : count, false};
  }
  const uint64_t head = HeadOf(key, now.prefix_size);
  size_t first = 0;
  for (size_t length = count; length > 1;) {
    const size_t half = length / 2;
    first += heads[first + half - 1].load(std::memory_order_relaxed) < head ? half : 0;
    length -= half;
  }
  const uint64_t met = heads[first].load(std::memory_order_relaxed);
  if (met < head) return {first + 1, false};
  if (met > head) return {first, false};
  return FindAmongEqualHeads(key, now, first, head);
}

Position Node::FindAmongEqualHeads(std::string_view key, const Shape& now, size_t first,
                                   uint64_t head) const {
  size_t end = first + 1;
  while (end < now.count && heads[end].load(std::memory_order_relaxed) == head) ++end;
  if (end - first > 2) PrefetchKeys(first, end, now.prefix_size);
  const std::string_view rest = key.substr(std::min<size_t>(now.prefix_size, key.size()));
  while (first < end) {
    const size_t middle = first + (end - first) / 2;
    const std::string_view other = LoadRecord(middle)->key();
    const int order = other.substr(std::min<size_t>(now.prefix_size, other.size())).compare(rest);
    if (order == 0) return {middle, true};
    if (order < 0) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return {first, false};
}

void Node::Lock() {
  const uint64_t now = sequence.load(std::memory_order_relaxed);
  PARTITA_ASSERT(now % 2 == 0);
  sequence.store(now + 1, std::memory_order_relaxed);
  // No change to the node may be seen before the odd sequence.
  std::atomic_thread_fence(std::memory_order_release);
}

void Node::Unlock() {
  const uint64_t now = sequence.load(std::memory_order_relaxed);
  PARTITA_ASSERT(now % 2 == 1);
  sequence.store(now + 1, std::memory_order_release);
}

void Node::InsertSlot(size_t slot, const Record* record) {
  const std::string_view key = record->key();
  AdmitKey(key);
  Shape now = LoadShape();
  PARTITA_ASSERT(now.count < kNodeSlots);
  PARTITA_ASSERT(slot <= now.count);
  for (size_t i = now.count; i > slot; --i) {
    StoreSlot(i, heads[i - 1].load(std::memory_order_relaxed),
              records[i - 1].load(std::memory_order_relaxed));
  }
  StoreSlot(slot, HeadOf(key, now.prefix_size), record);
  ++now.count;
  StoreShape(now);
}

void Node::AdmitKey(std::string_view key) {
  Shape now = LoadShape();
  if (now.implied) return;
  if (now.count == 0) {
    now.prefix_size = static_cast<uint32_t>(key.size());
    StoreShape(now);
    return;
  }
  const size_t shared = CommonPrefix(key, LoadRecord(0)->key());
  if (shared >= now.prefix_size) return;
  now.prefix_size = static_cast<uint32_t>(shared);
  TakeHeads(now);
}

void Node::PrefetchKeys(size_t first, size_t end, size_t prefix_size) const {
  // Two rounds, the records and then the keys they name: the misses of a round overlap, where a
  // binary search would take them one after the other.
  for (size_t i = first; i < end; ++i) __builtin_prefetch(records[i].load(std::memory_order_relaxed));
  for (size_t i = first; i < end; ++i) {
    const char* key = LoadRecord(i)->key_data;
    __builtin_prefetch(key + prefix_size);
  }
}

void Node::TakeHeads(const Shape& next) {
  PrefetchKeys(0, next.count, next.prefix_size);
  for (size_t i = 0; i < next.count; ++i) {
    const Record* record = records[i].load(std::memory_order_relaxed);
    heads[i].store(HeadOf(record->key(), next.prefix_size), std::memory_order_relaxed);
  }
  StoreShape(next);
}

void Node::Assign(std::span<const Record* const> new_records, std::span<const uint64_t> new_heads,
                  size_t heads_taken_after, const Record* new_low, const Record* new_high) {
  PARTITA_ASSERT(!new_records.empty());
  PARTITA_ASSERT(new_records.size() <= kNodeSlots);
  low = new_low;
  high = new_high;
  Shape next;
  next.count = static_cast<uint32_t>(new_records.size());
  next.implied = low != nullptr && high != nullptr;
  const size_t shared = next.implied ? CommonPrefix(low->key(), high->key())
                                     : CommonPrefix(new_records.front()->key(), new_records.back()->key());
  for (size_t i = 0; i < new_records.size(); ++i) StoreSlot(i, new_heads[i], new_records[i]);
  if (heads_taken_after <= shared && shared <= heads_taken_after + kPrefixSlack) {
    next.prefix_size = static_cast<uint32_t>(heads_taken_after);
    StoreShape(next);
  } else {
    next.prefix_size = static_cast<uint32_t>(shared);
    TakeHeads(next);
  }
}

uint8_t TagOf(std::string_view key) { return static_cast<uint8_t>(Hash64(key)); }

const Record* Leaf::FindExact(std::string_view key, uint8_t tag) const {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kLow7 = 0x7F7F7F7F7F7F7F7F;
  const Shape now = LoadShape();
  // What the fences imply needs no compare, and often lies on another cache line.
  const size_t skip = now.implied ? std::min<size_t>(now.prefix_size, key.size()) : 0;
  for (size_t word = 0; word * 8 < now.count; ++word) {
    const uint64_t differing = tags[word].load(std::memory_order_relaxed) ^ (kOnes * tag);
    // 0x80 in each byte that is zero, that is, where tags are equal.
    uint64_t equal = ~(((differing & kLow7) + kLow7) | differing | kLow7);
    for (; equal != 0; equal &= equal - 1) {
      const size_t slot = word * 8 + static_cast<size_t>(std::countr_zero(equal)) / 8;
      if (slot >= now.count) break;
      const Record* record = LoadRecord(slot);
      if (record->key_size() != key.size()) continue;
      if (std::memcmp(record->key_data + skip, key.data() + skip, key.size() - skip) == 0) return record;
    }
  }
  return nullptr;
}

void Leaf::InsertKey(size_t slot, const Record* record) {
  const size_t before = count();
  Tags bytes = LoadTags();
  std::copy_backward(bytes.begin() + slot, bytes.begin() + before, bytes.begin() + before + 1);
  bytes[slot] = TagOf(record->key());
  StoreTags(bytes);
  InsertSlot(slot, record);
}

Leaf::Tags Leaf::LoadTags() const {
  Tags bytes;
  for (size_t word = 0; word < tags.size(); ++word) {
    StoreLe64(bytes.data() + word * 8, tags[word].load(std::memory_order_relaxed));
  }
  return bytes;
}

void Leaf::StoreTags(std::span<const uint8_t> bytes) {
  Tags all{};
  std::copy(bytes.begin(), bytes.end(), all.begin());
  for (size_t word = 0; word < tags.size(); ++word) {
    tags[word].store(LoadLe64(all.data() + word * 8), std::memory_order_relaxed);
  }
}

}  // namespace partita::memtable_internal

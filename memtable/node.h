#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/coding.h"
#include "engine/base/entry.h"
#include "engine/base/key_head.h"
#include "engine/base/user_key.h"

// The nodes of a memtable's B+tree. Internal to memtable/.
//
//   Inner    separators s0 < s1 < ... and one child more; child i holds the keys in [s(i-1), s(i))
//   Leaf     one slot a key, ascending; leaves are linked both ways
//   Record   one version of one key, immutable but for a mark of its readers; the newest leads a chain
//            towards the older ones
//
// A slot is a *head* and a record. All keys of a node share a prefix; the head is the 8 bytes after
// it, as a number that orders like the bytes (padded with zeros). A search compares heads, and
// reads keys only where heads are equal. Between its two fences a node's keys must share what the
// fences share, so there the prefix needs no compare (it is *implied*); nodes at the edges of the
// tree lack a fence, their prefix is what their keys share, and the searched key is compared with it.
// A leaf also keeps a hash byte of each key, the *tag*, for point reads.
//
// Readers take no lock:
//   1. A node's sequence is odd while the writer changes it. A reader notes an even sequence, reads,
//      and uses what it read only if the sequence is still the same; else it begins again.
//   2. Going down, the parent is checked once more after the child's sequence was noted: from then
//      on a split of the child, which changes the parent too, does not go unseen.
//   3. A new root is published before the old one's sequence is even again, so a reader that noted
//      the sequence of a root compares the pointer once more.
//   4. What a reader reads between the two looks at the sequence may belong to two states: counts,
//      prefix and record may not fit together. It must then be harmless: memory is never reused, a
//      record below the count that was read exists, and every length is bounded by the record's own.
//   5. A newer version of a key replaces the record in its slot by one release store, without
//      touching the sequence: both states are right.
//
// A split moves the upper slots to a *new* right neighbour: a leaf keeps its low fence for ever, its
// high fence only falls. So a forward scan copies slots and `next` of a leaf under one sequence and
// goes on there: it has what was in between. A backward scan goes to `prev` only if that leaf's
// `next` is the one it comes from; otherwise `prev` was split meanwhile, and its own `prev` field
// is about to name the new neighbour.
//
// The single writer locks all nodes that an insert changes before it changes the first one.
namespace partita::memtable_internal {

inline constexpr size_t kNodeSlots = 64;
inline constexpr size_t kHeightMax = 16;  // 32^16 leaves; never reached.
inline constexpr size_t kCacheLine = 64;
inline constexpr size_t kKeySizeMax = (size_t{1} << 24) - 1;  // What a record has bits for.
static_assert(kUserKeySizeMax <= kKeySizeMax);

struct Record {
  Record(const Entry& entry, bool read, const Record* older_version)
      : key_data(entry.user_key.data()),
        packed(static_cast<uint32_t>(entry.user_key.size()) | static_cast<uint32_t>(entry.kind) << 24 |
               (read ? kRead : 0)),
        value_size(static_cast<uint32_t>(entry.value.size())),
        older(older_version),
        version(entry.version),
        value_data(entry.value.data()) {}

  static constexpr uint32_t kRead = uint32_t{1} << 31;

  // What a search reads comes first, so that it seldom lies on two cache lines.
  const char* key_data;
  mutable std::atomic<uint32_t> packed;  // 24 bits of the key's size, 7 of the kind, kRead.
  uint32_t value_size;
  const Record* older;
  Version version;
  const char* value_data;

  size_t key_size() const { return packed.load(std::memory_order_relaxed) & kKeySizeMax; }
  std::string_view key() const { return {key_data, key_size()}; }
  std::string_view value() const { return {value_data, value_size}; }
  EntryKind kind() const {
    return static_cast<EntryKind>(packed.load(std::memory_order_relaxed) >> 24 & 0x7F);
  }
  // Anyone's, relaxed: nothing else is read on its word.
  bool was_read() const { return (packed.load(std::memory_order_relaxed) & kRead) != 0; }
  void NoteRead() const {
    if (!was_read()) packed.fetch_or(kRead, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Record) == 40);

// What the readers must know about a node beside its slots, in one word.
struct Shape {
  uint32_t count = 0;
  uint32_t prefix_size = 0;
  bool implied = false;  // Every key that is searched here begins with the prefix.

  static Shape Unpack(uint64_t word) {
    return {static_cast<uint32_t>(word & 0xFFFF), static_cast<uint32_t>(word >> 32), (word & 0x10000) != 0};
  }
  uint64_t Pack() const {
    return count | (implied ? uint64_t{0x10000} : 0) | static_cast<uint64_t>(prefix_size) << 32;
  }
};

struct Position {
  size_t slot = 0;     // Of the first key >= the searched one; count when there is none.
  bool equal = false;  // It is the searched one.
};

struct alignas(kCacheLine) Node {
  explicit Node(uint32_t node_level) : level(node_level) {}

  // Reader's side.
  uint64_t BeginRead() const;
  bool StillValid(uint64_t sequence_read) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return sequence.load(std::memory_order_relaxed) == sequence_read;
  }
  Shape LoadShape() const { return Shape::Unpack(shape.load(std::memory_order_acquire)); }
  const Record* LoadRecord(size_t slot) const { return records[slot].load(std::memory_order_acquire); }
  Position Find(std::string_view key) const;
  // Asks for what Find reads of a node at once, so that the steps of its binary search do not miss
  // one after the other.
  void PrefetchForFind() const {
    const char* start = reinterpret_cast<const char*>(this);
    for (size_t line = 0; line < 1 + kNodeSlots * 8 / kCacheLine; ++line) {
      __builtin_prefetch(start + line * kCacheLine);
    }
  }

  // Writer's side. Between Lock and Unlock readers wait; every change happens there, except to
  // nodes that nobody can reach yet.
  void Lock();
  void Unlock();
  size_t count() const { return LoadShape().count; }
  // Opens `slot` for `record`. REQUIRES: locked, count() < kNodeSlots.
  void InsertSlot(size_t slot, const Record* record);
  // Replaces fences and all slots. `heads_taken_after` is the prefix size that `heads` belong to.
  void Assign(std::span<const Record* const> new_records, std::span<const uint64_t> new_heads,
              size_t heads_taken_after, const Record* new_low, const Record* new_high);
  // Shortens the prefix of an edge node to what `key` shares with it.
  void AdmitKey(std::string_view key);

  std::atomic<uint64_t> sequence{0};
  std::atomic<uint64_t> shape{0};
  const uint32_t level;  // 0: a leaf.
  // Writer only: low <= keys < high; null: no bound.
  const Record* low = nullptr;
  const Record* high = nullptr;
  std::array<std::atomic<uint64_t>, kNodeSlots> heads;
  // Leaf: the newest record of each key. Inner: separators.
  std::array<std::atomic<const Record*>, kNodeSlots> records;

 private:
  void StoreShape(const Shape& next) { shape.store(next.Pack(), std::memory_order_release); }
  void StoreSlot(size_t slot, uint64_t head, const Record* record) {
    heads[slot].store(head, std::memory_order_relaxed);
    records[slot].store(record, std::memory_order_release);
  }
  void PrefetchKeys(size_t first, size_t end, size_t prefix_size) const;
  // Takes all heads anew, after another prefix.
  void TakeHeads(const Shape& next);
  Position FindAmongEqualHeads(std::string_view key, const Shape& now, size_t first, uint64_t head) const;
};

// What a way down to a leaf is for: FindExact or Find. Decides what is prefetched.
enum class LeafUse : uint8_t { kExact, kOrdered };

// A byte of the key's hash.
uint8_t TagOf(std::string_view key);

struct Leaf : Node {
  using Tags = std::array<uint8_t, kNodeSlots>;

  Leaf() : Node(0) {}

  // Reader's side: the newest record of exactly this key, or nullptr. `tag` is TagOf(key). Where many
  // heads are equal (rows of one partition) this reads one key, while an ordered search reads several.
  const Record* FindExact(std::string_view key, uint8_t tag) const;

  void PrefetchForFindExact() const {
    __builtin_prefetch(this);
    __builtin_prefetch(&tags);
  }

  // Writer's side, as InsertSlot.
  void InsertKey(size_t slot, const Record* record);
  Tags LoadTags() const;
  // Sets the tags of the slots from 0 on.
  void StoreTags(std::span<const uint8_t> bytes);

  std::atomic<Leaf*> next{nullptr};
  std::atomic<Leaf*> prev{nullptr};
  // Byte i of these words is the tag of slot i.
  std::array<std::atomic<uint64_t>, kNodeSlots / 8> tags;
};

struct Inner : Node {
  explicit Inner(uint32_t node_level) : Node(node_level) {}
  // Which child holds the key. REQUIRES: nothing; the answer is at most the count that was read.
  size_t ChildSlot(std::string_view key) const {
    Position position = Find(key);
    return position.slot + (position.equal ? 1 : 0);
  }
  Node* LoadChild(size_t slot) const { return children[slot].load(std::memory_order_acquire); }
  std::array<std::atomic<Node*>, kNodeSlots + 1> children;
};

}  // namespace partita::memtable_internal

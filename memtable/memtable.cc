#include "memtable/memtable.h"

#include <algorithm>
#include <array>
#include <new>

#include "engine/base/assert.h"
#include "memtable/memtable_iterator.h"

namespace partita {

using memtable_internal::kCacheLine;
using memtable_internal::kHeightMax;
using memtable_internal::kNodeSlots;
using memtable_internal::LeafUse;
using memtable_internal::Position;
using memtable_internal::TagOf;

namespace {

// Enough a block that the arena's header line is seldom touched, little enough that an almost
// empty memtable stays small (some 34 KiB).
constexpr size_t kLeavesABlock = 16;
constexpr size_t kInnersABlock = 4;
constexpr size_t kRecordsABlock = 256;

// No half that a split leaves behind has less room than this, see SplitPoint; so after its first
// split a node takes at least so many inserts to be split again.
constexpr size_t kRoomAfterSplit = 16;

// How many of the kNodeSlots + 1 slots stay in the left leaf.
size_t SplitPoint(bool at_end, bool rightmost) {
  if (at_end && rightmost) return kNodeSlots;       // Rising keys leave full leaves behind.
  if (at_end) return kNodeSlots - kRoomAfterSplit;  // Probably rising keys within a partition.
  return kNodeSlots / 2;
}

// Slots of a full node with one more put among them.
struct Overfull {
  std::array<const memtable_internal::Record*, kNodeSlots + 1> records;
  std::array<uint64_t, kNodeSlots + 1> heads;

  Overfull(const memtable_internal::Node& node, size_t slot, const memtable_internal::Record* record) {
    for (size_t i = 0; i < kNodeSlots; ++i) {
      const size_t to = i < slot ? i : i + 1;
      records[to] = node.records[i].load(std::memory_order_relaxed);
      heads[to] = node.heads[i].load(std::memory_order_relaxed);
    }
    records[slot] = record;
    heads[slot] = HeadOf(record->key(), node.LoadShape().prefix_size);
  }
  std::span<const memtable_internal::Record* const> RecordsIn(size_t from, size_t to) const {
    return {records.data() + from, to - from};
  }
  std::span<const uint64_t> HeadsIn(size_t from, size_t to) const { return {heads.data() + from, to - from}; }
};

}  // namespace

// The writer's way from the root to a leaf: nodes, and the child taken in each.
struct Memtable::Path {
  std::array<Inner*, kHeightMax> inners;
  std::array<size_t, kHeightMax> slots;
  size_t depth = 0;
};

Memtable::Memtable(ChunkPool& pool)
    : arena_(pool),
      leaf_stash_(arena_, sizeof(Leaf), kCacheLine, kLeavesABlock),
      inner_stash_(arena_, sizeof(Inner), kCacheLine, kInnersABlock),
      record_stash_(arena_, sizeof(Record), alignof(Record), kRecordsABlock) {}

Memtable::~Memtable() = default;

namespace {

struct TreeSize {
  size_t leaves = 0;
  size_t inners = 0;
  size_t height = 0;
};

// What a tree may need beside what it has. Worst case: every leaf there is splits once, and what splits leave
// behind splits again as soon as it is full; each split of a leaf gives a separator to the level above, and
// so on.
TreeSize GrowthMax(const TreeSize& now, size_t entries) {
  TreeSize more;
  more.leaves = std::min(entries, now.leaves) + entries / kRoomAfterSplit + 2;
  more.inners = std::min(more.leaves, now.inners) + more.leaves / kRoomAfterSplit + now.height + 2;
  return more;
}

}  // namespace

bool Memtable::Reserve(size_t entries) {
  const TreeSize more = GrowthMax({leaf_count_, inner_count_, height_}, entries);
  return record_stash_.Reserve(entries) && leaf_stash_.Reserve(more.leaves) &&
         inner_stash_.Reserve(more.inners);
}

size_t Memtable::ReserveBytes(size_t entries) {
  const TreeSize more = GrowthMax(TreeSize(), entries);
  return entries * sizeof(Record) + more.leaves * sizeof(Leaf) + more.inners * sizeof(Inner);
}

void Memtable::Insert(const Entry& entry, bool was_read) {
  const bool inserted = TryInsert(entry, was_read);
  PARTITA_ASSERT(inserted);
}

bool Memtable::TryInsert(const Entry& entry, bool was_read) {
  PARTITA_ASSERT(entry.user_key.size() <= kUserKeySizeMax);
  PARTITA_ASSERT(entry.value.size() <= UINT32_MAX);
  Leaf* leaf = FindLeafForInsert(entry.user_key);
  const Position position = leaf->Find(entry.user_key);
  if (position.equal) {
    const Record* older = leaf->LoadRecord(position.slot);
    if (entry.version <= older->version) return false;
    leaf->records[position.slot].store(new (record_stash_.Take())
                                           Record(entry, was_read || older->was_read(), older),
                                       std::memory_order_release);
  } else if (const Record* record = new (record_stash_.Take()) Record(entry, was_read, nullptr);
             leaf->count() < kNodeSlots) {
    leaf->Lock();
    leaf->InsertKey(position.slot, record);
    leaf->Unlock();
    last_leaf_ = leaf;
  } else {
    SplitAndInsert(record);
  }
  Count(entry);
  return true;
}

void Memtable::Count(const Entry& entry) {
  // One writer: a plain addition suffices, and costs no locked instruction.
  auto add = [](std::atomic<uint64_t>& counter, uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  };
  add(entry_count_, 1);
  add(key_bytes_, entry.user_key.size());
  add(value_bytes_, entry.value.size());
  if (entry.version > version_max()) version_max_.store(entry.version.value, std::memory_order_relaxed);
}

memtable_internal::Leaf* Memtable::FindLeafForInsert(std::string_view user_key) {
  if (last_leaf_ == nullptr) {
    last_leaf_ = new (leaf_stash_.Take()) Leaf();
    leaf_count_ = 1;
    leftmost_.store(last_leaf_, std::memory_order_release);
    root_.store(last_leaf_, std::memory_order_release);
    return last_leaf_;
  }
  // Sorted batches and appends stay in one leaf for long: its fences tell, without a way down.
  const Leaf* last = last_leaf_;
  const bool above_low = last->low == nullptr || last->low->key() <= user_key;
  if (above_low && (last->high == nullptr || user_key < last->high->key())) return last_leaf_;
  Path path;
  return DescendForSplit(user_key, &path);
}

memtable_internal::Leaf* Memtable::DescendForSplit(std::string_view user_key, Path* path) const {
  Node* node = root_.load(std::memory_order_relaxed);
  while (node->level > 0) {
    auto* inner = static_cast<Inner*>(node);
    const size_t slot = inner->ChildSlot(user_key);
    path->inners[path->depth] = inner;
    path->slots[path->depth] = slot;
    ++path->depth;
    node = inner->LoadChild(slot);
    node->PrefetchForFind();
  }
  return static_cast<Leaf*>(node);
}

void Memtable::SplitAndInsert(const Record* record) {
  Path path;
  Leaf* left = DescendForSplit(record->key(), &path);
  // Every node that changes is locked before the first one changes: the full inner nodes above the
  // leaf, and the first one with room.
  size_t top = path.depth;
  while (top > 0 && path.inners[top - 1]->count() == kNodeSlots) --top;
  if (top > 0) --top;
  for (size_t i = top; i < path.depth; ++i) path.inners[i]->Lock();
  left->Lock();

  Leaf* right = SplitLeaf(left, record);
  last_leaf_ = record->key() < right->low->key() ? left : right;
  InsertSeparators(path, left, right);

  left->Unlock();
  for (size_t i = path.depth; i > top; --i) path.inners[i - 1]->Unlock();
}

memtable_internal::Leaf* Memtable::SplitLeaf(Leaf* left, const Record* record) {
  left->AdmitKey(record->key());
  const size_t slot = left->Find(record->key()).slot;
  const size_t keep = SplitPoint(slot == kNodeSlots, left->high == nullptr);
  const Overfull all(*left, slot, record);
  const size_t prefix_size = left->LoadShape().prefix_size;
  const Record* separator = all.records[keep];
  std::array<uint8_t, kNodeSlots + 1> tags;
  const Leaf::Tags old_tags = left->LoadTags();
  std::copy(old_tags.begin(), old_tags.begin() + slot, tags.begin());
  tags[slot] = TagOf(record->key());
  std::copy(old_tags.begin() + slot, old_tags.end(), tags.begin() + slot + 1);

  Leaf* right = new (leaf_stash_.Take()) Leaf();
  ++leaf_count_;
  right->Assign(all.RecordsIn(keep, kNodeSlots + 1), all.HeadsIn(keep, kNodeSlots + 1), prefix_size,
                separator, left->high);
  right->StoreTags(std::span(tags).subspan(keep));
  Leaf* after = left->next.load(std::memory_order_relaxed);
  right->next.store(after, std::memory_order_relaxed);
  right->prev.store(left, std::memory_order_relaxed);

  left->Assign(all.RecordsIn(0, keep), all.HeadsIn(0, keep), prefix_size, left->low, separator);
  left->StoreTags(std::span(tags).first(keep));
  left->next.store(right, std::memory_order_release);
  // Outside the lock of `after`: a backward scan that meets the old value sees that it is stale.
  if (after != nullptr) after->prev.store(right, std::memory_order_release);
  return right;
}

// Gives the split of `left` into `left` and `right` to the levels above. right->low is the separator.
void Memtable::InsertSeparators(const Path& path, Node* left, Node* right) {
  const Record* separator = right->low;
  for (size_t depth = path.depth; depth > 0; --depth) {
    Inner* parent = path.inners[depth - 1];
    const size_t slot = path.slots[depth - 1];
    if (parent->count() < kNodeSlots) {
      for (size_t i = parent->count() + 1; i > slot + 1; --i) {
        parent->children[i].store(parent->LoadChild(i - 1), std::memory_order_release);
      }
      parent->children[slot + 1].store(right, std::memory_order_release);
      parent->InsertSlot(slot, separator);
      return;
    }
    right = SplitInner(parent, slot, separator, right);
    separator = right->low;
    left = parent;
  }
  PARTITA_ASSERT(height_ < kHeightMax);
  Inner* root = new (inner_stash_.Take()) Inner(left->level + 1);
  ++inner_count_;
  ++height_;
  root->children[0].store(left, std::memory_order_relaxed);
  root->children[1].store(right, std::memory_order_relaxed);
  root->InsertSlot(0, separator);
  // Before the old root is unlocked: node.h, rule 3.
  root_.store(root, std::memory_order_release);
}

memtable_internal::Inner* Memtable::SplitInner(Inner* left, size_t slot, const Record* separator,
                                               Node* child) {
  left->AdmitKey(separator->key());
  const Overfull all(*left, slot, separator);
  const size_t prefix_size = left->LoadShape().prefix_size;
  std::array<Node*, kNodeSlots + 2> children;
  for (size_t i = 0; i <= kNodeSlots; ++i) children[i <= slot ? i : i + 1] = left->LoadChild(i);
  children[slot + 1] = child;

  // The separator in the middle goes up. Rising keys leave an almost full node behind.
  const bool appending = slot == kNodeSlots && left->high == nullptr;
  const size_t keep = appending ? kNodeSlots - 1 : kNodeSlots / 2;
  const Record* up = all.records[keep];
  Inner* right = new (inner_stash_.Take()) Inner(left->level);
  ++inner_count_;
  for (size_t i = keep + 1; i < children.size(); ++i) {
    right->children[i - keep - 1].store(children[i], std::memory_order_relaxed);
  }
  right->Assign(all.RecordsIn(keep + 1, kNodeSlots + 1), all.HeadsIn(keep + 1, kNodeSlots + 1), prefix_size,
                up, left->high);
  for (size_t i = 0; i <= keep; ++i) left->children[i].store(children[i], std::memory_order_release);
  left->Assign(all.RecordsIn(0, keep), all.HeadsIn(0, keep), prefix_size, left->low, up);
  return right;
}

namespace {

// One way down, node.h rules 1 to 3. False when the writer came between: begin again.
template <typename ChooseChild>
bool DescendOnce(const std::atomic<memtable_internal::Node*>& root_pointer, const ChooseChild& choose,
                 LeafUse use, const memtable_internal::Leaf** leaf, uint64_t* sequence) {
  const memtable_internal::Node* node = root_pointer.load(std::memory_order_acquire);
  *leaf = nullptr;
  if (node == nullptr) return true;
  uint64_t node_sequence = node->BeginRead();
  if (root_pointer.load(std::memory_order_acquire) != node) return false;
  while (node->level > 0) {
    const auto* inner = static_cast<const memtable_internal::Inner*>(node);
    const memtable_internal::Node* child = inner->LoadChild(choose(*inner));
    // Before the child is touched: a torn slot may name a child slot that was never filled.
    if (!inner->StillValid(node_sequence)) return false;
    if (inner->level == 1 && use == LeafUse::kExact) {
      static_cast<const memtable_internal::Leaf*>(child)->PrefetchForFindExact();
    } else {
      child->PrefetchForFind();
    }
    const uint64_t child_sequence = child->BeginRead();
    if (!inner->StillValid(node_sequence)) return false;
    node = child;
    node_sequence = child_sequence;
  }
  *leaf = static_cast<const memtable_internal::Leaf*>(node);
  *sequence = node_sequence;
  return true;
}

}  // namespace

const memtable_internal::Leaf* Memtable::FindLeaf(std::string_view user_key, LeafUse use,
                                                  uint64_t* sequence) const {
  const Leaf* leaf = nullptr;
  auto choose = [user_key](const Inner& inner) { return inner.ChildSlot(user_key); };
  while (!DescendOnce(root_, choose, use, &leaf, sequence)) {
  }
  return leaf;
}

const memtable_internal::Leaf* Memtable::FindLastLeaf(uint64_t* sequence) const {
  const Leaf* leaf = nullptr;
  auto choose = [](const Inner& inner) { return inner.count(); };
  while (!DescendOnce(root_, choose, LeafUse::kOrdered, &leaf, sequence)) {
  }
  return leaf;
}

Lookup Memtable::Get(std::string_view user_key, Version at_most) const {
  const uint8_t tag = TagOf(user_key);
  const Record* record = nullptr;
  while (true) {
    uint64_t sequence = 0;
    const Leaf* leaf = FindLeaf(user_key, LeafUse::kExact, &sequence);
    if (leaf == nullptr) return {};
    record = leaf->FindExact(user_key, tag);
    if (leaf->StillValid(sequence)) break;
  }
  while (record != nullptr && record->version > at_most) record = record->older;
  if (record == nullptr) return {};
  record->NoteRead();
  const bool deleted = record->kind() == EntryKind::kTombstone;
  return {deleted ? LookupState::kDeleted : LookupState::kFound, record->version, record->value()};
}

bool Memtable::HoldsAnyOf(std::string_view first, std::string_view last) const {
  MemtableIterator at(*this, Direction::kForward, kVersionMax);
  return at.Seek(first) == IterState::kEntry && at.entry().user_key <= last;
}

std::unique_ptr<EntryIterator> Memtable::NewIterator(Direction direction, Version at_most,
                                                     Version newest_of) const {
  return std::make_unique<MemtableIterator>(*this, direction, at_most, newest_of);
}

}  // namespace partita

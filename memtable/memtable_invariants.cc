#include "engine/base/assert.h"
#include "memtable/memtable.h"

namespace partita {

using memtable_internal::kNodeSlots;

namespace {

void CheckNode(const memtable_internal::Node& node) {
  const memtable_internal::Shape shape = node.LoadShape();
  PARTITA_ASSERT(node.sequence.load() % 2 == 0);
  PARTITA_ASSERT(shape.count > 0);
  PARTITA_ASSERT(shape.count <= kNodeSlots);
  PARTITA_ASSERT(shape.implied == (node.low != nullptr && node.high != nullptr));
  if (shape.implied) PARTITA_ASSERT(CommonPrefix(node.low->key(), node.high->key()) >= shape.prefix_size);
  const std::string_view prefix = node.LoadRecord(0)->key().substr(0, shape.prefix_size);
  PARTITA_ASSERT(prefix.size() == shape.prefix_size);
  for (size_t i = 0; i < shape.count; ++i) {
    const std::string_view key = node.LoadRecord(i)->key();
    PARTITA_ASSERT(node.low == nullptr || node.low->key() <= key);
    PARTITA_ASSERT(node.high == nullptr || key < node.high->key());
    PARTITA_ASSERT(i == 0 || node.LoadRecord(i - 1)->key() < key);
    PARTITA_ASSERT(key.starts_with(prefix));
    PARTITA_ASSERT(node.heads[i].load() == HeadOf(key, shape.prefix_size));
  }
}

uint64_t CountVersions(const memtable_internal::Leaf& leaf) {
  uint64_t entries = 0;
  const memtable_internal::Leaf::Tags tags = leaf.LoadTags();
  for (size_t i = 0; i < leaf.count(); ++i) {
    PARTITA_ASSERT(tags[i] == memtable_internal::TagOf(leaf.LoadRecord(i)->key()));
    for (const auto* record = leaf.LoadRecord(i); record != nullptr; record = record->older) {
      PARTITA_ASSERT(record->older == nullptr || record->older->version < record->version);
      PARTITA_ASSERT(record->key() == leaf.LoadRecord(i)->key());
      ++entries;
    }
  }
  return entries;
}

// Checks the subtree; `last` is the leaf before it, and becomes its last one.
uint64_t CheckSubtree(const memtable_internal::Node& node, const memtable_internal::Leaf** last) {
  CheckNode(node);
  if (node.level == 0) {
    const auto& leaf = static_cast<const memtable_internal::Leaf&>(node);
    PARTITA_ASSERT(leaf.prev.load() == *last);
    PARTITA_ASSERT(*last == nullptr || (*last)->next.load() == &leaf);
    *last = &leaf;
    return CountVersions(leaf);
  }
  const auto& inner = static_cast<const memtable_internal::Inner&>(node);
  uint64_t entries = 0;
  for (size_t i = 0; i <= inner.count(); ++i) {
    const memtable_internal::Node& child = *inner.LoadChild(i);
    PARTITA_ASSERT(child.level + 1 == inner.level);
    PARTITA_ASSERT(child.low == (i == 0 ? inner.low : inner.LoadRecord(i - 1)));
    PARTITA_ASSERT(child.high == (i == inner.count() ? inner.high : inner.LoadRecord(i)));
    entries += CheckSubtree(child, last);
  }
  return entries;
}

}  // namespace

void Memtable::CheckInvariants() const {
  const Node* root = root_.load(std::memory_order_acquire);
  PARTITA_ASSERT((root == nullptr) == empty());
  if (root == nullptr) return;
  PARTITA_ASSERT(root->low == nullptr);
  PARTITA_ASSERT(root->high == nullptr);
  PARTITA_ASSERT(root->level == height_);
  const Leaf* last = nullptr;
  PARTITA_ASSERT(CheckSubtree(*root, &last) == entry_count());
  PARTITA_ASSERT(last->next.load() == nullptr);
}

}  // namespace partita

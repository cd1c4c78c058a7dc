#include "memtable/memtable_iterator.h"

#include <algorithm>
#include <thread>

#include "engine/base/assert.h"

namespace partita {

namespace {

// Records lie in the order they were inserted, so each step of a scan may miss the caches: records
// are asked for this many steps ahead, their keys and values half as many, when the record is there.
constexpr size_t kPrefetchSteps = 8;

}  // namespace

IterState MemtableIterator::SeekToFirst() {
  const bool forward = direction_ == Direction::kForward;
  while (true) {
    uint64_t sequence = 0;
    const Leaf* leaf = nullptr;
    if (forward) {
      // The leftmost leaf stays leftmost: splits make right neighbours only.
      leaf = memtable_.leftmost_.load(std::memory_order_acquire);
      if (leaf != nullptr) sequence = leaf->BeginRead();
    } else {
      leaf = memtable_.FindLastLeaf(&sequence);
    }
    if (leaf == nullptr) return state_ = IterState::kEnd;
    if (CopyLeaf(leaf, sequence)) break;
  }
  step_ = 0;
  return Settle();
}

IterState MemtableIterator::Seek(std::string_view user_key) {
  size_t slot = 0;
  while (true) {
    uint64_t sequence = 0;
    const Leaf* leaf = memtable_.FindLeaf(user_key, memtable_internal::LeafUse::kOrdered, &sequence);
    if (leaf == nullptr) return state_ = IterState::kEnd;
    slot = leaf->Find(user_key).slot;
    if (CopyLeaf(leaf, sequence)) break;
  }
  // `slot` is the first key not below: forward it is the target, backward all before it are, from
  // the end of the copy on.
  step_ = direction_ == Direction::kForward ? slot : count_ - slot;
  return Settle();
}

IterState MemtableIterator::Next() {
  PARTITA_ASSERT(state_ == IterState::kEntry);
  if (record_->older != nullptr && record_->version > newest_of_) return StandOn(record_->older);
  ++step_;
  return Settle();
}

Task<Status> MemtableIterator::Fetch() {
  PARTITA_ASSERT(state_ == IterState::kNeedsIo);  // Never so: everything lies in memory.
  co_return Status();
}

const Entry& MemtableIterator::entry() const {
  PARTITA_ASSERT(state_ == IterState::kEntry);
  return entry_;
}

IterState MemtableIterator::Settle() {
  while (true) {
    for (; step_ < count_; ++step_) {
      Prefetch();
      const Record* record = At(step_);
      while (record != nullptr && record->version > at_most_) record = record->older;
      if (record != nullptr) return StandOn(record);
    }
    const bool more = direction_ == Direction::kForward ? GoToNextLeaf() : GoToPrevLeaf();
    if (!more) return state_ = IterState::kEnd;
    step_ = 0;
  }
}

IterState MemtableIterator::StandOn(const Record* record) {
  record_ = record;
  entry_ = {record->key(), record->version, record->kind(), record->value()};
  return state_ = IterState::kEntry;
}

bool MemtableIterator::was_read() const {
  PARTITA_ASSERT(state_ == IterState::kEntry);
  return record_->was_read();
}

void MemtableIterator::Prefetch() {
  if (step_ + kPrefetchSteps < count_) __builtin_prefetch(At(step_ + kPrefetchSteps));
  if (step_ + kPrefetchSteps / 2 < count_) {
    const Record* soon = At(step_ + kPrefetchSteps / 2);
    __builtin_prefetch(soon->key_data);
    __builtin_prefetch(soon->value_data);
  }
}

bool MemtableIterator::CopyLeaf(const Leaf* leaf, uint64_t sequence) {
  const size_t count = leaf->count();
  for (size_t i = 0; i < count; ++i) records_[i] = leaf->LoadRecord(i);
  const Leaf* next = leaf->next.load(std::memory_order_acquire);
  if (!leaf->StillValid(sequence)) return false;
  leaf_ = leaf;
  next_ = next;
  count_ = count;
  for (size_t step = 0; step < std::min(count, kPrefetchSteps); ++step) __builtin_prefetch(At(step));
  return true;
}

bool MemtableIterator::GoToNextLeaf() {
  // A leaf that split since it was copied has new neighbours, whose keys are in the copy already.
  const Leaf* next = next_;
  if (next == nullptr) return false;
  while (!CopyLeaf(next, next->BeginRead())) {
  }
  return true;
}

bool MemtableIterator::GoToPrevLeaf() {
  const Leaf* const from = leaf_;
  while (true) {
    const Leaf* prev = from->prev.load(std::memory_order_acquire);
    if (prev == nullptr) return false;
    if (!CopyLeaf(prev, prev->BeginRead())) continue;
    if (next_ == from) return true;
    // `prev` was split since `from` named it; the writer is about to name the leaf in between.
    std::this_thread::yield();
  }
}

}  // namespace partita

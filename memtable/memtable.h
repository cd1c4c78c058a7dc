#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/base/chunk_pool.h"
#include "engine/base/entry.h"
#include "engine/base/entry_iterator.h"
#include "engine/base/lookup.h"
#include "memtable/arena.h"
#include "memtable/node.h"
#include "memtable/node_stash.h"

namespace partita {

// The ordered in-memory table of one shard: every version of every key that was written since the
// memtable began.
//
// One writer at a time (the holder of the shard's strand), any number of readers beside it without
// a lock. A B+tree: node.h draws its nodes and says what makes optimistic reads right. Nodes,
// records, keys and values are freed only when the memtable dies, so whoever keeps the memtable
// alive (a read view) may keep every view that it was given. Chains of versions are never cut.
//
// Lifecycle: construct, { Reserve, Insert* }*, and from some moment on only reads. Construction
// takes no memory from the pool; the first Reserve does.
// What fails: only Reserve and arena().Allocate(), when the pool is exhausted (F58).
class Memtable {
 public:
  // `pool` must outlive the memtable.
  explicit Memtable(ChunkPool& pool);
  ~Memtable();
  Memtable(const Memtable&) = delete;
  Memtable& operator=(const Memtable&) = delete;

  // Where keys and values of entries are placed. Any thread.
  Arena& arena() { return arena_; }

  // Makes sure that the next `entries` Insert calls cannot fail for lack of memory; what earlier
  // calls reserved and nobody used counts. False: the pool is exhausted, nothing else changed.
  // Writer only. Costs a few compares when enough is there already. What it sets aside for the
  // worst case (each insert splits another leaf) is about 3 KiB an entry at most, and is used by
  // later inserts.
  bool Reserve(size_t entries);
  // What that takes of the pool for an empty memtable, at least: a pool with less never holds so many
  // entries.
  static size_t ReserveBytes(size_t entries);

  // Adds one version of one key; visible to reads as soon as it returns. The bytes of
  // entry.user_key and entry.value are not copied: they lie in arena(), or outlive the memtable.
  // `was_read`: as MemtableIterator::was_read says then; it is so, too, when the version before was read
  // here. Writer only. REQUIRES: reserved; entry.version above every version of this key already here;
  // user_key.size() <= kUserKeySizeMax; value.size() < 4 GiB.
  void Insert(const Entry& entry, bool was_read = false);
  // The same where the bytes of a file say what the version is: false, and nothing is done, when it is not
  // above every version of this key already here.
  [[nodiscard]] bool TryInsert(const Entry& entry, bool was_read = false);

  // The newest entry of the key with version <= at_most; a tombstone answers kDeleted. Any thread.
  // Sees every Insert that happened before the call.
  Lookup Get(std::string_view user_key, Version at_most) const;

  // Whether there is an entry, of whatever version, of a key in [first, last]. Any thread. Sees every Insert
  // that happened before the call.
  bool HoldsAnyOf(std::string_view first, std::string_view last) const;

  // All entries with version <= at_most, every version, newest first per key; state() is kEnd
  // until a Seek, and never kNeedsIo. Any thread makes one, one thread uses it, beside the writer;
  // the memtable must outlive it. It sees at least what was inserted before it was created, each
  // entry once; of later inserts it sees some. Of the versions up to `newest_of` only each key's newest is
  // shown: who reads wants no other, and a key may have a million.
  std::unique_ptr<EntryIterator> NewIterator(Direction direction, Version at_most = kVersionMax,
                                             Version newest_of = Version()) const;

  // Any thread. Keys, values, records, nodes and reserves, in bytes of the arena.
  size_t memory_used() const { return arena_.allocated_bytes(); }
  // Entries are versions: a key written twice counts twice.
  uint64_t entry_count() const { return entry_count_.load(std::memory_order_relaxed); }
  uint64_t key_bytes() const { return key_bytes_.load(std::memory_order_relaxed); }
  uint64_t value_bytes() const { return value_bytes_.load(std::memory_order_relaxed); }
  // Entries of older versions come from elsewhere by a record of `version`: what is flushed of this memtable
  // counts as of that version (TableWriterOptions::counts_as). Writer only.
  void CountAs(Version version) { counts_as_ = std::max(counts_as_, version); }
  Version counts_as() const { return counts_as_; }  // Zero: its entries tell. For a memtable that is frozen.
  Version version_max() const { return Version(version_max_.load(std::memory_order_relaxed)); }
  bool empty() const { return entry_count() == 0; }

  // Walks the whole tree and asserts every invariant of node.h. For tests and debug builds; no
  // writer may be active.
  void CheckInvariants() const;

 private:
  friend class MemtableIterator;
  using Record = memtable_internal::Record;
  using Node = memtable_internal::Node;
  using Leaf = memtable_internal::Leaf;
  using Inner = memtable_internal::Inner;
  struct Path;

  // Reader's way down: the leaf that holds the key (or the last leaf), and the even sequence under
  // which that was so. nullptr while nothing was inserted.
  const Leaf* FindLeaf(std::string_view user_key, memtable_internal::LeafUse use, uint64_t* sequence) const;
  const Leaf* FindLastLeaf(uint64_t* sequence) const;

  // Writer's ways.
  Leaf* FindLeafForInsert(std::string_view user_key);
  Leaf* DescendForSplit(std::string_view user_key, Path* path) const;
  void SplitAndInsert(const Record* record);
  Leaf* SplitLeaf(Leaf* left, const Record* record);
  void InsertSeparators(const Path& path, Node* left, Node* right);
  Inner* SplitInner(Inner* left, size_t slot, const Record* separator, Node* child);
  void Count(const Entry& entry);

  Arena arena_;

  // Written by the writer, read by anyone: acquire reads meet release writes.
  std::atomic<Node*> root_{nullptr};
  std::atomic<Leaf*> leftmost_{nullptr};

  // Writer only.
  Leaf* last_leaf_ = nullptr;  // Where the last insert went; sorted batches go there again.
  memtable_internal::Stash leaf_stash_;
  memtable_internal::Stash inner_stash_;
  memtable_internal::Stash record_stash_;
  size_t leaf_count_ = 0;
  size_t inner_count_ = 0;
  size_t height_ = 0;  // Levels of inner nodes.

  std::atomic<uint64_t> entry_count_{0};
  std::atomic<uint64_t> key_bytes_{0};
  std::atomic<uint64_t> value_bytes_{0};
  std::atomic<uint64_t> version_max_{0};
  Version counts_as_;
};

}  // namespace partita

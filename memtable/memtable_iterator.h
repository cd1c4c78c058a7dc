#pragma once
#include <array>
#include <cstddef>

#include "engine/base/entry_iterator.h"
#include "memtable/memtable.h"
#include "memtable/node.h"

namespace partita {

// A cursor over a memtable, safe beside its writer. It stands on a copy of one leaf's slots, taken
// under one sequence, and goes to the neighbouring leaf as node.h says; so it never waits for the
// writer longer than one change of one leaf takes. Never needs I/O.
class MemtableIterator final : public EntryIterator {
 public:
  // As Memtable::NewIterator.
  MemtableIterator(const Memtable& memtable, Direction direction, Version at_most,
                   Version newest_of = Version())
      : memtable_(memtable), direction_(direction), at_most_(at_most), newest_of_(newest_of) {}

  IterState SeekToFirst() override;
  IterState Seek(std::string_view user_key) override;
  IterState Next() override;
  IterState state() const override { return state_; }
  Task<Status> Fetch() override;
  const Entry& entry() const override;

  // Whether Get answered by this version so far, or by an earlier one before this was inserted, or Insert was
  // told so: readers want the key, wherever it goes. REQUIRES: state() == kEntry.
  bool was_read() const;

 private:
  using Record = memtable_internal::Record;
  using Leaf = memtable_internal::Leaf;

  // Copies the leaf's slots; false when the writer came between.
  bool CopyLeaf(const Leaf* leaf, uint64_t sequence);
  // The neighbour in the scan's direction; false at the end.
  bool GoToNextLeaf();
  bool GoToPrevLeaf();
  // Stands on the first slot from `left_` on that has a version low enough.
  IterState Settle();
  IterState StandOn(const Record* record);
  void Prefetch();

  // Slots of the copy in scan order: step 0 is the first.
  const Record* At(size_t step) const {
    return records_[direction_ == Direction::kForward ? step : count_ - 1 - step];
  }

  const Memtable& memtable_;
  const Direction direction_;
  const Version at_most_;
  const Version newest_of_;
  IterState state_ = IterState::kEnd;
  Entry entry_;
  const Record* record_ = nullptr;  // What entry_ shows.

  const Leaf* leaf_ = nullptr;  // Where the copy was taken.
  const Leaf* next_ = nullptr;  // Its right neighbour then.
  size_t count_ = 0;
  size_t step_ = 0;  // Of record_'s slot.
  std::array<const Record*, memtable_internal::kNodeSlots> records_;
};

}  // namespace partita

#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/deleted_keys.h"
#include "engine/base/entry_iterator.h"
#include "engine/read_view.h"

namespace partita {

// The keys that the tombstones of a view's memtables delete at a version: of each key the newest entry of all
// memtables decides, which are newer than all tables.
//
// Asked of one block after the other, in the scan's direction, it goes on where it was; else it seeks.
class MemtableDeletes final : public DeletedKeys {
 public:
  // `view` is pinned and outlives it.
  MemtableDeletes(const ReadView& view, Direction direction, Version visible);

  bool AreAll(std::string_view lower, std::string_view upper, const BlockKeys& keys) override;
  size_t looks() const override { return looks_; }

  // Blocks whose keys are all deleted, one beside the other; the memtables have nothing but tombstones there,
  // all of them visible. Where no table but theirs has anything, no row is in [lower, upper).
  struct Stretch {
    std::string lower, upper;  // Both empty: nothing was found.
    std::string last_key;      // Of the deleted ones, in the scan's direction.
    uint64_t entries = 0;      // Of the memtables.
  };
  // The one that was found last, and not forgotten since.
  const Stretch& found() const { return found_; }
  void Forget() { found_ = Stretch(); }

 private:
  void Found(std::string_view lower, std::string_view upper, uint64_t entries);
  bool IsWithin(std::string_view key, std::string_view lower, std::string_view upper) const {
    return forward_ ? key < upper : key >= lower;
  }

  const bool forward_;
  const Version visible_;
  std::unique_ptr<EntryIterator> merged_;
  bool is_placed_ = false;  // It stands at the first entry behind reached_.
  std::string reached_;
  std::string last_key_;  // Was decided last; meaningless when nothing was since the last seek.
  size_t looks_ = 0;
  Stretch found_;
};

}  // namespace partita

#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/entry_iterator.h"
#include "sstable/level_set.h"

namespace partita {

// The files of one level, one after the other: disjoint and in key order, opened as the cursor comes
// to them. The files must outlive it.
class LevelIterator : public EntryIterator {
 public:
  // `files` in key order, whatever the direction.
  LevelIterator(std::vector<const FileRef*> files, Direction direction, IterOptions options);

  IterState SeekToFirst() override;
  IterState Seek(std::string_view user_key) override;
  IterState Next() override;
  IterState state() const override { return state_; }
  Task<Status> Fetch() override;
  const Entry& entry() const override { return current_->entry(); }

 private:
  void OpenAt(size_t index);
  // Goes on to the next files while the current one has ended.
  IterState Settle(IterState state);

  std::vector<const FileRef*> files_;  // In iteration order.
  Direction direction_;
  IterOptions options_;
  size_t at_ = 0;
  std::unique_ptr<EntryIterator> current_;
  IterState state_ = IterState::kEnd;
};

}  // namespace partita

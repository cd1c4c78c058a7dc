#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/entry_iterator.h"
#include "sstable/files_beneath.h"
#include "sstable/level_set.h"

namespace partita {

// The files of one level, one after the other: disjoint and in key order, opened as the cursor comes
// to them. The files must outlive it.
//
// With options.read_ahead a long scan begins the next file while it works on the end of one.
// With a TableScan (options.scan) that has a predicate, files that it rules out are not opened.
class LevelIterator : public EntryIterator {
 public:
  // `files` in key order, whatever the direction. `beneath`: what lies beneath them; nothing: that is not
  // known, and no block or file is passed over.
  LevelIterator(std::vector<const FileRef*> files, Direction direction, IterOptions options,
                std::optional<FilesBeneath> beneath = std::nullopt);

  IterState SeekToFirst() override;
  IterState Seek(std::string_view user_key) override;
  IterState Next() override;
  IterState state() const override { return state_; }
  Task<Status> Fetch() override;
  const Entry& entry() const override { return at_milestone_ ? milestone_ : current_->entry(); }
  const BlockPin* pin() const override { return at_milestone_ ? nullptr : current_->pin(); }
  EntryRun Run(std::optional<std::string_view> before) const override {
    return at_milestone_ ? EntryRun() : current_->Run(before);
  }
  void RunKeyTo(uint32_t i, std::string* out) const override { current_->RunKeyTo(i, out); }
  IterState SkipRun(const EntryRun& run) override { return Settle(current_->SkipRun(run)); }

 private:
  void Open();
  void UseTable(std::unique_ptr<TableIterator> table);
  IterState OpenAt(std::optional<std::string_view> key);
  void AnticipateNext();
  void Jump();
  bool BeyondUntil(const FileRef& file) const;
  bool PassOver(const FileRef& file);
  IterState EnterFrom(size_t index, std::optional<std::string_view> key = std::nullopt);
  IterState ShowMilestone();
  // Goes on to the next files while the current one has ended.
  IterState Settle(IterState state);

  std::vector<const FileRef*> files_;  // In iteration order.
  Direction direction_;
  IterOptions options_;
  const uint64_t entries_expected_, raw_bytes_expected_;  // As they were: a scan may come beyond them.
  std::optional<FilesBeneath> beneath_;
  size_t at_ = 0;
  size_t passed_to_ = 0;  // Files in front of it that were passed over have been counted.
  std::unique_ptr<EntryIterator> current_;
  TableIterator* table_ = nullptr;       // current_, unless its file is damaged.
  size_t next_at_ = 0;                   // at_ + 1: it is known whether files_[at_ + 1] is begun ahead.
  std::unique_ptr<TableIterator> next_;  // Over files_[next_at_], of which reads are on their way.
  bool at_milestone_ = false;            // In front of files_[at_].
  std::string milestone_key_;
  Entry milestone_;
  IterState state_ = IterState::kEnd;
};

}  // namespace partita

#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/entry_iterator.h"
#include "sstable/level_set.h"
#include "sstable/table_iterator.h"

namespace partita {

// A merge input: files of a level that follow each other in key order (some of level 0, or all inputs of a
// deeper level), walked forward within their virtual bounds, past the cache, with their blocks shown.
//
// A file that ends before it gave as many entries as it was written with makes Fetch return
// kCorruption: an input that ends early must not pass for a shorter one (M12, F47). Of a slice of a file
// nobody wrote down how many it has: it must not give more than the whole file.
class RunCursor final : public EntryIterator {
 public:
  // `read_ahead` reads what comes next while the cursor is worked on; null: the cursor waits for each read.
  // REQUIRES: !files.empty(), each with a table, disjoint and in key order.
  RunCursor(std::vector<FileRef> files, ReadAheadPool* read_ahead);

  IterState SeekToFirst() override;
  IterState Seek(std::string_view user_key) override;
  IterState Next() override;
  IterState state() const override { return state_; }
  Task<Status> Fetch() override;
  const Entry& entry() const override { return table_->entry(); }

  // The file and the table cursor that entry() comes from. REQUIRES: state() == kEntry.
  const FileRef& file() const { return files_[at_]; }
  TableIterator& table() { return *table_; }
  // Moves behind the current block. REQUIRES: state() == kEntry, at the start of the block, which
  // lies within the bounds (CurrentPassThrough() gave it).
  IterState SkipBlock();

  // The file whose Fetch failed for what is on the disk: another try would, too.
  const FileRef* failed_file() const { return failed_ ? &files_[at_] : nullptr; }

 private:
  std::unique_ptr<TableIterator> CursorOver(size_t file, uint64_t read_in_stride) const;
  size_t NextTable(size_t file) const;
  void OpenFile();
  void AnticipateNext();
  IterState Settle();
  bool CountIsRight() const;

  std::vector<FileRef> files_;
  ReadAheadPool* const read_ahead_;
  size_t at_ = 0;
  std::unique_ptr<TableIterator> table_;
  std::unique_ptr<TableIterator> next_;  // Of the file behind; null: not begun.
  uint64_t entries_ = 0;                 // Given by the current file.
  bool counted_ = false;                 // The current file is walked from its first entry.
  bool cut_short_ = false;               // It gave fewer or more than it should: Fetch says so.
  bool failed_ = false;
  IterState state_ = IterState::kEnd;
};

}  // namespace partita

#include "compaction/run_cursor.h"

#include <algorithm>

#include "compaction/level_shape.h"
#include "engine/base/assert.h"

namespace partita {

RunCursor::RunCursor(std::vector<FileRef> files, ReadAheadPool* read_ahead)
    : files_(std::move(files)), read_ahead_(read_ahead) {
  PARTITA_ASSERT(!files_.empty());
  for (const FileRef& file : files_) PARTITA_ASSERT(file.table != nullptr);
}

std::unique_ptr<TableIterator> RunCursor::CursorOver(size_t file, uint64_t read_in_stride) const {
  IterOptions options;
  options.caching = IterCaching::kBypass;
  options.lower = files_[file].lower;
  options.upper = files_[file].upper;
  options.reads_to = files_[NextTable(file) - 1].upper;
  options.read_ahead = read_ahead_;
  options.read_in_stride = read_in_stride;
  return files_[file].table->NewIterator(Direction::kForward, std::move(options));
}

// The first file behind with another table: slices of one follow each other, and are read as one.
size_t RunCursor::NextTable(size_t file) const {
  size_t next = file + 1;
  while (next < files_.size() && files_[next].table == files_[file].table) ++next;
  return next;
}

// At the first entry of the file.
void RunCursor::OpenFile() {
  if (at_ > 0 && table_ != nullptr && files_[at_].table == files_[at_ - 1].table) {
    table_->Rebound(files_[at_].lower, files_[at_].upper);
  } else if (next_ != nullptr) {
    table_ = std::move(next_);
  } else {
    table_ = CursorOver(at_, 0);
    table_->SeekToFirst();
  }
  entries_ = 0;
  counted_ = true;
}

// Has what the next file begins with read while what is left of this one is worked on.
void RunCursor::AnticipateNext() {
  if (read_ahead_ == nullptr || NextTable(at_) == files_.size() || !table_->ReadsToEnd()) return;
  if (next_ == nullptr) next_ = CursorOver(NextTable(at_), table_->read_in_stride());
  next_->Anticipate();
}

IterState RunCursor::SeekToFirst() {
  at_ = 0;
  cut_short_ = failed_ = false;
  next_ = nullptr;
  table_ = nullptr;
  OpenFile();
  return Settle();
}

IterState RunCursor::Seek(std::string_view user_key) {
  at_ = 0;
  cut_short_ = failed_ = false;
  next_ = nullptr;
  while (at_ + 1 < files_.size() && SpanOf(files_[at_]).upper <= user_key) ++at_;
  table_ = CursorOver(at_, 0);
  counted_ = false;
  table_->Seek(user_key);
  return Settle();
}

IterState RunCursor::Next() {
  ++entries_;
  table_->Next();
  return Settle();
}

IterState RunCursor::SkipBlock() {
  PARTITA_DEBUG_ASSERT(table_->AtBlockStart());
  entries_ += table_->CurrentBlock().entry_count;
  table_->SkipBlock();
  return Settle();
}

bool RunCursor::CountIsRight() const {
  if (!counted_) return true;
  const FileRef& file = files_[at_];
  return file.IsWhole() ? entries_ == file.info->entry_count : entries_ <= file.info->entry_count;
}

// Goes on to the next file at the end of one.
IterState RunCursor::Settle() {
  while (table_->state() == IterState::kEnd) {
    if (!CountIsRight()) {
      cut_short_ = true;
      return state_ = IterState::kNeedsIo;
    }
    if (at_ + 1 == files_.size()) return state_ = IterState::kEnd;
    ++at_;
    OpenFile();
  }
  return state_ = table_->state();
}

Task<Status> RunCursor::Fetch() {
  PARTITA_ASSERT(state_ == IterState::kNeedsIo);
  if (cut_short_) {
    failed_ = true;
    co_return Status::Corruption(files_[at_].table->name() + ": gave " + std::to_string(entries_) +
                                 " entries, written with " + std::to_string(files_[at_].info->entry_count) +
                                 " (F47)");
  }
  Status fetched = co_await table_->Fetch();
  // For want of memory, say, it may be read the next time.
  failed_ = fetched.code() == Code::kCorruption || fetched.code() == Code::kIoError;
  PARTITA_CO_TRY(fetched);
  AnticipateNext();
  Settle();
  co_return Status();
}

}  // namespace partita

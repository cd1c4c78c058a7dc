#include "compaction/run_cursor.h"

#include <algorithm>

#include "compaction/level_shape.h"
#include "engine/base/assert.h"

namespace partita {

RunCursor::RunCursor(std::vector<FileRef> files) : files_(std::move(files)) {
  PARTITA_ASSERT(!files_.empty());
  for (const FileRef& file : files_) PARTITA_ASSERT(file.table != nullptr);
}

void RunCursor::OpenFile() {
  IterOptions options;
  options.caching = IterCaching::kBypass;
  options.lower = files_[at_].lower;
  options.upper = files_[at_].upper;
  table_ = files_[at_].table->NewIterator(Direction::kForward, std::move(options));
  entries_ = 0;
  counted_ = true;
}

IterState RunCursor::SeekToFirst() {
  at_ = 0;
  cut_short_ = failed_ = false;
  OpenFile();
  table_->SeekToFirst();
  return Settle();
}

IterState RunCursor::Seek(std::string_view user_key) {
  at_ = 0;
  cut_short_ = failed_ = false;
  while (at_ + 1 < files_.size() && SpanOf(files_[at_]).upper <= user_key) ++at_;
  OpenFile();
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
  const FileRef& file = files_[at_];
  bool whole = file.lower <= file.info.smallest && (file.upper.empty() || file.upper > file.info.largest);
  if (!counted_) return true;
  return whole ? entries_ == file.info.entry_count : entries_ <= file.info.entry_count;
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
    table_->SeekToFirst();
  }
  return state_ = table_->state();
}

Task<Status> RunCursor::Fetch() {
  PARTITA_ASSERT(state_ == IterState::kNeedsIo);
  if (cut_short_) {
    failed_ = true;
    co_return Status::Corruption(files_[at_].table->name() + ": gave " + std::to_string(entries_) +
                                 " entries, written with " + std::to_string(files_[at_].info.entry_count) +
                                 " (F47)");
  }
  Status fetched = co_await table_->Fetch();
  failed_ = !fetched.ok();
  if (failed_) co_return fetched;
  Settle();
  co_return Status();
}

}  // namespace partita

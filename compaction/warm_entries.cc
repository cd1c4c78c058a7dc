#include "compaction/warm_entries.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/checksum.h"
#include "engine/base/task_group.h"
#include "sstable/cached_rows.h"
#include "sstable/data_block.h"

namespace partita {

bool WarmEntries::Note(const TableIterator& at) {
  has_rows_ = cache_.HasRows();
  const BlockKey block = at.block_key();
  if (!cache_.Contains(block)) return false;
  blocks_.push_back(block);
  NoteIndex(at);
  if (cache_.WasUsed(block)) return true;
  TakeSpare();
  return false;
}

void WarmEntries::NoteIndex(const TableIterator& at) {
  const BlockKey index = at.index_key();
  if (index_noted_ == index) return;
  index_noted_ = index;
  blocks_.push_back(index);
}

// Once of a row, not of each of its versions.
void WarmEntries::NoteRow(const TableIterator& at, const BlockKey& row) {
  if (row_noted_ == row || rows_.size() >= kRunsMax || !cache_.Contains(row)) return;
  row_noted_ = row;
  rows_.push_back(out_);
  blocks_.push_back(row);
  NoteIndex(at);
}

void WarmEntries::Out(bool warm, uint64_t count) {
  const uint64_t begin = out_;
  out_ += count;
  if (!warm) return;
  if (!runs_.empty() && runs_.back().end == begin) {
    runs_.back().end = out_;
  } else if (runs_.size() - at_ < kRunsMax) {
    runs_.push_back({begin, out_});
  }
}

void WarmEntries::OutEntry(const TableIterator& at, bool warm, std::string_view user_key) {
  if (!warm && has_rows_) NoteRow(at, CachedRowKey(at.block_key(), Hash64(user_key)));
  Out(warm, 1);
}

void WarmEntries::OutBlock(const TableIterator& at, bool warm, const DataBlock& block) {
  if (warm || !has_rows_) return Out(warm, block.size());
  std::vector<BlockKey> rows;
  std::string user_key;
  for (uint32_t i = 0; i < block.size(); ++i) {
    block.KeyTo(i, &user_key);
    rows.push_back(CachedRowKey(at.block_key(), Hash64(user_key)));
    cache_.PrefetchSlot(rows.back());
  }
  for (const BlockKey& row : rows) {
    NoteRow(at, row);
    Out(/*warm=*/false, 1);
  }
}

void WarmEntries::OutRow(bool warm) {
  if (warm && rows_.size() < kRunsMax) rows_.push_back(out_);
  ++out_;
}

bool WarmEntries::Wants(uint64_t entries) {
  rows_here_.clear();
  for (; !rows_.empty() && rows_.front() < read_back_ + entries; rows_.pop_front())
    rows_here_.push_back(static_cast<uint32_t>(rows_.front() - read_back_));
  const uint64_t end = read_back_ + entries;
  uint64_t warm = 0;
  for (; at_ < runs_.size() && runs_[at_].begin < end; ++at_) {
    const Run& run = runs_[at_];
    warm += std::min(run.end, end) - std::max(run.begin, read_back_);
    if (run.end >= end) break;  // It may go on in the next block, or grow.
  }
  read_back_ = end;
  if (at_ >= kRunsMax / 64) {
    runs_.erase(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
  }
  wants_block_ = 2 * (warm + rows_here_.size()) >= entries;
  return wants_block_ || !rows_here_.empty() || takes_spare_;
}

// Of a block of which less than half is wanted: whether it is to come in whole.
bool WarmEntries::IsWorthTaking(const DataBlock& block) const {
  if (8 * rows_here_.size() < block.size()) return false;
  return std::any_of(rows_here_.begin(), rows_here_.end(),
                     [&](uint32_t i) { return i < block.size() && !IsWorthCutting(block, i); });
}

void WarmEntries::TakeRows(const TableIterator& at, const DataBlock& block) {
  for (size_t here = 0; here < rows_here_.size(); ++here) {
    const uint32_t i = rows_here_[here];
    if (i >= block.size() || !IsWorthCutting(block, i)) continue;
    if (here > 0 && rows_here_[here - 1] + 1 == i && block.same_key_as_before(i)) continue;  // The same row.
    const CachedRow row = CutRow(at.block_key(), block, i);
    Copy(row.key, row.content, CachePriority::kPoint);
  }
}

void WarmEntries::Take(const TableIterator& at) {
  const DataBlock block(at.block_content());
  const size_t taken = pieces_.size();
  const bool is_worth_it = wants_block_ || IsWorthTaking(block);
  if (is_worth_it) {
    Copy(at.block_key(), at.block_content(), CachePriority::kScan);
  } else {
    TakeRows(at, block);
  }
  const bool is_wanted = pieces_.size() > taken;
  if (!is_worth_it && takes_spare_)
    Copy(at.block_key(), at.block_content(), CachePriority::kScan, /*is_spare=*/true);
  const BlockKey index = at.index_key();
  if (pieces_.size() == taken || (index_taken_ == index && (index_was_wanted_ || !is_wanted))) return;
  index_taken_ = index;
  index_was_wanted_ = is_wanted;
  Copy(index, at.index_content(), is_wanted ? CachePriority::kIndex : CachePriority::kPoint, !is_wanted);
}

void WarmEntries::Copy(BlockKey key, std::string_view content, CachePriority priority, bool is_spare) {
  bytes_.append(content);
  pieces_.push_back({key, content.size(), priority, is_spare});
}

Task<void> WarmEntries::Put() {
  if (!pieces_.empty()) co_await Elsewhere(&WarmEntries::PutHere);
}

Task<void> WarmEntries::TakeBack() {
  if (!put_.empty()) co_await Elsewhere(&WarmEntries::TakeBackHere);
}

Task<void> WarmEntries::Elsewhere(void (WarmEntries::*work)()) {
  if (executor_ == nullptr) {
    (this->*work)();
    co_return;
  }
  const auto run = [](WarmEntries* self, void (WarmEntries::*what)()) -> Task<void> {
    (self->*what)();
    co_return;
  };
  TaskGroup group;
  group.Spawn(*executor_, run(this, work));
  co_await group.Join();
}

void WarmEntries::PutHere() {
  size_t at = 0;
  for (const Piece& piece : pieces_) {
    const std::string_view content(bytes_.data() + at, piece.size);
    at += piece.size;
    if (IsCachedRow(piece.key)) {
      cache_.AddRow(piece.key, content);
    } else {
      if (piece.is_spare && spare_ended_) continue;
      BlockFrame frame = piece.is_spare ? cache_.NewSpareFrame(piece.key, piece.size)
                                        : cache_.NewFrame(piece.key, piece.size);
      if (frame.data() == nullptr) {
        if (piece.is_spare) spare_ended_ = true;
        takes_spare_ = takes_spare_ && !spare_ended_;
        continue;
      }
      std::memcpy(frame.data(), content.data(), content.size());
      (void)cache_.Insert(piece.key, std::move(frame), piece.priority);
    }
    put_.push_back(piece.key);
  }
  pieces_.clear();
  bytes_.clear();
}

void WarmEntries::TakeBackHere() {
  for (const BlockKey& block : put_) cache_.Drop(block);
  put_.clear();
}

}  // namespace partita

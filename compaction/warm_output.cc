#include "compaction/warm_output.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/task_group.h"
#include "sstable/cached_rows.h"
#include "sstable/data_block.h"

namespace partita {

bool WarmOutput::Wants(uint64_t entries) {
  const uint64_t end = read_back_ + entries;
  rows_here_.clear();
  for (; row_at_ < warm_.rows.size() && warm_.rows[row_at_] < end; ++row_at_)
    rows_here_.push_back(static_cast<uint32_t>(warm_.rows[row_at_] - read_back_));
  uint64_t warm = 0;
  for (; run_at_ < warm_.runs.size() && warm_.runs[run_at_].begin < end; ++run_at_) {
    const WarmRuns::Run& run = warm_.runs[run_at_];
    warm += std::min(run.end, end) - std::max(run.begin, read_back_);
    if (run.end > end) break;  // It goes on in the next block.
  }
  read_back_ = end;
  wants_block_ = 2 * (warm + rows_here_.size()) >= entries;
  return wants_block_ || !rows_here_.empty() || TakesSpare();
}

// Of a block of which less than half is wanted: whether it is to come in whole.
bool WarmOutput::IsWorthTaking(const DataBlock& block) const {
  if (8 * rows_here_.size() < block.size()) return false;
  return std::any_of(rows_here_.begin(), rows_here_.end(),
                     [&](uint32_t i) { return i < block.size() && !IsWorthCutting(block, i); });
}

void WarmOutput::TakeRows(const TableIterator& at, const DataBlock& block) {
  for (size_t here = 0; here < rows_here_.size(); ++here) {
    const uint32_t i = rows_here_[here];
    if (i >= block.size() || !IsWorthCutting(block, i)) continue;
    if (here > 0 && rows_here_[here - 1] + 1 == i && block.same_key_as_before(i)) continue;  // The same row.
    const CachedRow row = CutRow(at.block_key(), block, i);
    Copy(row.key, row.content, CachePriority::kPoint);
  }
}

void WarmOutput::Take(const TableIterator& at) {
  const DataBlock block(at.block_content());
  const size_t taken = pieces_.size();
  const bool is_worth_it = wants_block_ || IsWorthTaking(block);
  if (is_worth_it) {
    Copy(at.block_key(), at.block_content(), CachePriority::kScan);
  } else {
    TakeRows(at, block);
  }
  const bool is_wanted = pieces_.size() > taken;
  if (!is_worth_it && TakesSpare())
    Copy(at.block_key(), at.block_content(), CachePriority::kScan, /*is_spare=*/true);
  const BlockKey index = at.index_key();
  if (pieces_.size() == taken || (index_taken_ == index && (index_was_wanted_ || !is_wanted))) return;
  index_taken_ = index;
  index_was_wanted_ = is_wanted;
  Copy(index, at.index_content(), is_wanted ? CachePriority::kIndex : CachePriority::kPoint, !is_wanted);
}

void WarmOutput::Copy(BlockKey key, std::string_view content, CachePriority priority, bool is_spare) {
  bytes_.append(content);
  pieces_.push_back({key, content.size(), priority, is_spare});
}

Task<void> WarmOutput::Put() {
  if (!pieces_.empty()) co_await Elsewhere(&WarmOutput::PutHere);
}

void WarmOutput::End() {
  warm_ = {};
  rows_here_ = {};
  bytes_ = {};
  pieces_ = {};
}

Task<void> WarmOutput::TakeBack() {
  if (!put_.empty()) co_await Elsewhere(&WarmOutput::TakeBackHere);
}

Task<void> WarmOutput::Elsewhere(void (WarmOutput::*work)()) {
  if (executor_ == nullptr) {
    (this->*work)();
    co_return;
  }
  const auto run = [](WarmOutput* self, void (WarmOutput::*what)()) -> Task<void> {
    (self->*what)();
    co_return;
  };
  TaskGroup group;
  group.Spawn(*executor_, run(this, work));
  co_await group.Join();
}

void WarmOutput::PutHere() {
  size_t at = 0;
  for (const Piece& piece : pieces_) {
    const std::string_view content(bytes_.data() + at, piece.size);
    at += piece.size;
    if (IsCachedRow(piece.key)) {
      cache_.AddRow(piece.key, content);
    } else {
      if (piece.is_spare && !TakesSpare()) continue;
      BlockFrame frame = piece.is_spare ? cache_.NewSpareFrame(piece.key, piece.size)
                                        : cache_.NewFrame(piece.key, piece.size);
      if (frame.data() == nullptr) {
        if (piece.is_spare) spare_->store(SpareBlocks::kFoundNoRoom, std::memory_order_relaxed);
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

void WarmOutput::TakeBackHere() {
  for (const BlockKey& block : put_) cache_.Drop(block);
  put_.clear();
}

}  // namespace partita

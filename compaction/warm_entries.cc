#include "compaction/warm_entries.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/task_group.h"

namespace partita {

bool WarmEntries::Note(const TableIterator& at) {
  const BlockKey block = at.block_key();
  if (!cache_.Contains(block)) return false;
  blocks_.push_back(block);
  const BlockKey index = at.index_key();
  if (index_noted_ != index) {
    index_noted_ = index;
    blocks_.push_back(index);
  }
  return true;
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

bool WarmEntries::Wants(uint64_t entries) {
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
  return 2 * warm >= entries;
}

void WarmEntries::Take(const TableIterator& at) {
  Copy(at.block_key(), at.block_content(), CachePriority::kScan);
  const BlockKey index = at.index_key();
  if (index_taken_ == index) return;
  index_taken_ = index;
  Copy(index, at.index_content(), CachePriority::kIndex);
}

void WarmEntries::Copy(BlockKey key, std::string_view content, CachePriority priority) {
  bytes_.append(content);
  pieces_.push_back({key, content.size(), priority});
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
    BlockFrame frame = cache_.NewFrame(piece.key, piece.size);
    if (frame.data() != nullptr) {
      std::memcpy(frame.data(), bytes_.data() + at, piece.size);
      (void)cache_.Insert(piece.key, std::move(frame), piece.priority);
      put_.push_back(piece.key);
    }
    at += piece.size;
  }
  pieces_.clear();
  bytes_.clear();
}

void WarmEntries::TakeBackHere() {
  for (const BlockKey& block : put_) cache_.Drop(block);
  put_.clear();
}

}  // namespace partita

#include "compaction/warm_entries.h"

#include <utility>

#include "engine/base/checksum.h"
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

void WarmEntries::TakeSpare() {
  SpareBlocks before = SpareBlocks::kStayOut;
  spare_.compare_exchange_strong(before, SpareBlocks::kEnter, std::memory_order_relaxed);
}

void WarmEntries::NoteIndex(const TableIterator& at) {
  const BlockKey index = at.index_key();
  if (index_noted_ == index) return;
  index_noted_ = index;
  blocks_.push_back(index);
}

// Once of a row, not of each of its versions.
void WarmEntries::NoteRow(const TableIterator& at, const BlockKey& row) {
  if (row_noted_ == row || warm_.rows.size() >= kRunsMax || !cache_.Contains(row)) return;
  row_noted_ = row;
  warm_.rows.push_back(out_);
  blocks_.push_back(row);
  NoteIndex(at);
}

void WarmEntries::Out(bool warm, uint64_t count) {
  const uint64_t begin = out_;
  out_ += count;
  if (!warm) return;
  std::vector<WarmRuns::Run>& runs = warm_.runs;
  if (!runs.empty() && runs.back().end == begin) {
    runs.back().end = out_;
  } else if (runs.size() < kRunsMax) {
    runs.push_back({begin, out_});
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
  if (warm && warm_.rows.size() < kRunsMax) warm_.rows.push_back(out_);
  ++out_;
}

std::shared_ptr<WarmOutput> WarmEntries::EndOutput() {
  ended_.push_back(std::make_shared<WarmOutput>(cache_, executor_, &spare_, std::exchange(warm_, {})));
  out_ = 0;
  return ended_.back();
}

Task<void> WarmEntries::TakeBack() {
  for (const std::shared_ptr<WarmOutput>& output : ended_) co_await output->TakeBack();
}

}  // namespace partita

#include "engine/shard_statistics.h"

#include <mutex>

#include "engine/shard.h"

namespace partita {

ShardStatistics Shard::Statistics(std::set<ObjectId>* counted) {
  ShardStatistics s;
  const std::shared_ptr<const std::set<Reference>> aside = SetAside();
  ViewPin view = views_.Pin();
  s.memtable_bytes = view->active->memory_used();
  s.memtable_entries = view->active->entry_count();
  for (const MemtableRef& memtable : view->frozen) {
    s.memtable_bytes += memtable.table->memory_used();
    s.memtable_entries += memtable.table->entry_count();
  }
  s.frozen_memtables = view->frozen.size();
  s.log_live_bytes = log_->live_bytes();
  s.log_bytes = commit_log_->bytes_appended();
  s.levels.resize(kLevels);
  for (const RangeView& range : view->ranges) {
    for (size_t level = 0; level < kLevels; ++level) {
      for (const FileRef& file : range.levels->level(level)) {
        s.references_set_aside += file.table == nullptr || aside->contains({file.info->id, file.lower});
        if (!counted->insert(file.info->id).second) continue;
        s.levels[level].files += 1;
        s.levels[level].bytes += file.info->file_size;
        s.levels[level].entries += file.info->entry_count;
        s.levels[level].tombstones += file.info->tombstone_count;
        if (file.table != nullptr) s.resident_table_bytes += file.table->resident_bytes();
      }
    }
  }
  s.writes = writes_.load();
  s.flushes = flushed_.load();
  s.compactions = compactions_.load();
  s.compactions_given_up = compactions_given_up_.load(std::memory_order_relaxed);
  s.bytes_user = bytes_user_.load();
  s.bytes_flushed = bytes_flushed_.load();
  s.bytes_compaction_read = bytes_compaction_read_.load();
  s.bytes_compaction_written = bytes_compaction_written_.load();
  s.debt_bytes = debt_bytes_.load();
  s.background = background_.Read();
  s.delay_us_total = pacer_.total_us();
  s.delay_us_max = pacer_.longest_us();
  s.fenced = commit_log_->fenced();
  s.stalled = commit_log_->stalled();
  s.stalls = commit_log_->stalls();
  s.fences = commit_log_->fences();
  s.flushes_failed = flushes_failed_.load(std::memory_order_relaxed);
  s.compactions_failed = compactions_failed_.load(std::memory_order_relaxed);
  s.saves_failed = saves_failed_.load(std::memory_order_relaxed);
  s.clock_ticks_ahead = clock_->TicksAhead();
  std::lock_guard lock(set_aside_mutex_);
  s.flush_error = flush_error_.ok() ? save_error_ : flush_error_;
  s.compaction_error = compaction_error_;
  return s;
}

void Shard::AddFileBytes(std::vector<std::pair<ObjectId, uint64_t>>* files) {
  ViewPin view = views_.Pin();
  for (const RangeView& range : view->ranges) {
    for (size_t level = 0; level < kLevels; ++level) {
      for (const FileRef& file : range.levels->level(level)) {
        files->emplace_back(file.info->id, file.info->file_size);
      }
    }
  }
}

}  // namespace partita

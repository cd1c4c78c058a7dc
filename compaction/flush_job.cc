#include "compaction/flush_job.h"

#include "compaction/compression_policy.h"
#include "compaction/slice_pacer.h"
#include "compaction/table_outputs.h"
#include "compaction/warm_entries.h"
#include "engine/base/executor.h"

namespace partita {

FlushJob::FlushJob(JobContext context, FlushSpec spec)
    : context_(std::move(context)), spec_(std::move(spec)) {}
FlushJob::~FlushJob() = default;

const std::vector<ObjectId>& FlushJob::left_behind() const {
  static const std::vector<ObjectId> kNone;
  return outputs_ != nullptr ? outputs_->left_behind() : kNone;
}

Task<Result<JobResult>> FlushJob::Run() {
  PARTITA_ASSERT(outputs_ == nullptr);  // Used once.
  JobResult result;
  OutputCutter cutter(spec_.cut_points, {}, context_.target_file_bytes, context_.flushed_file_bytes_max);
  warm_ = std::make_unique<WarmEntries>(context_.cache, context_.cache_executor);
  if (spec_.fills_cache) warm_->TakeSpare();
  outputs_ = std::make_unique<TableOutputs>(context_, CodecForLevel(kLevels - 1), std::move(cutter),
                                            &result.statistics, spec_.lies_on_nothing ? 1 : kFlushShrinkMin,
                                            *warm_, std::move(spec_.marks));
  Status written = co_await WriteAll(&result.statistics);
  if (written.ok()) written = co_await outputs_->Finish();
  if (!written.ok()) {
    co_await outputs_->Discard();  // F22: the memtable stays, the next try writes new files.
    co_await warm_->TakeBack();
    co_return written.WithContext("flush");
  }
  for (const auto& table : outputs_->tables()) {
    FileRef file;
    file.table = table;
    file.info = table->info();
    result.edit.added.push_back({0, std::move(file)});
  }
  co_return std::move(result);
}

Task<Status> FlushJob::WriteAll(JobStatistics* statistics) {
  EntryIterator& entries = *spec_.entries;
  RetentionFilter filter(spec_.retention, context_.is_dead_table, {});
  SlicePacer slices(context_);
  std::string key_out;  // The last key that MustTurn was asked for.
  bool any_out = false;
  IterState state = entries.SeekToFirst();
  while (state != IterState::kEnd) {
    if (slices.Due()) PARTITA_CO_TRY(co_await slices.Turn());
    if (state == IterState::kNeedsIo) {
      PARTITA_CO_TRY(co_await entries.Fetch());
      state = entries.state();
      continue;
    }
    const Entry& entry = entries.entry();
    ++statistics->entries_in;
    statistics->raw_bytes_in += entry.user_key.size() + entry.value.size();
    PARTITA_CO_ASSIGN(Fate fate, filter.Judge(entry));
    CountFate(fate, statistics);
    if (fate == Fate::kKeep) {
      if (!any_out || entry.user_key != key_out) {
        if (outputs_->MustTurn(entry.user_key)) PARTITA_CO_TRY(co_await outputs_->Turn());
        key_out.assign(entry.user_key);
        any_out = true;
      }
      PARTITA_CO_TRY(outputs_->Add(entry));
      // A row that is gone takes no live one's place in the cache.
      warm_->OutRow(entry.kind != EntryKind::kTombstone && spec_.is_wanted && spec_.is_wanted());
      if (outputs_->NeedsDrain()) PARTITA_CO_TRY(co_await outputs_->Drain());
    }
    state = entries.Next();
  }
  // A source that ends early must not pass for a shorter one (F47).
  if (spec_.entries_expected && *spec_.entries_expected != statistics->entries_in) {
    co_return Status::Corruption("memtables counted " + std::to_string(*spec_.entries_expected) +
                                 " entries, " + std::to_string(statistics->entries_in) + " came out (F47)");
  }
  co_return Status();
}

}  // namespace partita

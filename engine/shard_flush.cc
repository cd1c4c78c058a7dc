#include <algorithm>

#include "compaction/flush_job.h"
#include "compaction/table_outputs.h"
#include "engine/base/coding.h"
#include "engine/base/site.h"
#include "engine/shard.h"
#include "memtable/memtable_iterator.h"

// Frozen memtables become tables of level 0: who writes which is flush_queue.h's, installing an edit
// shard_maintenance.cc's.

namespace partita {

namespace {

// The size to aim at for the files of a column, the part of a flush between two cut points, so that its bytes
// leave no rest in a file of its own: flushes of about one size then stack in columns on level 0
// (store_open.cc, TableFileBytes). Files are cut from 3/4 of it on, behind a partition (output_cutter.h), and
// at `most` in any case. Columns are about as large as each other, so where they have one file each that is
// not cut before.
uint64_t EvenFileBytes(uint64_t column_bytes, uint64_t most) {
  // Heads of entries, filters and indexes take room, too.
  const uint64_t padded = column_bytes + column_bytes / 8;
  const uint64_t files = (padded + most - 1) / most;
  return (files <= 1 ? most : padded / files) / 3 * 4;
}

}  // namespace

void Shard::ScheduleFlush() {
  if (closing_.load() || flush_running_.exchange(true)) return;
  tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), FlushLoop(this));
}

Task<void> Shard::FlushLoop(Shard* self) {
  self->context_.flush_lanes.Enter();
  uint64_t pause = kRetryNanosMin;
  bool runs = true;
  while (runs && !self->closing_.load()) {
    const std::optional<MemtableRef> memtable = self->flushes_.Take();
    if (!memtable) {
      self->flush_running_.store(false);
      // One frozen between the look and the store saw us running.
      runs = self->flushes_.HasUntaken() && !self->flush_running_.exchange(true);
      continue;
    }
    if (co_await self->FlushTaken(*memtable)) {
      pause = kRetryNanosMin;
    } else {
      co_await SleepFor(pause);
      pause = std::min(pause * 2, kRetryNanosMax);
    }
  }
  self->context_.flush_lanes.Leave();
  if (runs) self->flush_running_.store(false);
}

// What was frozen while the first flushes; not behind others' flushes, that is, while their cores are idle.
void Shard::ScheduleFlushBeside() {
  if (!MayFlushBeside() || flush_beside_running_.exchange(true)) return;
  if (!context_.flush_lanes.TryEnterBeside()) return flush_beside_running_.store(false);
  tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), FlushBeside(this));
}

// Where space is short the oldest needs all there is: only behind that is log let go.
bool Shard::MayFlushBeside() const {
  return !closing_.load() && !out_of_space_.load() && !context_.reserve.low();
}

Task<void> Shard::FlushBeside(Shard* self) {
  bool done = true;
  while (done && self->MayFlushBeside() && !self->context_.flush_lanes.AreCrowded()) {
    const std::optional<MemtableRef> memtable = self->flushes_.Take();
    if (!memtable) break;
    done = co_await self->FlushTaken(*memtable);
  }
  self->context_.flush_lanes.Leave();
  self->flush_beside_running_.store(false);
  self->ScheduleFlush();  // For what is left.
}

// There is a frozen memtable, and all that it holds may become a table.
bool Shard::MayFlush(const ReadView& view) const {
  return !view.frozen.empty() && view.frozen.back().last < FlushEnd();
}

// False: it failed, and is there to be taken again.
Task<bool> Shard::FlushTaken(const MemtableRef& memtable) {
  Result<std::vector<FileRef>> files = co_await WriteFrozen(memtable);
  Status flushed = files.status();
  if (files.ok()) {
    flushes_.Add({memtable, std::move(files).value()});
    flushed = co_await InstallFlushed();
    NoteFailedAttempt(flushed);
  } else {
    // Who waits for the oldest does not hear of a newer one's.
    const bool is_oldest = views_.Pin()->frozen.back().table == memtable.table;
    is_oldest ? NoteFailedAttempt(flushed) : NoteBackgroundError(flushed);
    if (is_oldest) NoteFlush(flushed, memtable.last);
  }
  if (!flushed.ok()) flushes_failed_.fetch_add(1, std::memory_order_relaxed);
  const bool lacks_space = flushed.code() == Code::kNoSpace;
  if (lacks_space) out_of_space_.store(true);
  if (!files.ok()) flushes_.GiveBack(*memtable.table);
  if (lacks_space) co_await RemoveWritten();
  if (flushed.ok()) ScheduleCompaction();
  co_return flushed.ok();
}

// What waits for an older one that did not become a table; it is written anew.
Task<void> Shard::RemoveWritten() {
  for (const FlushQueue::Written& written : flushes_.TakeWritten()) {
    for (const FileRef& file : written.files)
      NoteBackgroundError(co_await context_.objects.Remove(file.info->id));
  }
}

Task<Result<std::vector<FileRef>>> Shard::WriteFrozen(const MemtableRef& memtable) {
  // A memtable becomes a table only after the log is durable past its last position: else a table
  // could hold what a crash takes back from the log (F12, M27).
  if (SiteIsOn("flush.log.wait")) PARTITA_CO_TRY(co_await commit_log_->FlushThrough(memtable.last));
  const ViewPin view = views_.Pin();
  co_return co_await WriteMemtable(*memtable.table, *view);
}

Task<Status> Shard::InstallFlushed() {
  while (std::optional<FlushQueue::Written> next = flushes_.BeginInstall()) {
    Install install;
    install.flushed = next->memtable.table;
    install.replay_from = LogPosition(next->memtable.last.value + 1);
    uint64_t bytes = 0;
    for (const FileRef& file : next->files) bytes += file.info->file_size;
    bytes_flushed_.fetch_add(bytes, std::memory_order_relaxed);
    flush_rate_.Add(context_.runtime.clock().MonotonicNanos(), bytes);
    calm_looks_.store(0);
    install.flushed_files = std::move(next->files);
    const Status installed = co_await InstallEdit(std::move(install));
    NoteFlush(installed, next->memtable.last);  // Before another is the oldest.
    flushes_.EndInstall();
    PARTITA_CO_TRY(installed);
    flushed_.fetch_add(1, std::memory_order_relaxed);
  }
  co_return Status();
}

Task<Result<std::vector<FileRef>>> Shard::WriteMemtable(const Memtable& memtable, const ReadView& view) {
  FlushSpec spec;
  auto entries = std::make_unique<MemtableIterator>(memtable, Direction::kForward, kVersionMax);
  spec.is_wanted = [at = entries.get()] { return at->was_read(); };
  spec.fills_cache = context_.caches_flushes;
  spec.lies_on_nothing = view.LiesOnNothing(memtable);
  spec.entries = std::move(entries);
  spec.entries_expected = memtable.entry_count();
  spec.retention.visible = commit_log_ == nullptr ? memtable.version_max() : commit_log_->visible_version();
  FlushCuts cuts(Picker());
  for (const RangeView& range : view.ranges) cuts.Add(ShapeOfRange(range));
  spec.cut_points = cuts.Points();
  spec.marks = BoundsOf(view.ranges);
  JobContext context = MakeJobContext(view, flush_objects_, BackgroundWork::kFlush);
  context.counts_as = memtable.counts_as();
  const uint64_t columns = spec.cut_points.size() + 1;
  context.flushed_file_bytes_max = std::max<uint64_t>(context.target_file_bytes / 4 * 5, 1);
  context.target_file_bytes = EvenFileBytes((memtable.key_bytes() + memtable.value_bytes()) / columns,
                                            context.flushed_file_bytes_max);
  FlushJob job(std::move(context), std::move(spec));
  PARTITA_CO_ASSIGN(JobResult result, co_await job.Run());
  std::vector<FileRef> files;
  for (LevelEdit::Added& added : result.edit.added) files.push_back(std::move(added.file));
  co_return files;
}

void Shard::FreeSpace() {
  if (closing_.load() || frees_space_soon_.exchange(true)) return;
  tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), FlushForSpace(this));
}

Task<void> Shard::FlushForSpace(Shard* self) {
  self->frees_space_soon_.store(false);
  (void)co_await self->FreezeNow();
  self->ScheduleCompaction();  // Also where nothing was to be flushed: of what found no room before.
}

Task<Status> Shard::FlushMemtables() {
  // What is written meanwhile does not count, or this might never end.
  const LogPosition last = co_await FreezeNow();
  co_return co_await AwaitFlushed(last);
}

Task<LogPosition> Shard::FreezeNow() {
  LogPosition last;
  std::function<void()> freeze = [this, &last] {
    FreezeActive();
    last = commit_log_->last_decided();
  };
  co_await OnStrand(std::move(freeze));
  views_.Reclaim();
  co_return last;
}

Task<Status> Shard::AwaitFlushed(LogPosition last) {
  constexpr uint64_t kPollNanos = 1'000'000;
  const uint64_t failed = failed_attempts_.load();
  uint64_t written = 0;
  uint64_t waited = 0;  // Since something was written, in turns as WatchChange counts them.
  bool may_flush = false;
  while (true) {
    const bool might_flush = may_flush;
    {
      ViewPin view = views_.Pin();
      if (view->frozen.empty() || view->frozen.back().last > last) co_return Status();
      may_flush = MayFlush(*view);
    }
    const uint64_t written_before = std::exchange(written, background_.bytes(BackgroundWork::kFlush));
    waited = written == written_before && may_flush == might_flush ? waited + kPollNanos : 0;
    if (waited >= context_.io_deadline_ns) {
      const std::string shard = "shard " + std::to_string(id_.value);
      if (may_flush) {
        co_return Status::DeadlineExceeded(shard + " has flushed nothing for " +
                                           std::to_string(context_.io_deadline_ns / 1'000'000) + " ms (F26)");
      }
      co_return Status::Busy(shard +
                             " flushes nothing before it is known whether a range has moved to it (F26)");
    }
    if (closing_.load()) co_return Status::Closed("the store is closing");
    if (commit_log_->fenced()) PARTITA_CO_TRY(commit_log_->fence_reason());  // Ok: it has ended meanwhile.
    PARTITA_CO_TRY(FailedSince(failed));
    ScheduleFlush();
    co_await SleepFor(kPollNanos);
  }
}

}  // namespace partita

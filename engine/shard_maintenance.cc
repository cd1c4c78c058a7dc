#include <algorithm>
#include <set>

#include "engine/base/coding.h"
#include "engine/base/user_key.h"
#include "engine/shard.h"
#include "memtable/memtable_iterator.h"

// What happens behind the writers: each change of the file set is installed. Flushes are in shard_flush.cc,
// compactions in shard_compaction.cc.
//
// Installing an edit (InstallEdit), under structure_mutex_:
//  1. Work out the level sets after the edit, and the manifest that names them.
//  2. Save the manifest; only then is anything referred to or let go (F25). After a failed save the
//     value on disk is the old or the new one, so inputs and outputs both stay, and the save is
//     repeated until it succeeds (F23).
//  3. On the strand, publish a view with the new level sets and without the flushed memtable, under
//     a new structure counter.
//  4. Remove objects that no manifest refers to any more; trim the log.

namespace partita {

namespace {

// How long installs wait for writers that resolved in vain twice (DESIGN 2).
constexpr uint64_t kHoldNanosMax = 50'000'000;

// Whether the memtable that the file was written from has a row, or a tombstone, within its bounds.
bool HoldsRowOf(const Memtable& memtable, const FileRef& file) {
  MemtableIterator at(memtable, Direction::kForward, kVersionMax);
  return at.Seek(file.first()) == IterState::kEntry && at.entry().user_key < file.end();
}

}  // namespace

// ---- Views.

std::unique_ptr<ReadView> Shard::CopyView(const ReadView& view) {
  auto copy = std::make_unique<ReadView>();
  static_cast<ReadPicture&>(*copy) = view;
  return copy;
}

Task<void> Shard::OnStrand(std::function<void()> work) { return partita::OnStrand(strand_, std::move(work)); }

Task<void> Shard::ChangeStructure(ViewChange change) {
  std::function<void()> work = [this, &change] {
    std::unique_ptr<ReadView> next = CopyView(views_.current());
    ++next->structure_counter;
    change(next.get());
    views_.Show(std::move(next));
  };
  co_await OnStrand(std::move(work));
  views_.Reclaim();
}

void Shard::FreezeActive() {
  PARTITA_ASSERT(strand_.HeldByThisThread());
  const ReadView& old = views_.current();
  frozen_at_segment_ = log_->newest_segment();
  bool empty = old.active->empty();
  // Memory that refused or repeated batches took comes back with a new memtable only.
  if (empty && old.active->arena().reserved_bytes() == 0) return;
  std::unique_ptr<ReadView> next = CopyView(old);
  next->active = std::make_shared<Memtable>(context_.memtable_pool);
  if (empty) return views_.Show(std::move(next));
  uint64_t bytes = old.active->memory_used();
  next->frozen.insert(next->frozen.begin(), MemtableRef{old.active, commit_log_->last_decided(), bytes});
  frozen_bytes_.fetch_add(bytes);
  UpdateMemoryPressure(next->active->memory_used());
  const bool is_behind = next->frozen.size() > 1;
  views_.Show(std::move(next));
  ScheduleFlush();
  if (is_behind) ScheduleFlushBeside();
}

void Shard::FreezeForWrite() {
  FreezeActive();
  ReclaimSoon();
}

// A point read that has lost its core keeps a view, with all its memtables and files, that it leaves without
// a word.
void Shard::ReclaimSoon() {
  if (closing_.load() || reclaims_soon_.exchange(true)) return;
  tasks_.Spawn(context_.runtime.shard_executor(id_), ReclaimLater(this));
}

Task<void> Shard::ReclaimLater(Shard* self) {
  constexpr uint64_t kSoonNanos = 10'000'000;
  co_await SleepFor(kSoonNanos);
  // What goes with a view takes its time: not on the worker.
  self->tasks_.Spawn(self->context_.runtime.background(BackgroundClass::kOrdinary), ReclaimViews(self));
}

Task<void> Shard::ReclaimViews(Shard* self) {
  self->reclaims_soon_.store(false);
  self->views_.Reclaim();
  co_return;
}

void Shard::ScheduleCleanUp() {
  // One at a time: each holds a helper while it waits for the lock of structure, and there are few for all.
  if (closing_.load() || cleans_up_soon_.exchange(true)) return;
  tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), CleanUp(this));
}

Task<void> Shard::CleanUp(Shard* self) {
  AsyncMutex::Guard structure = co_await self->structure_mutex_.Lock();
  self->cleans_up_soon_.store(false);  // What is asked for from here on may come too late for this one.
  Status installed = co_await self->InstallEdit(Install(), std::move(structure));
  self->NoteBackgroundError(installed);
}

void Shard::NoteBackgroundError(const Status& status) {
  if (status.ok()) return;
  std::lock_guard lock(set_aside_mutex_);
  last_background_error_ = status;
}

void Shard::NoteFlush(const Status& status, LogPosition last) {
  std::lock_guard lock(set_aside_mutex_);
  if (last < flush_noted_) return;  // A newer one is the oldest by now.
  flush_noted_ = last;
  flush_error_ = status;
}

void Shard::NoteSave(const Status& status) {
  if (!status.ok()) saves_failed_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(set_aside_mutex_);
  save_error_ = status;
}

void Shard::NoteCompaction(const Status& status) {
  if (!status.ok()) compactions_failed_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(set_aside_mutex_);
  compaction_error_ = status;
}

Status Shard::OutOfSpace() {
  std::lock_guard lock(set_aside_mutex_);
  return Status::NoSpace("shard " + std::to_string(id_.value) +
                         " takes no writes until its memtables can be flushed again, then by itself (F56): " +
                         last_background_error_.message());
}

Status Shard::FlushesBehind() {
  std::lock_guard lock(set_aside_mutex_);
  std::string text = "no memtable memory came free for 10 s; flushes are behind";
  if (!last_background_error_.ok())
    text += "; what failed last in the background: " + last_background_error_.message();
  return Status::Busy(std::move(text));
}

void Shard::NoteFailedAttempt(const Status& status) {
  if (status.ok()) return;
  NoteBackgroundError(status);
  failed_attempts_.fetch_add(1);
}

Status Shard::FailedSince(uint64_t seen) {
  if (failed_attempts_.load() == seen) return Status();
  std::lock_guard lock(set_aside_mutex_);
  return last_background_error_;
}

void Shard::RecordLogSegment() {
  uint64_t newest = log_->newest_segment();
  uint64_t asked = segment_asked_.load(std::memory_order_relaxed);
  if (newest <= asked || closing_.load() || !segment_asked_.compare_exchange_strong(asked, newest)) return;
  ScheduleCleanUp();
}

// ---- Installing.

std::vector<FileMeta> Shard::FilesOf(const ReadView& view) {
  size_t count = 0;
  for (const RangeView& range : view.ranges) count += range.levels->file_count();
  std::vector<FileMeta> files;
  files.reserve(count);
  for (const RangeView& range : view.ranges) {
    for (uint32_t level = 0; level < kLevels; ++level) {
      for (const FileRef& file : range.levels->level(level)) {
        files.push_back(FileMeta{level, file.lower, file.upper, file.info});
      }
    }
  }
  return files;
}

Manifest Shard::BuildManifest(const ReadView& view, LogPosition replay_from) const {
  Manifest manifest;
  manifest.shard = id_;
  manifest.layout = context_.layout;
  manifest.replay_from = replay_from;
  // The log alone may know less: after a change of layout it is new, and what others exposed is not.
  manifest.version_ceiling = std::max(log_->durable_ceiling(), version_floor_);
  manifest.log_segment = std::max(log_->newest_segment(), log_segment_.load());
  manifest.files = FilesOf(view);
  if (view.move_attempt < prepared_.attempt) manifest.prepared = prepared_;
  return manifest;
}

Result<Shard::ChangedLevels> Shard::ApplyInstall(const Install& install, ReadView* next) {
  ChangedLevels changed;
  for (RangeView& range : next->ranges) {
    LevelEdit edit;
    const auto compacted =
        std::lower_bound(install.compacted.begin(), install.compacted.end(), range.lower,
                         [](const auto& one, const std::string& lower) { return one.range_lower < lower; });
    if (compacted != install.compacted.end() && compacted->range_lower == range.lower &&
        compacted->epoch == range.epoch) {
      edit = compacted->edit;
    }
    // One file may be shared by several ranges: each gets its own virtual reference (DESIGN 6). Not those
    // that it spans without a row: they would have to merge it for nothing, and be damaged with it.
    for (const FileRef& flushed : install.flushed_files) {
      if (!flushed.OverlapsBounds(range.lower, range.upper)) continue;
      FileRef file = flushed;
      if (!CutTo(range.lower, range.upper, &file) || !HoldsRowOf(*install.flushed, file)) continue;
      edit.added.push_back({0, std::move(file)});
    }
    if (edit.added.empty() && edit.removed.empty()) continue;
    PARTITA_ASSIGN(range.levels, range.levels->Apply(edit));
    changed[range.lower] = range.levels;
  }
  return changed;
}

// Adds what the manifest names to what has references before it is saved. kNoSpace, kIoError, kUnknown: of
// what is on disk, all have references.
Task<Status> Shard::SaveManifest(const Manifest& manifest, bool once) {
  for (uint64_t pause = kRetryNanosMin;; pause = std::min(pause * 2, kRetryNanosMax)) {
    Status saved = co_await manifest_store_.Save(manifest);
    if (saved.ok()) break;
    NoteFailedAttempt(saved);
    NoteSave(saved);
    if (saved.code() == Code::kNoSpace && !once) out_of_space_.store(true);
    // Closing: what is on disk is the old manifest or the new one, and the files of both are there.
    if (once || closing_.load()) co_return saved;
    co_await SleepFor(pause);
  }
  out_of_space_.store(false);
  log_segment_.store(manifest.log_segment);
  replay_from_ = manifest.replay_from;
  NoteSave(Status());
  co_return Status();
}

Task<Status> Shard::InstallEdit(Install install, AsyncMutex::Guard structure) {
  if (!structure.held()) structure = co_await structure_mutex_.Lock();
  if (install.prepared) prepared_ = std::move(*install.prepared);
  if (install.forgotten_attempt != 0 && install.forgotten_attempt == prepared_.attempt) prepared_ = {};
  ChangedLevels changed;
  Manifest manifest;
  {
    ViewPin view = views_.Pin();
    std::unique_ptr<ReadView> next = CopyView(*view);
    PARTITA_CO_ASSIGN(changed, ApplyInstall(install, next.get()));
    manifest = BuildManifest(*next, std::max(install.replay_from, replay_from_));
  }

  std::vector<ObjectId> now = manifest.Objects();
  std::vector<ObjectId> added, dropped;
  std::set_difference(now.begin(), now.end(), referenced_.begin(), referenced_.end(),
                      std::back_inserter(added));
  std::set_difference(referenced_.begin(), referenced_.end(), now.begin(), now.end(),
                      std::back_inserter(dropped));
  for (ObjectId id : added) context_.references.Add(id);
  Status saved = co_await SaveManifest(manifest, install.once);
  if (!saved.ok()) {  // The manifest on disk is the old one or the new one.
    now.insert(now.end(), dropped.begin(), dropped.end());
    std::sort(now.begin(), now.end());
    referenced_ = std::move(now);
    co_return saved;
  }
  referenced_ = std::move(now);

  const bool changes = !changed.empty() || install.flushed != nullptr;
  for (uint64_t waited = 0; changes && hold_installs_.load() > 0 && waited < kHoldNanosMax;
       waited += kHoldNanosMax / 50) {
    co_await SleepFor(kHoldNanosMax / 50);
  }
  ViewChange change = [this, &changed, &install](ReadView* view) {
    for (RangeView& range : view->ranges) {
      auto levels = changed.find(range.lower);
      if (levels != changed.end()) range.levels = levels->second;
    }
    if (install.flushed != nullptr) {
      PARTITA_ASSERT(!view->frozen.empty() && view->frozen.back().table == install.flushed);
      frozen_bytes_.fetch_sub(view->frozen.back().bytes);
      view->frozen.pop_back();
    }
  };
  if (changes) co_await ChangeStructure(std::move(change));
  UpdateDebt(*views_.Pin());
  co_await RemoveObjects(std::move(dropped), install);
  if (install.flushed != nullptr) {
    co_await commit_log_->Trim(install.replay_from);
    WatchLogSurplus();
  }
  co_return Status();
}

Task<void> Shard::RemoveObjects(std::vector<ObjectId> dropped, const Install& install) {
  // F25: the edit that let them go is durable. Readers that still have them open go on. A file that could not
  // be read is let go only where all its tables were dropped: it was no input of any job (F46).
  for (ObjectId id : dropped) {
    if (!context_.references.Drop(id)) continue;
    NoteBackgroundError(co_await context_.objects.Remove(id));
  }
  // What was written for ranges that are not here any more, or not the same.
  std::vector<ObjectId> written;
  for (const FileRef& file : install.flushed_files) written.push_back(file.info->id);
  for (const Install::Compacted& compacted : install.compacted) {
    if (!compacted.new_files) continue;
    for (const LevelEdit::Added& added : compacted.edit.added) written.push_back(added.file.info->id);
  }
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  for (ObjectId id : written) {
    if (!context_.references.Contains(id)) NoteBackgroundError(co_await context_.objects.Remove(id));
  }
}

// ---- For flushes and compactions, and for the log.

JobContext Shard::MakeJobContext(const ReadView& view, ObjectStore& objects, BackgroundWork work) {
  JobContext job{objects, context_.cache, context_.store, context_.next_object, nullptr, context_.zones};
  std::set<uint32_t> live;
  for (const RangeView& range : view.ranges) live.insert(LoadBe32(range.lower.data()));
  job.is_dead_table = [live = std::move(live)](TableId table) { return !live.contains(table.value); };
  job.target_file_bytes = context_.table_file_bytes;
  job.entry_bytes_min = context_.entry_bytes_min;
  job.read_ahead = &context_.job_reads;
  job.start_beside = Beside(BackgroundClass::kOrdinary);
  job.note_work = [this, work](uint64_t bytes) { background_.Note(work, bytes); };
  job.cancel = &closing_;
  return job;
}

// On the shard's worker, as it only waits for the disk: where writers press, the helpers are all in flushes
// and merges that last longer than a segment. While the reserve is low a segment is made when a log needs it,
// and not before.
void Shard::PrepareLogIfDue() {
  if (!log_->needs_prepare() || closing_.load() || context_.reserve.low()) return;
  if (context_.runtime.clock().MonotonicNanos() < prepare_after_ns_.load()) return;
  if (prepare_running_.exchange(true)) return;
  tasks_.Spawn(context_.runtime.shard_executor(id_), PrepareLog(this));
}

Task<void> Shard::PrepareLog(Shard* self) {
  const Status prepared = co_await self->log_->PrepareNext();
  self->NoteBackgroundError(prepared);
  if (!prepared.ok()) {
    self->prepare_after_ns_.store(self->context_.runtime.clock().MonotonicNanos() + kRetryNanosMax);
  }
  self->prepare_running_.store(false);
}

// What a log of small synchronous writes lets go of at one flush it needs again until the next. When it has
// not gone on in another file for a minute it does not, nor may it have it while space is short.
void Shard::WatchLogSurplus() {
  if (!log_->has_surplus() || closing_.load() || surplus_watched_.exchange(true)) return;
  tasks_.Spawn(context_.runtime.shard_executor(id_), ReturnLogSurplus(this));
}

Task<void> Shard::ReturnLogSurplus(Shard* self) {
  constexpr uint64_t kPollNanos = 50'000'000, kUnusedNanos = 60'000'000'000;
  Clock& clock = self->context_.runtime.clock();
  uint64_t segment = 0, due_ns = 0;
  while (self->log_->has_surplus() && !self->closing_.load()) {
    const uint64_t newest = self->log_->newest_segment();
    if (std::exchange(segment, newest) != newest) due_ns = clock.RecentNanos() + kUnusedNanos;
    if (clock.RecentNanos() >= due_ns || self->context_.reserve.low()) {
      self->NoteBackgroundError(co_await self->log_->RemoveSurplus());
    }
    co_await SleepFor(kPollNanos);
  }
  self->surplus_watched_.store(false);
  self->WatchLogSurplus();  // For a flush that saw this running.
}

// ---- Close and reports.

Task<Status> Shard::Close() {
  BeginClose();
  co_await tasks_.Join();
  co_await RemoveWritten();  // Their memtables are replayed.
  Status closed = co_await commit_log_->Close();
  if (closed.ok() && !context_.read_only && log_->newest_segment() > log_segment_.load()) {
    ViewPin view = views_.Pin();
    Manifest manifest = BuildManifest(*view, replay_from_);
    view.Release();
    Status recorded = co_await manifest_store_.Save(manifest);
    (void)recorded;  // Nothing is lost by that: the next life finds the segment and records it.
  }
  views_.Reclaim();
  co_return closed;
}

std::vector<FileMeta> Shard::Files() {
  ViewPin view = views_.Pin();
  return FilesOf(*view);
}

std::vector<FileRef> Shard::FileRefs() {
  ViewPin view = views_.Pin();
  std::vector<FileRef> files;
  for (const RangeView& range : view->ranges) {
    for (size_t level = 0; level < kLevels; ++level) {
      for (const FileRef& file : range.levels->level(level)) files.push_back(file);
    }
  }
  return files;
}

}  // namespace partita

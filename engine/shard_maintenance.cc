#include <algorithm>

#include "compaction/flush_job.h"
#include "compaction/merge_job.h"
#include "compaction/pacing.h"
#include "engine/base/coding.h"
#include "engine/base/user_key.h"
#include "engine/shard.h"

// What happens behind the writers: frozen memtables become tables, tables are compacted, and each
// change of the file set is installed.
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

// A failed flush or manifest save is tried again after 50 ms, doubling up to 2 s (F22, F56).
constexpr uint64_t kRetryNanosMin = 50'000'000;
constexpr uint64_t kRetryNanosMax = 2'000'000'000;

// How long installs wait for writers that resolved in vain twice (DESIGN 2).
constexpr uint64_t kHoldNanosMax = 50'000'000;

struct StrandWork : Strand::Request {
  std::function<void()> work;
  explicit StrandWork(std::function<void()> w) : work(std::move(w)) {
    decide = [](Strand::Request* self) { static_cast<StrandWork*>(self)->work(); };
  }
};

}  // namespace

struct Shard::CompactionWork {
  std::string range_lower;
  std::string range_upper;
  std::shared_ptr<const LevelSet> levels;
  CompactionPlan plan;
  JobContext context;
  RetentionPolicy retention;
  JobResult result;
  bool more = true;  // Go on with what is due next.
};

// ---- Views.

std::unique_ptr<ReadView> Shard::CopyView(const ReadView& view) {
  auto copy = std::make_unique<ReadView>();
  copy->active = view.active;
  copy->frozen = view.frozen;
  copy->ranges = view.ranges;
  copy->structure_counter = view.structure_counter;
  return copy;
}

Task<void> Shard::OnStrand(std::function<void()> work) {
  StrandWork request(std::move(work));
  co_await strand_.Run(&request);
}

Task<void> Shard::ChangeStructure(ViewChange change) {
  std::function<void()> work = [this, &change] {
    std::unique_ptr<ReadView> next = CopyView(views_.current());
    ++next->structure_counter;
    change(next.get());
    views_.Publish(std::move(next));
  };
  co_await OnStrand(std::move(work));
}

void Shard::FreezeActive() {
  PARTITA_ASSERT(strand_.HeldByThisThread());
  const ReadView& old = views_.current();
  bool empty = old.active->empty();
  // Memory that refused or repeated batches took comes back with a new memtable only.
  if (empty && old.active->arena().reserved_bytes() == 0) return;
  std::unique_ptr<ReadView> next = CopyView(old);
  next->active = std::make_shared<Memtable>(context_.memtable_pool);
  if (empty) return views_.Publish(std::move(next));
  uint64_t bytes = old.active->memory_used();
  next->frozen.insert(next->frozen.begin(), MemtableRef{old.active, commit_log_->last_decided(), bytes});
  frozen_bytes_.fetch_add(bytes);
  UpdatePressure();
  views_.Publish(std::move(next));
  ScheduleFlush();
}

Task<void> Shard::AddRanges(std::vector<RangeDescriptor> ranges, Version above) {
  ViewChange change = [this, &ranges, above](ReadView* view) {
    clock_->RaiseTo(above);
    for (RangeDescriptor& range : ranges) {
      view->ranges.push_back(
          RangeView{range.lower, range.upper, range.epoch, std::make_shared<const LevelSet>()});
    }
    std::sort(view->ranges.begin(), view->ranges.end(),
              [](const RangeView& a, const RangeView& b) { return a.lower < b.lower; });
  };
  co_await ChangeStructure(std::move(change));
}

Task<void> Shard::DropTable(TableId table) {
  std::string prefix = TableLowerBound(table);
  bool held = false;
  ViewChange change = [&prefix, &held](ReadView* view) {
    held = std::erase_if(view->ranges,
                         [&](const RangeView& range) { return range.lower.starts_with(prefix); }) > 0;
  };
  co_await ChangeStructure(std::move(change));
  // The files go with the next manifest, which is written behind the caller's back.
  if (held && !closing_.load())
    tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), CleanUp(this));
}

Task<void> Shard::CleanUp(Shard* self) {
  Status installed = co_await self->InstallEdit(Install());
  self->NoteBackgroundError(installed);
}

void Shard::NoteBackgroundError(const Status& status) {
  if (status.ok()) return;
  std::lock_guard lock(set_aside_mutex_);
  last_background_error_ = status;
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
  tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), CleanUp(this));
}

// ---- Installing.

Manifest Shard::BuildManifest(const ReadView& view, LogPosition replay_from) const {
  Manifest manifest;
  manifest.shard = id_;
  manifest.layout = context_.layout;
  manifest.replay_from = replay_from;
  // The log alone may know less: after a change of layout it is new, and what others exposed is not.
  manifest.version_ceiling = std::max(log_->durable_ceiling(), version_floor_);
  manifest.log_segment = std::max(log_->newest_segment(), log_segment_.load());
  for (const RangeView& range : view.ranges) {
    for (uint32_t level = 0; level < kLevels; ++level) {
      for (const FileRef& file : range.levels->level(level)) {
        manifest.files.push_back(FileMeta{level, file.lower, file.upper, file.info});
      }
    }
  }
  return manifest;
}

Task<Status> Shard::InstallEdit(Install install) {
  AsyncMutex::Guard structure = co_await structure_mutex_.Lock();
  std::map<std::string, std::shared_ptr<const LevelSet>> changed;
  Manifest manifest;
  {
    ViewPin view = views_.Pin();
    std::unique_ptr<ReadView> next = CopyView(*view);
    for (RangeView& range : next->ranges) {
      auto edit = install.edits.find(range.lower);
      if (edit == install.edits.end()) continue;
      PARTITA_CO_ASSIGN(range.levels, range.levels->Apply(edit->second));
      changed[range.lower] = range.levels;
    }
    LogPosition replay_from = install.replay_from.value > 0 ? install.replay_from : replay_from_;
    manifest = BuildManifest(*next, replay_from);
  }

  std::vector<ObjectId> now;
  for (const FileMeta& file : manifest.files) now.push_back(file.info.id);
  std::sort(now.begin(), now.end());
  now.erase(std::unique(now.begin(), now.end()), now.end());
  std::vector<ObjectId> added, dropped;
  std::set_difference(now.begin(), now.end(), referenced_.begin(), referenced_.end(),
                      std::back_inserter(added));
  std::set_difference(referenced_.begin(), referenced_.end(), now.begin(), now.end(),
                      std::back_inserter(dropped));
  for (ObjectId id : added) context_.references.Add(id);

  for (uint64_t pause = kRetryNanosMin;; pause = std::min(pause * 2, kRetryNanosMax)) {
    Status saved = co_await manifest_store_.Save(manifest);
    if (saved.ok()) break;
    NoteFailedAttempt(saved);
    if (saved.code() == Code::kNoSpace) out_of_space_.store(true);
    // Closing: what is on disk is the old manifest or the new one, and the files of both are there.
    if (closing_.load()) co_return saved;
    co_await SleepFor(pause);
  }
  out_of_space_.store(false);
  log_segment_.store(manifest.log_segment);
  replay_from_ = manifest.replay_from;
  referenced_ = std::move(now);

  for (uint64_t waited = 0; hold_installs_.load() > 0 && waited < kHoldNanosMax;
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
  co_await ChangeStructure(std::move(change));
  UpdateDebt(*views_.Pin());

  // F25: the edit that let them go is durable. Readers that still have them open go on.
  for (ObjectId id : dropped) {
    if (!context_.references.Drop(id)) continue;
    NoteBackgroundError(co_await context_.objects.Remove(id));
  }
  if (install.replay_from.value > 0) co_await commit_log_->Trim(install.replay_from);
  co_return Status();
}

// ---- Flushes.

void Shard::ScheduleFlush() {
  if (closing_.load() || flush_running_.exchange(true)) return;
  tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), FlushLoop(this));
}

Task<void> Shard::FlushLoop(Shard* self) {
  uint64_t pause = kRetryNanosMin;
  while (!self->closing_.load()) {
    bool any = false;
    {
      ViewPin view = self->views_.Pin();
      any = !view->frozen.empty();
    }
    if (!any) {
      self->flush_running_.store(false);
      // One frozen between the look and the store saw us running.
      ViewPin view = self->views_.Pin();
      if (view->frozen.empty() || self->flush_running_.exchange(true)) co_return;
      continue;
    }
    Status flushed = co_await self->FlushOldest();
    self->NoteFailedAttempt(flushed);
    if (!flushed.ok()) {
      if (flushed.code() == Code::kNoSpace) self->out_of_space_.store(true);
      co_await SleepFor(pause);
      pause = std::min(pause * 2, kRetryNanosMax);
      continue;
    }
    pause = kRetryNanosMin;
    self->ScheduleCompaction();
    if (self->log_->needs_prepare() && !self->prepare_running_.exchange(true)) {
      self->tasks_.Spawn(self->context_.runtime.background(BackgroundClass::kOrdinary), PrepareLog(self));
    }
  }
  self->flush_running_.store(false);
}

Task<void> Shard::PrepareLog(Shard* self) {
  self->NoteBackgroundError(co_await self->log_->PrepareNext());
  self->prepare_running_.store(false);
}

Task<Status> Shard::FlushOldest() {
  ViewPin view = views_.Pin();
  if (view->frozen.empty()) co_return Status();
  MemtableRef oldest = view->frozen.back();
  // A memtable becomes a table only after the log is durable past its last position: else a table
  // could hold what a crash takes back from the log (F12, M27).
  PARTITA_CO_TRY(co_await commit_log_->FlushThrough(oldest.last));
  PARTITA_CO_ASSIGN(std::vector<FileRef> files, co_await WriteMemtable(*oldest.table, *view));
  Install install;
  install.flushed = oldest.table;
  install.replay_from = LogPosition(oldest.last.value + 1);
  for (FileRef& file : files) {
    bytes_flushed_.fetch_add(file.info.file_size, std::memory_order_relaxed);
    for (const RangeView& range : view->ranges) {
      if (!range.Contains(file.lower)) continue;
      install.edits[range.lower].added.push_back({0, file});
      break;
    }
  }
  view.Release();
  PARTITA_CO_TRY(co_await InstallEdit(std::move(install)));
  flushes_.fetch_add(1, std::memory_order_relaxed);
  co_return Status();
}

JobContext Shard::MakeJobContext(const ReadView& view) {
  JobContext job{context_.objects,     context_.cache, context_.store,
                 context_.next_object, nullptr,        context_.zones};
  std::set<uint32_t> live;
  for (const RangeView& range : view.ranges) live.insert(LoadBe32(range.lower.data()));
  job.is_dead_table = [live = std::move(live)](TableId table) { return !live.contains(table.value); };
  job.target_file_bytes = context_.table_file_bytes;
  job.cancel = &closing_;
  return job;
}

Task<Result<std::vector<FileRef>>> Shard::WriteMemtable(const Memtable& memtable, const ReadView& view) {
  FlushSpec spec;
  spec.entries = memtable.NewIterator(Direction::kForward);
  spec.entries_expected = memtable.entry_count();
  spec.retention.visible = commit_log_ == nullptr ? memtable.version_max() : commit_log_->visible_version();
  for (const RangeView& range : view.ranges) {
    for (std::string& cut : FlushCutPoints(ShapeOfRange(range), Picker()))
      spec.cut_points.push_back(std::move(cut));
  }
  FlushJob job(MakeJobContext(view), std::move(spec));
  PARTITA_CO_ASSIGN(JobResult result, co_await job.Run());
  std::vector<FileRef> files;
  for (const LevelEdit::Added& added : result.edit.added) {
    // One file may be shared by several ranges: each gets its own virtual reference (DESIGN 6).
    for (const RangeView& range : view.ranges) {
      FileRef file = added.file;
      file.lower = range.lower;
      file.upper = range.upper;
      bool holds =
          file.info.largest >= range.lower && (range.upper.empty() || file.info.smallest < range.upper);
      if (holds) files.push_back(std::move(file));
    }
  }
  co_return files;
}

Task<Status> Shard::FlushMemtables() {
  uint64_t failed = failed_attempts_.load();
  std::function<void()> freeze = [this] { FreezeActive(); };
  co_await OnStrand(std::move(freeze));
  while (true) {
    bool idle = false;
    {
      ViewPin view = views_.Pin();
      idle = view->frozen.empty();
    }
    if (idle) co_return Status();
    if (closing_.load()) co_return Status::Closed("the store is closing");
    if (commit_log_->fenced()) co_return commit_log_->fence_reason();
    PARTITA_CO_TRY(FailedSince(failed));
    ScheduleFlush();
    co_await SleepFor(1'000'000);
  }
}

// ---- Compactions.

PickerOptions Shard::Picker() const {
  PickerOptions options;
  options.flush_bytes = std::min(context_.memtable_bytes, context_.memtable_data_bytes);
  options.target_file_bytes = context_.table_file_bytes;
  return options;
}

LevelShape Shard::ShapeOfRange(const RangeView& range) {
  std::set<ObjectId> aside;
  {
    std::lock_guard lock(set_aside_mutex_);
    aside = set_aside_;
  }
  auto condition = [&aside](uint32_t, const FileRef& file) {
    return FileCondition{aside.contains(file.info.id), 0};
  };
  Version droppable = commit_log_ == nullptr ? Version() : commit_log_->visible_version();
  return ShapeOf(*range.levels, droppable, {}, condition);
}

void Shard::UpdateDebt(const ReadView& view) {
  uint64_t debt_nanos = 0;
  uint64_t pending = 0;
  for (const RangeView& range : view.ranges) {
    if (range.levels->empty()) continue;
    LevelShape shape = ShapeOfRange(range);
    CompactionDebt debt = DebtOf(shape, Picker());
    pending += debt.pending_bytes;
    debt_nanos = std::max(debt_nanos, WriteDelayNanos(debt, DebtBudget(shape, Picker()), 1024));
  }
  debt_bytes_.store(pending, std::memory_order_relaxed);
  debt_nanos_per_kib_.store(debt_nanos, std::memory_order_relaxed);
  UpdatePressure();
}

void Shard::UpdatePressure() {
  uint64_t share = std::max<uint64_t>(context_.memtable_pool.capacity_bytes() / context_.shard_count, 1);
  // The active memtable counts as full: it will be.
  double used = static_cast<double>(frozen_bytes_.load() + context_.memtable_bytes);
  pacer_.SetPressure(used / static_cast<double>(share), debt_nanos_per_kib_.load(std::memory_order_relaxed));
}

std::shared_ptr<Shard::CompactionWork> Shard::PickWork() {
  ViewPin view = views_.Pin();
  std::shared_ptr<CompactionWork> best;
  for (const RangeView& range : view->ranges) {
    if (range.levels->empty()) continue;
    std::optional<CompactionPlan> plan = PickCompaction(ShapeOfRange(range), Picker());
    if (!plan.has_value() || (best != nullptr && best->plan.score >= plan->score)) continue;
    best = std::make_shared<CompactionWork>(
        CompactionWork{range.lower, range.upper, range.levels, *plan, MakeJobContext(*view), {}, {}});
  }
  if (best != nullptr) best->retention.visible = commit_log_->visible_version();
  return best;
}

Task<Status> Shard::RunWork(CompactionWork* work) {
  // Only with room for its output (F57): one that fails at the end has meanwhile taken from flushes
  // what they need. Where the room is unknown it begins.
  if (!work->plan.trivial_move) {
    Result<uint64_t> room = co_await context_.runtime.files().FreeBytes();
    if (room.ok() && *room < work->plan.input_bytes) {
      co_return Status::NoSpace("a compaction of " + std::to_string(work->plan.input_bytes) +
                                " bytes waits for room: " + std::to_string(*room) +
                                " bytes of the disk are free (F57)");
    }
  }
  MergeSpec spec;
  spec.plan = work->plan;
  spec.levels = work->levels;
  spec.retention = work->retention;
  // Memtables and the replayable log hold only what is newer than any table of this range.
  spec.droppable_before = Version(work->retention.visible.value);
  MergeJob job(work->context, std::move(spec));
  Result<JobResult> result = co_await job.Run();
  if (!result.ok()) {
    std::optional<PlanInput> failed = job.failed_input();
    if (failed.has_value()) {
      std::lock_guard lock(set_aside_mutex_);
      set_aside_.insert(failed->id);
    }
    co_return result.status();
  }
  work->result = std::move(result).value();
  co_return Status();
}

Task<Status> Shard::InstallWork(CompactionWork* work) {
  Install install;
  install.edits[work->range_lower] = work->result.edit;
  // The outputs serve this range alone; their references say so, as resharding goes by them.
  for (LevelEdit::Added& added : install.edits[work->range_lower].added) {
    if (!added.file.lower.empty()) continue;
    added.file.lower = work->range_lower;
    added.file.upper = work->range_upper;
  }
  PARTITA_CO_TRY(co_await InstallEdit(std::move(install)));
  compactions_.fetch_add(1, std::memory_order_relaxed);
  bytes_compaction_read_.fetch_add(work->result.statistics.bytes_in, std::memory_order_relaxed);
  bytes_compaction_written_.fetch_add(work->result.statistics.bytes_written, std::memory_order_relaxed);
  co_return Status();
}

void Shard::ScheduleCompaction() {
  if (closing_.load() || compaction_running_.exchange(true)) return;
  bool ordinary = debt_nanos_per_kib_.load() > 0;
  BackgroundClass background = ordinary ? BackgroundClass::kOrdinary : BackgroundClass::kIdle;
  tasks_.Spawn(context_.runtime.background(background), CompactInBackground(this));
}

Task<void> Shard::CompactInBackground(Shard* self) {
  std::shared_ptr<CompactionWork> work;
  if (!self->closing_.load()) work = self->PickWork();
  if (work == nullptr) {
    self->compaction_running_.store(false);
    // A flush that installed between the look and the store saw us running.
    if (!self->closing_.load() && self->PickWork() != nullptr) self->ScheduleCompaction();
    co_return;
  }
  Status done = co_await self->RunWork(work.get());
  if (!done.ok()) {
    // The next flush asks again; what could not be read is set aside (F22, F46).
    self->NoteFailedAttempt(done);
    self->compaction_running_.store(false);
    co_return;
  }
  // Installing takes locks that flushes wait for: not on an idle-class thread (DESIGN 7).
  self->tasks_.Spawn(self->context_.runtime.background(BackgroundClass::kOrdinary),
                     InstallInBackground(self, std::move(work)));
}

Task<void> Shard::InstallInBackground(Shard* self, std::shared_ptr<CompactionWork> work) {
  Status installed = co_await self->InstallWork(work.get());
  self->NoteFailedAttempt(installed);
  self->compaction_running_.store(false);
  if (installed.ok() && work->more) self->ScheduleCompaction();
}

Task<Status> Shard::CompactAll() {
  uint64_t failed = failed_attempts_.load();
  while (!closing_.load()) {
    PARTITA_CO_TRY(FailedSince(failed));
    if (compaction_running_.exchange(true)) {
      co_await SleepFor(1'000'000);
      continue;
    }
    std::shared_ptr<CompactionWork> work = PickWork();
    Status done;
    if (work != nullptr) done = co_await RunWork(work.get());
    if (work == nullptr || !done.ok()) {
      compaction_running_.store(false);
      co_return done;
    }
    // Behind us: a save of the manifest is repeated until it succeeds, and we need not wait so long.
    work->more = false;
    tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary),
                 InstallInBackground(this, std::move(work)));
    while (compaction_running_.load() && FailedSince(failed).ok()) co_await SleepFor(100'000);
  }
  co_return Status::Closed("the store is closing");
}

// ---- Close and reports.

Task<Status> Shard::Close() {
  closing_.store(true);
  co_await tasks_.Join();
  Status closed = co_await commit_log_->Close();
  if (closed.ok() && log_->newest_segment() > log_segment_.load()) {
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
  return BuildManifest(*view, LogPosition(1)).files;
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

Status Shard::CheckInvariants() {
  ViewPin view = views_.Pin();
  for (const RangeView& range : view->ranges) PARTITA_TRY(range.levels->CheckInvariants());
  return Status();
}

ShardStatistics Shard::Statistics() {
  ShardStatistics s;
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
  std::set<ObjectId> seen;
  for (const RangeView& range : view->ranges) {
    for (size_t level = 0; level < kLevels; ++level) {
      for (const FileRef& file : range.levels->level(level)) {
        if (!seen.insert(file.info.id).second) continue;
        s.levels[level].files += 1;
        s.levels[level].bytes += file.info.file_size;
        s.levels[level].entries += file.info.entry_count;
        s.levels[level].tombstones += file.info.tombstone_count;
        if (file.table != nullptr) s.resident_table_bytes += file.table->resident_bytes();
      }
    }
  }
  s.writes = writes_.load();
  s.flushes = flushes_.load();
  s.compactions = compactions_.load();
  s.bytes_user = bytes_user_.load();
  s.bytes_flushed = bytes_flushed_.load();
  s.bytes_compaction_read = bytes_compaction_read_.load();
  s.bytes_compaction_written = bytes_compaction_written_.load();
  s.debt_bytes = debt_bytes_.load();
  s.delay_us_total = pacer_.total_us();
  s.delay_us_max = pacer_.longest_us();
  s.fenced = commit_log_->fenced();
  return s;
}

}  // namespace partita

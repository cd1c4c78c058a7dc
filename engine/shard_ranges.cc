#include <algorithm>

#include "compaction/flush_job.h"
#include "engine/base/merging_iterator.h"
#include "engine/base/site.h"
#include "engine/base/user_key.h"
#include "engine/shard.h"

// A shard's ranges come, go, and change their bounds (DESIGN 8). What a move is made of is here; the course
// of one, and why nothing is lost by it, in store_ranges.cc.

namespace partita {

namespace {

// How often a range is flushed before what still comes in is handed over as it is.
constexpr int kFlushRoundsMax = 8;

constexpr uint64_t kLockPollNanos = 100'000;

void AddToView(std::vector<RangeView> added, ReadView* view) {
  std::move(added.begin(), added.end(), std::back_inserter(view->ranges));
  std::sort(view->ranges.begin(), view->ranges.end(),
            [](const RangeView& a, const RangeView& b) { return a.lower < b.lower; });
}

RangeView* RangeAt(std::string_view lower, ReadView* view) {
  for (RangeView& range : view->ranges) {
    if (range.lower == lower) return &range;
  }
  return nullptr;
}

// Of a forward cursor what lies in [lower, upper); an empty upper is no bound.
class IntervalIterator final : public EntryIterator {
 public:
  IntervalIterator(std::unique_ptr<EntryIterator> all, std::string lower, std::string upper)
      : all_(std::move(all)), lower_(std::move(lower)), upper_(std::move(upper)) {}

  IterState SeekToFirst() override {
    all_->Seek(lower_);
    return state();
  }
  IterState Seek(std::string_view user_key) override {
    all_->Seek(std::max<std::string_view>(user_key, lower_));
    return state();
  }
  IterState Next() override {
    all_->Next();
    return state();
  }
  IterState state() const override {
    const IterState state = all_->state();
    const bool beyond = state == IterState::kEntry && !upper_.empty() && all_->entry().user_key >= upper_;
    return beyond ? IterState::kEnd : state;
  }
  Task<Status> Fetch() override { co_return co_await all_->Fetch(); }
  const Entry& entry() const override { return all_->entry(); }

 private:
  std::unique_ptr<EntryIterator> all_;
  const std::string lower_, upper_;
};

// What the memtables hold of the range.
std::vector<std::unique_ptr<EntryIterator>> UnflushedOf(const ReadView& view, const RangeView& range) {
  std::vector<std::unique_ptr<EntryIterator>> sources;
  const auto add = [&](const Memtable& memtable) {
    sources.push_back(std::make_unique<IntervalIterator>(memtable.NewIterator(Direction::kForward),
                                                         range.lower, range.upper));
  };
  add(*view.active);
  for (const MemtableRef& frozen : view.frozen) add(*frozen.table);
  return sources;
}

// Bytes of keys and values; no more are counted than it takes to be above `enough`.
uint64_t UnflushedBytes(const ReadView& view, const RangeView& range, uint64_t enough) {
  uint64_t bytes = 0;
  for (const std::unique_ptr<EntryIterator>& source : UnflushedOf(view, range)) {
    for (IterState at = source->SeekToFirst(); at == IterState::kEntry && bytes <= enough;
         at = source->Next()) {
      bytes += source->entry().user_key.size() + source->entry().value.size();
    }
  }
  return bytes;
}

}  // namespace

Task<void> Shard::AddRanges(std::vector<RangeDescriptor> ranges, Version above) {
  ViewChange change = [this, &ranges, above](ReadView* view) {
    clock_->RaiseTo(above);
    std::vector<RangeView> added;
    for (RangeDescriptor& range : ranges) {
      added.push_back({range.lower, range.upper, range.epoch, std::make_shared<const LevelSet>()});
    }
    AddToView(std::move(added), view);
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
  if (held) ScheduleCleanUp();
}

Status Shard::CheckInvariants() {
  ViewPin view = views_.Pin();
  for (const RangeView& range : view->ranges) PARTITA_TRY(range.levels->CheckInvariants());
  return Status();
}

Task<Result<AsyncMutex::Guard>> Shard::LockStructure() {
  const uint64_t failed = failed_attempts_.load();
  for (uint64_t waited = 0; waited < context_.io_deadline_ns; waited += kLockPollNanos) {
    AsyncMutex::Guard structure = structure_mutex_.TryLock();
    if (structure.held()) co_return structure;
    if (closing_.load()) co_return Status::Closed("the store is closing");
    PARTITA_CO_TRY(FailedSince(failed));
    co_await SleepFor(kLockPollNanos);
  }
  co_return Status::DeadlineExceeded("shard " + std::to_string(id_.value) +
                                     " could not save a change of its files in time");
}

Task<void> Shard::ReshapeRanges(std::vector<RangeDescriptor> ranges, AsyncMutex::Guard structure) {
  PARTITA_ASSERT(structure.held());
  std::vector<RangeView> reshaped;
  {
    ViewPin view = views_.Pin();
    std::vector<std::shared_ptr<const LevelSet>> parts;
    const std::string& upper = ranges.back().upper;
    for (const RangeView& range : view->ranges) {
      const bool within = range.lower >= ranges.front().lower && (upper.empty() || range.lower < upper);
      if (within) parts.push_back(range.levels);
    }
    for (const RangeDescriptor& range : ranges) {
      Result<std::shared_ptr<const LevelSet>> levels = LevelSet::Join(parts, range.lower, range.upper);
      PARTITA_ASSERT(levels.ok());  // The parts are disjoint, so what is cut from them is.
      reshaped.push_back({range.lower, range.upper, range.epoch, std::move(levels).value()});
    }
  }
  ViewChange change = [&reshaped](ReadView* view) {
    const std::string& lower = reshaped.front().lower;
    const std::string& upper = reshaped.back().upper;
    std::erase_if(view->ranges, [&](const RangeView& range) {
      return range.lower >= lower && (upper.empty() || range.lower < upper);
    });
    AddToView(std::move(reshaped), view);
  };
  co_await ChangeStructure(std::move(change));
  UpdateDebt(*views_.Pin());
  ScheduleCompaction();  // One that ran for a range that is not the same any more came to nothing.
}

// ---- Moves.

Task<Status> Shard::PrepareToTake() {
  const LogPosition last = co_await FreezeNow();
  PARTITA_CO_TRY(co_await AwaitFlushed(last));
  // The log may yet hold what no memtable held: records of keys that were not this shard's when it was
  // opened.
  if (SiteIsOn("move.target.wait")) PARTITA_CO_TRY(co_await commit_log_->FlushThrough(last));
  Install install;
  install.replay_from = LogPosition(last.value + 1);
  install.once = true;
  PARTITA_CO_ASSIGN(AsyncMutex::Guard structure, co_await LockStructure());
  co_return co_await InstallEdit(std::move(install), std::move(structure));
}

Task<Status> Shard::FlushRange(std::string lower, uint64_t enough) {
  for (int round = 0; round < kFlushRoundsMax; ++round) {
    {
      ViewPin view = views_.Pin();
      const RangeView* range = view->FindRange(lower);
      if (range == nullptr) co_return Status::Moved("shard does not own the range");
      if (UnflushedBytes(*view, *range, enough) <= enough) co_return Status();
    }
    PARTITA_CO_TRY(co_await FlushMemtables());
  }
  co_return Status();
}

uint64_t Shard::UnflushedOfRange(const std::string& lower, uint64_t enough) {
  ViewPin view = views_.Pin();
  const RangeView* range = view->FindRange(lower);
  return range == nullptr ? 0 : UnflushedBytes(*view, *range, enough);
}

Task<Result<Shard::HandOver>> Shard::FenceRange(std::string lower) {
  HandOver out;
  // While it is held no file of the range goes.
  PARTITA_CO_ASSIGN(out.structure, co_await LockStructure());
  out.fenced_ns = context_.runtime.clock().MonotonicNanos();
  bool found = false;
  ViewChange fence = [&found, &lower](ReadView* view) {
    RangeView* range = RangeAt(lower, view);
    found = range != nullptr;
    if (found) range->fenced = true;
  };
  co_await ChangeStructure(std::move(fence));
  if (!found) co_return Status::Moved("shard does not own the range");
  out.last = commit_log_->last_version();
  co_return out;
}

Task<Status> Shard::HandOverRange(std::string lower, HandOver* out) {
  ViewPin view = views_.Pin();
  const RangeView& range = *view->FindRange(lower);
  for (size_t level = 0; level < kLevels; ++level) {
    for (const FileRef& file : range.levels->level(level)) out->pinned.push_back(file.info.id);
  }
  for (ObjectId id : out->pinned) context_.references.Add(id);
  out->structure.Release();
  // What was decided so far is all that ever will be here, and in memtables, though nobody may see it yet.
  // What is older must not be lost when it survives (F12).
  Status flushed;
  TaskGroup beside;
  if (SiteIsOn("move.source.wait")) {
    beside.Spawn(context_.runtime.shard_executor(id_), FlushLogBeside(this, &flushed));
  }
  const Status written = co_await WriteRest(*view, range, out);
  co_await beside.Join();
  co_return flushed.ok() ? written : flushed;
}

Task<void> Shard::FlushLogBeside(Shard* self, Status* flushed) {
  *flushed = co_await self->commit_log_->FlushAll();
}

// Writes what the memtables hold of the range to tables.
Task<Status> Shard::WriteRest(const ReadView& view, const RangeView& range, HandOver* out) {
  out->levels = range.levels;
  if (UnflushedBytes(view, range, 0) == 0) co_return Status();
  FlushSpec spec;
  spec.entries = std::make_unique<MergingIterator>(UnflushedOf(view, range), Direction::kForward);
  spec.retention.visible = commit_log_->visible_version();
  FlushJob job(MakeJobContext(view, context_.objects), std::move(spec));
  PARTITA_CO_ASSIGN(JobResult rest, co_await job.Run());
  for (LevelEdit::Added& added : rest.edit.added) {
    const bool holds_any = CutTo(range.lower, range.upper, &added.file);
    PARTITA_ASSERT(holds_any);
    context_.references.Add(added.file.info.id);
    out->pinned.push_back(added.file.info.id);
    out->rest_bytes += added.file.info.file_size;
  }
  PARTITA_CO_ASSIGN(out->levels, range.levels->Apply(rest.edit));
  co_return Status();
}

Task<void> Shard::DropHandOver(HandOver range) {
  for (ObjectId id : range.pinned) {
    if (context_.references.Drop(id)) NoteBackgroundError(co_await context_.objects.Remove(id));
  }
}

Task<void> Shard::LiftFence(std::string lower) {
  ViewChange change = [&lower](ReadView* view) {
    if (RangeView* range = RangeAt(lower, view); range != nullptr) range->fenced = false;
  };
  co_await ChangeStructure(std::move(change));
}

Task<Status> Shard::RaiseVersion(Version above) {
  auto payload = std::make_shared<std::string>(kBatchRecordHeaderSize, '\0');
  auto* bytes = reinterpret_cast<uint8_t*>(payload->data());
  BatchRecordWriter writer(bytes, TableId(), RangeEpoch());
  const std::string_view record = writer.Finish();
  Status status;
  LogPosition position;
  std::function<void()> decide = [&] {
    if (commit_log_->fenced()) {
      status = commit_log_->fence_reason();
      return;
    }
    clock_->RaiseTo(above);
    const Version version = clock_->Next();
    SetBatchVersion(bytes, version);
    position = commit_log_->Append({version, DurabilityLevel::kPower, record, payload});
  };
  co_await OnStrand(std::move(decide));
  PARTITA_CO_TRY(status);
  if (!SiteIsOn("move.version.wait")) co_return Status();
  co_return co_await commit_log_->AwaitVisible(position, DurabilityLevel::kPower);
}

Task<Status> Shard::PrepareRange(uint64_t attempt, const HandOver& range, AsyncMutex::Guard structure) {
  Install install;
  install.prepared = PreparedFiles{attempt, {}};
  for (uint32_t level = 0; level < kLevels; ++level) {
    for (const FileRef& file : range.levels->level(level)) {
      install.prepared->files.push_back({level, file.lower, file.upper, file.info});
    }
  }
  install.once = true;
  co_return co_await InstallEdit(std::move(install), std::move(structure));
}

void Shard::ForgetPrepared(uint64_t attempt) {
  if (closing_.load()) return;
  tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), ForgetBehind(this, attempt));
}

Task<void> Shard::ForgetBehind(Shard* self, uint64_t attempt) {
  Install install;
  install.forgotten_attempt = attempt;
  self->NoteBackgroundError(co_await self->InstallEdit(std::move(install)));
}

Task<void> Shard::TakeRange(RangeDescriptor range, std::shared_ptr<const LevelSet> levels) {
  ViewChange change = [&](ReadView* view) {
    view->move_attempt = range.move_attempt;
    AddToView({{range.lower, range.upper, range.epoch, std::move(levels)}}, view);
  };
  co_await ChangeStructure(std::move(change));
  UpdateDebt(*views_.Pin());
  ScheduleCleanUp();  // The manifest then names the files as the shard's own.
  ScheduleCompaction();
}

Task<void> Shard::ReleaseRange(std::string lower) {
  ViewChange change = [&lower](ReadView* view) {
    std::erase_if(view->ranges, [&](const RangeView& range) { return range.lower == lower; });
  };
  co_await ChangeStructure(std::move(change));
  ScheduleCleanUp();
}

}  // namespace partita

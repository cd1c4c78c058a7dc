#include <algorithm>

#include "engine/base/heap_bytes.h"
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
// So much of what a flush left is weighed.
constexpr uint64_t kLeftWeightMax = 8 << 20;

// A walk over entries looks so often whether its slice is over.
constexpr uint64_t kEntriesPerLook = 64;

constexpr uint64_t kLockPollNanos = 100'000;

// An import takes the strand for so much weight at a time, some 50 us.
constexpr uint64_t kImportSliceWeight = 64 << 10;
// How long it waits for memtable memory in all, as writes of the range wait for it meanwhile.
constexpr uint64_t kImportWaitNanosMax = 1'000'000'000;
constexpr uint64_t kImportPollNanos = 500'000;

void AddToView(std::vector<RangeView> added, ReadView* view) {
  const auto rises = [](const RangeView& a, const RangeView& b) { return a.lower < b.lower; };
  view->ranges.reserve(view->ranges.size() + added.size());  // Not twice as many, for good.
  for (RangeView& range : added) {
    const auto at = std::upper_bound(view->ranges.begin(), view->ranges.end(), range, rises);
    view->ranges.insert(at, std::move(range));
  }
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

// What the memtables hold of the range: of each, the newest of a key.
std::vector<std::unique_ptr<EntryIterator>> UnflushedOf(const ReadView& view, const RangeView& range) {
  std::vector<std::unique_ptr<EntryIterator>> sources;
  const auto add = [&](const Memtable& memtable) {
    sources.push_back(std::make_unique<IntervalIterator>(
        memtable.NewIterator(Direction::kForward, kVersionMax, kVersionMax), range.lower, range.upper));
  };
  add(*view.active);
  for (const MemtableRef& frozen : view.frozen) add(*frozen.table);
  return sources;
}

// What an entry adds to the pause of a move, as bytes: its own, and as many as are imported in the time that
// each takes whatever its size, 0.2 to 0.5 us.
uint64_t WeightOf(const Entry& entry) {
  constexpr uint64_t kFixed = 256;
  return kFixed + entry.user_key.size() + entry.value.size();
}

// Of the range; no more is weighed than it takes to be above `enough`.
Task<uint64_t> UnflushedWeight(const ReadView& view, const RangeView& range, uint64_t enough) {
  uint64_t weight = 0;
  uint64_t looked_at = 0;
  for (const std::unique_ptr<EntryIterator>& source : UnflushedOf(view, range)) {
    for (IterState at = source->SeekToFirst(); at == IterState::kEntry && weight <= enough;
         at = source->Next()) {
      weight += WeightOf(source->entry());
      if (++looked_at % kEntriesPerLook == 0) co_await YieldIfDue();
    }
  }
  co_return weight;
}

}  // namespace

Task<void> Shard::AddRanges(std::vector<RangeDescriptor> ranges, Version above) {
  uint64_t bytes = 0, as_of = 0;
  ViewChange change = [this, &ranges, above, &bytes, &as_of](ReadView* view) {
    clock_->RaiseTo(above);
    std::vector<RangeView> added;
    for (RangeDescriptor& range : ranges) {
      added.push_back({range.lower, range.upper, range.epoch, LevelSet::Empty()});
      bytes += sizeof(RangeView) + HeapBytes(range.lower) + HeapBytes(range.upper);
    }
    AddToView(std::move(added), view);
    as_of = view->structure_counter;
  };
  co_await ChangeStructure(std::move(change));
  // Nothing is behind in them. A walk over all ranges for each table made would be dear where they are many:
  // the next one counts anew, also what one under way, of an older view, leaves out now.
  const std::lock_guard lock(debt_mutex_);
  if (debt_as_of_ < as_of) range_bytes_.Set(range_bytes_.bytes() + bytes);
}

Task<void> Shard::DropTable(TableId table) {
  std::string prefix = TableLowerBound(table);
  bool held = false;
  ViewChange change = [this, &prefix, &held](ReadView* view) {
    held = std::erase_if(view->ranges,
                         [&](const RangeView& range) { return range.lower.starts_with(prefix); }) > 0;
    rowless_.Forget(prefix, PrefixSuccessor(prefix));  // Of no use: ids do not come again.
  };
  co_await ChangeStructure(std::move(change));
  if (!held) co_return;
  ScheduleCleanUp();
  ScheduleCompaction();  // Of what others keep of its files.
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
    for (const RangeView& range : view->ranges) {
      const bool within = IsInKeyRange(range.lower, ranges.front().lower, ranges.back().upper);
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
    std::erase_if(view->ranges,
                  [&](const RangeView& range) { return IsInKeyRange(range.lower, lower, upper); });
    AddToView(std::move(reshaped), view);
  };
  co_await ChangeStructure(std::move(change));
  SettleReshaped();
}

// Behind the back of who asked: the debt is that of all ranges.
void Shard::SettleReshaped() {
  if (closing_.load() || settles_soon_.exchange(true)) return;
  tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), SettleBehind(this));
}

Task<void> Shard::SettleBehind(Shard* self) {
  self->settles_soon_.store(false);
  self->UpdateDebt(*self->views_.Pin());
  self->ScheduleCompaction();  // One that ran for a range that is not the same any more came to nothing.
  co_return;
}

// ---- Moves.

Task<Result<LogPosition>> Shard::PrepareToTake() {
  const LogPosition last = co_await FreezeNow();
  PARTITA_CO_TRY(co_await AwaitFlushed(last));
  // The log may yet hold what no memtable held: records of keys that were not this shard's when it was
  // opened.
  if (SiteIsOn("move.target.wait")) PARTITA_CO_TRY(co_await commit_log_->FlushThrough(last));
  co_return LogPosition(last.value + 1);
}

Task<Status> Shard::FlushRange(std::string lower, uint64_t enough) {
  uint64_t left_before = ~uint64_t{0};
  for (int round = 0; round < kFlushRoundsMax; ++round) {
    {
      ViewPin view = views_.Pin();
      const RangeView* range = view->FindRange(lower);
      if (range == nullptr) co_return Status::Moved("shard does not own the range");
      const uint64_t weighed_max = round == 0 ? enough : std::max(enough, kLeftWeightMax);
      const uint64_t left = co_await UnflushedWeight(*view, *range, weighed_max);
      if (left <= enough) co_return Status();
      // As much comes in as a flush takes out: another one would gain little, and cost one more table.
      if (left > left_before / 2) co_return Status();
      if (round > 0 && left <= weighed_max) left_before = left;
    }
    PARTITA_CO_TRY(co_await FlushMemtables());
  }
  co_return Status();
}

Task<uint64_t> Shard::UnflushedOfRange(std::string lower, uint64_t enough) {
  const ViewPin view = views_.Pin();
  const RangeView* range = view->FindRange(lower);
  if (range == nullptr) co_return 0;
  co_return co_await UnflushedWeight(*view, *range, enough);
}

Task<Result<Shard::HandOver>> Shard::PinRange(std::string lower, uint64_t attempt) {
  HandOver out;
  out.attempt = attempt;
  PARTITA_CO_ASSIGN(out.structure, co_await LockStructure());
  ViewPin view = views_.Pin();
  const RangeView* range = view->FindRange(lower);
  if (range == nullptr) co_return Status::Moved("shard does not own the range");
  out.levels = range->levels;
  for (size_t level = 0; level < kLevels; ++level) {
    for (const FileRef& file : out.levels->level(level)) out.pinned.push_back(file.info->id);
  }
  for (ObjectId id : out.pinned) context_.references.Add(id);
  co_return out;
}

Task<void> Shard::FenceRange(std::string lower, HandOver* out) {
  PARTITA_ASSERT(out->structure.held());
  out->fenced_ns = context_.runtime.clock().MonotonicNanos();
  ViewChange fence = [this, &lower, out](ReadView* view) {
    RangeView* range = RangeAt(lower, view);
    range->fenced = true;
    range->fence_end = out->fence_end;
    // What was decided so far is all that ever will be here, though nobody may see it yet. Nor may the new
    // owner give a version that this one may not: where the table is one made anew, and nothing was written
    // since, that is more than what the log has (F17).
    out->last = clock_->last();
  };
  co_await ChangeStructure(std::move(fence));
  out->view = views_.Pin();
  out->structure.Release();
  MergingIterator entries(UnflushedOf(*out->view, *out->view->FindRange(lower)), Direction::kForward);
  uint64_t looked_at = 0;
  for (IterState at = entries.SeekToFirst(); at == IterState::kEntry; at = entries.Next()) {
    if (++looked_at % kEntriesPerLook == 0) co_await YieldIfDue();
    const Entry& entry = entries.entry();
    if (!out->rest.empty() && out->rest.back().user_key == entry.user_key) continue;
    out->rest.push_back(entry);
    out->rest_bytes += entry.user_key.size() + entry.value.size();
    out->rest_last = std::max(out->rest_last, entry.version);
  }
}

// What is in no memtable any more was flushed before it became a table. What a move brought here is older
// than the record that it came in, which was flushed before it counted.
Task<Status> Shard::FlushLogOfRest(const HandOver& range) {
  const LogPosition last = commit_log_->LastUpTo(range.rest_last);
  Status flushed;
  if (SiteIsOn("move.source.wait")) flushed = co_await commit_log_->FlushThrough(last);
  co_return flushed;
}

Task<void> Shard::DropHandOver(HandOver range) {
  for (ObjectId id : range.pinned) {
    if (context_.references.Drop(id)) NoteBackgroundError(co_await context_.objects.Remove(id));
  }
}

Task<void> Shard::LiftFence(std::string lower) {
  std::shared_ptr<Event> fence_end;
  ViewChange change = [&lower, &fence_end](ReadView* view) {
    RangeView* range = RangeAt(lower, view);
    if (range == nullptr) return;
    range->fenced = false;
    fence_end = std::exchange(range->fence_end, nullptr);
  };
  co_await ChangeStructure(std::move(change));
  if (fence_end != nullptr) fence_end->Set();
}

// One record of an import.
struct Shard::ImportSlice {
  uint64_t attempt = 0;
  Version above;
  uint64_t* waited = nullptr;  // By all of them, for memory.
  std::span<const Entry> entries;
  uint64_t bytes = kBatchRecordHeaderSize;
  LogPosition position;
};

Task<Status> Shard::ImportRest(const HandOver& range) {
  LogPosition last;
  uint64_t waited = 0;
  std::span<const Entry> left = range.rest;
  do {  // One without entries, too, since the versions go on above what was there.
    ImportSlice slice{.attempt = range.attempt, .above = range.last, .waited = &waited, .entries = {}};
    size_t count = 0;
    for (uint64_t weight = 0; count < left.size() && weight < kImportSliceWeight; ++count) {
      weight += WeightOf(left[count]);
      slice.bytes += kImportOperationOverheadMax + left[count].user_key.size() + left[count].value.size();
    }
    slice.entries = left.first(count);
    left = left.subspan(count);
    PARTITA_CO_TRY(co_await ImportNow(&slice));
    PARTITA_ASSERT(slice.position > last);
    last = slice.position;
    if (!left.empty()) co_await YieldIfDue();
  } while (!left.empty());
  if (!SiteIsOn("move.import.wait")) co_return Status();
  co_return co_await commit_log_->AwaitVisible(last, DurabilityLevel::kPower);
}

Task<Status> Shard::ImportNow(ImportSlice* slice) {
  for (;; *slice->waited += kImportPollNanos) {
    Status imported;
    std::function<void()> import = [&] { imported = ImportOnStrand(slice); };
    co_await OnStrand(std::move(import));
    if (imported.code() != Code::kResourceExhausted) co_return imported;
    if (out_of_space_.load()) co_return OutOfSpace();
    if (*slice->waited >= kImportWaitNanosMax) co_return Status::Busy(imported.message());
    co_await SleepFor(kImportPollNanos);
  }
}

Status Shard::ImportOnStrand(ImportSlice* slice) {
  PARTITA_ASSERT(strand_.HeldByThisThread());
  // Ok: it has ended meanwhile. To return that would pass for imported.
  if (commit_log_->fenced()) PARTITA_TRY(commit_log_->fence_reason());
  const std::shared_ptr<Memtable>& memtable = views_.current().active;
  uint8_t* memory = memtable->arena().Allocate(slice->bytes);
  if (memory == nullptr || !memtable->Reserve(slice->entries.size())) {
    if (views_.current().frozen.empty() && import_from_.load() == kNoImport) FreezeForWrite();
    return Status::ResourceExhausted("shard " + std::to_string(id_.value) +
                                     " has no memtable memory for what the range brings along; try again");
  }
  clock_->RaiseTo(slice->above);
  const Version version = clock_->Next();
  BatchRecordWriter writer(memory, slice->attempt);
  for (const Entry& entry : slice->entries) writer.AddImported(entry);
  SetBatchVersion(memory, version);
  const std::string_view payload = writer.Finish();
  if (import_from_.load() == kNoImport) import_from_.store(commit_log_->last_decided().value + 1);
  Result<BatchRecordReader> reader = BatchRecordReader::Open(payload);
  PARTITA_ASSERT(reader.ok());
  Entry entry;
  while (reader->Next(&entry)) memtable->Insert(entry);  // Into a range that no view here has.
  PARTITA_ASSERT(reader->status().ok());
  memtable->CountAs(version);
  slice->position = commit_log_->Append({version, DurabilityLevel::kPower, payload, memtable});
  if (IsFull(*memtable)) FreezeForWrite();
  return Status();
}

void Shard::EndImport() {
  import_from_.store(kNoImport);
  ScheduleFlush();
}

Task<Status> Shard::PrepareRange(const HandOver& range, LogPosition replay_from,
                                 AsyncMutex::Guard structure) {
  Install install;
  install.replay_from = replay_from;
  install.prepared = PreparedFiles{range.attempt, {}};
  for (uint32_t level = 0; level < kLevels; ++level) {
    for (const FileRef& file : range.levels->level(level)) {
      install.prepared->files.push_back({level, file.lower, file.upper, file.info});
    }
  }
  install.once = true;
  co_return co_await InstallEdit(std::move(install), std::move(structure));
}

void Shard::ForgetPrepared(uint64_t attempt) {
  EndImport();
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
    rowless_.Forget(range.lower, range.upper);  // What came along was not noted.
    AddToView({{range.lower, range.upper, range.epoch, std::move(levels)}}, view);
  };
  co_await ChangeStructure(std::move(change));
}

void Shard::SettleTaken() {
  EndImport();
  ScheduleCleanUp();  // The manifest then names the files as the shard's own.
  SettleReshaped();
}

Task<void> Shard::ReleaseRange(std::string lower) {
  ViewChange change = [this, &lower](ReadView* view) {
    if (const RangeView* range = RangeAt(lower, view)) rowless_.Forget(range->lower, range->upper);
    std::erase_if(view->ranges, [&](const RangeView& range) { return range.lower == lower; });
  };
  co_await ChangeStructure(std::move(change));
}

}  // namespace partita

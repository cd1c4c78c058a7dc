#include <algorithm>

#include "compaction/merge_job.h"
#include "compaction/pacing.h"
#include "compaction/plan_batch.h"
#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/heap_bytes.h"
#include "engine/base/memory_budget.h"
#include "engine/base/user_key.h"
#include "engine/foreign_bytes.h"
#include "engine/shard.h"

// A shard's compactions: what is behind and how much writers are slowed for it, what to do next, doing
// it on a helper, and handing the result to InstallEdit (shard_maintenance.cc).

namespace partita {

namespace {

// Of the room for a merge that may use the reserve: 1.25 times its inputs fit.
constexpr uint64_t kGrowthShare = 5;

// From where on the walls slow a write (Shard::WallsAhead). Flushes that keep up leave a quarter of the
// memory free, as a memtable is a quarter of its shard's part (memory_budget.h) wherever it has some chunks.
// Of the tail's half the log lets so much gather before it flushes (commit_log.cc).
constexpr double kMemoryWallFrom = 0.85, kTailWallFrom = 0.5;

// A job of idle class starves that runs for so long, and computed for so little of the last second: beside
// threads that never rest the kernel leaves it less than a hundredth. One that waits for a disk of 5 MB/s is
// taken for such a one, as nobody tells what a thread waits for. All that it has done is lost when another
// begins anew, so it must have been kept from its work for as long as it was at it.
constexpr uint64_t kStarvedAfterNanos = 2'000'000'000;
constexpr double kStarvedCores = 0.03;
constexpr double kLostShareMax = 0.5;

// Gives up what the cache held of a job's inputs; but of files that other ranges refer to, or of all when the
// range is not the same any more.
Task<void> DropReplaced(const ObjectReferences& references, const std::vector<BlockKey>& blocks,
                        BlockCache* cache) {
  std::optional<ObjectId> looked;
  bool is_referenced = false;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (looked != blocks[i].object) {
      looked = blocks[i].object;
      is_referenced = references.Contains(blocks[i].object);
    }
    if (!is_referenced) cache->Drop(blocks[i]);
    if (i % 64 == 63) co_await YieldIfDue();
  }
}

}  // namespace

struct Shard::CompactionWork {
  std::vector<KeySpan> ranges{};  // By key.
  std::vector<RangeEpoch> epochs{};
  JoinedPlan merge;
  JobContext context;
  RetentionPolicy retention{};
  JobResult result{};
  std::optional<PlanInput> failed_input{};  // Which could not be read.
  uint64_t room = 0;                        // That it may take, when it was picked.
};

PickerOptions Shard::Picker(bool calm) const {
  PickerOptions options;
  options.flush_bytes = FlushBytes();
  options.target_file_bytes = context_.table_file_bytes;
  options.space_is_short = context_.reserve.low();
  if (!calm && !options.space_is_short) {
    options.level0_depth = Level0Depth(base_bytes_.load(std::memory_order_relaxed), options.flush_bytes,
                                       flush_rate_.PerSecond(context_.runtime.clock().MonotonicNanos()),
                                       context_.merged_per_second);
  }
  return options;
}

std::shared_ptr<const std::set<Shard::Reference>> Shard::SetAside() {
  std::lock_guard lock(set_aside_mutex_);
  return set_aside_;
}

LevelShape Shard::ShapeOfRange(const RangeView& range, const ForeignBytes* foreign) {
  auto condition = [aside = SetAside(), foreign](uint32_t, const FileRef& file) {
    return FileCondition{.busy = aside->contains({file.info->id, file.lower}),
                         .foreign_bytes = foreign != nullptr ? foreign->Of(file) : 0};
  };
  Version droppable = commit_log_ == nullptr ? Version() : commit_log_->visible_version();
  return ShapeOf(*range.levels, droppable, condition);
}

void Shard::UpdateDebt(const ReadView& view) {
  const PickerOptions picker = Picker();
  uint64_t debt_nanos = 0;
  uint64_t pending = 0, base_bytes = 0;
  uint64_t range_bytes = HeapBytes(view.ranges);
  for (const RangeView& range : view.ranges) {
    range_bytes += HeapBytes(range.lower) + HeapBytes(range.upper);
    if (range.levels->empty()) continue;
    range_bytes += range.levels->memory_bytes();
    LevelShape shape = ShapeOfRange(range);
    CompactionDebt debt = DebtOf(shape, picker);
    pending += debt.pending_bytes;
    uint64_t delay = WriteDelayNanos(debt, DebtBudget(shape, picker), 1024);
    // Damage of one range does not slow the writers of all (F48), where all that is left to do there lies
    // above it. That there is work is told all the same.
    if (HoldsBusyFile(shape) && !PickCompaction(shape, picker)) delay = std::min<uint64_t>(delay, 1);
    debt_nanos = std::max(debt_nanos, delay);
    base_bytes += shape.LevelBytes(TargetsFor(shape, picker).base_level);
  }
  const std::lock_guard lock(debt_mutex_);
  if (view.structure_counter < debt_as_of_) return;  // A newer view's stands.
  debt_as_of_ = view.structure_counter;
  range_bytes_.Set(range_bytes);
  base_bytes_.store(base_bytes, std::memory_order_relaxed);
  debt_bytes_.store(pending, std::memory_order_relaxed);
  pacer_.SetDebt(debt_nanos);
  UpdateMemoryPressure(view.active == nullptr ? 0 : view.active->memory_used());
}

void Shard::UpdateMemoryPressure(uint64_t active_bytes) {
  const uint64_t share = std::max<uint64_t>(MemtableShare(active_bytes), 1);
  // The active memtable counts as full: it will be.
  const double used = static_cast<double>(frozen_bytes_.load() + FreezeBytes(share));
  // What others hold beyond their parts, since they wrote alone, slows this one before it finds nothing left.
  const ChunkPool& pool = context_.memtable_pool;
  const double pool_used = static_cast<double>(pool.used_bytes()) /
                           static_cast<double>(std::max<size_t>(pool.capacity_bytes(), 1));
  pacer_.SetMemory(std::max(used / static_cast<double>(share), pool_used));
}

// A write that finds the log's tail or the memtables' memory used up stands until the disk has taken what is
// before it, 50 ms and more; those that come near to that wait a little each instead. The tail is left alone
// by who waits for the disk and by who waits for nothing. Half of it is used again once all of that half is
// flushed, so as long as no more than a half is unflushed nobody stands.
Pacer::Walls Shard::WallsAhead(DurabilityLevel level) const {
  const ChunkPool& pool = context_.memtable_pool;
  const double memory = static_cast<double>(pool.used_bytes()) /
                        static_cast<double>(std::max<size_t>(pool.capacity_bytes(), 1));
  const double tail = level != DurabilityLevel::kProcess
                          ? 0
                          : static_cast<double>(commit_log_->unflushed_bytes()) /
                                static_cast<double>(context_.log_tail_bytes / 2);
  const Pacer::Walls walls{.memory = Pacer::WallNanosPerKib(memory, kMemoryWallFrom),
                           .tail = Pacer::WallNanosPerKib(tail, kTailWallFrom)};
  // Where space is short puts are refused, and deletes are to free some.
  if ((walls.memory > 0 || walls.tail > 0) && context_.reserve.low()) return {};
  return walls;
}

// Without the reserve. Where it is not known compactions begin as if there were no end of it.
Task<uint64_t> Shard::RoomOnDisk() {
  const Result<uint64_t> room = co_await context_.runtime.files().FreeBytes();
  co_return room.ok() ? *room : kRoomUnknown;
}

// Of what room there is. Nothing but speed asks for a merge for scans, and all shards may be at the same.
uint64_t Shard::RoomForReason(PickReason reason, uint64_t room) const {
  return reason == PickReason::kLevel0Seeks ? room / (context_.shard_count + 1) : room;
}

// A compaction begins only with room for its output (F57): one that fails at the end has meanwhile taken from
// flushes what they need. One that has none is picked where nothing of the range has, for somebody to hear of
// it.
std::optional<CompactionPlan> Shard::PickPlan(const RangeView& range, PickerOptions picker,
                                              const ForeignBytes& foreign) {
  const LevelShape shape = ShapeOfRange(range, &foreign);
  std::optional<CompactionPlan> plan = PickCompaction(shape, picker);
  if (plan && plan->RoomNeeded() > RoomForReason(plan->reason, picker.room_bytes)) plan.reset();
  if (!plan && picker.room_bytes < shape.TotalBytes()) {
    picker.merges_for_seeks = picker.merges_small_files = false;
    picker.room_bytes = kRoomUnknown;
    plan = PickCompaction(shape, picker);
    if (plan && plan->reason == PickReason::kForeignBytes) plan.reset();
  }
  return plan;
}

std::shared_ptr<Shard::CompactionWork> Shard::PickWork(uint64_t room, bool calm, BackgroundClass by) {
  ViewPin view = views_.Pin();
  PickerOptions picker = Picker(calm);
  // Where inputs are never removed (F39) each such merge would make the store larger.
  picker.merges_small_files = !picker.space_is_short && !context_.references.keeps_all();
  picker.merges_for_seeks = !calm && picker.merges_small_files;
  // What certainly fits may use a reserve that is not held for writes any more, as it frees space (F55); else
  // it is no reason to give it back. Never by an idle thread: others wait behind it for the reserve's turn.
  const bool uses_reserve = picker.space_is_short && by != BackgroundClass::kIdle;
  ObjectStore& objects = uses_reserve ? compaction_objects_ : unreserved_objects_;
  if (picker.space_is_short && room != kRoomUnknown) {
    // Of a reserve that is low it leaves to flushes what they need.
    const uint64_t of_flushes = view->active->memory_used() + frozen_bytes_.load();
    if (uses_reserve) room += context_.reserve.bytes_held();
    room -= std::min(room, of_flushes);
    // What is written may be larger than what was: blocks that do not compress get padding (an eighth), and
    // those that were zstd's become LZ4's (a quarter).
    if (uses_reserve) room -= room / kGrowthShare;
  }
  picker.room_bytes = room;
  const auto rank = [room](const CompactionPlan& plan) {
    return std::pair(plan.RoomNeeded() <= room, plan.score);
  };
  const std::shared_ptr<const std::set<Reference>> aside = SetAside();
  const ForeignBytes foreign(*view, context_.references, [&aside](const FileRef& file) {
    return aside->contains({file.info->id, file.lower});
  });
  // One slice of the file could not be read: nor may others, of which each would fail a whole batch.
  const auto is_doubtful = [&aside](const PlanInput& input) {
    const auto at = aside->lower_bound({input.id, ""});
    return at != aside->end() && at->first == input.id;
  };
  std::vector<RangePlan> due;
  size_t best = 0;
  for (const RangeView& range : view->ranges) {
    if (range.levels->empty()) continue;
    std::optional<CompactionPlan> plan = PickPlan(range, picker, foreign);
    if (!plan) continue;
    const bool alone = std::any_of(plan->inputs.begin(), plan->inputs.end(), is_doubtful);
    due.push_back({{range.lower, range.upper}, range.levels, *std::move(plan), alone});
    if (rank(due.back().plan) > rank(due[best].plan)) best = due.size() - 1;
  }
  if (due.empty()) return nullptr;
  const std::vector<RangePlan> batch =
      BatchAround(due, best, FlushBytes(), RoomForReason(due[best].plan.reason, room));
  auto work = std::make_shared<CompactionWork>(CompactionWork{
      .merge = JoinPlans(batch), .context = MakeJobContext(*view, objects, BackgroundWork::kCompaction)});
  for (const RangePlan& part : batch) {
    work->ranges.push_back(part.range);
    work->epochs.push_back(view->FindRange(part.range.lower)->epoch);
  }
  work->retention.visible = commit_log_->visible_version();
  work->room = room;
  return work;
}

// `co_await ClaimForIdle(...)`: an ordinary helper looks. No mutex between the two, as of an Event: it would
// wait for this thread's core.
class Shard::ClaimForIdle {
 public:
  ClaimForIdle(Shard& shard, bool calm, ClaimedWork* out,
               std::source_location at = std::source_location::current())
      : shard_(shard), calm_(calm), out_(out), at_(at) {}
  bool await_ready() {
    if (!waiter_.blocking()) return false;
    Begin();
    waiter_.BlockUntilWoken();
    return true;
  }
  void await_suspend(std::coroutine_handle<> handle) {
    waiter_.SuspendAs(handle, at_);
    Begin();
  }
  void await_resume() noexcept {}

 private:
  void Begin() {
    shard_.tasks_.Spawn(shard_.context_.runtime.background(BackgroundClass::kOrdinary),
                        ClaimWorkInto(&shard_, BackgroundClass::kIdle, calm_, out_, &waiter_));
  }

  Shard& shard_;
  const bool calm_;
  ClaimedWork* const out_;
  const std::source_location at_;
  Waiter waiter_;
};

// What is looked at keeps views and takes locks that writers wait for: not while a thread has no core.
Task<Shard::ClaimedWork> Shard::ClaimWork(BackgroundClass by, bool calm) {
  ClaimedWork claimed;
  if (by == BackgroundClass::kOrdinary) {
    co_await ClaimWorkInto(this, by, calm, &claimed, /*done=*/nullptr);
  } else {
    co_await ClaimForIdle(*this, calm, &claimed);
  }
  co_return claimed;
}

Task<void> Shard::ClaimWorkInto(Shard* self, BackgroundClass by, bool calm, ClaimedWork* out, Waiter* done) {
  out->is_ours = !self->compaction_running_.exchange(true);
  if (out->is_ours) {
    if (by == BackgroundClass::kIdle) self->NoteIdleBegins();
    out->work = self->PickWork(co_await self->RoomOnDisk(), calm, by);
    if (out->work == nullptr) {
      self->NoteCompaction(Status());
      self->idle_began_ns_.store(0);
      self->compaction_running_.store(false);
    }
  } else if (by == BackgroundClass::kOrdinary && (self->idle_is_for_seeks_.load() || self->IdleStarves())) {
    self->idle_gives_way_.store(true);
  }
  if (done != nullptr) done->Wake();
}

void Shard::NoteIdleBegins() {
  idle_gives_way_.store(false);
  if (closing_.load()) idle_gives_way_.store(true);
  idle_began_cpu_ns_.store(CompactionLoad().cpu_ns);
  idle_began_ns_.store(context_.runtime.clock().MonotonicNanos());
}

bool Shard::IdleStarves() const {
  const uint64_t began = idle_began_ns_.load();
  const uint64_t now = context_.runtime.clock().MonotonicNanos();
  if (began == 0 || now < began + kStarvedAfterNanos) return false;
  const BackgroundLoad load = CompactionLoad();
  const double lost_ns = static_cast<double>(load.cpu_ns - idle_began_cpu_ns_.load());
  return load.last_second.cores < kStarvedCores && lost_ns < kLostShareMax * static_cast<double>(now - began);
}

BackgroundLoad Shard::CompactionLoad() const {
  return background_.Read()[static_cast<size_t>(BackgroundWork::kCompaction)];
}

std::function<void(std::shared_ptr<Overlapped>)> Shard::Beside(BackgroundClass helpers) {
  return [this, helpers](std::shared_ptr<Overlapped> operation) {
    Overlapped::Start(tasks_, context_.runtime.background(helpers), std::move(operation));
  };
}

Task<Status> Shard::RunWork(CompactionWork* work, BackgroundClass by) {
  if (by != BackgroundClass::kIdle) co_return co_await MergeFor(work);
  work->context.cancel = &idle_gives_way_;
  work->context.cache_executor = &context_.runtime.background(BackgroundClass::kOrdinary);
  work->context.read_ahead = &context_.idle_job_reads;
  work->context.start_beside = Beside(BackgroundClass::kIdle);
  const Status done = co_await MergeFor(work);
  idle_began_ns_.store(0);
  if (done.code() == Code::kCancelled && !closing_.load())
    compactions_given_up_.fetch_add(1, std::memory_order_relaxed);
  co_return done;
}

Task<Status> Shard::MergeFor(CompactionWork* work) {
  if (work->merge.plan.RoomNeeded() > work->room) {
    co_return Status::NoSpace("a compaction of " + std::to_string(work->merge.plan.input_bytes) +
                              " bytes waits for room: " + std::to_string(work->room) +
                              " bytes of the disk are free (F57)");
  }
  MergeSpec spec;
  spec.plan = work->merge.plan;
  spec.bounds = work->merge.bounds;
  spec.levels = work->merge.levels;
  spec.retention = work->retention;
  // Memtables and the replayable log hold only what is newer than any table of this range.
  spec.droppable_before = work->retention.visible;
  MergeJob job(work->context, std::move(spec));
  Result<JobResult> result = co_await job.Run();
  if (!result.ok()) {
    work->failed_input = job.failed_input();
    co_return result.status();
  }
  work->result = std::move(result).value();
  co_return Status();
}

Task<Status> Shard::InstallWork(CompactionWork* work) {
  Install install;
  for (size_t i = 0; i < work->ranges.size(); ++i) {
    install.compacted.push_back(
        {work->ranges[i].lower, work->epochs[i], LevelEdit(), !work->merge.plan.trivial_move});
  }
  // Each reference lies in one range, as resharding goes by them, too.
  const auto edit_of = [&install](const std::string& lower) -> LevelEdit& {
    const auto above =
        std::upper_bound(install.compacted.begin(), install.compacted.end(), lower,
                         [](const std::string& at, const auto& one) { return at < one.range_lower; });
    PARTITA_ASSERT(above != install.compacted.begin());
    return std::prev(above)->edit;
  };
  for (const LevelEdit::Removed& removed : work->result.edit.removed)
    edit_of(removed.lower).removed.push_back(removed);
  for (LevelEdit::Added& added : work->result.edit.added) {
    LevelEdit& edit = edit_of(added.file.lower);
    edit.added.push_back(std::move(added));
  }
  PARTITA_CO_TRY(co_await InstallEdit(std::move(install)));
  co_await DropReplaced(context_.references, work->result.replaced, &context_.cache);
  compactions_.fetch_add(1, std::memory_order_relaxed);
  bytes_compaction_read_.fetch_add(work->result.statistics.bytes_in, std::memory_order_relaxed);
  bytes_compaction_written_.fetch_add(work->result.statistics.bytes_written, std::memory_order_relaxed);
  co_return Status();
}

void Shard::ScheduleCompaction() {
  // Only threads that get a core may ask for what is low (PickWork).
  const bool ordinary = pacer_.presses_for_debt() || context_.reserve.low();
  BackgroundClass background = ordinary ? BackgroundClass::kOrdinary : BackgroundClass::kIdle;
  if (closing_.load() || CompactionScheduled(background).exchange(true)) return;
  tasks_.Spawn(context_.runtime.background(background), CompactInBackground(this, background));
}

Task<void> Shard::CompactInBackground(Shard* self, BackgroundClass background) {
  self->CompactionScheduled(background).store(false);
  if (self->closing_.load()) co_return;
  const ClaimedWork claimed = co_await self->ClaimWork(background);
  if (!claimed.is_ours) {
    // Who runs one looks again at its end; when that comes is not sure.
    if (background == BackgroundClass::kOrdinary && self->idle_began_ns_.load() != 0)
      self->CompactIn(kStarvedAfterNanos);
    co_return;
  }
  const std::shared_ptr<CompactionWork>& work = claimed.work;
  if (work == nullptr) {
    self->tasks_.Spawn(self->context_.runtime.background(BackgroundClass::kOrdinary), LookAgain(self));
    co_return;
  }
  const bool for_seeks = work->merge.plan.reason == PickReason::kLevel0Seeks;
  self->idle_is_for_seeks_.store(for_seeks && background == BackgroundClass::kIdle);
  Status done = co_await self->RunWork(work.get(), background);
  self->idle_is_for_seeks_.store(false);
  if (done.code() == Code::kCancelled) {
    self->compaction_running_.store(false);
    // It gave way; to whoever compacts all, too, if there is one: begun again at once it would be in front of
    // him for ever.
    if (self->compacting_all_.load() == 0) self->ScheduleCompaction();
    co_return;
  }
  self->EndInBackground(work, std::move(done));
}

// This takes locks that flushes wait for: not on an idle-class thread (DESIGN 7).
void Shard::EndInBackground(std::shared_ptr<CompactionWork> work, Status done) {
  Executor& ordinary = context_.runtime.background(BackgroundClass::kOrdinary);
  if (done.ok()) {
    tasks_.Spawn(ordinary, InstallInBackground(this, std::move(work)));
  } else {
    tasks_.Spawn(ordinary, FailInBackground(this, std::move(work), std::move(done)));
  }
}

// What could not be read is set aside (F22, F46): the reference, as the file's other slices may be sound
// (F48). What else is due does not wait for that; each time there is one reference less to fail at.
Task<void> Shard::FailInBackground(Shard* self, std::shared_ptr<CompactionWork> work, Status failed) {
  bool is_new = false;
  if (work->failed_input) {
    std::lock_guard lock(self->set_aside_mutex_);
    auto next = std::make_shared<std::set<Reference>>(*self->set_aside_);
    is_new = next->insert({work->failed_input->id, work->failed_input->reference_lower}).second;
    self->set_aside_ = std::move(next);
  }
  self->NoteBackgroundError(failed);
  self->NoteCompaction(failed);
  self->compaction_running_.store(false);
  is_new ? self->ScheduleCompaction() : self->RetryCompaction(failed);
  co_return;
}

// A look goes over all ranges; what it waits for is that writers leave off.
Task<void> Shard::LookAgain(Shard* self) {
  constexpr uint64_t kCalmNanos = 500'000'000;
  constexpr uint32_t kCalmDoublingsMax = 4;
  if (self->closing_.load()) co_return;
  const uint64_t room = co_await self->RoomOnDisk();
  if (self->PickWork(room) != nullptr) {
    self->ScheduleCompaction();  // For a flush that saw a compaction running.
  } else if (self->PickWork(room, /*calm=*/true) != nullptr) {
    // Writers let level 0 become deeper than it shall stay.
    self->CompactIn(kCalmNanos << std::min(self->calm_looks_.fetch_add(1), kCalmDoublingsMax));
  }
}

// What a compaction lacked, as room on the disk, may come while nobody writes, so that no flush asks again.
void Shard::RetryCompaction(const Status& failed) {
  constexpr uint64_t kFirstNanos = 1'000'000'000;
  // Space that returns is used within 10 s, as by writes (F56). What may fail for ever, and only at the end
  // of all its work, is done again after 17 minutes.
  const bool lacks = failed.code() == Code::kNoSpace || failed.code() == Code::kResourceExhausted;
  const uint32_t doublings_max = lacks ? 3 : 10;
  CompactIn(kFirstNanos << std::min(failed_in_turn_.fetch_add(1), doublings_max));
}

// The earliest of those who ask counts.
void Shard::CompactIn(uint64_t nanos) {
  const uint64_t due_ns = context_.runtime.clock().RecentNanos() + nanos;
  uint64_t set = compacts_at_ns_.load();
  do {
    if (set <= due_ns || closing_.load()) return;
  } while (!compacts_at_ns_.compare_exchange_weak(set, due_ns));
  // On the worker, where waiting takes no thread.
  if (set == kNever) tasks_.Spawn(context_.runtime.shard_executor(id_), CompactLater(this));
}

Task<void> Shard::CompactLater(Shard* self) {
  constexpr uint64_t kPollNanos = 50'000'000;
  Clock& clock = self->context_.runtime.clock();
  while (clock.RecentNanos() < self->compacts_at_ns_.load() && !self->closing_.load()) {
    co_await SleepFor(kPollNanos);
  }
  self->compacts_at_ns_.store(kNever);
  self->ScheduleCompaction();
}

Task<void> Shard::InstallInBackground(Shard* self, std::shared_ptr<CompactionWork> work) {
  Status installed = co_await self->InstallWork(work.get());
  self->NoteFailedAttempt(installed);
  self->NoteCompaction(installed);
  self->compaction_running_.store(false);
  if (!installed.ok()) {
    self->RetryCompaction(installed);
  } else {
    self->failed_in_turn_.store(0);
    // With what is due next; if not, whoever compacts all goes on, or does that when he leaves.
    if (self->compacting_all_.load() == 0) self->ScheduleCompaction();
  }
}

Task<Status> Shard::CompactAll(BackgroundClass by, const std::atomic<bool>* leave) {
  struct Presence {
    explicit Presence(Shard* s) : shard(s) { shard->compacting_all_.fetch_add(1); }
    ~Presence() {
      shard->compacting_all_.fetch_sub(1);
      if (schedules) shard->ScheduleCompaction();  // For those who saw us running, and went away.
    }
    Shard* const shard;
    bool schedules = true;
  } presence(this);
  uint64_t failed = failed_attempts_.load();
  while (!closing_.load()) {
    if (leave != nullptr && leave->load()) co_return Status();
    PARTITA_CO_TRY(FailedSince(failed));
    const ClaimedWork claimed = co_await ClaimWork(by, /*calm=*/true);
    if (!claimed.is_ours) {
      co_await SleepFor(1'000'000);
      continue;
    }
    std::shared_ptr<CompactionWork> work = claimed.work;
    if (work == nullptr) co_return Status();
    const Status done = co_await RunWork(work.get(), by);
    if (done.code() == Code::kCancelled) {
      compaction_running_.store(false);
      co_return done;  // It gave way.
    }
    // Behind us: a save of the manifest is repeated until it succeeds, and we need not wait so long.
    EndInBackground(std::move(work), done);
    if (!done.ok()) {
      presence.schedules = false;
      co_return done;
    }
    while (compaction_running_.load() && FailedSince(failed).ok()) co_await SleepFor(100'000);
  }
  co_return Status::Closed("the store is closing");
}

}  // namespace partita

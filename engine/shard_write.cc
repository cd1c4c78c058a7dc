#include <algorithm>

#include "engine/base/memory_budget.h"
#include "engine/base/site.h"
#include "engine/load_sampler.h"
#include "engine/shard.h"
#include "engine/write_batch.h"

// The road of a write: resolve, decide, log, publish (DESIGN 2).
//
//  1. Resolve (any thread, may do I/O): through a pinned view, read the newest entry of every key
//     that a condition or merge needs, visible or not; build merge results; encode the log record
//     into the active memtable's memory. Remember the view's structure counter.
//  2. Decide (on the strand, no I/O): if the structure changed, what was read may be gone from the
//     memtables: resolve again. Else only memtables can hold something newer: look there, check
//     the conditions, give position and version, insert.
//  3. and 4. in commit_log.h.
//
// The hard case is a condition decided against an entry that is not yet visible: it counts, because
// whatever we build on precedes us in the log, so no crash keeps us and loses it (F12, F16); and a
// refusal waits until what it was decided against is visible (F13).

namespace partita {

namespace {

// After so many vain resolves the batch makes flush installs wait for it.
constexpr int kResolvesBeforeHold = 2;
// What one batch may take in the log, below the log's own limit of 128 MiB for a record: a record that
// the log could never take must not be decided.
constexpr size_t kBatchRecordBytesMax = 112u << 20;
// How many times the bytes at which a memtable is frozen its log may have, beside idle segments. A write on
// its own at level `power` takes a page of the log, and an idle seal another, so that a memtable of tiny rows
// would have forty or eighty times as much; all of it takes the disk, and is read when the store is opened
// (F38). Rows of 100 bytes take some 210 in memory: with four writers who share a page it is five times, less
// than this with the idle segments, and whoever writes more at a time never meets it.
constexpr uint64_t kLogOfMemtableMax = 4;
// How long a write waits for memtable memory before it answers busy (F58).
constexpr uint64_t kRoomWaitNanosMax = 10'000'000'000;
// How often it looks whether there may be some; seldom, once it waits for long.
constexpr uint64_t kRoomPollNanos = 500'000, kRoomPollNanosMax = 10'000'000;
// The same while its range moves to another shard, which takes milliseconds but where a disk does not answer.
constexpr uint64_t kMoveWaitNanosMax = 10'000'000'000;
// The watcher of a slow move wakes those who wait, and from then on they look so often. What one wait counts
// for is bounded, so that a process that was stopped for a while does not blame the move.
constexpr uint64_t kFenceWaitNanosMax = 100'000'000;
constexpr uint64_t kMovePollNanos = 200'000, kMovePollNanosMax = 2'000'000;

}  // namespace

struct Shard::DecideRequest : Strand::Request {
  Shard* shard;
  WriteBatch* batch;
  DecideRequest(Shard* s, WriteBatch* b) : shard(s), batch(b) {
    decide = [](Strand::Request* self) {
      auto* request = static_cast<DecideRequest*>(self);
      request->shard->Decide(request->batch);
    };
  }
};

Task<WriteOutcome> Shard::Write(const WriteRequest& request) {
  PARTITA_ASSERT(!request.ops.empty());
  WriteOutcome outcome;
  if (strand_.queued() > Strand::kQueueMax) {
    outcome.status = Status::Busy("shard " + std::to_string(id_.value) + " has " +
                                  std::to_string(Strand::kQueueMax) + " writes waiting; try again");
    co_return outcome;
  }
  WriteBatch batch(request);
  Pacer::Turn turn{.all = {.left = batch.bytes}};
  if (request.durability == DurabilityLevel::kProcess) turn.tail.left = batch.bytes;
  if (const uint64_t nanos = LookForTurn(request, &turn); nanos > 0) co_await AwaitTurn(request, turn, nanos);
  const LoadSampler::Watch watch =
      context_.load.StartWatch(LoadSampler::UnitsOf(request.ops.size(), batch.bytes));

  WriteWaits waits_before;
  while (true) {
    outcome.status = CheckSpace(request);
    if (!outcome.status.ok()) break;
    outcome.status = co_await Resolve(&batch);
    if (!outcome.status.ok()) break;
    if (batch.verdict == WriteBatch::Verdict::kResolveAgain) {
      DecideRequest decide(this, &batch);
      co_await strand_.Run(&decide);
    }
    if (batch.is_decided()) break;
    outcome.status = co_await PauseBeforeRetry(batch, &waits_before);
    if (!outcome.status.ok()) break;
  }
  if (waits_before.resolved_in_vain >= kResolvesBeforeHold) hold_installs_.fetch_sub(1);
  if (waits_before.for_room_ns > 0) pacer_.Waited(waits_before.for_room_ns);
  if (!outcome.status.ok()) co_return outcome;
  context_.load.Note(LoadKind::kWrite, request.ops[0].user_key, request.ops.size(), batch.bytes,
                     watch.Nanos());

  if (batch.verdict == WriteBatch::Verdict::kFenced) {
    outcome.status = batch.refusal;
    co_return outcome;
  }
  bool accepted = batch.verdict == WriteBatch::Verdict::kAccepted;
  // A refusal waits for the last position before it, at that record's own level (F13): the tail is
  // enough for `process` records, and whoever waits for more has the flush done.
  DurabilityLevel level = accepted ? request.durability : DurabilityLevel::kProcess;
  batch.memtable.reset();  // Waiting keeps no arena alive.
  const bool waits =
      context_.planted != EngineDefect::kPublishBeforeDurable && SiteIsOn("write.visible.wait");
  if (waits && commit_log_->visible_position() < batch.position) {
    outcome.status = co_await commit_log_->AwaitVisible(batch.position, level);
    if (!outcome.status.ok()) co_return outcome;
  }
  if (accepted) {
    commit_log_->NoteAccepted();
    outcome.version = batch.version;
    RecordLogSegment();
    PrepareLogIfDue();
    writes_.fetch_add(1, std::memory_order_relaxed);
    bytes_user_.fetch_add(batch.bytes, std::memory_order_relaxed);
  } else {
    outcome.status = std::move(batch.refusal);
    outcome.failed_op = batch.failed_op;
  }
  co_return outcome;
}

uint64_t Shard::LookForTurn(const WriteRequest& request, Pacer::Turn* turn) {
  const Pacer::Walls walls = WallsAhead(request.durability);
  if (!pacer_.presses() && walls.memory == 0 && walls.tail == 0 && !turn->stands()) return 0;
  // What will be refused does not wait before.
  if (commit_log_->fenced() || !CheckSpace(request).ok()) return 0;
  return pacer_.Look(turn, walls, context_.runtime.clock().MonotonicNanos());
}

Task<void> Shard::AwaitTurn(const WriteRequest& request, Pacer::Turn turn, uint64_t nanos) {
  Clock& clock = context_.runtime.clock();
  const uint64_t begun = clock.MonotonicNanos();
  uint64_t waited = 0;
  for (; nanos > 0 && waited < Pacer::kTurnNanosMax; waited = clock.MonotonicNanos() - begun) {
    co_await SleepFor(nanos);
    nanos = LookForTurn(request, &turn);
  }
  if (nanos > 0) pacer_.Leave(turn);
  pacer_.Waited(waited);
}

Task<Status> Shard::PauseBeforeRetry(const WriteBatch& batch, WriteWaits* waits) {
  switch (batch.verdict) {
    case WriteBatch::Verdict::kNoRoom:
      do {
        // What it would wait for does not come before someone makes space.
        if (out_of_space_.load()) co_return OutOfSpace();
        if (waits->for_room_ns >= kRoomWaitNanosMax) co_return FlushesBehind();
        const uint64_t pause = std::min(kRoomPollNanos + waits->for_room_ns / 4, kRoomPollNanosMax);
        co_await SleepFor(pause);
        waits->for_room_ns += pause;
      } while (!MayFindRoom(batch));
      break;
    case WriteBatch::Verdict::kMoving:
      if (waits->for_move_ns >= kMoveWaitNanosMax) {
        co_return Status::Busy("the keys are moving to another shard, which takes longer than " +
                               std::to_string(kMoveWaitNanosMax / 1'000'000'000) + " s; nothing was written");
      }
      if (waits->resolved_in_vain >= kResolvesBeforeHold) hold_installs_.fetch_sub(1);
      waits->resolved_in_vain = 0;
      co_await AwaitFenceEnd(batch.fence_end, &waits->for_move_ns);
      break;
    default:
      if (++waits->resolved_in_vain == kResolvesBeforeHold) hold_installs_.fetch_add(1);
  }
  co_return Status();
}

// Whether anything is otherwise than when it found none: to resolve again costs lookups, and hundreds may
// wait.
bool Shard::MayFindRoom(const WriteBatch& batch) {
  const ChunkPool& pool = context_.memtable_pool;
  if (pool.releases() != batch.pool_releases || pool.free_bytes() > batch.bytes) return true;
  if (context_.reserve.low()) return true;  // It may be refused by now.
  const ReadViewPublisher::Guard view(views_);
  return view->active.get() != batch.active || view->structure_counter != batch.structure_counter ||
         MayFreeze(*view);
}

// Whether memory would come back if the active memtable were frozen; where others are, they come first.
bool Shard::MayFreeze(const ReadView& view) {
  return view.frozen.empty() && (!view.active->empty() || view.active->arena().reserved_bytes() > 0);
}

Task<void> Shard::AwaitFenceEnd(std::shared_ptr<Event> end, uint64_t* waited) {
  Clock& clock = context_.runtime.clock();
  const uint64_t begun = clock.MonotonicNanos();
  if (end->is_set()) {
    co_await SleepFor(std::min(kMovePollNanos + *waited / 4, kMovePollNanosMax));
  } else {
    co_await end->Wait();
  }
  *waited += std::min(clock.MonotonicNanos() - begun, kFenceWaitNanosMax);
}

Task<Status> Shard::Resolve(WriteBatch* batch) {
  batch->pool_releases = context_.memtable_pool.releases();
  ViewPin view = views_.Pin();
  batch->active = view->active.get();
  const RangeView* range = view->FindRange(batch->request.ops[0].user_key);
  if (range == nullptr) co_return Status::Moved("shard does not own the key");
  if (range->fenced) {  // What is looked up and encoded now would be in vain.
    batch->memtable.reset();
    batch->verdict = WriteBatch::Verdict::kMoving;
    batch->fence_end = range->fence_end;
    co_return Status();
  }
  batch->structure_counter = view->structure_counter;
  batch->epoch = range->epoch;
  batch->verdict = WriteBatch::Verdict::kResolveAgain;
  if (batch->any_old) {
    std::vector<SoughtTogether> missing = batch->FindInMemory(*view, *range->levels);
    ReadFaults* const faults = &context_.cache.faults();
    if (!missing.empty())
      PARTITA_CO_TRY(co_await batch->FindByReading(*range->levels, std::move(missing), faults));
  }
  // What would be refused needs no payload: memory given to it would not come back before the
  // memtable goes. The strand encodes it in the rare case that it turns out otherwise.
  if (batch->any_old && !batch->CheckOps()) {
    batch->memtable.reset();
    batch->verdict = WriteBatch::Verdict::kResolveAgain;
    co_return Status();
  }
  const bool encoded_before =
      !batch->any_old && batch->memtable == view->active && batch->encoded_epoch == batch->epoch;
  Status encoded = encoded_before ? Status() : batch->Encode(view->active, RoomForBatch());
  if (encoded.ok()) co_return Status();
  if (encoded.code() != Code::kResourceExhausted) co_return encoded;
  batch->verdict = WriteBatch::Verdict::kNoRoom;
  // Where nothing is frozen the pool is taken up by actives, ours among them: make room ourselves, unless
  // another has.
  if (MayFreeze(*view) && views_.IsCurrent(*view)) (void)co_await FreezeNow();
  co_return Status();
}

BatchRoom Shard::RoomForBatch() const {
  const size_t capacity = context_.memtable_pool.capacity_bytes();
  return {.record_bytes = std::min<size_t>(kBatchRecordBytesMax, capacity / 2), .memory_bytes = capacity};
}

void Shard::Decide(WriteBatch* batch) {
  PARTITA_ASSERT(strand_.HeldByThisThread());
  // Ok: it has ended meanwhile.
  if (Status reason = commit_log_->fenced() ? commit_log_->fence_reason() : Status(); !reason.ok()) {
    batch->verdict = WriteBatch::Verdict::kFenced;
    // The disk being full has its own status (F54), and so has a lack of descriptors, for which the disk can
    // do nothing; anything else is an I/O error of this shard.
    const bool lacks = reason.code() == Code::kNoSpace || reason.code() == Code::kResourceExhausted;
    const Code code = lacks ? reason.code() : Code::kIoError;
    batch->refusal = Status(
        code, "shard " + std::to_string(id_.value) +
                  " takes no writes until its log can be written again, then by itself: " + reason.message());
    return;
  }
  const ReadView& view = views_.current();
  if (batch->any_old && view.structure_counter != batch->structure_counter) {
    batch->verdict = WriteBatch::Verdict::kResolveAgain;
    return;
  }
  const RangeView* range = view.FindRange(batch->request.ops[0].user_key);
  if (range == nullptr || range->epoch != batch->epoch) {
    batch->verdict = WriteBatch::Verdict::kResolveAgain;  // Which will answer kMoved, or use the new epoch.
    return;
  }
  if (range->fenced) {
    batch->memtable.reset();
    batch->verdict = WriteBatch::Verdict::kMoving;
    batch->fence_end = range->fence_end;
    return;
  }
  // Until the conditions are checked: a refusal answers when all before it is visible.
  batch->position = commit_log_->last_decided();
  bool rebuilt = false;
  if (batch->any_old && context_.planted != EngineDefect::kSkipConditionRecheck) {
    rebuilt = batch->Renew(view);
    if (batch->verdict == WriteBatch::Verdict::kResolveAgain) return;
  }
  if (batch->any_old && !batch->CheckOps()) {
    if (IsFull(*view.active)) FreezeForWrite();
    return;
  }
  // The payload must lie in the memtable that its entries go to.
  if (rebuilt || batch->memtable != view.active) {
    Status encoded = batch->Encode(view.active, RoomForBatch());
    if (encoded.code() == Code::kResourceExhausted) {
      batch->verdict = WriteBatch::Verdict::kNoRoom;
      return;
    }
    if (!encoded.ok()) return batch->Refuse(0, std::move(encoded));
  }
  Accept(batch, view);
}

Status Shard::CheckSpace(const WriteRequest& request) const {
  if (!context_.reserve.low()) return Status();
  for (const WriteOp& op : request.ops) {
    if (op.kind != WriteKind::kDelete) return context_.reserve.Refusal();
  }
  return Status();
}

bool Shard::IsFull(const Memtable& memtable) const {
  // While there is no space for further segments, a memtable must not need more than one: a delete on its own
  // takes a page of the log, and much less in memory. Once it is flushed the older ones are free.
  if (context_.reserve.low() && log_->newest_segment() > frozen_at_segment_) return true;
  const uint64_t used = memtable.memory_used();
  if (IsLogLong(used)) return true;
  return (used >= context_.memtable_bytes && used >= FreezeBytes(MemtableShare(used))) ||
         memtable.key_bytes() + memtable.value_bytes() >= context_.memtable_data_bytes;
}

bool Shard::IsLogLong(uint64_t active_bytes) const {
  const uint64_t segments = log_->newest_segment() - frozen_at_segment_;
  if (segments <= kIdleSegmentsMax) return false;
  const uint64_t freeze =
      std::min<uint64_t>(FreezeBytes(MemtableShare(active_bytes)), context_.memtable_data_bytes);
  return (segments - kIdleSegmentsMax) * context_.log_segment_bytes >= kLogOfMemtableMax * freeze;
}

uint64_t Shard::MemtableShare(uint64_t active_bytes) const {
  const uint64_t capacity = context_.memtable_pool.capacity_bytes();
  const uint64_t used = context_.memtable_pool.used_bytes();
  const uint64_t mine = std::min(frozen_bytes_.load() + active_bytes, used);
  const uint64_t others =
      std::max<uint64_t>(used - mine, (context_.shard_count - 1) * context_.memtable_bytes);
  return std::max(capacity / context_.shard_count, capacity - std::min(others, capacity));
}

uint64_t Shard::FreezeBytes(uint64_t share) const {
  const uint64_t most = std::min(kMemtableGrowthAlone * context_.memtable_bytes, kMemtableFreezeMax);
  return std::max<uint64_t>(std::min(share / kMemtablesAShard, most), context_.memtable_bytes);
}

void Shard::Accept(WriteBatch* batch, const ReadView& view) {
  Memtable& memtable = *view.active;
  if (!memtable.Reserve(batch->request.ops.size())) {
    batch->verdict = WriteBatch::Verdict::kNoRoom;
    if (!memtable.empty() && view.frozen.size() < 2) FreezeForWrite();
    return;
  }
  Version version = clock_->Next();
  SetBatchVersion(batch->payload, version);
  Result<BatchRecordReader> reader = BatchRecordReader::Open(batch->payload_view);
  PARTITA_ASSERT(reader.ok());
  Entry entry;
  uint64_t deletes = 0;
  for (size_t i = 0; reader->Next(&entry); ++i) {
    memtable.Insert(entry, /*was_read=*/batch->WasInMemory(i));  // Above the visible version.
    deletes += entry.kind == EntryKind::kTombstone ? 1 : 0;
  }
  PARTITA_ASSERT(reader->status().ok());
  // Before it can become visible.
  if (deletes > 0 || rowless_.watches()) rowless_.NoteWrite(batch->request);
  CommitLog::Decided decided{version, batch->request.durability, batch->payload_view, batch->memtable};
  batch->position = commit_log_->Append(std::move(decided));
  batch->version = version;
  batch->verdict = WriteBatch::Verdict::kAccepted;
  if (IsFull(memtable)) FreezeForWrite();
}

}  // namespace partita

#include <algorithm>

#include "engine/base/memory_budget.h"
#include "engine/base/site.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"
#include "engine/load_sampler.h"
#include "engine/shard.h"

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

// Merge results up to this size are rebuilt on the strand; larger ones resolve again.
constexpr size_t kRemergeBytesMax = 4096;
// After so many vain resolves the batch makes flush installs wait for it.
constexpr int kResolvesBeforeHold = 2;
// What one batch may take in the log, below the log's own limit of 128 MiB for a record: a record that
// the log could never take must not be decided.
constexpr size_t kBatchRecordBytesMax = 112u << 20;
// How long a write waits for memtable memory before it answers busy (F58).
constexpr uint64_t kRoomWaitNanosMax = 10'000'000'000;
constexpr uint64_t kRoomPollNanos = 500'000;
// The same while its range moves to another shard, which takes milliseconds but where a disk does not answer.
constexpr uint64_t kMoveWaitNanosMax = 10'000'000'000;
constexpr uint64_t kMovePollNanos = 200'000, kMovePollNanosMax = 2'000'000;

bool NeedsOld(const WriteOp& op) {
  return op.precondition != Precondition::kNone || op.kind == WriteKind::kMerge;
}

}  // namespace

// What is known of one operation's entity, and what the operation makes of it.
struct Shard::ResolvedOp {
  LookupState state = LookupState::kAbsent;
  Version version;
  bool had_to_be_read = false;  // From the disk, when it was first looked for.
  std::string base;             // Content found, for merges only.
  std::string merged;           // Merge result.
  Status merge_status;
};

struct Shard::Batch {
  enum class Verdict : uint8_t { kAccepted, kRefused, kResolveAgain, kNoRoom, kMoving, kFenced };

  explicit Batch(const WriteRequest& r) : request(r) {
    for (const WriteOp& op : r.ops) {
      any_old = any_old || NeedsOld(op);
      bytes += op.user_key.size() + op.content.size() + kBatchOperationOverheadMax;
    }
    if (any_old && r.ops.size() > 1) more.resize(r.ops.size() - 1);
  }
  ResolvedOp& resolved(size_t i) { return i == 0 ? first : more[i - 1]; }
  std::string_view content(size_t i) {
    return request.ops[i].kind == WriteKind::kMerge ? std::string_view(resolved(i).merged)
                                                    : request.ops[i].content;
  }
  // What takes the place of a row that was in memory, because it was written or read not long ago, is likely
  // to be asked for as soon: the next write with a condition is who asks for such rows most.
  bool FoundInMemory(size_t i) {
    return any_old && resolved(i).state == LookupState::kFound && !resolved(i).had_to_be_read;
  }
  void Refuse(size_t i, Status status) {
    verdict = Verdict::kRefused;
    failed_op = static_cast<uint32_t>(i);
    refusal = std::move(status);
  }

  bool is_decided() const {
    return verdict != Verdict::kResolveAgain && verdict != Verdict::kNoRoom && verdict != Verdict::kMoving;
  }

  const WriteRequest& request;
  bool any_old = false;
  uint64_t bytes = kBatchRecordHeaderSize;

  ResolvedOp first;
  std::vector<ResolvedOp> more;
  uint64_t structure_counter = 0;
  RangeEpoch epoch;

  std::shared_ptr<Memtable> memtable;  // Whose arena holds the payload.
  uint8_t* payload = nullptr;
  std::string_view payload_view;

  Verdict verdict = Verdict::kResolveAgain;
  Status refusal;
  uint32_t failed_op = 0;
  LogPosition position;
  Version version;
};

struct Shard::DecideRequest : Strand::Request {
  Shard* shard;
  Batch* batch;
  DecideRequest(Shard* s, Batch* b) : shard(s), batch(b) {
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
  Batch batch(request);
  const uint64_t delay = std::max(pacer_.Charge(batch.bytes), DelayAtWalls(request.durability, batch.bytes));
  if (delay > 0) co_await SleepFor(delay);
  const LoadSampler::Watch watch =
      context_.load.StartWatch(LoadSampler::UnitsOf(request.ops.size(), batch.bytes));

  WriteWaits waits_before;
  while (true) {
    outcome.status = CheckSpace(request);
    if (!outcome.status.ok()) break;
    outcome.status = co_await Resolve(&batch);
    if (!outcome.status.ok()) break;
    if (batch.verdict == Batch::Verdict::kResolveAgain) {
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

  if (batch.verdict == Batch::Verdict::kFenced) {
    outcome.status = batch.refusal;
    co_return outcome;
  }
  bool accepted = batch.verdict == Batch::Verdict::kAccepted;
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

Task<Status> Shard::PauseBeforeRetry(const Batch& batch, WriteWaits* waits) {
  uint64_t pause = 0;
  switch (batch.verdict) {
    case Batch::Verdict::kNoRoom:
      // What it would wait for does not come before someone makes space.
      if (out_of_space_.load()) co_return OutOfSpace();
      if (waits->for_room_ns >= kRoomWaitNanosMax) co_return FlushesBehind();
      co_await SleepFor(kRoomPollNanos);
      waits->for_room_ns += kRoomPollNanos;
      break;
    case Batch::Verdict::kMoving:
      if (waits->for_move_ns >= kMoveWaitNanosMax) {
        co_return Status::Busy("the keys are moving to another shard, which takes longer than " +
                               std::to_string(kMoveWaitNanosMax / 1'000'000'000) + " s; nothing was written");
      }
      if (waits->resolved_in_vain >= kResolvesBeforeHold) hold_installs_.fetch_sub(1);
      waits->resolved_in_vain = 0;
      pause = std::min(kMovePollNanos + waits->for_move_ns / 4, kMovePollNanosMax);
      co_await SleepFor(pause);
      waits->for_move_ns += pause;
      break;
    default:
      if (++waits->resolved_in_vain == kResolvesBeforeHold) hold_installs_.fetch_add(1);
  }
  co_return Status();
}

Task<Status> Shard::Resolve(Batch* batch) {
  ViewPin view = views_.Pin();
  const RangeView* range = view->FindRange(batch->request.ops[0].user_key);
  if (range == nullptr) co_return Status::Moved("shard does not own the key");
  if (range->fenced) {  // What is looked up and encoded now would be in vain.
    batch->memtable.reset();
    batch->verdict = Batch::Verdict::kMoving;
    co_return Status();
  }
  batch->structure_counter = view->structure_counter;
  batch->epoch = range->epoch;
  batch->verdict = Batch::Verdict::kResolveAgain;
  if (batch->any_old) {
    std::vector<SoughtTogether> missing = FindInMemory(batch, *view, *range->levels);
    if (!missing.empty()) PARTITA_CO_TRY(co_await FindByReading(batch, *range->levels, std::move(missing)));
  }
  // What would be refused needs no payload: memory given to it would not come back before the
  // memtable goes. The strand encodes it in the rare case that it turns out otherwise.
  if (batch->any_old && !CheckOps(batch)) {
    batch->memtable.reset();
    batch->verdict = Batch::Verdict::kResolveAgain;
    co_return Status();
  }
  bool encoded_before = !batch->any_old && batch->memtable == view->active;
  Status encoded = encoded_before ? Status() : EncodePayload(batch, view->active);
  if (encoded.ok()) co_return Status();
  if (encoded.code() != Code::kResourceExhausted) co_return encoded;
  batch->verdict = Batch::Verdict::kNoRoom;
  if (view->frozen.empty()) {
    // The pool is taken up by actives, ours among them: make room ourselves.
    std::function<void()> freeze = [this] { FreezeActive(); };
    co_await OnStrand(std::move(freeze));
  }
  co_return Status();
}

namespace {

// Makes the merge result of one operation from what is known of its entity.
void BuildMerge(const WriteRequest& request, const WriteOp& op, bool present, std::string_view base,
                std::string* merged, Status* status) {
  PARTITA_ASSERT(request.merge != nullptr);
  Result<std::string> result = request.merge(op.user_key, present ? base : std::string_view(), op.content);
  *status = result.ok() ? Status() : result.status();
  if (result.ok()) *merged = std::move(result).value();
}

}  // namespace

// Takes down what memory has of the old state of each operation that needs it. Returns the keys of which it
// has not all, rising.
std::vector<SoughtTogether> Shard::FindInMemory(Batch* batch, const ReadView& view, const LevelSet& levels) {
  const std::span<const WriteOp> ops = batch->request.ops;
  // A transaction that opens a partition looks for none of its rows in the files.
  const bool in_files = ops.size() == 1 || levels.MayHoldPartition(ops[0].user_key, HashKey(ops[0].user_key));
  const bool in_memtables = MayBeInMemtables(*batch, view);
  std::vector<SoughtTogether> sought;
  if (in_files && ops.size() > 1) sought.reserve(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!NeedsOld(ops[i])) continue;
    const std::string_view user_key = ops[i].user_key;
    // The newest entry whatever the visible version.
    Lookup found = in_memtables ? view.GetFromMemtables(user_key, kVersionMax) : Lookup();
    BlockPin pin;
    if (found.state == LookupState::kAbsent && in_files) {
      SoughtTogether key;
      key.key = {user_key, HashKey(user_key)};
      key.index = i;
      if (ops.size() > 1) {
        sought.push_back(std::move(key));
        continue;
      }
      const TableLookup looked = levels.TryGet(user_key, key.key.hash, kVersionMax, &pin);
      if (looked.needs_io) {
        sought.push_back(std::move(key));
        break;
      }
      found = looked.lookup;
    }
    NoteFound(batch, i, found);
  }
  if (ops.size() > 1 && !sought.empty()) {
    const auto rises = [](const SoughtTogether& a, const SoughtTogether& b) {
      return a.key.user_key < b.key.user_key;
    };
    if (!std::is_sorted(sought.begin(), sought.end(), rises)) std::sort(sought.begin(), sought.end(), rises);
    TakeFound(batch, levels, &sought);
  }
  for (const SoughtTogether& key : sought) batch->resolved(key.index).had_to_be_read = true;
  return sought;
}

// Looks the keys up in the files as far as memory has these, takes down what is found, and leaves the others.
void Shard::TakeFound(Batch* batch, const LevelSet& levels, std::vector<SoughtTogether>* sought) {
  levels.TryGetTogether(*sought, kVersionMax);
  for (const SoughtTogether& key : *sought) {
    if (!key.needs_io) NoteFound(batch, key.index, key.found);
  }
  std::erase_if(*sought, [](const SoughtTogether& key) { return !key.needs_io; });
}

Task<Status> Shard::FindByReading(Batch* batch, const LevelSet& levels, std::vector<SoughtTogether> missing) {
  // A transaction's rows lie side by side; looked up one by one, each of their blocks would be waited for.
  if (missing.size() > 1) {
    co_await levels.ReadTogether(missing);
    TakeFound(batch, levels, &missing);
  }
  for (const SoughtTogether& key : missing) {
    BlockPin pin;
    // What must know the old state fails in a damaged range (F49).
    PARTITA_CO_ASSIGN(const Lookup found,
                      co_await levels.Get(key.key.user_key, key.key.hash, kVersionMax, &pin));
    NoteFound(batch, key.index, found);
  }
  co_return Status();
}

// What is known of operation `index`, and its merge result.
void Shard::NoteFound(Batch* batch, size_t index, const Lookup& found) {
  const WriteOp& op = batch->request.ops[index];
  ResolvedOp& resolved = batch->resolved(index);
  resolved.state = found.state;
  resolved.version = found.version;
  if (op.kind != WriteKind::kMerge) return;
  const bool present = found.state == LookupState::kFound;
  if (present) resolved.base = StoredValueContent(found.value);
  BuildMerge(batch->request, op, present, resolved.base, &resolved.merged, &resolved.merge_status);
}

// False when no memtable has a key within the batch's, as when it opens a partition or goes on at the end of
// one: a look at a leaf instead of a way down for each of its keys.
bool Shard::MayBeInMemtables(const Batch& batch, const ReadView& view) {
  const std::span<const WriteOp> ops = batch.request.ops;
  if (ops.size() == 1 || !batch.any_old) return true;
  const auto [first, last] = std::minmax_element(
      ops.begin(), ops.end(), [](const WriteOp& a, const WriteOp& b) { return a.user_key < b.user_key; });
  return view.MemtablesHoldAnyOf(first->user_key, last->user_key);
}

Status Shard::EncodePayload(Batch* batch, const std::shared_ptr<Memtable>& memtable) {
  const WriteRequest& request = batch->request;
  size_t size = kBatchRecordHeaderSize;
  for (size_t i = 0; i < request.ops.size(); ++i) {
    size += kBatchOperationOverheadMax + request.ops[i].user_key.size() + batch->content(i).size();
  }
  size_t room = std::min<size_t>(kBatchRecordBytesMax, context_.memtable_pool.capacity_bytes() / 2);
  if (size > room) {
    return Status::InvalidArgument("the batch takes " + std::to_string(size) + " bytes; at most " +
                                   std::to_string(room) +
                                   " fit (half of the memtable memory, 112 MiB at most)");
  }
  uint8_t* memory = memtable->arena().Allocate(size);
  if (memory == nullptr) return Status::ResourceExhausted("no memtable memory");
  BatchRecordWriter writer(memory, request.table, batch->epoch);
  for (size_t i = 0; i < request.ops.size(); ++i) {
    bool remove = request.ops[i].kind == WriteKind::kDelete;
    writer.Add(remove ? EntryKind::kTombstone : EntryKind::kPut, request.ops[i].user_key,
               remove ? std::string_view() : batch->content(i));
  }
  batch->memtable = memtable;
  batch->payload = memory;
  batch->payload_view = writer.Finish();
  return Status();
}

void Shard::Decide(Batch* batch) {
  PARTITA_ASSERT(strand_.HeldByThisThread());
  if (commit_log_->fenced()) {
    batch->verdict = Batch::Verdict::kFenced;
    Status reason = commit_log_->fence_reason();
    // The disk being full has its own status (F54); anything else is an I/O error of this shard.
    Code code = reason.code() == Code::kNoSpace ? Code::kNoSpace : Code::kIoError;
    batch->refusal = Status(
        code, "shard " + std::to_string(id_.value) +
                  " takes no writes until its log can be written again, then by itself: " + reason.message());
    return;
  }
  const ReadView& view = views_.current();
  if (batch->any_old && view.structure_counter != batch->structure_counter) {
    batch->verdict = Batch::Verdict::kResolveAgain;
    return;
  }
  const RangeView* range = view.FindRange(batch->request.ops[0].user_key);
  if (range == nullptr || range->epoch != batch->epoch) {
    batch->verdict = Batch::Verdict::kResolveAgain;  // Which will answer kMoved, or use the new epoch.
    return;
  }
  if (range->fenced) {
    batch->verdict = Batch::Verdict::kMoving;
    return;
  }
  // Until the conditions are checked: a refusal answers when all before it is visible.
  batch->position = commit_log_->last_decided();
  bool rebuilt = false;
  if (batch->any_old && context_.planted != EngineDefect::kSkipConditionRecheck) {
    rebuilt = LookAgain(batch, view);
    if (batch->verdict == Batch::Verdict::kResolveAgain && rebuilt) {
      rebuilt = false;
      return;
    }
  }
  if (batch->any_old && !CheckOps(batch)) {
    if (IsFull(*view.active)) FreezeActive();
    return;
  }
  // The payload must lie in the memtable that its entries go to.
  if (rebuilt || batch->memtable != view.active) {
    Status encoded = EncodePayload(batch, view.active);
    if (encoded.code() == Code::kResourceExhausted) {
      batch->verdict = Batch::Verdict::kNoRoom;
      return;
    }
    if (!encoded.ok()) return batch->Refuse(0, std::move(encoded));
  }
  Accept(batch, view);
}

// Replaces what was resolved by anything newer in the memtables, not yet visible entries included.
// True when a merge result changed; the verdict kResolveAgain with true means it is too large to
// be rebuilt here.
bool Shard::LookAgain(Batch* batch, const ReadView& view) {
  bool rebuilt = false;
  batch->verdict = Batch::Verdict::kAccepted;
  if (!MayBeInMemtables(*batch, view)) return false;
  for (size_t i = 0; i < batch->request.ops.size(); ++i) {
    const WriteOp& op = batch->request.ops[i];
    if (!NeedsOld(op)) continue;
    ResolvedOp& resolved = batch->resolved(i);
    Lookup newer = view.GetFromMemtables(op.user_key, kVersionMax);
    if (newer.state == LookupState::kAbsent || newer.version <= resolved.version) continue;
    resolved.state = newer.state;
    resolved.version = newer.version;
    if (op.kind != WriteKind::kMerge) continue;
    bool present = newer.state == LookupState::kFound;
    std::string_view base = present ? StoredValueContent(newer.value) : std::string_view();
    if (base.size() + op.content.size() > kRemergeBytesMax) {
      batch->verdict = Batch::Verdict::kResolveAgain;
      return true;
    }
    BuildMerge(batch->request, op, present, base, &resolved.merged, &resolved.merge_status);
    rebuilt = true;
  }
  return rebuilt;
}

// Checks every condition in the order of the operations; the first that fails refuses the batch.
bool Shard::CheckOps(Batch* batch) {
  for (size_t i = 0; i < batch->request.ops.size(); ++i) {
    const WriteOp& op = batch->request.ops[i];
    if (!NeedsOld(op)) continue;
    ResolvedOp& resolved = batch->resolved(i);
    bool present = resolved.state == LookupState::kFound;
    if (op.precondition == Precondition::kAbsent && present) {
      batch->Refuse(i, Status::AlreadyExists("the entity already exists"));
      return false;
    }
    // Existence before tag: a missing row is not found even with a stale tag (table-service 9.3).
    bool wants_present =
        op.precondition == Precondition::kPresent || op.precondition == Precondition::kVersionEquals;
    if (wants_present && !present) {
      batch->Refuse(i, Status::NotFound("the entity does not exist"));
      return false;
    }
    if (op.precondition == Precondition::kVersionEquals && resolved.version != op.expected_version) {
      batch->Refuse(i, Status::PreconditionFailed("the entity was changed since the ETag given was read"));
      return false;
    }
    if (op.kind == WriteKind::kMerge && !resolved.merge_status.ok()) {
      batch->Refuse(i, resolved.merge_status);
      return false;
    }
  }
  return true;
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
  return (used >= context_.memtable_bytes && used >= FreezeBytes(MemtableShare(used))) ||
         memtable.key_bytes() + memtable.value_bytes() >= context_.memtable_data_bytes;
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

void Shard::Accept(Batch* batch, const ReadView& view) {
  Memtable& memtable = *view.active;
  if (!memtable.Reserve(batch->request.ops.size())) {
    batch->verdict = Batch::Verdict::kNoRoom;
    if (!memtable.empty() && view.frozen.size() < 2) FreezeActive();
    return;
  }
  if ((++decisions_ & 1023) == 0) clock_->FollowWall();
  Version version = clock_->Next();
  SetBatchVersion(batch->payload, version);
  Result<BatchRecordReader> reader = BatchRecordReader::Open(batch->payload_view);
  PARTITA_ASSERT(reader.ok());
  Entry entry;
  uint64_t deletes = 0;
  for (size_t i = 0; reader->Next(&entry); ++i) {
    memtable.Insert(entry, /*was_read=*/batch->FoundInMemory(i));  // Above the visible version.
    deletes += entry.kind == EntryKind::kTombstone ? 1 : 0;
  }
  PARTITA_ASSERT(reader->status().ok());
  // Before it can become visible.
  if (deletes > 0 || rowless_.watches()) rowless_.NoteWrite(batch->request);
  CommitLog::Decided decided{version, batch->request.durability, batch->payload_view, batch->memtable};
  batch->position = commit_log_->Append(std::move(decided));
  batch->version = version;
  batch->verdict = Batch::Verdict::kAccepted;
  if (IsFull(memtable)) FreezeActive();
}

}  // namespace partita

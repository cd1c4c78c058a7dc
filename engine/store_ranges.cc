#include <algorithm>

#include "engine/base/user_key.h"
#include "engine/catalog_change.h"
#include "engine/store.h"

// Ranges that split, merge and move between shards, live (DESIGN 8). All are changes of the catalog
// (store_catalog.cc), decided by its swap. A split or merge touches no data. A move, of a range R from S to
// T:
//
//  1. T flushes all records of R that it may have had in an earlier time. S flushes, until its memtables hold
//     little of R.
//  2. The turn to change the catalog is taken. What R has of tables is pinned, and S's memtables let go of
//     nothing. T's manifest names the tables as prepared by this attempt and has replay begin behind 1, so
//     that T's log holds nothing of R any more; the catalog to be is written beside the one in force. Writes
//     go on.
//  3. R is fenced on S: writes wait, reads go on. What S's memtables hold of R, the newest of each key, goes
//     into T's log as an import of this attempt and T's memtable; T goes on with versions above. T's log
//     is flushed, and S's up to R's last record.
//  4. The catalog is swapped: R is T's, by this attempt. This is the commit. What a manifest or an import
//     says of another attempt, or of ranges that are not its shard's, is void.
//  5. S lets go of R, T takes it into its view, the range map follows, and waiting writes are routed anew.
//  6. What need not be done while they wait: T flushes memtables with the import again, manifests follow.
//
// So a write waits for a flush of two logs side by side at most, and a rename. After a crash R is whole on S
// or whole on T; no shard needs another's log. That imports before the last one are never asked for is due to
// 1, which sees to it that they are in tables before another range comes: a merged range keeps the later
// attempt only. When the swap is in doubt the fence stays until a read of the catalog decides (F15).
//
// From 2 on it goes on by itself (MakeMove). Whoever asked is answered at the deadline, though the kernel
// keeps some of it (F26): before the swap that it is not made, and then it is given up once the kernel lets
// go.

namespace partita {

namespace {

// How much of a range may be left in memtables when it is fenced, as Shard::UnflushedOfRange counts.
constexpr uint64_t kRest = 1 << 20;
// Where more comes in than can be flushed: at most; half of it before the preparations, which take a while.
constexpr uint64_t kRestMax = 8 << 20;

// Before the swap nothing of a move is in doubt, though a log that it waited for may be.
Status NotMade(Status status) {
  if (status.code() != Code::kUnknown) return status;
  return Status::IoError("the range was not moved: " + status.message());
}

}  // namespace

// ---- Routes.

Task<void> Store::PauseBeforeRoute(int tries) {
  constexpr int kAtOnce = 3;
  constexpr uint64_t kPauseNanos = 20'000, kPauseNanosMax = 1'000'000;
  if (tries < kAtOnce) co_return;
  co_await SleepFor(std::min(static_cast<uint64_t>(tries) * kPauseNanos, kPauseNanosMax));
}

Status Store::NoRoute(std::string_view user_key) const {
  if (RouteTo(user_key).shard == nullptr) return NoSuchTable();
  return Status::Busy("the keys are moving to another shard; try again");
}

// ---- Splits and merges.

Task<Status> Store::SplitRange(std::string at, bool by_load) {
  PARTITA_CO_TRY(CheckSpace());
  PARTITA_CO_ASSIGN(ChangePtr change, co_await BeginChange());
  Catalog& next = change->next;
  const RangeDescriptor* range = next.FindRange(at);
  if (range == nullptr) co_return NoSuchTable("there is no table with this key");
  const Result<UserKeyParts> parts = DecodeUserKey(at);
  if (!parts.ok() || !parts->row_key.empty()) {
    co_return Status::InvalidArgument("a range can only be split where a partition begins");
  }
  if (range->lower == at) {
    if (range->made_by_load && !by_load) {
      next.KeepBound(at);  // Somebody wants it now.
      PARTITA_CO_TRY(co_await MakeChange(std::move(change)));
    }
    co_return Status::AlreadyExists("a range begins there already");
  }
  if (next.SplitCount() >= kSplitsMax) {
    co_return Status::ResourceExhausted("there are " + std::to_string(kSplitsMax) +
                                        " ranges more than tables, which is the most; merge some");
  }
  const std::string lower = range->lower;
  const ShardId owner = range->owner;
  next.SplitRange(at, by_load);
  change->reshaped = {*next.FindRange(lower), *next.FindRange(at)};
  co_return co_await Reshape(std::move(change), owner);
}

// Once it is decided, nothing of it may have to wait: it would keep the turn.
Task<Status> Store::Reshape(ChangePtr change, ShardId owner) {
  PARTITA_CO_TRY(shard_damages_[owner.value]);
  PARTITA_CO_ASSIGN(change->structure, co_await shards_[owner.value]->LockStructure());
  change->hold = write_hold_.Begin();
  co_return co_await MakeChange(std::move(change));
}

Task<Status> Store::MergeRanges(std::string at) {
  PARTITA_CO_ASSIGN(ChangePtr change, co_await BeginChange());
  Catalog& next = change->next;
  const RangeDescriptor* right = next.FindRange(at);
  if (right == nullptr) co_return NoSuchTable("there is no table with this key");
  if (right->lower != at) co_return Status::InvalidArgument("no range begins at this key");
  if (right == next.ranges.data() || (right - 1)->upper != at ||
      (right - 1)->lower.substr(0, kTableIdSize) != at.substr(0, kTableIdSize)) {
    co_return Status::InvalidArgument("the range is its table's first: there is none in front to join it to");
  }
  const RangeDescriptor left = *(right - 1);
  if (left.owner != right->owner) {
    co_return Status::PreconditionFailed("the ranges are on shards " + std::to_string(left.owner.value) +
                                         " and " + std::to_string(right->owner.value) +
                                         "; move one of them first");
  }
  next.MergeRanges(at);
  change->reshaped = {*next.FindRange(left.lower)};
  co_return co_await Reshape(std::move(change), left.owner);
}

// ---- Moves.

Task<Result<AsyncMutex::Guard>> Store::BeginMove() {
  for (uint64_t waited = 0; waited < options_.io_deadline_ns; waited += kTurnPollNanos) {
    AsyncMutex::Guard alone = moves_mutex_.TryLock();
    if (alone.held()) co_return alone;
    if (closing_.load()) co_return Status::Closed("the store is closing");
    co_await SleepFor(kTurnPollNanos);
  }
  co_return Status::Busy("another range is moving, and has not arrived yet");
}

Task<Result<Store::MoveReport>> Store::MoveRange(std::string user_key, ShardId to) {
  PARTITA_CO_TRY(CheckWritable());
  PARTITA_CO_TRY(CheckSpace());
  if (to.value >= shards_.size()) {
    co_return Status::InvalidArgument("there is no shard " + std::to_string(to.value) + ", but 0 to " +
                                      std::to_string(shards_.size() - 1));
  }
  PARTITA_CO_ASSIGN(AsyncMutex::Guard alone, co_await BeginMove());
  const Catalog catalog = CatalogCopy();
  const RangeDescriptor* range = catalog.FindRange(user_key);
  if (range == nullptr) co_return NoSuchTable("there is no table with this key");
  const MoveReport report{.from = range->owner, .to = to};
  if (range->owner == to) co_return report;
  for (ShardId id : {range->owner, to}) PARTITA_CO_TRY(shard_damages_[id.value]);

  RangeMove move;
  move.alone = std::move(alone);
  move.from = shards_[range->owner.value].get();
  move.to = shards_[to.value].get();
  move.lower = range->lower;
  move.report = report;
  const Result<LogPosition> taken = co_await move.to->PrepareToTake();
  if (!taken.ok()) co_return NotMade(taken.status());
  move.replay_from = *taken;
  PARTITA_CO_ASSIGN(ChangePtr change, co_await BeginFence(move, range->epoch));
  change->moved = std::move(move);
  StartWatch(change);
  tasks_.Spawn(runtime_.shard_executor(to), MakeMove(this, change));
  PARTITA_CO_TRY(co_await AwaitAnswer(change));
  co_return change->moved->report;
}

// The turn, at a moment when little of the range is in memtables.
Task<Result<Store::ChangePtr>> Store::BeginFence(const RangeMove& move, RangeEpoch epoch) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    PARTITA_CO_TRY(NotMade(co_await move.from->FlushRange(move.lower, kRest)));
    PARTITA_CO_ASSIGN(ChangePtr change, co_await BeginChange());
    const RangeDescriptor* now = change->next.FindRange(move.lower);
    if (now == nullptr || now->epoch != epoch) {
      co_return Status::Busy("the range was changed while its move began; try again");
    }
    if (co_await move.from->UnflushedOfRange(move.lower, kRestMax / 2) <= kRestMax / 2) co_return change;
  }
  co_return Status::Busy(
      "the range is written to faster than it is flushed; it can move when there is less to do");
}

Task<void> Store::MakeMove(Store* self, ChangePtr change) {
  const Status prepared = co_await self->PrepareMove(change.get());
  if (prepared.ok()) co_return co_await SwapCatalog(self, std::move(change));
  self->EndChange(change.get(), prepared);
}

Task<Status> Store::PrepareMove(CatalogChange* change) {
  RangeMove* const move = &*change->moved;
  const uint64_t attempt = uint64_t{change->next.incarnation} << 32 | ++move_attempts_;
  Result<AsyncMutex::Guard> locked = co_await move->to->LockStructure();
  if (!locked.ok()) co_return NotMade(locked.status());
  AsyncMutex::Guard structure = std::move(locked).value();
  Result<Shard::HandOver> pinned = co_await move->from->PinRange(move->lower, attempt);
  if (!pinned.ok()) co_return NotMade(pinned.status());
  move->hand_over = std::move(pinned).value();
  move->hand_over.fence_end = change->fence_end;
  change->next.MoveRange(move->lower, move->to->id(), attempt);
  change->hold = write_hold_.Begin();  // Until the fence the device has then done what it was given.
  Status prepared = co_await PrepareUnfenced(move, change->next, std::move(structure));
  if (prepared.ok() && co_await move->from->UnflushedOfRange(move->lower, kRestMax) > kRestMax) {
    prepared = Status::Busy("the disk was too slow for what is written to the range; try again");
  }
  if (prepared.ok()) {
    change->hold = write_hold_.Begin();  // For the fence's time.
  } else {
    change->hold.End();
  }
  if (prepared.ok()) prepared = EnterStep(change, ChangeStep::kFenced);
  if (prepared.ok()) prepared = co_await HandOverRest(move);
  if (prepared.ok()) prepared = EnterStep(change, ChangeStep::kSwapped);
  if (!prepared.ok()) co_await AbandonMove(move);
  co_return NotMade(prepared);
}

// All of a move that writes need not wait for.
Task<Status> Store::PrepareUnfenced(RangeMove* move, const Catalog& next, AsyncMutex::Guard structure) {
  TaskGroup beside;
  Status swap;
  beside.Spawn(runtime_.shard_executor(move->to->id()), PrepareSwap(this, EncodeCatalog(next), &swap));
  const Status prepared =
      co_await move->to->PrepareRange(move->hand_over, move->replay_from, std::move(structure));
  co_await beside.Join();
  co_return prepared.ok() ? swap : prepared;  // Else writes would wait for all of the swap.
}

Task<void> Store::PrepareSwap(Store* self, std::string catalog, Status* prepared) {
  *prepared = co_await self->meta_->PrepareSwap(kCatalogKey, self->catalog_generation_, catalog);
}

Task<Status> Store::HandOverRest(RangeMove* move) {
  co_await move->from->FenceRange(move->lower, &move->hand_over);
  Status flushed;
  TaskGroup beside;
  beside.Spawn(runtime_.shard_executor(move->from->id()), FlushOldLog(move, &flushed));
  const Status imported = co_await move->to->ImportRest(move->hand_over);
  if (!imported.ok()) co_await move->from->LiftFence(move->lower);  // Not as late as the other's log.
  co_await beside.Join();
  move->report.rest_bytes = move->hand_over.rest_bytes;
  move->hand_over.view.Release();
  move->hand_over.rest.clear();
  co_return imported.ok() ? flushed : imported;
}

// What is imported survives from the swap on, so what its old shard decided before it must, too (F12); what
// that one decided after it need not.
Task<void> Store::FlushOldLog(RangeMove* move, Status* flushed) {
  *flushed = co_await move->from->FlushLogOfRest(move->hand_over);
}

Task<void> Store::AbandonMove(RangeMove* move) {
  move->hand_over.structure.Release();
  co_await move->from->LiftFence(move->lower);
  move->to->ForgetPrepared(move->hand_over.attempt);
  co_await move->from->DropHandOver(std::move(move->hand_over));
}

}  // namespace partita

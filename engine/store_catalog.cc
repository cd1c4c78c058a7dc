#include <algorithm>

#include "engine/base/user_key.h"
#include "engine/catalog_change.h"
#include "engine/commit_log.h"
#include "engine/store.h"

// Changes of the catalog: one at a time, each decided by one durable swap (F19).
//
//  1. Wait for one's turn (BeginChange), and work out the catalog to be.
//  2. Swap it in the meta store (SwapCatalog). When that is in doubt: read until there is an answer
//     (SettleChange); what a read finds is settled and durable, and decides (F15). Until then nothing may go
//     on from a catalog that may be the wrong one, so the turn is kept.
//  3. Put it in force: shards take the ranges of a new table before anyone is routed to them, and let go of a
//     dropped one's before that is acknowledged.
//
// Who asked is answered when that is done, or at the deadline, in doubt (F26, WatchChange); 2 and 3 go on
// without him. A caller in blocking mode does the swap itself, but for a move's, and cannot come back before
// the kernel does; others then find that they do not get their turn. While a change is in doubt, so is its
// table: a look-up by name and, of a deletion, every read and write answer kUnknown. What a move does on disk
// before 2 is watched in the same way; at the deadline it is then not in doubt but will not be made.

namespace partita {

namespace {

// Settling a change in doubt is tried again after 50 ms, doubling up to 2 s.
constexpr uint64_t kSettleNanosMin = 50'000'000;
constexpr uint64_t kSettleNanosMax = 2'000'000'000;

constexpr uint64_t kWatchNanos = 40'000'000;

std::string NameKey(std::string_view account, std::string_view name) {
  return std::string(account) + "/" + FoldCase(name);
}

}  // namespace

Task<Result<Store::ChangePtr>> Store::BeginChange() {
  PARTITA_CO_TRY(CheckWritable());
  for (uint64_t waited = 0;; waited += kTurnPollNanos) {
    AsyncMutex::Guard turn = catalog_mutex_.TryLock();
    if (turn.held()) {
      auto change = std::make_shared<CatalogChange>();
      change->turn = std::move(turn);
      change->next = CatalogCopy();
      co_return change;
    }
    if (catalog_in_doubt()) {
      co_return Status::IoError(
          "tables and their settings cannot be changed before it is known how the last change ended, then by "
          "itself (F26)");
    }
    if (waited >= options_.io_deadline_ns) {
      co_return Status::DeadlineExceeded(
          "another change of tables has not ended yet; this one did not begin");
    }
    co_await SleepFor(kTurnPollNanos);
  }
}

bool Store::catalog_in_doubt() const {
  std::lock_guard lock(names_mutex_);
  return change_in_doubt_ != nullptr;
}

Task<Status> Store::MakeChange(ChangePtr change) {
  PARTITA_CO_TRY(EnterStep(change.get(), ChangeStep::kSwapped));
  StartWatch(change);
  if (Executor::Current() == nullptr) {
    co_await SwapCatalog(this, change);
  } else {
    tasks_.StartHere(SwapCatalog(this, change));
  }
  co_return co_await AwaitAnswer(std::move(change));
}

Task<Status> Store::AwaitAnswer(ChangePtr change) {
  co_await change->answered.Wait();
  std::lock_guard lock(names_mutex_);
  co_return *change->answer;
}

// Not ok: whoever asked was told so at the deadline, and it goes no further.
Status Store::EnterStep(CatalogChange* change, ChangeStep step) {
  std::lock_guard lock(names_mutex_);
  if (change->answer) return *change->answer;
  change->step.store(step);
  return Status();
}

Task<void> Store::SwapCatalog(Store* self, ChangePtr change) {
  const std::string bytes = EncodeCatalog(change->next);
  Result<uint64_t> swapped =
      co_await self->meta_->CompareAndSwap(kCatalogKey, self->catalog_generation_, bytes);
  if (swapped.code() == Code::kUnknown || swapped.code() == Code::kPreconditionFailed) {
    Executor& executor = self->runtime_.shard_executor(ShardId(0));
    self->tasks_.Spawn(executor, SettleChange(self, std::move(change), swapped.status()));
    co_return;
  }
  if (swapped.ok()) {
    self->catalog_generation_ = *swapped;
    co_await self->PutInForce(change.get());
  } else if (change->moved) {
    co_await self->AbandonMove(&*change->moved);
  }
  self->EndChange(change.get(), swapped.status());
}

Task<void> Store::SettleChange(Store* self, ChangePtr change, Status swapped) {
  Result<std::optional<MetaValue>> read = co_await self->meta_->Get(kCatalogKey);
  for (uint64_t pause = kSettleNanosMin; !read.ok() && !self->closing_.load();
       pause = std::min(pause * 2, kSettleNanosMax)) {
    co_await SleepFor(pause);
    read = co_await self->meta_->Get(kCatalogKey);
  }
  Status ended;
  if (!read.ok()) {  // Only the next opening will know.
    ended = Status::Unknown("the catalog change is in doubt: " + read.status().ToString());
  } else if (!read->has_value()) {
    ended = Status::Corruption("meta/catalog vanished");
    if (change->moved) co_await self->AbandonMove(&*change->moved);
  } else {
    self->catalog_generation_ = (*read)->generation;
    if ((*read)->bytes == EncodeCatalog(change->next)) {
      co_await self->PutInForce(change.get());
    } else {
      ended = Status::IoError("the change of tables was not made: " + swapped.message());
      if (change->moved) co_await self->AbandonMove(&*change->moved);
    }
  }
  self->EndChange(change.get(), ended);
}

// EndChange ends the watch, however the change comes out.
void Store::StartWatch(const ChangePtr& change) {
  tasks_.Spawn(runtime_.shard_executor(ShardId(0)), WatchChange(this, change));
}

// Answers whoever asked for a change once a step of it takes too long, counted in turns, so that a process
// that was stopped for a while does not blame its disk. Not while it is fenced: that waits for memory, which
// has its own end, and for logs, which are watched themselves.
Task<void> Store::WatchChange(Store* self, ChangePtr change) {
  ChangeStep seen = change->step.load();
  for (uint64_t waited = 0; waited < self->options_.io_deadline_ns;) {
    co_await SleepFor(kWatchNanos);
    if (change->answered.is_set() || self->closing_.load()) break;
    if (seen != ChangeStep::kPreparing) change->fence_end->Set();
    const ChangeStep step = change->step.load();
    waited = step == seen && step != ChangeStep::kFenced ? waited + kWatchNanos : 0;
    seen = step;
  }
  change->fence_end->Set();
  if (change->answered.is_set() || self->closing_.load()) co_return;
  {
    std::lock_guard lock(self->names_mutex_);
    if (change->decided || change->answer) co_return;
    const Status overdue = DiskOverdue(self->options_.io_deadline_ns);
    if (change->step.load() == ChangeStep::kSwapped) {
      change->answer = Status::Unknown("the change of tables is in doubt: " + overdue.message());
      self->change_in_doubt_ = change;
      self->PublishCatalogLocked();
    } else {
      change->answer = Status::DeadlineExceeded("the range was not moved: " + overdue.message());
    }
  }
  change->answered.Set();
}

Task<void> Store::GiveRangesToShards(CatalogChange* change) {
  if (change->made) {
    const std::string lower = TableLowerBound(change->made->id);
    for (Shard* shard : sound_shards_) {
      std::vector<RangeDescriptor> ranges;
      for (const RangeDescriptor& range : change->next.ranges) {
        if (range.owner == shard->id() && range.lower.starts_with(lower)) ranges.push_back(range);
      }
      if (!ranges.empty()) co_await shard->AddRanges(std::move(ranges), Version(change->made->created_ticks));
    }
  }
  if (!change->reshaped.empty()) {
    Shard* owner = shards_[change->reshaped.front().owner.value].get();
    co_await owner->ReshapeRanges(std::move(change->reshaped), std::move(change->structure));
  }
  if (change->moved) {
    RangeMove& move = *change->moved;
    // Never both at once. Who was routed long ago, when the new owner had the range before, would write there
    // as soon as it has it, and a read at the old one would miss that. From when the old one has let go until
    // the map says so, who is routed there is routed anew: nobody is answered.
    co_await move.from->ReleaseRange(move.lower);
    co_await move.to->TakeRange(*change->next.FindRange(move.lower), move.hand_over.levels);
  }
}

// The catalog to be is durable, so decided (F19).
Task<void> Store::PutInForce(CatalogChange* change) {
  co_await GiveRangesToShards(change);
  {
    std::lock_guard lock(names_mutex_);
    change->decided = true;
    catalog_ = std::move(change->next);
    change_in_doubt_ = nullptr;
    PublishCatalogLocked();
  }
  if (change->moved) {
    RangeMove& move = *change->moved;
    move.report.pause_ns = runtime_.clock().MonotonicNanos() - move.hand_over.fenced_ns;
    change->fence_end->Set();
  }
  change->hold.End();
  change->turn.Release();
  if (change->moved) {
    RangeMove& move = *change->moved;
    move.to->SettleTaken();
    move.from->SettleReleased();
    co_await move.from->DropHandOver(std::move(move.hand_over));
  }
  // Acknowledged only when no shard can decide a write of the old table any more (DESIGN 2).
  if (!change->dropped) co_return;
  for (Shard* shard : sound_shards_) co_await shard->DropTable(change->dropped->id);
}

void Store::EndChange(CatalogChange* change, const Status& status) {
  ChangePtr was_in_doubt;
  {
    std::lock_guard lock(names_mutex_);
    if (change->dropped) std::erase(deleting_, NameKey(change->dropped->account, change->dropped->name));
    if (!change->decided && status.code() != Code::kUnknown) {
      change->decided = true;
      was_in_doubt = std::exchange(change_in_doubt_, nullptr);
      if (was_in_doubt != nullptr) PublishCatalogLocked();
    }
    if (!change->answer) change->answer = status;
  }
  change->hold.End();
  change->structure.Release();
  change->turn.Release();
  if (change->moved) change->moved->alone.Release();
  change->answered.Set();
}

void Store::PublishCatalog() {
  std::lock_guard lock(names_mutex_);
  PublishCatalogLocked();
}

void Store::PublishCatalogLocked() {
  const TableDescriptor* in_doubt = nullptr;
  auto map = std::make_unique<RangeMap>();
  map->ranges = catalog_.ranges;
  if (change_in_doubt_ != nullptr && change_in_doubt_->made) in_doubt = &*change_in_doubt_->made;
  if (change_in_doubt_ != nullptr && change_in_doubt_->dropped) {
    in_doubt = &*change_in_doubt_->dropped;
    map->in_doubt = TableLowerBound(in_doubt->id);
  }
  routes_.Publish(std::move(map));
  auto names = std::make_unique<const NameIndex>(catalog_, in_doubt);
  constexpr size_t kCopiesOfRanges = 2;  // The catalog's and the map's.
  catalog_bytes_->Set(kCopiesOfRanges * catalog_.RangesMemory() + catalog_.TablesMemory() +
                      names->memory_bytes());
  names_.Publish(std::move(names));
}

// A new table needs none of the shards that are not served.
void Store::KeepOffDamagedShards(TableId id, Catalog* catalog) const {
  if (sound_shards_.empty()) return;
  size_t turn = 0;
  for (RangeDescriptor& range : catalog->ranges) {
    if (!range.lower.starts_with(TableLowerBound(id)) || shard_damages_[range.owner.value].ok()) continue;
    range.owner = sound_shards_[turn++ % sound_shards_.size()]->id();
  }
}

// Above every version so far: a table of this name may have lived on another shard, whose clock may be ahead,
// and an ETag of it must match nothing here (F17). By the shards' clocks, which are raised to it: all that is
// written later would have what the wall clock jumped (F65).
uint64_t Store::TicksOfNewTable() const {
  uint64_t ticks = sound_shards_.empty() ? runtime_.clock().WallTicks() : 0;
  for (Shard* shard : sound_shards_) ticks = std::max(ticks, shard->version_now().value);
  if (!degraded()) return ticks;
  // What a damaged shard gave may lie ahead of what is known of it: by a lease where the wall clock passed
  // the rest, as it does unless it was set back since that shard wrote.
  return std::max(ticks, version_max_of_damaged_.value) + kLeaseTicksMax;
}

Task<Result<TableDescriptor>> Store::CreateTable(TableSpec spec) {
  PARTITA_CO_ASSIGN(ChangePtr change, co_await BeginChange());
  Catalog& next = change->next;
  if (next.FindTable(spec.account, spec.name) != nullptr) {
    co_return Status::AlreadyExists("a table named '" + spec.name + "' exists already");
  }
  {
    std::lock_guard lock(names_mutex_);
    if (std::find(deleting_.begin(), deleting_.end(), NameKey(spec.account, spec.name)) != deleting_.end()) {
      co_return Status::Busy("table '" + spec.name + "' is being deleted; try again");
    }
  }
  // After the name: on a full disk, too, who makes sure of a table is to hear that it is there.
  PARTITA_CO_TRY(CheckSpace());
  if (!next.HasTableId()) {
    co_return Status::ResourceExhausted(
        "the store has had as many tables as there are ids for; a new one "
        "can only be made in another store");
  }
  const size_t splits_wanted = spec.split_partitions.size();
  if (splits_wanted > 0 && next.SplitCount() + splits_wanted > kSplitsMax) {
    co_return Status::ResourceExhausted("the store's tables have " + std::to_string(next.SplitCount()) +
                                        " splits, and this one would have " + std::to_string(splits_wanted) +
                                        "; " + std::to_string(kSplitsMax) + " are allowed in all");
  }
  TableDescriptor table;
  table.account = spec.account;
  table.name = spec.name;
  table.raw = spec.raw;
  table.durability = spec.durability;
  table.created_ticks = TicksOfNewTable();
  std::vector<std::string> splits;
  for (const std::string& partition : spec.split_partitions) {
    splits.push_back(EncodeUserKey(TableId(next.next_table_id), partition, ""));
  }
  const TableId id = next.AddTable(table, splits);
  if (degraded()) KeepOffDamagedShards(id, &next);
  const TableDescriptor made = *next.FindTable(id);
  change->made = made;
  PARTITA_CO_TRY(co_await MakeChange(std::move(change)));
  co_return made;
}

Task<Status> Store::DeleteTable(std::string account, std::string name) {
  PARTITA_CO_ASSIGN(ChangePtr change, co_await BeginChange());
  const TableDescriptor* table = change->next.FindTable(account, name);
  if (table == nullptr) co_return WhyNoTable(account, name);
  change->dropped = *table;
  change->next.RemoveTable(table->id);
  {
    std::lock_guard lock(names_mutex_);
    deleting_.push_back(NameKey(account, name));
  }
  co_return co_await MakeChange(std::move(change));
}

}  // namespace partita

#include "test/support/store_workload.h"

#include <algorithm>
#include <cstdio>

#include "engine/base/user_key.h"

namespace partita {

// ---- The world.

void WorkloadCounts::Add(const WorkloadCounts& other) {
  requests += other.requests;
  acknowledged += other.acknowledged;
  refused += other.refused;
  in_doubt += other.in_doubt;
  rows_compared += other.rows_compared;
  flushes += other.flushes;
  compactions += other.compactions;
  drops += other.drops;
  layouts += other.layouts;
  glimpses += other.glimpses;
  gets += other.gets;
  pages += other.pages;
  keeps += other.keeps;
  backups += other.backups;
  restores += other.restores;
  scrubs += other.scrubs;
  continued += other.continued;
  opens_failed += other.opens_failed;
  faults_hit += other.faults_hit;
  disk_operations += other.disk_operations;
  splits += other.splits;
  merges += other.merges;
  moves += other.moves;
}

void StoreWorld::AddTable(size_t index, TableId id, const Catalog& catalog) {
  Table& table = tables[index];
  table.id = id;
  table.pending = Table::Pending::kNone;
  table_ids.insert(id.value);
  for (uint32_t p = 0; p < kPartitions; ++p) {
    for (uint32_t r = 0; r < kRows; ++r) {
      std::string key = EncodeUserKey(id, StoreWorld::PartitionName(p), StoreWorld::RowName(r));
      for (size_t i = 0; i < catalog.ranges.size(); ++i) {
        const RangeDescriptor& range = catalog.ranges[i];
        if (key < range.lower || (!range.upper.empty() && key >= range.upper)) continue;
        // The table and which of its ranges: the same in every life.
        uint32_t part = 0;
        while (i > part &&
               catalog.ranges[i - part - 1].lower.substr(0, kTableIdSize) == key.substr(0, kTableIdSize)) {
          ++part;
        }
        model.AddKey(key, table.name + "/" + StoreWorld::PartitionName(p) + "/" + StoreWorld::RowName(r),
                     id.value * 16 + (index < StoreWorld::kTablesSplit ? p : part), range.owner.value);
      }
    }
  }
}

void StoreWorld::DropTable(size_t index) {
  Table& table = tables[index];
  model.RemoveKeys(*table.id);
  table.id.reset();
  table.pending = Table::Pending::kNone;
}

void StoreWorld::KeepScan(std::string lower, std::string upper, Direction direction) {
  if (open_scans.size() == kOpenScans) open_scans.erase(open_scans.begin());
  open_scans.push_back({std::move(lower), std::move(upper), direction, lives});
}

// ---- A life.

StoreLife::StoreLife(SimRuntime& runtime, StoreWorld& world, const WorkloadOptions& options, const Plan& plan)
    : runtime_(runtime),
      world_(world),
      options_(options),
      plan_(plan),
      random_(plan.seed),
      watch_(&world.rare) {
  ++world_.lives;
  runtime_.OnCompletion([this](const SimOperationRecord& operation) { Watch(operation); });
}

void StoreLife::Watch(const SimOperationRecord& operation) {
  watch_.Saw(operation);
  if (!plan_.crash_within) return;
  const bool within =
      plan_.crash_within == RareState::kCrashInMove ? moving_ : watch_.Within(*plan_.crash_within);
  if (!within) return;
  if (within_++ == plan_.crash_delay) runtime_.CrashNow();
}

void StoreLife::Tell(const std::string& what) const {
  std::printf("  %12.3f ms  %s\n", static_cast<double>(runtime_.now_ns()) / 1e6, what.c_str());
}

void StoreLife::Violation(std::string text) {
  if (crashed()) return;
  if (options_.trace) Tell("VIOLATION: " + text);
  world_.model.Violation(std::move(text));
}

// Short enough that drawn slow operations, up to 2 s long, exceed it (F26); none takes a tenth of it without
// a fault.
constexpr uint64_t kIoDeadlineNanosOfLife = 1'000'000'000;

StoreOptions StoreLife::Options() {
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = world_.move_in_doubt && world_.shards > 0 ? world_.shards : plan_.shards;
  options.memtable_data_bytes = 1024u << Draw(4);
  options.table_file_bytes = 4096u << Draw(3);
  options.log_segment_bytes = 32u << 10;
  options.log_tail_bytes = 16u << 10;
  options.reserve_bytes = 256u << 10;
  options.io_deadline_ns = kIoDeadlineNanosOfLife;
  options.caches_flushes = options.memtable_data_bytes == 8192;  // Else tables are read from the disk.
  options.planted = options_.planted;
  options.planted_log = options_.planted_log;
  options.open_degraded = plan_.open_degraded;
  return options;
}

Task<void> StoreLife::Main() {
  if (options_.glimpses && Chance(40)) {
    co_await Glimpse();
    if (crashed() || !world_.model.violations().empty()) co_return;
  }
  StoreOptions options = Options();
  AddOpeningFaults();
  Result<std::unique_ptr<Store>> opened = co_await Store::Open(runtime_, std::move(options));
  const bool fault = FaultsHit() > 0;
  EndOpeningFaults();
  if (plan_.met != nullptr) plan_.met->opened = opened.status();
  if (!opened.ok() && plan_.met != nullptr) co_return;
  if (!opened.ok()) {
    NoteEnd();
    if (!fault || opened.code() == Code::kCorruption) {
      Violation("the store does not open: " + opened.status().ToString());
    }
    if (!crashed()) ++world_.counts.opens_failed;
    if (options_.trace) Tell("not opened: " + opened.status().ToString());
    co_return;
  }
  store_ = std::move(opened).value();
  if (options_.trace) Tell("opened with " + std::to_string(store_->shard_count()) + " shards");
  if (!crashed()) NoteOpened();
  // A table file that could not be opened is a damaged range for as long as this process lives (F39).
  faulty_ = fault || plan_.only_fault;
  if (fault) co_await SleepFor(kFaultsFeltNs);
  if (!crashed()) {
    if (plan_.met != nullptr) {
      co_await ReadDamaged();
    } else if (plan_.read_back) {
      co_await ReadBack();
    } else {
      world_.model.StartsUnread();
      AdoptShards();
      compared_ = true;
    }
  }
  if (compared_ && plan_.work && !crashed()) co_await Work();
  if (plan_.end == End::kQuietCrash && !crashed()) {
    Status barrier = co_await store_->Barrier();
    if (!barrier.ok()) Violation("barrier: " + barrier.ToString());
    co_await SleepFor(kFaultsFeltNs);
  }
  if (plan_.end != End::kClose && !crashed()) runtime_.CrashNow();
  NoteEnd();
  for (const ShardStatistics& shard : store_->Statistics()) {
    world_.counts.flushes += shard.flushes;
    world_.counts.compactions += shard.compactions;
    world_.rare.Note(RareState::kStalled, shard.stalls);
  }
  world_.rare.Note(RareState::kReadOverdue, store_->waits().overdue_total());
  Status closed = co_await store_->Close();
  co_await keeper_.Join();
  store_.reset();
  runtime_.disk().set_capacity(kCapacity);  // Whoever starts it again has made room.
  if (crashed()) co_return;
  if (!closed.ok() && plan_.damage.empty()) Violation("close failed: " + closed.ToString());
  closed_cleanly_ = closed.ok();
  if (closed_cleanly_ && compared_) world_.model.ClosedCleanly();
}

void StoreLife::NoteOpened() {
  const StoreOpenReport& report = store_->open_report();
  if (report.torn_bytes > 0) world_.rare.Note(RareState::kTornTail);
  if (report.leftover_objects_removed > 0) world_.rare.Note(RareState::kLeftoversRemoved);
  if (world_.last_open_failed) world_.rare.Note(RareState::kOpenFailedThenWorked);
}

// Where it ended, for the counts; what is done after a crash means nothing.
void StoreLife::NoteEnd() {
  world_.counts.disk_operations += runtime_.operations_completed();
  world_.counts.faults_hit += FaultsHit();
  world_.last_open_failed = store_ == nullptr && !crashed();
  if (!crashed()) {
    world_.recovery_crashes = compared_ ? 0 : world_.recovery_crashes;
    return;
  }
  watch_.Crashed();
  if (backing_up_) world_.rare.Note(RareState::kCrashInBackup);
  if (restoring_) world_.rare.Note(RareState::kCrashInRestore);
  if (moving_) world_.rare.Note(RareState::kCrashInMove);
  for (const StoreWorld::Table& table : world_.tables) {
    if (compared_ && table.pending != StoreWorld::Table::Pending::kNone) {
      world_.rare.Note(RareState::kCrashInTableChange);
    }
  }
  world_.recovery_crashes = compared_ ? 0 : world_.recovery_crashes + 1;
  if (world_.recovery_crashes > 0) world_.rare.Note(RareState::kCrashInRecovery);
  if (world_.recovery_crashes == 2) world_.rare.Note(RareState::kCrashInRecoveryTwice);
}

Task<void> StoreLife::Work() {
  if (Chance(30)) partitions_ = 1;
  // Everything could be read: what opening met is over.
  faulty_ = options_.faults || plan_.only_fault || !plan_.damage.empty();
  if (options_.faults) AddFaults();
  for (uint32_t i = 0; i < plan_.damage.size(); ++i) AddFault(kDamage + i, plan_.damage[i]);
  keeper_.Spawn(runtime_.client(0), Keeper(this));
  for (uint32_t i = 1; i <= options_.clients; ++i) tasks_.Spawn(runtime_.client(i), Client(this, i));
  co_await tasks_.Join();
  // On a dead disk a change of tables in doubt is settled never, and ends only with Close.
  uint64_t due = runtime_.now_ns() + 30'000'000'000;
  while (keeper_.running() > 0 && !(crashed() && runtime_.now_ns() > due)) co_await SleepFor(1'000'000);
  if (crashed() || !plan_.damage.empty()) co_return;
  if (faulty_) co_await ProveResumed();
  if (crashed()) co_return;
  if (Chance(30)) {
    StoreModel::Rows rows;
    for (const StoreWorld::Table& table : world_.tables) {
      if (!table.id) continue;
      bool whole = co_await ReadTable(*table.id, &rows);
      if (!whole) co_return;
    }
    world_.model.CheckHistory();
  }
}

Task<void> StoreLife::Client(StoreLife* self, uint32_t index) {
  for (uint32_t i = 0; i < self->options_.requests && !self->crashed(); ++i) {
    if (self->plan_.requests_cut.contains({index, i})) continue;
    self->DrawFor(index, i);
    uint64_t what = self->Draw(100);
    uint64_t pause_ns = self->Chance(15) ? self->Draw(5'000'000) : 0;
    if (what < 75) {
      co_await self->WriteOnce();
    } else if (what < 90) {
      co_await self->GetOnce();
    } else {
      co_await self->ScanOnce();
    }
    if (pause_ns > 0) co_await SleepFor(pause_ns);
  }
}

// ---- Maintenance and tables.

Task<void> StoreLife::Keeper(StoreLife* self) {
  for (size_t i = 0; i < StoreWorld::kTables && !self->crashed(); ++i) {
    const StoreWorld::Table& table = self->world_.tables[i];
    bool missing = !table.id && table.pending == StoreWorld::Table::Pending::kNone;
    if (missing && self->Chance(60)) co_await self->CreateTable(i);
  }
  const uint32_t keeps = self->options_.keeps > 0 ? self->options_.keeps : self->options_.requests / 2;
  for (uint32_t i = 0; i < keeps && !self->crashed(); ++i) {
    if (self->plan_.requests_cut.contains({0, i})) continue;
    self->DrawFor(0, i);
    uint64_t pause_ns = self->Draw(self->Chance(10) ? 200'000'000 : 4'000'000);
    const uint32_t range_percent = self->options_.range_percent;
    if (range_percent > 0 && self->Chance(range_percent)) {
      ++self->world_.counts.keeps;
      pause_ns /= 100;
      co_await self->ChangeRanges();
    } else {
      co_await self->KeepOnce();
    }
    co_await SleepFor(pause_ns);
  }
}

Task<void> StoreLife::KeepOnce() {
  uint64_t what = Draw(100);
  Status done;
  ++world_.counts.keeps;
  if (options_.copies && what >= 94) {
    done = co_await KeepCopies(what);
  } else if (what < 15) {
    co_await ChangeTable();
  } else if (what < 30) {
    co_await ChangeRanges();
  } else if (what < 55) {
    if (options_.trace) Tell("keeper: flush memtables");
    done = co_await store_->FlushMemtables();
  } else if (what < 70) {
    if (options_.trace) Tell("keeper: compact all");
    done = co_await store_->CompactAll();
  } else if (what < 85) {
    if (options_.trace) Tell("keeper: barrier");
    uint64_t begun = world_.model.Now();
    done = co_await store_->Barrier();
    if (done.ok() && !crashed()) world_.model.Barrier(begun);
  } else {
    constexpr int64_t kHour = int64_t{3600} * kTicksPerSecond;
    runtime_.StepWallClock(static_cast<int64_t>(Draw(2 * kHour)) - kHour);
  }
  if (!done.ok() && !faulty_) Violation("maintenance failed: " + done.ToString());
}

Task<Status> StoreLife::KeepCopies(uint64_t what) {
  if (what >= 97) co_return co_await ScrubOnce();
  if (what >= 96 && !world_.copies.empty()) {
    co_await RestoreOnce(Draw(world_.copies.size()), nullptr);
    co_return Status();
  }
  co_return co_await BackUp();
}

Task<void> StoreLife::ChangeTable() {
  size_t index = Draw(StoreWorld::kTables);
  StoreWorld::Table& table = world_.tables[index];
  if (table.pending != StoreWorld::Table::Pending::kNone) co_return;
  if (!table.id) {
    co_await CreateTable(index);
  } else if (Chance(25)) {
    co_await DropTable(index);
  }
}

Task<void> StoreLife::CreateTable(size_t index) {
  StoreWorld::Table& table = world_.tables[index];
  Store::TableSpec spec;
  spec.account = kWorkloadAccount;
  spec.name = table.name;
  spec.raw = true;
  if (index == 0) spec.split_partitions = {"p2"};
  table.pending = StoreWorld::Table::Pending::kCreate;
  Result<TableDescriptor> made = co_await store_->CreateTable(std::move(spec));
  if (options_.trace) Tell("keeper: create " + table.name + ": " + made.status().ToString());
  if (crashed()) co_return;
  if (made.ok()) {
    if (!world_.table_ids.insert(made->id.value).second) Violation("a table id was used twice (F19)");
    world_.AddTable(index, made->id, store_->CatalogCopy());
    co_return;
  }
  if (!faulty_ || made.code() == Code::kAlreadyExists) Violation("create table: " + made.status().ToString());
  if (made.code() != Code::kUnknown) table.pending = StoreWorld::Table::Pending::kNone;
}

Task<void> StoreLife::DropTable(size_t index) {
  StoreWorld::Table& table = world_.tables[index];
  table.pending = StoreWorld::Table::Pending::kDrop;
  Status dropped = co_await store_->DeleteTable(kWorkloadAccount, table.name);
  if (options_.trace) Tell("keeper: drop " + table.name + ": " + dropped.ToString());
  if (crashed()) co_return;
  if (dropped.ok()) {
    ++world_.counts.drops;
    world_.DropTable(index);
    co_return;
  }
  if (!faulty_ || dropped.code() == Code::kNotFound) Violation("delete table: " + dropped.ToString());
  if (dropped.code() != Code::kUnknown) table.pending = StoreWorld::Table::Pending::kNone;
}

// The table was there all the while.
bool StoreLife::Live(size_t table, TableId id) const {
  const StoreWorld::Table& now = world_.tables[table];
  return now.id == id && now.pending == StoreWorld::Table::Pending::kNone;
}

}  // namespace partita

#include "test/support/store_workload.h"

#include <algorithm>

#include "engine/base/user_key.h"

namespace partita {

namespace {

constexpr const char* kAccount = "default";
constexpr uint64_t kCapacity = uint64_t{1} << 40;

std::string PartitionName(uint64_t i) { return "p" + std::to_string(i); }
std::string RowName(uint64_t i) { return "r" + std::to_string(i); }

}  // namespace

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
}

void StoreWorld::AddTable(size_t index, TableId id, const Catalog& catalog) {
  Table& table = tables[index];
  table.id = id;
  table.pending = Table::Pending::kNone;
  table_ids.insert(id.value);
  for (uint32_t p = 0; p < kPartitions; ++p) {
    for (uint32_t r = 0; r < kRows; ++r) {
      std::string key = EncodeUserKey(id, PartitionName(p), RowName(r));
      for (size_t i = 0; i < catalog.ranges.size(); ++i) {
        const RangeDescriptor& range = catalog.ranges[i];
        if (key < range.lower || (!range.upper.empty() && key >= range.upper)) continue;
        // The table and which of its ranges: the same in every life.
        uint32_t part = 0;
        while (i > part &&
               catalog.ranges[i - part - 1].lower.substr(0, kTableIdSize) == key.substr(0, kTableIdSize)) {
          ++part;
        }
        model.AddKey(key, table.name + "/" + PartitionName(p) + "/" + RowName(r), id.value * 16 + part,
                     range.owner.value);
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

// ---- A life.

StoreLife::StoreLife(SimRuntime& runtime, StoreWorld& world, const WorkloadOptions& options, const Plan& plan)
    : runtime_(runtime), world_(world), options_(options), plan_(plan), random_(plan.seed) {}

void StoreLife::Violation(std::string text) {
  if (!crashed()) world_.model.Violation(std::move(text));
}

StoreOptions StoreLife::Options() {
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = plan_.shards;
  options.memtable_data_bytes = 1024u << Draw(4);
  options.table_file_bytes = 4096u << Draw(3);
  options.log_segment_bytes = 32u << 10;
  options.log_tail_bytes = 16u << 10;
  options.planted = options_.planted;
  options.planted_log = options_.planted_log;
  return options;
}

Task<void> StoreLife::Main() {
  if (options_.glimpses && Chance(40)) {
    co_await Glimpse();
    if (crashed() || !world_.model.violations().empty()) co_return;
  }
  StoreOptions options = Options();
  Result<std::unique_ptr<Store>> opened = co_await Store::Open(runtime_, std::move(options));
  if (!opened.ok()) {
    Violation("the store does not open: " + opened.status().ToString());
    co_return;
  }
  store_ = std::move(opened).value();
  if (!crashed()) {
    if (plan_.read_back) {
      co_await ReadBack();
    } else {
      world_.model.StartsUnread();
      AdoptShards();
      compared_ = true;
    }
  }
  if (compared_ && plan_.work && !crashed()) co_await Work();
  if (plan_.end == End::kCrash && !crashed()) runtime_.CrashNow();
  for (const ShardStatistics& shard : store_->Statistics()) {
    world_.counts.flushes += shard.flushes;
    world_.counts.compactions += shard.compactions;
  }
  Status closed = co_await store_->Close();
  co_await keeper_.Join();
  store_.reset();
  runtime_.disk().set_capacity(kCapacity);  // Whoever starts it again has made room.
  if (crashed()) co_return;
  if (!closed.ok()) Violation("close failed: " + closed.ToString());
  closed_cleanly_ = closed.ok();
  if (closed_cleanly_ && compared_) world_.model.ClosedCleanly();
}

Task<void> StoreLife::Work() {
  if (Chance(30)) partitions_ = 1;
  faulty_ = options_.faults;
  if (options_.faults) AddFaults();
  keeper_.Spawn(runtime_.client(0), Keeper(this));
  for (uint32_t i = 1; i <= options_.clients; ++i) tasks_.Spawn(runtime_.client(i), Client(this, i));
  co_await tasks_.Join();
  // On a dead disk a change of tables in doubt is settled never, and ends only with Close.
  uint64_t due = runtime_.now_ns() + 30'000'000'000;
  while (keeper_.running() > 0 && !(crashed() && runtime_.now_ns() > due)) co_await SleepFor(1'000'000);
  if (options_.faults && !crashed()) co_await ProveResumed();
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

Task<void> StoreLife::Client(StoreLife* self, uint32_t) {
  for (uint32_t i = 0; i < self->options_.requests && !self->crashed(); ++i) {
    uint64_t what = self->Draw(100);
    if (what < 75) {
      co_await self->WriteOnce();
    } else if (what < 90) {
      co_await self->GetOnce();
    } else {
      co_await self->ScanOnce();
    }
    if (self->Chance(15)) co_await SleepFor(self->Draw(5'000'000));
  }
}

// ---- Maintenance and tables.

Task<void> StoreLife::Keeper(StoreLife* self) {
  for (size_t i = 0; i < StoreWorld::kTables && !self->crashed(); ++i) {
    const StoreWorld::Table& table = self->world_.tables[i];
    bool missing = !table.id && table.pending == StoreWorld::Table::Pending::kNone;
    if (missing && self->Chance(60)) co_await self->CreateTable(i);
  }
  for (uint32_t i = 0; i < self->options_.requests / 2 && !self->crashed(); ++i) {
    co_await self->KeepOnce();
    co_await SleepFor(self->Draw(self->Chance(10) ? 200'000'000 : 4'000'000));
  }
}

Task<void> StoreLife::KeepOnce() {
  uint64_t what = Draw(100);
  Status done;
  if (what < 30) {
    co_await ChangeTable();
  } else if (what < 55) {
    done = co_await store_->FlushMemtables();
  } else if (what < 70) {
    done = co_await store_->CompactAll();
  } else if (what < 85) {
    uint64_t begun = world_.model.Now();
    done = co_await store_->Barrier();
    if (done.ok() && !crashed()) world_.model.Barrier(begun);
  } else {
    constexpr int64_t kHour = int64_t{3600} * kTicksPerSecond;
    runtime_.StepWallClock(static_cast<int64_t>(Draw(2 * kHour)) - kHour);
  }
  if (!done.ok() && !faulty_) Violation("maintenance failed: " + done.ToString());
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
  spec.account = kAccount;
  spec.name = table.name;
  spec.raw = true;
  if (index == 0) spec.split_partitions = {"p2"};
  table.pending = StoreWorld::Table::Pending::kCreate;
  Result<TableDescriptor> made = co_await store_->CreateTable(std::move(spec));
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
  Status dropped = co_await store_->DeleteTable(kAccount, table.name);
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

// ---- Writes.

StoreModel::Op StoreLife::DrawOp(const std::string& key, uint64_t number, size_t index) {
  StoreModel::Op op;
  op.key = key;
  uint64_t kind = Draw(100);
  op.kind = kind < 55 ? WriteKind::kPut : kind < 75 ? WriteKind::kMerge : WriteKind::kDelete;
  uint64_t condition = Draw(100);
  if (condition < 12) {
    op.precondition = Precondition::kAbsent;
  } else if (condition < 30) {
    op.precondition = Precondition::kPresent;
  } else if (condition < 50) {
    op.precondition = Precondition::kVersionEquals;
    op.expected = world_.model.LastVersion(key);
    if (Chance(15)) op.expected = world_.model.OlderVersion(key);
    if (Chance(8)) op.expected = Version(op.expected.value + Draw(1000));
  }
  if (op.kind == WriteKind::kDelete) return op;
  uint64_t padding = Chance(85) ? Draw(60) : Chance(80) ? Draw(700) : Draw(6000);
  op.content =
      std::to_string(number) + "." + std::to_string(index) + ":" + std::string(padding, 'a' + number % 26);
  return op;
}

Task<void> StoreLife::WriteOnce() {
  size_t table = Draw(StoreWorld::kTables);
  for (size_t i = 0; i < StoreWorld::kTables && !world_.tables[table].id; ++i)
    table = (table + 1) % StoreWorld::kTables;
  if (!world_.tables[table].id) {
    co_await SleepFor(1'000'000);
    co_return;
  }
  uint64_t number = world_.model.NextNumber();
  std::string partition = PartitionName(Draw(partitions_));
  std::vector<StoreModel::Op> ops;
  uint64_t count = Chance(65) ? 1 : 2 + Draw(StoreWorld::kRows - 1);
  uint64_t first = Draw(StoreWorld::kRows);
  for (uint64_t i = 0; i < count; ++i) {
    std::string key =
        EncodeUserKey(*world_.tables[table].id, partition, RowName((first + i) % StoreWorld::kRows));
    ops.push_back(DrawOp(key, number, i));
    if (count > 1 && Chance(60)) ops.back().precondition = Precondition::kNone;  // So that some get through.
  }
  uint64_t level = options_.power_only ? 0 : Draw(100);
  co_await WriteOps(table, std::move(ops),
                    level < 40   ? DurabilityLevel::kPower
                    : level < 75 ? DurabilityLevel::kProcess
                                 : DurabilityLevel::kMemory,
                    number);
}

Task<void> StoreLife::WriteOps(size_t table, std::vector<StoreModel::Op> ops, DurabilityLevel level,
                               uint64_t number) {
  TableId id = *world_.tables[table].id;
  std::vector<WriteOp> given;
  for (const StoreModel::Op& op : ops) {
    given.push_back(WriteOp{op.kind, op.precondition, op.expected, op.key, op.content});
  }
  WriteRequest request;
  request.table = id;
  request.ops = given;
  request.durability = level;
  request.merge = MergeForModel;
  world_.model.Begin(number, level, ops);
  ++world_.counts.requests;
  WriteOutcome outcome = co_await store_->Write(request);
  if (!crashed()) TellWrite(table, id, number, outcome);
}

void StoreLife::TellWrite(size_t table, TableId id, uint64_t number, const WriteOutcome& outcome) {
  StoreModel& model = world_.model;
  Code code = outcome.status.code();
  bool condition =
      code == Code::kAlreadyExists || code == Code::kNotFound || code == Code::kPreconditionFailed;
  if (code == Code::kOk) {
    ++world_.counts.acknowledged;
    model.Acknowledge(number, outcome.version);
  } else if (code == Code::kNotFound && !Live(table, id)) {
    model.Refuse(number, Code::kClosed, 0);  // The table went.
  } else if (condition) {
    ++world_.counts.refused;
    model.Refuse(number, code, outcome.failed_op);
  } else if (code == Code::kUnknown) {
    ++world_.counts.in_doubt;
    model.InDoubt(number);
    if (!faulty_) Violation("in doubt without a fault: " + outcome.status.ToString());
  } else {
    model.Refuse(number, code, 0);
    bool fault = code == Code::kIoError || code == Code::kNoSpace || code == Code::kResourceExhausted;
    if (code != Code::kBusy && !(faulty_ && fault)) Violation("write: " + outcome.status.ToString());
  }
}

// ---- Reads.

Task<void> StoreLife::GetOnce() {
  size_t table = Draw(StoreWorld::kTables);
  if (!world_.tables[table].id) co_return;
  TableId id = *world_.tables[table].id;
  std::string key = EncodeUserKey(id, PartitionName(Draw(partitions_)), RowName(Draw(StoreWorld::kRows)));
  uint64_t begun = world_.model.Now();
  std::string content;
  Shard::ReadAnswer answer = store_->TryGet(key, &content);
  if (answer.state == Shard::ReadState::kNeedsIo || answer.state == Shard::ReadState::kMoved) {
    Result<Shard::ReadAnswer> read = co_await store_->Get(key, &content);
    if (crashed()) co_return;
    if (!read.ok()) {
      bool gone = read.code() == Code::kNotFound && !Live(table, id);
      if (!gone && !faulty_) Violation("get: " + read.status().ToString());
      co_return;
    }
    answer = *read;
  }
  if (answer.state == Shard::ReadState::kFound) world_.model.SeenRow(key, answer.version, content, begun);
  if (answer.state == Shard::ReadState::kAbsent) world_.model.SeenAbsent(key, begun);
  if (answer.state == Shard::ReadState::kInDoubt) world_.model.SeenInDoubt(key, begun);
}

Task<void> StoreLife::ScanOnce() {
  size_t table = Draw(StoreWorld::kTables);
  if (!world_.tables[table].id) co_return;
  TableId id = *world_.tables[table].id;
  std::string lower = EncodeUserKey(id, PartitionName(Draw(partitions_)), RowName(Draw(StoreWorld::kRows)));
  StoreModel::Rows ignored;
  bool whole =
      co_await ScanPages(lower, TableUpperBound(id), Chance(50) ? Direction::kForward : Direction::kBackward,
                         1 + static_cast<uint32_t>(Draw(6)), &ignored);
  (void)whole;
}

// ---- Faults.

void StoreLife::AddFaults() {
  // A disk that is full soon (F54).
  if (Chance(20)) runtime_.disk().set_capacity(runtime_.disk().used_bytes() + Draw(256u << 10));
  for (uint64_t i = 0, n = 1 + Draw(3); i < n; ++i) {
    SimFault fault;
    uint64_t kind = Draw(100);
    fault.skip = Draw(80);
    fault.count = Chance(50) ? 1 : 1 + Draw(20);
    if (Chance(30)) fault.probability = 0.2;
    SimOpSet changes = SimOps(SimOp::kWrite, SimOp::kFlush, SimOp::kFlushDirectory, SimOp::kOpen,
                              SimOp::kRename, SimOp::kTruncate, SimOp::kRemove);
    if (kind < 50) {
      fault.operations = Chance(60) ? SimOps(SimOp::kWrite, SimOp::kFlush) : changes;
    } else if (kind < 70) {
      fault.operations = SimOps(SimOp::kWrite, SimOp::kOpen, SimOp::kTruncate);
      fault.code = Code::kNoSpace;
      fault.count = 1 + Draw(60);
    } else if (kind < 85) {
      fault.effect = SimEffect::kSlow;
      fault.delay_ns = 1'000'000 + Draw(2'000'000'000);
    } else {
      fault.effect = SimEffect::kShort;
      fault.operations = SimOps(SimOp::kRead, SimOp::kWrite);
      fault.count = 100;
    }
    runtime_.AddFault(fault);
  }
}

// F21, F56: writes resume by themselves once the fault is over.
Task<void> StoreLife::ProveResumed() {
  runtime_.ClearFaults();
  runtime_.disk().set_capacity(kCapacity);
  co_await SleepFor(10'000'000'000);
  if (crashed()) co_return;
  faulty_ = false;
  for (size_t table = 0; table < StoreWorld::kTables; ++table) {
    if (!world_.tables[table].id || world_.tables[table].pending != StoreWorld::Table::Pending::kNone)
      continue;
    for (uint32_t p = 0; p < StoreWorld::kPartitions && !crashed(); ++p) {
      uint64_t number = world_.model.NextNumber();
      StoreModel::Op op;
      op.key = EncodeUserKey(*world_.tables[table].id, PartitionName(p), RowName(0));
      op.content = std::to_string(number) + ".0:resumed";
      std::vector<StoreModel::Op> ops{op};
      co_await WriteOps(table, std::move(ops), DurabilityLevel::kPower, number);
    }
  }
}

}  // namespace partita

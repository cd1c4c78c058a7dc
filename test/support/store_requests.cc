#include "engine/base/user_key.h"
#include "test/support/store_workload.h"

// What clients ask of a store.

namespace partita {

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
  std::string partition = StoreWorld::PartitionName(Draw(partitions_));
  std::vector<StoreModel::Op> ops;
  uint64_t count = Chance(65) ? 1 : 2 + Draw(StoreWorld::kRows - 1);
  uint64_t first = Draw(StoreWorld::kRows);
  for (uint64_t i = 0; i < count; ++i) {
    std::string key = EncodeUserKey(*world_.tables[table].id, partition,
                                    StoreWorld::RowName((first + i) % StoreWorld::kRows));
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
  if (options_.trace) TellRequest(number, level, ops);
  WriteOutcome outcome = co_await store_->Write(request);
  if (options_.trace) {
    Tell("#" + std::to_string(number) + " answered " + outcome.status.ToString() +
         (outcome.status.ok() ? ", version " + std::to_string(outcome.version.value) : ""));
  }
  if (!crashed()) TellWrite(table, id, number, outcome);
}

void StoreLife::TellRequest(uint64_t number, DurabilityLevel level,
                            const std::vector<StoreModel::Op>& ops) const {
  std::string text =
      "#" + std::to_string(number) + " at level " + std::to_string(static_cast<int>(level)) + ":";
  for (const StoreModel::Op& op : ops) {
    text += op.kind == WriteKind::kPut ? " put " : op.kind == WriteKind::kMerge ? " merge " : " delete ";
    text += world_.model.EntityOf(op.key);
    if (op.precondition == Precondition::kAbsent) text += " if absent";
    if (op.precondition == Precondition::kPresent) text += " if present";
    if (op.precondition == Precondition::kVersionEquals) {
      text += " if at " + std::to_string(op.expected.value);
    }
  }
  Tell(text);
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
    // kDeadlineExceeded: what it had to read before did not come (F26).
    const bool fault = code == Code::kIoError || code == Code::kNoSpace || code == Code::kResourceExhausted ||
                       code == Code::kDeadlineExceeded;
    const bool damage = code == Code::kCorruption && !plan_.damage.empty();
    if (code != Code::kBusy && !damage && !(faulty_ && fault))
      Violation("write: " + outcome.status.ToString());
  }
}

// ---- Reads.

Task<void> StoreLife::GetOnce() {
  size_t table = Draw(StoreWorld::kTables);
  if (!world_.tables[table].id) co_return;
  TableId id = *world_.tables[table].id;
  std::string key = EncodeUserKey(id, StoreWorld::PartitionName(Draw(partitions_)),
                                  StoreWorld::RowName(Draw(StoreWorld::kRows)));
  uint64_t begun = world_.model.Now();
  ++world_.counts.gets;
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
  StoreWorld::OpenScan scan;
  scan.lower = EncodeUserKey(id, StoreWorld::PartitionName(Draw(partitions_)),
                             StoreWorld::RowName(Draw(StoreWorld::kRows)));
  scan.upper = TableUpperBound(id);
  scan.direction = Chance(50) ? Direction::kForward : Direction::kBackward;
  uint32_t limit = 1 + static_cast<uint32_t>(Draw(6));
  if (options_.copies && Chance(50) && !world_.open_scans.empty()) {
    // Its table may be gone, and a new one of that name be there: then it is not found.
    const size_t which = Draw(world_.open_scans.size());
    scan = std::move(world_.open_scans[which]);
    world_.open_scans.erase(world_.open_scans.begin() + static_cast<ptrdiff_t>(which));
    ++world_.counts.continued;
    if (scan.life != world_.lives) world_.rare.Note(RareState::kScanContinuedLater);
  }
  StoreModel::Rows ignored;
  bool whole = co_await ScanPages(scan.lower, scan.upper, scan.direction, limit, &ignored);
  (void)whole;
}

}  // namespace partita

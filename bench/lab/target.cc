#include "bench/lab/target.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "api/limits.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

constexpr size_t kLoadBatch = 1'000;
constexpr uint64_t kSplitSample = 1'000;
// As the SDKs: so many tries in all, each after the wait that the answer names.
constexpr int kTriesMax = 4;

// PartitionKeys that cut the table into `pieces` of about as many records.
std::vector<std::string> SplitsOf(const Layout& layout, const std::string& table,
                                  const RecordGenerator& generator, uint32_t pieces) {
  std::vector<std::string> keys;
  Record record;
  const uint64_t records = std::max(generator.experiment().records, kSplitSample);
  for (uint64_t k = 0; k < kSplitSample; ++k) {
    generator.Make(k * (records / kSplitSample), &record);
    for (const EntityPlan& place : layout.entities) {
      if (place.table == table) keys.push_back(place.partition_key.Of(record));
    }
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::string> splits;
  for (uint32_t piece = 1; piece < pieces; ++piece) {
    const std::string& key = keys[keys.size() * piece / pieces];
    if (key != keys.front() && (splits.empty() || splits.back() < key)) splits.push_back(key);
  }
  return splits;
}

}  // namespace

Result<std::unique_ptr<Target>> Target::Make(std::unique_ptr<TableStore> store, const Layout& layout,
                                             const RecordGenerator& generator, const std::atomic<bool>& stop,
                                             const std::function<bool(double share)>& loading) {
  std::unique_ptr<Target> target(new Target(std::move(store), layout, generator, stop));
  PARTITA_TRY(target->MakeTables());
  PARTITA_TRY(target->Load(loading));
  PARTITA_TRY(target->store_->Settle(generator.experiment().limits));
  return target;
}

Status Target::MakeTables() {
  std::set<std::string> made;
  for (const EntityPlan& place : layout_.entities) {
    if (!made.insert(place.table).second) continue;
    PARTITA_TRY(store_->MakeTable(place.table, SplitsOf(layout_, place.table, generator_, store_->pieces())));
  }
  return Status();
}

Status Target::Load(const std::function<bool(double share)>& loading) {
  const Op put{.kind = OpKind::kUpsert};
  std::map<std::string, std::vector<partita::Write>> waiting;
  const uint64_t records = generator_.experiment().records;
  uint64_t record = 0;
  const GoesOn goes_on = [&] {
    return loading(records == 0 ? 1 : static_cast<double>(record) / static_cast<double>(records));
  };
  for (; record < records; ++record) {
    if (record % kLoadBatch == 0 && !goes_on()) return Status::Cancelled("stopped while loading");
    for (WriteRequestPlan& request : PlanWrites(layout_, put, {.record = record}, generator_)) {
      std::vector<partita::Write>& writes = waiting[*request.table];
      std::move(request.writes.begin(), request.writes.end(), std::back_inserter(writes));
      if (writes.size() < kLoadBatch) continue;
      PARTITA_TRY(store_->Load(*request.table, std::move(writes), goes_on));
      writes.clear();
    }
  }
  for (auto& [table, writes] : waiting) PARTITA_TRY(store_->Load(table, std::move(writes), goes_on));
  return Status();
}

Status Target::Try(KeyRows::Span rows, const std::function<Status()>& request, Outcome* outcome) const {
  const bool retries = generator_.experiment().on_throttled == OnThrottled::kRetry;
  outcome->touches.push_back({.rows = rows});
  for (int attempt = 1;; ++attempt) {
    ++outcome->requests;
    Status status = request();
    if (status.code() != Code::kThrottled) return status;
    if (attempt == 1) outcome->throttled = true;
    ++outcome->touches.back().refused;
    outcome->by_account = status.detail() == static_cast<uint16_t>(ThrottledBy::kAccount);
    if (!retries || attempt == kTriesMax) return status;
    const std::chrono::microseconds wait(std::max<uint64_t>(status.retry_after_us(), 1'000));
    if (!SlicedWait(wait, [&] { return !stop_.load(std::memory_order_relaxed); })) return status;
  }
}

Outcome Target::Execute(const Operation& operation) const {
  const Op& op = generator_.experiment().ops[operation.op];
  Outcome outcome;
  if (op.reads()) {
    outcome.status = Read(op, operation, &outcome);
  } else {
    for (const WriteRequestPlan& request : PlanWrites(layout_, op, operation, generator_)) {
      outcome.status = Write(request, &outcome);
      if (!outcome.status.ok()) break;
    }
  }
  if (outcome.status.code() == Code::kNotFound) {
    outcome.missing = true;
    outcome.status = Status();
  }
  return outcome;
}

Status Target::Write(const WriteRequestPlan& request, Outcome* outcome) const {
  const KeyRows::Span rows = key_rows_.Of(*request.table, request.writes[0].entity.partition_key());
  const Status status = Try(
      rows, [&] { return store_->Transact(*request.table, request.writes); }, outcome);
  if (!status.ok()) return status;
  outcome->written += request.writes.size();
  outcome->touches.back().entities = static_cast<double>(request.writes.size());
  return status;
}

Status Target::Read(const Op& op, const Operation& operation, Outcome* outcome) const {
  PARTITA_ASSIGN(const QueryPlan plan, PlanRead(layout_, op, operation, generator_));
  const uint64_t top = plan.ordered ? op.limit : 0;
  for (const QueryPart& part : plan.parts) {
    PARTITA_TRY(ReadPart(op, part, top, plan, outcome));
    if (top > 0 && !op.order_field.has_value() && outcome->returned >= top) break;
  }
  // The client merges and sorts what came, and keeps the first.
  if (op.limit > 0) outcome->returned = std::min(outcome->returned, op.limit);
  outcome->missing = op.kind == OpKind::kGet && outcome->returned == 0;
  return Status();
}

Status Target::ReadPart(const Op& op, const QueryPart& part, uint64_t top, const QueryPlan& plan,
                        Outcome* outcome) const {
  const std::string& name = layout_.entities[plan.entity].table;
  if (part.kind == PlanKind::kPoint && plan.residual.empty()) {
    Entity found;
    const auto request = [&]() -> Status {
      PARTITA_ASSIGN(found, store_->Get(name, part.partition_lower, part.row_lower));
      return Status();
    };
    const Status status = Try(key_rows_.Of(name, part.partition_lower), request, outcome);
    ++outcome->scanned;
    if (status.code() != Code::kThrottled) outcome->touches.back().entities = 1;
    if (!status.ok()) return status.code() == Code::kNotFound ? Status() : status;
    ++outcome->returned;
    outcome->bytes += EntitySizeBytes(found);
    return plan.lookups ? LookUp(found, outcome) : Status();
  }
  const bool is_one = part.kind <= PlanKind::kPartition;
  const KeyRows::Span rows = is_one ? key_rows_.Of(name, part.partition_lower)
                                    : key_rows_.Of(name, part.partition_lower, part.partition_upper);
  TableStore::Question question{.filter = part.filter, .wants_properties = plan.lookups};
  // What leads to the record itself is needed whole.
  if (!plan.lookups) {
    for (const size_t field : op.select)
      question.select.push_back(generator_.experiment().fields[field].name);
  }
  uint64_t given = 0;
  do {
    if (top > 0) question.top = top - given;
    TableStore::Answer answer;
    const auto request = [&]() -> Status {
      PARTITA_ASSIGN(answer, store_->Query(name, question));
      return Status();
    };
    PARTITA_TRY(Try(rows, request, outcome));
    outcome->touches.back().entities = static_cast<double>(answer.scanned);
    outcome->scanned += answer.scanned;
    outcome->bytes += answer.bytes;
    given += answer.entities.size();
    outcome->returned += answer.entities.size();
    if (plan.lookups) {
      for (const Entity& entry : answer.entities) PARTITA_TRY(LookUp(entry, outcome));
    }
    question.continuation = std::move(answer.continuation);
  } while (!question.continuation.empty() && (top == 0 || given < top));
  return Status();
}

Status Target::LookUp(const Entity& index_entry, Outcome* outcome) const {
  const std::vector<Field>& fields = generator_.experiment().fields;
  Record record;
  for (const Field& field : fields) {
    const PropertyValue* value = index_entry.Get(field.name);
    record.values.push_back(value == nullptr ? PropertyValue() : *value);
  }
  const EntityPlan& base = layout_.entities[0];
  const std::string partition_key = base.partition_key.Of(record);
  const Status status = Try(
      key_rows_.Of(base.table, partition_key),
      [&] { return store_->Get(base.table, partition_key, base.row_key.Of(record)).status(); }, outcome);
  ++outcome->scanned;
  if (status.code() != Code::kThrottled) outcome->touches.back().entities = 1;
  return status.code() == Code::kNotFound ? Status() : status;
}

}  // namespace partita::lab

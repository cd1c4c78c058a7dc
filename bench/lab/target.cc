#include "bench/lab/target.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/limits.h"
#include "api/value_text.h"
#include "bench/lab/draw.h"
#include "bench/lab/entity_units.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

constexpr size_t kLoadBatch = 1'000;
constexpr uint64_t kSplitRecordsMin = 1'000, kSplitSample = 4'000;
// As the SDKs: so many tries in all, each after the wait that the answer names.
constexpr int kTriesMax = 4;
// Rounds of reading and writing something that others write too, before a client gives up.
constexpr int kRoundsMax = 50;

// PartitionKeys that cut the table into `pieces` of about as many records.
std::vector<std::string> SplitsOf(const Layout& layout, const std::string& table,
                                  const RecordGenerator& generator, uint32_t pieces) {
  std::vector<std::string> keys;
  Record record;
  const uint64_t records = std::max(generator.experiment().records, kSplitRecordsMin);
  const uint64_t step = std::max<uint64_t>(records / kSplitSample, 1);
  for (uint64_t from = 0; from < records; from += step) {
    generator.Make(DrawnFrom(from, step, records), &record);
    for (const EntityPlan& place : layout.entities) {
      if (place.table == table && place.Takes(record)) keys.push_back(place.partition_key.Of(record));
    }
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::string> splits;
  if (keys.empty()) return splits;
  for (uint32_t piece = 1; piece < pieces; ++piece) {
    const auto wanted = keys.begin() + static_cast<ptrdiff_t>(keys.size() * piece / pieces);
    const auto [first, last] = std::equal_range(keys.begin(), keys.end(), *wanted);
    // The records of one key stay together, on the side where more of them belong.
    const std::string& key = last != keys.end() && last - wanted < wanted - first ? *last : *first;
    if (key != keys.front() && (splits.empty() || splits.back() < key)) splits.push_back(key);
  }
  return splits;
}

// Takes a record's pack out of its requests, which leaves its copies there.
// REQUIRES: the layout packs. Pointers to a table's name tell the record's own request from those of copies.
Write TakePack(const Layout& layout, std::vector<WriteRequestPlan>* requests) {
  const auto own = std::find_if(requests->begin(), requests->end(), [&](const WriteRequestPlan& request) {
    return !request.list && request.table == &layout.entities[0].table;
  });
  PARTITA_ASSERT(own != requests->end());
  Write pack = std::move(own->writes.front());
  own->writes.erase(own->writes.begin());
  return pack;
}

// Whether the record's pack could be joined to the last one, being the same entity.
bool JoinPacked(const EntityPlan& place, const Write& write, Write* last) {
  const Entity& entity = write.entity;
  Entity& whole = last->entity;
  if (whole.partition_key() != entity.partition_key() || whole.row_key() != entity.row_key()) return false;
  const std::string& packed = place.fold_name->text();
  whole.Set(packed, *whole.GetString(packed) + '\n' + *entity.GetString(packed));
  return true;
}

// Whether it was let through and charged: what is refused for another reason than the targets costs as well.
bool IsCharged(const Status& status) {
  return status.ok() || status.code() == Code::kNotFound || status.code() == Code::kAlreadyExists ||
         status.code() == Code::kPreconditionFailed;
}

}  // namespace

Target::Target(std::unique_ptr<TableStore> store, const Layout& layout, const RecordGenerator& generator,
               const std::atomic<bool>& stop)
    : store_(std::move(store)),
      layout_(layout),
      generator_(generator),
      stop_(stop),
      key_rows_(layout, generator) {
  const std::vector<Op>& ops = generator.experiment().ops;
  if (std::none_of(ops.begin(), ops.end(), [](const Op& op) { return op.reads(); })) return;
  const EntityModel model(layout, generator);
  planner_.emplace(layout, generator, model);
  for (size_t place = 0; place < layout.entities.size(); ++place) {
    const bool is_list = layout.entities[place].list_of.has_value();
    sums_.push_back(is_list ? EntityModel::Sum() : model.SumOf(place));
  }
}

Result<std::unique_ptr<Target>> Target::Make(std::unique_ptr<TableStore> store, const Layout& layout,
                                             const RecordGenerator& generator, const std::atomic<bool>& stop,
                                             const std::function<bool(double share)>& loading) {
  std::unique_ptr<Target> target(new Target(std::move(store), layout, generator, stop));
  PARTITA_TRY(target->MakeTables());
  PARTITA_TRY(target->Load(loading));
  PARTITA_TRY(target->store_->Settle(generator.experiment().limits, [&] { return loading(1); }));
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
  std::map<std::string, std::map<std::pair<std::string, std::string>, Entity>> lists;  // By table and keys.
  const EntityPlan& base = layout_.entities[0];
  // The records of a pack are neighbours; it is loaded when it is whole, for it replaces what was there.
  std::optional<partita::Write> pack;
  const uint64_t records = generator_.experiment().records;
  uint64_t record = 0;
  const GoesOn goes_on = [&] {
    return loading(records == 0 ? 1 : static_cast<double>(record) / static_cast<double>(records));
  };
  for (; record < records; ++record) {
    if (record % kLoadBatch == 0 && !goes_on()) return Status::Cancelled("stopped while loading");
    std::vector<WriteRequestPlan> requests = PlanWrites(layout_, put, {.record = record}, generator_);
    if (base.fold_packs) {
      partita::Write write = TakePack(layout_, &requests);
      if (!pack || !JoinPacked(base, write, &*pack)) {
        if (pack) waiting[base.table].push_back(*std::move(pack));
        pack = std::move(write);
      }
    }
    for (WriteRequestPlan& request : requests) {
      if (request.list) {
        const ListChange& change = *request.list;
        Entity& list = lists[*request.table][{change.partition_key, change.row_key}];
        const std::string* listed = list.GetString(change.property);
        if (listed == nullptr) list = Entity(change.partition_key, change.row_key);
        // Nobody is listed twice among the first records, so no list need be looked through.
        list.Set(change.property, listed == nullptr ? change.value : *listed + '\n' + change.value);
        continue;
      }
      std::vector<partita::Write>& writes = waiting[*request.table];
      std::move(request.writes.begin(), request.writes.end(), std::back_inserter(writes));
      if (writes.size() < kLoadBatch) continue;
      PARTITA_TRY(store_->Load(*request.table, std::exchange(writes, {}), goes_on));
    }
  }
  if (pack) waiting[base.table].push_back(*std::move(pack));
  for (auto& [table, entities] : lists) {
    std::vector<partita::Write>& writes = waiting[table];
    for (auto& [keys, list] : entities) {
      writes.push_back({.action = WriteAction::kInsertOrReplace, .entity = std::move(list), .if_match = {}});
      if (writes.size() < kLoadBatch) continue;
      if (!goes_on()) return Status::Cancelled("stopped while loading");
      PARTITA_TRY(store_->Load(table, std::exchange(writes, {}), goes_on));
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
    outcome.status =
        op.kind == OpKind::kModify ? Modify(op, operation, &outcome) : WriteAll(op, operation, &outcome);
  }
  // Who writes something new, or asks what there is, is about no record that could be missing.
  const bool is_of_one = !op.writes_new() && op.kind != OpKind::kQuery;
  if (is_of_one && outcome.status.code() == Code::kNotFound) {
    outcome.missing = true;
    outcome.status = Status();
  }
  return outcome;
}

Status Target::WriteAll(const Op& op, const Operation& operation, Outcome* outcome) const {
  for (const WriteRequestPlan& request : PlanWrites(layout_, op, operation, generator_)) {
    PARTITA_TRY(request.list ? ChangeList(request, outcome) : Write(request, outcome));
  }
  return Status();
}

Result<Entity> Target::Get(const std::string& table, const std::string& partition_key,
                           const std::string& row_key, Outcome* outcome) const {
  Entity found;
  const auto request = [&]() -> Status {
    PARTITA_ASSIGN(found, store_->Get(table, partition_key, row_key));
    return Status();
  };
  Status status = Try(key_rows_.Of(table, partition_key), request, outcome);
  if (IsCharged(status)) outcome->touches.back().entities = static_cast<double>(UnitsOf(found));
  if (!status.ok()) return status;
  return found;
}

Result<Entity> Target::GetWanted(const Op& op, size_t entity, const std::string& partition_key,
                                 const std::string& row_key, Outcome* outcome) const {
  const std::string& table = layout_.entities[entity].table;
  const std::vector<std::string> select = SelectOf(op, entity);
  if (select.empty()) return Get(table, partition_key, row_key, outcome);
  Entity found;
  const auto request = [&]() -> Status {
    PARTITA_ASSIGN(found, store_->GetSelected(table, partition_key, row_key, select));
    return Status();
  };
  Status status = Try(key_rows_.Of(table, partition_key), request, outcome);
  // It costs what the whole entity does.
  const double units = status.ok() ? UnitsEach({.entity = entity}) : 1;
  if (IsCharged(status)) outcome->touches.back().entities = units;
  if (!status.ok()) return status;
  return found;
}

Status Target::ReadFirst(WriteRequestPlan* request, Outcome* outcome) const {
  partita::Write& write = request->writes[0];
  PARTITA_ASSIGN(const Entity found,
                 Get(*request->table, write.entity.partition_key(), write.entity.row_key(), outcome));
  write.if_match = found.etag();
  return Status();
}

Status Target::Modify(const Op& op, const Operation& operation, Outcome* outcome) const {
  std::vector<WriteRequestPlan> requests = PlanWrites(layout_, op, operation, generator_);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i > 0) {
      PARTITA_TRY(Write(requests[i], outcome));
      continue;
    }
    Status status;
    for (int round = 1; round <= kRoundsMax; ++round) {
      PARTITA_TRY(ReadFirst(&requests[0], outcome));
      status = Write(requests[0], outcome);
      if (status.code() != Code::kPreconditionFailed) break;
    }
    PARTITA_TRY(status);
  }
  return Status();
}

Status Target::ChangeList(const WriteRequestPlan& request, Outcome* outcome) const {
  const ListChange& change = *request.list;
  Status status;
  for (int round = 1; round <= kRoundsMax; ++round) {
    WriteRequestPlan put{.table = request.table, .writes = {}, .list = {}};
    Entity entity(change.partition_key, change.row_key);
    put.writes.push_back({.action = WriteAction::kReplace, .entity = entity, .if_match = {}});
    const Result<Entity> found = Get(*request.table, change.partition_key, change.row_key, outcome);
    const bool is_new = found.code() == Code::kNotFound;
    if (!found.ok() && !is_new) return found.status();
    if (is_new && change.removes) return Status();
    const std::string* listed = is_new ? nullptr : found->GetString(change.property);
    put.writes[0].entity.Set(change.property, change.Of(listed == nullptr ? "" : *listed));
    put.writes[0].if_match = is_new ? "" : found->etag();
    if (is_new) put.writes[0].action = WriteAction::kInsert;
    status = Write(put, outcome);
    // Somebody else changed the list meanwhile, or made it.
    const bool came_late =
        status.code() == Code::kPreconditionFailed || status.code() == Code::kAlreadyExists;
    if (!came_late) return status;
  }
  return status;
}

Status Target::Write(const WriteRequestPlan& request, Outcome* outcome) const {
  const KeyRows::Span rows = key_rows_.Of(*request.table, request.writes[0].entity.partition_key());
  const Status status = Try(
      rows, [&] { return store_->Transact(*request.table, request.writes); }, outcome);
  if (IsCharged(status)) {
    uint64_t units = 0;
    for (const partita::Write& write : request.writes) units += UnitsOf(write);
    outcome->touches.back().entities = static_cast<double>(units);
  }
  if (status.ok()) outcome->written += request.writes.size();
  return status;
}

Status Target::Read(const Op& op, const Operation& operation, Outcome* outcome) const {
  PARTITA_ASSIGN(const QueryPlan plan, planner_->Plan(operation));
  const uint64_t top = TopOf(plan, sums_[plan.entity], operation.LimitOf(op));
  outcome->client_filters = plan.client_filters;
  for (const QueryPart& part : plan.parts) {
    const EntityPlan& place = layout_.entities[part.entity];
    if (place.list_of) {
      const KnownFields known = WhatIsKnown(op, operation, generator_);
      PARTITA_TRY(ReadList(op, place, part, known.probe, top, outcome));
      continue;
    }
    PARTITA_TRY(ReadPart(op, part, top, plan, outcome));
    if (top > 0 && !op.order_field.has_value() && outcome->returned >= top) break;
  }
  // The client merges and sorts what came, and keeps the first.
  const uint64_t kept = KeptOf(plan, sums_[plan.entity], operation.LimitOf(op));
  if (kept > 0) outcome->returned = std::min(outcome->returned, kept);
  outcome->missing = op.kind == OpKind::kGet && outcome->returned == 0;
  return Status();
}

Status Target::ReadPart(const Op& op, const QueryPart& part, uint64_t top, const QueryPlan& plan,
                        Outcome* outcome) const {
  const std::string& name = layout_.entities[part.entity].table;
  if (part.kind == PlanKind::kPoint && plan.residual.empty()) {
    // What leads to the record itself is needed whole.
    const Result<Entity> found =
        plan.lookups ? Get(name, part.partition_lower, part.row_lower, outcome)
                     : GetWanted(op, part.entity, part.partition_lower, part.row_lower, outcome);
    ++outcome->scanned;
    if (found.code() == Code::kNotFound) return Status();
    if (!found.ok()) return found.status();
    ++outcome->returned;
    outcome->bytes += EntitySizeBytes(*found);
    return plan.lookups ? LookUp(op, *found, outcome) : Status();
  }
  const bool is_one = part.kind <= PlanKind::kPartition;
  const KeyRows::Span rows = is_one ? key_rows_.Of(name, part.partition_lower)
                                    : key_rows_.Of(name, part.partition_lower, part.partition_upper);
  TableStore::Question question{.filter = part.filter, .wants_properties = plan.lookups};
  if (!plan.lookups) question.select = SelectOf(op, part.entity);
  uint64_t given = 0;
  do {
    if (top > 0) question.top = top - given;
    TableStore::Answer answer;
    const auto request = [&]() -> Status {
      PARTITA_ASSIGN(answer, store_->Query(name, question));
      return Status();
    };
    PARTITA_TRY(Try(rows, request, outcome));
    const uint64_t scanned = answer.scanned.value_or(answer.entities.size());
    outcome->tells_scanned = outcome->tells_scanned && answer.scanned.has_value();
    outcome->touches.back().entities = static_cast<double>(scanned) * UnitsEach(part);
    outcome->scanned += scanned;
    outcome->bytes += answer.bytes;
    given += answer.entities.size();
    outcome->returned += answer.entities.size();
    if (plan.lookups) {
      for (const Entity& entry : answer.entities) PARTITA_TRY(LookUp(op, entry, outcome));
    }
    question.continuation = std::move(answer.continuation);
  } while (!question.continuation.empty() && (top == 0 || given < top));
  return Status();
}

std::vector<std::string> Target::SelectOf(const Op& op, size_t entity) const {
  const EntityPlan& place = layout_.entities[entity];
  // What is folded into it has names that the records give.
  const bool is_folded = std::find(op.select.begin(), op.select.end(), place.fold_from) != op.select.end();
  std::vector<std::string> names;
  if (place.fold_name && is_folded) return names;
  for (const size_t field : op.select) names.push_back(generator_.experiment().fields[field].name);
  return names;
}

double Target::UnitsEach(const QueryPart& part) const {
  EntityModel::Sum all = sums_[part.entity];
  for (const size_t also : part.also) {
    all.entities += sums_[also].entities;
    all.units += sums_[also].units;
  }
  return all.entities > 0 ? all.units / all.entities : 1;
}

Status Target::ReadList(const Op& op, const EntityPlan& place, const QueryPart& part, Record known,
                        uint64_t top, Outcome* outcome) const {
  const Result<Entity> list = Get(place.table, part.partition_lower, part.row_lower, outcome);
  ++outcome->scanned;
  if (list.code() == Code::kNotFound) return Status();
  if (!list.ok()) return list.status();
  outcome->bytes += EntitySizeBytes(*list);
  const Field& field = generator_.experiment().fields[*place.list_of];
  const std::string* listed = list->GetString(ListPropertyOf(field));
  if (listed == nullptr) return Status();
  for (size_t at = 0; at < listed->size() && (top == 0 || outcome->returned < top);) {
    const size_t end = std::min(listed->find('\n', at), listed->size());
    PARTITA_ASSIGN(known.values[*place.list_of],
                   ParseValueText(field.type(), std::string_view(*listed).substr(at, end - at)));
    at = end + 1;
    PARTITA_TRY(LookUpRecord(op, known, outcome));
    ++outcome->returned;
  }
  return Status();
}

Status Target::LookUp(const Op& op, const Entity& index_entry, Outcome* outcome) const {
  const std::vector<Field>& fields = generator_.experiment().fields;
  Record record;
  for (const Field& field : fields) {
    const PropertyValue* value = index_entry.Get(field.name);
    record.values.push_back(value == nullptr ? PropertyValue() : *value);
  }
  return LookUpRecord(op, record, outcome);
}

Status Target::LookUpRecord(const Op& op, const Record& record, Outcome* outcome) const {
  const EntityPlan& base = layout_.BaseOf(record);
  const auto entity = static_cast<size_t>(&base - layout_.entities.data());
  const Result<Entity> found =
      GetWanted(op, entity, base.partition_key.Of(record), base.row_key.Of(record), outcome);
  ++outcome->scanned;
  return found.code() == Code::kNotFound ? Status() : found.status();
}

}  // namespace partita::lab

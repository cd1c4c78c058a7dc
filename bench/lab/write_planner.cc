#include "bench/lab/write_planner.h"

#include <algorithm>
#include <unordered_map>

#include "api/limits.h"

namespace partita::lab {
namespace {

WriteAction ActionOf(OpKind kind, bool folded) {
  if (folded) return WriteAction::kInsertOrMerge;
  switch (kind) {
    case OpKind::kInsert:
      return WriteAction::kInsert;
    case OpKind::kMerge:
      return WriteAction::kMerge;
    case OpKind::kReplace:
      return WriteAction::kReplace;
    case OpKind::kDelete:
      return WriteAction::kDelete;
    default:
      return WriteAction::kInsertOrReplace;
  }
}

// Joins writes to transactions by table and partition, within what one may hold. Writes of one record that
// must be atomic are added together.
class Grouping {
 public:
  explicit Grouping(std::vector<WriteRequestPlan>* requests) : requests_(*requests) {}

  // One record's writes to one table and partition.
  void Add(const std::string& table, std::vector<Write> together) {
    const std::string key = table + '\0' + together.front().entity.partition_key();
    uint64_t bytes = 0;
    for (const Write& write : together) bytes += EntitySizeBytes(write.entity);
    const auto [found, is_new] = open_.try_emplace(key);
    Open& open = found->second;
    if (is_new || requests_[open.request].writes.size() + together.size() > kTransactionOperationsMax ||
        open.bytes + bytes > kTransactionBytesMax) {
      open = {.request = requests_.size()};
      requests_.push_back({.table = &table, .writes = {}});
    }
    open.bytes += bytes;
    for (Write& write : together) AddTo(&requests_[open.request].writes, std::move(write));
  }

 private:
  struct Open {
    size_t request = 0;
    uint64_t bytes = 0;
  };

  static void AddTo(std::vector<Write>* writes, Write write) {
    // Records that are folded into one entity are one operation: a row may stand in a transaction once.
    for (Write& other : *writes) {
      if (other.entity.row_key() != write.entity.row_key()) continue;
      for (const Property& property : write.entity.properties())
        other.entity.Set(property.name, property.value);
      return;
    }
    writes->push_back(std::move(write));
  }

  std::vector<WriteRequestPlan>& requests_;
  std::unordered_map<std::string, Open> open_;  // The last one of each table and partition.
};

}  // namespace

Entity EntityOf(const EntityPlan& plan, const Record& record, const std::vector<Field>& fields) {
  Entity entity(plan.partition_key.Of(record), plan.row_key.Of(record));
  entity.ReserveProperties(plan.fields.size() + 1);
  for (const size_t field : plan.fields) entity.AppendProperty(fields[field].name, record.values[field]);
  if (plan.fold_name.has_value()) entity.Set(plan.fold_name->Of(record), record.values[plan.fold_from]);
  return entity;
}

std::vector<WriteRequestPlan> PlanWrites(const Layout& layout, const Op& op, const Operation& operation,
                                         const RecordGenerator& generator) {
  const std::vector<Field>& fields = generator.experiment().fields;
  std::vector<WriteRequestPlan> requests;
  Record record;
  for (const bool atomic : {true, false}) {
    Grouping grouping(&requests);
    for (uint64_t k = 0; k < operation.records; ++k) {
      generator.Make(operation.record + k, &record);
      for (const size_t field : op.set) {
        record.values[field] = generator.ValueAnew(field, operation.record, operation.number);
      }
      std::vector<Write> together;
      for (const EntityPlan& place : layout.entities) {
        if ((place.atomic || &place == &layout.entities[0]) != atomic) continue;
        Write write{.action = ActionOf(op.kind, place.fold_name.has_value()),
                    .entity = EntityOf(place, record, fields),
                    .if_match = {}};
        if (op.kind == OpKind::kMerge) {
          for (const size_t field : place.fields) {
            const bool set = std::find(op.set.begin(), op.set.end(), field) != op.set.end();
            if (!set) write.entity.Erase(fields[field].name);
          }
          // A copy without any of the fields that change stays as it is.
          if (write.entity.property_count() == 0) continue;
        }
        if (atomic) {
          together.push_back(std::move(write));
        } else {
          grouping.Add(place.table, {std::move(write)});
        }
      }
      if (!together.empty()) grouping.Add(layout.entities[0].table, std::move(together));
    }
  }
  return requests;
}

}  // namespace partita::lab

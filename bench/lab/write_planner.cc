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

// Joins writes to transactions by table and partition.
class Grouping {
 public:
  explicit Grouping(std::vector<WriteRequestPlan>* requests) : requests_(*requests) {}

  void Add(const EntityPlan& place, Write write) {
    const std::string key = place.table + '\0' + write.entity.partition_key();
    const auto found = open_.find(key);
    if (found == open_.end() || requests_[found->second].writes.size() >= kTransactionOperationsMax) {
      open_[key] = requests_.size();
      requests_.push_back({.table = &place.table, .writes = {}});
      requests_.back().writes.push_back(std::move(write));
      return;
    }
    std::vector<Write>& writes = requests_[found->second].writes;
    // Records that are folded into one entity are one operation: a row may stand in a transaction once.
    for (Write& other : writes) {
      if (other.entity.row_key() != write.entity.row_key()) continue;
      for (const Property& property : write.entity.properties())
        other.entity.Set(property.name, property.value);
      return;
    }
    writes.push_back(std::move(write));
  }

 private:
  std::vector<WriteRequestPlan>& requests_;
  std::unordered_map<std::string, size_t> open_;
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
        grouping.Add(place, std::move(write));
      }
    }
  }
  return requests;
}

}  // namespace partita::lab

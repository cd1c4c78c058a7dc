#include "bench/lab/write_planner.h"

#include <algorithm>
#include <unordered_map>

#include "api/limits.h"
#include "api/value_text.h"

namespace partita::lab {
namespace {

WriteAction ActionOf(OpKind kind, const EntityPlan& place) {
  if (place.fold_packs) return WriteAction::kInsertOrReplace;
  if (place.fold_name) return WriteAction::kInsertOrMerge;
  switch (kind) {
    case OpKind::kInsert:
      return WriteAction::kInsert;
    case OpKind::kMerge:
    case OpKind::kModify:
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
// must be atomic are added together, but for packs of more records than a transaction has room for.
class Grouping {
 public:
  explicit Grouping(std::vector<WriteRequestPlan>* requests) : requests_(*requests) {}

  // One record's writes to one table and partition. What several records have under the name `packed` is
  // joined, also where a transaction has no room for the others: a second pack would replace the first.
  void Add(const std::string& table, std::vector<Write> together, const std::string& packed) {
    const std::string key = table + '\0' + together.front().entity.partition_key();
    if (!packed.empty()) {
      const std::string pack = key + '\0' + together.front().entity.row_key();
      const auto begun = packs_.find(pack);
      if (begun == packs_.end()) {
        AddOpen(table, key, std::move(together), packed);
        packs_.emplace(pack, open_[key].request);
        return;
      }
      Open& open = open_[key];
      if (open.request == begun->second) open.bytes += EntitySizeBytes(together.front().entity);
      AddTo(&requests_[begun->second].writes, std::move(together.front()), packed);
      together.erase(together.begin());
      if (together.empty()) return;
    }
    AddOpen(table, key, std::move(together), packed);
  }

 private:
  struct Open {
    size_t request = 0;
    uint64_t bytes = 0;
  };

  void AddOpen(const std::string& table, const std::string& key, std::vector<Write> together,
               const std::string& packed) {
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
    for (Write& write : together) AddTo(&requests_[open.request].writes, std::move(write), packed);
  }

  static void AddTo(std::vector<Write>* writes, Write write, const std::string& packed) {
    // Records that are folded into one entity are one operation: a row may stand in a transaction once.
    for (Write& other : *writes) {
      if (other.entity.row_key() != write.entity.row_key()) continue;
      for (const Property& property : write.entity.properties()) {
        const std::string* lines = property.name == packed ? other.entity.GetString(packed) : nullptr;
        if (lines == nullptr) {
          other.entity.Set(property.name, property.value);
        } else {
          other.entity.Set(packed, *lines + '\n' + *property.value.if_string());
        }
      }
      return;
    }
    writes->push_back(std::move(write));
  }

  std::vector<WriteRequestPlan>& requests_;
  std::unordered_map<std::string, Open> open_;     // The last one of each table and partition.
  std::unordered_map<std::string, size_t> packs_;  // And the request that has it.
};

}  // namespace

Entity EntityOf(const EntityPlan& plan, const Record& record, const std::vector<Field>& fields) {
  Entity entity(plan.partition_key.Of(record), plan.row_key.Of(record));
  entity.ReserveProperties(plan.fields.size() + 1);
  if (plan.list_of) {
    std::string value;
    AppendValueText(&value, record.values[*plan.list_of]);
    entity.AppendProperty(ListPropertyOf(fields[*plan.list_of]), value);
    return entity;
  }
  for (const size_t field : plan.fields) entity.AppendProperty(fields[field].name, record.values[field]);
  if (plan.fold_name.has_value()) entity.Set(plan.fold_name->Of(record), record.values[plan.fold_from]);
  return entity;
}

std::string ListPropertyOf(const Field& field) { return field.name + "List"; }

std::string ListChange::Of(const std::string& list) const {
  std::string changed;
  bool there = false;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find('\n', at), list.size());
    const std::string_view line = std::string_view(list).substr(at, end - at);
    at = end + 1;
    there = there || line == value;
    if (removes && line == value) continue;
    if (!changed.empty()) changed.push_back('\n');
    changed.append(line);
  }
  if (removes || there) return changed;
  return changed.empty() ? value : changed + '\n' + value;
}

namespace {

// What the operation does to a record's place in a list; nothing where its keys and value stay.
std::optional<ListChange> ListChangeOf(const EntityPlan& place, const Op& op, const Record& record,
                                       const std::vector<Field>& fields) {
  if (!op.writes_new() && op.kind != OpKind::kDelete) return std::nullopt;
  ListChange change{.partition_key = place.partition_key.Of(record),
                    .row_key = place.row_key.Of(record),
                    .property = ListPropertyOf(fields[*place.list_of]),
                    .removes = op.kind == OpKind::kDelete};
  AppendValueText(&change.value, record.values[*place.list_of]);
  return change;
}

}  // namespace

std::vector<WriteRequestPlan> PlanWrites(const Layout& layout, const Op& op, const Operation& operation,
                                         const RecordGenerator& generator) {
  const std::vector<Field>& fields = generator.experiment().fields;
  std::vector<WriteRequestPlan> requests;
  Record record;
  for (const bool atomic : {true, false}) {
    Grouping grouping(&requests);
    const std::string packed = layout.entities[0].fold_packs ? layout.entities[0].fold_name->text() : "";
    for (uint64_t k = 0; k < operation.records; ++k) {
      generator.Make(operation.record + k, &record);
      for (const size_t field : op.set) {
        record.values[field] = generator.ValueAnew(field, operation.record, operation.number);
      }
      std::vector<Write> together;
      const std::string* table = nullptr;
      for (size_t index = 0; index < layout.entities.size(); ++index) {
        const EntityPlan& place = layout.entities[index];
        const bool is_base = index < layout.types;
        if ((place.atomic || is_base) != atomic || !place.Takes(record)) continue;
        if (is_base) table = &place.table;
        if (place.list_of) {
          if (auto change = ListChangeOf(place, op, record, fields)) {
            requests.push_back({.table = &place.table, .writes = {}, .list = std::move(change)});
          }
          continue;
        }
        Write write{
            .action = ActionOf(op.kind, place), .entity = EntityOf(place, record, fields), .if_match = {}};
        if (op.sets()) {
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
          grouping.Add(place.table, {std::move(write)}, "");
        }
      }
      if (!together.empty())
        grouping.Add(table == nullptr ? layout.entities[0].table : *table, std::move(together), packed);
    }
  }
  return requests;
}

}  // namespace partita::lab

#include "bench/lab/experiment_checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "api/limits.h"
#include "api/names.h"
#include "api/value_text.h"
#include "bench/lab/query_planner.h"
#include "bench/lab/record_generator.h"
#include "bench/lab/write_planner.h"
#include "engine/base/checksum.h"
#include "engine/base/text.h"

namespace partita::lab {
namespace {

constexpr uint64_t kSample = 2'000;
// Where all records are followed, as many as there are at the beginning, but no more than this.
constexpr uint64_t kFollowedMax = 1'000'000;
// Operations that write packs, and are asked whether they write whole ones.
constexpr uint64_t kPacksLooked = 200;

// Of one's own data so many records are there, or may be taken by inserts.
uint64_t OwnRecords(const Experiment& experiment) {
  return std::min(experiment.imported->rows(), experiment.fields.front().records_max);
}

// Calls `visit` with records from all over those that there will be, until it answers false.
template <typename Visit>
void VisitSample(const Experiment& experiment, const RecordGenerator& generator, const Visit& visit) {
  Record record;
  // Of one's own data all are looked at: what stands out there is no matter of chance.
  const bool is_own = experiment.imported != nullptr;
  const uint64_t count = is_own ? OwnRecords(experiment) : std::max<uint64_t>(experiment.records, 1'000);
  const uint64_t sample = std::min(is_own ? kFollowedMax : kSample, count), half = sample / 2;
  for (uint64_t k = 0; k < sample; ++k) {
    // The first half from the beginning, where neighbours are, the rest evenly from what follows.
    const uint64_t number = k < half ? k : half + (k - half) * (count - half) / (sample - half);
    generator.Make(number, &record);
    if (!visit(record)) return;
  }
}

// What an entity holds of the records that are folded into it.
struct Folded {
  uint64_t bytes = 0;
  std::unordered_set<std::string> names;
};

void CheckFolds(const Experiment& experiment, const EntityPlan& entity, const RecordGenerator& generator,
                const TomlSection& section) {
  std::unordered_map<std::string, Folded> entities;
  Record record;
  for (uint64_t number = 0; number < std::min(experiment.records, kFollowedMax); ++number) {
    generator.Make(number, &record);
    const Entity made = EntityOf(entity, record, experiment.fields);
    Folded& folded = entities[made.partition_key() + '\0' + made.row_key()];
    if (!folded.names.insert(entity.fold_name->Of(record)).second) continue;
    // All but the first share its keys.
    folded.bytes += EntitySizeBytes(made);
    if (folded.names.size() > 1)
      folded.bytes -= EntitySizeBytes(Entity(made.partition_key(), made.row_key()));
    const bool many = folded.names.size() + entity.fields.size() > kCustomPropertiesMax;
    if (!many && folded.bytes <= kEntitySizeMax) continue;
    section.Wrong("fold", "with record " + std::to_string(number) + " an entity has " +
                              (many ? "more than 252 properties" : "more than 1 MiB"));
    return;
  }
}

// What is packed into one property is written whole: its records are neighbours, and no two operations write
// some of them each.
void CheckPacks(const Experiment& experiment, const EntityPlan& entity, const RecordGenerator& generator,
                const TomlSection& section) {
  const auto keys_of = [&](uint64_t number) {
    Record record;
    generator.Make(number, &record);
    return entity.partition_key.Of(record) + '\0' + entity.row_key.Of(record);
  };
  std::unordered_set<std::string> done;
  std::string keys;
  for (uint64_t number = 0; number < std::min(experiment.records, kFollowedMax); ++number) {
    std::string next = keys_of(number);
    if (next == keys) continue;
    if (!done.insert(next).second) {
      return section.Wrong("fold",
                           "record " + std::to_string(number) +
                               " is packed with others that are no neighbours of it: it would replace them");
    }
    keys = std::move(next);
  }
  for (const Op& op : experiment.ops) {
    if (!op.writes_new()) continue;
    for (uint64_t k = 0; k < kPacksLooked; ++k) {
      const uint64_t first = experiment.records + k * op.batch;
      if (first == 0 || keys_of(first - 1) != keys_of(first)) continue;
      return section.Wrong("fold",
                           "records " + std::to_string(first - 1) + " and " + std::to_string(first) +
                               " are packed into one entity, but operation '" + op.name +
                               "' writes them in two: batch must be the number of records of an entity");
    }
  }
}

// A list or pack must fit one property, and that is told before a run does.
void CheckLists(const Experiment& experiment, const EntityPlan& entity, size_t of, const char* key,
                const RecordGenerator& generator, const TomlSection& section) {
  std::unordered_map<std::string, uint64_t> units;
  Record record;
  for (uint64_t number = 0; number < std::min(experiment.records, kFollowedMax); ++number) {
    generator.Make(number, &record);
    std::string value;
    AppendValueText(&value, record.values[of]);
    uint64_t& list = units[entity.partition_key.Of(record) + '\0' + entity.row_key.Of(record)];
    list += Utf16Units(value) + 1;  // A line feed between two.
    if (list <= kStringUnitsMax + 1) continue;
    section.Wrong(key, "with record " + std::to_string(number) + " what is listed under PartitionKey '" +
                           entity.partition_key.Of(record) + "', RowKey '" + entity.row_key.Of(record) +
                           "' has more than the 64 KiB that a property holds");
    return;
  }
}

bool CheckRecord(const Experiment& experiment, const EntityPlan& entity, const Record& record,
                 const TomlSection& section) {
  const std::string of = " (record " + std::to_string(record.number) + ")";
  const Entity made = EntityOf(entity, record, experiment.fields);
  const Status partition = CheckKey(KeyKind::kPartitionKey, made.partition_key());
  const Status row = CheckKey(KeyKind::kRowKey, made.row_key());
  if (!partition.ok()) section.Wrong("pk", partition.message() + of);
  if (!row.ok()) section.Wrong("rk", row.message() + of);
  if (!partition.ok() || !row.ok()) return false;
  const Status whole = ValidateEntity(made);
  if (!whole.ok()) section.Wrong(entity.fold_name ? "fold" : "props", whole.message() + of);
  return whole.ok();
}

void CheckSets(const Experiment& experiment, const Layout& layout, const TomlSection& section) {
  for (const Op& op : experiment.ops) {
    const bool changes = op.sets() || op.kind == OpKind::kReplace || op.kind == OpKind::kDelete;
    if (changes && layout.entities[0].fold_name) {
      section.Wrong("fold",
                    "operation '" + op.name + "' changes single records, which are folded into one entity");
    }
    for (const EntityPlan& entity : layout.entities) {
      for (const size_t field : op.set) {
        if (!entity.partition_key.uses(field) && !entity.row_key.uses(field)) continue;
        section.Wrong(entity.name.empty() ? "pk" : "copy", "operation '" + op.name + "' sets " +
                                                               experiment.fields[field].name +
                                                               ", which is in a key: keys cannot change");
      }
    }
  }
}

void CheckTypes(const Experiment& experiment, const Layout& layout, const RecordGenerator& generator,
                const TomlSection& section) {
  if (layout.types < 2) return;
  VisitSample(experiment, generator, [&](const Record& record) {
    const auto begin = layout.entities.begin();
    const bool has_type = std::any_of(begin, begin + static_cast<ptrdiff_t>(layout.types),
                                      [&](const EntityPlan& type) { return type.Takes(record); });
    if (!has_type)
      section.Wrong("type", "record " + std::to_string(record.number) + " is of none of the types");
    return has_type;
  });
}

void CheckReads(const Experiment& experiment, const Layout& layout, const RecordGenerator& generator,
                const TomlSection& section) {
  for (size_t op = 0; op < experiment.ops.size(); ++op) {
    if (!experiment.ops[op].reads()) continue;
    const auto plan = PlanRead(layout, experiment.ops[op],
                               {.op = op, .existing = std::max<uint64_t>(experiment.records, 1)}, generator);
    if (!plan.ok()) {
      section.Wrong("name", "operation '" + experiment.ops[op].name + "': " + plan.status().message());
    }
  }
}

void CheckCopies(const Layout& layout, const TomlSection& section) {
  for (size_t i = 1; i < layout.entities.size(); ++i) {
    const EntityPlan& copy = layout.entities[i];
    if (i < layout.types) continue;
    if (copy.atomic && !layout.SharesPartition(copy)) {
      section.Wrong("copy",
                    "'" + copy.name +
                        "' is atomic, but a transaction is of one table and one PartitionKey: give it "
                        "the pk of the layout");
    }
    for (size_t k = 0; k < i; ++k) {
      const EntityPlan& other = layout.entities[k];
      if (other.table == copy.table && other.partition_key.text() == copy.partition_key.text() &&
          other.row_key.text() == copy.row_key.text()) {
        section.Wrong("copy", "'" + copy.name + "' has the keys of another entity of the layout");
      }
    }
  }
}

// Whether records of the same keys are meant to be one entity.
bool SharesKeys(const EntityPlan& entity) { return entity.fold_name || entity.list_of; }

// Rows of an imported file come again behind its last one: then with the keys they had, if nothing in those
// is made anew.
void CheckRowsSuffice(const Experiment& experiment, const Layout& layout, const RecordGenerator& generator,
                      const TomlSection& section) {
  const bool inserts = std::any_of(experiment.ops.begin(), experiment.ops.end(),
                                   [](const Op& op) { return op.kind == OpKind::kInsert; });
  if (experiment.imported == nullptr || !inserts) return;
  const uint64_t rows = experiment.imported->rows();
  const double left = static_cast<double>(rows - experiment.records);
  const double wanted = experiment.NewRecordsExpected(experiment.ArrivalOf(layout));
  if (wanted <= left || rows == 0) return;
  Record first, again;
  generator.Make(0, &first);
  generator.Make(rows, &again);
  const auto comes_again = [&](const EntityPlan& entity) {
    return !SharesKeys(entity) && entity.partition_key.Of(first) == entity.partition_key.Of(again) &&
           entity.row_key.Of(first) == entity.row_key.Of(again);
  };
  if (std::none_of(layout.entities.begin(), layout.entities.end(), comes_again)) return;
  section.Wrong("rk",
                "inserts need " + std::to_string(static_cast<uint64_t>(wanted)) +
                    " more records, and the file has " + std::to_string(rows - experiment.records) +
                    " rows behind those that are loaded; then they would come again with the same keys: "
                    "lower records, rate or duration, or put a field into a key that no column gives");
}

// Records that there will be on a layout, about. Of a closed loop nobody knows: some are as good as any, up
// to what its clients can write that think.
uint64_t RecordsExpected(const Experiment& experiment, const Layout& layout) {
  if (experiment.imported != nullptr) return OwnRecords(experiment);
  constexpr double kOfClosedLoop = 100'000;
  const Arrival& arrival = experiment.ArrivalOf(layout);
  double added = experiment.NewRecordsExpected(arrival);
  if (arrival.model == ArrivalModel::kClosed && experiment.NewRecordsPerOperation() > 0)
    added = kOfClosedLoop;
  const uint64_t records = experiment.records + static_cast<uint64_t>(std::ceil(added));
  return std::max<uint64_t>(std::min(records, experiment.fields.front().records_max), 1'000);
}

// One of the entities that a record becomes.
struct PlaceOfRecord {
  uint64_t record = 0;
  size_t entity = 0;
};

std::string SameKeysText(const Layout& layout, const PlaceOfRecord& first, const PlaceOfRecord& second) {
  const auto text = [&](const PlaceOfRecord& place) {
    const std::string& name = layout.entities[place.entity].name;
    return std::to_string(place.record) + (name.empty() ? "" : " (" + name + ")");
  };
  return "records " + text(first) + " and " + text(second) +
         " have the same keys: the second would be refused, or replace the first";
}

// Two entities of the same keys in a table would be one, and nothing else would say so. Records are looked at
// one by one, with those that a run adds: in a sample two that are rare do not meet. What lies behind the
// first million, of records or of keys, is left out, for the memory that it takes. `places`: of one table,
// those where it is not meant.
bool CheckKeysDifferAmong(const std::vector<size_t>& places, const Experiment& experiment,
                          const Layout& layout, const RecordGenerator& generator,
                          const TomlSection& section) {
  std::vector<size_t> fields;  // No others need be made.
  for (size_t field = 0; field < experiment.fields.size(); ++field) {
    const auto needs = [&](size_t place) {
      const EntityPlan& entity = layout.entities[place];
      return entity.partition_key.uses(field) || entity.row_key.uses(field) ||
             (entity.when && entity.when->field == field);
    };
    if (std::any_of(places.begin(), places.end(), needs)) fields.push_back(field);
  }
  std::unordered_map<uint64_t, PlaceOfRecord> seen;
  Record record{.number = 0, .values = std::vector<PropertyValue>(experiment.fields.size())};
  std::string keys;
  const uint64_t count = std::min(RecordsExpected(experiment, layout), kFollowedMax);
  for (; record.number < count && seen.size() < kFollowedMax; ++record.number) {
    for (const size_t field : fields) record.values[field] = generator.ValueAt(field, record.number);
    for (const size_t place : places) {
      const EntityPlan& entity = layout.entities[place];
      if (!entity.Takes(record)) continue;
      keys.clear();
      entity.partition_key.AppendTo(&keys, record);
      keys.push_back('\0');
      entity.row_key.AppendTo(&keys, record);
      StreamHash hash;
      hash.Update(keys);
      const PlaceOfRecord here{.record = record.number, .entity = place};
      const auto [there, is_new] = seen.emplace(hash.Digest(), here);
      if (is_new) continue;
      section.Wrong("rk", SameKeysText(layout, there->second, here));
      return false;
    }
  }
  return true;
}

void CheckKeysDiffer(const Experiment& experiment, const Layout& layout, const RecordGenerator& generator,
                     const TomlSection& section) {
  std::map<std::string, std::vector<size_t>> by_table;
  for (size_t i = 0; i < layout.entities.size(); ++i) {
    if (!SharesKeys(layout.entities[i])) by_table[layout.entities[i].table].push_back(i);
  }
  for (const auto& [table, places] : by_table) {
    if (!CheckKeysDifferAmong(places, experiment, layout, generator, section)) return;
  }
}

}  // namespace

void CheckEntityPlan(const Experiment& experiment, const EntityPlan& entity, const TomlSection& section) {
  const Status table = CheckTableName(entity.table);
  if (!table.ok()) section.Wrong("table", table.message());
  if (entity.fields.size() > kCustomPropertiesMax) {
    section.Wrong("props", "an entity has at most 252 properties of its own");
  }
  const RecordGenerator generator(experiment);
  if (entity.fold_packs) {
    CheckPacks(experiment, entity, generator, section);
    CheckLists(experiment, entity, entity.fold_from, "fold", generator, section);
  } else if (entity.fold_name) {
    CheckFolds(experiment, entity, generator, section);
  }
  if (entity.list_of) CheckLists(experiment, entity, *entity.list_of, "list", generator, section);
  VisitSample(experiment, generator, [&](const Record& record) {
    return !entity.Takes(record) || CheckRecord(experiment, entity, record, section);
  });
}

void CheckLayout(const Experiment& experiment, const Layout& layout, const TomlSection& section) {
  CheckCopies(layout, section);
  CheckSets(experiment, layout, section);
  const RecordGenerator generator(experiment);
  CheckTypes(experiment, layout, generator, section);
  CheckRowsSuffice(experiment, layout, generator, section);
  if (section.sound()) CheckKeysDiffer(experiment, layout, generator, section);
  CheckReads(experiment, layout, generator, section);
}

}  // namespace partita::lab

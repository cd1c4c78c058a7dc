#include "bench/lab/query_planner.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "api/date_time.h"
#include "api/value_text.h"
#include "bench/lab/key_span.h"

namespace partita::lab {
namespace {

std::string Hexadecimal(std::string_view bytes) {
  std::string digits;
  for (const char c : bytes) {
    digits.push_back("0123456789abcdef"[static_cast<uint8_t>(c) >> 4]);
    digits.push_back("0123456789abcdef"[static_cast<uint8_t>(c) & 15]);
  }
  return digits;
}

std::string Literal(const PropertyValue& value) {
  if (const std::string* text = value.if_string()) {
    std::string quoted = "'";
    for (const char c : *text) quoted.append(c == '\'' ? 2 : 1, c);
    return quoted + "'";
  }
  if (const int64_t* number = value.if_int64()) return std::to_string(*number) + "L";
  if (const DateTime* time = value.if_date_time()) return "datetime'" + FormatDateTime(*time) + "'";
  if (const Binary* binary = value.if_binary()) return "binary'" + Hexadecimal(binary->bytes) + "'";
  if (value.if_double() == nullptr) {
    std::string form;
    AppendValueText(&form, value);
    return value.if_guid() != nullptr ? "guid'" + form + "'" : form;
  }
  char digits[40];
  std::string text(digits, std::to_chars(digits, digits + sizeof(digits), *value.if_double()).ptr);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

void And(std::string* filter, const std::string& condition) {
  if (!filter->empty()) filter->append(" and ");
  filter->append(condition);
}

std::string KeyCondition(const char* name, const KeySpan& span) {
  if (span.exact) return std::string(name) + " eq " + Literal(span.lower);
  std::string condition;
  if (!span.lower.empty()) And(&condition, std::string(name) + " ge " + Literal(span.lower));
  if (!span.upper.empty()) And(&condition, std::string(name) + " lt " + Literal(span.upper));
  return condition;
}

std::string PropertyCondition(const std::string& name, const KnownFields::State& state,
                              const PropertyValue& probe) {
  if (!state.choices.empty()) {
    std::string any;
    for (const PropertyValue& value : state.choices) {
      any += (any.empty() ? "(" : " or ") + name + " eq " + Literal(value);
    }
    return any + ")";
  }
  if (state.ranged) {
    return name + " ge " + Literal(state.lower) + " and " + name + " lt " + Literal(state.upper);
  }
  return name + " eq " + Literal(probe);
}

bool Holds(const std::vector<size_t>& fields, size_t field) {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

bool HoldsAll(const std::vector<size_t>& fields, const std::vector<size_t>& wanted, size_t field_count) {
  if (wanted.empty()) return fields.size() == field_count;
  return std::all_of(wanted.begin(), wanted.end(), [&](size_t field) { return Holds(fields, field); });
}

// The keys of the record, from what an index entry holds.
bool LeadsToRecord(const Layout& layout, const EntityPlan& entity) {
  for (const KeyTemplate* key : {&layout.entities[0].partition_key, &layout.entities[0].row_key}) {
    for (const KeyTemplate::Part& part : key->parts()) {
      if (part.salted) return false;
      if (!part.fields.empty() && !HoldsAll(entity.fields, part.fields, 0)) return false;
    }
  }
  return true;
}

bool RestHasOneLength(const KeyTemplate& key, size_t from) {
  return std::all_of(key.parts().begin() + static_cast<ptrdiff_t>(from), key.parts().end(),
                     [](const KeyTemplate::Part& part) { return part.one_length; });
}

// One entity of a layout as the place to read from.
class EntityPlanner {
 public:
  EntityPlanner(const Op& op, const EntityPlan& entity, const RecordGenerator& generator)
      : op_(op), entity_(entity), generator_(generator) {}

  Result<QueryPlan> Plan(const KnownFields& known) {
    QueryPlan plan;
    plan.ordered = true;
    const auto partitions = SpansOf(entity_.partition_key, known, SpansOfTime::kEnumerated);
    const uint64_t rows_max = std::max<uint64_t>(kWaysMax / partitions.size(), 1);
    for (const KeySpan& partition : partitions) {
      if (!partition.exact) {
        PARTITA_TRY(AddPart(partition, KeySpan{.known = partition.known}, &plan));
        continue;
      }
      for (const KeySpan& row : SpansOf(entity_.row_key, partition.known, SpansOfTime::kRanges, rows_max)) {
        PARTITA_TRY(AddPart(partition, row, &plan));
      }
    }
    return plan;
  }

 private:
  bool IsOrdered(const KeySpan& partition, const KeySpan& row) const {
    if (!op_.order_field.has_value()) return true;
    if (!partition.exact) return false;
    if (row.exact) return true;
    const auto& parts = entity_.row_key.parts();
    if (row.parts_known >= parts.size()) return false;
    const KeyTemplate::Part& next = parts[row.parts_known];
    return next.fields.size() == 1 && next.fields[0] == *op_.order_field &&
           next.direction == (op_.order_descending ? -1 : 1) && OrdersWithin(next, row.known);
  }

  // Whether the keys alone say that the condition holds.
  bool IsAbsorbed(const Condition& condition, const KeySpan& partition, const KeySpan& row) const {
    const auto by = [&](const KeyTemplate& key, const KeySpan& span) {
      const size_t parts = span.exact ? key.parts().size() : span.parts_known;
      bool rigid = true;  // All parts before have one length each.
      for (size_t i = 0; i < key.parts().size(); ++i) {
        const KeyTemplate::Part& part = key.parts()[i];
        if (i > 0 && !key.parts()[i - 1].one_length) rigid = false;
        const bool whole = part.fields.size() == 1 && part.fields[0] == condition.field &&
                           part.direction != 0 && (!part.is_time || part.format.empty());
        if (!whole || !rigid) continue;
        // Known from where to where its text is.
        const bool stands_apart = part.one_length || (span.exact && RestHasOneLength(key, i + 1));
        if (i < parts ? stands_apart : i == parts && span.ends_in_range) return true;
      }
      return false;
    };
    return by(entity_.partition_key, partition) || (partition.exact && by(entity_.row_key, row));
  }

  Status AddPart(const KeySpan& partition, const KeySpan& row, QueryPlan* plan) {
    QueryPart part{.partition_lower = partition.lower,
                   .partition_upper = partition.exact ? Behind(partition.lower) : partition.upper,
                   .row_lower = row.lower,
                   .row_upper = row.exact ? Behind(row.lower) : row.upper};
    const bool row_bound = row.exact || !row.lower.empty() || !row.upper.empty();
    part.kind = partition.exact && row.exact ? PlanKind::kPoint
                : partition.exact            ? (row_bound ? PlanKind::kRowRange : PlanKind::kPartition)
                : partition.lower.empty() && partition.upper.empty() ? PlanKind::kTableScan
                                                                     : PlanKind::kPartitionRange;
    part.filter = KeyCondition("PartitionKey", partition);
    if (partition.exact && row_bound) And(&part.filter, KeyCondition("RowKey", row));
    plan->ordered = plan->ordered && IsOrdered(partition, row);
    plan->residual.clear();
    for (const Condition& condition : op_.where) {
      if (IsAbsorbed(condition, partition, row)) continue;
      const Field& field = generator_.experiment().fields[condition.field];
      if (!Holds(entity_.fields, condition.field)) {
        if (entity_.fold_name.has_value()) continue;  // Found by unpacking the answer.
        return Status::InvalidArgument("its keys and properties do not hold " + field.name);
      }
      plan->residual.push_back(&condition);
      And(&part.filter, PropertyCondition(field.name, row.known.states[condition.field],
                                          row.known.probe.values[condition.field]));
    }
    plan->parts.push_back(std::move(part));
    return Status();
  }

  const Op& op_;
  const EntityPlan& entity_;
  const RecordGenerator& generator_;
};

}  // namespace

int CompareValues(const PropertyValue& a, const PropertyValue& b) {
  if (a.if_string() != nullptr && b.if_string() != nullptr) return a.if_string()->compare(*b.if_string());
  const uint64_t x = OrderedCode(a), y = OrderedCode(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

const char* PlanKindName(PlanKind kind) {
  constexpr const char* kNames[] = {"point", "row-range", "partition", "partition-range", "table-scan"};
  return kNames[static_cast<size_t>(kind)];
}

PlanKind QueryPlan::worst() const {
  PlanKind worst = PlanKind::kPoint;
  for (const QueryPart& part : parts) worst = std::max(worst, part.kind);
  return worst;
}

KnownFields WhatIsKnown(const Op& op, const Operation& operation, const RecordGenerator& generator) {
  const std::vector<Field>& fields = generator.experiment().fields;
  KnownFields known(fields.size());
  generator.Make(operation.record, &known.probe);
  if (op.kind != OpKind::kQuery) {
    for (KnownFields::State& state : known.states) state.known = true;
    return known;
  }
  for (const Condition& condition : op.where) {
    KnownFields::State& state = known.states[condition.field];
    PropertyValue& value = known.probe.values[condition.field];
    state.known =
        condition.kind == Condition::Kind::kEqualsRecord || condition.kind == Condition::Kind::kEquals;
    if (condition.kind == Condition::Kind::kEquals) value = condition.value;
    if (condition.kind == Condition::Kind::kOneOf) state.choices = condition.values;
    const auto range = [&](PropertyValue lower, PropertyValue upper) {
      state.ranged = true;
      state.lower = std::move(lower);
      state.upper = std::move(upper);
    };
    if (condition.kind == Condition::Kind::kBetween) range(condition.value, condition.value_end);
    const auto ticks = static_cast<uint64_t>(condition.ticks);
    if (condition.kind == Condition::Kind::kFromRecord) {
      const uint64_t from = value.if_date_time()->ticks;
      range(DateTime{from}, DateTime{std::min(from + ticks, kDateTimeTicksMax)});
    }
    if (condition.kind == Condition::Kind::kLast) {
      const uint64_t newest = operation.existing == 0 ? 0 : operation.existing - 1;
      const uint64_t end = generator.ValueAt(condition.field, newest).if_date_time()->ticks + 1;
      range(DateTime{end - std::min(end, ticks)}, DateTime{std::min(end, kDateTimeTicksMax)});
    }
  }
  return known;
}

Result<QueryPlan> PlanRead(const Layout& layout, const Op& op, const Operation& operation,
                           const RecordGenerator& generator) {
  const KnownFields known = WhatIsKnown(op, operation, generator);
  Result<QueryPlan> best = Status::InvalidArgument("no entity can answer it");
  const auto rank = [](const QueryPlan& plan) {
    return std::tuple(plan.worst(), plan.lookups, plan.parts.size(), !plan.ordered);
  };
  for (size_t entity = 0; entity < layout.entities.size(); ++entity) {
    const EntityPlan& place = layout.entities[entity];
    // A get of what has its own key goes there.
    if (op.kind == OpKind::kGet && entity > 0) break;
    Result<QueryPlan> plan = EntityPlanner(op, place, generator).Plan(known);
    if (!plan.ok()) {
      if (!best.ok()) best = plan.status();
      continue;
    }
    plan->entity = entity;
    if (entity > 0 && !HoldsAll(place.fields, op.select, known.states.size())) {
      if (!LeadsToRecord(layout, place)) continue;
      plan->lookups = true;
    }
    if (!best.ok() || rank(*plan) < rank(*best)) best = std::move(plan);
  }
  return best;
}

bool Matches(const Op& op, const KnownFields& known, const Record& record) {
  return std::all_of(op.where.begin(), op.where.end(), [&](const Condition& condition) {
    const KnownFields::State& state = known.states[condition.field];
    const PropertyValue& value = record.values[condition.field];
    if (!state.choices.empty()) {
      return std::find(state.choices.begin(), state.choices.end(), value) != state.choices.end();
    }
    if (state.ranged) return CompareValues(value, state.lower) >= 0 && CompareValues(value, state.upper) < 0;
    return value == known.probe.values[condition.field];
  });
}

}  // namespace partita::lab

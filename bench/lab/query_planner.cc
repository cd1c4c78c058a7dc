#include "bench/lab/query_planner.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "api/date_time.h"
#include "api/value_text.h"
#include "bench/lab/key_span.h"
#include "engine/base/hex.h"

namespace partita::lab {
namespace {

std::string Literal(const PropertyValue& value) {
  if (const std::string* text = value.if_string()) {
    std::string quoted = "'";
    for (const char c : *text) quoted.append(c == '\'' ? 2 : 1, c);
    return quoted + "'";
  }
  if (const int64_t* number = value.if_int64()) return std::to_string(*number) + "L";
  if (const DateTime* time = value.if_date_time()) return "datetime'" + FormatDateTime(*time) + "'";
  if (const Binary* binary = value.if_binary()) {
    std::string literal = "binary'";
    AppendHex(&literal, binary->bytes);
    return literal + "'";
  }
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

// Whether the record's keys are known, as is what type it has, from what an index entry holds.
bool LeadsToRecord(const Layout& layout, const EntityPlan& entity, const KnownFields& known) {
  const auto is_told = [&](size_t field) {
    return entity.list_of ? *entity.list_of == field || known.states[field].known
                          : Holds(entity.fields, field);
  };
  for (size_t type = 0; type < layout.types; ++type) {
    const EntityPlan& base = layout.entities[type];
    if (base.when && !is_told(base.when->field)) return false;
    for (const KeyTemplate* key : {&base.partition_key, &base.row_key}) {
      for (const KeyTemplate::Part& part : key->parts()) {
        if (part.salted || !std::all_of(part.fields.begin(), part.fields.end(), is_told)) return false;
      }
    }
  }
  return true;
}

bool RestHasOneLength(const KeyTemplate& key, size_t from) {
  return std::all_of(key.parts().begin() + static_cast<ptrdiff_t>(from), key.parts().end(),
                     [](const KeyTemplate::Part& part) { return part.one_length; });
}

PlanKind KindOf(const KeySpan& partition, const KeySpan& row) {
  if (partition.exact && row.exact) return PlanKind::kPoint;
  if (partition.exact)
    return row.lower.empty() && row.upper.empty() ? PlanKind::kPartition : PlanKind::kRowRange;
  return partition.lower.empty() && partition.upper.empty() ? PlanKind::kTableScan
                                                            : PlanKind::kPartitionRange;
}

// One entity of a layout as the place to read from.
class EntityPlanner {
 public:
  EntityPlanner(const Op& op, const Layout& layout, size_t entity, const RecordGenerator& generator)
      : op_(op), layout_(layout), index_(entity), entity_(layout.entities[entity]), generator_(generator) {}

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
      const auto rows = SpansOf(entity_.row_key, partition.known, SpansOfTime::kRanges, rows_max);
      if (layout_.joins_choices && rows.size() > 1) {
        PARTITA_TRY(AddJoined(partition, rows, &plan));
        continue;
      }
      for (const KeySpan& row : rows) PARTITA_TRY(AddPart(partition, row, &plan));
    }
    plan.entity = index_;
    return plan;
  }

 private:
  bool IsOrdered(const KeySpan& partition, const KeySpan& row) const {
    if (!op_.order_field.has_value()) return true;
    if (!partition.exact) return false;
    // One entity. A list is one of many records, in the order in which they were added.
    if (row.exact) return !entity_.list_of.has_value();
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
    QueryPart part{.kind = KindOf(partition, row),
                   .partition_lower = partition.lower,
                   .partition_upper = partition.exact ? Behind(partition.lower) : partition.upper,
                   .row_lower = row.lower,
                   .row_upper = row.exact ? Behind(row.lower) : row.upper,
                   .entity = index_};
    part.filter.keys = KeyCondition("PartitionKey", partition);
    const bool row_bound = part.kind == PlanKind::kPoint || part.kind == PlanKind::kRowRange;
    if (row_bound) And(&part.filter.keys, KeyCondition("RowKey", row));
    plan->ordered = plan->ordered && IsOrdered(partition, row);
    plan->residual.clear();
    for (const Condition& condition : op_.where) {
      if (IsAbsorbed(condition, partition, row)) continue;
      PARTITA_ASSIGN(const bool is_asked, IsAsked(condition));
      plan->client_filters = plan->client_filters || (!is_asked && IsFolded(condition, partition, row));
      if (!is_asked) continue;
      plan->residual.push_back(&condition);
      And(&part.filter.rest, TextOf(condition, row.known));
    }
    plan->parts.push_back(std::move(part));
    return Status();
  }

  // One request for several rows of a partition, by `or`: the service reads all of the partition then.
  Status AddJoined(const KeySpan& partition, const std::vector<KeySpan>& rows, QueryPlan* plan) {
    QueryPart part{.kind = PlanKind::kPartition,
                   .partition_lower = partition.lower,
                   .partition_upper = Behind(partition.lower),
                   .entity = index_};
    std::string any;
    for (const KeySpan& row : rows) {
      const std::string condition = KeyCondition("RowKey", row);
      any += (any.empty() ? "(" : " or ") + (row.exact ? condition : "(" + condition + ")");
    }
    part.filter.keys = KeyCondition("PartitionKey", partition);
    part.filter.rest = any + ")";
    plan->ordered = plan->ordered && !op_.order_field.has_value();
    plan->residual.clear();
    for (const Condition& condition : op_.where) {
      const bool is_in_keys = std::all_of(rows.begin(), rows.end(), [&](const KeySpan& row) {
        return IsAbsorbed(condition, partition, row);
      });
      const bool by_partition = IsAbsorbed(condition, partition, KeySpan{.known = partition.known});
      if (!by_partition) plan->residual.push_back(&condition);
      if (is_in_keys) continue;
      PARTITA_ASSIGN(const bool is_asked, IsAsked(condition));
      const bool is_folded = std::any_of(
          rows.begin(), rows.end(), [&](const KeySpan& row) { return IsFolded(condition, partition, row); });
      plan->client_filters = plan->client_filters || (!is_asked && is_folded);
      if (is_asked) And(&part.filter.rest, TextOf(condition, partition.known));
    }
    plan->parts.push_back(std::move(part));
    return Status();
  }

  // False: what was found is asked instead, by the client. kInvalidArgument: nobody can.
  Result<bool> IsAsked(const Condition& condition) const {
    if (Holds(entity_.fields, condition.field)) return true;
    if (entity_.fold_name.has_value()) return false;
    const bool in_keys = entity_.partition_key.uses(condition.field) || entity_.row_key.uses(condition.field);
    if (entity_.list_of && in_keys) return false;
    return Status::InvalidArgument("its keys and properties do not hold " +
                                   generator_.experiment().fields[condition.field].name);
  }

  // Whether an entity of these keys may hold records that the condition does not hold for.
  bool IsFolded(const Condition& condition, const KeySpan& partition, const KeySpan& row) const {
    const auto is_told = [&](const KeyTemplate& key, const KeySpan& span) {
      for (size_t i = 0; i < key.parts().size(); ++i) {
        const KeyTemplate::Part& part = key.parts()[i];
        if (part.fields.size() != 1 || part.fields[0] != condition.field) continue;
        if ((part.is_value && i < span.parts_known) || TellsRange(key, i, span)) return true;
      }
      return false;
    };
    return entity_.fold_name.has_value() && !is_told(entity_.partition_key, partition) &&
           !is_told(entity_.row_key, row);
  }

  std::string TextOf(const Condition& condition, const KnownFields& known) const {
    return PropertyCondition(generator_.experiment().fields[condition.field].name,
                             known.states[condition.field], known.probe.values[condition.field]);
  }

  const Op& op_;
  const Layout& layout_;
  const size_t index_;
  const EntityPlan& entity_;
  const RecordGenerator& generator_;
};

// What is known of records of one type; false: no record of it is asked for.
bool Narrow(const EntityPlan::When& when, KnownFields* known) {
  KnownFields::State& state = known->states[when.field];
  PropertyValue& probe = known->probe.values[when.field];
  const auto fits = [&](const PropertyValue& value) {
    if (state.known) return value == probe;
    if (!state.choices.empty())
      return std::find(state.choices.begin(), state.choices.end(), value) != state.choices.end();
    return !state.ranged || (CompareValues(value, state.lower) >= 0 && CompareValues(value, state.upper) < 0);
  };
  std::vector<PropertyValue> left;
  std::copy_if(when.values.begin(), when.values.end(), std::back_inserter(left), fits);
  if (left.empty()) return false;
  if (left.size() == 1) {
    state = {};
    state.known = true;
    probe = left[0];
  } else if (!state.choices.empty()) {
    state.choices = std::move(left);
  }
  return true;
}

// Makes one request of two where that is possible: of two types in one partition, or of the same keys.
bool Join(const Layout& layout, const QueryPart& part, QueryPart* with) {
  if (layout.entities[part.entity].table != layout.entities[with->entity].table) return false;
  if (part.filter.rest != with->filter.rest) return false;
  const bool same_partitions =
      part.partition_lower == with->partition_lower && part.partition_upper == with->partition_upper;
  const bool both_points = part.kind == PlanKind::kPoint && with->kind == PlanKind::kPoint;
  if (!same_partitions || both_points) return false;
  with->also.push_back(part.entity);
  if (part.kind > PlanKind::kPartition) return true;
  with->row_lower = std::min(with->row_lower, part.row_lower);
  const bool is_open = with->row_upper.empty() || part.row_upper.empty();
  with->row_upper = is_open ? "" : std::max(with->row_upper, part.row_upper);
  const KeySpan partition{.lower = part.partition_lower, .exact = true, .known = KnownFields(0)};
  const KeySpan row{.lower = with->row_lower, .upper = with->row_upper, .known = KnownFields(0)};
  with->kind = KindOf(partition, row);
  with->filter.keys = KeyCondition("PartitionKey", partition);
  if (with->kind == PlanKind::kRowRange) And(&with->filter.keys, KeyCondition("RowKey", row));
  return true;
}

// The record itself: all of its types that it may have.
Result<QueryPlan> PlanTypes(const Layout& layout, const Op& op, const KnownFields& known,
                            const RecordGenerator& generator) {
  std::optional<QueryPlan> all;
  Status failed = Status::InvalidArgument("no entity can answer it");
  for (size_t type = 0; type < layout.types; ++type) {
    KnownFields narrowed = known;
    const EntityPlan& place = layout.entities[type];
    if (place.when && !Narrow(*place.when, &narrowed)) continue;
    Result<QueryPlan> plan = EntityPlanner(op, layout, type, generator).Plan(narrowed);
    // A type without a property that is asked for matches nothing.
    if (!plan.ok()) failed = plan.status();
    if (!plan.ok()) continue;
    if (!all) {
      all = std::move(*plan);
      continue;
    }
    for (QueryPart& part : plan->parts) {
      const bool joined = std::any_of(all->parts.begin(), all->parts.end(),
                                      [&](QueryPart& with) { return Join(layout, part, &with); });
      if (!joined) all->parts.push_back(std::move(part));
    }
    for (const Condition* condition : plan->residual) {
      if (std::find(all->residual.begin(), all->residual.end(), condition) == all->residual.end()) {
        all->residual.push_back(condition);
      }
    }
    all->ordered = !op.order_field.has_value();
    all->client_filters = all->client_filters || plan->client_filters;
  }
  if (!all) return failed;
  return std::move(*all);
}

// A copy that holds what is wanted, or leads to it.
Result<QueryPlan> PlanCopy(const Layout& layout, size_t entity, const Op& op, const KnownFields& known,
                           const RecordGenerator& generator) {
  const EntityPlan& place = layout.entities[entity];
  PARTITA_ASSIGN(QueryPlan plan, EntityPlanner(op, layout, entity, generator).Plan(known));
  if (!place.list_of && HoldsAll(place.fields, op.select, known.states.size())) return plan;
  plan.lookups = true;
  // A list is read by who knows its keys.
  const bool is_known = !place.list_of || plan.worst() == PlanKind::kPoint;
  if (is_known && LeadsToRecord(layout, place, known)) return plan;
  return Status::InvalidArgument("copy " + place.name + " does not lead to what is wanted");
}

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
  Result<QueryPlan> best = PlanTypes(layout, op, known, generator);
  // A get of what has its own key goes there.
  if (op.kind != OpKind::kQuery) return best;
  for (size_t entity = layout.types; entity < layout.entities.size(); ++entity) {
    Result<QueryPlan> plan = PlanCopy(layout, entity, op, known, generator);
    if (plan.ok() && (!best.ok() || IsBetter(*plan, *best))) best = std::move(plan);
  }
  return best;
}

Result<QueryPlan> PlanReadFrom(size_t entity, const Layout& layout, const Op& op, const Operation& operation,
                               const RecordGenerator& generator) {
  const KnownFields known = WhatIsKnown(op, operation, generator);
  return entity < layout.types ? PlanTypes(layout, op, known, generator)
                               : PlanCopy(layout, entity, op, known, generator);
}

bool IsBetter(const QueryPlan& plan, const QueryPlan& than) {
  const auto rank = [](const QueryPlan& of) {
    return std::tuple(of.worst(), of.lookups, of.residual.size(), of.parts.size(), !of.ordered);
  };
  return rank(plan) < rank(than);
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

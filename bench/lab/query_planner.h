#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/filter_text.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/record_generator.h"
#include "engine/base/result.h"

namespace partita::lab {

// By rising cost; the names are those of Table::Explain.
enum class PlanKind : uint8_t { kPoint, kRowRange, kPartition, kPartitionRange, kTableScan };
const char* PlanKindName(PlanKind kind);

// One request: which keys, and what is asked of the entities there.
struct QueryPart {
  PlanKind kind = PlanKind::kTableScan;
  // Lower bounds are inclusive, upper ones exclusive and open when empty. A key that is known whole stands in
  // `lower`, and `upper` is the text that follows it.
  std::string partition_lower, partition_upper, row_lower, row_upper;
  FilterText filter;
  size_t entity = 0;         // Which of the layout's it asks for,
  std::vector<size_t> also;  // and further types of the record itself.
};

// How a read is done on one layout: the requests that an application would send which knows the layout.
struct QueryPlan {
  size_t entity = 0;  // The record itself (of its types the first that is asked for), or which copy.
  std::vector<QueryPart> parts;
  bool ordered = false;  // Each part answers in the order that is wanted: `limit` can be asked for.
  bool lookups = false;  // What is found is an index entry: the record is then read by its keys.
  // The service cannot be asked all conditions, as on what is folded: the client asks them of what came.
  bool client_filters = false;
  std::vector<const Condition*> residual;  // Conditions that the keys leave open.
  PlanKind worst() const;
};

// The conditions of `op` for one operation: what is known of each field.
struct KnownFields {
  explicit KnownFields(size_t fields) : states(fields) {}
  struct State {
    bool known = false;   // The probe has its value.
    bool ranged = false;  // lower <= value < upper.
    PropertyValue lower, upper;
    std::vector<PropertyValue> choices;  // It is one of these.
    int pinned_unit = -1;  // A time: its part of the key down to this unit is known (key_template.h).
  };
  std::vector<State> states;
  Record probe;
};
KnownFields WhatIsKnown(const Op& op, const Operation& operation, const RecordGenerator& generator);

// Plans a get or query by what the keys of the layout tell; who knows the data plans better (read_planner.h).
// kInvalidArgument: the layout cannot answer it, and why.
Result<QueryPlan> PlanRead(const Layout& layout, const Op& op, const Operation& operation,
                           const RecordGenerator& generator);
// From this entity of the layout: the record itself, of whichever type, or a copy.
Result<QueryPlan> PlanReadFrom(size_t entity, const Layout& layout, const Op& op, const Operation& operation,
                               const RecordGenerator& generator);
// As far as the keys tell.
bool IsBetter(const QueryPlan& plan, const QueryPlan& than);

// -1, 0, 1; values of two types do not meet.
int CompareValues(const PropertyValue& a, const PropertyValue& b);

// Whether a record is an answer to the operation.
bool Matches(const Op& op, const KnownFields& known, const Record& record);

}  // namespace partita::lab

#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "bench/lab/entity_model.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/query_planner.h"

namespace partita::lab {

// What one part of a read does, and the point reads that it leads to.
struct PartEstimate {
  const QueryPart* part = nullptr;
  EntityModel::Answer answer;
  double requests = 0;
  double looked_up = 0;
};

// Of the place that a plan reads from, what tells how many records an entity holds there: of a list one.
EntityModel::Sum SumRead(const EntityModel& model, const Layout& layout, const QueryPlan& plan);

// How many entities of what comes the client keeps at most: as many as `limit` records are in, about, of a
// place that is as `of` tells on average, but for the first, which may hold one of them only. 0: all, since
// there is no limit, or the client has yet to filter them.
uint64_t KeptOf(const QueryPlan& plan, const EntityModel::Sum& of, uint64_t limit);

// How many of them each part of a plan is asked for at most. 0: all, since the client sorts or filters them.
uint64_t TopOf(const QueryPlan& plan, const EntityModel::Sum& of, uint64_t limit);

// Of the parts that are asked for, in their order. REQUIRES: the plan outlives what it gives.
std::vector<PartEstimate> EstimateRead(const EntityModel& model, const Layout& layout, const QueryPlan& plan,
                                       const Op& op, const Operation& operation, const KnownFields& known);

// From which entity of a layout each query reads, as who knows the data chooses once for all of its kind:
// from the one where it costs least on average. Immutable; the layout and the generator must outlive it.
class ReadPlanner {
 public:
  ReadPlanner(const Layout& layout, const RecordGenerator& generator, const EntityModel& model);

  // kInvalidArgument: as PlanRead.
  Result<QueryPlan> Plan(const Operation& operation) const;

 private:
  // An entity as the place that an operation reads from: its first plan, and what all of them cost.
  struct Tried {
    size_t entity = 0;
    QueryPlan plan;
    double units = 0;
    bool IsCheaper(const Tried& than) const;
  };
  // Nothing: it cannot be asked.
  std::optional<Tried> Try(size_t entity, size_t op, const EntityModel& model) const;
  size_t CheapestFor(size_t op, const EntityModel& model) const;

  const Layout& layout_;
  const RecordGenerator& generator_;
  std::vector<size_t> entities_;  // Of each operation.
};

}  // namespace partita::lab

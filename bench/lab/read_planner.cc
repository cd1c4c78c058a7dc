#include "bench/lab/read_planner.h"

#include <algorithm>
#include <cmath>

#include "api/limits.h"

namespace partita::lab {
namespace {

// Of each query so many are tried on each entity.
constexpr int kOfEachTried = 20;
// What costs no more than this share of another is cheaper, whatever kinds of plan the two are.
constexpr double kCheaper = 0.9;

}  // namespace

EntityModel::Sum SumRead(const EntityModel& model, const Layout& layout, const QueryPlan& plan) {
  const bool reads_list = layout.entities[plan.entity].list_of.has_value();
  return reads_list ? EntityModel::Sum() : model.SumOf(plan.entity);
}

uint64_t KeptOf(const QueryPlan& plan, const EntityModel::Sum& of, uint64_t limit) {
  if (plan.client_filters || limit == 0) return 0;
  return 1 + static_cast<uint64_t>(std::ceil(static_cast<double>(limit - 1) / of.records_each()));
}

uint64_t TopOf(const QueryPlan& plan, const EntityModel::Sum& of, uint64_t limit) {
  return plan.ordered ? KeptOf(plan, of, limit) : 0;
}

std::vector<PartEstimate> EstimateRead(const EntityModel& model, const Layout& layout, const QueryPlan& plan,
                                       const Op& op, const Operation& operation, const KnownFields& known) {
  const uint64_t top = TopOf(plan, SumRead(model, layout, plan), operation.LimitOf(op));
  const auto wanted = static_cast<double>(top);
  std::vector<PartEstimate> parts;
  double returned = 0, looked_up = 0;
  for (const QueryPart& part : plan.parts) {
    PartEstimate& of = parts.emplace_back();
    of.part = &part;
    const bool is_list = layout.entities[part.entity].list_of.has_value();
    // A list is read whole, however few of its records are wanted then.
    of.answer = model.Ask(plan, part, op, known, is_list ? 0 : top);
    of.requests = is_list ? 1 : std::max(1.0, of.answer.returned / kPageEntitiesMax);
    if (plan.lookups) {
      // What is not in order the client looks up whole, and sorts.
      const bool is_cut = is_list && top > 0;
      of.looked_up = is_cut ? std::min(of.answer.returned, wanted - looked_up) : of.answer.returned;
      looked_up += of.looked_up;
    }
    returned += of.answer.returned;
    if (top > 0 && !op.order_field.has_value() && returned >= wanted) break;
  }
  return parts;
}

ReadPlanner::ReadPlanner(const Layout& layout, const RecordGenerator& generator, const EntityModel& model)
    : layout_(layout), generator_(generator) {
  const std::vector<Op>& ops = generator.experiment().ops;
  for (size_t op = 0; op < ops.size(); ++op) {
    const bool has_choice = ops[op].kind == OpKind::kQuery && layout.entities.size() > layout.types;
    entities_.push_back(has_choice ? CheapestFor(op, model) : 0);
  }
}

bool ReadPlanner::Tried::IsCheaper(const Tried& than) const {
  if (units <= kCheaper * than.units) return true;
  return kCheaper * units < than.units && IsBetter(plan, than.plan);
}

std::optional<ReadPlanner::Tried> ReadPlanner::Try(size_t entity, size_t op, const EntityModel& model) const {
  const Op& asked = generator_.experiment().ops[op];
  OperationStream stream(generator_);
  Tried tried{.entity = entity, .plan = {}};
  for (int i = 0; i < kOfEachTried; ++i) {
    const Operation operation = stream.NextOf(op);
    Result<QueryPlan> plan = PlanReadFrom(entity, layout_, asked, operation, generator_);
    if (!plan.ok()) return std::nullopt;
    const KnownFields known = WhatIsKnown(asked, operation, generator_);
    for (const PartEstimate& of : EstimateRead(model, layout_, *plan, asked, operation, known)) {
      tried.units += std::max(of.requests, of.answer.units) + of.looked_up;
    }
    if (i == 0) tried.plan = *std::move(plan);
  }
  return tried;
}

size_t ReadPlanner::CheapestFor(size_t op, const EntityModel& model) const {
  std::optional<Tried> best = Try(0, op, model);  // Of several types all as one.
  for (size_t entity = layout_.types; entity < layout_.entities.size(); ++entity) {
    std::optional<Tried> tried = Try(entity, op, model);
    if (tried && (!best || tried->IsCheaper(*best))) best = std::move(tried);
  }
  return best ? best->entity : 0;
}

Result<QueryPlan> ReadPlanner::Plan(const Operation& operation) const {
  const Op& op = generator_.experiment().ops[operation.op];
  Result<QueryPlan> plan = PlanReadFrom(entities_[operation.op], layout_, op, operation, generator_);
  // Of some records it may not be possible there.
  return plan.ok() ? std::move(plan) : PlanRead(layout_, op, operation, generator_);
}

}  // namespace partita::lab

#include "bench/lab/filter_text.h"

#include <utility>

#include "api/filter.h"

namespace partita::lab {

Result<partita::QueryPlan> PlanAsTheServiceReads(const FilterText& filter) {
  PARTITA_ASSIGN(const Filter keys, ParseFilter(filter.keys, FilterWords::kOurs));
  PARTITA_ASSIGN(Filter rest, ParseFilter(filter.rest, FilterWords::kOurs));
  partita::QueryPlan plan = PlanQuery(keys);
  plan.residual = Filter::And(std::move(plan.residual), std::move(rest));
  return plan;
}

}  // namespace partita::lab

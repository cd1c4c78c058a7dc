#pragma once
#include <string>

#include "api/query_plan.h"
#include "engine/base/result.h"

namespace partita::lab {

// $filter text in two parts, joined by `and`.
struct FilterText {
  std::string keys{};  // By which the service finds where to look; empty: everywhere.
  std::string rest{};  // What it asks of each entity there. Conditions on keys may be among it.

  std::string whole() const { return keys.empty() || rest.empty() ? keys + rest : keys + " and " + rest; }
};

// To look where the service does: at all that `keys` leave open, whatever a planner could see in `rest`.
Result<partita::QueryPlan> PlanAsTheServiceReads(const FilterText& filter);

}  // namespace partita::lab

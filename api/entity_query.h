#pragma once
#include <cstdint>

#include "api/database_impl.h"
#include "api/filter.h"
#include "api/query_options.h"
#include "api/query_plan.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace partita {

// What the calls of Table that run queries share.

// `filter` and `where` joined. Errors say that the filter was meant.
Result<Filter> FilterOf(const QueryOptions& options);

// The plan of a scan by bounds, whose continuation is applied already.
QueryPlan PlanOf(const ScanBounds& bounds, TableId table);

// The time limit in nanoseconds; 0: there is none. kDeadlineExceeded: it is used up.
Result<uint64_t> TimeLimitOf(const QueryOptions& options);

}  // namespace partita

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "api/partita.h"
#include "bench/lab/experiment.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/record_generator.h"

namespace partita::lab {

// One request that writes: a single operation, or several as one transaction.
struct WriteRequestPlan {
  const std::string* table = nullptr;  // Of the layout.
  std::vector<Write> writes;
};

// The entity that a record becomes in one place of a layout.
Entity EntityOf(const EntityPlan& plan, const Record& record, const std::vector<Field>& fields);

// The requests of an operation that writes, in order: those of the records with their atomic copies, joined
// to transactions where partitions allow, then those of the other copies.
std::vector<WriteRequestPlan> PlanWrites(const Layout& layout, const Op& op, const Operation& operation,
                                         const RecordGenerator& generator);

}  // namespace partita::lab

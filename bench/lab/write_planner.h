#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/partita.h"
#include "bench/lab/experiment.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/record_generator.h"

namespace partita::lab {

// The property of an index entity that lists the values of a field: a text, whatever the field's type.
std::string ListPropertyOf(const Field& field);

// A change of an index entity: a value is added to its list, or taken out. Two requests at least: it is read,
// and written if nobody wrote it meanwhile.
struct ListChange {
  std::string partition_key, row_key;
  std::string property, value;
  bool removes = false;

  // The list with the change made; values stand a line each, which no key can hold.
  std::string Of(const std::string& list) const;
};

// One request that writes: a single operation, or several as one transaction.
struct WriteRequestPlan {
  const std::string* table = nullptr;  // Of the layout.
  std::vector<Write> writes;
  std::optional<ListChange> list;  // Instead of them.

  const std::string& partition_key() const {
    return list ? list->partition_key : writes[0].entity.partition_key();
  }
};

// The entity that a record becomes in one place of a layout.
Entity EntityOf(const EntityPlan& plan, const Record& record, const std::vector<Field>& fields);

// The requests of an operation that writes, in order: those of the records with their atomic copies, joined
// to transactions where partitions allow, then those of the other copies.
std::vector<WriteRequestPlan> PlanWrites(const Layout& layout, const Op& op, const Operation& operation,
                                         const RecordGenerator& generator);

}  // namespace partita::lab

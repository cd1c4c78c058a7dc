#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/cli/console.h"
#include "api/entity.h"
#include "api/query_options.h"

namespace partita {

// How `partita query` shows entities: JSON lines (api/cli/jsonl.h), CSV (api/cli/csv.h), or a table for
// people. Used by one thread.
class EntityOutput {
 public:
  virtual ~EntityOutput() = default;
  // True when every entity must be shown to Observe, in a pass of its own, before the first Write.
  virtual bool needs_columns() const { return false; }
  virtual void Observe(const Entity&) {}
  // kInvalidArgument: it changed since it was observed, and has no place now.
  virtual Status Write(const Entity& entity) = 0;
  // Prints what is still held back.
  virtual Status Finish() = 0;
};

// What a table for people holds at most: its columns are as wide as their entities, so it is held back.
inline constexpr uint64_t kPrintedTableRowsMax = 10'000;

// `format`: "jsonl", "csv", "table". `select`: the columns wanted, in order; empty: as they come.
std::unique_ptr<EntityOutput> MakeEntityOutput(const std::string& format,
                                               const std::vector<std::string>& select, Console& console);

// A plan, a line for each part:
//
//   plan       row-range
//   bounds     PartitionKey eq 'a' and RowKey ge 'b'
//   residual   Total gt 100.0
//   zone maps  Total
void PrintPlan(std::ostream& out, const Explanation& plan);

// What it took:
//
//   scanned    1,000 entries, 10 given (density 0.010)
//   blocks     12 read, 140 skipped by zone maps (whole files: 3); 44.0 KiB from disk
//   time       0.002 s
void PrintCost(std::ostream& out, const QueryCost& cost);

}  // namespace partita

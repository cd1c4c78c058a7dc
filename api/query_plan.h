#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/filter.h"
#include "api/query_options.h"

namespace partita {

// A place in a table's order, between two keys: just before the key. Keys in UTF-8.
struct QueryPosition {
  std::string partition_key;
  std::string row_key;
  friend bool operator==(const QueryPosition&, const QueryPosition&) = default;
};

// The position as a bound of user keys without the table id (user_key.h), and back. Every bound between keys
// that a scan ended at has a position.
std::string BoundOf(const QueryPosition& position);
QueryPosition PositionOf(std::string_view bound);

// What a request may see of a table: the cut by a shared access signature (spec 14.4). Both ends are
// inclusive; an end that is not set is open. An end without its row_key takes in the partition whole.
struct KeyRange {
  struct End {
    std::string partition_key;
    std::optional<std::string> row_key;
  };
  std::optional<End> start;
  std::optional<End> end;

  bool open() const { return !start && !end; }
  // Whether an entity with these keys, in UTF-8, lies within.
  bool Contains(std::string_view partition_key, std::string_view row_key) const;
};

// By rising cost (spec 11.6).
enum class PlanKind : uint8_t {
  kNothing,         // The conditions contradict each other: answered without I/O.
  kPoint,           // One key.
  kPoints,          // Several keys.
  kRowRange,        // Part of one partition.
  kRowRanges,       // Several parts of one partition.
  kPartition,       // One partition whole.
  kPartitionRange,  // An interval over partitions.
  kRanges,          // Several intervals, or keys, in several partitions.
  kTableScan,
};

// "empty", "point", "points", "row-range", "row-ranges", "partition", "partition-range", "ranges",
// "table-scan".
std::string_view PlanKindName(PlanKind kind);

// Keys [lower, upper) of a table as user keys without the table id (user_key.h); an empty `upper` is the
// table's end.
struct PlanInterval {
  std::string lower;
  std::string upper;
  friend bool operator==(const PlanInterval&, const PlanInterval&) = default;

  // True when exactly one key lies in it.
  bool IsPoint() const;
};

// Where a filter's matches can lie, and what is left to be asked of the rows there.
//
// Conditions on PartitionKey and RowKey narrow the intervals when they compare with a string and stand
// under `and`, `or` and `not` in a way that proves it; all others are left to the residual. A row
// matches the filter and lies in the key range if and only if it lies in an interval and matches the
// residual.
struct QueryPlan {
  PlanKind kind = PlanKind::kTableScan;
  std::vector<PlanInterval> intervals;  // Sorted, disjoint, none empty, no two adjacent.
  Filter residual;                      // Empty when the intervals alone decide.
};

// Plans without I/O. A filter that would need thousands of intervals (key_boxes.h) is read as wider ones.
QueryPlan PlanQuery(const Filter& filter, const KeyRange& range = {});

// Leaves only what lies at `position` or behind it. The kind stays: it is the query's, not the page's.
void CutBefore(QueryPlan* plan, const QueryPosition& position);
// Leaves only what lies before `position`.
void CutFrom(QueryPlan* plan, const QueryPosition& position);

// Appends to `part` what of the intervals lies in `owned`.
void AppendCut(const QueryPlan& plan, const PlanInterval& owned, QueryPlan* part);

// A plan in words, with at most `bounds_max` of its intervals.
Explanation Explain(const QueryPlan& plan, size_t bounds_max = SIZE_MAX);

}  // namespace partita

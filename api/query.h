#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/async_database.h"
#include "api/filter.h"
#include "api/limits.h"
#include "api/query_plan.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/base/user_key.h"

namespace partita {

// When a page ends (spec 11.7). The defaults are the service's.
struct QueryLimits {
  uint32_t rows = kPageEntitiesMax;
  uint64_t bytes = 4u << 20;        // Of keys and records given; at least one row is.
  uint64_t nanos = 5'000'000'000;   // Of work.
  uint32_t look_ahead_rows = 1000;  // Looked at after the last row, for the next one that matches.
  uint64_t look_ahead_nanos = 1'000'000;
};

struct Query {
  Filter filter;
  std::optional<uint32_t> top;        // At most so many rows on this page; 0: an empty page, and the end.
  std::optional<QueryPosition> from;  // Where the page before said to go on.
  KeyRange range;
  QueryLimits limits;
  // Set to true by any thread when nobody waits for the answer any more; may be null. Must outlive the call.
  const std::atomic<bool>* cancelled = nullptr;
};

// A matching row where it lies. The views are valid during the call.
struct QueryRow {
  std::string_view partition_key;  // Ordered text (user_key.h): AppendUtf8 turns it into UTF-8.
  std::string_view row_key;        // Ordered text.
  Version version;                 // Timestamp and ETag.
  std::string_view content;        // An entity record (entity_record.h).
};

class QueryRowSink {
 public:
  virtual ~QueryRowSink() = default;
  // Takes a row. False: the page ends after it.
  virtual bool Add(const QueryRow& row) = 0;
};

struct QueryPage {
  uint64_t rows = 0;                  // Given to the sink.
  uint64_t bytes = 0;                 // Of their keys and records.
  uint64_t scanned = 0;               // Entries looked at: what throughput targets count (spec 17.1).
  std::optional<QueryPosition> next;  // Where to go on: a key at or before the next match; nothing: the end.
};

// Gives the rows of one page to `sink` in (PartitionKey, RowKey) order. Runs on a worker without blocking
// it, in slices of at most 200 us, or to its end in blocking mode. All three arguments must outlive the task.
//
// The page is one point in time for each partition it touches. It may be empty and yet have a `next`. A row
// that is there throughout is given once over the pages, whatever happens to others meanwhile.
//
// kNotFound: the table is gone. kCancelled. kCorruption, kUnknown: what stands where the page would begin is
// damaged or in doubt; a page that has rows ends before such a place instead.
Task<Result<QueryPage>> RunQuery(const AsyncTable& table, const Query& query, QueryRowSink* sink);
// The same for a plan made before: PlanQuery(query.filter, query.range). CutBefore must not have been called.
Task<Result<QueryPage>> RunPlannedQuery(const AsyncTable& table, const QueryPlan& plan, const Query& query,
                                        QueryRowSink* sink);

// One page of the query for tables (spec 10.2).
struct TablePage {
  std::vector<std::string> names;   // As created.
  std::optional<std::string> next;  // The table to go on with: EncodeKeyToken makes the NextTableName.
};

// The tables of `tables` that match, from `from` on (a name in any case; empty: from the start), at most
// min(`top`, 1,000). Comparisons on TableName are exact; any other name in the filter is a property that no
// table has. REQUIRES: `tables` are sorted as AsyncDatabase::ListTables gives them.
TablePage QueryTables(std::span<const TableDescription> tables, const Filter& filter,
                      std::optional<uint32_t> top, std::string_view from);

}  // namespace partita

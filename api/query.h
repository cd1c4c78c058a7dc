#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/async_database.h"
#include "api/filter.h"
#include "api/limits.h"
#include "api/query_options.h"
#include "api/query_plan.h"
#include "engine/base/entry_run.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/base/user_key.h"
#include "engine/store.h"

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
  Direction direction = Direction::kForward;
  std::optional<uint32_t> top;        // At most so many rows on this page; 0: an empty page, and the end.
  std::optional<QueryPosition> from;  // Where the page before said to go on; backward: what lies before it.
  KeyRange range;
  QueryLimits limits;
  // False: zone maps are not asked, every block is read. For tests and measurements: the rows are the same.
  bool use_zone_maps = true;
  // While few rows match, other shards may scan the ranges to come; what they found is dropped where the page
  // ends before. False where the caller deals the ranges out himself.
  bool scan_ahead = true;
  bool skip_damage = false;  // QueryOptions::skip_damage.
  // Set to true by any thread when nobody waits for the answer any more; may be null. Must outlive the call.
  const std::atomic<bool>* cancelled = nullptr;
};

// A matching row where it lies. The views are valid during the call.
struct QueryRow {
  std::string_view partition_key;  // Ordered text (user_key.h): AppendUtf8 turns it into UTF-8.
  std::string_view row_key;        // Ordered text.
  Version version;                 // Timestamp and ETag.
  std::string_view content;        // An entity record (entity_record.h), as far as nobody looked at it.
};

class QueryRowSink {
 public:
  virtual ~QueryRowSink() = default;
  // Takes a row. False: the page ends after it.
  virtual bool Add(const QueryRow& row) = 0;

  // True: it can do without keys. AddKeyless is then called in place of Add wherever the filter can, too,
  // which saves making them; such rows end no page, but count in it. The same throughout its life.
  virtual bool takes_keyless() const { return false; }
  // Takes those of the rows whose bit is set in `wanted`.
  virtual void AddKeyless(std::span<const KeylessRow> rows, uint64_t wanted) {}

  // True once a row was given whose content cannot be read as a record: the query fails there. Of rows that
  // were given without keys Add follows, to name it. For who reads contents without Check.
  virtual bool met_unreadable() const { return false; }
};

struct QueryPage {
  uint64_t rows = 0;                  // Given to the sink.
  uint64_t bytes = 0;                 // Of their keys and records.
  uint64_t scanned = 0;               // As QueryCost::scanned. Throughput targets count otherwise: ScanMeter.
  BlockCounts blocks;                 // Of table files, without those of single keys.
  uint64_t nanos = 0;                 // From the call to the end.
  std::optional<QueryPosition> next;  // Where to go on, with no match between; nothing: the end.
  std::vector<SkippedKeys> skipped;   // Page::skipped.

  QueryCost cost() const { return {scanned, rows, blocks, nanos}; }
};

// Gives the rows of one page to `sink` in (PartitionKey, RowKey) order, or its reverse. Runs on a worker
// without blocking it, in slices of at most 200 us, or to its end in blocking mode. All three arguments must
// outlive the task.
//
// The page is one point in time for each partition it touches. It may be empty and yet have a `next`. A row
// that is there throughout is given once over the pages, whatever happens to others meanwhile.
//
// kNotFound: the table is gone. kCancelled. kCorruption, kUnknown: what stands where the page would begin is
// damaged or in doubt; a page that has rows ends before such a place instead. kCorruption, kUnsupported: a
// row that the filter or the sink looked into is no record of a format known here; rows may have been given.
Task<Result<QueryPage>> RunQuery(const AsyncTable& table, const Query& query, QueryRowSink* sink);
// The same for a plan made before, whole: PlanQuery(query.filter, query.range).
Task<Result<QueryPage>> RunPlannedQuery(const AsyncTable& table, const QueryPlan& plan, const Query& query,
                                        QueryRowSink* sink);

// One page of the query for tables (spec 10.2).
struct TablePage {
  std::vector<std::string> names;   // As created.
  std::optional<std::string> next;  // The table to go on with: EncodeKeyToken makes the NextTableName.
};

// What a scan of a table skipped, for people.
std::vector<SkippedKeys> SkippedKeysOf(std::span<const SkippedSpan> spans);

// Gives tables as Store::ListTables does, of one account.
using TableLister = std::function<std::vector<TablePtr>(std::string_view from, size_t limit)>;

// The entity tables that match, from `from` on (a name in any case; empty: from the start), at most
// min(`top`, 1,000). Comparisons on TableName are exact; any other name in the filter is a property that no
// table has. A page looks at kTablesLookedMax tables at most, divided by the comparisons of the filter (but
// at 1,000), so it may be empty and have a `next`.
TablePage QueryTables(const TableLister& list, const Filter& filter, std::optional<uint32_t> top,
                      std::string_view from);
inline constexpr size_t kTablesLookedMax = 16'000;  // Some 2 ms, of a thread that serves others too.

// Of the key of a row that was read: what stands behind the PartitionKey is the RowKey, whatever that is
// (F77). The table is left out.
UserKeyParts SplitReadKey(std::string_view user_key);

}  // namespace partita

#include "api/query.h"

#include <algorithm>

#include "api/compiled_filter.h"
#include "engine/base/assert.h"
#include "engine/base/clock.h"

namespace partita {
namespace {

// Comparisons between two looks at the clock: about 20 us of them.
constexpr size_t kTestsPerSlice = 1024;

bool IsCancelled(const Query& query) {
  return query.cancelled != nullptr && query.cancelled->load(std::memory_order_relaxed);
}

uint32_t RowsMax(const Query& query) {
  return std::min(query.top.value_or(query.limits.rows), query.limits.rows);
}

// Asks the filter of each row as it is found and gives the matching ones on. Once the page is full it looks
// ahead for the next match, so that the continuation names it, or the end is seen (spec 11.7).
class PageSink : public Shard::RowSink {
 public:
  PageSink(const Query& query, const Filter& residual, Clock& clock, QueryRowSink* rows)
      : query_(query), filter_(residual), clock_(clock), rows_(rows), rows_max_(RowsMax(query)) {}

  Verdict Add(std::string_view user_key, Version version, std::string_view content) override {
    const std::string_view partition = PartitionPrefix(user_key);
    const UserKeyParts key{
        .partition_key = partition.substr(kTableIdSize, partition.size() - kTableIdSize - 1),
        .row_key = user_key.substr(partition.size()),
    };
    if (!filter_.matches_all() && !filter_.Matches(key, version, content)) {
      const bool too_far = full_ && ++looked_ahead_ >= query_.limits.look_ahead_rows;
      return too_far ? Verdict::kStop : Verdict::kPassed;
    }
    if (full_) return Verdict::kStop;
    const bool wants_more = rows_->Add({key.partition_key, key.row_key, version, content});
    ++given_;
    bytes_ += user_key.size() + content.size();
    if (!wants_more || given_ >= rows_max_ || bytes_ >= query_.limits.bytes) {
      full_ = true;
      look_ahead_deadline_ns_ = clock_.MonotonicNanos() + query_.limits.look_ahead_nanos;
    }
    return Verdict::kTaken;
  }

  bool GoOn() override {
    if (IsCancelled(query_)) return false;
    return !full_ || clock_.MonotonicNanos() < look_ahead_deadline_ns_;
  }

  bool matches_none() const { return filter_.matches_none(); }

  // Long filters get shorter slices, so that no filter holds a worker for longer.
  uint32_t entries_per_slice() const {
    const size_t tests = std::max<size_t>(filter_.test_count(), 1);
    return static_cast<uint32_t>(std::clamp<size_t>(kTestsPerSlice / tests, 1, Shard::kEntriesPerSlice));
  }

 private:
  const Query& query_;
  CompiledFilter filter_;
  Clock& clock_;
  QueryRowSink* rows_;
  const uint32_t rows_max_;
  uint64_t given_ = 0;
  uint64_t bytes_ = 0;
  bool full_ = false;
  uint32_t looked_ahead_ = 0;
  uint64_t look_ahead_deadline_ns_ = 0;
};

// The plan's intervals as user keys of the table.
std::vector<Shard::ScanInterval> IntervalsOf(const QueryPlan& plan, TableId table) {
  const std::string prefix = TableLowerBound(table);
  std::vector<Shard::ScanInterval> intervals;
  intervals.reserve(plan.intervals.size());
  for (const PlanInterval& interval : plan.intervals) {
    std::string upper = interval.upper.empty() ? TableUpperBound(table) : prefix + interval.upper;
    intervals.push_back({.lower = prefix + interval.lower, .upper = std::move(upper)});
  }
  return intervals;
}

// The position of a bound that a page ended at. A bound without a separator lies between two partitions,
// where no key is.
QueryPosition PositionOf(std::string_view bound) {
  bound.remove_prefix(std::min(kTableIdSize, bound.size()));
  const size_t separator = std::min(bound.find('\0'), bound.size());
  QueryPosition position{.partition_key = Utf8FromOrdered(bound.substr(0, separator))};
  if (separator < bound.size()) position.row_key = Utf8FromOrdered(bound.substr(separator + 1));
  return position;
}

}  // namespace

Task<Result<QueryPage>> RunPlannedQuery(const AsyncTable& table, const QueryPlan& plan, const Query& query,
                                        QueryRowSink* sink) {
  QueryPage page;
  if (RowsMax(query) == 0) co_return page;
  QueryPlan rest{.kind = plan.kind, .intervals = plan.intervals};
  if (query.from) CutBefore(&rest, *query.from);
  if (rest.intervals.empty()) co_return page;
  if (IsCancelled(query)) co_return Status::Cancelled("the query was cancelled");

  Store& store = table.store();
  Clock& clock = store.runtime().clock();
  PageSink rows(query, plan.residual, clock, sink);
  if (rows.matches_none()) co_return page;
  const std::vector<Shard::ScanInterval> intervals = IntervalsOf(rest, table.id());
  Shard::ScanRequest request;
  request.lower = intervals.front().lower;
  request.upper = intervals.back().upper;
  // One interval over rows needs no list; a list of one key is read as a point.
  if (intervals.size() > 1 || intervals.front().IsPoint()) request.only = intervals;
  request.limit = UINT32_MAX;  // The sink knows when the page is full.
  request.bytes_limit = UINT64_MAX;
  request.entries_per_slice = rows.entries_per_slice();
  request.deadline_ns = clock.MonotonicNanos() + query.limits.nanos;
  PARTITA_CO_ASSIGN(Shard::ScanAnswer answer, co_await store.Scan(request, &rows));

  if (!answer.done && IsCancelled(query)) co_return Status::Cancelled("the query was cancelled");
  page.rows = answer.rows;
  page.bytes = answer.bytes;
  page.scanned = answer.scanned;
  if (!answer.done) page.next = PositionOf(answer.next_key);
  co_return page;
}

Task<Result<QueryPage>> RunQuery(const AsyncTable& table, const Query& query, QueryRowSink* sink) {
  const QueryPlan plan = PlanQuery(query.filter, query.range);
  co_return co_await RunPlannedQuery(table, plan, query, sink);
}

}  // namespace partita

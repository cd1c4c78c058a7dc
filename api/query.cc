#include "api/query.h"

#include <algorithm>
#include <bit>

#include "api/compiled_filter.h"
#include "api/zone_filter.h"
#include "engine/base/assert.h"
#include "engine/base/clock.h"
#include "engine/inspect_text.h"

namespace partita {

UserKeyParts SplitReadKey(std::string_view user_key) {
  const std::string_view partition = PartitionPrefix(user_key);
  return {.partition_key = partition.substr(kTableIdSize, partition.size() - kTableIdSize - 1),
          .row_key = user_key.substr(partition.size())};
}

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
class PageSink : public RowSink {
 public:
  PageSink(const Query& query, const Filter& residual, Clock& clock, QueryRowSink* rows)
      : query_(query),
        residual_(residual),
        filter_(residual),
        clock_(clock),
        rows_(rows),
        rows_max_(RowsMax(query)) {}

  uint64_t Wanted(std::span<const KeylessRow> rows) override {
    if (filter_.asks_for_keys()) return UINT64_MAX;
    if (rows_->takes_keyless()) return GiveKeyless(rows);
    if (filter_.matches_all()) return UINT64_MAX;
    uint64_t wanted = filter_.MatchesOf(rows);
    // Behind a full page every row counts up to the next match; at the last one Add ends the page.
    const uint32_t before_match = std::min<uint32_t>(std::countr_zero(wanted), rows.size());
    for (uint32_t i = 0; full_ && i < before_match; ++i) {
      if (LooksTooFar()) return uint64_t{1} << i;
    }
    return wanted;
  }

  Verdict Add(std::string_view user_key, Version version, std::string_view content) override {
    const UserKeyParts key = SplitReadKey(user_key);
    // Others were asked for before (Wanted).
    if (filter_.asks_for_keys() && !filter_.Matches(key, version, content)) {
      return LooksTooFar() ? Verdict::kStop : Verdict::kPassed;
    }
    if (full_) return Verdict::kStop;
    const bool wants_more = rows_->Add({key.partition_key, key.row_key, version, content});
    if (MetUnreadable()) {
      status_ = EntityRecordView(content).Check().WithContext(UserKeyText(user_key));
      if (!status_.ok()) return Verdict::kStop;
    }
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

  std::unique_ptr<RowSieve> NewSieve(const std::function<uint64_t()>& rows_expected) override;

  bool matches_none() const { return filter_.matches_none(); }
  // Of the row that the page was stopped at, when that cannot be read.
  const Status& status() const { return status_; }
  uint64_t given() const { return given_; }

  // Long filters get shorter slices, so that no filter holds a worker for longer.
  uint32_t entries_per_slice() const {
    const size_t tests = std::max<size_t>(filter_.test_count(), 1);
    return static_cast<uint32_t>(std::clamp<size_t>(kTestsPerSlice / tests, 1, kEntriesPerSlice));
  }

 private:
  // A filter lets a row pass that it cannot read.
  bool MetUnreadable() const { return filter_.met_unreadable() || rows_->met_unreadable(); }

  // For none of them Add is to follow, unless to find the one that cannot be read.
  uint64_t GiveKeyless(std::span<const KeylessRow> rows) {
    uint64_t wanted = filter_.matches_all() ? UINT64_MAX : filter_.MatchesOf(rows);
    if (rows.size() < 64) wanted &= (uint64_t{1} << rows.size()) - 1;
    given_ += static_cast<uint64_t>(std::popcount(wanted));
    if (wanted != 0) rows_->AddKeyless(rows, wanted);
    return MetUnreadable() ? wanted : 0;
  }

  // To be asked of each row that does not match.
  bool LooksTooFar() { return full_ && ++looked_ahead_ >= query_.limits.look_ahead_rows; }

  const Query& query_;
  const Filter& residual_;
  CompiledFilter filter_;
  Clock& clock_;
  QueryRowSink* rows_;
  const uint32_t rows_max_;
  uint64_t given_ = 0;
  uint64_t bytes_ = 0;
  bool full_ = false;
  Status status_;
  uint32_t looked_ahead_ = 0;
  uint64_t look_ahead_deadline_ns_ = 0;
};

// The filter alone, for another thread.
class FilterSieve : public RowSieve {
 public:
  FilterSieve(const Query& query, const Filter& residual) : query_(query), filter_(residual) {}

  uint64_t Wanted(std::span<const KeylessRow> rows) override {
    return filter_.asks_for_keys() ? UINT64_MAX : filter_.MatchesOf(rows);
  }
  bool Passes(std::string_view user_key, Version version, std::string_view content) override {
    return !filter_.asks_for_keys() || filter_.Matches(SplitReadKey(user_key), version, content);
  }
  bool GoOn() override { return !IsCancelled(query_); }

 private:
  const Query& query_;
  CompiledFilter filter_;
};

// Rows given while one range was scanned for ScanAhead::kStartAfterNanos: with more, the page is soon full.
constexpr uint64_t kFewRows = 128;

std::unique_ptr<RowSieve> PageSink::NewSieve(const std::function<uint64_t()>& rows_expected) {
  if (!query_.scan_ahead || filter_.matches_all() || full_ || given_ >= rows_max_ / 8 + kFewRows)
    return nullptr;
  if (given_ + rows_expected() >= rows_max_) return nullptr;
  return std::make_unique<FilterSieve>(query_, residual_);
}

// The plan's intervals as user keys of the table.
std::vector<ScanInterval> IntervalsOf(const QueryPlan& plan, TableId table) {
  const std::string prefix = TableLowerBound(table);
  std::vector<ScanInterval> intervals;
  intervals.reserve(plan.intervals.size());
  for (const PlanInterval& interval : plan.intervals) {
    std::string upper = interval.upper.empty() ? TableUpperBound(table) : prefix + interval.upper;
    intervals.push_back({.lower = prefix + interval.lower, .upper = std::move(upper)});
  }
  return intervals;
}

}  // namespace

std::vector<SkippedKeys> SkippedKeysOf(std::span<const SkippedSpan> spans) {
  // "table 3 'anna' '0001'": of one table that need not be said.
  const auto text = [](const std::string& user_key) {
    const std::string whole = UserKeyText(user_key);
    const size_t quote = whole.find('\'');
    return quote == std::string::npos ? std::string("(the end)") : whole.substr(quote);
  };
  std::vector<SkippedKeys> out;
  for (const SkippedSpan& span : spans) {
    const bool from_begin = span.lower.size() <= kTableIdSize;
    out.push_back({(from_begin ? "(the beginning)" : text(span.lower)) + " up to " + text(span.upper),
                   span.why.message()});
  }
  return out;
}

Task<Result<QueryPage>> RunPlannedQuery(const AsyncTable& table, const QueryPlan& plan, const Query& query,
                                        QueryRowSink* sink) {
  QueryPage page;
  if (RowsMax(query) == 0) co_return page;
  QueryPlan rest{.kind = plan.kind, .intervals = plan.intervals};
  if (query.from && query.direction == Direction::kForward) CutBefore(&rest, *query.from);
  if (query.from && query.direction == Direction::kBackward) CutFrom(&rest, *query.from);
  if (rest.intervals.empty()) co_return page;
  if (IsCancelled(query)) co_return Status::Cancelled("the query was cancelled");

  Store& store = table.store();
  Clock& clock = store.runtime().clock();
  const uint64_t started = clock.MonotonicNanos();
  PageSink rows(query, plan.residual, clock, sink);
  if (rows.matches_none()) co_return page;
  const std::vector<ScanInterval> intervals = IntervalsOf(rest, table.id());
  ScanRequest request;
  request.lower = intervals.front().lower;
  request.upper = intervals.back().upper;
  request.direction = query.direction;
  // One interval over rows needs no list; a list of one key is read as a point.
  if (intervals.size() > 1 || intervals.front().IsPoint()) request.only = intervals;
  if (plan.residual.empty()) request.entries_expected = RowsMax(query) + uint64_t{1};
  request.limit = UINT32_MAX;  // The sink knows when the page is full.
  request.bytes_limit = UINT64_MAX;
  request.entries_per_slice = rows.entries_per_slice();
  request.deadline_ns = started + query.limits.nanos;
  request.skip_damage = query.skip_damage;
  const ZoneFilter zones(plan.residual);
  if (query.use_zone_maps && zones.useful()) request.predicate = &zones;
  PARTITA_CO_ASSIGN(ScanAnswer answer, co_await store.Scan(request, &rows));
  PARTITA_CO_TRY(rows.status());

  if (!answer.done && IsCancelled(query)) co_return Status::Cancelled("the query was cancelled");
  page.rows = rows.given();
  page.bytes = answer.bytes;
  page.scanned = answer.scanned;
  page.blocks = answer.blocks;
  page.nanos = clock.MonotonicNanos() - started;
  page.skipped = SkippedKeysOf(answer.skipped);
  if (!answer.done) page.next = PositionOf(std::string_view(answer.next_key).substr(kTableIdSize));
  co_return page;
}

Task<Result<QueryPage>> RunQuery(const AsyncTable& table, const Query& query, QueryRowSink* sink) {
  const QueryPlan plan = PlanQuery(query.filter, query.range);
  co_return co_await RunPlannedQuery(table, plan, query, sink);
}

}  // namespace partita

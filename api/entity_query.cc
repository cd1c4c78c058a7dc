#include "api/entity_query.h"

#include <algorithm>

#include "api/entity_codec.h"
#include "api/names.h"
#include "api/page_pause.h"
#include "api/query.h"
#include "api/table_state.h"
#include "engine/base/assert.h"

// Queries of entity tables by the public header: options are checked and planned here, and run as the HTTP
// service's are (api/query.h).

namespace partita {

Result<uint64_t> TimeLimitOf(const QueryOptions& options) {
  const int64_t nanos = options.time_limit.count();
  if (nanos >= 0) return static_cast<uint64_t>(nanos);
  return Status::DeadlineExceeded("time_limit is " + std::to_string(nanos) +
                                  " ns: it was used up before the query began");
}

namespace {

// What the parser sees to in a text (filter.h).
Status CheckParts(const Filter& filter) {
  for (const FilterNode& node : filter.nodes()) {
    if (node.op > ComparisonOp::kLessOrEqual) {
      return Status::InvalidArgument("where: the comparison of " + QuotedForMessage(node.name) + " is " +
                                     std::to_string(static_cast<int>(node.op)) + ", which is none");
    }
    const std::string* text = node.value.if_string();
    if (text != nullptr)
      PARTITA_TRY(CheckUtf8("where: the constant for " + QuotedForMessage(node.name), *text));
  }
  return Status();
}

}  // namespace

Result<Filter> FilterOf(const QueryOptions& options) {
  Result<Filter> filter = ParseFilter(options.filter, FilterWords::kOurs);
  if (filter.code() == Code::kUnsupported) {
    return Status::Unsupported(
        "filter: only comparisons of a property with a constant (eq ne gt ge lt le), joined by and, or, not; "
        "there "
        "are no functions, and properties are not compared with each other");
  }
  if (!filter.ok()) return filter.status().WithContext("filter");
  PARTITA_TRY(CheckParts(options.where));
  return Filter::And(std::move(filter).value(), options.where);
}

QueryPlan PlanOf(const ScanBounds& bounds, TableId table) {
  PlanInterval interval{.lower = bounds.lower.substr(kTableIdSize)};
  if (bounds.upper != TableUpperBound(table)) interval.upper = bounds.upper.substr(kTableIdSize);
  QueryPlan plan;
  if (bounds.lower < bounds.upper) plan.intervals.push_back(std::move(interval));
  return plan;
}

namespace {

constexpr uint32_t kPageRowsMax = 100'000;
// Of a page between two looks at the clock.
constexpr size_t kVisitsALook = 64;

Status CheckPageLimit(uint32_t limit) {
  if (limit >= 1 && limit <= kPageRowsMax) return Status();
  return Status::InvalidArgument("limit is " + std::to_string(limit) + "; it must be 1 to 100,000");
}

// What to run: options that were checked.
struct PreparedQuery {
  Query query;
  QueryPlan plan;
  uint64_t limit_ns = 0;            // Of the whole; 0: none.
  std::vector<std::string> select;  // Sorted.
};

Result<PreparedQuery> Prepare(const QueryOptions& options, TableId table) {
  PARTITA_TRY(CheckPageLimit(options.limit));
  PARTITA_TRY(CheckScanOrder(options.order));
  PreparedQuery prepared;
  Query& query = prepared.query;
  PARTITA_ASSIGN(query.filter, FilterOf(options));
  prepared.plan = PlanQuery(query.filter);
  query.direction = DirectionOf(options.order);
  query.limits.rows = static_cast<uint32_t>(std::min<uint64_t>(options.limit, options.top));
  query.limits.bytes = options.bytes_limit;
  PARTITA_ASSIGN(prepared.limit_ns, TimeLimitOf(options));
  if (prepared.limit_ns > 0) query.limits.nanos = std::min(query.limits.nanos, prepared.limit_ns);
  if (!options.continuation.empty()) {
    PARTITA_ASSIGN(std::string key, KeyOfContinuation(options.continuation, options.order, table));
    query.from = PositionOf(std::string_view(key).substr(kTableIdSize));
  }
  query.cancelled = options.cancelled;
  query.skip_damage = options.skip_damage;
  prepared.select = options.select;
  std::sort(prepared.select.begin(), prepared.select.end());
  return prepared;
}

// Decodes rows as they are found.
class EntitySink : public QueryRowSink {
 public:
  // `select` is sorted. All outlive this.
  EntitySink(std::span<const std::string> select, std::vector<Entity>* out) : select_(select), out_(out) {}
  bool Add(const QueryRow& row) override {
    Result<Entity> entity = DecodeSelected(row.partition_key, row.row_key, row.version, row.content, select_);
    if (!entity.ok()) {
      status_ = entity.status();
      return false;
    }
    out_->push_back(std::move(entity).value());
    return true;
  }
  const Status& status() const { return status_; }

 private:
  std::span<const std::string> select_;
  std::vector<Entity>* out_;
  Status status_;
};

// One page. `next_key` in the continuation, because a client may keep it for ever.
Task<Result<Page>> ReadPage(const std::shared_ptr<const TableCore>& core, const PreparedQuery& prepared) {
  const AsyncTable table(core);
  Page page;
  EntitySink sink(prepared.select, &page.entities);
  PARTITA_CO_ASSIGN(QueryPage ran, co_await RunPlannedQuery(table, prepared.plan, prepared.query, &sink));
  PARTITA_CO_TRY(sink.status());
  page.cost = ran.cost();
  page.skipped = std::move(ran.skipped);
  if (ran.next) {
    const ScanOrder order = OrderOf(prepared.query.direction);
    page.continuation = ContinuationOf(order, core->id, TableLowerBound(core->id) + BoundOf(*ran.next));
  }
  co_return page;
}

// The same on this thread.
Result<Page> RunPage(const std::shared_ptr<const TableCore>& core, const PreparedQuery& prepared) {
  return core->impl->Run(ReadPage(core, prepared));
}

// The same where nobody keeps what it needs.
Task<Result<Page>> ReadOwnedPage(std::shared_ptr<const TableCore> core, PreparedQuery prepared) {
  co_return co_await ReadPage(core, prepared);
}

// The worker of the key where the page begins, about: others it asks from there.
Executor& WorkerFor(const TableCore& core, const PreparedQuery& prepared) {
  const std::vector<PlanInterval>& intervals = prepared.plan.intervals;
  const bool forward = prepared.query.direction == Direction::kForward;
  std::string key = TableLowerBound(core.id);
  if (prepared.query.from) {
    key += BoundOf(*prepared.query.from);
  } else if (!intervals.empty()) {
    key += (forward ? intervals.front() : intervals.back()).lower;
  }
  return core.impl->store->ReaderFor(key);
}

}  // namespace

Result<Page> Table::Query(const QueryOptions& options) const {
  PARTITA_TRY(state_->impl->CheckUse());
  PARTITA_ASSIGN(const PreparedQuery prepared, Prepare(options, state_->id));
  return RunPage(state_, prepared);
}

void Table::QueryAsync(const QueryOptions& options, std::function<void(Result<Page>)> done) const {
  PARTITA_ASSERT(done != nullptr);
  const auto prepare = [&]() -> Result<PreparedQuery> {
    PARTITA_TRY(state_->impl->CheckUse());
    return Prepare(options, state_->id);
  };
  Result<PreparedQuery> prepared = prepare();
  if (!prepared.ok()) return done(prepared.status());
  Executor& worker = WorkerFor(*state_, *prepared);
  const size_t bytes = PageBytesMax(prepared->query.limits.rows, kEntitySizeMax, options.bytes_limit);
  Task<Result<Page>> call = ReadOwnedPage(state_, std::move(prepared).value());
  if (!state_->impl->Start(worker, bytes, std::move(call), &done)) done(TooManyCalls());
}

Result<Page> Table::Scan(const ScanOptions& options) const {
  PARTITA_TRY(state_->impl->CheckUse());
  PARTITA_TRY(CheckPageLimit(options.limit));
  PARTITA_ASSIGN(const ScanBounds bounds, BoundsOf(options, state_->id, /*ordered_text=*/true));
  PreparedQuery prepared{.plan = PlanOf(bounds, state_->id)};
  prepared.query.direction = DirectionOf(options.order);
  prepared.query.limits.rows = options.limit;
  prepared.query.limits.bytes = options.bytes_limit;
  prepared.query.skip_damage = options.skip_damage;
  return RunPage(state_, prepared);
}

Result<QueryCost> Table::ForEach(const QueryOptions& options,
                                 const std::function<bool(Entity entity)>& visit) const {
  PARTITA_ASSERT(visit != nullptr);
  PARTITA_TRY(state_->impl->CheckUse());
  if (options.skip_damage) {
    return Status::InvalidArgument("skip_damage is for pages, which say what they skipped: use Query");
  }
  PARTITA_ASSIGN(PreparedQuery prepared, Prepare(options, state_->id));
  Clock& clock = state_->impl->runtime->clock();
  const uint64_t deadline = prepared.limit_ns == 0 ? UINT64_MAX : clock.MonotonicNanos() + prepared.limit_ns;
  QueryCost cost;
  uint64_t given = 0;
  // Nanoseconds; kDeadlineExceeded: none are.
  const auto time_left = [&]() -> Result<uint64_t> {
    if (prepared.limit_ns == 0) return UINT64_MAX;
    const uint64_t now = clock.MonotonicNanos();
    if (now < deadline) return deadline - now;
    return Status::DeadlineExceeded("the query was not done within its time limit; " + std::to_string(given) +
                                    " entities were given");
  };
  for (bool got_on = false; true; got_on = true) {
    prepared.query.limits.rows =
        static_cast<uint32_t>(std::min<uint64_t>(options.limit, options.top - cost.returned));
    Result<Page> page = RunPage(state_, prepared);
    if (page.code() == Code::kThrottled && got_on) {
      PARTITA_TRY(state_->impl->Run(PauseBeforePage(clock, page.status(), deadline, options.cancelled)));
    } else {
      PARTITA_TRY(page.status());
      cost += page->cost;
      for (size_t i = 0; i < page->entities.size(); ++i) {
        if (options.cancelled != nullptr && options.cancelled->load(std::memory_order_relaxed)) {
          return Status::Cancelled("the query was cancelled");
        }
        // Not in front of the first: what was read until the time was up is not all in vain.
        if (i > 0 && i % kVisitsALook == 0) PARTITA_TRY(time_left());
        ++given;
        if (!visit(std::move(page->entities[i]))) return cost;
      }
      if (page->continuation.empty() || cost.returned >= options.top) return cost;
      PARTITA_ASSIGN(std::string key, KeyOfContinuation(page->continuation, options.order, state_->id));
      prepared.query.from = PositionOf(std::string_view(key).substr(kTableIdSize));
    }
    PARTITA_ASSIGN(const uint64_t left_ns, time_left());
    prepared.query.limits.nanos = std::min(QueryLimits().nanos, left_ns);
  }
}

Result<Explanation> Table::Explain(const QueryOptions& options) const {
  PARTITA_TRY(state_->impl->CheckUse());
  PARTITA_ASSIGN(const PreparedQuery prepared, Prepare(options, state_->id));
  return partita::Explain(prepared.plan);
}

}  // namespace partita

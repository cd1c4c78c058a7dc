#include <algorithm>
#include <atomic>
#include <mutex>

#include "api/aggregator.h"
#include "api/entity_query.h"
#include "api/page_pause.h"
#include "api/query.h"
#include "api/table_state.h"
#include "engine/base/task_group.h"

// Aggregates: the table's intervals are dealt to the shards that own them, each runs through its own on its
// worker, page by page, and what they found is put together. Nothing needs an order, so none waits for
// another.

namespace partita {

namespace {

// A page lets go of its view, and tells how far it is, so often.
constexpr uint64_t kAggregatePageNanos = 100'000'000;

// What one shard runs through.
struct Share {
  QueryPlan plan;
  Aggregator aggregator;
  Status status;
};

// What the shares of one call have in common.
class AggregateCall {
 public:
  AggregateCall(Clock& clock, size_t shares, uint64_t limit_ns, const std::atomic<bool>* cancelled,
                const QueryProgress& progress)
      : clock_(clock),
        first_pages_due_(shares),
        started_(clock.MonotonicNanos()),
        deadline_(limit_ns == 0 ? UINT64_MAX : started_ + limit_ns),
        cancelled_(cancelled),
        progress_(progress) {}

  Task<void> Run(const AsyncTable& table, Share* share);
  QueryCost cost() const { return cost_; }

 private:
  Task<Status> RunPages(const AsyncTable& table, Share* share);
  void NoteFirstPage(bool is_ok);
  Task<bool> HasGotOn();
  void Tell(const QueryPage& page);

  Clock& clock_;
  std::atomic<size_t> first_pages_due_;  // Of shares.
  std::atomic<bool> got_on_{false};  // Some share's first page was admitted; set before it is counted off.
  const uint64_t started_;
  const uint64_t deadline_;
  const std::atomic<bool>* cancelled_;
  const QueryProgress& progress_;
  std::atomic<bool> failed_{false};  // Set by the first share that cannot go on; the others then stop.
  std::mutex mutex_;                 // Guards cost_, and lets one thread tell at a time.
  QueryCost cost_;
};

class AggregateSink : public QueryRowSink {
 public:
  explicit AggregateSink(Aggregator* aggregator) : aggregator_(aggregator) {}
  bool Add(const QueryRow& row) override {
    aggregator_->Add(row.partition_key, row.row_key, row.version, row.content);
    return true;
  }
  bool takes_keyless() const override { return !aggregator_->needs_keys(); }
  void AddKeyless(std::span<const KeylessRow> rows, uint64_t wanted) override {
    aggregator_->AddKeyless(rows, wanted);
  }
  bool met_unreadable() const override { return aggregator_->met_unreadable(); }

 private:
  Aggregator* aggregator_;
};

Task<void> AggregateCall::Run(const AsyncTable& table, Share* share) {
  share->status = co_await RunPages(table, share);
  if (!share->status.ok()) failed_.store(true, std::memory_order_relaxed);
}

Task<Status> AggregateCall::RunPages(const AsyncTable& table, Share* share) {
  AggregateSink sink(&share->aggregator);
  Query query;
  query.limits = {.rows = UINT32_MAX, .bytes = UINT64_MAX};
  query.cancelled = cancelled_;
  query.scan_ahead = false;  // The shares are that already.
  for (bool is_first = true; true; is_first = false) {
    const uint64_t now = clock_.MonotonicNanos();
    query.limits.nanos = std::min(kAggregatePageNanos, deadline_ - std::min(deadline_, now));
    Result<QueryPage> page = co_await RunPlannedQuery(table, share->plan, query, &sink);
    if (is_first) NoteFirstPage(page.ok());
    bool waits = page.code() == Code::kThrottled;
    if (waits) waits = co_await HasGotOn();
    if (waits) {
      PARTITA_CO_TRY(co_await PauseBeforePage(clock_, page.status(), deadline_, cancelled_));
    } else {
      PARTITA_CO_TRY(page.status());
      Tell(*page);
      if (!page->next) co_return Status();
      query.from = std::move(page->next);
    }
    if (failed_.load(std::memory_order_relaxed)) co_return Status::Cancelled("another shard failed");
    if (clock_.MonotonicNanos() >= deadline_) {
      co_return Status::DeadlineExceeded("the aggregate was not done within its time limit");
    }
  }
}

void AggregateCall::NoteFirstPage(bool is_ok) {
  if (is_ok) got_on_.store(true);
  first_pages_due_.fetch_sub(1);
}

// Whether a refused page is waited for: not where it is the call's first, which no other share has a page
// before.
Task<bool> AggregateCall::HasGotOn() {
  constexpr uint64_t kPollNanos = 1'000'000;
  while (!got_on_.load() && first_pages_due_.load() > 0) {
    if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) break;
    if (clock_.MonotonicNanos() >= deadline_) break;
    co_await SleepFor(kPollNanos);
  }
  co_return got_on_.load();
}

void AggregateCall::Tell(const QueryPage& page) {
  const std::lock_guard<std::mutex> lock(mutex_);
  cost_ += page.cost();
  cost_.nanos = clock_.MonotonicNanos() - started_;
  if (progress_) progress_(cost_);
}

// The plan cut into what each shard owns; one share where that is enough.
std::vector<Share> SharesOf(const QueryPlan& plan, const std::vector<RangeDescriptor>& ranges, TableId table,
                            const Aggregator& aggregator) {
  const std::string first = TableLowerBound(table);
  std::vector<std::pair<ShardId, QueryPlan>> parts;
  for (const RangeDescriptor& range : ranges) {
    PlanInterval owned{.lower = std::max(range.lower, first).substr(kTableIdSize)};
    if (range.upper.starts_with(first)) owned.upper = range.upper.substr(kTableIdSize);
    const auto same = [&range](const auto& part) { return part.first == range.owner; };
    auto part = std::find_if(parts.begin(), parts.end(), same);
    if (part == parts.end()) {
      QueryPlan empty;
      empty.residual = plan.residual;
      part = parts.insert(parts.end(), {range.owner, std::move(empty)});
    }
    AppendCut(plan, owned, &part->second);
  }
  std::erase_if(parts, [](const auto& part) { return part.second.intervals.empty(); });
  std::vector<Share> shares;
  if (parts.size() <= 1) {
    shares.push_back({plan, aggregator, Status()});
  } else {
    for (auto& [owner, part] : parts) shares.push_back({std::move(part), aggregator, Status()});
  }
  return shares;
}

Task<Status> RunShares(const AsyncTable& table, AggregateCall* call, std::vector<Share>* shares) {
  if (shares->size() == 1) {
    co_await call->Run(table, &shares->front());
    co_return Status();
  }
  TaskGroup group;
  for (Share& share : *shares) {
    const std::string at = TableLowerBound(table.id()) + share.plan.intervals.front().lower;
    group.Spawn(table.store().ExecutorFor(at), call->Run(table, &share));
  }
  co_await group.Join();
  co_return Status();
}

// What made a share stop, rather than that others stopped for it.
Status FirstFailure(const std::vector<Share>& shares) {
  Status failure;
  for (const Share& share : shares) {
    if (failure.ok() || failure.code() == Code::kCancelled) {
      if (!share.status.ok()) failure = share.status;
    }
  }
  return failure;
}

Status CheckWanted(const std::vector<AggregateOf>& wanted) {
  for (const AggregateOf& one : wanted) {
    if (one.kind > AggregateKind::kSum) {
      return Status::InvalidArgument("a kind of aggregate is " + std::to_string(static_cast<int>(one.kind)) +
                                     "; it must be kCount, kMin, kMax or kSum");
    }
    if (one.kind != AggregateKind::kCount && one.property.empty()) {
      return Status::InvalidArgument("min, max and sum need the name of a property");
    }
  }
  return Status();
}

Result<AggregateAnswer> RunAggregate(const std::shared_ptr<const TableCore>& core, const QueryPlan& plan,
                                     const std::vector<AggregateOf>& wanted, const QueryOptions& options,
                                     const QueryProgress& progress) {
  PARTITA_ASSIGN(const uint64_t limit_ns, TimeLimitOf(options));
  const AsyncTable table(core);
  Clock& clock = core->impl->runtime->clock();
  std::vector<Share> shares = SharesOf(plan, table.store().RangesOf(core->id), core->id, Aggregator(wanted));
  AggregateCall call(clock, shares.size(), limit_ns, options.cancelled, progress);
  PARTITA_TRY(core->impl->Run(RunShares(table, &call, &shares)));
  PARTITA_TRY(FirstFailure(shares));
  Aggregator total(wanted);
  for (const Share& share : shares) total.Merge(share.aggregator);
  AggregateAnswer answer = total.Answer();
  answer.cost = call.cost();
  return answer;
}

}  // namespace

Result<AggregateAnswer> Table::Aggregate(const std::vector<AggregateOf>& wanted, const QueryOptions& options,
                                         const QueryProgress& progress) const {
  PARTITA_TRY(state_->impl->CheckUse());
  PARTITA_TRY(CheckWanted(wanted));
  PARTITA_ASSIGN(const Filter filter, FilterOf(options));
  return RunAggregate(state_, PlanQuery(filter), wanted, options, progress);
}

Result<uint64_t> Table::Count(const ScanOptions& options) const {
  PARTITA_TRY(state_->impl->CheckUse());
  ScanOptions all = options;
  all.continuation.clear();
  all.order = ScanOrder::kAscending;
  all.limit = 1;
  PARTITA_ASSIGN(const ScanBounds bounds, BoundsOf(all, state_->id, /*ordered_text=*/true));
  PARTITA_ASSIGN(const AggregateAnswer answer, RunAggregate(state_, PlanOf(bounds, state_->id), {}, {}, {}));
  return answer.count;
}

}  // namespace partita

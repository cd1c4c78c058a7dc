#include <atomic>
#include <set>

#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/jsonl.h"
#include "api/cli/open_store.h"
#include "api/cli/progress.h"
#include "api/cli/query_output.h"
#include "api/value_text.h"

// partita query: pages of a query, or its aggregates.

namespace partita {

namespace {

// A page ends so often, for the progress and for Ctrl-C.
constexpr std::chrono::milliseconds kPageTime{250};
constexpr uint32_t kPageEntities = 1000;

std::string_view NameOf(AggregateKind kind) {
  constexpr std::string_view kNames[] = {"count", "min", "max", "sum"};
  return kNames[static_cast<size_t>(kind)];
}

// "sum(Total)"; "count" of the entities.
std::string LabelOf(const AggregateOf& of) {
  const std::string name(NameOf(of.kind));
  return of.property.empty() ? name : name + "(" + of.property + ")";
}

class QueryCommand {
 public:
  QueryCommand(const StoreFlags& store, const QueryFlags& flags, Console& console)
      : store_flags_(store), flags_(flags), console_(console) {}

  ExitCode Run() {
    if (flags_.count) wanted_.push_back({AggregateKind::kCount, ""});
    for (const std::string& name : flags_.min) wanted_.push_back({AggregateKind::kMin, name});
    for (const std::string& name : flags_.max) wanted_.push_back({AggregateKind::kMax, name});
    for (const std::string& name : flags_.sum) wanted_.push_back({AggregateKind::kSum, name});
    const std::string broken = BrokenUsage();
    if (!broken.empty()) return FailUsage(console_, broken);
    Result<std::unique_ptr<Database>> database = OpenStore(store_flags_, IfNoStore::kFail, console_);
    if (!database.ok()) return FailToStart(console_, database.status());
    const Status done = Query(**database);
    const ExitCode code = !done.ok()                               ? Fail(console_, done)
                          : changed_ > 0 || !skipped_keys_.empty() ? ExitCode::kFindings
                                                                   : ExitCode::kOk;
    return CloseStore(**database, code, console_);
  }

 private:
  std::string BrokenUsage() const {
    const bool shapes_entities = !flags_.select.empty() || flags_.top_given || flags_.reverse;
    if (!wanted_.empty() && shapes_entities) {
      return "--count, --min, --max and --sum give values over all entities that match: leave out --select, "
             "--top and --reverse";
    }
    if (!wanted_.empty() && flags_.skip_damage) {
      return "values over all entities are never given of some: leave out --skip-damage";
    }
    if (flags_.format == "table" && (flags_.top == 0 || flags_.top > kPrintedTableRowsMax)) {
      return "a printed table holds up to 10,000 entities: give --top, or take --format csv";
    }
    return "";
  }

  Status Query(Database& database) {
    PARTITA_ASSIGN(const Table table, OpenTableOf(database, flags_.table));
    QueryOptions options;
    options.filter = flags_.filter;
    options.select = flags_.select;
    options.order = flags_.reverse ? ScanOrder::kDescending : ScanOrder::kAscending;
    options.limit = kPageEntities;
    options.time_limit = kPageTime;
    options.skip_damage = flags_.skip_damage;
    const Result<Explanation> planned = table.Explain(options);
    if (planned.code() == Code::kUnsupported) return Status::InvalidArgument(planned.status().message());
    PARTITA_ASSIGN(const Explanation plan, planned);
    if (flags_.explain_only) {
      PrintPlan(console_.out, plan);
      return Status();
    }
    if (flags_.explain) PrintPlan(console_.err, plan);
    console_.interrupts.Arm();
    QueryCost cost;
    PARTITA_TRY(wanted_.empty() ? PrintEntities(table, options, &cost) : PrintValues(table, options, &cost));
    if (flags_.explain) PrintCost(console_.err, cost);
    return Status();
  }

  // ---- Entities.

  Status PrintEntities(const Table& table, const QueryOptions& options, QueryCost* cost) {
    const std::unique_ptr<EntityOutput> output = MakeEntityOutput(flags_.format, flags_.select, console_);
    bool more = false;
    if (output->needs_columns()) {
      QueryCost first_pass;
      auto observe = [&output](const Entity& entity) {
        output->Observe(entity);
        return Status();
      };
      PARTITA_TRY(EachEntity(table, options, observe, &first_pass, &more));
    }
    auto write = [this, &output](const Entity& entity) {
      Status written = output->Write(entity);
      if (written.code() != Code::kInvalidArgument) return written;
      ++changed_;
      console_.err << "partita: changed while it was read: '" << entity.partition_key() << "' '"
                   << entity.row_key() << "': " << written.message() << "\n";
      return Status();
    };
    PARTITA_TRY(EachEntity(table, options, write, cost, &more));
    PARTITA_TRY(output->Finish());
    if (more) console_.err << "partita: there may be more; --top N shows N entities, --top 0 all\n";
    return Status();
  }

  // `*more`: the top was reached before the end.
  template <typename Handle>
  Status EachEntity(const Table& table, QueryOptions options, const Handle& handle, QueryCost* cost,
                    bool* more) {
    Progress progress(console_, "query", Progress::Unit::kRecords, 0);
    const uint64_t top = flags_.top == 0 ? UINT64_MAX : flags_.top;
    do {
      if (console_.interrupts.Requested()) return Status::Cancelled("interrupted");
      options.top = top - cost->returned;
      PARTITA_ASSIGN(const Page page, table.Query(options));
      *cost += page.cost;
      if (!page.skipped.empty()) progress.Finish();
      for (const SkippedKeys& skipped : page.skipped) {
        if (!skipped_keys_.insert(skipped.keys).second) continue;  // Told in the first pass.
        console_.err << "partita: skipped: " << skipped.keys << ": " << skipped.why << "\n";
      }
      if (!page.entities.empty()) progress.Finish();
      for (const Entity& entity : page.entities) PARTITA_TRY(handle(entity));
      options.continuation = page.continuation;
      progress.Update(cost->scanned, cost->scanned);
    } while (!options.continuation.empty() && cost->returned < top);
    *more = !options.continuation.empty();
    return Status();
  }

  // ---- Values.

  Status PrintValues(const Table& table, QueryOptions options, QueryCost* cost) {
    options.time_limit = {};
    std::atomic<bool> cancelled{false};
    options.cancelled = &cancelled;
    Progress progress(console_, "query", Progress::Unit::kRecords, 0);
    auto tell = [&](const QueryCost& so_far) {
      progress.Update(so_far.scanned, so_far.scanned);
      if (console_.interrupts.Requested()) cancelled.store(true);
    };
    PARTITA_ASSIGN(const AggregateAnswer answer, table.Aggregate(wanted_, options, tell));
    progress.Finish();
    *cost = answer.cost;
    store_flags_.json ? PrintJson(answer) : PrintLines(answer);
    console_.out.flush();
    return console_.out ? Status() : Status::IoError("cannot write to standard output");
  }

  void PrintLines(const AggregateAnswer& answer) {
    for (const AggregateValue& value : answer.values) {
      std::string text = "none";
      if (value.value) {
        text.clear();
        AppendValueText(&text, *value.value);
      }
      if (wanted_.size() > 1) console_.out << LabelOf(value.of) << "  ";
      console_.out << text << "\n";
      const std::string label = "partita: " + LabelOf(value.of);
      if (value.passed_over > 0) {
        const bool is_sum = value.of.kind == AggregateKind::kSum;
        console_.err << label << ": " << FormatCount(value.passed_over)
                     << (is_sum ? " values of other types" : " values that are NaN") << " were passed over\n";
      }
      if (!value.exact) console_.err << label << ": does not fit an Int64; this is the nearest Double\n";
    }
  }

  // One line: {"count":7,"sum(Total)":129.5}; what has no value is not in it.
  void PrintJson(const AggregateAnswer& answer) {
    std::string line = "{";
    for (const AggregateValue& value : answer.values) {
      if (!value.value) continue;
      if (line.size() > 1) line.push_back(',');
      AppendJsonProperty(&line, LabelOf(value.of), *value.value);
    }
    console_.out << line << "}\n";
  }

  const StoreFlags& store_flags_;
  const QueryFlags& flags_;
  Console& console_;
  std::vector<AggregateOf> wanted_;
  uint64_t changed_ = 0;                // Entities that no longer fitted the columns.
  std::set<std::string> skipped_keys_;  // Of parts of the table that are damaged.
};

}  // namespace

ExitCode RunQueryCommand(const StoreFlags& store, const QueryFlags& flags, Console& console) {
  return QueryCommand(store, flags, console).Run();
}

}  // namespace partita

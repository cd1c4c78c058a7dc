#include "bench/lab/generator_rate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>

#include "bench/lab/cell.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/query_planner.h"
#include "bench/lab/target.h"
#include "bench/lab/write_planner.h"

namespace partita::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMeasured_s = 0.5;
constexpr uint64_t kBetweenLooks = 256;   // At the clock.
constexpr uint64_t kRecordsMax = 20'000;  // More are the same work, and would have to be loaded.

// Has all it is asked for, at once: what is left is the lab's own.
class InstantStore final : public TableStore {
 public:
  Status MakeTable(const std::string&, const std::vector<std::string>&) override { return Status(); }
  Status Load(const std::string&, std::vector<Write>, const GoesOn&) override { return Status(); }
  Status Settle(const ThroughputTargets&, const GoesOn&) override { return Status(); }
  uint32_t pieces() const override { return 1; }
  Result<Entity> Get(const std::string&, const std::string& partition_key,
                     const std::string& row_key) override {
    return Entity(partition_key, row_key);
  }
  Result<Answer> Query(const std::string&, const Question&) override { return Answer{}; }
  Status Transact(const std::string&, const std::vector<Write>&) override { return Status(); }
};

// How often a second `next` can be done.
template <typename Next>
double RateOf(const Next& next) {
  const auto started = Clock::now();
  for (uint64_t done = kBetweenLooks;; done += kBetweenLooks) {
    for (uint64_t i = 0; i < kBetweenLooks; ++i) next();
    const double passed_s = std::chrono::duration<double>(Clock::now() - started).count();
    if (passed_s >= kMeasured_s) return static_cast<double>(done) / passed_s;
  }
}

double StreamRate(const RecordGenerator& generator) {
  OperationStream stream(generator);
  Record record;
  uint64_t sink = 0;
  const double rate = RateOf([&] {
    const Operation operation = stream.Next();
    if (!generator.experiment().ops[operation.op].writes_new()) return;
    for (uint64_t k = 0; k < operation.records; ++k) {
      generator.Make(operation.record + k, &record);
      sink += record.values.size();
    }
  });
  return sink == UINT64_MAX ? 0 : rate;  // So that the work is not left out.
}

double RequestRate(const RecordGenerator& generator, const Layout& layout, Status* failed) {
  OperationStream stream(generator);
  return RateOf([&] {
    const Operation operation = stream.Next();
    const Op& op = generator.experiment().ops[operation.op];
    if (op.reads()) {
      const Result<QueryPlan> plan = PlanRead(layout, op, operation, generator);
      if (!plan.ok()) *failed = plan.status();
    } else {
      (void)PlanWrites(layout, op, operation, generator);
    }
  });
}

Result<double> ClientRate(const RecordGenerator& generator, const Layout& layout) {
  const std::atomic<bool> stop{false};
  PARTITA_ASSIGN(const auto target, Target::Make(std::make_unique<InstantStore>(), layout, generator, stop,
                                                 [](double) { return true; }));
  const CellFigures cell = RunCell(*target, generator, 1, [](double) { return true; });
  uint64_t completed = 0;
  for (const OpFigures& figures : cell.ops) completed += figures.completed;
  return static_cast<double>(completed) / cell.measured_s;
}

}  // namespace

Result<GeneratorRate> MeasureGenerator(const Experiment& experiment) {
  Experiment alone = experiment;
  alone.records = std::min(alone.records, kRecordsMax);
  alone.arrival = {.model = ArrivalModel::kClosed,
                   .rates = {1},
                   .clients = 1,
                   .think_s = 0,
                   .warmup_s = 0.1,
                   .duration_s = kMeasured_s};
  for (Layout& layout : alone.layouts) layout.arrival.reset();
  const RecordGenerator generator(alone);
  GeneratorRate rate{.stream = StreamRate(generator), .layouts = {}};
  Status failed;
  for (const Layout& layout : alone.layouts) {
    GeneratorRate::OfLayout& of = rate.layouts.emplace_back();
    of.requests = RequestRate(generator, layout, &failed);
    PARTITA_TRY(failed);
    PARTITA_ASSIGN(of.clients, ClientRate(generator, layout));
  }
  return rate;
}

std::string GeneratorText(const Experiment& experiment, const GeneratorRate& rate) {
  char line[160];
  std::string text = "operations a second of one core:\n";
  const auto add = [&](const std::string& what, double figure) {
    std::snprintf(line, sizeof(line), "  %-56.56s %12.0f\n", what.c_str(), figure);
    text += line;
  };
  add("operations with their records", rate.stream);
  for (size_t i = 0; i < rate.layouts.size(); ++i) {
    add("on " + experiment.layouts[i].name + ", as requests", rate.layouts[i].requests);
    add("on " + experiment.layouts[i].name + ", sent and measured", rate.layouts[i].clients);
  }
  return text;
}

}  // namespace partita::lab

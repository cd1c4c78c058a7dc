#include "bench/lab/generator_rate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>

#include "bench/lab/cell.h"
#include "bench/lab/name_column.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/read_planner.h"
#include "bench/lab/target.h"
#include "bench/lab/write_planner.h"

namespace partita::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMeasured_s = 0.5;
constexpr uint64_t kBetweenLooks = 256;     // At the clock.
constexpr uint64_t kRecordsTimed = 20'000;  // More are the same work, and would have to be loaded.

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
  Result<Entity> GetSelected(const std::string&, const std::string& partition_key, const std::string& row_key,
                             const std::vector<std::string>&) override {
    return Entity(partition_key, row_key);
  }
  Result<Answer> Query(const std::string&, const Question&) override { return Answer{}; }
  Status Transact(const std::string&, const std::vector<Write>&) override { return Status(); }
};

using Rate = GeneratorRate::Rate;

// That this thread, or all of this process had.
double CpuSeconds(clockid_t of) {
  timespec time{};
  ::clock_gettime(of, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Rate RateFrom(uint64_t done, double passed_s, double cpu_s) {
  const auto count = static_cast<double>(done);
  return {.by_clock = count / passed_s, .by_cpu = count / std::max(cpu_s, 1e-6)};
}

// How often a second `next` can be done.
template <typename Next>
Rate RateOf(const Next& next) {
  const auto started = Clock::now();
  const double cpu_before_s = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  for (uint64_t done = kBetweenLooks;; done += kBetweenLooks) {
    for (uint64_t i = 0; i < kBetweenLooks; ++i) next();
    const double passed_s = std::chrono::duration<double>(Clock::now() - started).count();
    if (passed_s < kMeasured_s) continue;
    return RateFrom(done, passed_s, CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - cpu_before_s);
  }
}

Rate StreamRate(const RecordGenerator& generator) {
  OperationStream stream(generator);
  Record record;
  uint64_t sink = 0;
  const Rate rate = RateOf([&] {
    const Operation operation = stream.Next();
    if (!generator.experiment().ops[operation.op].writes_new()) return;
    for (uint64_t k = 0; k < operation.records; ++k) {
      generator.Make(operation.record + k, &record);
      sink += record.values.size();
    }
  });
  return sink == UINT64_MAX ? Rate{} : rate;  // So that the work is not left out.
}

Rate RequestRate(const RecordGenerator& generator, const Layout& layout, Status* failed) {
  OperationStream stream(generator);
  const ReadPlanner planner(layout, generator, EntityModel(layout, generator));
  return RateOf([&] {
    const Operation operation = stream.Next();
    const Op& op = generator.experiment().ops[operation.op];
    if (op.reads()) {
      const Result<QueryPlan> plan = planner.Plan(operation);
      if (!plan.ok()) *failed = plan.status();
    } else {
      (void)PlanWrites(layout, op, operation, generator);
    }
  });
}

Result<Rate> ClientRate(const RecordGenerator& generator, const Layout& layout) {
  const std::atomic<bool> stop{false};
  PARTITA_ASSIGN(const auto target, Target::Make(std::make_unique<InstantStore>(), layout, generator, stop,
                                                 [](double) { return true; }));
  const double cpu_before_s = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  PARTITA_ASSIGN(const CellFigures cell, RunCell(*target, generator, 1, [](double) { return true; }));
  const double cpu_s = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before_s;
  // CPU time is that of the warm-up too.
  uint64_t completed = 0, all = 0;
  for (const OpFigures& figures : cell.ops) completed += figures.completed;
  for (const SecondFigures& second : cell.seconds) all += second.completed;
  return Rate{.by_clock = static_cast<double>(completed) / cell.measured_s,
              .by_cpu = RateFrom(all, 1, cpu_s).by_cpu};
}

}  // namespace

Result<GeneratorRate> MeasureGenerator(const Experiment& experiment) {
  Experiment alone = experiment;
  alone.records = std::min(alone.records, kRecordsTimed);
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
  std::vector<std::pair<std::string, const Rate*>> lines = {{"operations with their records", &rate.stream}};
  for (size_t i = 0; i < rate.layouts.size(); ++i) {
    const std::string on = "on " + experiment.layouts[i].name;
    lines.emplace_back(on + ", as requests", &rate.layouts[i].requests);
    lines.emplace_back(on + ", sent and measured", &rate.layouts[i].clients);
  }
  NameColumn names("");
  for (const auto& [what, figure] : lines) names.Add(what);
  std::string text =
      "operations a second of one core, by the clock and of CPU time (less by the clock: others had the "
      "core):\n";
  for (const auto& [what, figure] : lines) {
    char line[80];
    std::snprintf(line, sizeof(line), "%12.0f %12.0f\n", figure->by_clock, figure->by_cpu);
    text += "  " + names.Of(what) + line;
  }
  return text;
}

}  // namespace partita::lab

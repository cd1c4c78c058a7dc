#include "test/simulation/groups.h"

#include <algorithm>
#include <cstring>

namespace partita {

namespace {

constexpr std::string_view kNames[] = {"simulate", "crash", "faults", "flips", "ranges"};
constexpr uint32_t kFlipsOfASeed = 200;
constexpr uint32_t kFaultsOfASeed = 100;
constexpr uint32_t kKeepsAmongRanges = 250;
constexpr uint32_t kRangePercent = 90;

void AddSimulation(const SimulationReport& report, Totals* totals) {
  totals->lives += report.lives;
  totals->crashes += report.crashes;
  totals->damages += report.damages;
  totals->counts.Add(report.counts);
  totals->rare.Add(report.rare);
  totals->lives_of_failing = report.lives;
}

std::vector<std::string> RunCrashes(const Simulation& simulation, Totals* totals) {
  CrashHistory history;
  history.seed = simulation.seed;
  history.workload.planted = simulation.planted;
  history.workload.planted_log = simulation.planted_log;
  history.workload.trace = simulation.trace;
  const uint64_t kind = simulation.seed % 4;
  if (kind == 1) {
    history.workload.requests = 120;
    history.operations_max = 4000;
  }
  history.workload.glimpses = kind == 2;
  history.workload.faults = kind == 3;
  const CrashReport report = RunCrashHistory(history);
  totals->crashes += report.crash_points;
  totals->counts.Add(report.counts);
  totals->rare.Add(report.rare);
  return report.violations;
}

SimFault DrawOnlyFault(SimRandom* random) {
  SimFault fault;
  fault.count = 1;
  switch (random->Below(6)) {
    case 0:
      fault.effect = SimEffect::kShort;
      break;
    case 1:
      fault.effect = SimEffect::kSlow;
      fault.delay_ns = 1'000'000 + random->Below(5'000'000'000);
      break;
    case 2:
      fault.code = Code::kNoSpace;
      fault.operations = SimOps(SimOp::kWrite, SimOp::kOpen, SimOp::kTruncate, SimOp::kFlush);
      break;
    default:
      break;
  }
  return fault;
}

// The same lives again and again, each time with one fault at another operation.
std::vector<std::string> RunFaults(const Simulation& given, Totals* totals) {
  Simulation simulation = given;
  simulation.lives = 3;
  simulation.requests = 20;
  simulation.only_fault = Simulation::OnlyFault{UINT32_MAX, {}};
  SimulationReport report = RunSimulation(simulation);  // Without any: how many operations there are.
  const std::vector<uint64_t> operations = report.life_operations;
  SimRandom random(simulation.seed);
  for (uint32_t i = 0; i < kFaultsOfASeed && report.violations.empty(); ++i) {
    const uint32_t life = static_cast<uint32_t>(random.Below(simulation.lives));
    simulation.only_fault = Simulation::OnlyFault{life, DrawOnlyFault(&random)};
    simulation.only_fault->fault.first_operation = 1 + random.Below(std::max<uint64_t>(operations[life], 1));
    report = RunSimulation(simulation);
    AddSimulation(report, totals);
    totals->single_faults += report.counts.faults_hit;
    for (std::string& violation : report.violations) {
      violation += " [fault: life " + std::to_string(life) + ", operation from " +
                   std::to_string(simulation.only_fault->fault.first_operation) + ", effect " +
                   std::to_string(static_cast<int>(simulation.only_fault->fault.effect)) + "]";
    }
  }
  return report.violations;
}

}  // namespace

std::optional<Group> GroupOf(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<Group>(i);
  }
  return std::nullopt;
}

std::string_view GroupName(Group group) { return kNames[static_cast<size_t>(group)]; }

bool RunSeed(Group group, const Simulation& simulation, Totals* totals) {
  totals->seed = simulation.seed;
  std::vector<std::string> violations;
  if (group == Group::kSimulate || group == Group::kRanges) {
    Simulation drawn = simulation;
    if (group == Group::kRanges) {
      drawn.keeps = kKeepsAmongRanges;
      drawn.range_percent = kRangePercent;
    }
    SimulationReport report = RunSimulation(drawn);
    AddSimulation(report, totals);
    violations = std::move(report.violations);
  } else if (group == Group::kCrash) {
    violations = RunCrashes(simulation, totals);
  } else if (group == Group::kFaults) {
    violations = RunFaults(simulation, totals);
  } else {
    FlipReport report = RunFlips(simulation.seed, kFlipsOfASeed, simulation.planted_log);
    totals->flips += report.flips;
    totals->flips_refused += report.refused;
    totals->flips_damaged += report.damaged;
    totals->flips_harmless += report.harmless;
    violations = std::move(report.violations);
  }
  ++totals->seeds;
  if (violations.empty()) return true;
  std::strncpy(totals->violation, violations[0].c_str(), sizeof totals->violation - 1);
  return false;
}

}  // namespace partita

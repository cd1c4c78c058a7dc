#include "test/support/simulation.h"

#include <cstdio>

#include "test/support/damaged_store.h"

namespace partita {

namespace {

// What is drawn of a life before it begins.
struct LifeDraw {
  StoreLife::Plan plan;
  bool other_shards = false;
  uint64_t crash_at = 0;  // 0: none planned.
  SimCrashMoment moment = SimCrashMoment::kBefore;
  CrashKind kind = CrashKind::kPower;
  bool restart = false;  // After a clean close: nothing is cut off.
  bool faults = false;
  int64_t wall_step = 0;
  uint64_t damage_draw = 0;  // Below damage_percent: first a copy of the store meets damage.
};

LifeDraw DrawLife(uint64_t seed, bool faults) {
  SimRandom random(seed);
  LifeDraw draw;
  draw.plan.seed = random.Next();
  draw.other_shards = random.Chance(0.25);
  draw.plan.shards = 1 + static_cast<uint32_t>(random.Below(4));
  draw.plan.end = random.Chance(0.35) ? StoreLife::End::kClose : StoreLife::End::kCrash;
  draw.plan.opening_faults = faults && random.Chance(0.3);
  draw.faults = faults && random.Chance(0.5);
  const bool early = random.Chance(0.3);
  const uint64_t at = 1 + random.Below(early ? 150 : 3000);
  if (random.Chance(0.75)) draw.crash_at = at;
  draw.moment = random.Chance(0.5) ? SimCrashMoment::kBefore : SimCrashMoment::kAfter;
  if (random.Chance(0.25)) {
    // Where it hurts, at some time.
    constexpr uint32_t kFirst = static_cast<uint32_t>(RareState::kCrashInLogWrite);
    constexpr uint32_t kLast = static_cast<uint32_t>(RareState::kCrashInMove);
    draw.plan.crash_within = static_cast<RareState>(kFirst + random.Below(kLast - kFirst + 1));
    draw.plan.crash_delay = static_cast<uint32_t>(random.Chance(0.5) ? random.Below(3) : random.Below(60));
    if (*draw.plan.crash_within == RareState::kCrashInReshard) draw.other_shards = true;
  }
  draw.kind = random.Chance(0.6) ? CrashKind::kPower : CrashKind::kProcess;
  draw.restart = random.Chance(0.3);
  constexpr int64_t kHour = int64_t{3600} * kTicksPerSecond;
  if (random.Chance(0.4)) draw.wall_step = static_cast<int64_t>(random.Below(2 * kHour)) - kHour;
  draw.damage_draw = random.Next() % 100;
  return draw;
}

class SimulationRunner {
 public:
  explicit SimulationRunner(const Simulation& simulation) : simulation_(simulation), disk_(simulation.seed) {
    world_.shards = 0;
  }

  SimulationReport Run() {
    for (uint32_t life = 0; life < simulation_.lives && Sound(); ++life) {
      if (!simulation_.cuts.lives.contains(life)) RunLife(life);
    }
    if (Sound()) RunLast();
    report_.violations = world_.model.violations();
    report_.counts = world_.counts;
    report_.rare = world_.rare;
    report_.rare.Note(RareState::kDoubtHappened, world_.model.doubts_happened());
    report_.rare.Note(RareState::kDoubtLeftNothing, world_.model.doubts_without_trace());
    return report_;
  }

 private:
  bool Sound() const { return world_.model.violations().empty(); }

  void RunLife(uint32_t life) {
    const SimulationCuts& cuts = simulation_.cuts;
    LifeDraw draw = DrawLife(SimRandom::Mix(simulation_.seed) + life, simulation_.faults);
    if (!draw.other_shards && world_.shards > 0) draw.plan.shards = world_.shards;
    if (cuts.crashes.contains(life)) {
      draw.crash_at = 0;
      draw.plan.crash_within.reset();
    }
    for (const auto& [of, number] : cuts.faults) {
      if (of == life) draw.plan.faults_cut.insert(number);
    }
    for (const auto& [of, requests] : cuts.requests) {
      if (of.first != life) continue;
      for (uint32_t request : requests) draw.plan.requests_cut.insert({of.second, request});
    }
    if (simulation_.only_fault) {
      draw.crash_at = 0;
      draw.plan.crash_within.reset();
      draw.plan.end = StoreLife::End::kCrash;
      draw.faults = draw.plan.opening_faults = false;
      draw.kind = CrashKind::kPower;
      if (simulation_.only_fault->life == life) draw.plan.only_fault = simulation_.only_fault->fault;
    }
    const bool damage = draw.damage_draw < simulation_.damage_percent && simulation_.faults &&
                        !simulation_.only_fault && !cuts.damages.contains(life);
    if (damage && world_.shards > 0 && !world_.last_open_failed) Damage(life);
    if (!Sound()) return;
    const bool clean = Live(life, draw);
    // An open that failed, or a clean close, may be followed by another open and nothing else.
    if ((clean || world_.last_open_failed) && draw.restart) return;
    ++report_.crashes;
    if (simulation_.trace) std::printf("life %u: %s\n", life, std::string(CrashKindName(draw.kind)).c_str());
    if (draw.kind == CrashKind::kPower) {
      disk_.CrashPower();
    } else {
      disk_.CrashProcess();
    }
    world_.model.Crashed(draw.kind);
  }

  void Damage(uint32_t life) {
    StoreWorld world = world_;
    world.counts = WorkloadCounts();
    world.rare = RareStates();
    const DamageReport damaged = RunDamage(simulation_, life, disk_.Clone(), &world);
    ++report_.damages;
    report_.hash = SimRandom::Mix(report_.hash ^ damaged.hash);
    world_.counts.Add(world.counts);
    world_.rare.Add(world.rare);
    for (const std::string& violation : world.model.violations())
      world_.model.Violation("damaged before life " + std::to_string(life) + ": " + violation);
  }

  // The last one meets no trouble, and must find everything.
  void RunLast() {
    LifeDraw draw;
    draw.plan.seed = simulation_.seed;
    draw.plan.shards = std::max(world_.shards, 1u);
    draw.plan.work = false;
    draw.plan.end = StoreLife::End::kClose;
    if (!Live(simulation_.lives, draw) && Sound())
      world_.model.Violation("the last life did not close cleanly");
  }

  // True when it ended with a clean close.
  bool Live(uint32_t life, const LifeDraw& draw) {
    ++report_.lives;
    WorkloadOptions workload;
    workload.requests = simulation_.requests;
    workload.clients = simulation_.clients;
    workload.keeps = simulation_.keeps;
    workload.range_percent = simulation_.range_percent;
    workload.faults = draw.faults;
    workload.copies = true;
    workload.trace = simulation_.trace;
    workload.planted = simulation_.planted;
    workload.planted_log = simulation_.planted_log;
    SimOptions options;
    options.seed = draw.plan.seed;
    options.shards = draw.plan.shards;
    options.clients = simulation_.clients + 1;
    options.wall_ticks_start = world_.wall_ticks + static_cast<uint64_t>(draw.wall_step);
    options.steps_max = 50'000'000;  // Some hundred times what a life takes.
    SimRuntime runtime(options, disk_);
    if (draw.crash_at > 0) runtime.CrashAtOperation(draw.crash_at, draw.moment);
    StoreLife store_life(runtime, world_, workload, draw.plan);
    if (simulation_.trace) {
      std::printf("life %u: %u shards%s%s%s\n", life, draw.plan.shards, draw.faults ? ", faults" : "",
                  draw.plan.opening_faults ? ", faults of opening" : "",
                  draw.crash_at > 0 ? (", crash at operation " + std::to_string(draw.crash_at)).c_str() : "");
      std::fflush(stdout);
    }
    runtime.Run(store_life.Main());
    report_.life_operations.push_back(runtime.operations_completed());
    world_.wall_ticks = runtime.clock().WallTicks();
    report_.hash = SimRandom::Mix(report_.hash ^ runtime.TraceHash());
    if (simulation_.trace && !Sound()) std::printf("%s\n", disk_.DescribeOperations(60).c_str());
    if (simulation_.trace) std::fflush(stdout);
    return store_life.closed_cleanly();
  }

  const Simulation simulation_;
  SimDisk disk_;
  StoreWorld world_;
  SimulationReport report_;
};

}  // namespace

SimulationReport RunSimulation(const Simulation& simulation) { return SimulationRunner(simulation).Run(); }

}  // namespace partita

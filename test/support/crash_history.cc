#include <cstdio>
#include <cstdlib>
#include <random>

#include "test/support/store_workload.h"

// Histories made of lives and crashes.

namespace partita {

namespace {

class CrashRunner {
 public:
  explicit CrashRunner(const CrashHistory& history)
      : history_(history),
        random_(history.seed * 0x9E3779B97F4A7C15u + 1),
        disk_(std::make_unique<SimDisk>(history.seed)) {
    world_.shards = 0;
  }

  CrashReport Run() {
    for (uint32_t life = 0; life < history_.lives && Sound(world_); ++life) {
      bool read_back = Chance(60) || !Settle(*disk_, &world_);
      if (!Sound(world_)) break;
      bool clean = RunLife(*disk_, &world_, read_back);
      if (!Sound(world_)) break;
      for (uint32_t clone = 0; clone < history_.clones && Sound(world_); ++clone) FollowClone(clean);
      if (!Sound(world_)) break;
      Crash(*disk_, &world_, clean);
    }
    if (Sound(world_)) (void)Settle(*disk_, &world_);
    report_.violations = world_.model.violations();
    if (report_.violations.empty()) report_.violations = std::move(clone_violations_);
    report_.counts.Add(world_.counts);
    report_.rare.Add(world_.rare);
    return report_;
  }

 private:
  uint64_t Draw(uint64_t below) { return random_() % below; }
  bool Chance(uint32_t percent) { return Draw(100) < percent; }
  bool Sound(const StoreWorld& world) const {
    return world.model.violations().empty() && clone_violations_.empty();
  }

  // True when it ended with a clean close.
  bool RunLife(SimDisk& disk, StoreWorld* world, bool read_back) {
    StoreLife::Plan plan;
    plan.seed = random_();
    plan.read_back = read_back;
    plan.shards = Chance(75) && world->shards > 0 ? world->shards : 1 + static_cast<uint32_t>(Draw(4));
    plan.end = Chance(35) ? StoreLife::End::kClose : StoreLife::End::kCrash;
    SimOptions options;
    options.seed = plan.seed;
    options.shards = plan.shards;
    options.clients = history_.workload.clients + 1;
    options.wall_ticks_start = DrawWallClock(world);
    SimRuntime runtime(options, disk);
    bool faults_only = history_.workload.faults && Chance(60);
    if (Chance(85) && !faults_only) {
      uint64_t most = Chance(15) ? 60 : history_.operations_max;
      runtime.CrashAtOperation(1 + Draw(most), Chance(50) ? SimCrashMoment::kBefore : SimCrashMoment::kAfter);
    }
    StoreLife life(runtime, *world, history_.workload, plan);
    if (std::getenv("PARTITA_TRACE") != nullptr) {
      std::printf("history %llu: %u shards, working\n", (unsigned long long)history_.seed, plan.shards);
      std::fflush(stdout);
    }
    runtime.Run(life.Main());
    Trace(disk, *world, plan, runtime.crashed(), life.compared());
    if (runtime.crashed() && !life.compared()) ++report_.crashes_in_recovery;
    world->wall_ticks = runtime.clock().WallTicks();
    return life.closed_cleanly();
  }

  // With PARTITA_TRACE set: what each life was, and the last operations of one that went wrong.
  static void Trace(const SimDisk& disk, const StoreWorld& world, const StoreLife::Plan& plan, bool crashed,
                    bool compared) {
    if (std::getenv("PARTITA_TRACE") == nullptr) return;
    std::printf("life: %u shards, %s, %s, %s\n", plan.shards, plan.work ? "work" : "no work",
                crashed ? "crashed" : "ended", compared ? "compared" : "not compared");
    if (world.model.violations().empty()) return;
    std::printf("%s\n", disk.DescribeOperations(400).c_str());
  }

  uint64_t DrawWallClock(StoreWorld* world) {
    constexpr uint64_t kHour = 3600 * kTicksPerSecond;
    if (Chance(20)) return world->wall_ticks - Draw(kHour);
    if (Chance(20)) return world->wall_ticks + Draw(kHour);
    return world->wall_ticks;
  }

  void Crash(SimDisk& disk, StoreWorld* world, bool clean) {
    CrashKind kind = Chance(60) ? CrashKind::kPower : CrashKind::kProcess;
    if (clean && Chance(30)) return;  // An ordinary restart.
    ++report_.crash_points;
    CutOff(disk, world, kind);
  }

  static void CutOff(SimDisk& disk, StoreWorld* world, CrashKind kind) {
    if (kind == CrashKind::kPower) {
      disk.CrashPower();
    } else {
      disk.CrashProcess();
    }
    world->model.Crashed(kind);
  }

  // Opens until a life compared everything; recovery may be killed on the way. False when none did.
  bool Settle(SimDisk& disk, StoreWorld* world) {
    bool settled = false;
    for (int i = 0; i < 4 && Sound(*world); ++i) {
      StoreLife::Plan plan;
      plan.seed = random_();
      plan.work = false;
      plan.shards = Chance(80) && world->shards > 0 ? world->shards : 1 + static_cast<uint32_t>(Draw(4));
      plan.end = Chance(20) ? StoreLife::End::kClose : StoreLife::End::kCrash;
      SimOptions options;
      options.seed = plan.seed;
      options.shards = plan.shards;
      options.wall_ticks_start = DrawWallClock(world);
      SimRuntime runtime(options, disk);
      bool interrupt = i < 3 && Chance(25);
      if (interrupt) {
        runtime.CrashAtOperation(1 + Draw(60), Chance(50) ? SimCrashMoment::kBefore : SimCrashMoment::kAfter);
      }
      StoreLife life(runtime, *world, history_.workload, plan);
      runtime.Run(life.Main());
      Trace(disk, *world, plan, runtime.crashed(), life.compared());
      settled = life.compared();
      if (settled) break;
      if (!runtime.crashed()) break;  // A violation says why.
      ++report_.crashes_in_recovery;
      ++report_.crash_points;
      CrashKind kind = Chance(50) ? CrashKind::kPower : CrashKind::kProcess;
      CutOff(disk, world, kind);
    }
    return settled && Sound(*world);
  }

  void FollowClone(bool clean) {
    std::unique_ptr<SimDisk> disk = disk_->Clone();
    disk->Reseed(random_());
    StoreWorld world = world_;
    world.counts = WorkloadCounts();
    world.rare = RareStates();
    Crash(*disk, &world, clean);
    (void)Settle(*disk, &world);
    report_.counts.Add(world.counts);
    report_.rare.Add(world.rare);
    clone_violations_ = world.model.violations();
  }

  const CrashHistory history_;
  std::mt19937_64 random_;
  std::unique_ptr<SimDisk> disk_;
  StoreWorld world_;
  CrashReport report_;
  std::vector<std::string> clone_violations_;
};

}  // namespace

CrashReport RunCrashHistory(const CrashHistory& history) { return CrashRunner(history).Run(); }

}  // namespace partita

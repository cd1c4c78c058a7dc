#include "test/support/damaged_store.h"

#include <algorithm>
#include <cstdio>

#include "engine/repair.h"

namespace partita {

namespace {

bool Begins(const SimDisk::Paths& paths, const std::string& prefix) {
  const auto first = paths.lower_bound(prefix);
  return first != paths.end() && first->starts_with(prefix);
}

// The shards that have such files: "log-LAYOUT-SHARD/..." or "meta/shard-LAYOUT-SHARD".
void AddShards(const SimDisk::Paths& paths, std::string_view kind, std::set<uint32_t>* shards) {
  for (const std::string& path : paths) {
    if (!path.starts_with(kind)) continue;
    const size_t dash = path.find('-', kind.size());
    if (dash != std::string::npos) shards->insert(static_cast<uint32_t>(std::atoi(path.c_str() + dash + 1)));
  }
}

class DamageRun {
 public:
  DamageRun(const Simulation& simulation, uint32_t life, std::unique_ptr<SimDisk> disk, StoreWorld* world)
      : simulation_(simulation),
        life_(life),
        random_(SimRandom::Mix(simulation.seed ^ (uint64_t{life} << 40)) ^ 0xDA),
        disk_(std::move(disk)),
        world_(*world) {
    disk_->Reseed(random_.Next());
  }

  DamageReport Run() {
    Deal();
    if (!Sound() || (disk_->lacking().empty() && disk_->struck().empty())) return report_;
    if (!List() || !Sound()) return report_;
    Meet();
    if (Sound()) Mend();
    return report_;
  }

 private:
  bool Sound() const { return world_.model.violations().empty(); }
  void Tell(const std::string& what) const {
    if (!simulation_.trace) return;
    std::printf("damage of life %u: %s\n", life_, what.c_str());
    std::fflush(stdout);
  }

  StoreLife::Plan NewPlan() {
    StoreLife::Plan plan;
    plan.seed = random_.Next();
    plan.shards = world_.shards;
    plan.work = false;
    return plan;
  }

  SimOptions NewRuntime(uint64_t seed) {
    SimOptions options;
    options.seed = seed;
    options.shards = world_.shards;
    options.clients = simulation_.clients + 1;
    world_.wall_ticks += 60 * kTicksPerSecond;  // A repair takes versions from the clock.
    options.wall_ticks_start = world_.wall_ticks;
    options.steps_max = 50'000'000;
    return options;
  }

  // True when it ended with a clean close.
  bool Live(SimDisk& disk, StoreWorld& world, const StoreLife::Plan& plan, const std::string& what) {
    ++report_.lives;
    WorkloadOptions workload;
    workload.requests = simulation_.requests;
    workload.clients = simulation_.clients;
    workload.trace = simulation_.trace;
    workload.planted = simulation_.planted;
    workload.planted_log = simulation_.planted_log;
    SimRuntime runtime(NewRuntime(plan.seed), disk);
    Tell(what);
    StoreLife life(runtime, world, workload, plan);
    runtime.Run(life.Main());
    world_.wall_ticks = std::max(world_.wall_ticks, runtime.clock().WallTicks());
    report_.hash = SimRandom::Mix(report_.hash ^ runtime.TraceHash());
    if (simulation_.trace && !world.model.violations().empty())
      std::printf("%s\n", disk.DescribeOperations(60).c_str());
    return life.closed_cleanly();
  }

  SimFault DrawDamage() {
    constexpr SimEffect kEffects[] = {SimEffect::kRot, SimEffect::kLost, SimEffect::kMisplaced};
    constexpr const char* kPlaces[] = {"", "tables/", "log-", "meta/"};
    SimFault fault;
    fault.effect = kEffects[random_.Below(3)];
    fault.operations = SimOps(SimOp::kRead, SimOp::kWrite);
    fault.path_prefix = kPlaces[random_.Below(4)];
    if (!simulation_.damage_place.empty()) fault.path_prefix = simulation_.damage_place;
    fault.skip = random_.Below(random_.Chance(0.5) ? 10 : 80);
    fault.count = 1 + random_.Below(2);
    return fault;
  }

  void Deal() {
    StoreLife::Plan plan = NewPlan();
    plan.work = true;
    plan.end = random_.Chance(0.4) ? StoreLife::End::kClose : StoreLife::End::kCrash;
    for (uint64_t i = 0, n = 1 + random_.Below(3); i < n; ++i) plan.damage.push_back(DrawDamage());
    const bool power = random_.Chance(0.5);
    const bool rots = random_.Chance(0.4);
    for (const auto& [of, number] : simulation_.cuts.faults) {
      if (of == life_) plan.faults_cut.insert(number);
    }
    for (const auto& [of, requests] : simulation_.cuts.requests) {
      if (of.first != life_) continue;
      for (uint32_t request : requests) plan.requests_cut.insert({of.second, request});
    }
    const bool clean = Live(*disk_, world_, plan, "dealt under load");
    world_.open_scans.clear();
    if (!clean || power) {
      power ? disk_->CrashPower() : disk_->CrashProcess();
      world_.model.Crashed(power ? CrashKind::kPower : CrashKind::kProcess);
    }
    if (rots && Sound()) Rot();
  }

  void Rot() {
    constexpr const char* kPlaces[] = {"tables/", "log-", "meta/"};
    const std::string place = kPlaces[random_.Below(3)];
    const std::vector<std::string> files =
        disk_->ListFiles(simulation_.damage_place.empty() ? place : simulation_.damage_place);
    if (files.empty()) return;
    const std::string& path = files[random_.Below(files.size())];
    const uint64_t size = disk_->ReadFile(path)->size();
    const uint64_t offset = random_.Below(std::max<uint64_t>(size, 1));
    if (size > 0) disk_->FlipBit(path, offset, static_cast<uint32_t>(random_.Below(8)));
    Tell("a bit rots in " + path + " at " + std::to_string(offset));
  }

  Result<RepairReport> Repair(SimDisk& disk, bool apply) {
    SimRuntime runtime(NewRuntime(random_.Next()), disk);
    RepairWorld world{.files = runtime.files(), .clock = runtime.clock(), .random = 7, .account = "default"};
    RepairOptions options;
    options.apply = apply;
    Result<RepairReport> report = runtime.RunToEnd(RepairStore(std::move(world), options));
    world_.wall_ticks = std::max(world_.wall_ticks, runtime.clock().WallTicks());
    return report;
  }

  // False: what is there seems to be of a newer version (a bit of the format's number), and nothing is done
  // to it.
  bool List() {
    for (const std::string& path : disk_->lacking()) Tell("lacks a write: " + path);
    for (const std::string& path : disk_->struck()) Tell("struck: " + path);
    Result<RepairReport> listed = Repair(*disk_->Clone(), /*apply=*/false);
    if (listed.code() == Code::kUnsupported) return false;
    if (!listed.ok()) {
      world_.model.Violation("a repair cannot list: " + listed.status().ToString());
      return true;
    }
    listed_ = std::move(listed).value();
    for (const RepairDamage& damage : listed_.damages) {
      Tell("listed: " + damage.file + ": " + damage.reason + ": " + damage.consequence);
      const bool is_table = damage.file.starts_with("tables/");
      others_damaged_ = others_damaged_ || !is_table;
      // Which table files were never finished, and so never used, is not known without a manifest.
      const bool lacking_counts = !is_table || manifest_damaged_;
      manifest_damaged_ = manifest_damaged_ || damage.file.starts_with("meta/shard-");
      const bool is_begun = is_table && manifest_damaged_ && disk_->ReadFile(damage.file)->empty();
      if (is_begun || Begins(disk_->struck(), damage.file) ||
          (lacking_counts && Begins(disk_->lacking(), damage.file)))
        continue;
      world_.model.Violation("a repair calls " + damage.file + " damaged, which is not: " + damage.reason);
    }
    AddShards(disk_->lacking(), "log-", &losses_.logs_cut);
    AddShards(disk_->struck(), "log-", &losses_.logs_cut);
    return true;
  }

  bool Listed(const std::string& key) const {
    for (const RepairDamage& damage : listed_.damages) {
      for (const RepairLostRange& lost : damage.lost) {
        if (key >= lost.lower && (lost.upper.empty() || key < lost.upper)) return true;
      }
    }
    return false;
  }

  bool CatalogDamaged() const {
    return std::any_of(listed_.damages.begin(), listed_.damages.end(),
                       [](const RepairDamage& damage) { return damage.file == "meta/catalog"; });
  }

  void Meet() {
    DamageMet met = Read(/*degraded=*/false);
    if (!Sound()) return;
    if (met.opened.ok()) {
      if (!met.failed_keys.empty()) world_.rare.Note(RareState::kDamagedRange);
      if (!met.failed_keys.empty() && met.scrubbed.empty())
        world_.model.Violation("a scrub finds nothing where gets fail (F50)");
      if (!met.scrubbed.empty() && listed_.damages.empty() && disk_->struck().empty())
        world_.model.Violation("a scrub complains of what nothing touched: " + met.scrubbed[0]);
      for (const RepairDamage& damage : listed_.damages) {
        const bool needed = damage.file.starts_with("meta/") || !damage.lost.empty();
        if (needed && !damage.file.starts_with("tables/"))
          world_.model.Violation("the store opens although " + damage.file + " is damaged (F31, F39)");
      }
      JudgeFailed(met, {});
      return;
    }
    world_.rare.Note(RareState::kDamagedOpen);
    const Code code = met.opened.code();
    if (code != Code::kCorruption && code != Code::kUnsupported)
      world_.model.Violation("a damaged store does not open: " + met.opened.ToString());
    if (!others_damaged_) {
      world_.model.Violation("a store of which no more than table files is damaged does not open (F39): " +
                             met.opened.ToString());
    }
    if (!Sound() || CatalogDamaged()) return;
    met = Read(/*degraded=*/true);
    if (!Sound()) return;
    if (!met.opened.ok()) {
      world_.model.Violation("a store does not open without its damaged shards (F39): " +
                             met.opened.ToString());
      return;
    }
    world_.rare.Note(RareState::kDamagedShard);
    std::set<uint32_t> shards;
    for (const SimDisk::Paths* paths : {&disk_->lacking(), &disk_->struck()}) {
      AddShards(*paths, "log-", &shards);
      AddShards(*paths, "meta/shard-", &shards);
    }
    JudgeFailed(met, shards);
  }

  DamageMet Read(bool degraded) {
    DamageMet met;
    StoreLife::Plan plan = NewPlan();
    plan.met = &met;
    plan.open_degraded = degraded;
    plan.losses = losses_;
    const std::unique_ptr<SimDisk> disk = disk_->Clone();
    StoreWorld world = world_;
    world.counts = WorkloadCounts();
    world.rare = RareStates();
    Live(*disk, world, plan, degraded ? "opened without damaged shards" : "opened");
    for (const std::string& violation : world.model.violations()) world_.model.Violation(violation);
    if (met.judged) world_.counts.rows_compared += world.model.Keys().size() - met.failed_keys.size();
    return met;
  }

  // Errors only where the list has them, or in a shard that is not served.
  void JudgeFailed(const DamageMet& met, const std::set<uint32_t>& shards) {
    for (const std::string& key : met.failed_keys) {
      if (Listed(key) || !world_.model.Knows(key) || shards.contains(world_.model.ShardOf(key))) continue;
      if (!shards.empty() && world_.move_in_doubt) continue;
      world_.model.Violation("corruption where nothing is damaged: " + world_.model.DescribeKey(key) +
                             " (F48)");
    }
  }

  void Mend() {
    if (listed_.damages.empty()) {
      world_.rare.Note(RareState::kDamageWithoutTrace);
    } else {
      Result<RepairReport> repaired = Repair(*disk_, /*apply=*/true);
      Tell("repaired: " + repaired.status().ToString());
      if (!repaired.ok()) {
        world_.model.Violation("the repair fails: " + repaired.status().ToString());
        return;
      }
      if (CatalogDamaged()) RenameTables();
      // Who owned what is in the files that were repaired.
      if (world_.move_in_doubt && !losses_.logs_cut.empty()) return;
      world_.move_in_doubt = false;
    }
    for (const RepairDamage& damage : listed_.damages) {
      if (damage.file.starts_with("meta/shard-"))
        AddShards({damage.file}, "meta/shard-", &losses_.files_back);
      for (const RepairLostRange& lost : damage.lost)
        losses_.listed.push_back({lost.lower, lost.upper, Version(lost.after_ticks)});
    }
    // Whose the files are of a range that had just moved, or those that are found again, is lost with the
    // catalog.
    for (uint32_t i = 0; i < world_.shards && CatalogDamaged(); ++i) losses_.files_back.insert(i);
    world_.model.Forgive(losses_);
    StoreLife::Plan plan = NewPlan();
    plan.work = true;
    (void)Live(*disk_, world_, plan, listed_.damages.empty() ? "lives on" : "lives on repaired");
    if (!Sound()) return;
    disk_->CrashPower();
    world_.model.Crashed(CrashKind::kPower);
    plan = NewPlan();
    plan.end = StoreLife::End::kClose;
    if (!Live(*disk_, world_, plan, "the last") && Sound())
      world_.model.Violation("the last life of a store that was repaired did not close cleanly");
    if (Sound() && !listed_.damages.empty()) world_.rare.Note(RareState::kDamageRepaired);
  }

  // A table whose name was lost comes back under another one, if there is something in it.
  void RenameTables() {
    for (StoreWorld::Table& table : world_.tables) {
      table.pending = StoreWorld::Table::Pending::kNone;
      if (!table.id) continue;
      const std::string digits = std::to_string(table.id->value);
      table.name = "recovered" + std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
      table.pending = StoreWorld::Table::Pending::kDrop;
    }
  }

  const Simulation& simulation_;
  const uint32_t life_;
  SimRandom random_;
  const std::unique_ptr<SimDisk> disk_;
  StoreWorld& world_;
  RepairReport listed_;
  StoreModel::Losses losses_;
  bool others_damaged_ = false;  // Not only table files.
  bool manifest_damaged_ = false;
  DamageReport report_;
};

}  // namespace

DamageReport RunDamage(const Simulation& simulation, uint32_t life, std::unique_ptr<SimDisk> disk,
                       StoreWorld* world) {
  return DamageRun(simulation, life, std::move(disk), world).Run();
}

}  // namespace partita

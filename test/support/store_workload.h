#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/base/task_group.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/store_model.h"

namespace partita {

// What a random life of a store is made of.
struct WorkloadOptions {
  uint32_t requests = 25;   // Of each client.
  uint32_t clients = 4;     // Plus one that does maintenance.
  bool faults = false;      // I/O faults while the clients work.
  bool power_only = false;  // Every write at level power.
  bool glimpses = false;    // Before some opens the store is opened for reading only, and read back.
  EngineDefect planted = EngineDefect::kNone;
  LogDefect planted_log = LogDefect::kNone;
};

// What happened, to show that a run was not idle.
struct WorkloadCounts {
  uint64_t requests = 0, acknowledged = 0, refused = 0, in_doubt = 0, rows_compared = 0;
  uint64_t flushes = 0, compactions = 0, drops = 0, layouts = 0, glimpses = 0;
  void Add(const WorkloadCounts& other);
};

// What outlives a process: the model, and what is known of the tables. A value; copied with clones
// of the disk.
struct StoreWorld {
  struct Table {
    std::string name;
    std::optional<TableId> id;  // Present, as far as was answered.
    enum class Pending : uint8_t { kNone, kCreate, kDrop } pending = Pending::kNone;
  };
  static constexpr size_t kTables = 3;
  static constexpr uint32_t kPartitions = 4;
  static constexpr uint32_t kRows = 5;

  StoreModel model;
  std::array<Table, kTables> tables{{{"ta", {}, {}}, {"tb", {}, {}}, {"tc", {}, {}}}};
  std::set<uint32_t> table_ids;  // Ever seen.
  uint32_t shards = 1;           // Of the last completed open; 0: never.
  uint64_t wall_ticks = 133'800'000'000'000'000;
  WorkloadCounts counts;

  // Knows a table that exists with these ranges.
  void AddTable(size_t index, TableId id, const Catalog& catalog);
  void DropTable(size_t index);
};

// One process on a store: opens it, reads everything back and holds it against the model, lets
// clients work, and closes or crashes.
//
// Lifecycle: make, runtime.Run(Main()), gone. All on the runtime's scheduler. What clients are told
// once runtime.crashed() means nothing and is not told to the model.
class StoreLife {
 public:
  enum class End : uint8_t { kClose, kCrash };
  struct Plan {
    uint64_t seed = 1;
    uint32_t shards = 1;
    bool work = true;
    // What is there was compared by the life before, which wrote nothing: reads go to cold tables.
    bool read_back = true;
    End end = End::kCrash;  // When the planned crash was not reached.
  };

  StoreLife(SimRuntime& runtime, StoreWorld& world, const WorkloadOptions& options, const Plan& plan);

  Task<void> Main();

  // The world was compared with the store, all of it.
  bool compared() const { return compared_; }
  bool closed_cleanly() const { return closed_cleanly_; }

 private:
  StoreOptions Options();
  uint64_t Draw(uint64_t below) { return random_() % below; }
  bool Chance(uint32_t percent) { return Draw(100) < percent; }
  bool crashed() const { return runtime_.crashed(); }
  void Violation(std::string text);

  // store_readback.cc: reading everything and comparing.
  Task<void> ReadBack();
  Task<void> Glimpse();
  Task<bool> ReadAll(StoreModel::Rows* rows);
  bool SettleTables();
  Task<bool> ReadTable(TableId table, StoreModel::Rows* rows);
  Task<bool> ScanPages(std::string lower, std::string upper, Direction direction, uint32_t limit,
                       StoreModel::Rows* rows);
  void TellPage(const std::string& from, const std::string& to,
                const std::vector<std::pair<std::string, StoreModel::Row>>& found, uint64_t begun);
  Task<bool> GetEach(const StoreModel::Rows& rows);
  Task<void> CheckStructure();
  void CheckLeftovers();
  void AdoptShards();

  // store_workload.cc: clients.
  Task<void> Work();
  static Task<void> Client(StoreLife* self, uint32_t index);
  static Task<void> Keeper(StoreLife* self);
  Task<void> KeepOnce();
  Task<void> WriteOnce();
  Task<void> WriteOps(size_t table, std::vector<StoreModel::Op> ops, DurabilityLevel level, uint64_t number);
  void TellWrite(size_t table, TableId id, uint64_t number, const WriteOutcome& outcome);
  StoreModel::Op DrawOp(const std::string& key, uint64_t number, size_t index);
  Task<void> GetOnce();
  Task<void> ScanOnce();
  Task<void> ChangeTable();
  Task<void> CreateTable(size_t index);
  Task<void> DropTable(size_t index);
  void AddFaults();
  Task<void> ProveResumed();
  bool Live(size_t table, TableId id) const;

  SimRuntime& runtime_;
  StoreWorld& world_;
  const WorkloadOptions options_;
  const Plan plan_;
  std::mt19937_64 random_;
  std::unique_ptr<Store> store_;
  TaskGroup tasks_;
  TaskGroup keeper_;
  bool compared_ = false;
  bool closed_cleanly_ = false;
  uint32_t partitions_ = StoreWorld::kPartitions;  // That clients write to: fewer make them meet.
  bool faulty_ = false;                            // Faults are on, or their consequences may still be felt.
};

// One random history: lives that end in crashes, each crash followed on `clones` copies of the disk
// as well. Stops at the first violation.
struct CrashHistory {
  uint64_t seed = 1;
  uint32_t lives = 8;
  uint32_t clones = 3;
  uint64_t operations_max = 800;  // A crash is drawn among so many I/O operations.
  WorkloadOptions workload;
};
struct CrashReport {
  uint64_t crash_points = 0;
  uint64_t crashes_in_recovery = 0;
  WorkloadCounts counts;
  std::vector<std::string> violations;
};
CrashReport RunCrashHistory(const CrashHistory& history);

}  // namespace partita

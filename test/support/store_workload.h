#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/task_group.h"
#include "engine/io/sim_random.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/rare_states.h"
#include "test/support/store_model.h"

namespace partita {

inline constexpr const char* kWorkloadAccount = "default";

// What a random life of a store is made of.
struct WorkloadOptions {
  uint32_t requests = 25;      // Of each client.
  uint32_t clients = 4;        // Plus one that does maintenance,
  uint32_t keeps = 0;          // so often; 0: half as often as a client asks.
  uint32_t range_percent = 0;  // Of that: changes of ranges, beside those among all else.
  bool faults = false;         // I/O faults while the clients work.
  bool power_only = false;     // Every write at level power.
  bool glimpses = false;       // Before some opens the store is opened for reading only, and read back.
  bool copies = false;         // Backups, restores and scrubs beside the clients, scans across lives.
  bool trace = false;          // Tells on standard output what is asked and answered.
  EngineDefect planted = EngineDefect::kNone;
  LogDefect planted_log = LogDefect::kNone;
};

// What happened, to show that a run was not idle.
struct WorkloadCounts {
  uint64_t requests = 0, acknowledged = 0, refused = 0, in_doubt = 0, rows_compared = 0;
  uint64_t flushes = 0, compactions = 0, drops = 0, layouts = 0, glimpses = 0;
  uint64_t gets = 0, pages = 0, keeps = 0, backups = 0, restores = 0, scrubs = 0, continued = 0;
  uint64_t opens_failed = 0, faults_hit = 0, disk_operations = 0;
  uint64_t splits = 0, merges = 0, moves = 0;  // Made.
  uint64_t range_operations() const { return splits + merges + moves; }
  // Of the store, by its clients and keeper.
  uint64_t calls() const { return requests + gets + pages + keeps; }
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
  static constexpr size_t kTablesSplit = 2;  // The first so many: each partition may be a range of its own.
  static std::string PartitionName(uint64_t i) { return "p" + std::to_string(i); }
  static std::string RowName(uint64_t i) { return "r" + std::to_string(i); }

  StoreModel model;
  std::array<Table, kTables> tables{{{"ta", {}, {}}, {"tb", {}, {}}, {"tc", {}, {}}}};
  std::set<uint32_t> table_ids;  // Ever seen.
  uint32_t shards = 1;           // Of the last completed open; 0: never.
  uint64_t wall_ticks = 133'800'000'000'000'000;
  WorkloadCounts counts;
  RareStates rare;

  uint32_t lives = 0;  // Begun.
  // A scan that a crash or a failed page ended; a request of this life or of a later one may go on where it
  // was (continuations never expire).
  struct OpenScan {
    std::string lower, upper;
    Direction direction = Direction::kForward;
    uint32_t life = 0;
  };
  static constexpr size_t kOpenScans = 8;
  std::vector<OpenScan> open_scans;
  void KeepScan(std::string lower, std::string upper, Direction direction);
  // A backup that an earlier life made, or may have made.
  struct Copy {
    std::string directory;
    bool complete = false;                 // Answered so.
    uint64_t created_ticks = 0;            // Then: by the wall clock.
    std::optional<StoreModel::Rows> rows;  // When it was restored once.
  };
  std::vector<Copy> copies;
  uint32_t directories = 0;  // Ever named.
  // Which shard a range was on at the end of the last life is for the store to say: it is opened with as many
  // shards, and asked before it is judged.
  bool move_in_doubt = false;
  bool last_open_failed = false;
  uint32_t recovery_crashes = 0;  // One after the other.

  // Knows a table that exists with these ranges.
  void AddTable(size_t index, TableId id, const Catalog& catalog);
  void DropTable(size_t index);
};

// What a store with damaged files answered to whoever read all of it.
struct DamageMet {
  Status opened;
  std::set<std::string> failed_keys;
  std::vector<std::string> scrubbed;  // What a scrub complained of.
  bool judged = false;                // All else was held against the model.
};

// One process on a store: opens it, reads everything back and holds it against the model, lets
// clients work, and closes or crashes.
//
// Lifecycle: make, runtime.Run(Main()), gone. All on the runtime's scheduler. What clients are told
// once runtime.crashed() means nothing and is not told to the model.
class StoreLife {
 public:
  enum class End : uint8_t {
    kClose,
    kCrash,
    kQuietCrash,  // After a barrier, and so late that idle logs are sealed (F32): nothing is left to chance.
  };
  struct Plan {
    uint64_t seed = 1;
    uint32_t shards = 1;
    bool work = true;
    // What is there was compared by the life before, which wrote nothing: reads go to cold tables.
    bool read_back = true;
    End end = End::kCrash;  // When the planned crash was not reached.
    bool opening_faults = false;
    std::optional<SimFault> only_fault;  // From the first operation on, until it hit and was got over.
    // Crashes after so many operations within that state (DiskWatch::Within).
    std::optional<RareState> crash_within;
    uint32_t crash_delay = 0;
    // What is left out, to make a failure smaller: requests of an actor (0 is the keeper), and faults by
    // their number; those of the opening count from kOpeningFault on, kFullDisk is the disk that fills up,
    // kRotOnce a read that gives a wrong bit.
    std::set<std::pair<uint32_t, uint32_t>> requests_cut;
    std::set<uint32_t> faults_cut;
    // Faults that damage files while clients work: from then on, errors are answers.
    std::vector<SimFault> damage;
    // Not null: files may be damaged; nothing is done but to read, and to say what was met.
    DamageMet* met = nullptr;
    bool open_degraded = false;
    StoreModel::Losses losses;  // Of a life that meets damage, but for keys that answer errors.
  };
  static constexpr uint32_t kFullDisk = 0, kRotOnce = 9, kOpeningFault = 10, kDamage = 20;
  static constexpr uint64_t kCapacity = uint64_t{1} << 40;   // Of the disk, but for kFullDisk.
  static constexpr uint64_t kFaultsFeltNs = 10'000'000'000;  // F56: then all is as if there had been none.

  StoreLife(SimRuntime& runtime, StoreWorld& world, const WorkloadOptions& options, const Plan& plan);

  Task<void> Main();

  // The world was compared with the store, all of it.
  bool compared() const { return compared_; }
  bool closed_cleanly() const { return closed_cleanly_; }

 private:
  StoreOptions Options();
  uint64_t Draw(uint64_t below) { return random_.Below(below); }
  bool Chance(uint32_t percent) { return Draw(100) < percent; }
  // What a request draws depends on its number alone, so that leaving out others does not change it. It draws
  // all it needs before it waits for anything.
  void DrawFor(uint32_t actor, uint32_t request) {
    random_ = SimRandom(plan_.seed ^ SimRandom::Mix(uint64_t{actor + 1} << 32 | request));
  }
  void Tell(const std::string& what) const;
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

  // store_damage.cc: stores whose files are damaged.
  Task<void> ReadDamaged();
  Task<bool> GetDamaged(StoreModel::Rows* rows);
  Task<bool> ScanDamaged(TableId table, const StoreModel::Rows& rows);

  // store_workload.cc: clients.
  Task<void> Work();
  static Task<void> Client(StoreLife* self, uint32_t index);
  static Task<void> Keeper(StoreLife* self);
  Task<void> KeepOnce();
  Task<Status> KeepCopies(uint64_t what);
  void Watch(const SimOperationRecord& operation);
  void NoteOpened();
  void NoteEnd();
  void TellRequest(uint64_t number, DurabilityLevel level, const std::vector<StoreModel::Op>& ops) const;
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
  void AddFault(uint32_t number, const SimFault& fault);
  SimFault DrawFault(uint64_t skip_max);
  void AddOpeningFaults();
  void EndOpeningFaults();
  uint64_t FaultsHit() const;
  Task<void> ProveResumed();
  bool Live(size_t table, TableId id) const;

  // store_ranges.cc: splits, merges and moves.
  Task<void> ChangeRanges();
  Task<void> MoveRange(std::string key, std::string name);
  void AdoptOwners();

  // store_copies.cc: backups, restores, scrubs.
  Task<Status> BackUp();
  Task<void> RestoreOnce(size_t copy, const StoreModel::CopyClaim* claim);
  Task<bool> ReadCopy(Store* copy, StoreModel::Rows* rows);
  Task<Status> ScrubOnce();
  Task<void> RemoveAll(std::string directory);

  SimRuntime& runtime_;
  StoreWorld& world_;
  const WorkloadOptions options_;
  const Plan plan_;
  SimRandom random_;
  std::vector<size_t> faults_added_;
  DiskWatch watch_;
  uint32_t within_ = 0;  // Operations so far within plan_.crash_within.
  bool backing_up_ = false;
  bool restoring_ = false;
  bool moving_ = false;
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
  RareStates rare;
  std::vector<std::string> violations;
};
CrashReport RunCrashHistory(const CrashHistory& history);

}  // namespace partita

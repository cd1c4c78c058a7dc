#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/async_mutex.h"
#include "engine/base/chunk_pool.h"
#include "engine/base/maintenance.h"
#include "engine/base/memory_budget.h"
#include "engine/base/stall_log.h"
#include "engine/base/task_group.h"
#include "engine/base/timed_waits.h"
#include "engine/catalog.h"
#include "engine/disk_reserve.h"
#include "engine/heat_history.h"
#include "engine/hot_partitions.h"
#include "engine/io/local_meta_store.h"
#include "engine/io/local_object_store.h"
#include "engine/io/runtime.h"
#include "engine/load_sampler.h"
#include "engine/memory_lender.h"
#include "engine/memory_looks.h"
#include "engine/name_index.h"
#include "engine/object_references.h"
#include "engine/opening_progress.h"
#include "engine/range_balancer.h"
#include "engine/range_map.h"
#include "engine/recent_load.h"
#include "engine/scan_ahead.h"
#include "engine/shard.h"
#include "engine/throttle.h"
#include "engine/write_request.h"
#include "sstable/block_cache.h"
#include "sstable/read_ahead_pool.h"

namespace partita {

struct StoreImage;

struct StoreOptions {
  bool create_if_missing = false;
  // Nothing on disk is changed, whatever state it is in (F64): logs are replayed into memory, which must
  // hold them; every write is kUnsupported. Beside other readers, not beside a writer. `shards` is ignored:
  // a store is read as it is divided.
  bool read_only = false;
  // A shard whose manifest or log is damaged does not keep the others from being served (F39): what concerns
  // its keys answers kCorruption, naming what is damaged. No object is removed anywhere meanwhile, as nobody
  // knows what the shard needs. `shards` is ignored.
  bool open_degraded = false;
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint64_t host_memory_bytes = 0;  // Of memory_bytes: what the store leaves to who opens it.
  uint32_t shards = 1;
  // Ranges split, merge and move by themselves as the load asks (range_balancer.h).
  bool balance_ranges = false;
  ZoneExtractor zones;
  EntityCost entity_cost = nullptr;       // For throughput targets; null: by bytes.
  uint64_t lock_wait_ns = 5'000'000'000;  // A dying process may hold the lock while its I/O drains (F64).
  // What tests make tiny. Sizes of 0 are derived from memory_bytes.
  size_t memtable_data_bytes = SIZE_MAX;  // Bytes of keys and values at which a memtable is frozen.
  uint64_t table_file_bytes = 0;
  uint64_t merged_per_second = kMergedPerSecond;  // See Level0Depth.
  uint64_t log_segment_bytes = 0;
  uint64_t log_tail_bytes = 0;
  uint64_t reserve_bytes = 0;
  uint64_t io_deadline_ns = kIoDeadlineNanos;
  OpeningProgress::Tell opening{};  // Of Open alone.
  bool caches_flushes = true;       // What is flushed is in the cache where that has memory to spare.
  EngineDefect planted = EngineDefect::kNone;
  LogDefect planted_log = LogDefect::kNone;
};

// What recovery met, for the start-up report.
struct StoreOpenReport {
  uint64_t records_replayed = 0;
  uint64_t torn_bytes = 0, records_stranded = 0;      // See LogRecovery,
  std::vector<std::string> torn_logs, stranded_logs;  // and in words for each of the logs.
  uint64_t leftover_objects_removed = 0;
  std::string leftovers_kept;  // Why some of no use are still there, taking room; empty: none are.
  bool clean_shutdown = true;
  bool created = false;
  bool direct_io_refused = false;  // See FileSystem.
  uint32_t shards_before = 0;      // Differs from the present number when ranges were re-assigned (F67).
  std::vector<std::string> damaged_shards;  // Of a degraded open: what keeps each of them from being served.
};

// A whole store: the catalog and its shards, on a Runtime. Keys and contents are bytes to it; the
// table model is api/'s.
//
// Lifecycle: Open, use from any thread (blocking mode) or executor, Close. All methods that return
// Task run in either mode. Routing: a key's shard comes from the range map, an immutable snapshot
// published by pointer; a shard that no longer owns the key answers kMoved and the call routes anew.
class Store {
 public:
  // kNotFound: no store here and create_if_missing is false. kInvalidArgument: the directory holds
  // something else. kCorruption: store files without their root (F69), or damaged roots (F39).
  static Task<Result<std::unique_ptr<Store>>> Open(Runtime& runtime, StoreOptions options);

  // For who opens a directory of a user's choice, before Open leaves a file LOCK in it: kInvalidArgument
  // where it is no store's, kNotFound where there is no store and none is to be made. Ok promises nothing.
  static Task<Status> CheckPlace(FileSystem& files, bool create_if_missing);
  ~Store();

  // F7. Nothing else may run or start.
  Task<Status> Close();
  // Before it, for who waits until no call runs: writes do not wait any more for what is behind.
  void StopPacing();

  // ---- Tables.
  struct TableSpec {
    std::string account;
    std::string name;
    bool raw = false;
    DurabilityLevel durability = DurabilityLevel::kPower;
    std::vector<std::string> split_partitions;  // Ordered text or raw bytes, sorted, distinct.
  };
  // Changes of tables and attributes are made one at a time (store_catalog.cc). All of them: kUnknown when in
  // doubt, at the deadline at the latest (F26); kIoError from then on until it is known how that one ended;
  // kDeadlineExceeded when another one took so long that this one did not begin. Meanwhile a table that is in
  // doubt answers kUnknown, and ListTables and attributes are as they were.
  // kAlreadyExists, on a full disk, too; kBusy while a table of this name is being deleted; kNoSpace.
  Task<Result<TableDescriptor>> CreateTable(TableSpec spec);
  // kNotFound.
  Task<Status> DeleteTable(std::string account, std::string name);
  // kNotFound; kUnknown.
  Result<TableDescriptor> FindTable(std::string_view account, std::string_view name) const;
  // The same without a copy, for the hot path: no lock, no allocation. Null when there is none.
  TablePtr LookUpTable(std::string_view account, std::string_view name) const;
  Status WhyNoTable(std::string_view account, std::string_view name) const;
  // Of the account at most `limit`, by name ignoring case, from `from` on. No lock: a thousand take 10 us.
  std::vector<TablePtr> ListTables(std::string_view account, std::string_view from = "",
                                   size_t limit = SIZE_MAX) const;

  // Replaces the bytes kept beside a table (TableDescriptor::attributes); empty ones remove. They are
  // deleted with it. Durable on return, all or nothing after a crash. kNotFound; kInvalidArgument above
  // kAttributesSizeMax; kResourceExhausted when all attributes together are above kAttributesTotalMax.
  Task<Status> SetTableAttributes(std::string account, std::string name, std::string bytes);
  // The same for an account, which needs no table.
  Task<Status> SetAccountAttributes(std::string account, std::string bytes);
  // Null: none. As cheap as LookUpTable.
  Attributes AccountAttributes(std::string_view account) const;

  // ---- Ranges (store_ranges.cc).
  // A table has one at first; a partition always lies in one. Changes as above; also kNotFound: there is no
  // range with the key. All are durable on return, and all or nothing after a crash.

  // Cuts a range in two at `at`; both pieces stay with their shard. A bound made `by_load` is taken away
  // again when no load asks for it, until somebody asks for it otherwise. kAlreadyExists: a range begins
  // there; kInvalidArgument: no partition begins there; kResourceExhausted: there are kSplitsMax.
  Task<Status> SplitRange(std::string at, bool by_load = false);
  // Joins the range that begins at `at` to the one in front of it. kInvalidArgument: none begins there, or it
  // is its table's first. kPreconditionFailed: they are on different shards.
  Task<Status> MergeRanges(std::string at);
  struct MoveReport {
    ShardId from, to;
    uint64_t pause_ns = 0;    // How long its writes waited.
    uint64_t rest_bytes = 0;  // What was written meanwhile; no other data is touched.
  };
  // Moves the range that holds the key to a shard, beside reads, scans and writes. One at a time: kBusy when
  // another takes long; also when the range was changed meanwhile. kDeadlineExceeded: it was not made, as the
  // disk did not answer in time before it was decided (F26).
  Task<Result<MoveReport>> MoveRange(std::string user_key, ShardId to);

  // What was done so by the store itself (store_balance.cc).
  struct BalanceStatistics {
    uint64_t splits = 0, merges = 0, moves = 0;
    uint64_t failed = 0;  // Of them all: did not come about, and were planned anew.
  };
  BalanceStatistics balance_statistics() const;

  // ---- Entities. Keys of one WriteRequest lie in one partition. All of them: kThrottled when they would
  // exceed a throughput target.
  Task<WriteOutcome> Write(const WriteRequest& request);
  // Memory only; kNeedsIo sends the caller to Get, and so it does where memory seldom had an answer of late.
  // kMoved here means: there is no such table.
  Shard::ReadAnswer TryGet(std::string_view user_key, std::string* content);
  // kNotFound when the table is gone; a missing key is an answer.
  Task<Result<Shard::ReadAnswer>> Get(std::string_view user_key, std::string* content);
  // A page of the interval, which lies in one table and has a lower bound; goes on over ranges and shards
  // until a limit or the sink ends it.
  Task<Result<ScanAnswer>> Scan(const ScanRequest& request, RowSink* sink);

  // ---- Maintenance.
  Task<Status> Barrier();
  Task<Status> FlushMemtables();
  Task<Status> CompactAll();

  // A verified backup, with everything acknowledged before the call, in the empty directory `to` (F68,
  // engine/backup.h); beside all other calls. `base`: that of an earlier backup, or null. Both outlive it.
  Task<Result<BackupReport>> Backup(FileSystem& to, FileSystem* base, BackupOptions options);

  // Reads everything past all caches at a bounded rate, beside everything else, and checks it as a read
  // does (F50, engine/scrub.cc). kCancelled when the watcher stopped it.
  Task<Result<ScrubReport>> Scrub(ScrubOptions options);

  struct VerifyResult {
    uint64_t tables = 0, entries = 0, bytes = 0;
    std::vector<std::string> damages;
  };
  // Reads every table file; `progress` as TaskPace has it, called after each file.
  Task<Result<VerifyResult>> Verify(std::function<bool(uint64_t, uint64_t)> progress);

  std::vector<ShardStatistics> Statistics();
  // Each shard's, by number; null of those that are not open.
  std::vector<BackgroundMeter*> BackgroundMeters() const;
  // Of each worker, by number of its shard, what kept it long; none where time is virtual.
  std::vector<StallReport> Stalls() const;
  // A change of the catalog was answered in doubt and is not settled yet (F26).
  bool catalog_in_doubt() const;
  // Of space on the disk (F55).
  const DiskReserve& reserve() const { return reserve_; }
  Throttle& throttle() { return throttle_; }
  // ---- Load (store_load.cc). What was sampled until now; by RecentNanos of the runtime's clock.
  // First has the consumers know all of it.
  void CollectLoad() { load_.Collect(); }
  const RecentLoad& recent_load() const { return recent_load_; }
  const HotPartitions& hot_partitions() const { return hot_partitions_; }
  const HeatHistory& heat_history() const { return heat_history_; }
  LoadSampler::Statistics LoadStatistics() { return load_.statistics(); }
  CacheStatistics CacheStats() const { return cache_->statistics(); }
  // What ranges, names and open tables keep beside the cache, which is smaller for it; and what of that is
  // beyond the budget once memtables are full.
  uint64_t bytes_beside_cache() const { return cache_->resident_bytes(); }
  uint64_t bytes_beyond_budget() const { return memory_lender_->bytes_beyond(); }
  const TimedWaits& waits() const { return *waits_; }
  const ReadFaults& read_faults() const { return cache_->faults(); }
  // Of tables, and of catalog and manifests: what was bad once, and good when read again (F52).
  uint64_t reads_transient() const {
    return cache_->faults().transient.load(std::memory_order_relaxed) +
           meta_reads_transient_.load(std::memory_order_relaxed);
  }
  // What scrubs found, whether they came to their end or not.
  uint64_t scrub_damages() const { return scrub_damages_.load(std::memory_order_relaxed); }
  const MemoryPlan& memory_plan() const { return memory_plan_; }
  const StoreOpenReport& open_report() const { return report_; }
  Catalog CatalogCopy() const;
  uint32_t shard_count() const { return static_cast<uint32_t>(shards_.size()); }
  Runtime& runtime() { return runtime_; }
  // The ranges of a table as they are now, in order; none when it is gone. Another shard may have them soon.
  std::vector<RangeDescriptor> RangesOf(TableId table) const;
  // The worker that a key's asynchronous writes run on; shard 0's for unknown keys.
  Executor& ExecutorFor(std::string_view user_key);
  // Where a read of the key runs: on the calling thread where that is a worker, which needs no other one for
  // it.
  Executor& ReaderFor(std::string_view user_key);

 private:
  Store(Runtime& runtime, StoreOptions options);

  // store_open.cc
  Task<Status> OpenAll();
  Task<Status> OpenForReading();
  Task<Status> FindOrCreateCatalog();
  Task<Status> OpenObjects(IfMissing if_missing);
  Task<void> JoinReads();
  Task<Status> RefuseManifests();
  static Task<Status> CheckEmptyDirectory(FileSystem& files);
  Task<Status> OpenAllShards();
  Task<Status> OpenShards(uint32_t first, uint32_t count);
  static Task<void> OpenOneShard(Store* store, ShardId id, Shard::Opened* out);
  void NoteLogEnd(const LogRecovery& log, ShardId shard);
  void NoteDamagedShard(const Status& why);
  Task<void> NoteVersionsOfDamaged();
  Task<Status> Reshard();
  Task<Status> RemoveLeftovers();
  Task<Status> RemoveOldLayouts();
  Task<Result<bool>> RemoveLog(std::string directory);
  Task<Status> SaveCatalog(Catalog next);  // While nobody else is there.
  // The moment that a backup shows; also after an error what `image` got is to be dropped.
  Task<Status> PinAll(StoreImage* image);
  Task<Status> DropPins(const StoreImage& image);
  ShardContext MakeShardContext();
  Status DeriveSizes();
  // kUnsupported when the store was opened for reading only.
  Status CheckWritable() const;
  // kNoSpace while only what frees space is taken (F55).
  Status CheckSpace() const;

  // store_catalog.cc
  struct RangeMove;
  struct CatalogChange;
  enum class ChangeStep : uint8_t;
  using ChangePtr = std::shared_ptr<CatalogChange>;
  Task<Result<ChangePtr>> BeginChange();
  Task<Status> MakeChange(ChangePtr change);
  Task<Status> AwaitAnswer(ChangePtr change);
  Status EnterStep(CatalogChange* change, ChangeStep step);
  static Task<void> SwapCatalog(Store* self, ChangePtr change);
  static Task<void> SettleChange(Store* self, ChangePtr change, Status swapped);
  void StartWatch(const ChangePtr& change);
  static Task<void> WatchChange(Store* self, ChangePtr change);
  Task<void> PutInForce(CatalogChange* change);
  Task<void> GiveRangesToShards(CatalogChange* change);
  void EndChange(CatalogChange* change, const Status& status);
  void KeepOffDamagedShards(TableId id, Catalog* catalog) const;
  uint64_t TicksOfNewTable() const;

  void PublishCatalog();
  void PublishCatalogLocked();  // Under names_mutex_.
  // Both null: there is no such table.
  struct Route {
    Shard* shard = nullptr;
    const Status* damage = nullptr;  // Instead of the shard: why it is not served.
  };
  Route RouteTo(std::string_view user_key) const;
  Route RouteOf(ShardId owner) const;
  bool degraded() const { return sound_shards_.size() < shards_.size(); }

  // store_ranges.cc
  Task<Status> Reshape(ChangePtr change, ShardId owner);
  Task<Result<AsyncMutex::Guard>> BeginMove();
  Task<Result<ChangePtr>> BeginFence(const RangeMove& move, RangeEpoch epoch);
  static Task<void> MakeMove(Store* self, ChangePtr change);
  Task<Status> PrepareMove(CatalogChange* change);
  Task<Status> PrepareUnfenced(RangeMove* move, const Catalog& next, AsyncMutex::Guard structure);
  static Task<void> PrepareSwap(Store* self, std::string catalog, Status* prepared);
  Task<Status> HandOverRest(RangeMove* move);
  static Task<void> FlushOldLog(RangeMove* move, Status* flushed);
  Task<void> AbandonMove(RangeMove* move);
  // Before a key is routed for the time `tries` + 1.
  Task<void> PauseBeforeRoute(int tries);
  Status NoRoute(std::string_view user_key) const;

  // store_balance.cc
  void BalanceIfDue();
  static Task<void> Balance(Store* self);
  static Task<void> TakeSteps(Store* self, std::vector<RangeBalancer::Step> steps);
  Task<bool> TakeStep(const RangeBalancer::Step& step);

  // store_scan.cc
  struct ScanCourse;
  std::optional<ScanAhead::Piece> NextPiece(ScanRequest* rest, bool* routed);
  Task<Result<ScanAnswer>> ScanMetered(ScanCourse* course, RowSink* sink);
  Task<Result<ScanAnswer>> ScanOn(ScanCourse* course, RowSink* sink, ScanAhead* ahead);

  // store_load.cc
  void WakeCollector();
  static Task<void> CollectOnWorker(Store* self);
  void LendMemoryIfDue();
  static Task<void> LendMemory(Store* self, uint64_t now_ns);
  void WakeLender();
  static Task<void> TakeMemoryBack(Store* self);
  void TouchMemory();
  static Task<void> TouchInBackground(Store* self, uint64_t data_bytes);
  static Task<void> NoteTouched(Store* self);
  void CutHeatIfDue();
  static Task<void> CutHeat(Store* self);
  void NoteRead(std::string_view user_key, size_t content_bytes, uint64_t cpu_ns) {
    load_.Note(LoadKind::kRead, user_key, 1, user_key.size() + content_bytes, cpu_ns);
  }
  // Passes the status on.
  Status NoteThrottled(std::string_view user_key, size_t rows, Status charged);
  void NoteRefused(std::string_view user_key, size_t rows);

  // The store's files: of one that is opened for reading only they cannot be changed, else they go on with
  // the reserve where they find no space.
  std::unique_ptr<FileSystem> reading_files_;
  DiskReserve reserve_;
  std::unique_ptr<Runtime> runtime_over_;
  Runtime& runtime_;
  StoreOptions options_;
  OpeningProgress opening_{std::exchange(options_.opening, nullptr)};  // Ends with Open.
  std::unique_ptr<DirectoryLock> lock_;
  std::atomic<uint64_t> meta_reads_transient_{0};
  std::atomic<uint64_t> scrub_damages_{0};
  std::unique_ptr<LocalMetaStore> meta_;
  WriteHold write_hold_;
  std::unique_ptr<LocalObjectStore> objects_;
  std::unique_ptr<LocalObjectStore> unreserved_objects_;  // The same, without a share in the reserve.
  MemoryPlan memory_plan_;
  std::unique_ptr<TimedWaits> waits_;  // For reads of tables.
  std::unique_ptr<BlockCache> cache_;
  std::unique_ptr<ReadAheadPool> read_ahead_;  // Of scans.
  // Of flushes and compactions; of those on threads that must not hold locks which others wait for.
  std::unique_ptr<ReadAheadPool> job_reads_, idle_job_reads_;
  ScanAhead::Slots scans_ahead_{1};
  std::unique_ptr<ChunkPool> memtable_pool_;
  std::unique_ptr<MemoryLender> memory_lender_;
  std::unique_ptr<ResidentBytes> catalog_bytes_;  // What the catalog takes, and what is published of it.
  std::unique_ptr<FlushLanes> flush_lanes_;
  uint64_t opened_ns_ = 0;
  uint64_t lent_second_ = 0;  // On shard 0's worker.
  std::atomic<bool> looks_at_memory_{false};
  std::atomic<bool> touches_memory_{false}, notes_touched_{false};
  ObjectReferences references_;
  RecentLoad recent_load_;
  HotPartitions hot_partitions_;
  HeatHistory heat_history_;
  std::atomic<bool> cuts_heat_{false};
  LoadSampler load_{runtime_.clock(), [this] { WakeCollector(); }};
  MemoryLooks memory_looks_;
  std::vector<std::unique_ptr<Shard>> shards_;  // By number; null: damaged.
  std::vector<Shard*> sound_shards_;            // The others.
  std::vector<Status> shard_damages_;           // By number; ok: sound.
  Version version_max_of_damaged_;              // What is known to have been given by those that are not.
  TaskGroup tasks_;
  StoreOpenReport report_;
  bool closed_ = false;
  bool opened_ = false;  // Set at the end of OpenAll.
  std::atomic<bool> closing_{false};

  const Status deletion_in_doubt_ = Status::Unknown(
      "whether the table was deleted is in doubt until the catalog can be read again, then by itself (F26)");

  // Changes of the catalog, one at a time.
  AsyncMutex catalog_mutex_;
  uint64_t catalog_generation_ = 0;
  AsyncMutex moves_mutex_;
  std::atomic<uint32_t> move_attempts_{0};
  uint64_t looked_second_ = 0;          // Shard 0's worker's.
  std::atomic<bool> balancing_{false};  // Who set it has balancer_.
  RangeBalancer balancer_;
  struct {
    std::atomic<uint64_t> splits{0}, merges{0}, moves{0}, failed{0};
  } balance_;
  // Guards what follows, and the answers of changes; held briefly. Look-ups of one name go to names_ instead.
  mutable std::mutex names_mutex_;
  Catalog catalog_;
  std::vector<std::string> deleting_;  // "account/name", folded: being deleted.
  ChangePtr change_in_doubt_;          // Answered so, and not settled yet.

  SnapshotPublisher<NameIndex> names_;  // Of catalog_; published with it.
  RangeMapPublisher routes_;
  Throttle throttle_{runtime_.clock(), options_.entity_cost, [this] { return CatalogCopy(); }};
  std::atomic<uint64_t> next_object_{1};
};

}  // namespace partita

#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compaction/job.h"
#include "compaction/picker.h"
#include "engine/background_meter.h"
#include "engine/base/async_mutex.h"
#include "engine/base/chunk_pool.h"
#include "engine/base/event.h"
#include "engine/base/log_store.h"
#include "engine/base/meta_store.h"
#include "engine/base/object_store.h"
#include "engine/base/task_group.h"
#include "engine/batch_record.h"
#include "engine/catalog.h"
#include "engine/commit_log.h"
#include "engine/disk_reserve.h"
#include "engine/flush_queue.h"
#include "engine/flush_rate.h"
#include "engine/hybrid_clock.h"
#include "engine/io/runtime.h"
#include "engine/manifest.h"
#include "engine/object_references.h"
#include "engine/opening_progress.h"
#include "engine/pacer.h"
#include "engine/read_view.h"
#include "engine/row_scan.h"
#include "engine/rowless_sweep.h"
#include "engine/shard_statistics.h"
#include "engine/strand.h"
#include "engine/write_request.h"
#include "sstable/block_cache.h"
#include "sstable/level_set.h"
#include "sstable/read_ahead_pool.h"
#include "wal/local_log_store.h"

namespace partita {

class ForeignBytes;
class LoadSampler;
struct BatchRoom;
struct WriteBatch;

// For tests that prove the tests: a defect planted in the engine must be caught by the crash oracle. Chosen
// for one store, as a LogDefect is for one log.
enum class EngineDefect : uint8_t {
  kNone,
  kSkipConditionRecheck,  // Decides on what was resolved, whatever came since.
  kPublishBeforeDurable,  // Shows and acknowledges records before the log is flushed.
  kForgetReplayFrom,      // Replays the whole log, flushed records included (F36).
  kReuseVersions,         // Starts the clock below the durable ceiling (F17).
  kKeepReserve,           // Keeps the reserve of space when it is to be given back (F55).
};

// What a shard needs of the store around it. Outlives the shard.
struct ShardContext {
  Runtime& runtime;
  ObjectStore& objects;
  ObjectStore& unreserved_objects;  // The same, past the reserve: for compactions.
  MetaStore& meta;
  BlockCache& cache;
  ReadAheadPool& read_ahead;      // Of scans.
  ReadAheadPool& job_reads;       // Of flushes and compactions,
  ReadAheadPool& idle_job_reads;  // those of idle-class threads apart: they must not hold others up.
  ChunkPool& memtable_pool;
  ObjectReferences& references;
  DiskReserve& reserve;
  LoadSampler& load;
  FlushLanes& flush_lanes;
  OpeningProgress& opening;
  StoreId store;
  uint32_t layout = 1;
  Incarnation incarnation;
  uint32_t shard_count = 1;   // That are open beside each other.
  bool is_resharded = false;  // Others take over: what the log holds goes to tables as it is opened (F67).
  std::function<ObjectId()> next_object;  // Thread-safe; never the same twice (F41).
  ZoneExtractor zones;
  // An active memtable is frozen at this size in memory, or with so many bytes of keys and values.
  size_t memtable_bytes = 0;
  size_t memtable_data_bytes = SIZE_MAX;
  uint64_t table_file_bytes = 32u << 20;  // Size at which flushes and compactions cut files.
  uint64_t entry_bytes_min = 0;           // See JobContext.
  uint64_t merged_per_second = kMergedPerSecond;
  uint64_t log_segment_bytes = 64u << 20;
  uint64_t log_tail_bytes = 8u << 20;
  uint64_t io_deadline_ns = 0;  // See StoreOptions.
  bool caches_flushes = true;   // See StoreOptions.
  bool read_only = false;       // Nothing on disk is changed; no background work starts (F64).
  EngineDefect planted = EngineDefect::kNone;
  LogDefect planted_log = LogDefect::kNone;
};

// One core's share of the store: the road of a write (resolve, decide, log, publish), reads through
// the published view, and the flushes and compactions of its ranges.
//
// Owned by the Store; lifecycle Open, use from any thread, Close. Parts, each with its own file:
// strand_ (who decides), commit_log_ (log and publish), views_ (what readers see), clock_
// (versions), manifest_store_ (what is on disk), pacer_ (how much writers are slowed). Fields under
// "strand" are touched only by requests that run on it.
class Shard {
 public:
  struct Recovered {
    LogRecovery log;
    uint64_t records_skipped = 0;  // Of dropped tables.
  };

  struct Opened {
    Result<std::unique_ptr<Shard>> shard;
    // Of a shard that does not open, too, once its log was recovered: its end may be cut by then (log_end.h).
    // Where that failed on its way nothing is said, though a cut may be on the disk.
    Recovered recovered;
  };

  // Loads the manifest, opens its tables, replays the log (F28 to F38). With `fresh` there must be
  // neither manifest nor log yet, and both are made. Ranges: those of the catalog that it owns.
  static Task<Opened> Open(ShardContext context, ShardId id, const Catalog& catalog, bool fresh);
  ~Shard();

  // Starts the flushes and compactions that are due. Only once every shard is open: until then it is
  // not known which files are shared, and one that all open shards let go would be removed (F37).
  void StartBackground();

  // ---- The road of a write. kMoved when the range is not (or no longer) here.
  Task<WriteOutcome> Write(const WriteRequest& request);

  // ---- Reads.
  enum class ReadState : uint8_t {
    kFound,
    kAbsent,
    kNeedsIo,  // Only TryGet: ask Get.
    kMoved,
    kInDoubt,  // F15.
  };
  struct ReadAnswer {
    ReadState state = ReadState::kAbsent;
    Version version;
  };
  // What memory alone can answer; never waits, allocates nothing when *content is large enough,
  // which then holds the entity's content.
  ReadAnswer TryGet(std::string_view user_key, std::string* content);
  Task<Result<ReadAnswer>> Get(std::string_view user_key, std::string* content);

  // kMoved as above; kUnknown in doubt; kCorruption at a damaged range: never a shorter list (F43).
  // A null sink counts only. Both arguments must outlive the call.
  Task<Result<ScanAnswer>> Scan(const ScanRequest& request, RowSink* sink);

  // Of the range that holds `lower`, how many entries tables have in [lower, upper), about; 0 when none is
  // here. Any thread.
  uint64_t EntriesWithin(std::string_view lower, std::string_view upper);

  // ---- Structure (shard_ranges.cc).
  // Adds ranges of a new table; ends when every reader and writer that starts now sees them. Its
  // versions will be above `above`.
  Task<void> AddRanges(std::vector<RangeDescriptor> ranges, Version above);
  // Lets go of a dropped table's ranges; afterwards no write of it can be decided here (DESIGN 2).
  Task<void> DropTable(TableId table);
  // Cuts or joins ranges: in place of those that it has between the bounds of `ranges`, which are all its own
  // and leave no gap, it has these. No data is touched. `structure` is held.
  Task<void> ReshapeRanges(std::vector<RangeDescriptor> ranges, AsyncMutex::Guard structure);
  // While it is held the files of the ranges stay as they are. An error, soon, where a change of them cannot
  // be saved just now.
  Task<Result<AsyncMutex::Guard>> LockStructure();

  // A move, step by step; store_ranges.cc has the course of it. A range is named by its lower bound.
  //
  // New owner, first: flushes all that its log holds of keys it does not own now. Replay may begin at the
  // position that it answers; what it may have had of the range in an earlier time lies in front.
  Task<Result<LogPosition>> PrepareToTake();
  // Old owner: flushes until the memtables hold at most `enough` of the range, or gives up once that is of
  // little use any more: then what is left is more.
  Task<Status> FlushRange(std::string lower, uint64_t enough);
  // What memtables hold of the range; no more is counted than it takes to be above `enough`. Here and above:
  // bytes of keys and values, and 256 for each entry, as a small one takes its time too.
  Task<uint64_t> UnflushedOfRange(std::string lower, uint64_t enough);
  // What the new owner takes over.
  struct HandOver {
    uint64_t attempt = 0;
    std::shared_ptr<const LevelSet> levels;  // The range's tables.
    std::vector<ObjectId> pinned;            // They have one reference in ShardContext::references more.
    AsyncMutex::Guard structure;             // While it is held, what is in no table is in the memtables.
    // Waiting writes are woken when it is set; by who moves the range.
    std::shared_ptr<Event> fence_end;
    // From the fence on:
    uint64_t fenced_ns = 0;   // Since then writes wait; by the runtime's clock.
    Version last;             // No version of it is above.
    ViewPin view;             // Keeps what `rest` points to.
    std::vector<Entry> rest;  // The newest entry of each key that memtables hold, tombstones too; sorted.
    uint64_t rest_bytes = 0;  // Of their keys and values.
    Version rest_last;        // The highest of their versions.
  };
  // Old owner: the range's tables. They stay until DropHandOver.
  Task<Result<HandOver>> PinRange(std::string lower, uint64_t attempt);
  // Old owner: from here on writes of the range wait, until it is released or the fence lifted. What they
  // were until now is the rest.
  Task<void> FenceRange(std::string lower, HandOver* range);
  // Old owner: ends when its log is flushed as far as the rest goes.
  Task<Status> FlushLogOfRest(const HandOver& range);
  Task<void> DropHandOver(HandOver range);
  Task<void> LiftFence(std::string lower);
  // New owner: has its manifest name the tables, in force if the catalog ever names the attempt as the one
  // that brought the range here; and where replay begins, as PrepareToTake answered.
  Task<Status> PrepareRange(const HandOver& range, LogPosition replay_from, AsyncMutex::Guard structure);
  // New owner: has its log hold the rest, durably and under the same condition, and its memtable, where
  // nobody looks for it yet; its versions go on above. Until SettleTaken or ForgetPrepared no memtable with
  // some of it is flushed.
  Task<Status> ImportRest(const HandOver& range);
  // The attempt will not be made. Forgotten behind the caller's back.
  void ForgetPrepared(uint64_t attempt);
  // Old owner, once the catalog names the new one.
  Task<void> ReleaseRange(std::string lower);
  // New owner, then: the range is read and written here.
  Task<void> TakeRange(RangeDescriptor range, std::shared_ptr<const LevelSet> levels);
  // New and old owner, once writes are routed anew: what need not be done while they wait.
  void SettleTaken();
  void SettleReleased() { ScheduleCleanUp(); }

  // ---- Maintenance.
  Task<Status> FlushLog() { return commit_log_->FlushAll(); }
  // On a full disk: has memtables flushed and what deletes free compacted, behind the caller's back.
  void FreeSpace();
  // Freezes the active memtable and ends when everything is in table files. After a failed attempt
  // it answers why; the attempts go on behind it, also behind kDeadlineExceeded, when nothing came of them
  // for so long (F26).
  Task<Status> FlushMemtables();
  // Compacts until nothing is due, or an attempt of its own failed, or a flush or a save of the manifest
  // beside it. What another's compaction found damaged is set aside and not due (F46).
  // By a thread of class `by`, which goes when `leave` (may be null) is true, after the job at hand.
  Task<Status> CompactAll(BackgroundClass by, const std::atomic<bool>* leave);
  // Writes do not wait any more for what is behind, as the store is about to close.
  void StopPacing() { pacer_.Stop(); }
  // Flushes the log, seals it, stops all jobs. Nothing else may run (F7), but for changes of ranges after
  // BeginClose: from there on what cannot be saved is not tried again, so that nobody waits for it.
  void BeginClose() {
    closing_.store(true);
    idle_gives_way_.store(true);
    StopPacing();
  }
  Task<Status> Close();

  // Of files those that are not in `counted` yet, as shards share them; puts them in.
  ShardStatistics Statistics(std::set<ObjectId>* counted);
  // The sizes of the tables' files, of each as often as ranges refer to it.
  void AddFileBytes(std::vector<std::pair<ObjectId, uint64_t>>* files);
  // The level sets of this moment, as a manifest without log; each file has a reference in
  // ShardContext::references more, which the caller drops. What hinders a change of files from being saved is
  // its error.
  Task<Result<Manifest>> PinFiles();
  // Every virtual reference, with its level.
  std::vector<FileMeta> Files();
  BackgroundMeter& background() { return background_; }
  std::vector<FileRef> FileRefs();
  Status CheckInvariants();
  // Every version decided so far is at or below it. By the shard's clock, which adopts no jump of the wall
  // clock (F65). Any thread.
  Version version_now() const { return std::max(commit_log_->last_version(), Version(clock_->NowTicks())); }
  // No version above it was ever exposed. After Close.
  Version version_ceiling() const { return std::max(log_->durable_ceiling(), clock_->last()); }
  ShardId id() const { return id_; }

 private:
  struct DecideRequest;
  using ViewChange = std::function<void(ReadView*)>;

  Shard(ShardContext context, ShardId id);

  // Segments that a log may have beyond what its records need: before a recovery lets go of them, or before
  // what they hold is flushed for their sake.
  static constexpr uint64_t kIdleSegmentsMax = 4;

  // shard_recovery.cc
  Task<Status> Recover(const Catalog& catalog, bool fresh);
  Task<Result<std::unique_ptr<ReadView>>> LoadView(const Catalog& catalog, const Manifest& manifest);
  Task<Status> ReplayLog(const Catalog& catalog, const Manifest& manifest, ReadView* view,
                         OpeningProgress::Part* replayed);
  Status ReplayRecord(const LogRecord& record, const Catalog& catalog, ReadView* view);
  Task<Status> SpillReplay(Manifest* manifest, ReadView* view, LogPosition last);
  Task<Status> EmptyLog(Manifest* manifest, ReadView* view);

  // shard_write.cc
  // How long a write sleeps before it looks again; 0: it is its turn.
  uint64_t LookForTurn(const WriteRequest& request, Pacer::Turn* turn);
  Task<void> AwaitTurn(const WriteRequest& request, Pacer::Turn turn, uint64_t nanos);
  Task<Status> Resolve(WriteBatch* batch);
  // After a verdict that is none yet; an error: it waits no longer.
  struct WriteWaits {
    uint64_t for_room_ns = 0, for_move_ns = 0;
    int resolved_in_vain = 0;
  };
  Task<Status> PauseBeforeRetry(const WriteBatch& batch, WriteWaits* waits);
  bool MayFindRoom(const WriteBatch& batch);
  static bool MayFreeze(const ReadView& view);
  Task<void> AwaitFenceEnd(std::shared_ptr<Event> end, uint64_t* waited);
  BatchRoom RoomForBatch() const;
  void Decide(WriteBatch* batch);
  void Accept(WriteBatch* batch, const ReadView& view);
  bool IsFull(const Memtable& memtable) const;
  // Whether the log of the active memtable, which has taken so much memory, is as long as it may become.
  bool IsLogLong(uint64_t active_bytes) const;
  // What this shard may fill of the memtables' pool, of which its active memtable has taken so much: its
  // part, or what the others leave unused, but for room for a memtable each. Of one table's load only one
  // shard may have anything to do, and each doubling of its memtables saves merging.
  uint64_t MemtableShare(uint64_t active_bytes) const;
  // At which memory_used() an active memtable is frozen with such a share.
  uint64_t FreezeBytes(uint64_t share) const;
  // Ok, or what is told to a batch that may not be taken for want of space (F55).
  Status CheckSpace(const WriteRequest& request) const;
  // On the strand. The view before is there until Reclaim.
  void FreezeActive();
  // The same amid a write, which goes on: the view before goes a little later, behind its back.
  void FreezeForWrite();

  // shard_flush.cc
  void ScheduleFlush();
  static Task<void> FlushForSpace(Shard* self);
  static Task<void> FlushLoop(Shard* self);
  void ScheduleFlushBeside();
  static Task<void> FlushBeside(Shard* self);
  bool MayFlushBeside() const;
  Task<bool> FlushTaken(const MemtableRef& memtable);
  Task<void> RemoveWritten();
  // To level-0 tables, once the log is durable.
  Task<Result<std::vector<FileRef>>> WriteFrozen(const MemtableRef& memtable);
  // Whatever is written and next in age, one after the other.
  Task<Status> InstallFlushed();
  // What is logged from here on cannot be flushed yet.
  LogPosition FlushEnd() const { return LogPosition(import_from_.load()); }
  // Freezes what is there; the last position decided by then.
  Task<LogPosition> FreezeNow();
  // Until no memtable holds any position up to `last`; an error: an attempt failed meanwhile.
  Task<Status> AwaitFlushed(LogPosition last);
  // Writes a memtable to level-0 tables, without bounds.
  Task<Result<std::vector<FileRef>>> WriteMemtable(const Memtable& memtable, const ReadView& view);
  bool MayFlush(const ReadView& view) const;

  // shard_maintenance.cc
  // A failed flush or manifest save is tried again after 50 ms, doubling up to 2 s (F22, F56).
  static constexpr uint64_t kRetryNanosMin = 50'000'000, kRetryNanosMax = 2'000'000'000;
  static std::unique_ptr<ReadView> CopyView(const ReadView& view);
  // Runs `work` on the strand.
  Task<void> OnStrand(std::function<void()> work);
  // Publishes a changed copy of the view under a new structure counter.
  Task<void> ChangeStructure(ViewChange change);
  // JobContext::start_beside for jobs of that class.
  std::function<void(std::shared_ptr<Overlapped>)> Beside(BackgroundClass helpers);
  // One edit: saves the manifest, then publishes.
  struct Install {
    std::vector<FileRef> flushed_files;  // Each range gets what of them lies in it, on level 0.
    std::shared_ptr<Memtable> flushed;   // What they were written from; null where nothing was.
    LogPosition replay_from;             // 0: as it was.
    // Of a range, named by its lower bound. When it is not the same any more (another epoch), nothing comes
    // of it, and new files that no other has are removed.
    struct Compacted {
      std::string range_lower;
      RangeEpoch epoch;
      LevelEdit edit;
      bool new_files = true;  // Else it only moves some.
    };
    std::vector<Compacted> compacted;       // By key.
    std::optional<PreparedFiles> prepared;  // In place of what was prepared.
    uint64_t forgotten_attempt = 0;         // If that is what was prepared, nothing is any more.
    bool once = false;  // A manifest that cannot be saved is an error, and not saved again.
  };
  // `structure` may be held already.
  Task<Status> InstallEdit(Install install, AsyncMutex::Guard structure = {});
  // The level sets that the edit changes, by their range's lower bound.
  using ChangedLevels = std::map<std::string, std::shared_ptr<const LevelSet>>;
  static Result<ChangedLevels> ApplyInstall(const Install& install, ReadView* next);
  Task<Status> SaveManifest(const Manifest& manifest, bool once);
  // Objects that a manifest saved does not name any more, or never did.
  Task<void> RemoveObjects(std::vector<ObjectId> dropped, const Install& install);
  void ScheduleCompaction();
  // Any thread. A scan read so many bytes for the depth of level 0.
  void NoteSeeks(uint64_t bytes);
  std::atomic<bool>& CompactionScheduled(BackgroundClass by) {
    return by == BackgroundClass::kIdle ? idle_compaction_scheduled_ : ordinary_compaction_scheduled_;
  }
  static Task<void> CompactInBackground(Shard* self, BackgroundClass background);
  struct CompactionWork;
  void EndInBackground(std::shared_ptr<CompactionWork> work, Status done);
  static Task<void> InstallInBackground(Shard* self, std::shared_ptr<CompactionWork> work);
  static Task<void> FailInBackground(Shard* self, std::shared_ptr<CompactionWork> work, Status failed);
  // In bytes.
  static constexpr uint64_t kRoomUnknown = ~uint64_t{0};
  Task<uint64_t> RoomOnDisk();
  // What is due now, of what `room` there is on the disk; or, `calm`, what would be if nobody wrote.
  std::shared_ptr<CompactionWork> PickWork(uint64_t room, bool calm = false,
                                           BackgroundClass by = BackgroundClass::kOrdinary);
  uint64_t RoomForReason(PickReason reason, uint64_t room) const;
  std::optional<CompactionPlan> PickPlan(const RangeView& range, PickerOptions picker,
                                         const ForeignBytes& foreign);
  // What is due, unless another runs a compaction; then compaction_running_ is set until it is installed or
  // has failed. Of ordinary class it has one of idle class give way that gets no core; it may ask again soon.
  struct ClaimedWork {
    bool is_ours = false;                  // No other runs one.
    std::shared_ptr<CompactionWork> work;  // Null: nothing is due.
  };
  class ClaimForIdle;
  Task<ClaimedWork> ClaimWork(BackgroundClass by, bool calm = false);
  static Task<void> ClaimWorkInto(Shard* self, BackgroundClass by, bool calm, ClaimedWork* out, Waiter* done);
  void NoteIdleBegins();
  // The compaction that runs is of idle class, and gets next to no core.
  bool IdleStarves() const;
  BackgroundLoad CompactionLoad() const;
  static Task<void> LookAgain(Shard* self);
  void RetryCompaction(const Status& failed);
  void CompactIn(uint64_t nanos);
  static Task<void> CompactLater(Shard* self);
  // kCancelled: it was of idle class, and gave way; or the store is closing.
  Task<Status> RunWork(CompactionWork* work, BackgroundClass by);
  Task<Status> MergeFor(CompactionWork* work);
  Task<Status> InstallWork(CompactionWork* work);
  uint64_t FlushBytes() const { return std::min(context_.memtable_bytes, context_.memtable_data_bytes); }
  PickerOptions Picker(bool calm = false) const;
  using Reference = std::pair<ObjectId, std::string>;  // A file, and the lower bound of a slice of it.
  std::shared_ptr<const std::set<Reference>> SetAside();
  // `foreign`: null where nothing is asked that depends on it.
  LevelShape ShapeOfRange(const RangeView& range, const ForeignBytes* foreign = nullptr);
  JobContext MakeJobContext(const ReadView& view, ObjectStore& objects, BackgroundWork work);
  void NoteBackgroundError(const Status& status);
  // The same, of an attempt that whoever waits for its end must hear of.
  void NoteFailedAttempt(const Status& status);
  // Has the manifest say in the background that the log goes on in another segment, if it does.
  void RecordLogSegment();
  // What a write is told that finds no memory because flushes find no space (F54).
  Status OutOfSpace();
  // The same when they are slow, or fail for another reason (F58).
  Status FlushesBehind();
  // How the last attempt ended, for statistics: of the oldest memtable, up to `last`; of the manifest; of a
  // merge, which is ok where none is due.
  void NoteFlush(const Status& status, LogPosition last);
  void NoteSave(const Status& status);
  void NoteCompaction(const Status& status);
  // Ok as long as no attempt failed since there were `seen`.
  Status FailedSince(uint64_t seen);
  static std::vector<FileMeta> FilesOf(const ReadView& view);
  // Under structure_mutex_, or while nothing else runs.
  Manifest BuildManifest(const ReadView& view, LogPosition replay_from) const;
  // What the log's tail and the memtables' memory ask of a write as they come to their end.
  Pacer::Walls WallsAhead(DurabilityLevel level) const;
  // Has the log's next segment made in the background, so that no write waits for it (F57).
  void PrepareLogIfDue();
  static Task<void> PrepareLog(Shard* self);
  void WatchLogSurplus();
  static Task<void> ReturnLogSurplus(Shard* self);
  static Task<void> CleanUp(Shard* self);
  void ReclaimSoon();
  static Task<void> ReclaimLater(Shard* self);
  static Task<void> ReclaimViews(Shard* self);
  void ScheduleCleanUp();
  void SettleReshaped();
  static Task<void> SettleBehind(Shard* self);
  static Task<void> ForgetBehind(Shard* self, uint64_t attempt);
  struct ImportSlice;
  Task<Status> ImportNow(ImportSlice* slice);
  Status ImportOnStrand(ImportSlice* slice);  // kResourceExhausted: no memory.
  void EndImport();
  void UpdateDebt(const ReadView& view);
  void UpdateMemoryPressure(uint64_t active_bytes);

  ShardContext context_;
  const ShardId id_;
  std::unique_ptr<LogStore> log_;
  std::unique_ptr<CommitLog> commit_log_;
  ManifestStore manifest_store_;
  ReadViewPublisher views_{[this] { ReclaimSoon(); }};
  FlushQueue flushes_{views_, [this] { return FlushEnd(); }};
  Strand strand_;
  Pacer pacer_;
  BackgroundMeter background_{context_.runtime.clock()};
  // context_'s, as flushes and compactions use them.
  MeteredObjectStore flush_objects_{context_.objects, background_, BackgroundWork::kFlush};
  MeteredObjectStore compaction_objects_{context_.objects, background_, BackgroundWork::kCompaction};
  MeteredObjectStore unreserved_objects_{context_.unreserved_objects, background_,
                                         BackgroundWork::kCompaction};
  TaskGroup tasks_;

  // Strand.
  std::unique_ptr<HybridClock> clock_;
  uint64_t frozen_at_segment_ = 0;  // The log's newest segment when a memtable was frozen last.

  // Guarded by structure_mutex_: whoever changes what is on disk holds it from reading the view to
  // publishing the next one.
  AsyncMutex structure_mutex_;
  LogPosition replay_from_;
  PreparedFiles prepared_;            // Named by the manifest until the view has the range.
  bool clean_up_due_ = false;         // Recovery met files that no range here uses, though a manifest did.
  std::vector<ObjectId> referenced_;  // By the manifest on disk; sorted, each once.

  // Set by one thread at a time, read by any.
  std::atomic<bool> flush_running_{false}, flush_beside_running_{false};
  // Posted to helpers of the class, not begun: nobody may wait for it.
  std::atomic<bool> idle_compaction_scheduled_{false}, ordinary_compaction_scheduled_{false};
  std::atomic<bool> compaction_running_{false};
  std::atomic<uint32_t> compacting_all_{0};  // Calls of CompactAll: they go on with what is due next.
  // When the compaction of idle class that runs was claimed (0: none runs), and what all computed until then.
  std::atomic<uint64_t> idle_began_ns_{0}, idle_began_cpu_ns_{0};
  // By any thread: it shall end at its next slice, or file, with nothing done. Set by closing, too.
  std::atomic<bool> idle_gives_way_{false};
  std::atomic<bool> idle_is_for_seeks_{false};  // So it gives way to any that is of ordinary class.
  std::atomic<uint64_t> compactions_given_up_{0};
  static constexpr uint64_t kNever = ~uint64_t{0};
  std::atomic<uint64_t> compacts_at_ns_{kNever};  // When it is looked at again by itself.
  std::atomic<uint32_t> failed_in_turn_{0};       // Compactions, since the last that was installed.
  std::atomic<uint32_t> calm_looks_{0};           // Since the last flush (LookAgain).
  std::atomic<bool> reclaims_soon_{false}, cleans_up_soon_{false}, frees_space_soon_{false},
      settles_soon_{false};
  std::atomic<bool> prepare_running_{false};
  std::atomic<bool> surplus_watched_{false};
  std::atomic<uint64_t> prepare_after_ns_{0};  // Not before, since it failed.
  std::atomic<bool> closing_{false};
  // From here on the log holds what a move brings along that is not made yet; kNoImport: nothing.
  static constexpr uint64_t kNoImport = ~uint64_t{0};
  std::atomic<uint64_t> import_from_{kNoImport};
  std::atomic<uint64_t> log_segment_{0};      // What the manifest on disk says (F35).
  std::atomic<uint64_t> segment_asked_{0};    // What it was last asked to say.
  std::atomic<bool> out_of_space_{false};     // The last flush or manifest save met a full disk (F54).
  std::atomic<uint64_t> failed_attempts_{0};  // Of flushes, installs and manifest saves; each is retried.
  std::atomic<uint32_t> hold_installs_{0};    // Writers that resolved in vain twice.
  std::atomic<uint64_t> flushes_failed_{0}, compactions_failed_{0}, saves_failed_{0};
  std::atomic<uint64_t> writes_{0}, flushed_{0}, compactions_{0}, bytes_user_{0}, bytes_flushed_{0};
  std::atomic<uint64_t> bytes_compaction_read_{0}, bytes_compaction_written_{0}, debt_bytes_{0};
  std::atomic<uint64_t> frozen_bytes_{0};
  std::atomic<uint64_t> base_bytes_{0};  // Of the levels that level 0 is merged into, of all ranges.
  FlushRate flush_rate_;
  std::atomic<uint64_t> seek_bytes_{0};  // Of level 0, by scans.
  // Held by who stores what is behind in a view: debt_bytes_, base_bytes_, what the pacer asks for debt
  // (above 0 compactions run at ordinary priority), and range_bytes_.
  std::mutex debt_mutex_;
  uint64_t debt_as_of_ = 0;                    // That view's structure counter.
  ResidentBytes range_bytes_{context_.cache};  // Of its ranges and their references; of ranges added since.
  std::mutex set_aside_mutex_;
  // Inputs that could not be read: not compacted again (F46), but once where their range was cut or joined
  // since.
  std::shared_ptr<const std::set<Reference>> set_aside_ = std::make_shared<const std::set<Reference>>();
  Status last_background_error_;                        // Guarded by set_aside_mutex_.
  Status flush_error_, save_error_, compaction_error_;  // The same, and flush_noted_.
  LogPosition flush_noted_;
  Version version_floor_;  // What recovery found to be exposed at most; later versions are above.
  // During recovery.
  Version replayed_version_;
  uint64_t replayed_frozen_bytes_ = 0;  // Reserved by the frozen memtables.
  bool replay_needs_memory_ = false;    // The memtables are full, not the machine.
  Recovered recovered_;
  RowlessSweep rowless_{{context_.runtime, id_, views_, strand_, commit_log_, context_.read_ahead, tasks_,
                         closing_, context_.read_only}};
};

}  // namespace partita

#include <algorithm>
#include <bit>

#include "engine/backup.h"
#include "engine/base/given_version.h"
#include "engine/base/user_key.h"
#include "engine/log_end.h"
#include "engine/store.h"

// Opening a store:
//
//  1. Lock the directory (F64). Find the catalog, or create it when that was asked for and nothing
//     else is there (F69).
//  2. Raise the incarnation durably: logs and objects of this life have names and seals of their own
//     (F17, F30).
//  3. When another number of shards is asked for: open those there were, no more of them at once than there
//     will be, as the memory is divided for so many; each writes what it replays to tables and is closed
//     again. Write manifests for the new layout, and commit the change with one swap of the catalog (F67).
//     A crash before the swap leaves the old layout whole, one after it the new.
//  4. Open all shards in parallel: each loads its manifest, opens its tables, replays its log.
//  5. Remove what no manifest names (F37).
//  6. Take the reserve of space (F55). What an earlier life left of it 1 to 5 may use up.
//
// A degraded open (F39) goes on without the shards that 4 refuses, and leaves out 3 and 5.

namespace partita {

namespace {

// Tables are this large, so that the bottom of a store of 1 TiB is some 30,000 files.
constexpr uint64_t kTableFileBytes = 32u << 20;

// Of the memory for requests and pages under way: what scans read ahead at most, all of them together, and
// the rows that other shards have found for them.
constexpr size_t kReadAheadShare = 2;
constexpr size_t kScanAheadShare = 4;
constexpr size_t kReadAheadBytesMax = size_t{64} << 20;
// Of the memory for compactions what merges read ahead, in the idle class, of which nearly all are, and in
// the ordinary; the rest is for what they write. Each of some fifty files of level 0 wants two pieces of 256
// KiB; where there is no memory for the one ahead, the merge itself waits for its reads.
constexpr size_t kIdleReadsShare = 2, kOrdinaryReadsShare = 4;

// A log's files go by the memtables whose writes they hold, so that a flush lets go of as many as a log may
// have to spare. Larger ones take the disk many times what a store of little memory has to keep, and recovery
// the time to read the newest to its end (F31); of smaller ones each end costs a writer two flushes.
constexpr uint64_t kLogSegmentMin = 8u << 20;
constexpr uint64_t kLogSegmentMax = 64u << 20;

// How many layouts back logs are looked for that no manifest tells of: each is a few names to ask for.
constexpr uint32_t kLayoutsSwept = 8;

uint64_t LogSegmentBytes(uint64_t memtable_freeze_bytes) {
  return std::clamp(std::bit_floor(memtable_freeze_bytes), kLogSegmentMin, kLogSegmentMax);
}

// A flush makes one file, or at least two: a file a little smaller than a flush would leave a rest of each
// flush in a file of its own, and level 0 would stack in no columns. Simulated random overwrites (data of 280
// flushes, compaction/picker.h) write 9.0 times with files of 2 or of 1/2 flushes, and 17.2 times with 4/5.
uint64_t TableFileBytes(uint64_t flush_bytes) {
  return flush_bytes <= kTableFileBytes ? kTableFileBytes : std::min(kTableFileBytes, flush_bytes / 2);
}

// A table takes so many bytes of memory a key until it is written: the key's hash, in a vector that grows,
// and what builds the filter (fuse_filter.h).
constexpr uint64_t kTableMemoryAKey = 48;

// So that what a table takes for its keys is what compactions have for a shard: 190,000 keys where that is 8
// MiB, 1.4 million where it is 64.
uint64_t EntryBytesMin(const MemoryPlan& plan, const StoreOptions& options) {
  return options.table_file_bytes * kTableMemoryAKey * options.shards / plan.compaction_bytes;
}

Status NoStoreHere() {
  return Status::NotFound("there is no store in this directory; to create one, say so (create_if_missing)");
}

Status CatalogMissing() {
  return Status::Corruption(
      "meta/catalog is missing beside other files of a Partita store (F69); restore it, or move the "
      "directory away");
}

// What has a name that only a store gives. `others`: what is in the root and no file.
Task<Result<bool>> HoldsStoreFiles(FileSystem& files, std::vector<std::string> others) {
  for (const std::string& other : others) {
    const bool is_log = ParseLogDirectory(other).has_value();
    if (!is_log && other != kMetaDirectory && other != kObjectDirectory) continue;
    const Result<std::vector<DirectoryEntry>> entries = co_await files.List(other);
    if (!entries.ok() && entries.code() != Code::kNotFound) co_return entries.status();
    for (const DirectoryEntry& entry : entries.ok() ? *entries : std::vector<DirectoryEntry>()) {
      // Of a log of an earlier layout the directory stays, without a file.
      if (is_log || ParseManifestKey(entry.name) || ParseObjectName(entry.name)) co_return true;
    }
  }
  co_return false;
}

}  // namespace

Task<Result<std::unique_ptr<Store>>> Store::Open(Runtime& runtime, StoreOptions options) {
  std::unique_ptr<Store> store(new Store(runtime, std::move(options)));
  Status opened = co_await store->OpenAll();
  store->opening_.End();
  if (opened.ok()) co_return store;
  for (auto& shard : store->shards_) {
    if (shard == nullptr) continue;
    Status closed = co_await shard->Close();
    (void)closed;  // The reason for not opening is the one to tell.
  }
  co_await store->JoinReads();
  store->sound_shards_.clear();
  store->shards_.clear();
  co_await store->reserve_.Close();
  for (const std::string& torn : store->report_.torn_logs) opened = opened.WithContext(torn);
  for (const std::string& stranded : store->report_.stranded_logs) opened = opened.WithContext(stranded);
  co_return opened;
}

Status Store::DeriveSizes() {
  PARTITA_ASSIGN(MemoryPlan plan,
                 DeriveMemoryPlan(options_.memory_bytes, options_.shards, options_.host_memory_bytes));
  memory_plan_ = plan;
  memtable_pool_ = std::make_unique<ChunkPool>(plan.memtable_bytes, [this] { WakeLender(); });
  catalog_bytes_.reset();
  cache_ = std::make_unique<BlockCache>(plan.cache_bytes, plan.cache_bytes + MemoryLender::LentMax(plan));
  waits_ = std::make_unique<TimedWaits>(runtime_.shard_executor(ShardId(0)), options_.io_deadline_ns);
  cache_->set_waits(waits_.get());
  memory_lender_ = std::make_unique<MemoryLender>(plan, memtable_pool_.get(), cache_.get());
  catalog_bytes_ = std::make_unique<ResidentBytes>(*cache_);
  flush_lanes_ = std::make_unique<FlushLanes>(options_.shards);
  const size_t read_ahead_bytes = std::min(plan.request_bytes / kReadAheadShare, kReadAheadBytesMax);
  const size_t scan_ahead_bytes = std::min(plan.request_bytes / kScanAheadShare, kReadAheadBytesMax);
  scans_ahead_.free.store(static_cast<int>(std::max<size_t>(scan_ahead_bytes / ScanAhead::kBytesMax, 1)));
  read_ahead_ =
      std::make_unique<ReadAheadPool>(runtime_.background(BackgroundClass::kInput), read_ahead_bytes);
  for (const auto& [reads, share] :
       {std::pair{&job_reads_, kOrdinaryReadsShare}, {&idle_job_reads_, kIdleReadsShare}}) {
    *reads = std::make_unique<ReadAheadPool>(runtime_.background(BackgroundClass::kTransfer),
                                             plan.compaction_bytes / share);
  }
  if (options_.table_file_bytes == 0) options_.table_file_bytes = TableFileBytes(plan.memtable_freeze_bytes);
  if (options_.log_segment_bytes == 0)
    options_.log_segment_bytes = LogSegmentBytes(plan.memtable_freeze_bytes);
  if (options_.log_tail_bytes == 0) options_.log_tail_bytes = 8u << 20;
  if (options_.reserve_bytes == 0) {
    const ReservePlan reserve{plan.memtable_bytes, options_.log_segment_bytes, options_.shards};
    options_.reserve_bytes = reserve.bytes();
  }
  return Status();
}

ShardContext Store::MakeShardContext() {
  ShardContext context{.runtime = runtime_,
                       .objects = *objects_,
                       .unreserved_objects = *unreserved_objects_,
                       .meta = *meta_,
                       .cache = *cache_,
                       .read_ahead = *read_ahead_,
                       .job_reads = *job_reads_,
                       .idle_job_reads = *idle_job_reads_,
                       .memtable_pool = *memtable_pool_,
                       .references = references_,
                       .reserve = reserve_,
                       .load = load_,
                       .flush_lanes = *flush_lanes_,
                       .opening = opening_,
                       .store = catalog_.store,
                       .layout = catalog_.layout,
                       .incarnation = Incarnation(catalog_.incarnation),
                       .shard_count = std::min(catalog_.shard_count, options_.shards),
                       .is_resharded = catalog_.shard_count != options_.shards,
                       .next_object = nullptr,
                       .zones = options_.zones,
                       .memtable_bytes = memory_plan_.memtable_freeze_bytes,
                       .memtable_data_bytes = options_.memtable_data_bytes,
                       .table_file_bytes = options_.table_file_bytes,
                       .entry_bytes_min = EntryBytesMin(memory_plan_, options_),
                       .merged_per_second = options_.merged_per_second,
                       .log_segment_bytes = options_.log_segment_bytes,
                       .log_tail_bytes = options_.log_tail_bytes,
                       .io_deadline_ns = options_.io_deadline_ns,
                       .caches_flushes = options_.caches_flushes,
                       .read_only = options_.read_only,
                       .planted = options_.planted,
                       .planted_log = options_.planted_log};
  // The incarnation is durable and rises with each open, so no id is given twice (F41). An open has 2^32 of
  // them, enough for years; then the process stops before one is given again (F27).
  context.next_object = [this, incarnation = uint64_t{catalog_.incarnation}] {
    const uint64_t number = next_object_.fetch_add(1);
    PARTITA_ASSERT(number <= UINT32_MAX);
    return ObjectId(incarnation << 32 | number);
  };
  return context;
}

// The same road as far as it changes nothing: the incarnation is raised in memory, nothing is removed.
Task<Status> Store::OpenForReading() {
  auto locked = co_await runtime_.files().Lock(options_.lock_wait_ns);
  if (locked.code() == Code::kNotFound) {
    // No lock and no store: the latter is what to tell.
    PARTITA_CO_ASSIGN(std::optional<StoreId> id, co_await ReadStoreId(runtime_.files()));
    if (!id.has_value()) co_return Status::NotFound("there is no store in this directory");
  }
  PARTITA_CO_ASSIGN(lock_, std::move(locked));
  PARTITA_CO_TRY(co_await FindOrCreateCatalog());
  options_.shards = catalog_.shard_count;
  PARTITA_CO_TRY(DeriveSizes());
  ++catalog_.incarnation;
  report_.shards_before = catalog_.shard_count;
  PARTITA_CO_TRY(co_await OpenAllShards());
  PublishCatalog();
  report_.direct_io_refused = runtime_.files().direct_io_refused();
  opened_ = true;
  opened_ns_ = runtime_.clock().RecentNanos();
  co_return Status();
}

Task<Status> Store::OpenAll() {
  if (options_.read_only) co_return co_await OpenForReading();
  if (options_.shards == 0) co_return Status::InvalidArgument("shards must be at least 1");
  PARTITA_CO_TRY(DeriveSizes());
  PARTITA_CO_ASSIGN(lock_, co_await runtime_.files().Lock(options_.lock_wait_ns));
  co_await reserve_.Adopt();
  PARTITA_CO_TRY(co_await FindOrCreateCatalog());
  if (options_.open_degraded && options_.shards != catalog_.shard_count) {
    options_.shards = catalog_.shard_count;
    PARTITA_CO_TRY(DeriveSizes());
  }

  PARTITA_CO_TRY(co_await RefuseManifests());
  Catalog next = catalog_;
  ++next.incarnation;
  PARTITA_CO_TRY(co_await SaveCatalog(std::move(next)));

  report_.shards_before = catalog_.shard_count;
  if (catalog_.shard_count != options_.shards) PARTITA_CO_TRY(co_await Reshard());
  PARTITA_CO_TRY(co_await OpenAllShards());
  if (catalog_.is_forming()) {
    Catalog formed = catalog_;
    formed.formed_layout = formed.layout;
    PARTITA_CO_TRY(co_await SaveCatalog(std::move(formed)));
  }
  if (!degraded()) {
    // They take room and no more: what cannot be removed is tried again by the next opening.
    Status removed = co_await RemoveOldLayouts();
    if (removed.ok()) removed = co_await RemoveLeftovers();
    report_.leftovers_kept = removed.message();
  }
  reserve_.WhileLow([this] {
    for (Shard* shard : sound_shards_) shard->FreeSpace();
  });
  co_await reserve_.Take(options_.reserve_bytes);
  PublishCatalog();
  report_.direct_io_refused = runtime_.files().direct_io_refused();
  opened_ = true;
  opened_ns_ = runtime_.clock().RecentNanos();
  co_return Status();
}

Task<Status> Store::SaveCatalog(Catalog next) {
  const std::string bytes = EncodeCatalog(next);
  Result<uint64_t> saved = co_await meta_->CompareAndSwap(kCatalogKey, catalog_generation_, bytes);
  if (saved.code() == Code::kUnknown || saved.code() == Code::kPreconditionFailed) {
    // In doubt: what a read finds now is settled and durable, and decides (F15).
    Result<std::optional<MetaValue>> read = co_await meta_->Get(kCatalogKey);
    if (!read.ok()) co_return Status::Unknown("the catalog change is in doubt: " + read.status().ToString());
    std::optional<MetaValue> found = std::move(read).value();
    if (!found.has_value() && catalog_generation_ == 0) co_return saved.status();  // Was to be the first.
    if (!found.has_value()) co_return Status::Corruption("meta/catalog vanished");
    catalog_generation_ = found->generation;
    if (found->bytes != bytes) co_return saved.status();
  } else if (!saved.ok()) {
    co_return saved.status();
  } else {
    catalog_generation_ = *saved;
  }
  catalog_ = std::move(next);
  co_return Status();
}

Task<Status> Store::CheckEmptyDirectory(FileSystem& files) {
  PARTITA_CO_ASSIGN(const std::vector<std::string> others, co_await files.ListOthers());
  // Whatever else is there, such as what a repair has kept.
  PARTITA_CO_ASSIGN(const bool has_store_files, co_await HoldsStoreFiles(files, others));
  if (has_store_files) co_return CatalogMissing();
  PARTITA_CO_ASSIGN(std::vector<DirectoryEntry> entries, co_await files.List(""));
  bool has_more = false;
  for (const DirectoryEntry& entry : entries) {
    if (entry.name == "LOCK") continue;
    if (entry.name == kReserveName) {  // Made only once a catalog was durable.
      has_more = true;
      continue;
    }
    co_return Status::InvalidArgument("the directory is not a Partita store: it holds '" + entry.name +
                                      "' but no meta/catalog; name an empty or a new directory");
  }
  for (const std::string& other : others) {
    // What a creation that was interrupted leaves, and what a new file system has.
    const bool is_known = other == kMetaDirectory || other == kObjectDirectory ||
                          other.starts_with("log-1-") || other == "lost+found";
    if (is_known) continue;
    co_return Status::InvalidArgument("the directory is not empty: it holds '" + other +
                                      "'; name an empty or a new directory for a store");
  }
  bool has_log = false;
  PARTITA_CO_ASSIGN(has_log, co_await files.Exists(LogDirectory(1, ShardId(0))));
  bool has_meta = false;
  PARTITA_CO_ASSIGN(has_meta, co_await files.Exists(kMetaDirectory));
  if (has_meta) {
    PARTITA_CO_ASSIGN(std::vector<DirectoryEntry> meta, co_await files.List(kMetaDirectory));
    for (const DirectoryEntry& entry : meta) has_more = has_more || entry.name.starts_with("shard-");
  }
  bool has_tables = false;
  PARTITA_CO_ASSIGN(has_tables, co_await files.Exists(kObjectDirectory));
  if (has_tables) {
    PARTITA_CO_ASSIGN(std::vector<DirectoryEntry> tables, co_await files.List(kObjectDirectory));
    has_more = has_more || !tables.empty();
  }
  co_return has_log || has_more ? CatalogMissing() : Status();
}

Task<Status> Store::CheckPlace(FileSystem& files, bool create_if_missing) {
  PARTITA_CO_ASSIGN(const bool has_lock, co_await files.Exists("LOCK"));
  if (has_lock) co_return Status();  // Who holds it may be making a store.
  const Result<std::optional<StoreId>> id = co_await ReadStoreId(files);
  if (!id.ok() || id->has_value()) co_return Status();  // Of damage the opening tells.
  const Status empty = co_await CheckEmptyDirectory(files);
  if (empty.ok() && !create_if_missing) co_return NoStoreHere();
  co_return empty.code() == Code::kInvalidArgument ? empty : Status();
}

Task<Status> Store::OpenObjects(IfMissing if_missing) {
  Executor* const transfers = &runtime_.background(BackgroundClass::kTransfer);
  PARTITA_CO_ASSIGN(objects_,
                    co_await LocalObjectStore::Open(runtime_.files(), if_missing, transfers, &write_hold_));
  FileSystem& files = options_.read_only ? runtime_.files() : reserve_.files();
  PARTITA_CO_ASSIGN(unreserved_objects_,
                    co_await LocalObjectStore::Open(files, IfMissing::kFail, transfers, &write_hold_));
  co_return Status();
}

Task<Status> Store::FindOrCreateCatalog() {
  PARTITA_CO_TRY(co_await CheckIsNoBackup(runtime_.files(), /*writing=*/!options_.read_only));
  std::optional<StoreId> id;
  PARTITA_CO_ASSIGN(id, co_await ReadStoreId(runtime_.files(), &meta_reads_transient_));
  if (options_.read_only && options_.create_if_missing) {
    co_return Status::InvalidArgument("a store cannot be created by opening it for reading only");
  }
  if (!id.has_value()) {
    PARTITA_CO_TRY(co_await CheckEmptyDirectory(runtime_.files()));
    if (!options_.create_if_missing) co_return NoStoreHere();
  }
  IfMissing if_missing = id.has_value() ? IfMissing::kFail : IfMissing::kCreate;
  StoreId store = id.has_value() ? *id : StoreId(runtime_.RandomU64() | 1);
  PARTITA_CO_ASSIGN(
      meta_, co_await LocalMetaStore::Open(runtime_.files(), store, if_missing, &meta_reads_transient_));
  if (!id.has_value()) {
    // The subdirectories first: the catalog's existence says that they are there.
    PARTITA_CO_TRY(co_await OpenObjects(IfMissing::kCreate));
    Catalog catalog;
    catalog.store = store;
    catalog.shard_count = options_.shards;
    PARTITA_CO_TRY(co_await SaveCatalog(std::move(catalog)));
    report_.created = true;
    co_return Status();
  }
  Status objects = co_await OpenObjects(IfMissing::kFail);
  if (objects.code() == Code::kNotFound && options_.read_only) {
    co_return Status::Corruption(
        "the directory tables is missing beside the catalog (F35); see what 'partita repair' can keep");
  }
  // As an empty one: what manifests name in it is damaged, and said to be (F35, F39).
  if (objects.code() == Code::kNotFound) objects = co_await OpenObjects(IfMissing::kCreate);
  PARTITA_CO_TRY(objects);
  PARTITA_CO_ASSIGN(std::optional<MetaValue> value, co_await meta_->Get(kCatalogKey));
  if (!value.has_value()) co_return Status::Corruption("meta/catalog vanished while it was opened");
  Result<Catalog> catalog = DecodeCatalog(value->bytes);
  if (!catalog.ok()) co_return catalog.status().WithContext("meta/catalog");
  if (catalog->store != store) co_return Status::Corruption("meta/catalog: two store ids (F66)");
  catalog_ = std::move(catalog).value();
  catalog_generation_ = value->generation;
  co_return Status();
}

// Before anything is written (F66). Nor is an opening counted that a damaged manifest forbids: by the count a
// repair tells whether such a shard's log is whole.
Task<Status> Store::RefuseManifests() {
  for (uint32_t i = 0; i < catalog_.shard_count; ++i) {
    ManifestStore manifests(*meta_, catalog_.layout, ShardId(i));
    Result<Manifest> manifest = co_await manifests.Load();
    if (manifest.code() == Code::kUnsupported) co_return manifest.status();
    if (options_.open_degraded) continue;
    if (manifest.code() == Code::kCorruption) co_return manifest.status();
    if (manifest.code() == Code::kNotFound && !catalog_.is_forming())
      co_return ManifestMissing(catalog_.layout, ShardId(i));
  }
  co_return Status();
}

Task<void> Store::OpenOneShard(Store* store, ShardId id, Shard::Opened* out) {
  *out = co_await Shard::Open(store->MakeShardContext(), id, store->catalog_, store->catalog_.is_forming());
}

Task<Status> Store::OpenAllShards() {
  references_.Clear();
  shard_damages_.assign(catalog_.shard_count, Status());
  PARTITA_CO_TRY(co_await OpenShards(0, catalog_.shard_count));
  if (degraded()) {
    references_.KeepAll();
    co_await NoteVersionsOfDamaged();
  }
  for (Shard* shard : sound_shards_) shard->StartBackground();
  co_return Status();
}

Task<Status> Store::OpenShards(uint32_t first, uint32_t count) {
  std::vector<Shard::Opened> opened;
  for (uint32_t i = 0; i < count; ++i)
    opened.push_back({.shard = Status::Closed("not opened"), .recovered = {}});
  for (uint32_t i = 0; i < count; ++i) {
    Executor& worker = runtime_.shard_executor(ShardId(first + i));
    tasks_.Spawn(worker, OpenOneShard(this, ShardId(first + i), &opened[i]));
  }
  co_await tasks_.Join();
  Status refused;
  for (uint32_t i = 0; i < count; ++i) {
    Result<std::unique_ptr<Shard>>& shard = opened[i].shard;
    const LogRecovery& log = opened[i].recovered.log;
    NoteLogEnd(log, ShardId(first + i));  // Whether the shard opens or not.
    const bool damaged = shard.code() == Code::kCorruption || shard.code() == Code::kIoError;
    // Where a store is being made there is nothing to serve yet, nor to keep.
    if (damaged && options_.open_degraded && !catalog_.is_forming()) {
      NoteDamagedShard(shard.status());
      continue;
    }
    if (!shard.ok()) {
      if (refused.ok()) refused = shard.status();
      continue;
    }
    report_.records_replayed += log.records;
    const bool is_new_log = report_.created || report_.shards_before != catalog_.shard_count;
    report_.clean_shutdown = report_.clean_shutdown && (log.clean || is_new_log);
    shards_.push_back(std::move(shard).value());
    sound_shards_.push_back(shards_.back().get());
  }
  co_return refused;
}

// By those of their manifests that can be read.
Task<void> Store::NoteVersionsOfDamaged() {
  for (uint32_t i = 0; i < catalog_.shard_count; ++i) {
    if (shard_damages_[i].ok()) continue;
    ManifestStore manifests(*meta_, catalog_.layout, ShardId(i));
    const Result<Manifest> manifest = co_await manifests.Load();
    if (!manifest.ok()) continue;
    version_max_of_damaged_ = std::max(version_max_of_damaged_, manifest->version_ceiling);
    for (const FileMeta& file : manifest->files) {
      version_max_of_damaged_ = HigherGiven(version_max_of_damaged_, file.info->version_max);
    }
  }
}

void Store::NoteLogEnd(const LogRecovery& log, ShardId shard) {
  const std::string of = "shard " + std::to_string(shard.value) + ": ";
  const std::string torn = TornInWords(log), stranded = StrandedInWords(log);
  report_.torn_bytes += log.torn_bytes;
  report_.records_stranded += log.records_stranded;
  if (log.torn_bytes > 0 || log.records_stranded > 0) report_.clean_shutdown = false;
  if (!torn.empty()) report_.torn_logs.push_back(of + torn);
  if (!stranded.empty()) report_.stranded_logs.push_back(of + stranded);
}

// Its place in shards_ stays empty.
void Store::NoteDamagedShard(const Status& why) {
  shard_damages_[shards_.size()] =
      Status::Corruption(why.message() +
                         "; the store is open without this shard, 'partita repair' lists what "
                         "can be kept of it (F39)");
  report_.damaged_shards.push_back(why.ToString());
  shards_.push_back(nullptr);
}

// No background work is started: it could remove files that shards not opened yet share.
Task<Status> Store::Reshard() {
  std::vector<FileMeta> files;
  Version ceiling;
  for (uint32_t first = 0; first < catalog_.shard_count; first += options_.shards) {
    PARTITA_CO_TRY(co_await OpenShards(first, std::min(options_.shards, catalog_.shard_count - first)));
    Status closed;
    for (auto& shard : shards_) {
      Status one = co_await shard->Close();
      if (closed.ok()) closed = one;
      for (FileMeta& file : shard->Files()) files.push_back(std::move(file));
      ceiling = std::max(ceiling, shard->version_ceiling());
    }
    co_await JoinReads();
    sound_shards_.clear();
    shards_.clear();
    PARTITA_CO_TRY(closed);
  }

  Catalog next = catalog_;
  ++next.layout;
  next.formed_layout = next.layout;
  next.AssignRanges(options_.shards);
  for (uint32_t i = 0; i < options_.shards; ++i) {
    Manifest manifest;
    manifest.shard = ShardId(i);
    manifest.layout = next.layout;
    manifest.replay_from = LogPosition(0);  // Its log does not exist yet.
    // Above everything that any old shard exposed: ranges change hands (F17, F18).
    manifest.version_ceiling = ceiling;
    for (const FileMeta& file : files) {
      const RangeDescriptor* range = next.FindRange(file.lower);
      if (range != nullptr && range->owner.value == i) manifest.files.push_back(file);
    }
    ManifestStore store(*meta_, next.layout, ShardId(i), ManifestStore::Existing::kMayExist);
    PARTITA_CO_TRY(co_await store.Save(manifest));
  }
  co_return co_await SaveCatalog(std::move(next));  // The commit.
}

// Removes the files of a log that no shard has any more. False: there is no such log.
Task<Result<bool>> Store::RemoveLog(std::string directory) {
  PARTITA_CO_ASSIGN(const bool there, co_await runtime_.files().Exists(directory));
  if (!there) co_return false;
  PARTITA_CO_ASSIGN(const std::vector<DirectoryEntry> segments, co_await runtime_.files().List(directory));
  for (const DirectoryEntry& segment : segments) {
    PARTITA_CO_TRY(co_await runtime_.files().Remove(directory + "/" + segment.name));
  }
  co_return true;
}

// Of other layouts, and of shards beyond those of this one, which an attempt to make more of them left.
Task<Status> Store::RemoveOldLayouts() {
  PARTITA_CO_ASSIGN(std::vector<std::string> keys, co_await meta_->List());
  for (const std::string& key : keys) {
    const std::optional<ShardOfLayout> old = ParseManifestKey(key);
    const bool in_use = old && old->layout == catalog_.layout && old->shard.value < catalog_.shard_count;
    if (!old || in_use) continue;
    // Its log goes first: a manifest without a log would look like damage, were it ever read.
    PARTITA_CO_TRY((co_await RemoveLog(LogDirectory(old->layout, old->shard))).status());
    PARTITA_CO_TRY(co_await meta_->Remove(key));
  }
  // Logs without a manifest: it was lost, or its removal has outlived theirs. Older ones were looked at by
  // earlier openings.
  uint32_t layout = catalog_.layout - std::min(catalog_.layout - 1, kLayoutsSwept);
  for (; layout < catalog_.layout; ++layout) {
    for (uint32_t shard = 0; shard < kShardCountMax; ++shard) {
      PARTITA_CO_ASSIGN(const bool there, co_await RemoveLog(LogDirectory(layout, ShardId(shard))));
      if (!there) break;
    }
  }
  co_return Status();
}

Task<Status> Store::RemoveLeftovers() {
  PARTITA_CO_ASSIGN(std::vector<ObjectInfo> objects, co_await objects_->List());
  for (const ObjectInfo& object : objects) {
    // Objects of this incarnation are being written by jobs that recovery scheduled. Those of a higher one an
    // interrupted repair has left.
    if (object.id.value >> 32 == catalog_.incarnation || references_.Contains(object.id)) continue;
    PARTITA_CO_TRY(co_await objects_->Remove(object.id));
    ++report_.leftover_objects_removed;
  }
  co_return Status();
}

}  // namespace partita

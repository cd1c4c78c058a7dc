#include "engine/repair_survey.h"

#include <algorithm>

#include "engine/backup.h"
#include "engine/base/coding.h"
#include "engine/base/entity_record.h"
#include "engine/base/executor.h"
#include "engine/base/given_version.h"
#include "engine/base/site.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"
#include "engine/batch_record.h"
#include "engine/damage.h"
#include "engine/io/local_meta_store.h"
#include "wal/log_inspect.h"
#include "wal/segment_pool.h"

namespace partita {

namespace {

constexpr uint64_t kSurveyCacheBytes = 8u << 20;

// What is in a directory of tables that is missing.
class NoObjects final : public ObjectStore {
 public:
  Task<Result<std::unique_ptr<ObjectWriter>>> Create(ObjectId) override {
    co_return Status::Unsupported("nothing is written while damage is listed");
  }
  Task<Result<std::shared_ptr<ObjectReader>>> Open(ObjectId id) override {
    co_return Status::NotFound(ObjectPath(id) + ": the directory is missing");
  }
  Task<Status> Remove(ObjectId) override { co_return Status(); }
  Task<Result<std::vector<ObjectInfo>>> List() override { co_return std::vector<ObjectInfo>(); }
};

// Layouts whose logs are looked for by name; each change of the number of shards, and each repair, makes one.
constexpr uint32_t kLayoutsTried = 1u << 10;

// Of a layout that was left behind the directory stays, without a file.
Task<Result<bool>> HasLog(FileSystem& files, uint32_t layout, ShardId shard) {
  const Result<std::vector<DirectoryEntry>> log = co_await files.List(LogDirectory(layout, shard));
  if (!log.ok() && log.code() != Code::kNotFound) co_return log.status();
  co_return log.ok() && !log->empty();
}

// 0: there are no logs.
Task<Result<uint32_t>> NewestLayoutOfLogs(FileSystem& files) {
  for (uint32_t layout = kLayoutsTried; layout > 0; --layout) {
    PARTITA_CO_ASSIGN(const bool found, co_await HasLog(files, layout, ShardId(0)));
    if (found) co_return layout;
  }
  co_return 0;
}

}  // namespace

bool RepairFindings::any_manifest_lost() const {
  return std::any_of(shards.begin(), shards.end(), [](const Shard& shard) { return shard.manifest_lost; });
}

Task<Result<bool>> HoldsFilesOfAStore(FileSystem& files) {
  for (const char* directory : {kMetaDirectory, kObjectDirectory}) {
    const Result<std::vector<DirectoryEntry>> entries = co_await files.List(directory);
    if (!entries.ok() && entries.code() != Code::kNotFound) co_return entries.status();
    for (const DirectoryEntry& entry : entries.ok() ? *entries : std::vector<DirectoryEntry>()) {
      if (IsMetaKey(entry.name) || ParseObjectName(entry.name)) co_return true;
    }
  }
  PARTITA_CO_ASSIGN(const uint32_t layout, co_await NewestLayoutOfLogs(files));
  co_return layout > 0;
}

Task<Status> ReadWhatThereIs(const TableReader& table, SkippedSpanSink* skipped,
                             std::function<Status(const Entry&)> take,
                             std::function<Task<Status>()> between) {
  TableScan scan;
  scan.skipped = skipped;
  IterOptions options;
  options.caching = IterCaching::kBypass;
  options.scan = &scan;
  std::unique_ptr<TableIterator> it = table.NewIterator(Direction::kForward, std::move(options));
  uint64_t taken = 0;
  for (IterState state = it->SeekToFirst(); state != IterState::kEnd;) {
    if (state == IterState::kNeedsIo) {
      PARTITA_CO_TRY(co_await it->Fetch());
      state = it->state();
      continue;
    }
    const Entry& entry = it->entry();
    if (!SiteIsOn("repair.survey.value_check") || StoredValueIntact(entry)) {
      PARTITA_CO_TRY(take(entry));
    } else {
      const std::string key(entry.user_key);
      skipped->Skipped({key, key + '\0', entry.version,
                        Status::Corruption(table.name() + ": a stored value fails its checksum (F51)")});
    }
    if (between) PARTITA_CO_TRY(co_await between());
    if ((++taken & 255) == 0) co_await YieldIfDue();
    state = it->Next();
  }
  co_return Status();
}

RepairSurvey::RepairSurvey(const RepairWorld& world, FileSystem& files, const RepairOptions& options)
    : world_(world),
      files_(files),
      options_(options),
      pacer_(world.clock, options_.pace, 0),
      cache_(kSurveyCacheBytes) {}

Task<Status> RepairSurvey::Run() {
  PARTITA_CO_TRY(co_await CheckIsNoBackup(files_, options_.apply));
  PARTITA_CO_ASSIGN(found_.report.is_backup, co_await files_.Exists(MetaPath(kBackupKey)));
  PARTITA_CO_TRY(co_await FindCatalog());
  PARTITA_CO_TRY(co_await PassLayoutsOfLogs());
  PARTITA_CO_TRY(co_await OpenObjects());
  PARTITA_CO_TRY(co_await ListObjects());
  PARTITA_CO_TRY(co_await FindManifests());
  PARTITA_CO_TRY(co_await FindLogs());
  PARTITA_CO_TRY(co_await FindTables());
  if (found_.catalog_lost) RebuildCatalog();
  ListDamages();
  if (found_.report.is_backup && !found_.catalog_lost && !found_.any_manifest_lost()) {
    PARTITA_CO_TRY(co_await ListBackup());
  }
  co_return Status();
}

// Of a backup a restore asks more of its meta files than that each is sound.
Task<Status> RepairSurvey::ListBackup() {
  const Status checked = co_await CheckIsBackup(files_);
  if (checked.ok()) co_return Status();
  if (!IsDamage(checked)) co_return checked;
  found_.report.damages.push_back({.file = MetaPath(kBackupKey),
                                   .reason = checked.ToString(),
                                   .consequence = "the backup cannot be restored"});
  co_return Status();
}

// Whoever only lists makes no directory; then there is nothing in it.
Task<Status> RepairSurvey::OpenObjects() {
  Result<std::unique_ptr<LocalObjectStore>> found = co_await LocalObjectStore::Open(files_, IfMissing::kFail);
  objects_missing_ = found.code() == Code::kNotFound;
  if (objects_missing_ && !options_.apply) {
    objects_ = std::make_unique<NoObjects>();
    co_return Status();
  }
  if (objects_missing_) found = co_await LocalObjectStore::Open(files_, IfMissing::kCreate);
  PARTITA_CO_ASSIGN(objects_, std::move(found));
  co_return Status();
}

Task<Status> RepairSurvey::ListObjects() {
  PARTITA_CO_ASSIGN(const std::vector<ObjectInfo> objects, co_await objects_->List());
  for (const ObjectInfo& object : objects) {
    const uint32_t incarnation = static_cast<uint32_t>(object.id.value >> 32);
    // Left by a repair that was interrupted: nothing but what it was made of. Lives that only lie behind the
    // catalog are not so far above it: it was put back, and what they wrote is nowhere else.
    const bool of_repair =
        !found_.catalog_lost && incarnation >= uint64_t{found_.catalog.incarnation} + kLifeJumpMin;
    if (!of_repair) found_.objects.push_back(object);
    found_.incarnation_max = std::max(found_.incarnation_max, incarnation);
    found_.object_max = std::max(found_.object_max, object.id);
  }
  co_return Status();
}

// ---- 1. The catalog.

// What seems lost is read again (F52): for what is lost another takes its place.
Task<Result<MetaRecord>> RepairSurvey::ReadMeta(std::string key) {
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file,
                    co_await files_.Open(MetaPath(key), OpenMode::kRead, FileIo::kBuffered));
  if (SiteIsOn("repair.survey.flush")) PARTITA_CO_TRY(co_await file->Flush());  // F29.
  co_return co_await partita::ReadMeta(*file, key);
}

// Of a shard that was opened once. False where that cannot be read.
Task<Result<bool>> RepairSurvey::ExpectsLog(std::string manifest_key) {
  const Result<MetaRecord> record = co_await ReadMeta(manifest_key);
  const Result<Manifest> manifest =
      record.ok() ? DecodeManifest(record->value.bytes) : Result<Manifest>(record.status());
  if (!manifest.ok() && !IsDamage(manifest.status())) co_return manifest.status();
  co_return manifest.ok() && manifest->replay_from.value > 0;
}

Task<Status> RepairSurvey::FindCatalog() {
  const Result<std::vector<DirectoryEntry>> entries = co_await files_.List(kMetaDirectory);
  if (!entries.ok() && entries.code() != Code::kNotFound) co_return entries.status();
  for (const DirectoryEntry& entry : entries.ok() ? *entries : std::vector<DirectoryEntry>()) {
    if (!IsMetaKey(entry.name)) continue;
    meta_keys_.insert(entry.name);
    if (auto key = ParseManifestKey(entry.name)) found_.layout_max = std::max(found_.layout_max, key->layout);
  }
  Result<MetaRecord> record = co_await ReadMeta(kCatalogKey);
  Result<Catalog> catalog =
      record.ok() ? DecodeCatalog(record->value.bytes) : Result<Catalog>(record.status());
  if (catalog.ok() && catalog->store != record->store) {
    catalog = Status::Corruption(MetaPath(kCatalogKey) + ": two store ids (F66)");
  }
  if (catalog.ok()) {
    PARTITA_CO_ASSIGN(const bool anothers, co_await IsAnothers(record->store));
    if (anothers) catalog = Status::Corruption(MetaPath(kCatalogKey) + ": it belongs to another store (F66)");
  }
  if (!catalog.ok() && !IsDamage(catalog.status())) co_return catalog.status();
  if (catalog.ok()) {
    found_.store = record->store;
    found_.catalog_generation = record->value.generation;
    found_.catalog = std::move(catalog).value();
    found_.incarnation_max = found_.catalog.incarnation;
    found_.layout_max = std::max(found_.layout_max, found_.catalog.layout);
    for (const TablePtr& table : found_.catalog.tables) {
      found_.version_max = HigherGiven(found_.version_max, Version(table->created_ticks));
    }
    co_return Status();
  }
  catalog_damage_ = catalog.status();
  found_.catalog_lost = true;
  PARTITA_CO_TRY(co_await GuessLayout());
  co_return co_await FindStoreId();
}

// What is repaired gets a layout of which there are no logs.
Task<Status> RepairSurvey::PassLayoutsOfLogs() {
  while (true) {
    PARTITA_CO_ASSIGN(const bool exists,
                      co_await files_.Exists(LogDirectory(found_.layout_max + 1, ShardId(0))));
    if (!exists) co_return Status();
    ++found_.layout_max;
  }
}

// Where two layouts are, a change between them was interrupted, or what it left behind could not be removed.
// A layout gets logs once the catalog names it, and writes only then; as long as the newer one has none, and
// no manifest of it expects one, the older one is complete. Of that one there may be logs alone, while a
// repair of them that was killed has written some manifests of the newer.
Task<Status> RepairSurvey::GuessLayout() {
  Catalog& catalog = found_.catalog;
  catalog.layout = 0;
  for (const std::string& name : meta_keys_) {
    const auto key = ParseManifestKey(name);
    if (key && (catalog.layout == 0 || key->layout < catalog.layout)) catalog.layout = key->layout;
  }
  PARTITA_CO_ASSIGN(const uint32_t of_logs, co_await NewestLayoutOfLogs(files_));
  if (of_logs > 0) catalog.layout = of_logs;
  catalog.layout = std::max(catalog.layout, 1u);
  for (const std::string& name : meta_keys_) {  // Logs of shard 0 may be missing, or all.
    const auto key = ParseManifestKey(name);
    if (!key || key->layout <= catalog.layout) continue;
    PARTITA_CO_ASSIGN(const bool has_log, co_await HasLog(files_, key->layout, key->shard));
    PARTITA_CO_ASSIGN(const bool expects_log, co_await ExpectsLog(name));
    if (has_log || expects_log) catalog.layout = key->layout;
  }
  catalog.shard_count = 0;
  for (const std::string& name : meta_keys_) {
    const auto key = ParseManifestKey(name);
    if (key && key->layout == catalog.layout) {
      catalog.shard_count = std::max(catalog.shard_count, key->shard.value + 1);
    }
  }
  // Any of the logs may be missing.
  for (uint32_t index = catalog.shard_count; index < kShardCountMax; ++index) {
    PARTITA_CO_ASSIGN(const bool exists,
                      co_await files_.Exists(LogDirectory(catalog.layout, ShardId(index))));
    if (exists) catalog.shard_count = index + 1;
  }
  found_.layout_max = std::max(found_.layout_max, catalog.layout);
  if (catalog.shard_count > 0) co_return Status();
  co_return Status::Corruption("neither the catalog nor any manifest or log is left: restore a backup");
}

// Every value of the meta store, and every segment of a log, says whose it is. These: what can be read of the
// former, but for the catalog,
Task<std::vector<StoreId>> RepairSurvey::StoresOfMeta() {
  std::vector<StoreId> stores;
  for (const std::string& key : meta_keys_) {
    if (key == kCatalogKey) continue;
    const Result<MetaRecord> record = co_await ReadMeta(key);
    if (record.ok()) stores.push_back(record->store);
  }
  co_return stores;
}

// and of each log the first of the latter.
Task<std::vector<StoreId>> RepairSurvey::StoresOfLogs(uint32_t layout) {
  std::vector<StoreId> stores;
  for (uint32_t i = 0; i < kShardCountMax; ++i) {
    const std::string directory = LogDirectory(layout, ShardId(i));
    const Result<std::vector<DirectoryEntry>> entries = co_await files_.List(directory);
    if (!entries.ok()) continue;
    for (const DirectoryEntry& entry : *entries) {
      if (!SegmentPool::NumberOf(entry.name)) continue;
      const Result<InspectedSegment> segment =
          co_await InspectSegment(files_, directory + "/" + entry.name, nullptr);
      if (!segment.ok() || !segment->header_valid) continue;
      stores.push_back(segment->store);
      break;
    }
  }
  co_return stores;
}

// Whether this catalog was put in the place of the store's own: nothing else is of its store.
Task<Result<bool>> RepairSurvey::IsAnothers(StoreId store) {
  std::vector<StoreId> stores = co_await StoresOfMeta();
  if (stores.empty()) {
    PARTITA_CO_ASSIGN(const uint32_t layout, co_await NewestLayoutOfLogs(files_));
    if (layout > 0) stores = co_await StoresOfLogs(layout);
  }
  co_return !stores.empty() && std::find(stores.begin(), stores.end(), store) == stores.end();
}

Task<Status> RepairSurvey::FindStoreId() {
  std::vector<StoreId> stores = co_await StoresOfMeta();
  if (stores.empty()) stores = co_await StoresOfLogs(found_.catalog.layout);
  if (stores.empty()) {
    co_return Status::Corruption("nothing that can be read says which store this is: restore a backup");
  }
  found_.store = stores.front();
  co_return Status();
}

// ---- 2. Manifests.

Task<Status> RepairSurvey::FindManifests() {
  const Catalog& catalog = found_.catalog;
  const bool forming = !found_.catalog_lost && catalog.is_forming();
  for (uint32_t i = 0; i < catalog.shard_count; ++i) {
    const std::string key = ManifestKey(catalog.layout, ShardId(i));
    RepairFindings::Shard shard;
    shard.id = ShardId(i);
    Result<MetaRecord> record = co_await ReadMeta(key);
    Result<Manifest> manifest =
        record.ok() ? DecodeManifest(record->value.bytes) : Result<Manifest>(record.status());
    Status damage = manifest.status();
    if (manifest.ok() && (record->store != found_.store || manifest->shard != ShardId(i) ||
                          manifest->layout != catalog.layout)) {
      damage = Status::Corruption("it belongs to another store or shard (F66)");
    }
    if (!damage.ok() && !IsDamage(damage)) co_return damage;
    if (damage.ok()) {
      shard.manifest = std::move(manifest).value();
      found_.version_max = std::max(found_.version_max, shard.manifest.version_ceiling);
      for (const FileMeta& file : shard.manifest.files) {
        found_.version_max = HigherGiven(found_.version_max, file.info->version_max);
      }
    } else {
      const bool fresh = forming && damage.code() == Code::kNotFound;
      LoseManifest(&shard, fresh ? Status() : damage);
    }
    found_.shards.push_back(std::move(shard));
  }
  if (!found_.catalog_lost) {
    for (RepairFindings::Shard& shard : found_.shards) shard.manifest.KeepOwned(catalog);
  }
  for (RepairFindings::Shard& shard : found_.shards) shard.named = shard.manifest.files;
  if (found_.catalog_lost && !manifest_damages_.empty()) LoseManifests();
  co_return Status();
}

// Ok: there was none yet.
void RepairSurvey::LoseManifest(RepairFindings::Shard* shard, Status why) {
  shard->manifest = Manifest();
  shard->manifest.shard = shard->id;
  shard->manifest.layout = found_.catalog.layout;
  shard->manifest.replay_from = LogPosition(0);
  shard->named.clear();
  if (why.ok()) return;
  shard->manifest_lost = true;
  const std::string path = MetaPath(ManifestKey(found_.catalog.layout, shard->id));
  manifest_damages_[shard->id.value] = why.WithContext(path);
}

// Without the catalog nothing says which keys were a shard's: then all are found again alike. What is flushed
// of a log is in tables, whoever names them, so what it is read from stays.
void RepairSurvey::LoseManifests() {
  for (RepairFindings::Shard& shard : found_.shards) {
    shard.manifest_lost = true;
    shard.manifest.files.clear();
  }
}

// ---- 3. Logs.

LocalLogOptions RepairSurvey::LogOptionsOf(const RepairFindings::Shard& shard) const {
  LocalLogOptions options;
  options.store = found_.store;
  options.shard = shard.id;
  options.directory = LogDirectory(found_.catalog.layout, shard.id);
  options.must_exist = manifest_damages_.contains(shard.id.value) || shard.manifest.replay_from.value > 0;
  options.newest_segment = shard.manifest.log_segment;
  options.read_only = true;
  return options;
}

Task<Status> RepairSurvey::FindLogs() {
  // Of a single shard every key is its own.
  const bool doubted = found_.catalog_lost && !found_.any_manifest_lost() && found_.shards.size() > 1;
  RepairReach reach;
  if (doubted) {
    for (const RepairFindings::Shard& shard : found_.shards) reach.AddManifest(shard.manifest);
  }
  for (RepairFindings::Shard& shard : found_.shards) {
    PARTITA_CO_TRY(co_await ReadLog(&shard, doubted ? &reach : nullptr));
    if (!IsOlderThanItsLog(shard)) continue;
    LoseManifest(&shard, Status::Corruption("it is older than the log, which begins with segment " +
                                            std::to_string(shard.log.begins_behind.value) +
                                            ", while this had seen none behind " +
                                            std::to_string(shard.manifest.log_segment) +
                                            ": what it does not name would be lost (F34)"));
    PARTITA_CO_TRY(co_await ReadLog(&shard, nullptr));
  }
  if (doubted && reach.Contradicts()) LoseManifests();
  DoubtEnds();
  co_return Status();
}

// Segments in front were trimmed by newer manifests, and table files have what was in them. Where there is no
// file that is not named, it is these segments that are lost, and not a newer manifest.
bool RepairSurvey::IsOlderThanItsLog(const RepairFindings::Shard& shard) const {
  const uint64_t seen = shard.manifest.log_segment;
  if (found_.catalog_lost || seen == 0 || shard.log.begins_behind.value <= seen) return false;
  std::set<ObjectId> named;
  for (const RepairFindings::Shard& one : found_.shards) {
    for (const FileMeta& file : one.named) named.insert(file.info->id);
  }
  return std::any_of(found_.objects.begin(), found_.objects.end(),
                     [&named](const ObjectInfo& object) { return !named.contains(object.id); });
}

// To `reach`, which may be null, what the log holds behind the files.
Task<Status> RepairSurvey::ReadLog(RepairFindings::Shard* shard, RepairReach* reach) {
  Version last;
  shard->rotted.clear();
  LogReplaySink look = [&](const LogRecord& record) {
    PARTITA_ASSIGN(BatchRecordReader reader, BatchRecordReader::Open(record));
    if (reader.header().version <= last) {
      return Status::Corruption("log record " + std::to_string(record.position.value) +
                                " has a version that does not rise");
    }
    Entry entry;
    while (reader.Next(&entry)) {
      if (reach != nullptr) reach->AddLogged(shard->id, entry.user_key, entry.version);
      if (LogAlone(*shard) && reader.header().attempt == 0) NoteLogged(*shard, entry);
      if (!SiteIsOn("repair.log.value_check") || StoredValueIntact(entry)) {
        if (found_.catalog_lost) NoteTableOf(entry);
        continue;
      }
      const std::string key(entry.user_key);
      shard->rotted.push_back({key, key + '\0', entry.version,
                               Status::Corruption("log record " + std::to_string(record.position.value) +
                                                  ": a stored value fails its checksum (F51)")});
    }
    last = reader.header().version;
    return reader.status();
  };
  PARTITA_CO_ASSIGN(shard->log, co_await SalvageLog(files_, LogOptionsOf(*shard), shard->manifest.replay_from,
                                                    std::move(look)));
  if (shard->log.version_max > kVersionGivenMax) {
    shard->log.damages.push_back(LogDirectory(found_.catalog.layout, shard->id) +
                                 ": it says that a version was given that no clock gives");
    shard->log.version_max = shard->log.version_last;
  }
  found_.version_max = std::max({found_.version_max, shard->log.version_max, shard->log.version_last});
  found_.incarnation_max = std::max(found_.incarnation_max, shard->log.incarnation_max.value);
  found_.report.log_records += shard->log.records;
  if (shard->log.begins_midway.empty()) logged_.erase(shard->id.value);
  co_return co_await pacer_.Spend(0);
}

// ---- 4. Tables.

Task<Status> RepairSurvey::FindTables() {
  for (const RepairFindings::Shard& shard : found_.shards) {
    for (const FileMeta& file : shard.named) {
      const bool live =
          found_.catalog_lost || found_.catalog.FindRange(std::max(file.lower, file.info->smallest));
      if (!live) continue;  // Of a table that was dropped.
      RepairFindings::Table& table = found_.tables[file.info->id];
      table.id = file.info->id;
      table.named = true;
      table.info = file.info;
    }
  }
  for (const ObjectInfo& object : found_.objects) {
    if (found_.any_manifest_lost()) found_.tables[object.id].id = object.id;
    // NoteTablesIn reads each once more.
    if (found_.tables.contains(object.id)) pacer_.AlsoDue((found_.catalog_lost ? 2 : 1) * object.size);
  }
  for (auto& [id, table] : found_.tables) PARTITA_CO_TRY(co_await ReadTable(&table));
  co_return Status();
}

Task<Status> RepairSurvey::ReadTable(RepairFindings::Table* table) {
  PacedObjectStore paced(*objects_, pacer_);
  Result<std::shared_ptr<TableReader>> opened =
      co_await TableReader::Open(paced, cache_, found_.store, table->id);
  if (!opened.ok() && opened.code() == Code::kIoError)
    opened = co_await TableReader::Open(paced, cache_, found_.store, table->id);  // F52.
  PARTITA_CO_TRY(pacer_.CheckCancelled());
  if (opened.ok() && table->named) {
    const Status is_it = (*opened)->CheckIs(*table->info);
    table->replaced = !is_it.ok();
    if (table->replaced) opened = is_it;
  }
  if (!opened.ok() && !IsDamage(opened.status())) co_return opened.status();
  ++found_.report.tables;
  if (!opened.ok()) {
    table->damage = opened.status();
    if (table->damage.code() == Code::kNotFound) {
      table->damage = Status::Corruption(table->damage.message() + ", although the manifest names it (F35)");
    }
    co_return Status();
  }
  const TableReader& reader = **opened;
  found_.version_max = std::max(found_.version_max, reader.info().version_max);
  TableVerifyReport verified;
  table->damage = co_await reader.Verify(&verified);
  PARTITA_CO_TRY(pacer_.CheckCancelled());
  if (!table->damage.ok() && !IsDamage(table->damage)) co_return table->damage;
  table->entries = verified.entries;
  if (!table->damage.ok()) {
    SpanList lost(&table->lost);
    table->entries = 0;
    auto count = [table](const Entry&) {
      ++table->entries;
      return Status();
    };
    PARTITA_CO_TRY(co_await ReadWhatThereIs(reader, &lost, std::move(count)));
    if (table->lost.empty() && table->entries != reader.info().entry_count) {
      table->lost.push_back(
          {reader.info().smallest, reader.info().largest + '\0', reader.info().version_max, table->damage});
    }
  }
  if (found_.catalog_lost) PARTITA_CO_TRY(co_await NoteTablesIn(reader));
  PARTITA_CO_TRY(co_await NoteFlushed(reader));
  found_.report.entries += table->entries;
  // Open again from unpaced files when it is needed.
  if (table->damage.ok() && !found_.any_manifest_lost()) co_return Status();
  PARTITA_CO_ASSIGN(table->reader, co_await TableReader::Open(*objects_, cache_, found_.store, table->id));
  co_return Status();
}

}  // namespace partita

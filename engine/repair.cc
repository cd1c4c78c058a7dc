#include "engine/repair.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "engine/backup.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/site.h"
#include "engine/base/user_key.h"
#include "engine/commit_log.h"
#include "engine/io/local_meta_store.h"
#include "engine/io/read_only_file_system.h"
#include "engine/repair_survey.h"
#include "engine/repair_tables.h"

namespace partita {

namespace {

constexpr uint64_t kLockWaitNanos = 5'000'000'000;
constexpr uint64_t kRepairChunk = 1u << 20;
// The generation of a catalog whose predecessor's is lost: above any that swaps reach.
constexpr uint64_t kGenerationGap = uint64_t{1} << 40;

// "damaged-20260131T120000Z".
std::string DirectoryName(uint64_t wall_ticks) {
  const auto seconds =
      std::chrono::seconds((static_cast<int64_t>(wall_ticks) - static_cast<int64_t>(kUnixEpochTicks)) /
                           static_cast<int64_t>(kTicksPerSecond));
  const std::chrono::sys_seconds time(seconds);
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto two = [](int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); };
  return "damaged-" + std::to_string(static_cast<int>(date.year())) +
         two(static_cast<unsigned>(date.month())) + two(static_cast<unsigned>(date.day())) + "T" +
         two(clock.hours().count()) + two(clock.minutes().count()) + two(clock.seconds().count()) + "Z";
}

class Repair {
 public:
  Repair(RepairWorld& world, const RepairOptions& options)
      : world_(world), options_(options), survey_(world, world.files, options) {}

  Task<Result<RepairReport>> Run() {
    PARTITA_CO_TRY(co_await survey_.Run());
    RepairReport& report = survey_.findings().report;
    if (report.damages.empty()) co_return std::move(report);
    if (options_.found) options_.found(report);
    PARTITA_CO_TRY(PlanCatalog());
    tables_.emplace(survey_, next_, next_.incarnation, world_, options_);
    PARTITA_CO_TRY(co_await WriteTables());
    BuildManifests();
    PARTITA_CO_TRY(co_await KeepOldBytes());
    PARTITA_CO_ASSIGN(meta_, co_await LocalMetaStore::Open(world_.files, next_.store, IfMissing::kCreate));
    for (const Manifest& manifest : manifests_) {
      ManifestStore store(*meta_, next_.layout, manifest.shard, ManifestStore::Existing::kMayExist);
      PARTITA_CO_TRY(co_await store.Save(manifest));
    }
    PARTITA_CO_TRY(co_await survey_.pacer().Spend(0));  // The last moment to stop it.
    PARTITA_CO_TRY(co_await SwapCatalog());             // The commit.
    report.applied = true;
    report.kept_in = side_;
    co_return std::move(report);
  }

 private:
  RepairFindings& found() { return survey_.findings(); }

  Status PlanCatalog() {
    if (found().incarnation_max > UINT32_MAX - 2 * kLifeJumpMin) {
      // A name is under no seal.
      const bool of_object = found().object_max.value >> 32 == found().incarnation_max;
      return Status::Unsupported(
          "the store was repaired too often: its incarnations are used up" +
          (of_object ? ", as the name of " + ObjectPath(found().object_max) +
                           " says; if that file is none of the store's, remove it and try again"
                     : ""));
    }
    next_ = found().catalog;
    next_.layout = next_.formed_layout = found().layout_max + 1;
    // Above all that was ever seen; drawn, as an attempt that a crash took back left no trace.
    next_.incarnation = found().incarnation_max + kLifeJumpMin + static_cast<uint32_t>(world_.random % 1024);
    ++next_.epoch;
    for (RangeDescriptor& range : next_.ranges) range.epoch = RangeEpoch(next_.epoch);
    ceiling_ = Version(std::max(found().version_max.value, world_.clock.WallTicks()) + kLeaseTicksMax);
    return Status();
  }

  // ---- 1. Tables.

  Task<Status> WriteTables() {
    for (const auto& [id, table] : found().tables) {
      const bool anew = table.reader != nullptr && (found().any_manifest_lost() || !table.damage.ok());
      if (anew) survey_.pacer().AlsoDue(table.reader->info().file_size);
    }
    std::vector<FileMeta> of_lost_logs;
    for (const RepairFindings::Shard& shard : found().shards) {
      PARTITA_CO_ASSIGN(std::vector<FileMeta> logs, co_await tables_->OfLog(shard));
      std::vector<FileMeta>& to = shard.manifest_lost ? of_lost_logs : files_;
      to.insert(to.end(), logs.begin(), logs.end());
      for (const FileMeta& file : shard.manifest.files) PARTITA_CO_TRY(co_await TakeOver(file));
    }
    if (!found().any_manifest_lost()) co_return Status();
    std::vector<std::shared_ptr<TableReader>> sources;
    for (const auto& [id, table] : found().tables) {
      if (table.reader != nullptr) sources.push_back(table.reader);
    }
    for (const FileMeta& file : of_lost_logs) {
      PARTITA_CO_ASSIGN(std::shared_ptr<TableReader> table, co_await tables_->Open(file.info->id));
      sources.push_back(std::move(table));
    }
    for (const RangeDescriptor& range : next_.ranges) {
      const bool lost = found().shards[range.owner.value].manifest_lost;
      if (!lost) continue;
      PARTITA_CO_ASSIGN(std::vector<FileMeta> merged, co_await tables_->OfRange(range, sources));
      files_.insert(files_.end(), merged.begin(), merged.end());
    }
    co_return Status();
  }

  // What a manifest names: as it is, or as far as it can be read.
  Task<Status> TakeOver(FileMeta file) {
    const auto at = found().tables.find(file.info->id);
    if (at == found().tables.end()) co_return Status();  // Of a table that was dropped.
    const RepairFindings::Table& table = at->second;
    if (table.damage.ok()) {
      files_.push_back(std::move(file));
      co_return Status();
    }
    auto written = rewritten_.find(table.id);
    if (written == rewritten_.end()) {
      PARTITA_CO_ASSIGN(std::optional<TableInfo> info, co_await tables_->OfDamaged(table, file.level));
      written = rewritten_.emplace(table.id, std::move(info)).first;
    }
    if (!written->second) co_return Status();
    file.info = *written->second;
    const bool below = file.info->largest < file.lower;
    const bool above = !file.upper.empty() && file.info->smallest >= file.upper;
    if (!below && !above) files_.push_back(std::move(file));
    co_return Status();
  }

  void BuildManifests() {
    for (uint32_t i = 0; i < next_.shard_count; ++i) {
      Manifest manifest;
      manifest.shard = ShardId(i);
      manifest.layout = next_.layout;
      manifest.replay_from = LogPosition(0);  // Its log does not exist yet.
      manifest.version_ceiling = ceiling_;
      for (const FileMeta& file : files_) {
        const bool is_its =
            std::any_of(next_.ranges.begin(), next_.ranges.end(), [&](const RangeDescriptor& range) {
              return range.owner.value == i &&
                     KeyRangesOverlap(file.lower, file.upper, range.lower, range.upper);
            });
        if (is_its) manifest.files.push_back(file);
      }
      manifests_.push_back(std::move(manifest));
    }
  }

  // ---- 2. The old bytes.

  Task<Status> KeepOldBytes() {
    PARTITA_CO_TRY(co_await MakeSideDirectory());
    PARTITA_CO_TRY(co_await KeepLogs());
    PARTITA_CO_TRY(co_await MakeIn(kMetaDirectory));
    for (const std::string& key : survey_.meta_keys()) {
      PARTITA_CO_TRY(co_await Keep(std::string(kMetaDirectory) + "/" + key));
    }
    if (SiteIsOn("repair.kept_meta.dirflush")) {
      PARTITA_CO_TRY(co_await world_.files.FlushDirectory(side_ + "/" + kMetaDirectory));
    }
    PARTITA_CO_TRY(co_await KeepTables());
    PARTITA_CO_TRY(co_await WriteList());
    if (SiteIsOn("repair.kept.dirflush")) PARTITA_CO_TRY(co_await world_.files.FlushDirectory(side_));
    if (!SiteIsOn("repair.kept_name.dirflush")) co_return Status();
    co_return co_await world_.files.FlushDirectory("");
  }

  Task<Status> MakeSideDirectory() {
    const std::string name = DirectoryName(world_.clock.WallTicks());
    side_ = name;
    for (int number = 2;; ++number) {
      PARTITA_CO_ASSIGN(const bool taken, co_await world_.files.Exists(side_));
      if (!taken) break;
      side_ = name + "-" + std::to_string(number);
    }
    co_return co_await world_.files.CreateDirectory(side_);
  }

  // All that there are, whatever the catalog tells of: the next opening removes them.
  Task<Status> KeepLogs() {
    std::set<std::string> logs;
    for (const RepairFindings::Shard& shard : found().shards) {
      logs.insert(LogDirectory(found().catalog.layout, shard.id));
    }
    for (const std::string& name : survey_.meta_keys()) {
      if (const auto key = ParseManifestKey(name)) logs.insert(LogDirectory(key->layout, key->shard));
    }
    for (uint32_t layout = 1; layout <= found().layout_max; ++layout) {
      for (uint32_t shard = 0; shard < kShardCountMax; ++shard) {
        const std::string directory = LogDirectory(layout, ShardId(shard));
        PARTITA_CO_ASSIGN(const bool exists, co_await world_.files.Exists(directory));
        if (!exists) break;
        logs.insert(directory);
      }
    }
    for (const std::string& directory : logs) PARTITA_CO_TRY(co_await KeepDirectory(directory));
    co_return Status();
  }

  Task<Status> MakeIn(std::string directory) {
    co_return co_await world_.files.CreateDirectory(side_ + "/" + directory);
  }

  Task<Status> KeepDirectory(std::string directory) {
    PARTITA_CO_ASSIGN(const bool exists, co_await world_.files.Exists(directory));
    if (!exists) co_return Status();
    PARTITA_CO_ASSIGN(const std::vector<DirectoryEntry> entries, co_await world_.files.List(directory));
    if (entries.empty()) co_return Status();
    PARTITA_CO_TRY(co_await MakeIn(directory));
    for (const DirectoryEntry& entry : entries) {
      PARTITA_CO_TRY(co_await Keep(directory + "/" + entry.name));
    }
    if (!SiteIsOn("repair.kept_log.dirflush")) co_return Status();
    co_return co_await world_.files.FlushDirectory(side_ + "/" + directory);
  }

  // Whoever named them: what seems to be left over may be all that a damaged store has of some keys, and what
  // an interrupted repair seems to have left, of a life that the catalog does not know.
  Task<Status> KeepTables() {
    std::set<ObjectId> named;
    for (const FileMeta& file : files_) named.insert(file.info->id);
    PARTITA_CO_TRY(co_await MakeIn(kObjectDirectory));
    PARTITA_CO_ASSIGN(const std::vector<ObjectInfo> objects, co_await survey_.objects().List());
    for (const ObjectInfo& object : objects) {
      const bool is_new = object.id.value >> 32 == next_.incarnation;
      if (!is_new && !named.contains(object.id)) PARTITA_CO_TRY(co_await Keep(ObjectPath(object.id)));
    }
    if (!SiteIsOn("repair.kept_tables.dirflush")) co_return Status();
    co_return co_await world_.files.FlushDirectory(side_ + "/" + kObjectDirectory);
  }

  // A second name for the file, or a copy of it. What cannot be read of it is zero in the copy.
  Task<Status> Keep(std::string path) {
    const std::string to_path = side_ + "/" + path;
    const Status shared = co_await world_.files.Share(world_.files, path, to_path);
    if (shared.ok()) co_return Status();
    auto from = co_await world_.files.Open(path, OpenMode::kRead, FileIo::kBuffered);
    if (from.code() == Code::kNotFound) co_return Status();  // That it is missing is what was found.
    PARTITA_CO_TRY(from.status());
    PARTITA_CO_ASSIGN(std::unique_ptr<File> to,
                      co_await world_.files.Open(to_path, OpenMode::kCreate, FileIo::kBuffered));
    PARTITA_CO_ASSIGN(const uint64_t size, co_await (*from)->Size());
    AlignedBuffer buffer(kRepairChunk);
    if (buffer.data() == nullptr) co_return Status::ResourceExhausted("no memory to copy " + path);
    for (uint64_t offset = 0; offset < size; offset += kRepairChunk) {
      const auto chunk = buffer.span().first(std::min(kRepairChunk, size - offset));
      PARTITA_CO_TRY(co_await survey_.pacer().Spend(chunk.size()));
      PARTITA_CO_TRY(co_await ReadAsFarAsPossible(**from, offset, chunk));
      PARTITA_CO_TRY(co_await to->WriteAt(offset, chunk));
    }
    if (!SiteIsOn("repair.copy.flush")) co_return Status();
    co_return co_await to->Flush();
  }

  static Task<Status> ReadAsFarAsPossible(File& file, uint64_t offset, std::span<uint8_t> out) {
    Result<size_t> whole = co_await file.ReadAt(offset, out);
    if (whole.ok()) co_return Status();
    if (whole.code() != Code::kIoError) co_return whole.status();
    for (size_t at = 0; at < out.size(); at += kPageSize) {
      const auto page = out.subspan(at, std::min(kPageSize, out.size() - at));
      const Result<size_t> read = co_await file.ReadAt(offset + at, page);
      if (!read.ok()) std::fill(page.begin(), page.end(), uint8_t{0});
    }
    co_return Status();
  }

  Task<Status> WriteList() {
    std::string text =
        "What 'partita repair' found in this store, and what it made of it, if it was not stopped: then the\n"
        "store is as it was. The files beside this one are the old bytes; a repaired store does not use "
        "them.\n";
    for (const RepairDamage& damage : found().report.damages) {
      text += "\n" + damage.file + "\n  " + damage.reason + "\n  " + damage.consequence + "\n";
      for (const RepairLostRange& range : damage.lost) {
        text += "  lost of " + range.table + ": " + range.text;
        if (range.after_ticks > 0)
          text += ", what was written after tick " + std::to_string(range.after_ticks);
        text += "\n";
      }
    }
    PARTITA_CO_ASSIGN(std::unique_ptr<File> file,
                      co_await world_.files.Open(side_ + "/FOUND.txt", OpenMode::kCreate, FileIo::kBuffered));
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    if (!SiteIsOn("repair.list.flush")) co_return co_await file->WriteAt(0, bytes);
    co_return co_await file->WriteAndFlush(0, bytes);
  }

  // ---- 4. The commit.

  Task<Status> SwapCatalog() {
    const std::string bytes = EncodeCatalog(next_);
    if (!found().catalog_lost) {
      PARTITA_CO_ASSIGN(const std::optional<MetaValue> old, co_await meta_->Get(kCatalogKey));
      if (!old || old->generation != found().catalog_generation) {
        co_return Status::Corruption("meta/catalog: reads differently than before; try again (F52)");
      }
      co_return (co_await meta_->CompareAndSwap(kCatalogKey, found().catalog_generation, bytes)).status();
    }
    // In the place of one that is lost or cannot be read, which the meta store would not swap.
    const uint64_t generation = kGenerationGap + world_.random % kGenerationGap;
    const std::string encoded = EncodeMeta(kCatalogKey, next_.store, generation, bytes);
    const std::string path = std::string(kMetaDirectory) + "/" + kCatalogKey;
    const std::string new_path = path + ".new-" + std::to_string(generation);
    const std::span<const uint8_t> content(reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size());
    {
      PARTITA_CO_ASSIGN(std::unique_ptr<File> file,
                        co_await world_.files.Open(new_path, OpenMode::kCreateOrOpen, FileIo::kBuffered));
      PARTITA_CO_TRY(co_await file->Truncate(0));
      PARTITA_CO_TRY(SiteIsOn("repair.catalog.flush") ? co_await file->WriteAndFlush(0, content)
                                                      : co_await file->WriteAt(0, content));
    }
    Status renamed = co_await world_.files.Rename(new_path, path);
    if (renamed.ok() && SiteIsOn("repair.catalog.dirflush")) {
      renamed = co_await world_.files.FlushDirectory(kMetaDirectory);
    }
    if (renamed.ok()) co_return Status();
    co_return Status::Unknown("whether the store is repaired is in doubt, list again: " + renamed.ToString());
  }

  RepairWorld& world_;
  const RepairOptions& options_;
  RepairSurvey survey_;
  Catalog next_;
  Version ceiling_;
  std::optional<RepairTables> tables_;
  std::map<ObjectId, std::optional<TableInfo>> rewritten_;
  std::vector<FileMeta> files_;  // Of the repaired store.
  std::vector<Manifest> manifests_;
  std::string side_;
  std::unique_ptr<LocalMetaStore> meta_;
};

}  // namespace

Task<Result<RepairReport>> RepairStore(RepairWorld world, RepairOptions options) {
  PARTITA_CO_ASSIGN(const bool any, co_await HoldsFilesOfAStore(world.files));
  if (!any) co_return Status::NotFound("there is no store in this directory");
  if (options.apply) {
    PARTITA_CO_ASSIGN(auto lock, co_await world.files.Lock(kLockWaitNanos));
    Repair repair(world, options);
    co_return co_await repair.Run();
  }
  ReadOnlyFileSystem files(world.files);
  auto lock = co_await files.LockShared(kLockWaitNanos);
  // Without a lock file nobody can have it open.
  if (!lock.ok() && lock.code() != Code::kNotFound) co_return lock.status();
  RepairSurvey survey(world, files, options);
  PARTITA_CO_TRY(co_await survey.Run());
  co_return std::move(survey.findings().report);
}

}  // namespace partita

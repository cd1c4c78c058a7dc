#include "engine/backup.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "engine/base/aligned_buffer.h"
#include "engine/base/checksum.h"
#include "engine/base/coding.h"
#include "engine/base/given_version.h"
#include "engine/base/site.h"
#include "engine/commit_log.h"
#include "engine/damage.h"
#include "engine/io/local_meta_store.h"
#include "engine/io/local_object_store.h"
#include "engine/io/read_only_file_system.h"
#include "engine/task_pacer.h"
#include "sstable/block_cache.h"
#include "sstable/table_reader.h"

namespace partita {

namespace {

constexpr uint64_t kCopyChunk = 1u << 20;
constexpr uint64_t kVerifyCacheBytes = 4u << 20;
constexpr size_t kManifestsMax = 1u << 16;

// A restored store's incarnation is above its backup's by kLifeJumpMin to kLifeJumpMin + kJumpSpan - 1.
constexpr uint32_t kJumpSpan = 1u << 22;

// Each table file once, however many references there are to it.
std::map<ObjectId, TableInfo> FilesOf(const StoreImage& image) {
  std::map<ObjectId, TableInfo> files;
  for (const Manifest& manifest : image.manifests) {
    for (const FileMeta& file : manifest.files) files.emplace(file.info->id, *file.info);
  }
  return files;
}

std::map<ObjectId, ShardId> ShardsOfFiles(const StoreImage& image) {
  std::map<ObjectId, ShardId> shards;
  for (const Manifest& manifest : image.manifests) {
    for (const FileMeta& file : manifest.files) shards.emplace(file.info->id, manifest.shard);
  }
  return shards;
}

uint64_t BytesOf(const std::map<ObjectId, TableInfo>& files) {
  uint64_t bytes = 0;
  for (const auto& [id, info] : files) bytes += info.file_size;
  return bytes;
}

// Writes an image to a directory of its own, as backup.h draws it.
class ImageWriter {
 public:
  ImageWriter(Clock& clock, FileSystem& from, FileSystem& to, FileSystem* base, const StoreImage& image,
              const BackupOptions& options)
      : from_(from),
        to_(to),
        base_(base),
        image_(image),
        options_(options),
        files_(FilesOf(image)),
        shard_of_(ShardsOfFiles(image)),
        pacer_(clock, options.pace, 2 * BytesOf(files_)) {}

  // Everything but what says that it is complete: catalog and kind.
  Task<Status> WriteAndVerify() {
    PARTITA_CO_TRY(co_await Begin());
    for (const auto& [id, info] : files_) PARTITA_CO_TRY(co_await CopyObject(info));
    PARTITA_CO_TRY(co_await FlushTableNames());
    for (const Manifest& manifest : image_.manifests) {
      ManifestStore store(*meta_, manifest.layout, manifest.shard, ManifestStore::Existing::kMayExist);
      PARTITA_CO_TRY(co_await store.Save(manifest));
    }
    co_return co_await Verify();
  }

  // The last steps. `record`: that it is a backup; null: a store.
  Task<Status> Complete(const BackupRecord* record) {
    PARTITA_CO_TRY(co_await WriteMeta(kCatalogKey, EncodeCatalog(image_.catalog)));
    if (record != nullptr) PARTITA_CO_TRY(co_await WriteMeta(kBackupKey, EncodeBackupRecord(*record)));
    co_return co_await meta_->Remove(kUnfinishedKey);
  }

  const BackupReport& report() const { return report_; }

 private:
  Task<Status> Begin() {
    PARTITA_CO_ASSIGN(meta_, co_await LocalMetaStore::Open(to_, image_.catalog.store, IfMissing::kCreate));
    PARTITA_CO_TRY(co_await meta_->CompareAndSwap(kUnfinishedKey, 0, "backup or restore"));
    PARTITA_CO_ASSIGN(objects_, co_await LocalObjectStore::Open(to_, IfMissing::kCreate));
    PARTITA_CO_ASSIGN(from_objects_, co_await LocalObjectStore::Open(from_, IfMissing::kFail));
    if (base_ != nullptr) {
      auto objects = co_await LocalObjectStore::Open(*base_, IfMissing::kFail);
      if (!objects.ok()) co_return objects.status().WithContext("the earlier backup '" + options_.base + "'");
      base_objects_ = std::move(objects).value();
    }
    // Readers lock it, and make no file for that.
    PARTITA_CO_ASSIGN(auto lock, co_await to_.Open("LOCK", OpenMode::kCreateOrOpen, FileIo::kBuffered));
    if (!SiteIsOn("backup.lock.dirflush")) co_return Status();
    co_return co_await to_.FlushDirectory("");
  }

  // What is done with the file is work of a shard that has it.
  void MeterFile(ObjectId id) {
    const auto shard = shard_of_.find(id);
    if (shard == shard_of_.end() || shard->second.value >= image_.meters.size()) return;
    pacer_.MeterBy(image_.meters[shard->second.value], BackgroundWork::kBackup);
  }

  Task<Status> CopyObject(const TableInfo& info) {
    MeterFile(info.id);
    ++report_.files;
    report_.bytes += info.file_size;
    if (base_ != nullptr) {
      PARTITA_CO_ASSIGN(const bool same, co_await BaseHas(info));
      if (same && (co_await to_.Share(*base_, ObjectPath(info.id), ObjectPath(info.id))).ok()) {
        from_base_.insert(info.id);
        co_return co_await NoteShared(info);
      }
    }
    co_return co_await TakeFromStore(info);
  }

  Task<Status> TakeFromStore(TableInfo info) {
    bool shared = false;
    if (options_.sharing == FileSharing::kWherePossible) {
      shared = (co_await to_.Share(from_, ObjectPath(info.id), ObjectPath(info.id))).ok();
    }
    if (shared) co_return co_await NoteShared(info);
    co_return co_await CopyBytes(info);
  }

  Task<Status> NoteShared(TableInfo info) {
    report_.bytes_shared += info.file_size;
    pacer_.NotDue(info.file_size);
    co_return co_await pacer_.Spend(0);
  }

  Task<Status> WriteMeta(std::string key, std::string bytes) {
    PARTITA_CO_TRY(co_await meta_->CompareAndSwap(key, 0, bytes));
    co_return co_await ReadBack(std::move(key), std::move(bytes));
  }

  // What the medium has of a meta value, rather than the kernel's cache or `meta_`.
  Task<Status> ReadBack(std::string key, std::string written) {
    PARTITA_CO_ASSIGN(auto file, co_await to_.Open(MetaPath(key), OpenMode::kRead, FileIo::kBuffered));
    PARTITA_CO_TRY(co_await file->DropCache());
    PARTITA_CO_ASSIGN(auto again, co_await LocalMetaStore::Open(to_, image_.catalog.store, IfMissing::kFail));
    PARTITA_CO_ASSIGN(const std::optional<MetaValue> found, co_await again->Get(key));
    if (found.has_value() && found->bytes == written) co_return Status();
    co_return Status::Corruption(MetaPath(key) + ": reads back differently");
  }

  Task<Status> FlushTableNames() {
    if (!SiteIsOn("backup.tables.dirflush")) co_return Status();
    co_return co_await to_.FlushDirectory(kObjectDirectory);
  }

  // An id is given once, so a file of this name is this file; the ends are compared all the same, as a
  // store that was restored from an older copy of itself might have given it again.
  Task<Result<bool>> BaseHas(const TableInfo& info) {
    Result<std::shared_ptr<ObjectReader>> there = co_await base_objects_->Open(info.id);
    if (!there.ok() || (*there)->size() != info.file_size || info.file_size < kFooterSize) co_return false;
    PARTITA_CO_ASSIGN(std::shared_ptr<ObjectReader> here, co_await from_objects_->Open(info.id));
    if (here->size() != info.file_size) co_return false;
    uint8_t ends[2][kFooterSize];
    PARTITA_CO_TRY(co_await here->ReadOne(info.file_size - kFooterSize, ends[0]));
    Status read = co_await (*there)->ReadOne(info.file_size - kFooterSize, ends[1]);
    co_return read.ok() && std::equal(ends[0], ends[0] + kFooterSize, ends[1]);
  }

  Task<Status> CopyBytes(const TableInfo& info) {
    PARTITA_CO_ASSIGN(std::shared_ptr<ObjectReader> reader, co_await from_objects_->Open(info.id));
    PARTITA_CO_ASSIGN(std::unique_ptr<ObjectWriter> writer, co_await objects_->Create(info.id));
    Status copied = co_await CopyChunks(*reader, *writer);
    if (copied.ok()) copied = co_await writer->Finish();
    if (!copied.ok()) co_await writer->Abandon();
    co_return copied;
  }

  Task<Status> CopyChunks(ObjectReader& reader, ObjectWriter& writer) {
    AlignedBuffer buffer(kCopyChunk);
    if (buffer.data() == nullptr) co_return Status::ResourceExhausted("no memory to copy a file");
    for (uint64_t offset = 0; offset < reader.size(); offset += kCopyChunk) {
      const size_t size = std::min<uint64_t>(kCopyChunk, reader.size() - offset);
      PARTITA_CO_TRY(co_await reader.ReadOne(offset, buffer.span().first(size)));
      PARTITA_CO_TRY(co_await writer.Append(buffer.view(0, size)));
      PARTITA_CO_TRY(co_await pacer_.Spend(size));
    }
    co_return Status();
  }

  // Reads back what was written, past all caches: manifests first, then each block of each file.
  Task<Status> Verify() {
    for (const Manifest& manifest : image_.manifests) {
      const std::string key = ManifestKey(manifest.layout, manifest.shard);
      PARTITA_CO_TRY(co_await ReadBack(key, EncodeManifest(manifest)));
    }
    BlockCache cache(kVerifyCacheBytes);
    PacedObjectStore paced(*objects_, pacer_);
    for (const auto& [id, info] : files_) {
      MeterFile(id);
      Status verified = co_await VerifyObject(paced, cache, info);
      if (!pacer_.cancelled() && IsDamage(verified) && from_base_.contains(id)) {
        report_.base_damages.push_back(verified.message());
        verified = co_await Replace(paced, info);
      }
      PARTITA_CO_TRY(pacer_.CheckCancelled());
      PARTITA_CO_TRY(verified);
    }
    co_return Status();
  }

  // A file of a base that is damaged there: the store's is sound, or the store is what is to be told of.
  Task<Status> Replace(PacedObjectStore& paced, TableInfo info) {
    PARTITA_CO_TRY(co_await to_.Remove(ObjectPath(info.id)));
    report_.bytes_shared -= info.file_size;
    PARTITA_CO_TRY(co_await TakeFromStore(info));
    PARTITA_CO_TRY(co_await FlushTableNames());
    BlockCache cache(kVerifyCacheBytes);  // It knows nothing of the other.
    co_return co_await VerifyObject(paced, cache, info);
  }

  Task<Status> VerifyObject(ObjectStore& objects, BlockCache& cache, TableInfo info) {
    PARTITA_CO_ASSIGN(std::shared_ptr<TableReader> table,
                      co_await TableReader::Open(objects, cache, image_.catalog.store, info.id));
    TableVerifyReport found;
    PARTITA_CO_TRY(co_await table->Verify(&found));
    PARTITA_CO_TRY(table->CheckIs(info));
    report_.entries += found.entries;
    co_return Status();
  }

  FileSystem& from_;
  FileSystem& to_;
  FileSystem* base_;
  const StoreImage& image_;
  const BackupOptions& options_;
  const std::map<ObjectId, TableInfo> files_;
  const std::map<ObjectId, ShardId> shard_of_;
  TaskPacer pacer_;
  BackupReport report_;
  std::set<ObjectId> from_base_;
  std::unique_ptr<LocalMetaStore> meta_;
  std::unique_ptr<LocalObjectStore> objects_, from_objects_, base_objects_;
};

// Ok when nothing is there but a lock file.
Task<Status> CheckEmpty(FileSystem& to) {
  PARTITA_CO_ASSIGN(std::vector<DirectoryEntry> entries, co_await to.List(""));
  std::string found;
  for (const DirectoryEntry& entry : entries) {
    if (entry.name != "LOCK") found = entry.name;
  }
  PARTITA_CO_ASSIGN(std::vector<std::string> others, co_await to.ListOthers());
  for (const std::string& other : others) {
    if (other != kMetaDirectory && other != kObjectDirectory && other != "lost+found") found = other;
  }
  for (const char* name : {kMetaDirectory, kObjectDirectory}) {
    PARTITA_CO_ASSIGN(const bool exists, co_await to.Exists(name));
    if (!exists) continue;
    PARTITA_CO_ASSIGN(std::vector<DirectoryEntry> inside, co_await to.List(name));
    for (const DirectoryEntry& entry : inside) {
      // An attempt that ended before its first step was done.
      if (!entry.name.starts_with(std::string(kUnfinishedKey) + ".new-")) found = name;
    }
  }
  if (found.empty()) co_return Status();
  co_return Status::AlreadyExists("the directory is not empty: it holds '" + found +
                                  "'; name a new or an empty one");
}

// Whether MakeRoom may make some.
Task<Status> CheckRoom(FileSystem& to) {
  PARTITA_CO_ASSIGN(const bool unfinished, co_await to.Exists(MetaPath(kUnfinishedKey)));
  if (unfinished) co_return Status();
  co_return co_await CheckEmpty(to);
}

// Removes an unfinished attempt, its mark last.
Task<Status> RemoveUnfinished(FileSystem& to) {
  for (const char* directory : {kObjectDirectory, kMetaDirectory}) {
    PARTITA_CO_ASSIGN(const bool exists, co_await to.Exists(directory));
    if (!exists) continue;
    PARTITA_CO_ASSIGN(std::vector<DirectoryEntry> entries, co_await to.List(directory));
    for (const DirectoryEntry& entry : entries) {
      if (entry.name == kUnfinishedKey) continue;
      PARTITA_CO_TRY(co_await to.Remove(std::string(directory) + "/" + entry.name));
    }
    if (SiteIsOn("restore.removed.dirflush")) PARTITA_CO_TRY(co_await to.FlushDirectory(directory));
  }
  PARTITA_CO_TRY(co_await to.Remove(MetaPath(kUnfinishedKey)));
  if (!SiteIsOn("restore.mark.dirflush")) co_return Status();
  co_return co_await to.FlushDirectory(kMetaDirectory);
}

struct BackupContents {
  StoreImage image;
  BackupRecord record;
};

Status NotThisBackups(const std::string& key) {
  return Status::Corruption(MetaPath(key) + ": is not the one that meta/backup was written for (F41)");
}

Task<Result<BackupContents>> ReadBackup(FileSystem& from) {
  PARTITA_CO_TRY(co_await CheckIsNoBackup(from, /*writing=*/false));
  PARTITA_CO_ASSIGN(const std::optional<StoreId> id, co_await ReadStoreId(from));
  PARTITA_CO_ASSIGN(const bool marked, co_await from.Exists(MetaPath(kBackupKey)));
  if (!id.has_value() || !marked) {
    co_return Status::InvalidArgument("the directory holds no backup: meta/backup is missing");
  }
  PARTITA_CO_ASSIGN(auto meta, co_await LocalMetaStore::Open(from, *id, IfMissing::kFail));
  BackupContents out;
  PARTITA_CO_ASSIGN(const std::optional<MetaValue> value, co_await meta->Get(kBackupKey));
  if (!value.has_value()) co_return Status::Corruption("meta/backup vanished");
  PARTITA_CO_ASSIGN(out.record, DecodeBackupRecord(value->bytes));
  PARTITA_CO_ASSIGN(const std::optional<MetaValue> catalog, co_await meta->Get(kCatalogKey));
  if (!catalog.has_value()) co_return Status::Corruption("meta/catalog vanished");
  if (SiteIsOn("backup.catalog.check") && Hash64(catalog->bytes) != out.record.catalog_hash)
    co_return NotThisBackups(kCatalogKey);
  PARTITA_CO_ASSIGN(out.image.catalog, DecodeCatalog(catalog->bytes));
  const uint32_t shards = out.image.catalog.shard_count;
  if (out.record.manifest_hashes.size() != shards) co_return NotThisBackups(kCatalogKey);
  for (uint32_t i = 0; i < shards; ++i) {
    const std::string key = ManifestKey(out.image.catalog.layout, ShardId(i));
    PARTITA_CO_ASSIGN(const std::optional<MetaValue> stored, co_await meta->Get(key));
    if (!stored.has_value()) co_return Status::Corruption("there is no manifest " + key);
    // Of the bytes as they are: an older version's backup has them in that one's format.
    if (SiteIsOn("backup.manifest.check") && Hash64(stored->bytes) != out.record.manifest_hashes[i])
      co_return NotThisBackups(key);
    Result<Manifest> manifest = DecodeManifest(stored->bytes);
    if (!manifest.ok()) co_return manifest.status().WithContext("meta/" + key);
    out.image.manifests.push_back(std::move(manifest).value());
  }
  co_return out;
}

// The image as a store of its own life (F17, F30).
Status BeginNewLife(const BackupRecord& record, uint64_t wall_ticks, uint64_t random, StoreImage* image) {
  if (wall_ticks < record.created_ticks) {
    return Status::InvalidArgument(
        "the clock of this machine is behind the moment when the backup was taken; ETags would be given "
        "again, so set it first (F17)");
  }
  Version highest;
  for (const Manifest& manifest : image->manifests) {
    highest = std::max(highest, manifest.version_ceiling);
    for (const FileMeta& file : manifest.files) highest = HigherGiven(highest, file.info->version_max);
  }
  // The original may have gone on since. What it gives is the last version and one, or the clock's where that
  // is more, and it writes less often than the clock ticks: so it is no further ahead of the clock than it
  // was then, but for a lease, unless its clock was set back.
  const uint64_t ahead = std::max(highest.value, record.created_ticks) - record.created_ticks;
  const Version floor(wall_ticks + ahead + kLeaseTicksMax);
  for (Manifest& manifest : image->manifests) manifest.version_ceiling = floor;
  const uint32_t jump = kLifeJumpMin + static_cast<uint32_t>(random % kJumpSpan);
  if (image->catalog.incarnation > UINT32_MAX - 2 * (kLifeJumpMin + kJumpSpan)) {
    return Status::Unsupported("the store was restored too often: its incarnations are used up");
  }
  image->catalog.incarnation += jump;
  image->catalog.formed_layout = image->catalog.layout;
  return Status();
}

}  // namespace

std::string EncodeBackupRecord(const BackupRecord& record) {
  std::string out;
  AppendLe16(&out, kBackupFormat);
  for (const uint64_t value :
       {record.created_ticks, record.files, record.bytes, record.entries, record.catalog_hash}) {
    AppendLe64(&out, value);
  }
  AppendVarint(&out, record.manifest_hashes.size());
  for (const uint64_t hash : record.manifest_hashes) AppendLe64(&out, hash);
  return out;
}

Result<BackupRecord> DecodeBackupRecord(std::string_view bytes) {
  ByteReader in(bytes);
  const uint16_t format = in.ReadLe16();
  if (in.ok() && format > kBackupFormat) {
    return Status::Unsupported("meta/backup has format " + std::to_string(format) +
                               ", which a newer version wrote (F66)");
  }
  BackupRecord record;
  record.created_ticks = in.ReadLe64();
  record.files = in.ReadLe64();
  record.bytes = in.ReadLe64();
  record.entries = in.ReadLe64();
  record.catalog_hash = in.ReadLe64();
  const uint64_t manifests = in.ReadVarint();
  if (!in.ok() || format == 0 || manifests > kManifestsMax) {
    return Status::Corruption("meta/backup: the record is cut short or no such record");
  }
  for (uint64_t i = 0; i < manifests && in.ok(); ++i) record.manifest_hashes.push_back(in.ReadLe64());
  if (!in.AtCleanEnd()) return Status::Corruption("meta/backup: a wrong length");
  return record;
}

Task<Result<BackupReport>> WriteBackup(Clock& clock, FileSystem& store, const StoreImage& image,
                                       FileSystem& to, FileSystem* base, const BackupOptions& options) {
  PARTITA_CO_TRY(co_await CheckEmpty(to));
  ImageWriter writer(clock, store, to, base, image, options);
  // Before all is copied, so that what lies ahead of it is no less than at the moment of the image.
  const uint64_t created_ticks = clock.WallTicks();
  PARTITA_CO_TRY(co_await writer.WriteAndVerify());
  BackupReport report = writer.report();
  report.created_ticks = created_ticks;
  BackupRecord record{report.created_ticks,
                      report.files,
                      report.bytes,
                      report.entries,
                      Hash64(EncodeCatalog(image.catalog)),
                      {}};
  for (const Manifest& manifest : image.manifests) {
    record.manifest_hashes.push_back(Hash64(EncodeManifest(manifest)));
  }
  PARTITA_CO_TRY(co_await writer.Complete(&record));
  co_return report;
}

Task<Result<BackupReport>> RestoreBackup(Clock& clock, uint64_t random, FileSystem& from, FileSystem& to,
                                         const BackupOptions& options) {
  ReadOnlyFileSystem source(from);
  PARTITA_CO_ASSIGN(BackupContents contents, co_await ReadBackup(source));
  PARTITA_CO_TRY(co_await CheckRoom(to));  // Before the lock leaves a file in a directory that is another's.
  PARTITA_CO_ASSIGN(auto lock, co_await to.Lock(0));
  PARTITA_CO_TRY(co_await MakeRoom(to));
  PARTITA_CO_TRY(BeginNewLife(contents.record, clock.WallTicks(), random, &contents.image));
  ImageWriter writer(clock, from, to, nullptr, contents.image, options);
  Status made = co_await writer.WriteAndVerify();
  if (made.ok()) made = co_await writer.Complete(nullptr);
  if (!made.ok()) {
    const Status removed = co_await MakeRoom(to);  // The disk that was full is another store's, too.
    if (removed.ok()) co_return made;
    co_return Status(made.code(),
                     made.message() + "; what was copied is left there (" + removed.message() + ")");
  }
  BackupReport report = writer.report();
  report.created_ticks = contents.record.created_ticks;
  co_return report;
}

Task<Status> MakeRoom(FileSystem& to) {
  PARTITA_CO_ASSIGN(const bool unfinished, co_await to.Exists(MetaPath(kUnfinishedKey)));
  if (unfinished) PARTITA_CO_TRY(co_await RemoveUnfinished(to));
  co_return co_await CheckEmpty(to);
}

Task<Status> CheckIsBackup(FileSystem& from) {
  ReadOnlyFileSystem source(from);
  co_return (co_await ReadBackup(source)).status();
}

Task<Status> CheckIsNoBackup(FileSystem& files, bool writing) {
  PARTITA_CO_ASSIGN(const bool unfinished, co_await files.Exists(MetaPath(kUnfinishedKey)));
  if (unfinished) {
    co_return Status::InvalidArgument(
        "the directory holds a backup or restore that did not end (meta/unfinished); make it again");
  }
  PARTITA_CO_ASSIGN(const bool backup, co_await files.Exists(MetaPath(kBackupKey)));
  if (backup && writing) {
    co_return Status::InvalidArgument(
        "the directory is a backup (meta/backup): restore it to another directory, or open it for reading "
        "only");
  }
  co_return Status();
}

}  // namespace partita

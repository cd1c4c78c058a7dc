#include <filesystem>
#include <random>

#include "engine/backup.h"
#include "engine/base/executor.h"
#include "engine/base/site.h"
#include "engine/io/local_meta_store.h"
#include "engine/io/posix_file_system.h"
#include "engine/io/runtime.h"
#include "engine/io/system_clock.h"
#include "engine/store.h"

namespace partita {

namespace {

namespace fs = std::filesystem;

struct Place {
  fs::path parent;
  std::string name;
  fs::path whole() const { return parent / name; }
  fs::path partial() const { return parent / (name + ".partial"); }
};

Result<Place> PlaceOfDirectory(const std::string& directory) {
  fs::path path = fs::path(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "backups/monday/"
  Place place{path.has_parent_path() ? path.parent_path() : fs::path("."), path.filename().string()};
  if (place.name.empty() || place.name == "." || place.name == "..") {
    return Status::InvalidArgument("'" + directory + "' does not name a new directory");
  }
  return place;
}

Status FailedTo(const std::string& what, const fs::path& path, const std::error_code& error) {
  const bool full = error == std::errc::no_space_on_device;
  return Status(full ? Code::kNoSpace : Code::kIoError,
                what + " '" + path.string() + "': " + error.message());
}

// Removes what an interrupted attempt left, and nothing else.
Status RemovePartial(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return Status();
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name != "LOCK" && name != kMetaDirectory && name != kObjectDirectory) {
      return Status::AlreadyExists("'" + path.string() + "' holds '" + name +
                                   "', which no backup made; it is left alone, and so is the directory");
    }
  }
  if (!error) fs::remove_all(path, error);
  return error ? FailedTo("remove", path, error) : Status();
}

Result<std::unique_ptr<PosixFileSystem>> OpenFiles(const fs::path& path) {
  return PosixFileSystem::Open(path.string(), BatchReads::kCallByCall);
}

Result<BackupReport> BackUpTo(Runtime& runtime, Store& store, const Place& place,
                              const BackupOptions& options) {
  PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> parent, OpenFiles(place.parent));
  PARTITA_TRY(RunBlocking(parent->CreateDirectory(place.name + ".partial")));
  PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> to, OpenFiles(place.partial()));
  std::unique_ptr<PosixFileSystem> base;
  if (!options.base.empty()) {
    PARTITA_ASSIGN(base, OpenFiles(options.base));
    PARTITA_TRY(runtime.RunToEnd(CheckIsNoBackup(*base, /*writing=*/false)));
  }
  PARTITA_ASSIGN(BackupReport report, runtime.RunToEnd(store.Backup(*to, base.get(), options)));
  to.reset();
  PARTITA_TRY(runtime.RunToEnd(TakeBackupName(*parent, place.name + ".partial", place.name)));
  return report;
}

}  // namespace

Task<Status> TakeBackupName(FileSystem& parent, std::string from, std::string name) {
  PARTITA_CO_TRY(co_await parent.Rename(from, name));
  if (!SiteIsOn("backup.name.dirflush")) co_return Status();
  co_return co_await parent.FlushDirectory("");
}

Task<Status> MakeRestoreDirectory(FileSystem& parent, std::string name) {
  PARTITA_CO_TRY(co_await parent.CreateDirectory(name));
  if (!SiteIsOn("restore.name.dirflush")) co_return Status();
  co_return co_await parent.FlushDirectory("");
}

Result<BackupReport> BackUpStore(Runtime& runtime, Store& store, const std::string& directory,
                                 const BackupOptions& options) {
  PARTITA_ASSIGN(const Place place, PlaceOfDirectory(directory));
  std::error_code error;
  if (fs::exists(fs::symlink_status(place.whole(), error))) {
    return Status::AlreadyExists("'" + directory + "' exists already; a backup makes its directory");
  }
  PARTITA_TRY(RemovePartial(place.partial()));
  Result<BackupReport> report = BackUpTo(runtime, store, place, options);
  if (!report.ok()) {
    const Status removed = RemovePartial(place.partial());
    (void)removed;  // Why there is no backup is what to tell; the next attempt removes it.
    return report.status().WithContext("backup to '" + directory + "'");
  }
  return report;
}

Result<BackupReport> RestoreStore(const std::string& backup, const std::string& directory,
                                  const BackupOptions& options) {
  PARTITA_ASSIGN(const Place place, PlaceOfDirectory(directory));
  PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> from, OpenFiles(backup));
  std::error_code error;
  if (!fs::exists(place.whole(), error)) {
    PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> parent, OpenFiles(place.parent));
    PARTITA_TRY(RunBlocking(MakeRestoreDirectory(*parent, place.name)));
  }
  PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> to, OpenFiles(place.whole()));
  std::random_device device;
  const uint64_t random = uint64_t{device()} << 32 | device();
  SystemClock clock;
  return RunBlocking(RestoreBackup(clock, random, *from, *to, options));
}

}  // namespace partita

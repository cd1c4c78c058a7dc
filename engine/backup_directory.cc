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

Result<std::unique_ptr<PosixFileSystem>> OpenFiles(const fs::path& path) {
  return PosixFileSystem::Open(path.string(), BatchReads::kCallByCall);
}

// The directory in which a backup grows, locked until it has its name or is gone.
struct GrowingBackup {
  std::unique_ptr<PosixFileSystem> parent, files;
  std::unique_ptr<DirectoryLock> lock;
};

Status Foreign(const fs::path& directory, const std::string& name) {
  return Status::AlreadyExists("'" + directory.string() + "' holds '" + name +
                               "', which no backup made; it is left alone, and so is the directory");
}

Status CheckNothingForeign(const fs::path& path) {
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == "LOCK") continue;
    if (name != kMetaDirectory && name != kObjectDirectory) return Foreign(path, name);
    for (fs::directory_iterator inner(entry->path(), error); !error && inner != end; inner.increment(error)) {
      if (!fs::is_regular_file(inner->symlink_status(error)))
        return Foreign(path, name + "/" + inner->path().filename().string());
    }
  }
  return error ? FailedTo("look into", path, error) : Status();
}

// Removes what an interrupted attempt left, and nothing else.
Status RemoveLeftover(PosixFileSystem& files, const fs::path& path) {
  PARTITA_ASSIGN(const bool unfinished, RunBlocking(files.Exists(MetaPath(kUnfinishedKey))));
  PARTITA_ASSIGN(const bool complete, RunBlocking(files.Exists(MetaPath(kBackupKey))));
  if (complete && !unfinished) {
    return Status::AlreadyExists(
        "'" + path.string() + "' is a complete backup, and this one would grow there; rename or remove it");
  }
  return RunBlocking(MakeRoom(files)).WithContext("'" + path.string() + "'");
}

// Made by nobody but its owner: under a name that is mistyped, or where nothing is mounted, it would be on
// another disk than he thinks.
Result<std::unique_ptr<PosixFileSystem>> OpenParent(const Place& place) {
  Result<std::unique_ptr<PosixFileSystem>> parent = OpenFiles(place.parent);
  if (parent.code() != Code::kNotFound) return parent;
  return Status::NotFound("there is no directory '" + place.parent.string() + "'; make it first");
}

// Makes the directory, or takes over what an interrupted attempt left of it. kBusy: another backup has it.
Result<GrowingBackup> BeginGrowing(const Place& place) {
  GrowingBackup growing;
  PARTITA_ASSIGN(growing.parent, OpenParent(place));
  PARTITA_TRY(RunBlocking(growing.parent->CreateDirectory(place.name + ".partial")));
  PARTITA_TRY(CheckNothingForeign(place.partial()));
  PARTITA_ASSIGN(growing.files, OpenFiles(place.partial()));
  Result<std::unique_ptr<DirectoryLock>> lock = RunBlocking(growing.files->Lock(/*wait_ns=*/0));
  if (lock.code() == Code::kLocked) {
    return Status::Busy("another backup is being made in '" + place.partial().string() + "', or it is read");
  }
  PARTITA_ASSIGN(growing.lock, std::move(lock));
  // Who had the lock may have given it the name since it was opened, or removed it.
  std::error_code error;
  if (fs::exists(fs::symlink_status(place.whole(), error)) || !fs::exists(place.partial(), error)) {
    return Status::Busy("another backup was being made in '" + place.partial().string() + "' until now");
  }
  PARTITA_TRY(RemoveLeftover(*growing.files, place.partial()));
  return growing;
}

Result<BackupReport> Grow(Runtime& runtime, Store& store, const Place& place, GrowingBackup& growing,
                          const BackupOptions& options) {
  std::unique_ptr<PosixFileSystem> base;
  if (!options.base.empty()) {
    PARTITA_ASSIGN(base, OpenFiles(options.base));
    const Status usable = runtime.RunToEnd(CheckIsNoBackup(*base, /*writing=*/false));
    if (!usable.ok()) return usable.WithContext("the earlier backup '" + options.base + "'");
  }
  PARTITA_ASSIGN(BackupReport report, runtime.RunToEnd(store.Backup(*growing.files, base.get(), options)));
  PARTITA_TRY(runtime.RunToEnd(TakeBackupName(*growing.parent, place.name + ".partial", place.name)));
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
  Result<GrowingBackup> growing = BeginGrowing(place);
  if (!growing.ok()) return growing.status().WithContext("backup to '" + directory + "'");
  Result<BackupReport> report = Grow(runtime, store, place, *growing, options);
  if (report.ok()) return report;
  // Its own, as it is locked, unless it has its name by now. What is not removed the next attempt removes.
  if (!fs::exists(fs::symlink_status(place.whole(), error)) &&
      RemoveLeftover(*growing->files, place.partial()).ok()) {
    for (const char* name : {kMetaDirectory, kObjectDirectory, "LOCK"})
      fs::remove(place.partial() / name, error);
    fs::remove(place.partial(), error);
  }
  return report.status().WithContext("backup to '" + directory + "'");
}

Result<BackupReport> RestoreStore(const std::string& backup, const std::string& directory,
                                  const BackupOptions& options) {
  PARTITA_ASSIGN(const Place place, PlaceOfDirectory(directory));
  PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> from, OpenFiles(backup));
  const std::string context = "restoring '" + backup + "' to '" + directory + "'";
  // Before anything is made.
  const Status is_backup = RunBlocking(CheckIsBackup(*from));
  if (!is_backup.ok()) return is_backup.WithContext(context);
  Result<std::unique_ptr<PosixFileSystem>> parent = OpenParent(place);
  std::error_code error;
  if (parent.ok()) {
    PARTITA_TRY(RunBlocking(MakeRestoreDirectory(**parent, place.name)));
  } else if (!fs::exists(place.whole(), error)) {
    return parent.status().WithContext(
        context);  // Where a folder cannot be read, somebody else makes those in it.
  }
  PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> to, OpenFiles(place.whole()));
  std::random_device device;
  const uint64_t random = uint64_t{device()} << 32 | device();
  SystemClock clock;
  Result<BackupReport> report = RunBlocking(RestoreBackup(clock, random, *from, *to, options));
  if (!report.ok()) return report.status().WithContext(context);
  return report;
}

}  // namespace partita

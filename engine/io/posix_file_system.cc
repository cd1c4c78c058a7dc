#include "engine/io/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "engine/base/executor.h"
#include "engine/base/fork_watch.h"
#include "engine/io/errno_status.h"
#include "engine/io/offload.h"
#include "engine/io/posix_file.h"
#include "engine/io/system_clock.h"
#include "engine/io/unshared_descriptor.h"
#include "engine/io/written_mapping.h"

namespace partita {

namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
constexpr uint64_t kLockRetryNanos = 50'000'000;
constexpr const char* kLockName = "LOCK";

// Relative, without "..", so that no name leads out of the store.
Status CheckPath(std::string_view path) {
  std::string_view rest = path;
  while (true) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "..") break;
    if (slash == std::string_view::npos) return Status();
    rest.remove_prefix(slash + 1);
  }
  return Status::InvalidArgument("\"" + std::string(path) + "\" is not a path inside the store's directory");
}

int OpenFlags(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY | O_CLOEXEC;
    case OpenMode::kReadWrite:
      return O_RDWR | O_CLOEXEC;
    case OpenMode::kCreate:
      return O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL;
    case OpenMode::kCreateOrOpen:
      return O_RDWR | O_CLOEXEC | O_CREAT;
  }
  return O_RDONLY | O_CLOEXEC;
}

class PosixMapping final : public SharedMapping {
 public:
  PosixMapping(void* start, size_t size) : bytes_(static_cast<uint8_t*>(start), size) {}
  ~PosixMapping() override { munmap(bytes_.data(), bytes_.size()); }
  std::span<uint8_t> bytes() override { return bytes_; }
  Status Stored(uint64_t, uint64_t) override { return Status(); }

 private:
  std::span<uint8_t> bytes_;
};

class PosixLock final : public DirectoryLock {
 public:
  explicit PosixLock(int descriptor) : descriptor_(descriptor), number_(descriptor) {}
  // Also where a child came by a copy of the descriptor just before it was registered.
  ~PosixLock() override {
    if (generation_ == ForkGeneration()) (void)flock(number_, LOCK_UN);
  }

 private:
  UnsharedDescriptor descriptor_;
  const int number_;
  const uint32_t generation_ = WatchForks();
};

// Whether nothing stands there but what a holder writes: in a foreign directory the file may be anybody's.
bool IsHoldersText(int descriptor) {
  char text[16] = "";
  const ssize_t size = pread(descriptor, text, sizeof text, 0);
  if (size < 0 || size == sizeof text) return false;
  return std::all_of(text, text + size, [](char c) { return c == '\n' || c == 0 || (c >= '0' && c <= '9'); });
}

// Who holds the lock, for a message: its process id stands in the file.
std::string HolderOf(int descriptor) {
  char text[16] = "";
  ssize_t size = pread(descriptor, text, sizeof text - 1, 0);
  pid_t holder = 0;
  if (size > 0) std::from_chars(text, text + size, holder);
  if (holder <= 0) return "another process (it left no process id)";
  if (holder == getpid()) return "this process (" + std::to_string(holder) + ") already";
  return "process " + std::to_string(holder);
}

}  // namespace

Result<std::unique_ptr<PosixFileSystem>> PosixFileSystem::Open(const std::string& directory,
                                                               BatchReads batch_reads) {
  int root = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return ErrnoStatusOfDirectory("open directory", directory, errno);
  return std::unique_ptr<PosixFileSystem>(new PosixFileSystem(directory, root, batch_reads));
}

PosixFileSystem::~PosixFileSystem() { close(root_); }

Task<Result<std::unique_ptr<File>>> PosixFileSystem::Open(std::string_view path, OpenMode mode, FileIo io) {
  PARTITA_CO_TRY(CheckPath(path));
  const std::string name(path);
  auto open = [&] { return OpenNow(name, mode, io); };
  co_return co_await Offload(open);
}

Result<std::unique_ptr<File>> PosixFileSystem::OpenNow(const std::string& path, OpenMode mode, FileIo io) {
  const int flags = OpenFlags(mode);
  bool direct = io == FileIo::kDirect;
  int descriptor = openat(root_, path.c_str(), flags | (direct ? O_DIRECT : 0), kFileMode);
  if (descriptor < 0 && errno == EINVAL && direct) {
    // The file system knows no O_DIRECT. Linux has created the file by then, if it did not exist,
    // so an exclusive creation must not be asked for again where the first try made it.
    direct = false;
    direct_io_refused_.store(true, std::memory_order_relaxed);
    descriptor = openat(root_, path.c_str(), flags, kFileMode);
    if (descriptor < 0 && errno == EEXIST && mode == OpenMode::kCreate) {
      descriptor = openat(root_, path.c_str(), flags & ~(O_CREAT | O_EXCL));
    }
  }
  if (descriptor < 0) return ErrnoStatus("open", path, errno);
  return std::unique_ptr<File>(
      std::make_unique<PosixFile>(FileHandle{descriptor, direct, path}, io, batch_reads_));
}

Task<Status> PosixFileSystem::Remove(std::string_view path) {
  PARTITA_CO_TRY(CheckPath(path));
  const std::string name(path);
  auto remove = [&]() -> Status {
    // Held open, its space is not given back by unlinkat.
    const int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const int held = removed_.spreads() ? openat(root_, name.c_str(), flags) : -1;
    const int error = unlinkat(root_, name.c_str(), 0) == 0 ? 0 : errno;
    if (held >= 0) removed_.Take(held);
    return error == 0 ? Status() : ErrnoStatus("remove", name, error);
  };
  co_return co_await Offload(remove);
}

Task<Status> PosixFileSystem::Rename(std::string_view from, std::string_view to) {
  PARTITA_CO_TRY(CheckPath(from));
  PARTITA_CO_TRY(CheckPath(to));
  const std::string source(from), target(to);
  auto rename = [&]() -> Status {
    if (renameat(root_, source.c_str(), root_, target.c_str()) != 0) {
      return ErrnoStatus("rename to \"" + target + "\" of", source, errno);
    }
    return Status();
  };
  co_return co_await Offload(rename);
}

Task<Status> PosixFileSystem::Share(FileSystem& from, std::string_view from_path, std::string_view path) {
  PARTITA_CO_TRY(CheckPath(from_path));
  PARTITA_CO_TRY(CheckPath(path));
  auto* other = dynamic_cast<PosixFileSystem*>(&from);
  if (other == nullptr) co_return Status::Unsupported("only files of this machine can be shared");
  const std::string source(from_path), target(path);
  auto share = [&] { return ShareNow(other->root_, source, target); };
  co_return co_await Offload(share);
}

Status PosixFileSystem::ShareNow(int from_root, const std::string& from, const std::string& to) {
  const int source = openat(from_root, from.c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0) return ErrnoStatus("open", from, errno);
  const bool linked = linkat(from_root, from.c_str(), root_, to.c_str(), 0) == 0;
  if (linked || errno == ENOENT || errno == EEXIST) {
    // Whoever copied the file there may never have flushed it.
    Status status = linked ? Status() : ErrnoStatus("link", to, errno);
    if (linked && fsync(source) != 0) {
      status = ErrnoStatus("flush", from, errno);
      unlinkat(root_, to.c_str(), 0);  // For a copy to have the name.
    }
    close(source);
    return status;
  }
  const int target = openat(root_, to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  Status shared;
  if (target < 0) {
    shared = ErrnoStatus("create", to, errno);
  } else {
    if (ioctl(target, FICLONE, source) != 0) {
      shared = Status::Unsupported("\"" + to + "\" can neither be a hard link nor a reflink here");
    } else if (fsync(target) != 0) {
      shared = ErrnoStatus("flush", to, errno);
    }
    close(target);
    if (!shared.ok()) unlinkat(root_, to.c_str(), 0);
  }
  close(source);
  return shared;
}

Task<Status> PosixFileSystem::CreateDirectory(std::string_view path) {
  PARTITA_CO_TRY(CheckPath(path));
  const std::string name(path);
  auto create = [&]() -> Status {
    if (mkdirat(root_, name.c_str(), kDirectoryMode) == 0) return Status();
    const int error = errno;
    struct stat information {};
    const bool is_directory =
        error == EEXIST && fstatat(root_, name.c_str(), &information, 0) == 0 && S_ISDIR(information.st_mode);
    return is_directory ? Status() : ErrnoStatus("create directory", name, error);
  };
  co_return co_await Offload(create);
}

Result<int> PosixFileSystem::OpenDirectoryNow(const std::string& path, const char* purpose) {
  if (!path.empty()) PARTITA_TRY(CheckPath(path));
  int descriptor = openat(root_, path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoStatus(purpose, path.empty() ? directory_ : path, errno);
  return descriptor;
}

Task<Status> PosixFileSystem::FlushDirectory(std::string_view path) {
  const std::string name(path);
  auto flush = [&]() -> Status {
    PARTITA_ASSIGN(int descriptor, OpenDirectoryNow(name, "flush directory"));
    const int error = fsync(descriptor) == 0 ? 0 : errno;
    close(descriptor);
    return error == 0 ? Status() : ErrnoStatus("flush directory", name.empty() ? directory_ : name, error);
  };
  co_return co_await Offload(flush);
}

Task<Result<std::vector<DirectoryEntry>>> PosixFileSystem::List(std::string_view path) {
  const std::string name(path);
  auto list = [&] { return ListNow(name); };
  co_return co_await Offload(list);
}

Task<Result<std::vector<std::string>>> PosixFileSystem::ListOthers() {
  auto list = [&]() -> Result<std::vector<std::string>> {
    std::vector<std::string> others;
    PARTITA_TRY(VisitNow("", [&](const char* name, const struct stat& information) {
      const bool is_itself = std::string_view(name) == "." || std::string_view(name) == "..";
      if (!is_itself && !S_ISREG(information.st_mode)) others.emplace_back(name);
    }));
    return others;
  };
  co_return co_await Offload(list);
}

Result<std::vector<DirectoryEntry>> PosixFileSystem::ListNow(const std::string& path) {
  std::vector<DirectoryEntry> entries;
  PARTITA_TRY(VisitNow(path, [&](const char* name, const struct stat& information) {
    if (S_ISREG(information.st_mode)) entries.push_back({name, static_cast<uint64_t>(information.st_size)});
  }));
  return entries;
}

Status PosixFileSystem::VisitNow(
    const std::string& path,
    const std::function<void(const char* name, const struct stat& information)>& visit) {
  PARTITA_ASSIGN(int descriptor, OpenDirectoryNow(path, "list directory"));
  DIR* directory = fdopendir(descriptor);  // Takes the descriptor.
  if (directory == nullptr) {
    const int error = errno;
    close(descriptor);
    return ErrnoStatus("list directory", path, error);
  }
  errno = 0;
  while (const dirent* item = readdir(directory)) {
    struct stat information {};
    if (fstatat(descriptor, item->d_name, &information, AT_SYMLINK_NOFOLLOW) == 0) {
      visit(item->d_name, information);
    } else if (errno != ENOENT) {  // Removed meanwhile.
      break;
    }
    errno = 0;
  }
  const int error = errno;
  closedir(directory);
  return error != 0 ? ErrnoStatus("list directory", path, error) : Status();
}

Task<Result<bool>> PosixFileSystem::Exists(std::string_view path) {
  PARTITA_CO_TRY(CheckPath(path));
  const std::string name(path);
  auto exists = [&]() -> Result<bool> {
    struct stat information {};
    if (fstatat(root_, name.c_str(), &information, 0) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return ErrnoStatus("look for", name, errno);
  };
  co_return co_await Offload(exists);
}

Result<std::unique_ptr<SharedMapping>> PosixFileSystem::Map(std::string_view path, uint64_t size) {
  PARTITA_TRY(CheckPath(path));
  if (size == 0) return Status::InvalidArgument("map \"" + std::string(path) + "\": the size is 0");
  const std::string name(path);
  int descriptor = openat(root_, name.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return ErrnoStatus("map", name, errno);
  struct stat information {};
  if (fstat(descriptor, &information) == 0 && static_cast<uint64_t>(information.st_size) < size) {
    close(descriptor);
    return Status::InvalidArgument("map \"" + name + "\": it has " + std::to_string(information.st_size) +
                                   " bytes, " + std::to_string(size) + " are needed");
  }
  if (StoresNeedSpace(descriptor)) return WrittenMapping::Make(descriptor, size, name);
  void* start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  const int error = errno;
  close(descriptor);  // The mapping keeps the file.
  if (start == MAP_FAILED) return ErrnoStatus("map", name, error);
  return std::unique_ptr<SharedMapping>(std::make_unique<PosixMapping>(start, size));
}

Task<Result<std::unique_ptr<DirectoryLock>>> PosixFileSystem::Lock(uint64_t wait_ns) {
  return LockAs(LockKind::kWriter, wait_ns);
}

Task<Result<std::unique_ptr<DirectoryLock>>> PosixFileSystem::LockShared(uint64_t wait_ns) {
  return LockAs(LockKind::kReader, wait_ns);
}

Task<Result<std::unique_ptr<DirectoryLock>>> PosixFileSystem::LockAs(LockKind kind, uint64_t wait_ns) {
  SystemClock clock;
  const uint64_t deadline = clock.MonotonicNanos() + wait_ns;
  while (true) {
    auto attempt = [&] { return TryLockNow(kind); };
    auto locked = co_await Offload(attempt);
    if (locked.ok() || locked.code() != Code::kLocked) co_return locked;
    const uint64_t now = clock.MonotonicNanos();
    if (now >= deadline) co_return locked;
    co_await SleepFor(std::min(kLockRetryNanos, deadline - now));
  }
}

Result<std::unique_ptr<DirectoryLock>> PosixFileSystem::TryLockNow(LockKind kind) {
  const bool writer = kind == LockKind::kWriter;
  int descriptor = openat(root_, kLockName, (writer ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, kFileMode);
  if (descriptor < 0 && errno == ENOENT) {
    return Status::NotFound("the store \"" + directory_ +
                            "\" has no file LOCK, without which nothing keeps a writer out while it is "
                            "read; where none can be, make an empty one");
  }
  if (descriptor < 0) return ErrnoStatus("open the lock of", directory_, errno);
  auto lock = std::make_unique<PosixLock>(descriptor);
  if (flock(descriptor, (writer ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    const int error = errno;
    if (error != EWOULDBLOCK && error != EINTR) return ErrnoStatus("lock", directory_, error);
    // The id in the file is a writer's, perhaps of long ago.
    const bool only_readers = writer && flock(descriptor, LOCK_SH | LOCK_NB) == 0;
    return Status::Locked("the store \"" + directory_ + "\" is held by " +
                          (only_readers ? "processes that read it" : HolderOf(descriptor)) +
                          "; one process at a time can open it, or several for reading only");
  }
  if (!writer) return std::unique_ptr<DirectoryLock>(std::move(lock));
  // Only a hint for messages: the lock holds whether or not it can be written.
  const std::string holder = std::to_string(getpid()) + "\n";
  if (IsHoldersText(descriptor) && ftruncate(descriptor, 0) == 0)
    (void)!pwrite(descriptor, holder.data(), holder.size(), 0);
  return std::unique_ptr<DirectoryLock>(std::move(lock));
}

Task<Result<uint64_t>> PosixFileSystem::FreeBytes() {
  auto free_bytes = [&]() -> Result<uint64_t> {
    struct statvfs information {};
    if (fstatvfs(root_, &information) != 0) return ErrnoStatus("statvfs", directory_, errno);
    return static_cast<uint64_t>(information.f_bavail) * information.f_frsize;
  };
  co_return co_await Offload(free_bytes);
}

}  // namespace partita

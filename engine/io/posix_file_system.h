#pragma once
#include <sys/stat.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/result.h"
#include "engine/io/file.h"
#include "engine/io/space_returner.h"

namespace partita {

enum class BatchReads : uint8_t {
  kRing,        // A batch read in blocking mode may use a small ring of the calling thread's.
  kCallByCall,  // No ring anywhere: machines that forbid io_uring.
};

// Files under a directory of this machine, mode 0600, directories 0700. Where a call runs follows
// from the thread that makes it (io_worker.h): plain system calls in blocking mode; on a worker
// transfers and flushes go through its ring, or to its I/O threads where it has none, and whatever
// else may block (open, rename, unlink, truncate, list, directory flushes) to the I/O threads.
//
// Some file systems refuse O_DIRECT (tmpfs before Linux 6.6, some FUSE and overlay ones). A file
// asked for as kDirect is then read and written through the page cache, and direct_io_refused()
// says so from then on, for the start-up log (doctor tries a file of its own). Durability is the same,
// as every promise rests on fdatasync and none on O_DIRECT; lost are speed, and the certainty that
// kPastCaches reads the medium.
class PosixFileSystem final : public FileSystem {
 public:
  // kNotFound when `directory` is missing, kInvalidArgument when it is no directory.
  static Result<std::unique_ptr<PosixFileSystem>> Open(const std::string& directory, BatchReads batch_reads);
  ~PosixFileSystem() override;

  Task<Result<std::unique_ptr<File>>> Open(std::string_view path, OpenMode mode, FileIo io) override;
  Task<Status> Remove(std::string_view path) override;
  Task<Status> Rename(std::string_view from, std::string_view to) override;
  Task<Status> Share(FileSystem& from, std::string_view from_path, std::string_view path) override;
  Task<Status> CreateDirectory(std::string_view path) override;
  Task<Status> FlushDirectory(std::string_view path) override;
  Task<Result<std::vector<DirectoryEntry>>> List(std::string_view path) override;
  Task<Result<std::vector<std::string>>> ListOthers() override;
  Task<Result<bool>> Exists(std::string_view path) override;
  Result<std::unique_ptr<SharedMapping>> Map(std::string_view path, uint64_t size) override;

  // The lock is flock(2) on the file LOCK, which holds the holder's process id in decimal. One with other
  // content keeps that: it is of no store.
  Task<Result<std::unique_ptr<DirectoryLock>>> Lock(uint64_t wait_ns) override;
  Task<Result<std::unique_ptr<DirectoryLock>>> LockShared(uint64_t wait_ns) override;
  Task<Result<uint64_t>> FreeBytes() override;

  bool direct_io_refused() const override { return direct_io_refused_.load(std::memory_order_relaxed); }
  const std::string& directory() const { return directory_; }

 private:
  PosixFileSystem(std::string directory, int root, BatchReads batch_reads)
      : directory_(std::move(directory)), root_(root), batch_reads_(batch_reads) {}

  // These block.
  Result<std::unique_ptr<File>> OpenNow(const std::string& path, OpenMode mode, FileIo io);
  Status ShareNow(int from_root, const std::string& from, const std::string& to);
  Result<int> OpenDirectoryNow(const std::string& path, const char* purpose);
  Result<std::vector<DirectoryEntry>> ListNow(const std::string& path);
  // Calls `visit` with the name and what is known of each entry.
  Status VisitNow(const std::string& path,
                  const std::function<void(const char* name, const struct stat& information)>& visit);
  enum class LockKind : uint8_t { kWriter, kReader };
  Result<std::unique_ptr<DirectoryLock>> TryLockNow(LockKind kind);
  Task<Result<std::unique_ptr<DirectoryLock>>> LockAs(LockKind kind, uint64_t wait_ns);

  const std::string directory_;  // For messages.
  const int root_;               // An open descriptor of it.
  const BatchReads batch_reads_;
  std::atomic<bool> direct_io_refused_{false};
  SpaceReturner removed_{root_};
};

}  // namespace partita

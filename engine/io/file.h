#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/task.h"

namespace partita {

// Lower seam: everything that touches a disk. Three implementations: io_uring, threads, simulator.
// Every call keeps the same promises on each of them:
// - short transfers are continued, EINTR and EAGAIN retried a bounded number of times (F24);
// - on an executor's thread a call suspends; in blocking mode it is a plain system call;
// - errors are values: kNoSpace (ENOSPC, EDQUOT), kNotFound (ENOENT), kAlreadyExists (EEXIST),
//   kResourceExhausted (EMFILE, ENFILE, ENOMEM), kUnsupported, else kIoError; the message names
//   operation, path, offset and errno text.

enum class FileIo : uint8_t {
  kDirect,    // O_DIRECT: offset, size and address must be multiples of kPageSize.
  kBuffered,  // Through the page cache.
};

struct FileRead {
  uint64_t offset = 0;
  std::span<uint8_t> buffer;
};

// An open file. Positions are always explicit (F63). Thread-safe.
class File {
 public:
  virtual ~File() = default;  // Closes. REQUIRES: nothing in flight (F62).

  virtual const std::string& path() const = 0;  // Relative to the store's directory.

  // Fills the buffer, or fewer bytes only at the end of the file; returns the count.
  virtual Task<Result<size_t>> ReadAt(uint64_t offset, std::span<uint8_t> buffer) = 0;

  // All reads, concurrently where the backend can. A read past the end is kIoError.
  virtual Task<Status> ReadBatch(std::span<const FileRead> reads) = 0;

  virtual Task<Status> WriteAt(uint64_t offset, std::span<const uint8_t> bytes) = 0;

  // Flushes data and whatever metadata is needed to read it back (fdatasync).
  virtual Task<Status> Flush() = 0;

  // WriteAt, then Flush, in the fastest way the device has (linked on the ring). A failure of
  // either is a failure of both (F61).
  virtual Task<Status> WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) = 0;

  virtual Task<Result<uint64_t>> Size() = 0;
  virtual Task<Status> Truncate(uint64_t size) = 0;

  // Sets space aside for the file's first `size` bytes, so that writing them takes no more, and makes it at
  // least that long; what was never written reads as zeros. kNoSpace: some of it may have been set aside.
  // kUnsupported where the file system knows no such thing.
  virtual Task<Status> Allocate(uint64_t size) = 0;

  // Asks the kernel to drop its clean cached pages of this file (for re-reads, F52).
  virtual Task<Status> DropCache() = 0;
};

// Memory shared with the kernel's page cache of a file: what is written to it survives the death
// of the process, not a power loss. Unmapped on destruction.
class SharedMapping {
 public:
  virtual ~SharedMapping() = default;
  virtual std::span<uint8_t> bytes() = 0;
  // To be called when [offset, offset+size) was stored to: the simulator learns of it, and where the file
  // system could end the process for want of space it is written by a call now (written_mapping.h). kNoSpace,
  // kIoError: there alone.
  virtual Status Stored(uint64_t offset, uint64_t size) = 0;
};

enum class OpenMode : uint8_t {
  kRead,       // Must exist.
  kReadWrite,  // Must exist.
  kCreate,     // Must not exist: kAlreadyExists.
  kCreateOrOpen,
};

struct DirectoryEntry {
  std::string name;
  uint64_t size = 0;
};

// The lock on a store's directory (F64); released on destruction.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

// Files under one root directory (the store's). Paths are relative, '/'-separated, never "..".
// Creating, renaming and removing names is durable only after FlushDirectory of their directory.
// Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Task<Result<std::unique_ptr<File>>> Open(std::string_view path, OpenMode mode, FileIo io) = 0;
  virtual Task<Status> Remove(std::string_view path) = 0;                       // kNotFound when absent.
  virtual Task<Status> Rename(std::string_view from, std::string_view to) = 0;  // Replaces `to`.
  virtual Task<Status> CreateDirectory(std::string_view path) = 0;              // Ok when it exists.
  virtual Task<Status> FlushDirectory(std::string_view path) = 0;               // "" is the root.
  virtual Task<Result<std::vector<DirectoryEntry>>> List(std::string_view path) = 0;  // Files only.
  // What lies in the root and is no file: directories and links.
  virtual Task<Result<std::vector<std::string>>> ListOthers() = 0;
  virtual Task<Result<bool>> Exists(std::string_view path) = 0;

  // Gives `path`, which is free, the content of the file that `from_path` names in `from`, without copying
  // it: a hard link, or a reflink. The content is flushed then; the name is durable after FlushDirectory.
  // kUnsupported where that cannot be had. For files that are never changed in place.
  virtual Task<Status> Share(FileSystem& from, std::string_view from_path, std::string_view path);

  // Maps a file, which must have at least `size` bytes, shared and writable.
  virtual Result<std::unique_ptr<SharedMapping>> Map(std::string_view path, uint64_t size) = 0;

  // kLocked, naming the holder's process id, when another process (or handle) holds it. Tried for
  // `wait_ns` (a dying process may hold it while its I/O drains).
  virtual Task<Result<std::unique_ptr<DirectoryLock>>> Lock(uint64_t wait_ns) = 0;

  // The lock of readers: any number at once, none beside a holder of Lock, who waits for them in turn.
  // Changes nothing on disk, so there must have been a holder of Lock before: else kNotFound.
  virtual Task<Result<std::unique_ptr<DirectoryLock>>> LockShared(uint64_t wait_ns) = 0;

  virtual Task<Result<uint64_t>> FreeBytes() = 0;

  // A file that was asked for as kDirect goes through the page cache, as the file system knows nothing else:
  // as durable, but slower, and what is read past all caches may come from memory.
  virtual bool direct_io_refused() const { return false; }
};

inline Task<Status> FileSystem::Share(FileSystem&, std::string_view, std::string_view) {
  co_return Status::Unsupported("files cannot be shared here");
}

}  // namespace partita

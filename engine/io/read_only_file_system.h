#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "engine/io/file.h"

namespace partita {

// The files of another file system, none of which can be changed through this one: what would is
// answered kUnsupported (F64). A file asked for as kReadWrite is opened for reading, since who reads a
// log asks for it so; writing to it fails. Lock takes the lock of readers. Flushes go through: they
// change no byte, and what was not flushed by a process that died must be before it is shown (F29).
//
// Thread-safe. `files` outlives it.
class ReadOnlyFileSystem final : public FileSystem {
 public:
  explicit ReadOnlyFileSystem(FileSystem& files) : files_(files) {}

  Task<Result<std::unique_ptr<File>>> Open(std::string_view path, OpenMode mode, FileIo io) override;
  Task<Status> Remove(std::string_view path) override;
  Task<Status> Rename(std::string_view from, std::string_view to) override;
  Task<Status> CreateDirectory(std::string_view path) override;
  Task<Status> FlushDirectory(std::string_view path) override { return files_.FlushDirectory(path); }
  Task<Result<std::vector<DirectoryEntry>>> List(std::string_view path) override { return files_.List(path); }
  Task<Result<std::vector<std::string>>> ListOthers() override { return files_.ListOthers(); }
  Task<Result<bool>> Exists(std::string_view path) override { return files_.Exists(path); }
  Result<std::unique_ptr<SharedMapping>> Map(std::string_view path, uint64_t size) override;
  Task<Result<std::unique_ptr<DirectoryLock>>> Lock(uint64_t wait_ns) override {
    return files_.LockShared(wait_ns);
  }
  Task<Result<std::unique_ptr<DirectoryLock>>> LockShared(uint64_t wait_ns) override {
    return files_.LockShared(wait_ns);
  }
  Task<Result<uint64_t>> FreeBytes() override { return files_.FreeBytes(); }
  bool direct_io_refused() const override { return files_.direct_io_refused(); }

 private:
  FileSystem& files_;
};

}  // namespace partita

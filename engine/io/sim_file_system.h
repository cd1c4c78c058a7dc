#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/io/file.h"
#include "engine/io/sim_device.h"

namespace partita {

// The files of a SimDisk as one simulated process sees them. Misuse that a real kernel would refuse
// only sometimes (unaligned direct I/O, a bad path) aborts here.
class SimFileSystem : public FileSystem {
 public:
  explicit SimFileSystem(SimDevice& device) : device_(device) {}

  Task<Result<std::unique_ptr<File>>> Open(std::string_view path, OpenMode mode, FileIo io) override;
  Task<Status> Remove(std::string_view path) override;
  Task<Status> Rename(std::string_view from, std::string_view to) override;
  // From the same disk only: a second name for the file.
  Task<Status> Share(FileSystem& from, std::string_view from_path, std::string_view path) override;
  Task<Status> CreateDirectory(std::string_view path) override;
  Task<Status> FlushDirectory(std::string_view path) override;
  Task<Result<std::vector<DirectoryEntry>>> List(std::string_view path) override;
  // Its directories are those that a store makes.
  Task<Result<std::vector<std::string>>> ListOthers() override { co_return std::vector<std::string>(); }
  Task<Result<bool>> Exists(std::string_view path) override;
  Result<std::unique_ptr<SharedMapping>> Map(std::string_view path, uint64_t size) override;
  Task<Result<std::unique_ptr<DirectoryLock>>> Lock(uint64_t wait_ns) override;
  Task<Result<std::unique_ptr<DirectoryLock>>> LockShared(uint64_t wait_ns) override;
  Task<Result<uint64_t>> FreeBytes() override;

 private:
  std::string_view Intern(std::string_view path);
  // Coroutines take the path interned: the caller's need not live until they run.
  Task<Result<std::unique_ptr<File>>> OpenInterned(std::string_view path, OpenMode mode, FileIo io);
  Task<Status> ShareInterned(std::string_view from, std::string_view to);
  Task<Status> Plain(SimOp op, std::string_view path, std::string_view to);
  Task<Result<std::vector<DirectoryEntry>>> ListInterned(std::string_view path);
  Task<Result<bool>> ExistsInterned(std::string_view path);
  Task<Status> TakeLock(OpenMode mode, uint64_t wait_ns);

  SimDevice& device_;
};

}  // namespace partita

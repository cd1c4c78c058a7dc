#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/io/file.h"

namespace partita {

// A directory of another file system as one of its own, e.g. for a second store on a SimDisk. Made by
// Make. Nobody locks it.
class Subdirectory final : public FileSystem {
 public:
  Subdirectory(FileSystem& files, std::string name) : files_(files), name_(std::move(name)) {}

  Task<Status> Make() {
    PARTITA_CO_TRY(co_await files_.CreateDirectory(name_));
    co_return co_await files_.FlushDirectory("");
  }

  Task<Result<std::unique_ptr<File>>> Open(std::string_view path, OpenMode mode, FileIo io) override {
    return files_.Open(In(path), mode, io);
  }
  Task<Status> Remove(std::string_view path) override { return files_.Remove(In(path)); }
  Task<Status> Rename(std::string_view from, std::string_view to) override {
    return files_.Rename(In(from), In(to));
  }
  // From a subdirectory of the same files, or from these files themselves.
  Task<Status> Share(FileSystem& from, std::string_view from_path, std::string_view path) override {
    auto* other = dynamic_cast<Subdirectory*>(&from);
    FileSystem& source = other == nullptr ? from : other->files_;
    return files_.Share(source, other == nullptr ? std::string(from_path) : other->In(from_path), In(path));
  }
  Task<Status> CreateDirectory(std::string_view path) override { return files_.CreateDirectory(In(path)); }
  Task<Status> FlushDirectory(std::string_view path) override { return files_.FlushDirectory(In(path)); }
  Task<Result<std::vector<std::string>>> ListOthers() override { co_return std::vector<std::string>(); }
  Task<Result<std::vector<DirectoryEntry>>> List(std::string_view path) override {
    return files_.List(In(path));
  }
  Task<Result<bool>> Exists(std::string_view path) override { return files_.Exists(In(path)); }
  Result<std::unique_ptr<SharedMapping>> Map(std::string_view path, uint64_t size) override {
    return files_.Map(In(path), size);
  }
  Task<Result<std::unique_ptr<DirectoryLock>>> Lock(uint64_t) override { co_return NoLock(); }
  Task<Result<std::unique_ptr<DirectoryLock>>> LockShared(uint64_t) override { co_return NoLock(); }
  Task<Result<uint64_t>> FreeBytes() override { return files_.FreeBytes(); }

 private:
  static std::unique_ptr<DirectoryLock> NoLock() { return std::make_unique<DirectoryLock>(); }
  std::string In(std::string_view path) const {
    return path.empty() ? name_ : name_ + "/" + std::string(path);
  }

  FileSystem& files_;
  const std::string name_;
};

}  // namespace partita

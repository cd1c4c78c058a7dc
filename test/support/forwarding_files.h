#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/io/file.h"

namespace partita {

// Hands everything on to other files; for tests that change one thing of them.
class ForwardingFiles : public FileSystem {
 public:
  explicit ForwardingFiles(FileSystem& files) : files_(files) {}

  Task<Result<std::unique_ptr<File>>> Open(std::string_view path, OpenMode mode, FileIo io) override {
    return files_.Open(path, mode, io);
  }
  Task<Status> Remove(std::string_view path) override { return files_.Remove(path); }
  Task<Status> Rename(std::string_view from, std::string_view to) override { return files_.Rename(from, to); }
  Task<Status> CreateDirectory(std::string_view path) override { return files_.CreateDirectory(path); }
  Task<Status> FlushDirectory(std::string_view path) override { return files_.FlushDirectory(path); }
  Task<Result<std::vector<DirectoryEntry>>> List(std::string_view path) override { return files_.List(path); }
  Task<Result<std::vector<std::string>>> ListOthers() override { return files_.ListOthers(); }
  Task<Result<bool>> Exists(std::string_view path) override { return files_.Exists(path); }
  Result<std::unique_ptr<SharedMapping>> Map(std::string_view path, uint64_t size) override {
    return files_.Map(path, size);
  }
  Task<Result<std::unique_ptr<DirectoryLock>>> Lock(uint64_t wait_ns) override {
    return files_.Lock(wait_ns);
  }
  Task<Result<std::unique_ptr<DirectoryLock>>> LockShared(uint64_t wait_ns) override {
    return files_.LockShared(wait_ns);
  }
  Task<Result<uint64_t>> FreeBytes() override { return files_.FreeBytes(); }
  bool direct_io_refused() const override { return files_.direct_io_refused(); }

 private:
  FileSystem& files_;
};

class ForwardingFile : public File {
 public:
  explicit ForwardingFile(std::unique_ptr<File> file) : file_(std::move(file)) {}

  const std::string& path() const override { return file_->path(); }
  Task<Result<size_t>> ReadAt(uint64_t offset, std::span<uint8_t> buffer) override {
    return file_->ReadAt(offset, buffer);
  }
  Task<Status> ReadBatch(std::span<const FileRead> reads) override { return file_->ReadBatch(reads); }
  Task<Status> WriteAt(uint64_t offset, std::span<const uint8_t> bytes) override {
    return file_->WriteAt(offset, bytes);
  }
  Task<Status> Flush() override { return file_->Flush(); }
  Task<Status> WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) override {
    return file_->WriteAndFlush(offset, bytes);
  }
  Task<Result<uint64_t>> Size() override { return file_->Size(); }
  Task<Status> Truncate(uint64_t size) override { return file_->Truncate(size); }
  Task<Status> Allocate(uint64_t size) override { return file_->Allocate(size); }
  Task<Status> DropCache() override { return file_->DropCache(); }

 private:
  const std::unique_ptr<File> file_;
};

}  // namespace partita

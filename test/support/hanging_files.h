#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/executor.h"
#include "engine/io/file.h"

namespace partita {

// Files of a real file system of which, once told to, the next write-and-flush under a path that a thread
// does itself (blocking mode) does not come back before it is let go, and then was done. Thread-safe.
class HangingFiles final : public FileSystem {
 public:
  HangingFiles(FileSystem& files, std::string path_prefix)
      : files_(files), path_prefix_(std::move(path_prefix)) {}

  void HangNext() { Set(State::kArmed); }
  void LetGo() { Set(State::kFree); }
  bool OneHung() {
    std::lock_guard lock(mutex_);
    return one_hung_;
  }
  void WaitUntilOneHangs() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return state_ == State::kHanging; });
  }

  Task<Result<std::unique_ptr<File>>> Open(std::string_view path, OpenMode mode, FileIo io) override;
  Task<Status> Remove(std::string_view path) override { return files_.Remove(path); }
  Task<Status> Rename(std::string_view from, std::string_view to) override { return files_.Rename(from, to); }
  Task<Status> CreateDirectory(std::string_view path) override { return files_.CreateDirectory(path); }
  Task<Status> FlushDirectory(std::string_view path) override { return files_.FlushDirectory(path); }
  Task<Result<std::vector<DirectoryEntry>>> List(std::string_view path) override { return files_.List(path); }
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

 private:
  class HangingFile;
  enum class State : uint8_t { kFree, kArmed, kHanging };

  void Set(State state) {
    std::lock_guard lock(mutex_);
    state_ = state;
    changed_.notify_all();
  }
  void HangIfTold() {
    if (Executor::Current() != nullptr) return;
    std::unique_lock lock(mutex_);
    if (state_ != State::kArmed) return;
    state_ = State::kHanging;
    one_hung_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return state_ == State::kFree; });
  }

  FileSystem& files_;
  const std::string path_prefix_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kFree;
  bool one_hung_ = false;
};

class HangingFiles::HangingFile final : public File {
 public:
  HangingFile(HangingFiles& world, std::unique_ptr<File> file) : world_(world), file_(std::move(file)) {}

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
    world_.HangIfTold();
    co_return co_await file_->WriteAndFlush(offset, bytes);
  }
  Task<Result<uint64_t>> Size() override { return file_->Size(); }
  Task<Status> Truncate(uint64_t size) override { return file_->Truncate(size); }
  Task<Status> DropCache() override { return file_->DropCache(); }

 private:
  HangingFiles& world_;
  const std::unique_ptr<File> file_;
};

inline Task<Result<std::unique_ptr<File>>> HangingFiles::Open(std::string_view path, OpenMode mode,
                                                              FileIo io) {
  const bool watched = path.starts_with(path_prefix_);
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file, co_await files_.Open(path, mode, io));
  if (!watched) co_return std::move(file);
  std::unique_ptr<File> hanging = std::make_unique<HangingFile>(*this, std::move(file));
  co_return std::move(hanging);
}

}  // namespace partita

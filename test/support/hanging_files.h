#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/executor.h"
#include "test/support/forwarding_files.h"

namespace partita {

// Files of a real file system of which, once told to, the next write-and-flush, or read, under a path that a
// thread does itself (blocking mode) does not come back before it is let go, and then was done. Thread-safe.
class HangingFiles final : public ForwardingFiles {
 public:
  HangingFiles(FileSystem& files, std::string path_prefix)
      : ForwardingFiles(files), path_prefix_(std::move(path_prefix)) {}

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

  const std::string path_prefix_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kFree;
  bool one_hung_ = false;
};

class HangingFiles::HangingFile final : public ForwardingFile {
 public:
  HangingFile(HangingFiles& world, std::unique_ptr<File> file)
      : ForwardingFile(std::move(file)), world_(world) {}

  Task<Status> WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) override {
    world_.HangIfTold();
    co_return co_await ForwardingFile::WriteAndFlush(offset, bytes);
  }
  Task<Status> ReadBatch(std::span<const FileRead> reads) override {
    world_.HangIfTold();
    co_return co_await ForwardingFile::ReadBatch(reads);
  }
  Task<Result<size_t>> ReadAt(uint64_t offset, std::span<uint8_t> buffer) override {
    world_.HangIfTold();
    co_return co_await ForwardingFile::ReadAt(offset, buffer);
  }

 private:
  HangingFiles& world_;
};

inline Task<Result<std::unique_ptr<File>>> HangingFiles::Open(std::string_view path, OpenMode mode,
                                                              FileIo io) {
  const bool watched = path.starts_with(path_prefix_);
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file, co_await ForwardingFiles::Open(path, mode, io));
  if (!watched) co_return std::move(file);
  std::unique_ptr<File> hanging = std::make_unique<HangingFile>(*this, std::move(file));
  co_return std::move(hanging);
}

}  // namespace partita

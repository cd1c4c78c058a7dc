#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/io/sim_random.h"
#include "test/support/forwarding_files.h"

namespace partita {

// Files of a real file system of which, while it is told to, writes and flushes under a path fail at times: a
// failed write was done or not, a failed flush was not. Thread-safe.
class FailingFiles final : public ForwardingFiles {
 public:
  FailingFiles(FileSystem& files, std::string path_prefix, uint64_t seed)
      : ForwardingFiles(files), path_prefix_(std::move(path_prefix)), seed_(seed) {}

  // One of so many writes and flushes fails; 0: none.
  void FailOneOf(uint64_t n) { one_of_.store(n, std::memory_order_relaxed); }
  uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

  Task<Result<std::unique_ptr<File>>> Open(std::string_view path, OpenMode mode, FileIo io) override;

 private:
  class FailingFile;

  // 0: does not fail; else a drawn number.
  uint64_t DrawFailure() {
    const uint64_t one_of = one_of_.load(std::memory_order_relaxed);
    if (one_of == 0) return 0;
    const uint64_t drawn = SimRandom::Mix(seed_ + calls_.fetch_add(1, std::memory_order_relaxed));
    if (drawn % one_of != 0) return 0;
    failed_.fetch_add(1, std::memory_order_relaxed);
    return drawn | 1;
  }

  const std::string path_prefix_;
  const uint64_t seed_;
  std::atomic<uint64_t> one_of_{0}, calls_{0}, failed_{0};
};

class FailingFiles::FailingFile final : public ForwardingFile {
 public:
  FailingFile(FailingFiles& world, std::unique_ptr<File> file)
      : ForwardingFile(std::move(file)), world_(world) {}

  Task<Status> WriteAt(uint64_t offset, std::span<const uint8_t> bytes) override {
    const uint64_t failure = world_.DrawFailure();
    if (failure == 0 || failure % 3 == 0) PARTITA_CO_TRY(co_await ForwardingFile::WriteAt(offset, bytes));
    co_return failure == 0 ? Status() : Status::IoError("write: injected");
  }
  Task<Status> Flush() override {
    if (world_.DrawFailure() != 0) co_return Status::IoError("flush: injected");
    co_return co_await ForwardingFile::Flush();
  }
  Task<Status> WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) override {
    const uint64_t failure = world_.DrawFailure();
    if (failure == 0) co_return co_await ForwardingFile::WriteAndFlush(offset, bytes);
    if (failure % 3 == 0) PARTITA_CO_TRY(co_await ForwardingFile::WriteAt(offset, bytes));
    co_return Status::IoError("write and flush: injected");
  }

 private:
  FailingFiles& world_;
};

inline Task<Result<std::unique_ptr<File>>> FailingFiles::Open(std::string_view path, OpenMode mode,
                                                              FileIo io) {
  const bool watched = path.starts_with(path_prefix_);
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file, co_await ForwardingFiles::Open(path, mode, io));
  if (!watched) co_return std::move(file);
  std::unique_ptr<File> failing = std::make_unique<FailingFile>(*this, std::move(file));
  co_return std::move(failing);
}

}  // namespace partita

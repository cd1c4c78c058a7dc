#pragma once
#include <memory>

#include "engine/io/file.h"
#include "engine/io/posix_file_system.h"
#include "engine/io/transfer.h"

namespace partita {

// One open descriptor. See PosixFileSystem for where each call runs.
class PosixFile final : public File {
 public:
  // Takes the descriptor.
  PosixFile(FileHandle handle, FileIo io, BatchReads batch_reads)
      : handle_(std::move(handle)), io_(io), batch_reads_(batch_reads) {}
  ~PosixFile() override;

  const std::string& path() const override { return handle_.path; }
  Task<Result<size_t>> ReadAt(uint64_t offset, std::span<uint8_t> buffer) override;
  Task<Status> ReadBatch(std::span<const FileRead> reads) override;
  Task<Status> WriteAt(uint64_t offset, std::span<const uint8_t> bytes) override;
  Task<Status> Flush() override;
  Task<Status> WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) override;
  Task<Result<uint64_t>> Size() override;
  Task<Status> Truncate(uint64_t size) override;
  Task<Status> Allocate(uint64_t size) override;
  Task<Status> DropCache() override;

 private:
  // A caller that asked for direct I/O keeps its alignment, whatever the file system granted.
  void AssertAligned(uint64_t offset, std::span<const uint8_t> bytes) const;

  const FileHandle handle_;
  const FileIo io_;
  const BatchReads batch_reads_;
};

}  // namespace partita

#include "engine/io/transfer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/aligned_buffer.h"
#include "engine/io/errno_status.h"

namespace partita {

namespace {

// The kernel moves at most 2 GiB less a page in one call; a round, aligned figure below it.
constexpr size_t kPieceSizeMax = 1u << 30;

}  // namespace

Transfer::Transfer(const FileHandle& file, Kind kind, uint64_t offset, std::span<const uint8_t> buffer)
    : file_(&file),
      kind_(kind),
      offset_(offset),
      data_(const_cast<uint8_t*>(buffer.data())),
      size_(buffer.size()),
      finished_(buffer.empty()) {}

uint32_t Transfer::size() const { return static_cast<uint32_t>(std::min(size_ - next_, kPieceSizeMax)); }

void Transfer::Take(int64_t result) {
  if (result == -EINTR || result == -EAGAIN) {
    if (++interruptions_ > kInterruptionsMax) Fail(static_cast<int>(-result));
    return;
  }
  if (result < 0) return Fail(static_cast<int>(-result));
  const size_t reached = next_ + static_cast<size_t>(result);
  if (reached <= done_) {  // No progress.
    if (kind_ == Kind::kRead) {
      finished_ = true;
    } else {
      status_ = Status::IoError(std::string("write at offset ") + std::to_string(offset()) + " of \"" +
                                file_->path + "\": the kernel wrote nothing and gave no reason");
      finished_ = true;
    }
    return;
  }
  done_ = std::min(reached, size_);
  next_ = file_->direct ? AlignDown(done_, kPageSize) : done_;
  interruptions_ = 0;
  finished_ = done_ == size_;
}

void Transfer::Fail(int error) {
  status_ = ErrnoStatusAt(verb(), file_->path, offset(), error);
  finished_ = true;
}

Status Transfer::PastEnd() const {
  return Status::IoError(std::string("read of ") + std::to_string(size_) + " bytes at offset " +
                         std::to_string(offset_) + " of \"" + file_->path + "\": the file ends at offset " +
                         std::to_string(offset_ + done_));
}

void BlockingTransfer(const FileHandle& file, Transfer& transfer) {
  while (!transfer.finished()) {
    const auto offset = static_cast<off_t>(transfer.offset());
    ssize_t count = transfer.kind() == Transfer::Kind::kRead
                        ? pread(file.descriptor, transfer.data(), transfer.size(), offset)
                        : pwrite(file.descriptor, transfer.data(), transfer.size(), offset);
    transfer.Take(count >= 0 ? count : -errno);
  }
}

Result<size_t> BlockingRead(const FileHandle& file, uint64_t offset, std::span<uint8_t> buffer) {
  Transfer transfer(file, Transfer::Kind::kRead, offset, buffer);
  BlockingTransfer(file, transfer);
  if (!transfer.status().ok()) return transfer.status();
  return transfer.done();
}

Status BlockingWrite(const FileHandle& file, uint64_t offset, std::span<const uint8_t> bytes) {
  Transfer transfer(file, Transfer::Kind::kWrite, offset, bytes);
  BlockingTransfer(file, transfer);
  return transfer.status();
}

Status BlockingFlush(const FileHandle& file) {
  if (fdatasync(file.descriptor) != 0) return ErrnoStatus("fdatasync", file.path, errno);
  return Status();
}

}  // namespace partita

#include "engine/io/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/io/errno_status.h"
#include "engine/io/offload.h"
#include "engine/io/ring_io.h"

namespace partita {

namespace {

UringExecutor* CurrentRing() {
  IoWorker* worker = IoWorker::Current();
  return worker == nullptr ? nullptr : worker->ring();
}

// A descriptor to close on an I/O thread: the last close of a removed file frees its space, which
// can take milliseconds.
struct CloseRequest : Runnable {
  int descriptor;
  explicit CloseRequest(int d) : descriptor(d) {
    run = [](Runnable* self) {
      auto* request = static_cast<CloseRequest*>(self);
      close(request->descriptor);
      delete request;
    };
  }
};

// Reads spread over the I/O threads of a worker that has no ring.
class SpreadReads {
 public:
  SpreadReads(IoWorker& worker, const FileHandle& file, std::span<Transfer> transfers,
              std::source_location at = std::source_location::current())
      : worker_(worker), file_(file), remaining_(transfers.size()), items_(transfers.size()), at_(at) {
    for (size_t i = 0; i < items_.size(); ++i) {
      items_[i].transfer = &transfers[i];
      items_[i].owner = this;
      items_[i].run = &Item::Perform;
    }
  }
  bool await_ready() const { return items_.empty(); }
  void await_suspend(std::coroutine_handle<> handle) {
    resume_.Suspend(handle, at_);
    worker_.OffloadBegins();
    // The coroutine goes on only on this thread, hence not before this loop has ended.
    for (Item& item : items_) worker_.io_threads().Post(&item);
  }
  void await_resume() {
    if (!items_.empty()) worker_.OffloadEnds();
  }

 private:
  struct Item : Runnable {
    Transfer* transfer;
    SpreadReads* owner;

    static void Perform(Runnable* self) {
      auto* item = static_cast<Item*>(self);
      SpreadReads* owner = item->owner;
      BlockingTransfer(owner->file_, *item->transfer);
      // acq_rel: the last one has seen, and hands on, what all others wrote.
      if (owner->remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        owner->worker_.Post(&owner->resume_);
      }
    }
  };

  IoWorker& worker_;
  const FileHandle& file_;
  std::atomic<size_t> remaining_;
  std::vector<Item> items_;
  std::source_location at_;
  ResumeRunnable resume_;
};

}  // namespace

PosixFile::~PosixFile() {
  IoWorker* worker = IoWorker::Current();
  auto* request = worker == nullptr ? nullptr : new (std::nothrow) CloseRequest(handle_.descriptor);
  if (request == nullptr) {
    close(handle_.descriptor);
  } else {
    worker->io_threads().Post(request);
  }
}

void PosixFile::AssertAligned(uint64_t offset, std::span<const uint8_t> bytes) const {
  if (io_ != FileIo::kDirect) return;
  PARTITA_ASSERT(offset % kPageSize == 0);
  PARTITA_ASSERT(bytes.size() % kPageSize == 0);
  PARTITA_ASSERT(reinterpret_cast<uintptr_t>(bytes.data()) % kPageSize == 0);
}

Task<Result<size_t>> PosixFile::ReadAt(uint64_t offset, std::span<uint8_t> buffer) {
  AssertAligned(offset, buffer);
  if (UringExecutor* ring = CurrentRing()) {
    Transfer transfer(handle_, Transfer::Kind::kRead, offset, buffer);
    co_await RingTransferAll(*ring, handle_, std::span(&transfer, 1));
    if (!transfer.status().ok()) co_return transfer.status();
    co_return transfer.done();
  }
  auto read = [this, offset, buffer] { return BlockingRead(handle_, offset, buffer); };
  co_return co_await Offload(read);
}

Task<Status> PosixFile::ReadBatch(std::span<const FileRead> reads) {
  std::vector<Transfer> transfers;
  transfers.reserve(reads.size());
  for (const FileRead& read : reads) {
    AssertAligned(read.offset, read.buffer);
    transfers.emplace_back(handle_, Transfer::Kind::kRead, read.offset, read.buffer);
  }
  IoWorker* worker = IoWorker::Current();
  if (worker != nullptr && worker->ring() != nullptr) {
    co_await RingTransferAll(*worker->ring(), handle_, transfers);
  } else if (worker != nullptr) {
    co_await SpreadReads(*worker, handle_, transfers);
  } else if (transfers.size() == 1 || batch_reads_ == BatchReads::kCallByCall ||
             !ThreadRingTransferAll(handle_, transfers)) {
    for (Transfer& transfer : transfers) BlockingTransfer(handle_, transfer);
  }
  for (const Transfer& transfer : transfers) {
    PARTITA_CO_TRY(transfer.status());
    if (!transfer.complete()) co_return transfer.PastEnd();
  }
  co_return Status();
}

Task<Status> PosixFile::WriteAt(uint64_t offset, std::span<const uint8_t> bytes) {
  AssertAligned(offset, bytes);
  if (UringExecutor* ring = CurrentRing()) {
    Transfer transfer(handle_, Transfer::Kind::kWrite, offset, bytes);
    co_await RingTransferAll(*ring, handle_, std::span(&transfer, 1));
    co_return transfer.status();
  }
  auto write = [this, offset, bytes] { return BlockingWrite(handle_, offset, bytes); };
  co_return co_await Offload(write);
}

Task<Status> PosixFile::Flush() {
  if (UringExecutor* ring = CurrentRing()) co_return co_await RingFlush(*ring, handle_);
  auto flush = [this] { return BlockingFlush(handle_); };
  co_return co_await Offload(flush);
}

Task<Status> PosixFile::WriteAndFlush(uint64_t offset, std::span<const uint8_t> bytes) {
  AssertAligned(offset, bytes);
  if (UringExecutor* ring = CurrentRing())
    co_return co_await RingWriteAndFlush(*ring, handle_, offset, bytes);
  auto both = [this, offset, bytes]() -> Status {
    PARTITA_TRY(BlockingWrite(handle_, offset, bytes));
    return BlockingFlush(handle_);
  };
  co_return co_await Offload(both);
}

Task<Result<uint64_t>> PosixFile::Size() {
  auto size = [this]() -> Result<uint64_t> {
    struct stat information {};
    if (fstat(handle_.descriptor, &information) != 0) return ErrnoStatus("fstat", handle_.path, errno);
    return static_cast<uint64_t>(information.st_size);
  };
  co_return co_await Offload(size);
}

Task<Status> PosixFile::Truncate(uint64_t size) {
  auto truncate = [this, size]() -> Status {
    if (ftruncate(handle_.descriptor, static_cast<off_t>(size)) != 0) {
      return ErrnoStatusAt("truncate", handle_.path, size, errno);
    }
    return Status();
  };
  co_return co_await Offload(truncate);
}

Task<Status> PosixFile::Allocate(uint64_t size) {
  auto allocate = [this, size]() -> Status {
    for (uint32_t i = 0; i < kInterruptionsMax; ++i) {  // F24.
      if (fallocate(handle_.descriptor, 0, 0, static_cast<off_t>(size)) == 0) return Status();
      if (errno != EINTR) break;
    }
    return ErrnoStatusAt("allocate", handle_.path, size, errno);
  };
  co_return co_await Offload(allocate);
}

Task<Status> PosixFile::DropCache() {
  auto drop = [this]() -> Status {
    int error = posix_fadvise(handle_.descriptor, 0, 0, POSIX_FADV_DONTNEED);
    if (error != 0) return ErrnoStatus("drop the cached pages of", handle_.path, error);
    return Status();
  };
  co_return co_await Offload(drop);
}

}  // namespace partita

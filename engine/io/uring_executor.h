#pragma once
#include <coroutine>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/io/io_worker.h"
#include "engine/io/transfer.h"
#include "engine/io/uring.h"

namespace partita {

class RingBatch;
class RingSockets;

// One operation on a descriptor, performed by a ring.
struct RingOperation {
  enum class Kind : uint8_t { kRead, kWrite, kFlush };
  Kind kind = Kind::kRead;
  bool linked = false;  // The next one of the batch starts only after this one succeeded whole.
  // Before one that it is linked to: unless it fails, or moves less, it ends without a completion; and if it
  // does, the other one ends without. So the two have one completion, and a sleeping worker wakes once.
  // Its result must stand there beforehand as that of a success, the other one's as -ECANCELED.
  bool silent = false;
  int descriptor = -1;
  uint64_t offset = 0;
  uint8_t* data = nullptr;
  uint32_t size = 0;
  int32_t result = 0;  // Bytes or a negative errno, once the batch is over.
  RingBatch* batch = nullptr;

  static RingOperation Piece(const FileHandle& file, const Transfer& transfer);
  static RingOperation Flush(const FileHandle& file);
};

// Fills in a submission; `operation` comes back as its user data.
void PrepareSubmission(io_uring_sqe* sqe, RingOperation* operation);

// What an operation other than those on files reports to.
class RingCompletion {
 public:
  // More completions of the operation follow when `flags` has IORING_CQE_F_MORE. Called while
  // completions are reaped: may post work, but submits nothing.
  virtual void Completed(int32_t result, uint32_t flags) = 0;

 protected:
  ~RingCompletion() = default;
};

// A shard's worker whose file and network I/O goes through its own ring.
//
// Operations are queued, handed to the kernel some at a time or at the end of a turn, and their completions
// reaped in bulk. Completions that overflow the ring wait in the kernel and are fetched (F60). Operations,
// their buffers and descriptors stay untouched until their completion (F62).
class UringExecutor final : public IoWorker {
 public:
  UringExecutor(TaskPool& io_threads, const Uring::Options& options);
  ~UringExecutor() override;

  UringExecutor* ring() override { return this; }
  Result<WorkerSockets*> Sockets() override;

  // Queues all operations of a batch; resumes its coroutine when all are over.
  void Submit(std::span<RingOperation> operations);

  // An operation that reports to a RingCompletion: get a submission, prepare it, then attach.
  io_uring_sqe* NextOperation() { return NextSubmission(); }
  void Attach(io_uring_sqe* sqe, RingCompletion* completion);
  // What a cancellation names the operation by.
  static uint64_t Tag(RingCompletion* completion);
  io_uring* handle() { return uring_.get(); }
  // Operations may be silent here.
  bool KnowsSilence() const { return uring_.SkipsCompletions(); }

  uint64_t overflows_seen() const { return overflows_seen_; }  // For tests.

 protected:
  Status SetUp() override;
  void TearDown() override;
  void Poll() override;
  void Sleep(uint64_t wait_ns) override;
  bool NothingInFlight() const override { return in_flight_ == 0; }

 private:
  io_uring_sqe* NextSubmission();
  void SubmitQueued();
  void CheckChains();
  void ArmWake();
  void Reap();
  void Completed(const io_uring_cqe& completion);

  const Uring::Options options_;
  Uring uring_;
  std::unique_ptr<RingSockets> sockets_;
  uint64_t in_flight_ = 0;
  uint64_t overflows_seen_ = 0;
  bool wake_armed_ = false;  // A read of the mailbox's eventfd is in the kernel's hands.
  uint64_t wake_count_ = 0;  // What it reads into.
};

// `co_await RingBatch(ring, operations);` performs them all. REQUIRES: on the ring's thread.
class RingBatch {
 public:
  RingBatch(UringExecutor& ring, std::span<RingOperation> operations,
            std::source_location at = std::source_location::current())
      : ring_(ring), operations_(operations), remaining_(CompletionsOf(operations)), at_(at) {}

  bool await_ready() const { return operations_.empty(); }
  void await_suspend(std::coroutine_handle<> handle) {
    resume_.Suspend(handle, at_);
    for (RingOperation& operation : operations_) operation.batch = this;
    ring_.Submit(operations_);
  }
  void await_resume() {}

 private:
  friend class UringExecutor;
  static size_t CompletionsOf(std::span<const RingOperation> operations);

  UringExecutor& ring_;
  std::span<RingOperation> operations_;
  size_t remaining_;
  std::source_location at_;
  ResumeRunnable resume_;
};

}  // namespace partita

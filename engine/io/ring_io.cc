#include "engine/io/ring_io.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "engine/io/errno_status.h"

namespace partita {

namespace {

// The transfers that still have a piece to move, and one operation for each.
struct Round {
  std::vector<Transfer*> transfers;
  std::vector<RingOperation> operations;

  Round(const FileHandle& file, std::span<Transfer> all, size_t count_max) {
    for (Transfer& transfer : all) {
      if (transfer.finished()) continue;
      if (transfers.size() == count_max) break;
      transfers.push_back(&transfer);
      operations.push_back(RingOperation::Piece(file, transfer));
    }
  }
  bool empty() const { return transfers.empty(); }
  void TakeResults() {
    for (size_t i = 0; i < transfers.size(); ++i) transfers[i]->Take(operations[i].result);
  }
};

// A blocking thread's own ring for batch reads. Opened at the first batch, closed with the thread.
class ThreadRing {
 public:
  ThreadRing() = default;
  ~ThreadRing() { has_ended_ = true; }
  ThreadRing(const ThreadRing&) = delete;
  ThreadRing& operator=(const ThreadRing&) = delete;

  // Null when this thread cannot have one, which is tried once, or not any more.
  static ThreadRing* OfThisThread() {
    static thread_local ThreadRing ring;
    if (has_ended_) return nullptr;  // What else of the thread ends later, and reads, does without one.
    if (ring.state_ == State::kOpen && !ring.uring_.OpenedByThisProcess()) {
      ring.uring_.Close();
      ring.state_ = State::kUntried;
    }
    if (ring.state_ == State::kUntried) {
      Status opened =
          ring.uring_.Open({.submissions = kThreadRingDepth, .completions = 2 * kThreadRingDepth});
      ring.state_ = opened.ok() ? State::kOpen : State::kRefused;
    }
    return ring.state_ == State::kOpen ? &ring : nullptr;
  }

  // Returns once all are over (F60, F62).
  void Perform(std::span<RingOperation> operations) {
    PARTITA_ASSERT(operations.size() <= kThreadRingDepth);
    for (RingOperation& operation : operations) {
      io_uring_sqe* sqe = io_uring_get_sqe(uring_.get());
      PARTITA_ASSERT(sqe != nullptr);  // Each round leaves the ring empty.
      PrepareSubmission(sqe, &operation);
    }
    size_t remaining = operations.size();
    while (remaining > 0) {
      // All of them: nothing is to be done between, and each wake-up costs more than a completion.
      int result = io_uring_submit_and_wait(uring_.get(), static_cast<unsigned>(remaining));
      if (result < 0) {
        PARTITA_ASSERT(result == -EINTR || result == -EAGAIN || result == -EBUSY);
        sched_yield();
      }
      remaining -= Reap();
    }
  }

 private:
  enum class State : uint8_t { kUntried, kOpen, kRefused };

  size_t Reap() {
    io_uring_cqe* completions[kThreadRingDepth];
    unsigned count = io_uring_peek_batch_cqe(uring_.get(), completions, kThreadRingDepth);
    for (unsigned i = 0; i < count; ++i) {
      static_cast<RingOperation*>(io_uring_cqe_get_data(completions[i]))->result = completions[i]->res;
    }
    io_uring_cq_advance(uring_.get(), count);
    return count;
  }

  // Not the ring's: its memory is void by then.
  static constinit inline thread_local bool has_ended_ = false;

  Uring uring_;
  State state_ = State::kUntried;
};

}  // namespace

Task<void> RingTransferAll(UringExecutor& ring, const FileHandle& file, std::span<Transfer> transfers) {
  if (transfers.size() == 1) {  // The common case allocates nothing.
    Transfer& transfer = transfers[0];
    while (!transfer.finished()) {
      RingOperation operation = RingOperation::Piece(file, transfer);
      co_await RingBatch(ring, std::span(&operation, 1));
      transfer.Take(operation.result);
    }
    co_return;
  }
  while (true) {
    Round round(file, transfers, transfers.size());
    if (round.empty()) co_return;
    co_await RingBatch(ring, round.operations);
    round.TakeResults();
  }
}

Task<Status> RingFlush(UringExecutor& ring, const FileHandle& file) {
  RingOperation flush = RingOperation::Flush(file);
  co_await RingBatch(ring, std::span(&flush, 1));
  // Never retried, whatever it says (F20).
  if (flush.result < 0) co_return ErrnoStatus("fdatasync", file.path, -flush.result);
  co_return Status();
}

Task<Status> RingWriteAndFlush(UringExecutor& ring, const FileHandle& file, uint64_t offset,
                               std::span<const uint8_t> bytes) {
  Transfer transfer(file, Transfer::Kind::kWrite, offset, bytes);
  if (transfer.finished()) co_return co_await RingFlush(ring, file);
  RingOperation chain[2] = {RingOperation::Piece(file, transfer), RingOperation::Flush(file)};
  chain[0].linked = true;
  if (ring.KnowsSilence()) {
    chain[0].silent = true;
    chain[0].result = static_cast<int32_t>(chain[0].size);
    chain[1].result = -ECANCELED;
  }
  co_await RingBatch(ring, std::span(chain, 2));
  transfer.Take(chain[0].result);

  if (transfer.finished()) {
    PARTITA_CO_TRY(transfer.status());
    // The chain broke behind a whole write: a failure of both (F61).
    if (chain[1].result < 0) co_return ErrnoStatus("fdatasync", file.path, -chain[1].result);
    co_return Status();
  }
  // The write came short or was interrupted. Whether the flush ran all the same or was cancelled,
  // it proves nothing for what is written now (F61), unless it failed in earnest (F20).
  if (chain[1].result < 0 && chain[1].result != -ECANCELED) {
    co_return ErrnoStatus("fdatasync", file.path, -chain[1].result);
  }
  co_await RingTransferAll(ring, file, std::span(&transfer, 1));
  PARTITA_CO_TRY(transfer.status());
  co_return co_await RingFlush(ring, file);
}

bool ThreadRingTransferAll(const FileHandle& file, std::span<Transfer> transfers) {
  ThreadRing* ring = ThreadRing::OfThisThread();
  if (ring == nullptr) return false;
  while (true) {
    Round round(file, transfers, kThreadRingDepth);
    if (round.empty()) return true;
    ring->Perform(round.operations);
    round.TakeResults();
  }
}

}  // namespace partita

#include "engine/io/uring_executor.h"

#include <sched.h>

#include <array>
#include <cerrno>

#include "engine/io/ring_sockets.h"

namespace partita {

namespace {

// User data of the read of the eventfd; no operation has this address.
constexpr uint64_t kWakeTag = 1;
// Set in the user data of operations that report to a RingCompletion; addresses leave it free.
constexpr uint64_t kCompletionTag = 2;
static_assert(alignof(RingCompletion) >= 4 && alignof(RingOperation) >= 4);
constexpr unsigned kReapBatch = 64;
// An operation of this size is worth a system call of its own: who reads ahead goes on working, for as long
// as the device needs, before its turn ends.
constexpr uint32_t kLargeBytes = 64 * 1024;
// So many small ones are, too: the device has work while the turn goes on. (Each call rings the bell of the
// disk, an exit of the virtual machine: with four `async-read` takes a tenth more CPU.)
constexpr unsigned kSubmissionsPerCall = 8;

}  // namespace

RingOperation RingOperation::Piece(const FileHandle& file, const Transfer& transfer) {
  RingOperation operation;
  operation.kind = transfer.kind() == Transfer::Kind::kRead ? Kind::kRead : Kind::kWrite;
  operation.descriptor = file.descriptor;
  operation.offset = transfer.offset();
  operation.data = transfer.data();
  operation.size = transfer.size();
  return operation;
}

RingOperation RingOperation::Flush(const FileHandle& file) {
  RingOperation operation;
  operation.kind = Kind::kFlush;
  operation.descriptor = file.descriptor;
  return operation;
}

void PrepareSubmission(io_uring_sqe* sqe, RingOperation* operation) {
  switch (operation->kind) {
    case RingOperation::Kind::kRead:
      io_uring_prep_read(sqe, operation->descriptor, operation->data, operation->size, operation->offset);
      break;
    case RingOperation::Kind::kWrite:
      io_uring_prep_write(sqe, operation->descriptor, operation->data, operation->size, operation->offset);
      break;
    case RingOperation::Kind::kFlush:
      io_uring_prep_fsync(sqe, operation->descriptor, IORING_FSYNC_DATASYNC);
      break;
  }
  if (operation->linked) sqe->flags |= IOSQE_IO_LINK;
  if (operation->silent) sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
  io_uring_sqe_set_data(sqe, operation);
}

size_t RingBatch::CompletionsOf(std::span<const RingOperation> operations) {
  size_t count = 0;
  for (const RingOperation& operation : operations) count += operation.silent ? 0 : 1;
  return count;
}

UringExecutor::UringExecutor(TaskPool& io_threads, const Uring::Options& options)
    : IoWorker(io_threads), options_(options) {}

UringExecutor::~UringExecutor() = default;

Status UringExecutor::SetUp() { return uring_.Open(options_); }

void UringExecutor::TearDown() {
  PARTITA_ASSERT(in_flight_ == 0);
  uring_.Close();  // Takes the armed read of the eventfd with it.
  sockets_.reset();
}

Result<WorkerSockets*> UringExecutor::Sockets() {
  if (sockets_ == nullptr) {
    PARTITA_ASSIGN(sockets_, RingSockets::Open(*this));
  }
  return sockets_.get();
}

void UringExecutor::Attach(io_uring_sqe* sqe, RingCompletion* completion) {
  io_uring_sqe_set_data64(sqe, Tag(completion));
  ++in_flight_;
}

uint64_t UringExecutor::Tag(RingCompletion* completion) {
  return reinterpret_cast<uint64_t>(completion) | kCompletionTag;
}

void UringExecutor::Submit(std::span<RingOperation> operations) {
  bool large = false;
  for (size_t i = 0; i < operations.size(); ++i) {
    // A chain must reach the kernel in one submission, or it is no chain.
    if (operations[i].linked && io_uring_sq_space_left(uring_.get()) < 2) SubmitQueued();
    io_uring_sqe* sqe = NextSubmission();
    PrepareSubmission(sqe, &operations[i]);
    if (!operations[i].silent) ++in_flight_;  // Counts completions to come.
    large = large || operations[i].size >= kLargeBytes;
  }
  if (large || io_uring_sq_ready(uring_.get()) >= kSubmissionsPerCall) SubmitQueued();
}

io_uring_sqe* UringExecutor::NextSubmission() {
  io_uring_sqe* sqe = io_uring_get_sqe(uring_.get());
  while (sqe == nullptr) {
    SubmitQueued();
    sqe = io_uring_get_sqe(uring_.get());
  }
  return sqe;
}

// Hands everything queued to the kernel.
void UringExecutor::SubmitQueued() {
  while (io_uring_sq_ready(uring_.get()) > 0) {
    int result = io_uring_submit(uring_.get());
    CheckChains();
    if (result >= 0) continue;
    // Short of memory, or too many completions wait to be fetched: take those and try again.
    PARTITA_ASSERT(result == -EAGAIN || result == -EBUSY || result == -EINTR);
    io_uring_get_events(uring_.get());
    Reap();
    sched_yield();
  }
}

// A kernel that has no memory for the next entry takes those before it alone: a flush whose write went ahead
// of it so could end first, and prove nothing (F61). It cannot be called back (F27). To be asked whenever the
// kernel was given entries, whatever it said of how many: that of the last it took is not overwritten yet.
void UringExecutor::CheckChains() {
  const io_uring_sq& queue = uring_.get()->sq;
  const unsigned head = io_uring_smp_load_acquire(queue.khead);
  const bool is_cut = io_uring_sq_ready(uring_.get()) > 0 &&
                      (queue.sqes[(head - 1) & queue.ring_mask].flags & IOSQE_IO_LINK) != 0;
  PARTITA_ASSERT(!is_cut);
}

void UringExecutor::Poll() {
  SubmitQueued();
  if (in_flight_ > 0 || wake_armed_) Reap();
}

void UringExecutor::Sleep(uint64_t wait_ns) {
  ArmWake();
  if (HasWork()) return;  // It may have come to completions.
  io_uring_cqe* first = nullptr;
  int result;
  if (wait_ns == kForever) {
    result = io_uring_submit_and_wait(uring_.get(), 1);
  } else {
    __kernel_timespec timeout{static_cast<int64_t>(wait_ns / 1'000'000'000),
                              static_cast<long long>(wait_ns % 1'000'000'000)};
    result = io_uring_submit_and_wait_timeout(uring_.get(), &first, 1, &timeout, nullptr);
  }
  CheckChains();
  PARTITA_ASSERT(result >= 0 || result == -ETIME || result == -EINTR || result == -EAGAIN ||
                 result == -EBUSY);
  Reap();
}

void UringExecutor::ArmWake() {
  if (wake_armed_) return;
  io_uring_sqe* sqe = NextSubmission();
  io_uring_prep_read(sqe, mailbox().wake_descriptor(), &wake_count_, sizeof wake_count_, 0);
  io_uring_sqe_set_data64(sqe, kWakeTag);
  wake_armed_ = true;
}

void UringExecutor::Reap() {
  std::array<io_uring_cqe*, kReapBatch> completions;
  while (true) {
    if (IO_URING_READ_ONCE(*uring_.get()->sq.kflags) & IORING_SQ_CQ_OVERFLOW) ++overflows_seen_;
    // Also runs the kernel's deferred work and fetches overflowed completions when there are any.
    unsigned count = io_uring_peek_batch_cqe(uring_.get(), completions.data(), kReapBatch);
    if (count == 0) return;
    for (unsigned i = 0; i < count; ++i) Completed(*completions[i]);
    io_uring_cq_advance(uring_.get(), count);
  }
}

void UringExecutor::Completed(const io_uring_cqe& completion) {
  const uint64_t user_data = completion.user_data;
  if (user_data == kWakeTag) {
    wake_armed_ = false;
    return;
  }
  if ((user_data & kCompletionTag) != 0) {
    if ((completion.flags & IORING_CQE_F_MORE) == 0) --in_flight_;
    auto* receiver = reinterpret_cast<RingCompletion*>(user_data & ~kCompletionTag);
    receiver->Completed(completion.res, completion.flags);
    return;
  }
  auto* operation = reinterpret_cast<RingOperation*>(user_data);
  operation->result = completion.res;
  --in_flight_;
  RingBatch* batch = operation->batch;
  if (--batch->remaining_ == 0) Enqueue(&batch->resume_);
}

}  // namespace partita

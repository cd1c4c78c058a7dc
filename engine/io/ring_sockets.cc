#include "engine/io/ring_sockets.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "engine/io/errno_status.h"

namespace partita {

namespace {

constexpr size_t kDescriptorBytes = RingBuffers::kCount * sizeof(io_uring_buf);
constexpr size_t kMappedBytes = size_t{RingBuffers::kCount} * RingBuffers::kBytes + kDescriptorBytes;
static_assert((RingBuffers::kCount & (RingBuffers::kCount - 1)) == 0);

// More than this unread while nobody receives stops the receiving: the rest waits with the peer.
constexpr size_t kInboxBytesMax = 16 << 10;

// A connection whose receive stays armed in the ring.
class RingConnection final : public Connection {
 public:
  RingConnection(RingSockets& sockets, int descriptor) : Connection(sockets, descriptor), ring_(sockets) {
    receive_.owner = send_.owner = cancel_.owner = this;
    submit_.owner = this;
    submit_.where = std::source_location::current();
    submit_.run = [](Runnable* self) { static_cast<Deferred*>(self)->owner->SubmitWhatIsDue(); };
    ArmReceive();
  }

 private:
  ~RingConnection() override = default;

  struct Receive final : RingCompletion {
    RingConnection* owner;
    void Completed(int32_t result, uint32_t flags) override { owner->Received(result, flags); }
  };
  struct Send final : RingCompletion {
    RingConnection* owner;
    void Completed(int32_t result, uint32_t) override { owner->SendCompleted(result); }
  };
  struct Cancel final : RingCompletion {
    RingConnection* owner;
    void Completed(int32_t, uint32_t) override {
      owner->cancelling_ = false;
      owner->DeleteIfDone();
    }
  };
  // What follows from a completion is submitted in the next turn, not while completions are reaped.
  struct Deferred : Runnable {
    RingConnection* owner;
  };

  void WantInput() override {
    if (!armed_ && !input_ended()) ArmReceive();
  }

  void ArmReceive() {
    io_uring_sqe* sqe = ring_.ring().NextOperation();
    io_uring_prep_recv_multishot(sqe, descriptor_, nullptr, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = RingBuffers::kGroup;
    ring_.ring().Attach(sqe, &receive_);
    armed_ = true;
  }

  void Received(int32_t result, uint32_t flags) {
    armed_ = (flags & IORING_CQE_F_MORE) != 0;
    if ((flags & IORING_CQE_F_BUFFER) != 0) {
      const uint32_t buffer = flags >> IORING_CQE_BUFFER_SHIFT;
      if (result > 0 && !released_) Deliver(ring_.buffers().At(buffer), static_cast<size_t>(result));
      ring_.GiveBackLater(buffer);
    }
    if (released_) {
      DeleteIfDone();
      return;
    }
    if (result == 0) {
      DeliverEnd(0);
    } else if (result < 0 && result != -ENOBUFS && result != -ECANCELED && result != -EINTR &&
               result != -EAGAIN) {
      DeliverEnd(-result);
    }
    const bool pause = armed_ && !cancelling_ && !reader_waits() && inbox_size() > kInboxBytesMax;
    const bool again = !armed_ && !input_ended() && reader_waits();
    if (pause || again) Defer();
  }

  void Defer() {
    if (deferred_) return;
    deferred_ = true;
    ring_.worker().Post(&submit_);
  }

  void SubmitWhatIsDue() {
    deferred_ = false;
    if (released_) {
      DeleteIfDone();
      return;
    }
    if (sending()) SubmitSendIfDue();
    if (!armed_ && !input_ended() && reader_waits()) ArmReceive();
    if (armed_ && !cancelling_ && !reader_waits() && inbox_size() > kInboxBytesMax) {
      io_uring_sqe* sqe = ring_.ring().NextOperation();
      io_uring_prep_cancel64(sqe, UringExecutor::Tag(&receive_), 0);
      ring_.ring().Attach(sqe, &cancel_);
      cancelling_ = true;
    }
  }

  void StartSend() override {
    send_due_ = true;
    SubmitSendIfDue();
  }

  void SubmitSendIfDue() {
    if (!send_due_) return;
    send_due_ = false;
    io_uring_sqe* sqe = ring_.ring().NextOperation();
    const int flags = MSG_NOSIGNAL | (send_more_ == More::kYes ? MSG_MORE : 0);
    io_uring_prep_send(sqe, descriptor_, send_rest_.data(), send_rest_.size(), flags);
    ring_.ring().Attach(sqe, &send_);
  }

  void SendCompleted(int32_t result) {
    const bool try_again = result == -EINTR || result == -EAGAIN;
    if (!try_again && !Sent(result)) return;
    send_due_ = true;
    Defer();
  }

  void CloseAndDelete() override {
    released_ = true;
    if (armed_) shutdown(descriptor_, SHUT_RDWR);  // Ends the armed receive.
    DeleteIfDone();
  }

  void DeleteIfDone() {
    if (!released_ || armed_ || cancelling_ || deferred_) return;
    close(descriptor_);
    delete this;
  }

  RingSockets& ring_;
  Receive receive_;
  Send send_;
  Cancel cancel_;
  Deferred submit_;
  bool armed_ = false;  // The receive is in the kernel's hands.
  bool cancelling_ = false;
  bool deferred_ = false;
  bool send_due_ = false;
  bool released_ = false;
};

class RingAcceptor final : public Acceptor, private RingCompletion {
 public:
  RingAcceptor(RingSockets& sockets, int descriptor, Taker taker)
      : ring_(sockets), descriptor_(descriptor), taker_(std::move(taker)) {
    arm_.owner = this;
    arm_.where = std::source_location::current();
    arm_.run = [](Runnable* self) { static_cast<Deferred*>(self)->owner->ArmOrEnd(); };
    rest_.owner = this;
    rest_.run = arm_.run;
    rest_.where = arm_.where;
    ArmOrEnd();
  }
  ~RingAcceptor() override { PARTITA_ASSERT(descriptor_ < 0); }

  void Stop(Event* stopped) override {
    stopped_ = stopped;
    shutdown(descriptor_, SHUT_RD);  // Ends the armed accept, and refuses whoever waits.
  }

 private:
  struct Deferred : Runnable {
    RingAcceptor* owner;
  };

  void ArmOrEnd() {
    if (stopped_ != nullptr) {
      close(std::exchange(descriptor_, -1));
      stopped_->Set();
      return;
    }
    io_uring_sqe* sqe = ring_.ring().NextOperation();
    io_uring_prep_multishot_accept(sqe, descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
    ring_.ring().Attach(sqe, this);
  }

  void Completed(int32_t result, uint32_t flags) override {
    const bool failed = result < 0 && !AcceptGoesOn(-result);
    if (result >= 0) taker_(result);
    if (failed && stopped_ == nullptr) taker_(-1);
    if ((flags & IORING_CQE_F_MORE) != 0) return;
    if (failed && stopped_ == nullptr) {
      ring_.worker().PostAt(ring_.worker().MonotonicNanos() + kRestNanos, &rest_);
    } else {
      ring_.worker().Post(&arm_);
    }
  }

  RingSockets& ring_;
  int descriptor_;
  Taker taker_;
  Event* stopped_ = nullptr;
  Deferred arm_;
  Deferred rest_;
};

}  // namespace

RingBuffers::~RingBuffers() {
  if (memory_ != nullptr) munmap(memory_, kMappedBytes);
}

Status RingBuffers::Open(io_uring* ring) {
  void* mapped = mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return ErrnoStatus("map", "receive buffers", errno);
  memory_ = static_cast<char*>(mapped);
  ring_ = reinterpret_cast<io_uring_buf_ring*>(memory_ + size_t{kCount} * kBytes);
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uint64_t>(ring_);
  registration.ring_entries = kCount;
  registration.bgid = kGroup;
  const int error = -io_uring_register_buf_ring(ring, &registration, 0);
  if (error == EINVAL) return UringRefused(error);
  if (error != 0) return ErrnoStatus("register", "receive buffers", error);
  io_uring_buf_ring_init(ring_);
  for (uint32_t i = 0; i < kCount; ++i) GiveBack(i);
  return Status();
}

void RingBuffers::GiveBack(uint32_t buffer) {
  io_uring_buf_ring_add(ring_, memory_ + size_t{buffer} * kBytes, kBytes, static_cast<uint16_t>(buffer),
                        io_uring_buf_ring_mask(kCount), 0);
  io_uring_buf_ring_advance(ring_, 1);
}

RingSockets::RingSockets(UringExecutor& ring) : WorkerSockets(ring), ring_(ring) {
  returning_.owner = this;
  returning_.where = std::source_location::current();
  returning_.run = [](Runnable* self) { static_cast<Returning*>(self)->owner->GiveBackAll(); };
  returned_.reserve(RingBuffers::kCount);
}

void RingSockets::GiveBackLater(uint32_t buffer) {
  if (returned_.empty()) worker().Post(&returning_);
  returned_.push_back(buffer);
}

void RingSockets::GiveBackAll() {
  for (const uint32_t buffer : returned_) buffers_.GiveBack(buffer);
  returned_.clear();
}

Result<std::unique_ptr<RingSockets>> RingSockets::Open(UringExecutor& ring) {
  std::unique_ptr<RingSockets> sockets(new RingSockets(ring));
  PARTITA_TRY(sockets->buffers_.Open(ring.handle()));
  return sockets;
}

ConnectionHandle RingSockets::Adopt(int descriptor) {
  return ConnectionHandle(new RingConnection(*this, descriptor));
}

std::unique_ptr<Acceptor> RingSockets::Accept(int descriptor, Acceptor::Taker taker) {
  return std::make_unique<RingAcceptor>(*this, descriptor, std::move(taker));
}

int RingSockets::socket_flags() const { return SOCK_CLOEXEC; }

}  // namespace partita

#include "engine/io/epoll_sockets.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "engine/io/thread_executor.h"

namespace partita {

namespace {

// A connection that is told of readiness once per change of it (edge-triggered), in both directions.
class EpollConnection final : public Connection, private ReadinessTaker {
 public:
  EpollConnection(EpollSockets& sockets, int descriptor) : Connection(sockets, descriptor), epoll_(sockets) {
    const int error = epoll_.executor().Watch(descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, this);
    if (error != 0) DeliverEnd(error);
  }

 private:
  ~EpollConnection() override = default;

  void Ready(uint32_t events) override {
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
      readable_ = true;
      // Otherwise the end could hide behind a short read, and no event would tell of it again.
      if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) end_is_near_ = true;
      if ((events & EPOLLERR) != 0) PeerIsGone();
      if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0) PeerHungUp();
      if (reader_waits()) Look();
    }
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0 && sending()) StartSend();
  }

  void Look() override {
    if (!readable_ || input_ended()) return;
    ssize_t size;
    do {
      size = recv(descriptor_, epoll_.scratch(), EpollSockets::kScratchBytes, 0);
    } while (size < 0 && errno == EINTR);
    if (size > 0) {
      readable_ = size == EpollSockets::kScratchBytes || end_is_near_;
      Deliver(epoll_.scratch(), static_cast<size_t>(size));
    } else if (size == 0) {
      DeliverEnd(0);
    } else if (errno == EAGAIN) {
      readable_ = false;
    } else {
      DeliverEnd(errno);
    }
  }

  void StartSend() override {
    const int flags = MSG_NOSIGNAL | (send_more_ == More::kYes ? MSG_MORE : 0);
    ssize_t size;
    do {
      size = send(descriptor_, send_rest_.data(), send_rest_.size(), flags);
      if (size < 0 && errno == EAGAIN) return;  // EPOLLOUT will come.
    } while (size < 0 ? errno == EINTR : Sent(size));
    if (size < 0) (void)Sent(-errno);
  }

  void CloseAndDelete() override {
    epoll_.executor().Unwatch(descriptor_);
    close(descriptor_);
    delete this;
  }

  EpollSockets& epoll_;
  bool readable_ = false;
  bool end_is_near_ = false;
};

class EpollAcceptor final : public Acceptor, private ReadinessTaker {
 public:
  EpollAcceptor(EpollSockets& sockets, int descriptor, Taker taker)
      : epoll_(sockets), descriptor_(descriptor), taker_(std::move(taker)) {
    again_.owner = this;
    again_.where = std::source_location::current();
    again_.run = [](Runnable* self) { static_cast<Deferred*>(self)->owner->Again(); };
    if (epoll_.executor().Watch(descriptor, EPOLLIN | EPOLLET, this) != 0) Rest();
  }
  ~EpollAcceptor() override { PARTITA_ASSERT(descriptor_ < 0); }

  void Stop(Event* stopped) override {
    epoll_.executor().Unwatch(descriptor_);
    close(std::exchange(descriptor_, -1));
    stopped_ = stopped;
    if (!waiting_) stopped_->Set();
  }

 private:
  // At most so many at once, so that a flood of connections leaves the worker time for those it has.
  static constexpr int kAcceptsAtOnce = 64;
  struct Deferred : Runnable {
    EpollAcceptor* owner;
  };

  void Ready(uint32_t) override {
    if (!waiting_) TakeSome();
  }

  void Again() {
    waiting_ = false;
    if (stopped_ != nullptr) {
      stopped_->Set();
      return;
    }
    // Without effect when it is watched already.
    (void)epoll_.executor().Watch(descriptor_, EPOLLIN | EPOLLET, this);
    TakeSome();
  }

  void TakeSome() {
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
      const int accepted = accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (accepted >= 0) {
        taker_(accepted);
      } else if (errno == EAGAIN) {
        return;
      } else if (!AcceptGoesOn(errno)) {
        taker_(-1);
        return Rest();
      }
    }
    waiting_ = true;
    epoll_.worker().Post(&again_);
  }

  void Rest() {
    waiting_ = true;
    epoll_.worker().PostAt(epoll_.worker().MonotonicNanos() + kRestNanos, &again_);
  }

  EpollSockets& epoll_;
  int descriptor_;
  Taker taker_;
  bool waiting_ = false;  // `again_` is queued.
  Event* stopped_ = nullptr;
  Deferred again_;
};

}  // namespace

EpollSockets::EpollSockets(ThreadExecutor& worker)
    : WorkerSockets(worker), executor_(worker), scratch_(new char[kScratchBytes]) {}

ConnectionHandle EpollSockets::Adopt(int descriptor) {
  return ConnectionHandle(new EpollConnection(*this, descriptor));
}

std::unique_ptr<Acceptor> EpollSockets::Accept(int descriptor, Acceptor::Taker taker) {
  return std::make_unique<EpollAcceptor>(*this, descriptor, std::move(taker));
}

int EpollSockets::socket_flags() const { return SOCK_CLOEXEC | SOCK_NONBLOCK; }

}  // namespace partita

#include "engine/io/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/io/errno_status.h"
#include "engine/io/io_worker.h"
#include "engine/io/socket_address.h"
#include "engine/io/worker_sockets.h"

namespace partita {

namespace {

constexpr uint64_t kMilliNanos = 1'000'000;

}  // namespace

Connection::Connection(WorkerSockets& sockets, int descriptor) : sockets_(sockets), descriptor_(descriptor) {
  const SocketAddress peer = SocketAddress::PeerOf(descriptor);
  peer_host_ = peer.Host();
  const bool is_own = !peer_host_.empty() && peer_host_ == SocketAddress::LocalOf(descriptor).Host();
  peer_is_local_ = is_own || peer.IsLoopback();
}

Connection::~Connection() { PARTITA_ASSERT(!reader_waits_ && !sending_); }

void Connection::Release() {
  PARTITA_ASSERT(!reader_waits_ && !sending_);
  if (link_of_list != nullptr) {
    *link_of_list = next_of_list;
    if (next_of_list != nullptr) next_of_list->link_of_list = link_of_list;
  }
  sockets_.deadlines().Clear(this);
  sockets_.Recycle(&inbox_);
  CloseAndDelete();
}

void Connection::SetDeadline(uint32_t from_now_ms) {
  timed_out_ = false;
  deadline_ms_ = from_now_ms;
  sends_end_ns_ = 0;
  if (from_now_ms == 0) {
    sockets_.deadlines().Clear(this);
  } else {
    RestartDeadline(sockets_.worker().MonotonicNanos());
  }
}

void Connection::LimitSends(uint64_t from_now_ms) {
  PARTITA_ASSERT(deadline_ms_ != 0);
  const uint64_t now = sockets_.worker().MonotonicNanos();
  sends_end_ns_ = now + from_now_ms * kMilliNanos;
  RestartDeadline(now);
}

void Connection::RestartDeadline(uint64_t now_ns) {
  uint64_t left = deadline_ms_ * kMilliNanos;
  if (sends_end_ns_ != 0) {
    // The deadline that is set fires in a moment: set anew each time, it would not.
    if (now_ns >= sends_end_ns_) return;
    left = std::min(left, sends_end_ns_ - now_ns);
  }
  sockets_.deadlines().Set(this, now_ns, left);
}

void Connection::DeadlinePassed() {
  timed_out_ = true;
  WakeReader();
  if (lasting_ != nullptr) std::exchange(lasting_, nullptr)->GiveUp();
  if (!sending_) return;
  PeerIsGone();
  shutdown(descriptor_, SHUT_RDWR);  // The kernel gives the bytes back with an error.
}

void Connection::Cut() {
  cut_ = true;
  PeerIsGone();
  shutdown(descriptor_, SHUT_RDWR);
  WakeReader();
}

void Connection::EndWhenIdle() {
  ends_when_idle_ = true;
  if (target_ == nullptr) WakeReader();
}

void Connection::EndSending() { shutdown(descriptor_, SHUT_WR); }

void Connection::Recycle(std::string* buffer) { sockets_.Recycle(buffer); }

Connection::Waiting Connection::Readable(std::source_location at) { return Waiting(*this, at); }
Connection::Receiving Connection::Receive(std::string* in, std::source_location at) {
  return Receiving(*this, in, at);
}
Connection::Sending Connection::Send(std::string_view bytes, More more, std::source_location at) {
  return Sending(*this, bytes, more, at);
}

Connection::Lasting Connection::InTime(Task<void>& task, std::source_location at) {
  return Lasting(*this, task, at);
}

bool Connection::Reading::await_ready() {
  if (connection_.HasInput() || connection_.cut_ || connection_.timed_out_) return true;
  connection_.Look();
  return connection_.HasInput() || (target_ == nullptr && connection_.ends_when_idle_);
}

void Connection::Reading::await_suspend(std::coroutine_handle<> handle) {
  PARTITA_ASSERT(!connection_.reader_waits_);
  connection_.reader_waits_ = true;
  connection_.target_ = target_;
  connection_.read_resume_.Suspend(handle, at_);
  connection_.WantInput();
}

Status Connection::Waiting::await_resume() {
  connection_.reader_waits_ = connection_.reader_woken_ = false;
  if (connection_.HasInput() && !connection_.cut_) return Status();
  return connection_.ReadStatus();
}

Result<size_t> Connection::Receiving::await_resume() {
  Connection& c = connection_;
  c.reader_waits_ = c.reader_woken_ = false;
  c.target_ = nullptr;
  size_t size = std::exchange(c.received_, 0);
  if (!c.inbox_.empty()) {
    size += c.inbox_.size();
    if (target_->empty()) {
      target_->swap(c.inbox_);
    } else {
      target_->append(c.inbox_);
    }
    c.inbox_.clear();
    c.sockets_.Recycle(&c.inbox_);
  }
  if (size > 0) return size;
  Status status = c.ReadStatus();
  if (!status.ok()) return status;
  return size_t{0};
}

// Why there is no input. Ok: the peer sends no more.
Status Connection::ReadStatus() const {
  if (cut_) return Status::Cancelled("the connection was cut");
  if (input_error_ != 0) return ErrnoStatus("receive", peer_host_, input_error_);
  if (input_ended_) return Status();
  if (timed_out_) return Status::DeadlineExceeded("nothing came from " + peer_host_ + " in time");
  return Status::Cancelled("idle connections are ended");
}

void Connection::Deliver(const char* bytes, size_t size) {
  bytes_received_ += size;
  if (reader_waits_ && target_ != nullptr) {
    if (target_->empty()) sockets_.Supply(target_);
    target_->append(bytes, size);
    received_ += size;
  } else {
    if (inbox_.empty()) sockets_.Supply(&inbox_);
    inbox_.append(bytes, size);
  }
  WakeReader();
}

void Connection::DeliverEnd(int error) {
  input_ended_ = true;
  input_error_ = error;
  error != 0 ? PeerIsGone() : PeerHungUp();
  WakeReader();
}

void Connection::WakeReader() {
  if (!reader_waits_ || reader_woken_) return;
  reader_woken_ = true;
  sockets_.worker().Post(&read_resume_);
}

bool Connection::Sending::await_ready() {
  Connection& c = connection_;
  PARTITA_ASSERT(!c.sending_);
  c.send_rest_ = bytes_;
  c.send_more_ = more_;
  c.send_suspended_ = false;
  c.sending_ = true;
  if (c.cut_ || bytes_.empty()) {
    c.FinishSend(c.cut_ ? Status::Cancelled("the connection was cut") : Status());
  } else if (c.timed_out_) {  // Between two pieces, where nothing was under way that it could end.
    c.PeerIsGone();
    shutdown(c.descriptor_, SHUT_RDWR);
    c.FinishSend(Status::DeadlineExceeded(c.peer_host_ + " took nothing in time"));
  } else {
    c.StartSend();
  }
  c.send_suspended_ = c.sending_;
  return !c.sending_;
}

Status Connection::Sending::await_resume() { return std::move(connection_.send_status_); }

bool Connection::Sent(int64_t result) {
  if (result < 0) {
    PeerIsGone();
    if (timed_out_) {
      FinishSend(Status::DeadlineExceeded(peer_host_ + " took nothing in time"));
    } else if (cut_) {
      FinishSend(Status::Cancelled("the connection was cut"));
    } else {
      FinishSend(ErrnoStatus("send", peer_host_, static_cast<int>(-result)));
    }
    return false;
  }
  bytes_sent_ += static_cast<uint64_t>(result);
  send_rest_.remove_prefix(static_cast<size_t>(result));
  // Behind the last piece, too: TLS sends a large answer in several Sends. What it answers amid a request
  // gives its sender no more time for that.
  if (sends_end_ns_ != 0 && !timed_out_) RestartDeadline(sockets_.worker().MonotonicNanos());
  if (!send_rest_.empty()) return true;
  FinishSend(Status());
  return false;
}

void Connection::FinishSend(Status status) {
  sending_ = false;
  send_status_ = std::move(status);
  if (send_suspended_) sockets_.worker().Post(&send_resume_);
}

Connection::Lasting::Lasting(Connection& connection, Task<void>& task, std::source_location at)
    : connection_(connection), task_(task) {
  resume_.where = at;
}

void Connection::Lasting::await_suspend(std::coroutine_handle<> handle) {
  PARTITA_ASSERT(connection_.lasting_ == nullptr);
  connection_.lasting_ = this;
  resume_.handle = handle;
  task_.EndBefore(handle);
}

// It may still end before who waits is resumed.
void Connection::Lasting::GiveUp() {
  task_.EndBefore(std::noop_coroutine());
  connection_.sockets_.worker().Post(&resume_);
}

bool Connection::Lasting::await_resume() {
  connection_.lasting_ = nullptr;
  return task_.done();
}

}  // namespace partita

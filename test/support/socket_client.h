#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "engine/io/socket_address.h"

namespace partita {

// A client's end of a TCP connection, in plain blocking calls. Nothing waits longer than ten seconds.
class SocketClient {
 public:
  SocketClient() = default;
  explicit SocketClient(const SocketAddress& address) {
    Prepare(address);
    ConnectPrepared();
  }
  SocketClient(SocketClient&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        connect_error_(other.connect_error_),
        address_(other.address_) {}
  ~SocketClient() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  void Prepare(const SocketAddress& address) {
    address_ = address;
    descriptor_ = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{10, 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  void ConnectPrepared() {
    connect_error_ = connect(descriptor_, address_.get(), address_.size()) == 0 ? 0 : errno;
    // An interrupted connect goes on by itself; a second call would be told that it is under way.
    if (connect_error_ == EINTR) connect_error_ = AwaitConnected();
  }

  bool connected() const { return connect_error_ == 0; }
  // The errno of the last attempt to connect; 0 when it succeeded.
  int connect_error() const { return connect_error_; }
  int descriptor() const { return descriptor_; }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(size));
    }
    return true;
  }

  // Exactly so many bytes, or fewer when the server ends or takes too long.
  std::string Receive(size_t size) {
    std::string bytes(size, '\0');
    size_t got = 0;
    while (got < size) {
      const ssize_t more = Read(bytes.data() + got, size - got);
      if (more <= 0) break;
      got += static_cast<size_t>(more);
    }
    bytes.resize(got);
    return bytes;
  }

  // Until the server ends; "timeout" at the end when it did not, "reset" when it was no orderly end.
  std::string ReceiveAll() {
    std::string bytes;
    char piece[4096];
    while (true) {
      const ssize_t more = Read(piece, sizeof piece);
      if (more == 0) return bytes;
      if (more < 0) return bytes + (errno == EAGAIN ? "timeout" : "reset");
      bytes.append(piece, static_cast<size_t>(more));
    }
  }

  // Up to and with `end`.
  std::string ReceiveUntil(std::string_view end) {
    std::string bytes;
    char c;
    while (!bytes.ends_with(end) && Read(&c, 1) == 1) bytes.push_back(c);
    return bytes;
  }

  // Lets so much time pass in which the server must stay silent; true when it did.
  bool WaitQuietly(int milliseconds) {
    pollfd readable{descriptor_, POLLIN, 0};
    return poll(&readable, 1, milliseconds) == 0;
  }

  void EndSending() { shutdown(descriptor_, SHUT_WR); }
  void Close() { close(std::exchange(descriptor_, -1)); }
  // Goes without a farewell: the other end sees a reset.
  void Reset() {
    const linger now{1, 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    Close();
  }

 private:
  // A call with a time-out is not restarted when the kernel has work for a ring that this thread set up.
  ssize_t Read(char* to, size_t size) {
    ssize_t got;
    do {
      got = recv(descriptor_, to, size, 0);
    } while (got < 0 && errno == EINTR);
    return got;
  }

  // What became of a connection under way, as an errno.
  int AwaitConnected() {
    pollfd writable{descriptor_, POLLOUT, 0};
    int ready;
    do {
      ready = poll(&writable, 1, 10'000);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
  }

  int descriptor_ = -1;
  int connect_error_ = ENOTCONN;
  SocketAddress address_;
};

}  // namespace partita

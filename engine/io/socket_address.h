#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita {

// Where to listen, or who is at the other end: a numeric IPv4 or IPv6 address and a port.
class SocketAddress {
 public:
  // "127.0.0.1:10002" or "[::1]:10002". kInvalidArgument says what is wrong; names are not looked up.
  static Result<SocketAddress> Parse(std::string_view text);
  // Of a bound or connected descriptor.
  static SocketAddress LocalOf(int descriptor);
  static SocketAddress PeerOf(int descriptor);

  std::string ToString() const;  // As Parse takes it.
  // Without port and brackets; an IPv4 address in IPv6 clothes (::ffff:10.0.0.1) as IPv4.
  std::string Host() const;
  uint16_t port() const;
  bool IsLoopback() const;

  int family() const { return storage_.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const;

 private:
  const sockaddr_in& v4() const { return reinterpret_cast<const sockaddr_in&>(storage_); }
  const sockaddr_in6& v6() const { return reinterpret_cast<const sockaddr_in6&>(storage_); }

  sockaddr_storage storage_{};
};

}  // namespace partita

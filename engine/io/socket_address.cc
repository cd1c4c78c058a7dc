#include "engine/io/socket_address.h"

#include <arpa/inet.h>

#include <charconv>

namespace partita {

namespace {

Status Malformed(std::string_view text, std::string_view why) {
  std::string message = "address \"";
  message.append(text).append("\" ").append(why);
  message.append("; write ip:port or [ipv6]:port, such as 127.0.0.1:10002");
  return Status::InvalidArgument(std::move(message));
}

}  // namespace

Result<SocketAddress> SocketAddress::Parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Malformed(text, "has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  uint16_t port = 0;
  const char* end = port_text.data() + port_text.size();
  auto [stop, error] = std::from_chars(port_text.data(), end, port);
  if (port_text.empty() || error != std::errc() || stop != end) {
    return Malformed(text, "has a port that is no number from 0 to 65535");
  }
  SocketAddress address;
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const std::string name(host);
  if (bracketed) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage_);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    if (inet_pton(AF_INET6, name.c_str(), &v6.sin6_addr) != 1) return Malformed(text, "is no IPv6 address");
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage_);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    if (inet_pton(AF_INET, name.c_str(), &v4.sin_addr) != 1) return Malformed(text, "is no IPv4 address");
  }
  return address;
}

SocketAddress SocketAddress::LocalOf(int descriptor) {
  SocketAddress address;
  socklen_t size = sizeof address.storage_;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address.storage_), &size);
  return address;
}

SocketAddress SocketAddress::PeerOf(int descriptor) {
  SocketAddress address;
  socklen_t size = sizeof address.storage_;
  // Fails for a peer that has gone already: then the address is empty, and reads will say the rest.
  getpeername(descriptor, reinterpret_cast<sockaddr*>(&address.storage_), &size);
  return address;
}

std::string SocketAddress::Host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    inet_ntop(AF_INET, &v4().sin_addr, text, sizeof text);
  } else if (family() == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6().sin6_addr)) {
    inet_ntop(AF_INET, v6().sin6_addr.s6_addr + 12, text, sizeof text);
  } else if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &v6().sin6_addr, text, sizeof text);
  }
  return text;
}

std::string SocketAddress::ToString() const {
  const std::string port_text = std::to_string(port());
  if (family() == AF_INET) return Host() + ":" + port_text;
  return "[" + Host() + "]:" + port_text;
}

uint16_t SocketAddress::port() const { return ntohs(family() == AF_INET ? v4().sin_port : v6().sin6_port); }

bool SocketAddress::IsLoopback() const {
  if (family() == AF_INET) return (ntohl(v4().sin_addr.s_addr) >> 24) == 127;
  if (family() != AF_INET6) return false;
  const in6_addr& address = v6().sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

socklen_t SocketAddress::size() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

}  // namespace partita

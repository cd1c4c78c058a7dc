#include "api/http/own_host.h"

#include <algorithm>

#include "api/ascii.h"
#include "engine/io/socket_address.h"

namespace partita::http {

namespace {

std::string_view WithoutPort(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (host.ends_with(']') || colon == std::string_view::npos) return host;
  const std::string_view port = host.substr(colon + 1);
  // With anything else behind it the colon is part of no name.
  return std::all_of(port.begin(), port.end(), IsAsciiDigit) ? host.substr(0, colon) : host;
}

}  // namespace

bool IsOwnHost(std::string_view host, std::span<const std::string> names) {
  const std::string name(WithoutPort(host));
  if (SocketAddress::Parse(name + ":1").ok()) return true;
  const std::string_view last_label = std::string_view(name).substr(name.rfind('.') + 1);
  if (EqualIgnoringCase(last_label, "localhost")) return true;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& each) { return EqualIgnoringCase(each, name); });
}

}  // namespace partita::http

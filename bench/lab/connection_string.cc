#include "bench/lab/connection_string.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "api/http/signature.h"

namespace partita::lab {
namespace {

// The development account and its key, which everyone knows.
constexpr const char* kDevelopment =
    "AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
    "K1SZFPTOtr/KBHBeksoGMGw==;TableEndpoint=http://127.0.0.1:10002/devstoreaccount1";

// Whether all of it may stand in the head of a request: else it could end the line, or the request.
bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

Status ReadEndpoint(std::string url, Connection* connection) {
  const size_t scheme = url.find("://");
  const std::string protocol = url.substr(0, scheme == std::string::npos ? 0 : scheme);
  if (protocol != "http" && protocol != "https") {
    return Status::InvalidArgument("connection string: an endpoint begins with http:// or https://");
  }
  // Who allows it stands in the account or the signature alone: an address is shown.
  if (!IsPrintable(url) || url.find_first_of("?#@") != std::string::npos) {
    return Status::InvalidArgument(
        "connection string: an endpoint is http(s)://host:port/path in ASCII, without ?, #, @ or blanks; a "
        "signature stands in SharedAccessSignature");
  }
  connection->secure = protocol == "https";
  url.erase(0, scheme + 3);
  const size_t slash = std::min(url.find('/'), url.size());
  connection->path = url.substr(slash);
  while (connection->path.ends_with('/')) connection->path.pop_back();
  std::string host = url.substr(0, slash);
  const size_t bracket = host.find(']'), colon = host.rfind(':');
  const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  connection->port = has_port ? host.substr(colon + 1) : connection->secure ? "443" : "80";
  if (has_port) host.resize(colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  connection->host = host;
  if (host.empty()) return Status::InvalidArgument("connection string: the endpoint names no host");
  return Status();
}

// REQUIRES: it begins with "env:".
Result<std::string> FromEnvironment(std::string_view text) {
  const std::string name(text.substr(4));
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return Status::InvalidArgument("connection string: there is no variable " + name);
  if (std::string_view(value).starts_with("env:")) {
    return Status::InvalidArgument("connection string: " + name + " names another variable");
  }
  return std::string(value);
}

}  // namespace

std::string Connection::Place() const {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
}

std::string Connection::Endpoint() const { return (secure ? "https://" : "http://") + Place() + path; }

Result<Connection> ParseConnection(std::string_view text) {
  if (text.starts_with("env:")) {
    PARTITA_ASSIGN(const std::string value, FromEnvironment(text));
    return ParseConnection(value);
  }
  std::map<std::string, std::string> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const size_t equals = part.find('=');
    if (part.empty()) continue;
    if (equals == std::string_view::npos) {
      return Status::InvalidArgument("connection string: name=value;name=value is expected");
    }
    parts.emplace(part.substr(0, equals), part.substr(equals + 1));
  }
  if (parts["UseDevelopmentStorage"] == "true") return ParseConnection(kDevelopment);
  Connection connection{.account = parts["AccountName"],
                        .key_base64 = parts["AccountKey"],
                        .sas = parts["SharedAccessSignature"]};
  std::string endpoint = parts["TableEndpoint"];
  if (endpoint.empty() && !connection.account.empty()) {
    const std::string protocol = parts["DefaultEndpointsProtocol"], suffix = parts["EndpointSuffix"];
    endpoint = (protocol.empty() ? "https" : protocol) + "://" + connection.account + ".table." +
               (suffix.empty() ? "core.windows.net" : suffix);
  }
  PARTITA_TRY(ReadEndpoint(endpoint, &connection));
  if (!IsPrintable(connection.account) || !IsPrintable(connection.sas)) {
    return Status::InvalidArgument(
        "connection string: AccountName and SharedAccessSignature are ASCII without blanks or line ends");
  }
  if (connection.key_base64.empty() == connection.sas.empty()) {
    return Status::InvalidArgument("connection string: AccountKey or SharedAccessSignature is needed");
  }
  if (connection.sas.starts_with('?')) connection.sas.erase(0, 1);
  if (!connection.key_base64.empty()) {
    if (connection.account.empty())
      return Status::InvalidArgument("connection string: AccountName is needed");
    PARTITA_TRY(http::SigningKey::FromBase64(connection.key_base64).status());
  }
  return connection;
}

Result<Connection> ConnectionOf(const std::string& url, const std::string& credential) {
  PARTITA_ASSIGN(const std::string secret, FromEnvironment(credential));
  if (secret.find(';') != std::string::npos || url.find(';') != std::string::npos) {
    return Status::InvalidArgument("connection string: neither url nor credential holds a semicolon");
  }
  if (secret.find("sig=") != std::string::npos) {
    return ParseConnection("TableEndpoint=" + url + ";SharedAccessSignature=" + secret);
  }
  Connection place;
  PARTITA_TRY(ReadEndpoint(url, &place));
  const std::string in_path = place.path.empty() ? "" : place.path.substr(1, place.path.find('/', 1) - 1);
  const std::string account = in_path.empty() ? place.host.substr(0, place.host.find('.')) : in_path;
  return ParseConnection("TableEndpoint=" + url + ";AccountName=" + account + ";AccountKey=" + secret);
}

}  // namespace partita::lab

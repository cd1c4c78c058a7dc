#include "api/http/admin_client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <cstring>

#include "api/http/json_text.h"
#include "engine/io/socket_address.h"

namespace partita::http {

namespace {

namespace beast = boost::beast;

constexpr time_t kSecondsMax = 10;
constexpr uint64_t kAnswerBytesMax = 64u << 20;

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

Status Failed(const std::string& address, const char* what) {
  return Status(Code::kIoError, std::string(what) + " the admin address " + address + ": " +
                                    std::strerror(errno) + "; is 'partita serve --admin' running there?");
}

Status SendAll(const Descriptor& socket, std::string_view bytes, const std::string& address) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return Failed(address, "sending to");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return Status();
}

Status Refused(int status, std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (status == 404) return Status::NotFound(std::move(text));
  if (status == 400) return Status::InvalidArgument(std::move(text));
  return Status::Unsupported("the server answered " + std::to_string(status) + ": " + text);
}

}  // namespace

std::string EncodeParameter(std::string_view value) {
  std::string out;
  for (const char c : value) {
    // Quotes would be doubled, as keys in URLs want it.
    if (c == '\'') {
      out += "%27";
    } else {
      AppendUrlKey(&out, std::string_view(&c, 1));
    }
  }
  return out;
}

Result<std::string> AskAdmin(const std::string& address, const std::string& target) {
  constexpr std::string_view kScheme = "http://";
  const std::string place = address.starts_with(kScheme) ? address.substr(kScheme.size()) : address;
  PARTITA_ASSIGN(const SocketAddress to, SocketAddress::Parse(place));
  const Descriptor socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = kSecondsMax, .tv_usec = 0};
  if (socket.get() < 0 || connect(socket.get(), to.get(), to.size()) != 0) return Failed(place, "reaching");
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  PARTITA_TRY(SendAll(
      socket, "GET " + target + " HTTP/1.1\r\nHost: " + place + "\r\nConnection: close\r\n\r\n", place));
  beast::http::response_parser<beast::http::string_body> parser;
  parser.body_limit(kAnswerBytesMax);
  parser.eager(true);
  std::string unread;
  char chunk[16 << 10];
  while (!parser.is_done()) {
    const ssize_t got = recv(socket.get(), chunk, sizeof(chunk), 0);
    if (got < 0) return Failed(place, "reading from");
    beast::error_code error;
    if (got == 0) {
      parser.put_eof(error);
      if (error || !parser.is_done()) return Status(Code::kIoError, place + " closed before it had answered");
      break;
    }
    unread.append(chunk, static_cast<size_t>(got));
    const size_t used = parser.put(boost::asio::buffer(unread), error);
    unread.erase(0, used);
    if (error && error != beast::http::error::need_more) {
      return Status::InvalidArgument(place + " does not speak HTTP: " + error.message());
    }
  }
  if (parser.get().result_int() != 200)
    return Refused(static_cast<int>(parser.get().result_int()), parser.get().body());
  return std::move(parser.get().body());
}

}  // namespace partita::http

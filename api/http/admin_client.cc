#include "api/http/admin_client.h"

#include <poll.h>
#include <simdjson.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "api/ascii.h"
#include "api/http/json_text.h"
#include "engine/io/socket_address.h"

namespace partita::http {

namespace {

namespace beast = boost::beast;

constexpr std::chrono::seconds kPageSeconds{10};
// A move waits for flushes, and for others under way.
constexpr std::chrono::seconds kChangeSeconds{120};
// Of what has no limit; the client's system tells when the server, which is on this machine, dies.
constexpr std::chrono::seconds kTaskSeconds = std::chrono::hours(24 * 365);
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

// Sends and receives until a point in time, however many calls that takes. Calls with a time-out are
// interrupted where the process is stopped and goes on (Ctrl-Z), handlers or not: they are made again.
class ClientExchange {
 public:
  ClientExchange(const std::string& place, std::chrono::seconds most)
      : place_(place), until_(std::chrono::steady_clock::now() + most) {}

  Status Connect(const SocketAddress& to) {
    socket_.emplace(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket_->get() < 0) return Failed(place_, "reaching");
    PARTITA_TRY(AllowRest("reaching"));  // SO_SNDTIMEO bounds a connect as well, socket(7).
    if (connect(socket_->get(), to.get(), to.size()) == 0) return Status();
    if (errno == EINTR) errno = AwaitConnected();
    if (errno == 0) return Status();
    if (errno == EINPROGRESS) errno = ETIMEDOUT;  // How it says that the time is over.
    return Failed(place_, "reaching");
  }

  Status Send(std::string_view bytes) {
    while (!bytes.empty()) {
      PARTITA_TRY(AllowRest("sending to"));
      const ssize_t sent = send(socket_->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return Failed(place_, "sending to");
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return Status();
  }

  // 0: the end.
  Result<size_t> Receive(std::span<char> chunk) {
    while (true) {
      PARTITA_TRY(AllowRest("reading from"));
      const ssize_t got = recv(socket_->get(), chunk.data(), chunk.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Failed(place_, "reading from");
      return static_cast<size_t>(got);
    }
  }

 private:
  std::chrono::microseconds Rest() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(until_ - std::chrono::steady_clock::now());
  }

  // What became of a connection under way, which goes on by itself, as an errno.
  int AwaitConnected() const {
    pollfd writable{.fd = socket_->get(), .events = POLLOUT, .revents = 0};
    int ready = -1;
    while (ready < 0) {
      if (Rest().count() <= 0) return ETIMEDOUT;
      ready = poll(&writable, 1, static_cast<int>(Rest().count() / 1'000) + 1);
      if (ready < 0 && errno != EINTR) return errno;
    }
    if (ready == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof(error);
    return getsockopt(socket_->get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
  }

  Status AllowRest(const char* what) {
    const auto rest = Rest();
    if (rest.count() <= 0) {
      errno = ETIMEDOUT;
      return Failed(place_, what);
    }
    const timeval time{.tv_sec = rest.count() / 1'000'000, .tv_usec = rest.count() % 1'000'000};
    setsockopt(socket_->get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    setsockopt(socket_->get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
    return Status();
  }

  const std::string& place_;
  const std::chrono::steady_clock::time_point until_;
  std::optional<Descriptor> socket_;
};

// What POST answers (api/cli/admin_ranges.h); nothing for any other text.
std::optional<Status> ParseError(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string_view name, message;
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  if (root["error"]["code"].get_string().get(name) != simdjson::SUCCESS) return std::nullopt;
  if (root["error"]["message"].get_string().get(message) != simdjson::SUCCESS) return std::nullopt;
  for (auto code = Code::kNotFound; code <= Code::kCorruption;
       code = static_cast<Code>(static_cast<int>(code) + 1)) {
    if (CodeName(code) == name) return Status(code, std::string(message));
  }
  return std::nullopt;
}

Status Refused(int status, std::string text) {
  if (std::optional<Status> error = ParseError(text)) return *std::move(error);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (status == 404) return Status::NotFound(std::move(text));
  if (status == 400) return Status::InvalidArgument(std::move(text));
  return Status::Unsupported("the server answered " + std::to_string(status) + ": " + text);
}

// What "localhost" is, in the order to try; else the address alone.
Result<std::vector<SocketAddress>> AddressesOf(const std::string& place) {
  constexpr std::string_view kOwnName = "localhost:";
  std::vector<std::string> texts = {place};
  if (EqualIgnoringCase(std::string_view(place).substr(0, kOwnName.size()), kOwnName)) {
    const std::string port = place.substr(kOwnName.size());
    texts = {"127.0.0.1:" + port, "[::1]:" + port};
  }
  std::vector<SocketAddress> addresses;
  for (const std::string& text : texts) {
    PARTITA_ASSIGN(const SocketAddress address, SocketAddress::Parse(text));
    addresses.push_back(address);
  }
  return addresses;
}

Status ConnectToAny(const std::vector<SocketAddress>& addresses, ClientExchange* exchange) {
  Status first;
  for (const SocketAddress& address : addresses) {
    const Status connected = exchange->Connect(address);
    if (connected.ok()) return connected;
    if (first.ok()) first = connected;
  }
  return first;
}

// `head`: the request line and the headers that are this request's own.
Result<std::string> Ask(const std::string& address, const std::string& head, std::string_view body,
                        std::chrono::seconds most) {
  constexpr std::string_view kScheme = "http://";
  const std::string place = address.starts_with(kScheme) ? address.substr(kScheme.size()) : address;
  PARTITA_ASSIGN(const std::vector<SocketAddress> addresses, AddressesOf(place));
  ClientExchange exchange(place, most);
  PARTITA_TRY(ConnectToAny(addresses, &exchange));
  PARTITA_TRY(exchange.Send(head + "Host: " + place + "\r\nConnection: close\r\n\r\n" + std::string(body)));
  beast::http::response_parser<beast::http::string_body> parser;
  parser.body_limit(kAnswerBytesMax);
  parser.eager(true);
  std::string unread;
  std::array<char, 16 << 10> chunk;
  while (!parser.is_done()) {
    PARTITA_ASSIGN(const size_t got, exchange.Receive(chunk));
    beast::error_code error;
    if (got == 0) {
      parser.put_eof(error);
      if (error || !parser.is_done()) return Status(Code::kIoError, place + " closed before it had answered");
      break;
    }
    unread.append(chunk.data(), got);
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

Result<std::string> Post(const std::string& address, const std::string& target, const std::string& json,
                         std::chrono::seconds most) {
  return Ask(address,
             "POST " + target + " HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: " +
                 std::to_string(json.size()) + "\r\n",
             json, most);
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
  return Ask(address, "GET " + target + " HTTP/1.1\r\n", "", kPageSeconds);
}

Result<std::string> TellAdmin(const std::string& address, const std::string& target,
                              const std::string& json) {
  return Post(address, target, json, kChangeSeconds);
}

Result<std::string> RunOnAdmin(const std::string& address, const std::string& target) {
  return Post(address, target, "{}", kTaskSeconds);
}

}  // namespace partita::http

#include "bench/lab/http_link.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>

namespace partita::lab {
namespace {

namespace beast = boost::beast;

constexpr time_t kPatience_s = 30;
constexpr uint64_t kAnswerBytesMax = 64u << 20;

// One for the process: contexts are made to be shared.
SSL_CTX* SharedContext() {
  static SSL_CTX* const context = [] {
    // OpenSSL writes to sockets without MSG_NOSIGNAL.
    std::signal(SIGPIPE, SIG_IGN);
    SSL_CTX* made = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_default_verify_paths(made);
    SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
    return made;
  }();
  return context;
}

// Calls with a time-out are interrupted where the process is stopped and goes on (Ctrl-Z), handlers or not.
// Bounded in practice: each interruption is a signal of this process (F24).
template <typename Call>
auto AgainWhereInterrupted(const Call& call) {
  while (true) {
    errno = 0;
    const auto result = call();
    if (result > 0 || errno != EINTR) return result;
  }
}

// As connect(2). An interrupted one goes on by itself; a second call would be told that it is under way.
int ConnectTo(int socket, const addrinfo& to) {
  if (::connect(socket, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINTR) return -1;
  pollfd writable{.fd = socket, .events = POLLOUT, .revents = 0};
  const int ready = AgainWhereInterrupted([&] { return ::poll(&writable, 1, kPatience_s * 1'000); });
  int error = ETIMEDOUT;
  socklen_t size = sizeof(error);
  if (ready > 0) getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0 ? 0 : -1;
}

std::string HeaderOf(const beast::http::response<beast::http::string_body>& answer, const char* name) {
  return std::string(answer[name]);
}

}  // namespace

struct HttpLink::State {
  const Connection connection;
  int socket = -1;
  SSL* tls = nullptr;
  std::string unread;

  explicit State(const Connection& to) : connection(to) {}
  ~State() { Close(); }

  void Close() {
    if (tls != nullptr) SSL_free(tls);
    if (socket >= 0) close(socket);
    tls = nullptr;
    socket = -1;
    unread.clear();
  }

  Status Failed(const std::string& what) const {
    return Status::IoError(connection.Endpoint() + ": " + what);
  }

  Status Connect() {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_STREAM;
    const int error = getaddrinfo(connection.host.c_str(), connection.port.c_str(), &wanted, &found);
    if (error != 0) return Failed(gai_strerror(error));
    int reason = 0;
    for (const addrinfo* at = found; at != nullptr && socket < 0; at = at->ai_next) {
      socket = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (socket < 0) {
        reason = errno;
        continue;
      }
      const timeval patience{.tv_sec = kPatience_s, .tv_usec = 0};
      setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
      if (ConnectTo(socket, *at) == 0) break;
      reason = errno;
      close(socket);
      socket = -1;
    }
    freeaddrinfo(found);
    if (socket < 0) return Failed(std::strerror(reason));
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return connection.secure ? Encrypt() : Status();
  }

  Status Encrypt() {
    tls = SSL_new(SharedContext());
    SSL_set_tlsext_host_name(tls, connection.host.c_str());
    SSL_set1_host(tls, connection.host.c_str());
    SSL_set_fd(tls, socket);
    if (AgainWhereInterrupted([this] { return SSL_connect(tls); }) == 1) return Status();
    const long verdict = SSL_get_verify_result(tls);
    return Failed(verdict == X509_V_OK ? "no TLS is spoken there" : X509_verify_cert_error_string(verdict));
  }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = AgainWhereInterrupted([&]() -> ssize_t {
        if (tls != nullptr) return SSL_write(tls, bytes.data(), static_cast<int>(bytes.size()));
        return send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      });
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Bytes that came, 0 at the end, below 0 where something is wrong; `late`: nothing came for kPatience_s.
  ssize_t Take(char* to, size_t size, bool* late) {
    if (tls == nullptr) {
      const ssize_t got = AgainWhereInterrupted([&] { return recv(socket, to, size, 0); });
      *late = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      return got;
    }
    // errno may be one of long ago: the library tells why it gave nothing, if its queue of errors was empty.
    const int got = AgainWhereInterrupted([&] {
      ERR_clear_error();
      return SSL_read(tls, to, static_cast<int>(size));
    });
    const int reason = got > 0 ? SSL_ERROR_NONE : SSL_get_error(tls, got);
    *late = reason == SSL_ERROR_WANT_READ;
    return reason == SSL_ERROR_ZERO_RETURN ? 0 : got > 0 ? got : -1;
  }

  // Nothing: it ended before the first byte, or with `failed` set, later.
  std::optional<HttpAnswer> Receive(std::string* failed) {
    beast::http::response_parser<beast::http::string_body> parser;
    parser.body_limit(kAnswerBytesMax);
    parser.eager(true);
    char chunk[16 << 10];
    bool any = false;
    while (!parser.is_done()) {
      bool late = false;
      const ssize_t got = Take(chunk, sizeof(chunk), &late);
      beast::error_code error;
      if (got <= 0) {
        if (got == 0 && any) parser.put_eof(error);
        if (got == 0 && any && !error && parser.is_done()) break;
        if (any || late) *failed = late ? "no answer for 30 s" : "closed before it had answered";
        return std::nullopt;
      }
      any = true;
      unread.append(chunk, static_cast<size_t>(got));
      unread.erase(0, parser.put(boost::asio::buffer(unread), error));
      if (error && error != beast::http::error::need_more) {
        *failed = "does not speak HTTP: " + error.message();
        return std::nullopt;
      }
    }
    const auto& answer = parser.get();
    return HttpAnswer{.status = static_cast<int>(answer.result_int()),
                      .body = answer.body(),
                      .retry_after = HeaderOf(answer, "Retry-After"),
                      .retry_after_ms = HeaderOf(answer, "x-ms-retry-after-ms"),
                      .continuation_partition = HeaderOf(answer, "x-ms-continuation-NextPartitionKey"),
                      .continuation_row = HeaderOf(answer, "x-ms-continuation-NextRowKey"),
                      .continuation_table = HeaderOf(answer, "x-ms-continuation-NextTableName"),
                      .cost = HeaderOf(answer, "x-partita-cost"),
                      .keeps_alive = parser.keep_alive()};
  }
};

HttpLink::HttpLink(const Connection& connection) : state_(std::make_unique<State>(connection)) {}
HttpLink::~HttpLink() = default;

Result<HttpAnswer> HttpLink::Ask(const std::string& request) {
  for (bool was_sent = false;; was_sent = true) {
    const bool was_open = state_->socket >= 0;
    if (!was_open) {
      if (Status status = state_->Connect(); !status.ok()) {
        state_->Close();
        const auto trouble = was_sent ? LinkTrouble::kNone : LinkTrouble::kNotConnected;
        return std::move(status).WithDetail(static_cast<uint16_t>(trouble));
      }
    }
    std::string failed;
    std::optional<HttpAnswer> answer;
    if (state_->Send(request)) answer = state_->Receive(&failed);
    if (answer.has_value() && answer->keeps_alive) return std::move(*answer);
    state_->Close();
    if (answer.has_value()) return std::move(*answer);
    if (!was_open || !failed.empty()) {
      return state_->Failed(failed.empty() ? "closed without an answer" : failed);
    }
  }
}

}  // namespace partita::lab

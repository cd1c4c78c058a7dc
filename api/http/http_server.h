#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/http/http_message.h"
#include "api/http/tls_context.h"
#include "engine/base/result.h"
#include "engine/io/runtime.h"

namespace partita::http {

// How long a client may take. A connection that is over the time is answered 408 where that can still be
// understood, and closed.
struct HttpTimeouts {
  // From a request's first byte (or the connection's opening) to the end of its headers. Every client
  // sends them in one piece; ten seconds forgive a lost packet several times.
  uint32_t header_ms = 10'000;
  // Without a byte of an expected body, or without the peer taking a byte of the answer.
  uint32_t transfer_ms = 30'000;
  // How fast an answer must be taken, transfer_ms besides, however often the peer takes a byte: 32 KiB a
  // second, about as fast as a body must come (body_ms). Answers are held until they are sent, so nobody may
  // hold that memory for as long as he likes.
  uint64_t answer_bytes_per_second = 32 << 10;
  // From the first wait for a body to its end, however often a byte comes: 4 MiB at 35 KiB a second. Bodies
  // are held before it is known who sends them, so nobody may hold that memory for as long as he likes.
  uint32_t body_ms = 120'000;
  // Between requests. Longer than what clients keep pooled connections for (60 to 100 s), so that it is
  // they who close, and no request is sent into a connection that just ended.
  uint32_t idle_ms = 120'000;
  // At Stop: for requests in flight to be answered. Half of what a service manager or a container runtime
  // leaves a process before it is killed (10 s), so that the store can still be flushed in order.
  uint32_t stop_ms = 5'000;
};

struct HttpServerOptions {
  std::string address = "127.0.0.1:0";  // "ip:port" or "[ipv6]:port"; port 0 lets the system choose.
  TlsContext* tls = nullptr;            // Speaks TLS when given. Outlives the server.
  uint32_t connections_max = 16'384;    // More are told 503 and closed; with TLS closed at once,
  uint32_t refused_max = 1'024;         // and so are those that come while so many are being told.
  // What all connections together may hold in buffers beyond 16 KiB each: large bodies that are on their
  // way in and what becomes of them, large answers on their way out. A large body that finds no room waits a
  // while, with what has come of it (a quarter as much more, of all together); then, as a large answer at
  // once, it becomes a 503. So does what comes before its sender could be asked who he is (heads, small
  // bodies, pipelines) where all together hold another quarter of that.
  uint64_t buffer_bytes_max = 256 << 20;
  // When given, they decide in place of buffer_bytes_max: several servers share them. Outlive them.
  ServerBudgets* budgets = nullptr;
  std::string server_name = "Partita/test";  // The Server header; `partita serve` puts its version there.
  HttpTimeouts timeouts;
};

// What a server has counted since it was opened, but for `connections_open` and `buffer_bytes`, which
// tell how it is now.
struct HttpCounters {
  uint64_t connections_open = 0;
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;  // Over connections_max.
  uint64_t accept_failures = 0;      // No descriptor or memory left to accept with.
  uint64_t tls_failures = 0;         // Handshakes that failed; plain HTTP sent to a TLS port among them.
  uint64_t requests = 0;             // Given to the handler.
  uint64_t framing_errors = 0;       // Bytes that are no request.
  uint64_t timeouts = 0;             // Of HttpTimeouts, but for idle_ms.
  uint64_t bytes_received = 0;       // Before decryption.
  uint64_t bytes_sent = 0;           // After encryption.
  uint64_t buffer_bytes = 0;         // Against the budget, with what other servers hold that share it.
};

class HttpServerCore;

// Accepts connections on one address and answers the requests that come over them by a handler, on the
// workers of a runtime: a connection stays on one worker, and its requests are handled there, one after
// the other and answered in order.
//
// Lifecycle: Open, Stop, destruction (which stops). The runtime and the handler outlive it. Open and Stop
// block: they are not for workers' threads. Thread-safe.
class HttpServer {
 public:
  // Listens when it returns. kInvalidArgument: an address that is none. kLocked: it is in use.
  // kUnsupported: the simulator has no network. kResourceExhausted, kIoError.
  static Result<std::unique_ptr<HttpServer>> Open(Runtime& runtime, const HttpServerOptions& options,
                                                  RequestHandler& handler);
  ~HttpServer();

  uint16_t port() const;
  std::string address() const;  // As bound: "127.0.0.1:10002", "[::1]:10002".

  // Accepts no more, closes idle connections at once, lets requests in flight be answered (with
  // Connection: close), for at most HttpTimeouts::stop_ms; then cuts what is left. Returns when no
  // connection is left and no handler runs, however long a handler takes. Idempotent.
  void Stop();
  // The same of several at once: one after the other each would have its own grace.
  static void StopAll(std::span<const std::unique_ptr<HttpServer>> servers);

  HttpCounters counters() const;

 private:
  HttpServer();
  std::unique_ptr<HttpServerCore> core_;
};

}  // namespace partita::http

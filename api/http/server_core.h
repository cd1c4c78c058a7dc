#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/http/http_parser.h"
#include "api/http/http_server.h"
#include "api/http/response_writer.h"
#include "engine/io/listener.h"

namespace partita::http {

// What a connection needs while a request is on its way, and an idle one does not hold.
struct RequestBuffers {
  std::string in;
  std::string out;
  HttpParser parser;
  HttpResponse response;
};

// What the connections of one worker share. Of its thread, but for the counters, which anybody reads.
class ServerLane {
 public:
  ServerLane(const Executor& worker, const std::string& server_name)
      : worker_(worker), writer_(server_name) {}

  std::unique_ptr<RequestBuffers> Borrow();
  // Keeps it for the next request, without large memory.
  void GiveBack(std::unique_ptr<RequestBuffers> buffers);

  ResponseWriter& writer() { return writer_; }
  const Executor& worker() const { return worker_; }

  // Only the lane's own thread adds.
  struct Counter {
    std::atomic<uint64_t> value{0};
    void Add(uint64_t n) {
      value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    uint64_t Get() const { return value.load(std::memory_order_relaxed); }
  };
  Counter refused, tls_failures, requests, framing_errors, timeouts, bytes_received, bytes_sent;

 private:
  static constexpr size_t kBuffersKept = 256;
  const Executor& worker_;
  ResponseWriter writer_;
  std::vector<std::unique_ptr<RequestBuffers>> spare_;
};

// A server's state that all its connections share.
//
//   `open`, `budgets`: any worker adds and takes away. `stopping`: set once, before the
//   listener's end.
class HttpServerCore {
 public:
  HttpServerCore(Runtime& runtime, const HttpServerOptions& server_options, RequestHandler& request_handler);

  ServerLane& LaneOfThisWorker();

  Runtime& runtime;
  const HttpServerOptions options;
  RequestHandler& handler;
  std::atomic<uint64_t> open{0};
  ServerBudgets own_budgets{options.buffer_bytes_max};
  ServerBudgets& budgets = options.budgets == nullptr ? own_budgets : *options.budgets;
  BufferBudget& buffers = budgets.large;
  std::atomic<bool> stopping{false};
  std::vector<std::unique_ptr<ServerLane>> lanes;
  std::unique_ptr<Listener> listener;
};

}  // namespace partita::http

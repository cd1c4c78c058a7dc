#include "api/http/http_server.h"

#include <thread>
#include <utility>
#include <vector>

#include "api/http/http_connection.h"
#include "api/http/server_core.h"
#include "engine/base/assert.h"
#include "engine/io/thread_setup.h"

namespace partita::http {

namespace {

// What an exchange may keep in each of its buffers while it waits for its next request.
constexpr size_t kKeptBytes = 16 << 10;

void ClearAndShrink(std::string* buffer) {
  buffer->clear();
  if (buffer->capacity() > kKeptBytes) std::string().swap(*buffer);
}

Task<void> ServeConnection(HttpServerCore* core, ConnectionHandle handle) {
  HttpConnection connection(*core, std::move(handle));
  co_await connection.Run();
}

}  // namespace

std::unique_ptr<RequestBuffers> ServerLane::Borrow() {
  if (spare_.empty()) return std::make_unique<RequestBuffers>();
  std::unique_ptr<RequestBuffers> buffers = std::move(spare_.back());
  spare_.pop_back();
  return buffers;
}

void ServerLane::GiveBack(std::unique_ptr<RequestBuffers> buffers) {
  if (spare_.size() >= kBuffersKept) return;
  buffers->parser.Reset();
  ClearAndShrink(&buffers->in);
  ClearAndShrink(&buffers->out);
  ClearAndShrink(&buffers->response.body);
  buffers->response.Clear();
  spare_.push_back(std::move(buffers));
}

HttpServerCore::HttpServerCore(Runtime& its_runtime, const HttpServerOptions& server_options,
                               RequestHandler& request_handler)
    : runtime(its_runtime), options(server_options), handler(request_handler) {
  for (uint32_t shard = 0; shard < runtime.shard_count(); ++shard) {
    lanes.push_back(
        std::make_unique<ServerLane>(runtime.shard_executor(ShardId(shard)), options.server_name));
  }
}

ServerLane& HttpServerCore::LaneOfThisWorker() {
  const Executor* worker = Executor::Current();
  for (const auto& lane : lanes) {
    if (&lane->worker() == worker) return *lane;
  }
  PARTITA_ASSERT(false);  // Connections live on the workers of the runtime.
  return *lanes.front();
}

HttpServer::HttpServer() = default;

HttpServer::~HttpServer() {
  if (core_ != nullptr) Stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::Open(Runtime& runtime, const HttpServerOptions& options,
                                                     RequestHandler& handler) {
  PARTITA_ASSIGN(const SocketAddress address, SocketAddress::Parse(options.address));
  std::unique_ptr<HttpServer> server(new HttpServer());
  server->core_ = std::make_unique<HttpServerCore>(runtime, options, handler);
  HttpServerCore* core = server->core_.get();
  auto serve = [core](ConnectionHandle connection) { return ServeConnection(core, std::move(connection)); };
  Result<std::unique_ptr<Listener>> listener = Listener::Open(runtime, address, serve);
  if (!listener.ok()) {
    server->core_.reset();
    return listener.status();
  }
  core->listener = std::move(listener).value();
  return server;
}

uint16_t HttpServer::port() const { return core_->listener->address().port(); }

std::string HttpServer::address() const { return core_->listener->address().ToString(); }

void HttpServer::Stop() {
  core_->stopping.store(true, std::memory_order_relaxed);
  core_->listener->Close(core_->options.timeouts.stop_ms);
}

void HttpServer::StopAll(std::span<const std::unique_ptr<HttpServer>> servers) {
  std::vector<std::thread> stopping;
  for (const auto& server : servers) {
    Result<std::thread> thread = StartThread("partita-stop", [&server] { server->Stop(); });
    if (thread.ok()) {
      stopping.push_back(std::move(*thread));
    } else {
      server->Stop();  // Where there is no thread left, it takes longer.
    }
  }
  for (std::thread& thread : stopping) thread.join();
}

HttpCounters HttpServer::counters() const {
  HttpCounters counters;
  const Listener::Counters accepted = core_->listener->counters();
  counters.connections_open = accepted.open;
  counters.connections_accepted = accepted.accepted;
  counters.accept_failures = accepted.accept_failures;
  for (const auto& lane : core_->lanes) {
    counters.connections_refused += lane->refused.Get();
    counters.tls_failures += lane->tls_failures.Get();
    counters.requests += lane->requests.Get();
    counters.framing_errors += lane->framing_errors.Get();
    counters.timeouts += lane->timeouts.Get();
    counters.bytes_received += lane->bytes_received.Get();
    counters.bytes_sent += lane->bytes_sent.Get();
  }
  counters.buffer_bytes = core_->buffers.held();
  return counters;
}

}  // namespace partita::http

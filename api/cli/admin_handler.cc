#include "api/cli/admin_handler.h"

namespace partita {

namespace {

void Answer(int status, std::string_view type, std::string body, http::HttpResponse* response) {
  response->status = status;
  response->AddHeader("Content-Type", type);
  response->AddHeader("Cache-Control", "no-store");
  response->body = std::move(body);
}

}  // namespace

AdminHandler::AdminHandler(const Database& database, const http::TableService& service,
                           std::vector<const http::HttpServer*> servers, std::string version)
    : database_(database), service_(service), servers_(std::move(servers)), version_(std::move(version)) {}

std::string AdminHandler::Unready(const DatabaseStats& stats) const {
  if (stopping_.load(std::memory_order_relaxed)) return "stopping";
  for (const ShardStats& shard : stats.shards) {
    if (shard.stalled)
      return "shard " + std::to_string(shard.shard) + " is stalled: its disk does not answer";
    if (shard.fenced) return "shard " + std::to_string(shard.shard) + " is fenced after a failed write";
  }
  if (stats.catalog_in_doubt) return "how the last change of a table ended is not known yet";
  return "";
}

ServerMetrics AdminHandler::Collect() const {
  ServerMetrics metrics{
      .service = service_.counters().Sum(), .database = database_.Stats(), .heap = ReadHeapFigures()};
  for (const http::HttpServer* server : servers_) AddCounters(&metrics.http, server->counters());
  metrics.accepting = Unready(metrics.database).empty();
  metrics.uptime_seconds = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - started_).count());
  metrics.version = version_;
  return metrics;
}

Task<void> AdminHandler::Handle(const http::HttpRequest& request, http::HttpResponse* response) {
  constexpr std::string_view kPlain = "text/plain; charset=utf-8";
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  response->omit_body = request.method == http::Method::kHead;
  if (request.method != http::Method::kGet && request.method != http::Method::kHead) {
    Answer(405, kPlain, "only GET and HEAD\n", response);
  } else if (path == "/healthz") {
    Answer(200, kPlain, "ok\n", response);
  } else if (path == "/readyz") {
    const DatabaseStats stats = database_.Stats();
    const std::string unready = Unready(stats);
    // Taken out of service it could not be told what to delete.
    const std::string ready =
        stats.out_of_space ? "ready, but the disk is full: only deletes are accepted" : "ready";
    Answer(unready.empty() ? 200 : 503, kPlain, (unready.empty() ? ready : unready) + "\n", response);
  } else if (path == "/metrics") {
    Answer(200, "text/plain; version=0.0.4; charset=utf-8", MetricsText(Collect()), response);
  } else {
    Answer(404, kPlain, "there are /healthz, /readyz and /metrics\n", response);
  }
  co_return;
}

}  // namespace partita

#include "api/cli/admin_handler.h"

#include <algorithm>
#include <charconv>

#include "api/cli/admin_parameters.h"
#include "api/cli/admin_post.h"
#include "api/cli/admin_ranges.h"
#include "api/cli/heat_json.h"
#include "api/cli/stalls_json.h"
#include "api/http/own_host.h"
#include "api/http/query_parameters.h"
#include "engine/inspect_text.h"

namespace partita {

namespace {

constexpr std::string_view kPlain = "text/plain; charset=utf-8";

void Answer(int status, std::string_view type, std::string body, http::HttpResponse* response) {
  response->status = status;
  response->AddHeader("Content-Type", type);
  response->AddHeader("Cache-Control", "no-store");
  response->body = std::move(body);
}

void AnswerJson(Result<std::string> json, http::HttpResponse* response) {
  if (json.ok()) return Answer(200, "application/json", std::move(json).value(), response);
  const int status = json.code() == Code::kNotFound ? 404 : json.code() == Code::kInvalidArgument ? 400 : 500;
  Answer(status, kPlain, json.status().message() + "\n", response);
}

Status Parse(std::string_view query, http::QueryParameters* parameters) {
  const auto wrong = parameters->Parse(query);
  return wrong ? Status::InvalidArgument("the query of the URL is no query") : Status();
}

// Leaves `out` as it is when the parameter is not given.
Status TakeNumber(const http::QueryParameters& parameters, const char* name, uint32_t* out) {
  const std::optional<std::string_view> text = parameters.Find(name);
  if (!text) return Status();
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *out);
  if (error == std::errc() && end == text->data() + text->size()) return Status();
  return Status::InvalidArgument(std::string(name) + " must be a number");
}

constexpr uint32_t kTopMax = 1'000;
// Of a request: more than the longest change of ranges has, its partition written as \uXXXX throughout.
constexpr uint64_t kBodyBytesMax = 4 << 10;

std::string_view PathOf(const http::HttpRequest& request) {
  return request.target.substr(0, request.target.find('?'));
}

// As the headers tell, before the body is there. Chunks do not tell how much they are: nobody who may ask
// here sends any.
bool HasLargeBody(const http::HttpRequest& request) {
  if (request.body_too_large || request.Header("Transfer-Encoding")) return true;
  const std::string_view told = request.Header("Content-Length").value_or("0");
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(told.data(), told.data() + told.size(), bytes);
  return error != std::errc() || bytes > kBodyBytesMax;
}

}  // namespace

AdminHandler::AdminHandler(Database& database, const http::TableService& service,
                           std::vector<const http::HttpServer*> servers, std::string version,
                           std::vector<std::string> hosts)
    : database_(database),
      service_(service),
      servers_(std::move(servers)),
      version_(std::move(version)),
      hosts_(std::move(hosts)),
      tasks_(database) {}

Readiness AdminHandler::Ready(const DatabaseStats& stats) const {
  if (stopping_.load(std::memory_order_relaxed)) return {false, "stopping"};
  return ReadinessOf(stats);
}

ServerMetrics AdminHandler::Collect() const {
  ServerMetrics metrics{.service = service_.counters().Sum(),
                        .database = database_.Stats(),
                        .heap = ReadHeapFigures(),
                        .load = database_.LoadPerSecond(),
                        .stalls = database_.Stalls()};
  for (const http::HttpServer* server : servers_) AddCounters(&metrics.http, server->counters());
  for (size_t i = 0; i < kHeatMetrics; ++i) {
    metrics.hottest[i] = database_.HotPartitions(static_cast<HeatMetric>(i), ServerMetrics::kHottest);
  }
  metrics.accepting = Ready(metrics.database).ready;
  metrics.uptime_seconds = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - started_).count());
  metrics.version = version_;
  return metrics;
}

Result<std::string> AdminHandler::Heat(std::string_view query) const {
  http::QueryParameters parameters;
  PARTITA_TRY(Parse(query, &parameters));
  PARTITA_TRY(CheckParameterNames(parameters, {"seconds", "columns", "buckets", "top", "table", "by"}));
  HeatWindow window;
  uint32_t top = 10;
  PARTITA_TRY(TakeNumber(parameters, "seconds", &window.seconds));
  PARTITA_TRY(TakeNumber(parameters, "columns", &window.columns_max));
  PARTITA_TRY(TakeNumber(parameters, "buckets", &window.buckets_max));
  PARTITA_TRY(TakeNumber(parameters, "top", &top));
  window.table = parameters.Get("table");
  if (const std::optional<std::string_view> by = parameters.Find("by")) {
    const auto found = std::find(kHeatMetricNames.begin(), kHeatMetricNames.end(), *by);
    if (found == kHeatMetricNames.end()) return Status::InvalidArgument("there is no such metric");
    window.metric = static_cast<HeatMetric>(found - kHeatMetricNames.begin());
  }
  PARTITA_ASSIGN(const HeatReport report, CollectHeat(database_, window, std::min(top, kTopMax)));
  return HeatJson(report);
}

Result<std::string> AdminHandler::Ranges(std::string_view query) const {
  http::QueryParameters parameters;
  PARTITA_TRY(Parse(query, &parameters));
  PARTITA_TRY(CheckParameterNames(parameters, {"table"}));
  PARTITA_ASSIGN(const std::vector<RangeDescription> ranges, database_.ListRanges(parameters.Get("table")));
  return RangesJson(ranges);
}

bool AdminHandler::MayAsk(const http::HttpRequest& request, std::string_view path,
                          http::HttpResponse* response) const {
  const std::optional<std::string_view> host = request.Header("Host");
  if (host && !http::IsOwnHost(*host, hosts_)) {
    Answer(403, kPlain,
           "this is not " + SafeText(*host) +
               "; ask for an address, for localhost, or for a name in 'admin-hosts' of the settings\n",
           response);
    return false;
  }
  const bool reads = request.method == http::Method::kGet || request.method == http::Method::kHead;
  const bool is_change = !RangeChangeOf(path).empty() || AdminTasks::IsTask(path);
  if (!(is_change ? request.method == http::Method::kPost : reads)) {
    Answer(405, kPlain, is_change ? "only POST\n" : "only GET and HEAD\n", response);
    response->AddHeader("Allow", is_change ? "POST" : "GET, HEAD");
    return false;
  }
  if (is_change && !MayPost(request, response)) return false;
  if (!HasLargeBody(request)) return true;
  Answer(413, kPlain,
         "a body has a Content-Length of at most " + std::to_string(kBodyBytesMax) + " bytes here\n",
         response);
  return false;
}

// Who may not ask fills no buffers.
bool AdminHandler::RefuseBeforeBody(const http::HttpRequest& request, http::HttpResponse* response) {
  return !MayAsk(request, PathOf(request), response);
}

Task<void> AdminHandler::Handle(const http::HttpRequest& request, http::HttpResponse* response) {
  const std::string_view path = PathOf(request);
  const std::string_view query = request.target.substr(std::min(request.target.size(), path.size() + 1));
  response->omit_body = request.method == http::Method::kHead;
  if (!MayAsk(request, path, response)) co_return;
  if (AdminTasks::IsTask(path)) {
    co_await tasks_.Run(path, query, request, response);
    co_return;
  }
  if (request.method == http::Method::kPost) {
    co_await ChangeRange(AsyncDatabase(database_), RangeChangeOf(path), request, response);
    co_return;
  }
  AnswerPage(path, query, response);
}

void AdminHandler::AnswerPage(std::string_view path, std::string_view query,
                              http::HttpResponse* response) const {
  if (path == "/healthz") {
    Answer(200, kPlain, "ok\n", response);
  } else if (path == "/readyz") {
    const Readiness readiness = Ready(database_.Stats());
    Answer(readiness.ready ? 200 : 503, kPlain, readiness.text + "\n", response);
  } else if (path == "/metrics") {
    Answer(200, "text/plain; version=0.0.4; charset=utf-8", MetricsText(Collect()), response);
  } else if (path == "/heat") {
    AnswerJson(Heat(query), response);
  } else if (path == "/ranges") {
    AnswerJson(Ranges(query), response);
  } else if (path == "/stalls") {
    AnswerJson(StallsJson(database_.Stalls()), response);
  } else {
    Answer(
        404, kPlain,
        "there are /healthz, /readyz, /metrics, /heat (with seconds, columns, buckets, top, table, by), "
        "/ranges (with table) and /stalls; to POST, /ranges/split, /ranges/merge, /ranges/move, /backup and "
        "/scrub\n",
        response);
  }
}

}  // namespace partita

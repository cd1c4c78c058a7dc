#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "api/cli/admin_tasks.h"
#include "api/cli/metrics_text.h"
#include "api/cli/readiness.h"
#include "api/http/http_message.h"
#include "api/http/http_server.h"
#include "api/http/table_service.h"

namespace partita {

// Answers on the admin address:
//
//   /healthz   200 while the process lives
//   /readyz    200 while requests are accepted, with what an operator should know: that it is only deletes,
//              as the disk is full, that writes cannot be made tables, that the clock is off; 503, with the
//              reason, while the server stops, a shard has fenced itself after a failed write or waits for
//              its disk, or a change of tables is in doubt
//   /metrics   MetricsText
//   /heat      where the load lies, as JSON (heat_json.h); parameters seconds, columns, buckets, table, by
//              (a metric: what the buckets have about as much of), top
//   /ranges    how tables are divided among the shards, as JSON; parameter table. POST of /ranges/split,
//              /ranges/merge and /ranges/move changes it (admin_ranges.h)
//   /stalls    what kept the workers long, as JSON (stalls_json.h)
//   /backup    POST makes a backup of the store (admin_tasks.h)
//   /scrub     POST reads everything on disk, and checks it (admin_tasks.h)
//
// Asks nobody who he is: the address must be one that only operators reach. Asked by a name that is not its
// own (own_host.h) it answers 403, so that no web page reads it. A body of more than 4 KiB, or in chunks, is
// 413. Thread-safe.
class AdminHandler : public http::RequestHandler {
 public:
  // All outlive this; `servers` are those of the table service, `hosts` names that it may be asked by.
  AdminHandler(Database& database, const http::TableService& service,
               std::vector<const http::HttpServer*> servers, std::string version,
               std::vector<std::string> hosts = {});

  Task<void> Handle(const http::HttpRequest& request, http::HttpResponse* response) override;
  bool RefuseBeforeBody(const http::HttpRequest& request, http::HttpResponse* response) override;

  // From here on /readyz says 503, and what a POST began that is long ends early.
  void NoteStopping() {
    stopping_.store(true, std::memory_order_relaxed);
    tasks_.Stop();
  }

 private:
  ServerMetrics Collect() const;
  Result<std::string> Heat(std::string_view query) const;
  Result<std::string> Ranges(std::string_view query) const;
  Readiness Ready(const DatabaseStats& stats) const;

  // False: it is answered.
  bool MayAsk(const http::HttpRequest& request, std::string_view path, http::HttpResponse* response) const;
  void AnswerPage(std::string_view path, std::string_view query, http::HttpResponse* response) const;

  Database& database_;
  const http::TableService& service_;
  const std::vector<const http::HttpServer*> servers_;
  const std::string version_;
  const std::vector<std::string> hosts_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::atomic<bool> stopping_{false};
  AdminTasks tasks_;
};

}  // namespace partita

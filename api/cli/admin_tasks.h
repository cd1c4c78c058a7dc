#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "api/async_database.h"
#include "api/http/http_message.h"
#include "engine/base/maintenance.h"

namespace partita {

// Backups and scrubs of a store that is being served, for `partita backup --admin`, `partita scrub --admin`
// and others:
//
//   POST /backup?to=DIR[&base=DIR][&copy=1][&rate=BYTES]   as Database::Backup
//   POST /scrub[?within=SECONDS][&rate=BYTES]              as Database::Scrub
//
// Directories are of the server's machine and user, and absolute: its own may be any. The answer comes when
// it is done, and tells what was done (maintenance_json.h); damage that was found is no error. Who may:
// admin_post.h.
//
// One at a time; a second one is 409. It ends early, and nothing is left of a backup, when the server stops
// (503) and when who asked has gone. Thread-safe.
class AdminTasks {
 public:
  // `database` outlives this.
  explicit AdminTasks(Database& database) : database_(database) {}

  static bool IsTask(std::string_view path) { return path == "/backup" || path == "/scrub"; }

  // REQUIRES: IsTask(path), MayPost.
  Task<void> Run(std::string_view path, std::string_view query, const http::HttpRequest& request,
                 http::HttpResponse* response);

  // What runs ends soon, and nothing more begins.
  void Stop() { stopping_.store(true, std::memory_order_relaxed); }

 private:
  Status Begin(const std::string& what);
  void End();
  Task<Result<std::string>> BackUp(std::string directory, BackupOptions options);
  Task<Result<std::string>> Scrub(ScrubOptions options);

  const AsyncDatabase database_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::string under_way_;  // Guarded by mutex_. Empty: nothing is.
};

}  // namespace partita

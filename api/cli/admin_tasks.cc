#include "api/cli/admin_tasks.h"

#include <charconv>

#include "api/cli/admin_parameters.h"
#include "api/cli/admin_post.h"
#include "api/cli/figures.h"
#include "api/cli/maintenance_json.h"
#include "api/http/query_parameters.h"

namespace partita {

namespace {

struct Asked {
  std::string directory, base;
  bool copy = false;
  uint64_t bytes_per_second = 0, seconds = 0;
};

// 0 when it is not given.
Result<uint64_t> TakeAmount(const http::QueryParameters& parameters, const char* name) {
  const std::optional<std::string_view> text = parameters.Find(name);
  if (!text) return uint64_t{0};
  uint64_t amount = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), amount);
  if (error == std::errc() && end == text->data() + text->size() && amount > 0) return amount;
  return Status::InvalidArgument(std::string(name) + " must be a number of 1 or more");
}

// Empty when it is not given.
Result<std::string> TakeDirectory(const http::QueryParameters& parameters, const char* name) {
  const std::optional<std::string_view> text = parameters.Find(name);
  if (!text) return std::string();
  if (text->starts_with('/') && text->find('\0') == text->npos) return std::string(*text);
  return Status::InvalidArgument(std::string(name) + " must be a directory that begins with /, without NUL");
}

Result<Asked> ReadTask(std::string_view path, std::string_view query) {
  http::QueryParameters parameters;
  if (parameters.Parse(query))
    return Status::InvalidArgument("the query of the URL cannot be read; names must be UTF-8");
  Asked asked;
  PARTITA_ASSIGN(asked.bytes_per_second, TakeAmount(parameters, "rate"));
  if (asked.bytes_per_second > 0) PARTITA_TRY(CheckTaskRate(asked.bytes_per_second).WithContext("rate"));
  if (path == "/scrub") {
    PARTITA_TRY(CheckParameterNames(parameters, {"rate", "within"}));
    PARTITA_ASSIGN(asked.seconds, TakeAmount(parameters, "within"));
    return asked;
  }
  PARTITA_TRY(CheckParameterNames(parameters, {"rate", "to", "base", "copy"}));
  PARTITA_ASSIGN(asked.directory, TakeDirectory(parameters, "to"));
  PARTITA_ASSIGN(asked.base, TakeDirectory(parameters, "base"));
  if (asked.directory.empty()) return Status::InvalidArgument("where to? Name a new directory: to=DIR");
  asked.copy = parameters.Has("copy");
  if (asked.copy && parameters.Get("copy") != "1") return Status::InvalidArgument("copy can only be 1");
  return asked;
}

}  // namespace

Task<void> AdminTasks::Run(std::string_view path, std::string_view query, const http::HttpRequest& request,
                           http::HttpResponse* response) {
  const Status is_json = CheckIsJson(request);
  if (!is_json.ok()) co_return AnswerPostError(400, is_json, response);
  const Result<Asked> asked = ReadTask(path, query);
  if (!asked.ok()) co_return AnswerPostError(400, asked.status(), response);
  const bool is_backup = !asked->directory.empty();
  const Status begun = Begin(is_backup ? "a backup to '" + asked->directory + "'" : "a scrub");
  if (!begun.ok()) co_return AnswerPostError(begun.code() == Code::kBusy ? 409 : 503, begun, response);

  TaskPace pace;
  pace.bytes_per_second = asked->bytes_per_second;
  pace.progress = [this, &request](uint64_t, uint64_t) {
    return !stopping_.load(std::memory_order_relaxed) && !request.PeerIsGone();
  };
  Result<std::string> done = std::string();
  if (is_backup) {
    BackupOptions options;
    options.pace = std::move(pace);
    options.sharing = asked->copy ? FileSharing::kNever : FileSharing::kWherePossible;
    options.base = asked->base;
    done = co_await BackUp(asked->directory, std::move(options));
  } else {
    ScrubOptions options;
    options.pace = std::move(pace);
    options.period_seconds = asked->seconds;
    done = co_await Scrub(std::move(options));
  }
  End();
  if (done.code() == Code::kCancelled) {
    const bool stops = stopping_.load(std::memory_order_relaxed);
    done = done.status().WithContext(stops ? "the server stops" : "who asked has ended the connection");
  }
  if (!done.ok()) co_return AnswerPostError(HttpStatusOf(done.code()), done.status(), response);
  AnswerPost(200, std::move(done).value(), response);
}

Status AdminTasks::Begin(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (stopping_.load(std::memory_order_relaxed)) return Status::Closed("the server stops");
  if (!under_way_.empty())
    return Status::Busy(under_way_ + " is under way; there is one backup or scrub at a time");
  under_way_ = what;
  return Status();
}

void AdminTasks::End() {
  const std::lock_guard lock(mutex_);
  under_way_.clear();
}

Task<Result<std::string>> AdminTasks::BackUp(std::string directory, BackupOptions options) {
  const Result<BackupReport> done = co_await database_.Backup(std::move(directory), std::move(options));
  if (!done.ok()) co_return done.status();
  co_return BackupJson(*done);
}

Task<Result<std::string>> AdminTasks::Scrub(ScrubOptions options) {
  const Result<ScrubReport> done = co_await database_.Scrub(std::move(options));
  if (!done.ok()) co_return done.status();
  co_return ScrubJson(*done);
}

}  // namespace partita

#include "api/cli/admin_ranges.h"

#include "api/cli/json_fields.h"

namespace partita {

namespace {

constexpr std::string_view kFolder = "/ranges/";
constexpr std::string_view kJson = "application/json";

struct Change {
  std::string table, partition;
  uint32_t shard = 0;
};

int HttpStatusOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kPreconditionFailed:
      return 409;
    case Code::kUnsupported:
      return 403;
    case Code::kBusy:
    case Code::kClosed:
    case Code::kNoSpace:
      return 503;
    default:
      return 500;
  }
}

void Answer(int status, std::string body, http::HttpResponse* response) {
  response->status = status;
  response->AddHeader("Content-Type", kJson);
  response->AddHeader("Cache-Control", "no-store");
  response->body = std::move(body);
}

void AnswerError(int http_status, const Status& why, http::HttpResponse* response) {
  std::string body = "{\"error\":{";
  AppendText(&body, "code", CodeName(why.code()));
  AppendText(&body, "message", why.message());
  Answer(http_status, body + "}}\n", response);
}

// Why the request is not taken, whatever it says.
Status CheckSender(const http::HttpRequest& request) {
  if (request.Header("Origin")) {
    return Status::Unsupported("a web page has no business here (the request names an Origin)");
  }
  if (request.remote_is_local) return Status();
  return Status::Unsupported("ranges are changed from the server's own machine only, not from " +
                             std::string(request.remote_address));
}

Result<Change> ReadChange(const http::HttpRequest& request, bool is_move) {
  const std::string_view type = request.Header("Content-Type").value_or("");
  if (type.substr(0, type.find(';')) != kJson) {
    return Status::InvalidArgument("the Content-Type must be application/json");
  }
  const Status wrong = Status::InvalidArgument(
      is_move ? "the body must be like {\"table\":\"Orders\",\"partition\":\"m\",\"shard\":1}"
              : "the body must be like {\"table\":\"Orders\",\"partition\":\"m\"}");
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(request.body.data(), request.body.size()).get(root) != simdjson::SUCCESS) return wrong;
  JsonFields read;
  Change change{read.Text(root, "table"), read.Text(root, "partition"), 0};
  if (is_move) change.shard = read.Count(root, "shard");
  if (!read.ok()) return wrong;
  return change;
}

}  // namespace

std::string_view RangeChangeOf(std::string_view path) {
  for (const std::string_view change : {"split", "merge", "move"}) {
    if (path.starts_with(kFolder) && path.substr(kFolder.size()) == change) return change;
  }
  return {};
}

bool MayChangeRanges(const http::HttpRequest& request, http::HttpResponse* response) {
  const Status may = CheckSender(request);
  if (!may.ok()) AnswerError(403, may, response);
  return may.ok();
}

Task<void> ChangeRange(AsyncDatabase database, std::string_view change, const http::HttpRequest& request,
                       http::HttpResponse* response) {
  const bool is_move = change == "move";
  Result<Change> asked = ReadChange(request, is_move);
  if (!asked.ok()) co_return AnswerError(400, asked.status(), response);
  std::string body = "{";
  AppendText(&body, "table", asked->table);
  AppendText(&body, "partition", asked->partition);
  Status done;
  if (is_move) {
    const Result<Database::RangeMove> moved =
        co_await database.MoveRange(asked->table, asked->partition, asked->shard);
    done = moved.status();
    if (moved.ok()) {
      AppendCount(&body, "from_shard", moved->from);
      AppendCount(&body, "to_shard", moved->to);
      AppendNumber(&body, "pause_ms", moved->pause_ms);
      AppendCount(&body, "bytes_written", moved->bytes_written);
    }
  } else if (change == "split") {
    done = co_await database.SplitRange(asked->table, asked->partition);
  } else {
    done = co_await database.MergeRanges(asked->table, asked->partition);
  }
  if (!done.ok()) co_return AnswerError(HttpStatusOf(done.code()), done, response);
  Answer(200, body + "}\n", response);
}

}  // namespace partita

#include "api/cli/admin_ranges.h"

#include "api/cli/admin_post.h"
#include "api/cli/json_fields.h"

namespace partita {

namespace {

constexpr std::string_view kFolder = "/ranges/";

struct Change {
  std::string table, partition;
  uint32_t shard = 0;
};

Result<Change> ReadChange(const http::HttpRequest& request, bool is_move) {
  PARTITA_TRY(CheckIsJson(request));
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

Task<void> ChangeRange(AsyncDatabase database, std::string_view change, const http::HttpRequest& request,
                       http::HttpResponse* response) {
  const bool is_move = change == "move";
  Result<Change> asked = ReadChange(request, is_move);
  if (!asked.ok()) co_return AnswerPostError(400, asked.status(), response);
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
  if (!done.ok()) co_return AnswerPostError(HttpStatusOf(done.code()), done, response);
  AnswerPost(200, body + "}\n", response);
}

}  // namespace partita

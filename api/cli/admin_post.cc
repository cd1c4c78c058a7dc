#include "api/cli/admin_post.h"

#include <string_view>

#include "api/cli/json_fields.h"

namespace partita {

namespace {

constexpr std::string_view kJson = "application/json";

// Why the request is not taken, whatever it says.
Status CheckSender(const http::HttpRequest& request) {
  if (request.Header("Origin")) {
    return Status::Unsupported("a web page has no business here (the request names an Origin)");
  }
  if (request.remote_is_local) return Status();
  return Status::Unsupported("this is done for the server's own machine only, not for " +
                             std::string(request.remote_address));
}

}  // namespace

bool MayPost(const http::HttpRequest& request, http::HttpResponse* response) {
  const Status may = CheckSender(request);
  if (!may.ok()) AnswerPostError(403, may, response);
  return may.ok();
}

Status CheckIsJson(const http::HttpRequest& request) {
  const std::string_view type = request.Header("Content-Type").value_or("");
  if (type.substr(0, type.find(';')) == kJson) return Status();
  return Status::InvalidArgument("the Content-Type must be application/json");
}

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
    case Code::kCancelled:
    case Code::kNoSpace:
      return 503;
    default:
      return 500;
  }
}

void AnswerPost(int http_status, std::string json, http::HttpResponse* response) {
  response->status = http_status;
  response->AddHeader("Content-Type", kJson);
  response->AddHeader("Cache-Control", "no-store");
  response->body = std::move(json);
}

void AnswerPostError(int http_status, const Status& why, http::HttpResponse* response) {
  std::string body = "{\"error\":{";
  AppendText(&body, "code", CodeName(why.code()));
  AppendText(&body, "message", why.message());
  AnswerPost(http_status, body + "}}\n", response);
}

}  // namespace partita

#include "api/http/http_message.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/assert.h"

namespace partita::http {

namespace {

constexpr std::array<std::pair<std::string_view, Method>, 8> kMethods = {{
    {"GET", Method::kGet},
    {"HEAD", Method::kHead},
    {"POST", Method::kPost},
    {"PUT", Method::kPut},
    {"DELETE", Method::kDelete},
    {"MERGE", Method::kMerge},
    {"PATCH", Method::kPatch},
    {"OPTIONS", Method::kOptions},
}};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool HasLineBreak(std::string_view text) { return text.find_first_of("\r\n") != std::string_view::npos; }

}  // namespace

std::string_view MethodName(Method method) {
  for (const auto& [name, value] : kMethods) {
    if (value == method) return name;
  }
  return "";
}

Method MethodFromName(std::string_view name) {
  for (const auto& [known, value] : kMethods) {
    if (known == name) return value;
  }
  return Method::kOther;
}

bool SameHeaderName(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return Lower(x) == Lower(y); });
}

std::optional<std::string_view> HttpRequest::Header(std::string_view name) const {
  for (const HeaderField& field : headers) {
    if (SameHeaderName(field.name, name)) return field.value;
  }
  return std::nullopt;
}

size_t HttpRequest::HeaderCount(std::string_view name) const {
  return static_cast<size_t>(std::count_if(headers.begin(), headers.end(), [&](const HeaderField& field) {
    return SameHeaderName(field.name, name);
  }));
}

std::optional<std::string_view> HttpRequest::HeaderList(std::string_view name, std::string* joined) const {
  const std::optional<std::string_view> first = Header(name);
  if (!first || HeaderCount(name) == 1) return first;
  joined->clear();
  for (const HeaderField& field : headers) {
    if (SameHeaderName(field.name, name)) joined->append(joined->empty() ? "" : ",").append(field.value);
  }
  return *joined;
}

bool RequestHandler::RefuseBeforeBody(const HttpRequest&, HttpResponse*) { return false; }

void RequestHandler::Refuse(int status, std::string_view reason, const HttpRequest&, HttpResponse* response) {
  response->status = status;
  response->AddHeader("Content-Type", "text/plain; charset=utf-8");
  response->body.append(reason).append("\n");
}

void HttpResponse::AddHeader(std::string_view name, std::string_view value) {
  PARTITA_ASSERT(!HasLineBreak(name) && !HasLineBreak(value));
  headers.append(name);
  headers.append(": ");
  headers.append(value);
  headers.append("\r\n");
}

void HttpResponse::Clear() {
  status = 500;
  headers.clear();
  // What its share counted is not kept uncounted.
  if (body.capacity() > kLargeBody) std::string().swap(body);
  body.clear();
  omit_body = false;
  close = false;
  due_ms = 0;
  body_share = BufferShare();
}

}  // namespace partita::http

#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/accounts.h"
#include "api/http/http_date.h"
#include "api/http/http_message.h"
#include "api/http/table_service.h"
#include "api/partita.h"
#include "engine/io/sim_disk.h"
#include "engine/io/sim_runtime.h"

namespace partita::http {

// Of the worked examples (spec 22).
inline constexpr std::string_view kExampleKey =
    "cW/v/E7TrIw7LD13KgOQmnbqDmWdreuqsZ339o+SMYKWm4zU0Idg56iJd7PMMQK5om4fbk8ujMkdrz/WmXNC5A==";
inline constexpr std::string_view kNoMetadata = "Accept: application/json;odata=nometadata\n";
inline constexpr std::string_view kExampleHost = "contoso.table.core.windows.net";

// What came back.
struct Reply {
  int status = 0;
  std::string headers;  // Finished lines.
  std::string body;
  bool omit_body = false;
  uint32_t due_ms = 0;

  // The values of the headers of this name, ignoring case.
  std::vector<std::string> All(std::string_view name) const {
    std::vector<std::string> values;
    std::string_view rest = headers;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find("\r\n"));
      rest.remove_prefix(line.size() + 2);
      const size_t colon = line.find(": ");
      if (SameHeaderName(line.substr(0, colon), name)) values.emplace_back(line.substr(colon + 2));
    }
    return values;
  }
  bool Has(std::string_view name) const { return !All(name).empty(); }
  // The one value; "(none)", or "(several)", when there is not one.
  std::string Header(std::string_view name) const {
    std::vector<std::string> values = All(name);
    if (values.empty()) return "(none)";
    return values.size() == 1 ? values[0] : "(several)";
  }

  // The text between two others in the body; "(none)" when they are not there.
  std::string Between(std::string_view before, std::string_view after) const {
    size_t begin = body.find(before);
    if (begin == std::string::npos) return "(none)";
    begin += before.size();
    const size_t end = body.find(after, begin);
    return end == std::string::npos ? "(none)" : body.substr(begin, end - begin);
  }
  // Of an error, JSON or XML, alone or in a batch.
  std::string Code() const {
    if (body.find("\"odata.error\"") != std::string::npos) return Between("{\"code\":\"", "\"");
    return body.find("<m:code>") != std::string::npos ? Between("<m:code>", "</m:code>")
                                                      : Between("<code>", "</code>");
  }
  // Its first line, index prefix included.
  std::string Message() const {
    if (body.find("\"odata.error\"") != std::string::npos) return Between("\"value\":\"", "\\nRequestId:");
    return body.find("<m:message") != std::string::npos ? Between("<m:message xml:lang=\"en-US\">", "\n")
                                                        : Between("<message xml:lang=\"en-US\">", "\n");
  }
  // "404 ResourceNotFound"; "204" when it is no error.
  std::string Outcome() const { return std::to_string(status) + (status < 400 ? "" : " " + Code()); }
  std::string Etag() const { return Header("ETag"); }
};

// The status lines of the parts of a batch's answer: {204, 204}.
inline std::vector<int> PartsOf(const Reply& reply) {
  std::vector<int> statuses;
  constexpr std::string_view kLine = "\r\nHTTP/1.1 ";
  for (size_t at = reply.body.find(kLine); at != std::string::npos; at = reply.body.find(kLine, at + 1)) {
    statuses.push_back(std::stoi(reply.body.substr(at + kLine.size(), 3)));
  }
  return statuses;
}

// The service on a store in the simulator (a disk in memory, a virtual clock), asked by raw requests
// without a network. Accounts: contoso, with the key of the examples, and the development account.
class ServiceWorld {
 public:
  explicit ServiceWorld(TableServiceOptions options = {}) : options_(std::move(options)) { Open(); }
  ~ServiceWorld() { Close(); }

  // With nothing in memory.
  void Reopen() {
    Close();
    Open();
  }

  SimRuntime& runtime() { return runtime_; }
  Database& database() { return *database_; }
  TableService& service() { return *service_; }

  // Sends a request as it is: request line, headers, an empty line, the body. Lines may end with LF alone.
  // Host, x-ms-version, x-ms-date, Content-Length and a SharedKeyLite signature of contoso (or of the
  // account in the path) are added where the text does not have them; see Send for exact texts.
  Reply Ask(std::string_view text) { return Send(text, /*complete=*/true); }
  // The same, adding nothing: what is not in the text is not sent.
  Reply AskExactly(std::string_view text) { return Send(text, /*complete=*/false); }

  // The refusal of a request before its body is received; status 0 when there is none.
  Reply RefuseBeforeBody(std::string_view text) {
    return Send(text, /*complete=*/true, [this](const HttpRequest& request, HttpResponse* response) {
      return service_->RefuseBeforeBody(request, response);
    });
  }

  // What a connection that cannot take the request, or waits no longer, has the service say.
  Reply Refuse(int status, std::string_view reason, std::string_view text, uint64_t after_ns = 0) {
    return Send(text, /*complete=*/true, [&](const HttpRequest& request, HttpResponse* response) {
      runtime_.AdvanceTime(after_ns);
      service_->Refuse(status, reason, request, response);
      return true;
    });
  }

  // Shorthands.
  Reply Get(std::string_view target, std::string_view headers = "") {
    return Plain("GET", target, headers, "");
  }
  Reply Delete(std::string_view target, std::string_view headers = "If-Match: *\n") {
    return Plain("DELETE", target, headers, "");
  }
  Reply Post(std::string_view target, std::string_view body, std::string_view headers = "") {
    return Plain("POST", target, headers, body);
  }
  Reply Put(std::string_view target, std::string_view body, std::string_view headers = "") {
    return Plain("PUT", target, headers, body);
  }
  Reply Merge(std::string_view target, std::string_view body, std::string_view headers = "") {
    return Plain("MERGE", target, headers, body);
  }
  Reply Plain(std::string_view method, std::string_view target, std::string_view headers,
              std::string_view body) {
    std::string text(method);
    text.append(" ").append(target).append(" HTTP/1.1\n").append(headers).append("\n").append(body);
    return Ask(text);
  }
  void MakeTable(std::string_view name) {
    Reply reply = Post("/Tables", "{\"TableName\":\"" + std::string(name) + "\"}");
    ASSERT_EQ(reply.status, 201) << reply.body;
  }
  // An entity without properties beyond those given as JSON members, ",\"a\":1".
  Reply Insert(std::string_view table, std::string_view partition, std::string_view row,
               std::string_view members = "") {
    std::string body =
        "{\"PartitionKey\":\"" + std::string(partition) + "\",\"RowKey\":\"" + std::string(row) + "\"";
    body.append(members).append("}");
    return Post("/" + std::string(table), body);
  }

  // Changes what Send puts into requests from now on.
  bool secure = true;
  std::string remote_address = "127.0.0.1";
  bool answered = false;
  bool body_too_large = false;
  bool withhold_length = false;  // Neither Content-Length nor chunks.
  BufferBudget* buffers = nullptr;
  const std::atomic<bool>* peer_gone = nullptr;

 private:
  void Open() {
    Options store;
    store.directory = "store";
    store.create_if_missing = true;
    store.memory_bytes = 64 << 20;
    store.shards = 2;
    database_ = std::move(Database::OpenOn(runtime_, store)).value();
    service_ = std::make_unique<TableService>(*database_, accounts_, options_);
  }
  void Close() {
    service_.reset();
    EXPECT_TRUE(database_->Close().ok());
  }

  static AccountSet MakeAccounts() {
    return std::move(AccountSet::Create({{"contoso", {std::string(kExampleKey)}},
                                         DevelopmentAccount(),
                                         {"closed", {std::string(kExampleKey)}, /*disabled=*/true}}))
        .value();
  }

  // False: there is no answer.
  using Asked = std::function<bool(const HttpRequest& request, HttpResponse* response)>;
  Reply Send(std::string_view text, bool complete, const Asked& ask);
  Reply Send(std::string_view text, bool complete) {
    return Send(text, complete, [this](const HttpRequest& request, HttpResponse* response) {
      runtime_.Run(service_->Handle(request, response));
      return true;
    });
  }
  void Complete(HttpRequest* request);
  std::string_view Keep(std::string text) {
    kept_.push_back(std::make_unique<std::string>(std::move(text)));
    return *kept_.back();
  }

  SimDisk disk_{1};
  SimRuntime runtime_{{.seed = 1, .shards = 2}, disk_};
  AccountSet accounts_ = MakeAccounts();
  TableServiceOptions options_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<TableService> service_;
  std::vector<std::unique_ptr<std::string>> kept_;
};

inline std::string_view TakeLine(std::string_view* rest) {
  std::string_view line = rest->substr(0, rest->find('\n'));
  rest->remove_prefix(std::min(line.size() + 1, rest->size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

inline void ServiceWorld::Complete(HttpRequest* request) {
  if (!request->Header("Host")) request->headers.push_back({"Host", kExampleHost});
  if (!request->Header("x-ms-version")) request->headers.push_back({"x-ms-version", "2019-02-02"});
  const bool signed_already =
      request->Header("Authorization") || request->target.find("sig=") != std::string_view::npos;
  if (signed_already || request->method == Method::kOptions) return;
  std::optional<std::string_view> date = request->Header("x-ms-date");
  if (!date) date = request->Header("Date");
  if (!date) {
    date = Keep(FormatHttpDate(DateTime{request->arrived_ticks}));
    request->headers.push_back({"x-ms-date", *date});
  }
  const std::string_view path = request->target.substr(0, request->target.find('?'));
  std::string account = "contoso";
  if (request->Header("Host")->find('.') == std::string_view::npos ||
      std::isdigit(static_cast<unsigned char>((*request->Header("Host"))[0]))) {
    account = path.substr(1, path.find('/', 1) - 1);
    if (account.ends_with("-secondary")) account.resize(account.size() - 10);
  } else {
    account = request->Header("Host")->substr(0, request->Header("Host")->find('.'));
    if (account.ends_with("-secondary")) account.resize(account.size() - 10);
  }
  std::string to_sign = std::string(*date) + "\n/" + account + std::string(path);
  const size_t comp = request->target.find("comp=");
  if (comp != std::string_view::npos) {
    to_sign.append("?").append(request->target.substr(comp, request->target.find('&', comp) - comp));
  }
  const std::string key(account == kDevelopmentAccount ? kDevelopmentKey : kExampleKey);
  const std::string signature = SigningKey::FromBase64(key)->Sign(to_sign);
  request->headers.push_back({"Authorization", Keep("SharedKeyLite " + account + ":" + signature)});
}

inline Reply ServiceWorld::Send(std::string_view text, bool complete, const Asked& ask) {
  kept_.clear();
  // simdjson may read 64 bytes behind the body.
  const std::string_view all = Keep(std::string(text) + std::string(64, ' '));
  std::string_view rest = all.substr(0, text.size());
  HttpRequest request;
  std::string_view line = TakeLine(&rest);
  request.method_text = line.substr(0, line.find(' '));
  request.method = MethodFromName(request.method_text);
  line.remove_prefix(request.method_text.size() + 1);
  request.target = line.substr(0, line.rfind(' '));
  for (line = TakeLine(&rest); !line.empty(); line = TakeLine(&rest)) {
    std::string_view value = line.substr(line.find(':') + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    while (value.ends_with(' ')) value.remove_suffix(1);
    request.headers.push_back({line.substr(0, line.find(':')), value});
  }
  request.body = rest;
  request.has_body = !rest.empty();
  request.has_length = (complete && !withhold_length) || request.Header("Content-Length") ||
                       request.Header("Transfer-Encoding");
  request.body_too_large = body_too_large;
  request.secure = secure;
  request.remote_address = remote_address;
  request.buffers = buffers;
  request.peer_gone = peer_gone;
  request.answered = answered;
  request.arrived_ticks = runtime_.clock().WallTicks();
  if (complete) Complete(&request);
  HttpResponse response;
  if (!ask(request, &response)) return {};
  return {response.status, std::move(response.headers), std::move(response.body), response.omit_body,
          response.due_ms};
}

}  // namespace partita::http

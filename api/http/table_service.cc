#include "api/http/table_service.h"

#include <algorithm>
#include <utility>

#include "api/http/cors.h"
#include "api/http/own_host.h"
#include "api/http/request_id.h"
#include "api/http/service_core.h"

namespace partita::http {

namespace {

constexpr size_t kClientRequestIdMax = 1024;
constexpr uint64_t kNanosPerMicro = 1000;
constexpr uint64_t kNanosPerTick = 100;
constexpr uint32_t kMillisPerSecond = 1000;
// How long behind its time a request is answered by its connection. What the store ends in time is told
// better: a query by the page that it has, a write by what its log did not answer in 30 s.
constexpr uint32_t kGraceMillis = 1000;

// Visible ASCII and spaces: what may stand in an answer's header.
bool IsHeaderText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// One request from its arrival to its answer.
struct Visit {
  explicit Visit(const HttpRequest& request) : http(request), request(request) {}

  const HttpRequest& http;
  ServiceRequest request;
  RequestId id;
  AnswerIdentity identity{id.text(), http.arrived_ticks};
  Grant grant;
  std::string_view version = kNewestVersion;
  std::string_view error_code;
  uint64_t started_nanos = 0;
};

ServiceError NotForPages(std::string why) {
  return ServiceError(ErrorCode::kAuthorizationFailure,
                      "Everybody knows the key of the development account, so no web page may use it: " + why)
      .AsXml();
}

// A page can sign with a public key, and send from this machine: what it cannot do is hide that it asks.
Answer CheckNoPage(ServiceCore& core, const ServiceRequest& request) {
  const Resource& resource = request.resource;
  if (!core.options.guards_development_account || resource.account != kDevelopmentAccount)
    return std::nullopt;
  if (!IsOwnHost(resource.base.host, core.options.addresses.path_style_hosts)) {
    return NotForPages(
        "it is asked for by an address, by localhost, or by a name in path-style-hosts of the settings file. "
        "An account that has a key of its own is served by any name.");
  }
  if (ComesFromForeignPage(request.http, core.settings.Properties(resource.account).get())) {
    return NotForPages("no CORS rule of the account allows the Origin of this request.");
  }
  return std::nullopt;
}

// The steps of spec 10.9 that look at no body: whose it is, and whether he may.
Answer Identify(ServiceCore& core, Visit* visit) {
  ServiceRequest& request = visit->request;
  Answer refused = ReadVersion(request, &visit->version);
  if (!refused) refused = CheckNoPage(core, request);
  if (!refused) {
    refused = core.authorizer.Authorize(request.http, request.resource, request.query, &visit->grant);
  }
  if (!refused) refused = ReadKind(&request);
  if (refused) return refused;
  if (std::optional<Operation> operation = OperationOf(request.kind)) {
    return visit->grant.Check(*operation, request.resource.table);
  }
  return std::nullopt;
}

// And what every answer has of it, a refusal too: the version and the form. Identify refuses a version that
// is none.
Answer ReadAddressAndForm(ServiceCore& core, Visit* visit) {
  Answer refused = ReadAddress(core.options.addresses, &visit->request);
  (void)ReadVersion(visit->request, &visit->version);
  ReadFormat(&visit->request);
  return refused;
}

// Steps 1 to 7 of spec 10.9; a preflight, which nobody signs, is answered here.
Answer Admit(ServiceCore& core, Visit* visit, HttpResponse* response) {
  ServiceRequest& request = visit->request;
  Answer refused = ReadAddressAndForm(core, visit);
  if (refused) return refused;
  if (request.http.method == Method::kOptions) {
    request.kind = RequestKind::kPreflight;
    return AnswerPreflight(request.http, core.settings.Properties(request.resource.account).get(), response);
  }
  refused = Identify(core, visit);
  if (refused) return refused;
  return ReadHeaders(&request);
}

// Not a coroutine: it chooses one. REQUIRES: a kind that has an operation.
Task<Answer> Run(Exchange& exchange) {
  switch (exchange.request.kind) {
    case RequestKind::kQueryTables:
      return AnswerQueryTables(exchange);
    case RequestKind::kGetTable:
      return AnswerGetTable(exchange);
    case RequestKind::kCreateTable:
      return AnswerCreateTable(exchange);
    case RequestKind::kDeleteTable:
      return AnswerDeleteTable(exchange);
    case RequestKind::kGetTableAcl:
      return AnswerGetTableAcl(exchange);
    case RequestKind::kSetTableAcl:
      return AnswerSetTableAcl(exchange);
    case RequestKind::kQueryEntities:
      return AnswerQueryEntities(exchange);
    case RequestKind::kGetEntity:
      return AnswerGetEntity(exchange);
    case RequestKind::kBatch:
      return AnswerBatch(exchange);
    case RequestKind::kGetServiceProperties:
      return AnswerGetServiceProperties(exchange);
    case RequestKind::kSetServiceProperties:
      return AnswerSetServiceProperties(exchange);
    case RequestKind::kGetServiceStats:
      return AnswerGetServiceStats(exchange);
    default:
      PARTITA_ASSERT(IsEntityWrite(exchange.request.kind));
      return AnswerEntityWrite(exchange);
  }
}

// What every answer has.
void AppendCommonHeaders(const HttpRequest& http, const RequestId& id, std::string_view version,
                         HttpResponse* response) {
  AppendHeader(&response->headers, "x-ms-request-id", id.text());
  AppendHeader(&response->headers, "x-ms-version", version);
  std::optional<std::string_view> client_id = http.Header("x-ms-client-request-id");
  // Longer ones are against the protocol; no client sends any, and echoing them helps nobody.
  if (client_id && client_id->size() <= kClientRequestIdMax && IsHeaderText(*client_id)) {
    AppendHeader(&response->headers, "x-ms-client-request-id", *client_id);
  }
}

void Log(const AccessLog& log, const Visit& visit, const HttpResponse& response, uint64_t microseconds) {
  if (!log) return;
  const std::string target = TargetForLog(visit.http.target);
  AccessRecord record;
  record.kind = visit.request.kind;
  record.method = visit.http.method_text;
  record.target = target;
  record.account = visit.request.resource.account;
  record.remote_address = visit.http.remote_address;
  record.request_id = visit.id.text();
  record.client_request_id = visit.http.Header("x-ms-client-request-id").value_or("");
  record.error_code = visit.error_code;
  record.status = response.status;
  record.bytes_in = visit.http.body.size();
  record.bytes_out = response.omit_body ? 0 : response.body.size();
  record.microseconds = microseconds;
  log(record);
}

void AppendHeaders(ServiceCore& core, const Visit& visit, HttpResponse* response) {
  AppendCommonHeaders(visit.http, visit.id, visit.version, response);
  const std::shared_ptr<const ServiceProperties> properties =
      core.settings.Properties(visit.request.resource.account);
  if (visit.request.kind != RequestKind::kPreflight) {
    AddCorsHeaders(visit.http, properties.get(), response);
  } else if (response->status != 200 && properties != nullptr && !properties->cors.empty()) {
    response->AddHeader("Vary", "Origin");
  }
}

void Finish(ServiceCore& core, Visit* visit, const Answer& refused, HttpResponse* response) {
  const HttpRequest& http = visit->http;
  if (http.answered) return;  // As what was refused: logged and counted then.
  if (refused) {
    visit->error_code = ErrorCodeName(refused->code);
    AnswerError(visit->request, *refused, visit->identity, response);
  }
  AppendHeaders(core, *visit, response);
  response->omit_body = http.method == Method::kHead;
  const uint64_t microseconds =
      (core.database.runtime().clock().MonotonicNanos() - visit->started_nanos) / kNanosPerMicro;
  core.counters.CountRequest(visit->request.kind, response->status, microseconds, http.body.size(),
                             response->body.size());
  Log(core.options.access_log, *visit, *response, microseconds);
}

// Counts the large answer to a read, or refuses when it finds no room: left to the connection, the refusal
// would come after the answer was logged, and counted, as given. A page has been counted while it grew.
Answer CountLargeAnswer(const HttpRequest& http, HttpResponse* response) {
  const bool reads = http.method == Method::kGet || http.method == Method::kHead;
  const bool counted = response->body_share.bytes() > 0;
  if (!reads || counted || response->body.size() <= HttpResponse::kLargeBody) return std::nullopt;
  response->body_share = BufferShare(http.buffers);
  if (response->body_share.Set(response->body.capacity())) return std::nullopt;
  return TooManyLargeAnswers();
}

// When a request came, by the clock that measures how long it took.
uint64_t ArrivalNanos(Clock& clock, const HttpRequest& http) {
  const uint64_t wall = clock.WallTicks();
  const uint64_t now = clock.MonotonicNanos();
  return now - std::min(now, (wall - std::min(wall, http.arrived_ticks)) * kNanosPerTick);
}

// The codes that fit what the connection could not take or wait for; the status is the connection's.
ErrorCode CodeOfRefusal(int status) {
  switch (status) {
    case 501:
    case 505:
      return ErrorCode::kNotImplemented;
    case 503:
      return ErrorCode::kServerBusy;
    case 408:
    case 500:
      return ErrorCode::kOperationTimedOut;
    default:
      return ErrorCode::kInvalidInput;
  }
}

}  // namespace

struct TableService::Impl : ServiceCore {
  using ServiceCore::ServiceCore;
};

TableService::TableService(Database& database, const AccountSet& accounts, TableServiceOptions options)
    : impl_(std::make_unique<Impl>(database, accounts, std::move(options))) {}
TableService::~TableService() = default;

const ServiceCounters& TableService::counters() const { return impl_->counters; }

Task<void> TableService::Handle(const HttpRequest& http, HttpResponse* response) {
  Visit visit(http);
  visit.started_nanos = impl_->database.runtime().clock().MonotonicNanos();
  Answer refused = Admit(*impl_, &visit, response);
  if (!refused && visit.request.kind != RequestKind::kPreflight) {
    Exchange exchange{*impl_, visit.request, visit.grant, visit.identity, response};
    response->due_ms = visit.request.timeout_seconds * kMillisPerSecond + kGraceMillis;
    Task<Answer> run = Run(exchange);
    refused = co_await std::move(run);
    if (!refused) refused = CountLargeAnswer(http, response);
  }
  Finish(*impl_, &visit, refused, response);
}

// Signatures and grants are about the headers alone, so who may not write is told before he sends 4 MiB. A
// preflight needs no body, and nobody signs it: it is answered without, so that strangers fill no buffers.
bool TableService::RefuseBeforeBody(const HttpRequest& http, HttpResponse* response) {
  Visit visit(http);
  visit.started_nanos = impl_->database.runtime().clock().MonotonicNanos();
  if (http.method == Method::kOptions) {
    const Answer failed = Admit(*impl_, &visit, response);
    Finish(*impl_, &visit, failed, response);
    return true;
  }
  Answer refused = ReadAddressAndForm(*impl_, &visit);
  if (!refused) refused = Identify(*impl_, &visit);
  if (!refused) return false;
  Finish(*impl_, &visit, refused, response);
  return true;
}

void TableService::Refuse(int status, std::string_view reason, const HttpRequest& http,
                          HttpResponse* response) {
  Visit visit(http);
  visit.started_nanos = ArrivalNanos(impl_->database.runtime().clock(), http);
  if (!http.target.empty()) {
    // As much as is well-formed: what it was refused for is nothing of that.
    (void)ReadAddressAndForm(*impl_, &visit);
    (void)ReadKind(&visit.request);  // Some kinds are answered in XML.
  }
  ServiceError error(CodeOfRefusal(status), std::string(reason));
  error.status = status;
  Finish(*impl_, &visit, error, response);
}

}  // namespace partita::http

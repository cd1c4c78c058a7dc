#include "api/http/service_request.h"

#include <openssl/evp.h>

#include <algorithm>
#include <utility>

#include "api/etag.h"
#include "api/http/json_reader.h"
#include "api/value_text.h"
#include "engine/base/text.h"

namespace partita::http {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A request that means nothing below this (spec 18): no JSON, no CORS.
constexpr std::string_view kOldestVersion = "2013-08-15";

// `YYYY-MM-DD`. Compares as text.
bool IsVersionText(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == 'd' ? !IsDigit(text[i]) : text[i] != '-') return false;
  }
  const auto number = [&](size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  return number(5) >= 1 && number(5) <= 12 && number(8) >= 1 && number(8) <= 31;
}

// `3.0`, maybe followed by `;` and whatever the client adds there.
bool IsDataServiceVersion(std::string_view text) {
  if (text.size() < 3 || !IsDigit(text[0]) || text[1] != '.' || !IsDigit(text[2])) return false;
  return text.size() == 3 || text[3] == ';';
}

std::optional<ServiceError> CheckDataServiceVersions(const HttpRequest& http) {
  for (std::string_view name : {"MaxDataServiceVersion", "DataServiceVersion"}) {
    std::optional<std::string_view> value = http.Header(name);
    if (value && !IsDataServiceVersion(*value)) return ServiceError(ErrorCode::kInvalidHeaderValue);
  }
  return std::nullopt;
}

// The verb that a tunnel means.
std::optional<ServiceError> ReadMethod(ServiceRequest* request) {
  const HttpRequest& http = request->http;
  request->method = http.method;
  std::optional<std::string_view> tunnelled = http.Header("X-HTTP-Method");
  if (!tunnelled) {
    if (http.method == Method::kOther) return ServiceError(ErrorCode::kUnsupportedHttpVerb);
    return std::nullopt;
  }
  if (http.method != Method::kPost) return ServiceError(ErrorCode::kXMethodNotUsingPost);
  if (http.HeaderCount("X-HTTP-Method") > 1) return ServiceError(ErrorCode::kXMethodIncorrectCount);
  for (Method method : {Method::kMerge, Method::kPut, Method::kPatch, Method::kDelete}) {
    if (!SameHeaderName(*tunnelled, MethodName(method))) continue;
    request->method = method;
    return std::nullopt;
  }
  return ServiceError(ErrorCode::kXMethodIncorrectValue);
}

RequestKind KindOfEntityMethod(Method method, bool conditional) {
  switch (method) {
    case Method::kGet:
      return RequestKind::kGetEntity;
    case Method::kPut:
      return conditional ? RequestKind::kUpdateEntity : RequestKind::kInsertOrReplaceEntity;
    case Method::kMerge:
    case Method::kPatch:
      return conditional ? RequestKind::kMergeEntity : RequestKind::kInsertOrMergeEntity;
    case Method::kDelete:
      return RequestKind::kDeleteEntity;
    default:
      return RequestKind::kUnknown;
  }
}

// A tunnelled verb means nothing here (spec 3).
RequestKind KindOfService(const ServiceRequest& request) {
  const Method method = request.http.method;
  if (request.query.Get("comp") == "stats") {
    return method == Method::kGet ? RequestKind::kGetServiceStats : RequestKind::kUnknown;
  }
  if (method == Method::kGet) return RequestKind::kGetServiceProperties;
  return method == Method::kPut ? RequestKind::kSetServiceProperties : RequestKind::kUnknown;
}

RequestKind KindOfEntities(const ServiceRequest& request) {
  const Method method = request.method;
  if (request.query.Has("comp")) {
    if (request.http.method == Method::kPost) return RequestKind::kUnknown;  // Nor here.
    if (method == Method::kGet || method == Method::kHead) return RequestKind::kGetTableAcl;
    return method == Method::kPut ? RequestKind::kSetTableAcl : RequestKind::kUnknown;
  }
  if (method == Method::kGet) return RequestKind::kQueryEntities;
  return method == Method::kPost ? RequestKind::kInsertEntity : RequestKind::kUnknown;
}

// kUnknown: a verb that this resource does not have.
RequestKind KindOf(const ServiceRequest& request) {
  const Method method = request.method;
  switch (request.resource.kind) {
    case ResourceKind::kService:
      return KindOfService(request);
    case ResourceKind::kTables:
      if (method == Method::kGet) return RequestKind::kQueryTables;
      return method == Method::kPost ? RequestKind::kCreateTable : RequestKind::kUnknown;
    case ResourceKind::kTable:
      if (method == Method::kGet) return RequestKind::kGetTable;
      return method == Method::kDelete ? RequestKind::kDeleteTable : RequestKind::kUnknown;
    case ResourceKind::kEntities:
      return KindOfEntities(request);
    case ResourceKind::kPartition:
      return method == Method::kGet ? RequestKind::kQueryEntities : RequestKind::kUnknown;
    case ResourceKind::kEntity:
      return KindOfEntityMethod(method, request.http.Header("If-Match").has_value());
    case ResourceKind::kBatch:
      return method == Method::kPost ? RequestKind::kBatch : RequestKind::kUnknown;
    case ResourceKind::kMetadata:
      break;
  }
  return RequestKind::kUnknown;
}

// `comp` must be one that the resource knows.
bool IsKnownComp(const ServiceRequest& request) {
  std::optional<std::string_view> comp = request.query.Find("comp");
  switch (request.resource.kind) {
    case ResourceKind::kService:
      // Without `restype` the address means nothing either.
      return (comp == "properties" || comp == "stats") && request.query.Get("restype") == "service";
    case ResourceKind::kEntities:
      return !comp || comp == "acl";
    default:
      return !comp;
  }
}

// The recorded text; it quotes what was sent.
ServiceError MalformedTag(std::string_view value) {
  std::string text = "The etag value '";
  // Any byte can come in a header, but not go into JSON.
  text.append(IsValidUtf8(value) ? Utf16Prefix(value, 256) : "(no UTF-8)");
  text.append(
      "' specified in one of the request headers is not valid. Please make sure only one etag value is "
      "specified and is valid.");
  return ServiceError(ErrorCode::kInvalidInput, std::move(text));
}

// Spec 9.3. Reads ignore conditions.
std::optional<ServiceError> ReadConditions(ServiceRequest* request) {
  if (!IsEntityWrite(request->kind)) return std::nullopt;
  const HttpRequest& http = request->http;
  std::optional<std::string_view> if_match = http.Header("If-Match");
  if (http.Header("If-None-Match") &&
      (if_match || request->method == Method::kPut || request->method == Method::kDelete)) {
    return ServiceError(ErrorCode::kInvalidInput);
  }
  if (!if_match) {
    if (request->kind != RequestKind::kDeleteEntity) return std::nullopt;
    // Documented as required; which code is unconfirmed, as no client ever leaves it out.
    return ServiceError(ErrorCode::kMissingRequiredHeader);
  }
  // It has nothing to match there (unconfirmed; no client sends it).
  if (request->kind == RequestKind::kInsertEntity) return ServiceError(ErrorCode::kInvalidInput);
  if (http.HeaderCount("If-Match") > 1 || ParseEtag(*if_match).form == EtagForm::kMalformed) {
    return MalformedTag(*if_match);
  }
  request->if_match = if_match;
  return std::nullopt;
}

std::optional<ServiceError> ReadLevel(ServiceRequest* request) {
  std::string joined;
  const std::optional<std::string_view> accept = request->http.HeaderList("Accept", &joined);
  return ChooseMetadataLevel(request->query.Find("$format"), accept, &request->level);
}

void ReadPreference(ServiceRequest* request) {
  if (request->kind != RequestKind::kInsertEntity && request->kind != RequestKind::kCreateTable) return;
  const std::string_view text = request->http.Header("Prefer").value_or("");
  if (SameHeaderName(text, "return-no-content")) request->preference = Preference::kNoContent;
  if (SameHeaderName(text, "return-content")) request->preference = Preference::kContent;
  if (request->preference != Preference::kNone) request->preference_text = text;
}

bool ReadsJsonBody(RequestKind kind) {
  return kind == RequestKind::kCreateTable || (IsEntityWrite(kind) && kind != RequestKind::kDeleteEntity);
}

// Optional by the protocol; who sends it wants to know.
std::optional<ServiceError> CheckMd5(const HttpRequest& http) {
  std::optional<std::string_view> sent = http.Header("Content-MD5");
  if (!sent || sent->empty()) return std::nullopt;
  Result<PropertyValue> decoded = ParseValueText(PropertyType::kBinary, *sent);
  constexpr size_t kMd5Size = 16;
  if (!decoded.ok() || decoded->if_binary()->bytes.size() != kMd5Size) {
    return ServiceError(ErrorCode::kInvalidMd5);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  // Without MD5 in this OpenSSL nothing is checked: the header is no protection, only a help.
  if (EVP_Digest(http.body.data(), http.body.size(), digest, &size, EVP_md5(), nullptr) != 1)
    return std::nullopt;
  const std::string_view actual(reinterpret_cast<const char*>(digest), size);
  if (actual != decoded->if_binary()->bytes) return ServiceError(ErrorCode::kMd5Mismatch);
  return std::nullopt;
}

WriteAction ActionOf(RequestKind kind) {
  switch (kind) {
    case RequestKind::kUpdateEntity:
      return WriteAction::kReplace;
    case RequestKind::kMergeEntity:
      return WriteAction::kMerge;
    case RequestKind::kInsertOrReplaceEntity:
      return WriteAction::kInsertOrReplace;
    case RequestKind::kInsertOrMergeEntity:
      return WriteAction::kInsertOrMerge;
    case RequestKind::kDeleteEntity:
      return WriteAction::kDelete;
    default:
      return WriteAction::kInsert;
  }
}

}  // namespace

bool ServiceRequest::ForXml() const {
  switch (kind) {
    case RequestKind::kGetTableAcl:
    case RequestKind::kSetTableAcl:
    case RequestKind::kGetServiceProperties:
    case RequestKind::kSetServiceProperties:
    case RequestKind::kGetServiceStats:
    case RequestKind::kPreflight:
      return true;
    case RequestKind::kUnknown:
      return query.Has("comp") || query.Has("restype");
    default:
      return false;
  }
}

bool IsEntityWrite(RequestKind kind) {
  switch (kind) {
    case RequestKind::kInsertEntity:
    case RequestKind::kUpdateEntity:
    case RequestKind::kMergeEntity:
    case RequestKind::kInsertOrReplaceEntity:
    case RequestKind::kInsertOrMergeEntity:
    case RequestKind::kDeleteEntity:
      return true;
    default:
      return false;
  }
}

std::optional<ServiceError> ReadAddress(const AddressRules& rules, ServiceRequest* request) {
  const HttpRequest& http = request->http;
  std::optional<ServiceError> error =
      ParseResource(http.target, http.Header("Host"), http.secure, rules, &request->resource);
  std::optional<ServiceError> query_error = request->query.Parse(request->resource.query);
  return error ? error : query_error;
}

std::optional<ServiceError> ReadInnerAddress(const Resource& outer, ServiceRequest* request) {
  std::optional<ServiceError> error = ParseInnerResource(request->http.target, outer, &request->resource);
  if (error) return error;
  return request->query.Parse(request->resource.query);
}

std::optional<ServiceError> ReadVersion(const ServiceRequest& request, std::string_view* version) {
  std::optional<std::string_view> sent = request.http.Header("x-ms-version");
  if (!sent) sent = request.query.Find("api-version");
  if (!sent) return std::nullopt;
  if (!IsVersionText(*sent) || *sent < kOldestVersion) return ServiceError(ErrorCode::kInvalidHeaderValue);
  *version = *sent;
  return std::nullopt;
}

void ReadFormat(ServiceRequest* request) {
  request->json_refused = ReadLevel(request).has_value();
  if (request->json_refused) request->level = MetadataLevel::kMinimal;
}

std::optional<ServiceError> ReadKind(ServiceRequest* request) {
  std::optional<ServiceError> error = ReadMethod(request);
  if (error) return error;
  if (!IsKnownComp(*request)) return ServiceError(ErrorCode::kInvalidQueryParameterValue);
  if (request->resource.kind == ResourceKind::kMetadata && request->method == Method::kGet) {
    return ServiceError(ErrorCode::kNotImplemented);
  }
  request->kind = KindOf(*request);
  if (request->kind == RequestKind::kUnknown) return ServiceError(ErrorCode::kMethodNotAllowed);
  return std::nullopt;
}

std::optional<Operation> OperationOf(RequestKind kind) {
  switch (kind) {
    case RequestKind::kQueryTables:
    case RequestKind::kGetTable:
      return Operation::kQueryTables;
    case RequestKind::kCreateTable:
      return Operation::kCreateTable;
    case RequestKind::kDeleteTable:
      return Operation::kDeleteTable;
    case RequestKind::kGetTableAcl:
      return Operation::kGetTableAcl;
    case RequestKind::kSetTableAcl:
      return Operation::kSetTableAcl;
    case RequestKind::kQueryEntities:
      return Operation::kQueryEntities;
    case RequestKind::kGetEntity:
      return Operation::kGetEntity;
    case RequestKind::kInsertEntity:
      return Operation::kInsertEntity;
    case RequestKind::kUpdateEntity:
    case RequestKind::kMergeEntity:
      return Operation::kUpdateEntity;
    case RequestKind::kInsertOrReplaceEntity:
    case RequestKind::kInsertOrMergeEntity:
      return Operation::kUpsertEntity;
    case RequestKind::kDeleteEntity:
      return Operation::kDeleteEntity;
    case RequestKind::kGetServiceProperties:
      return Operation::kGetServiceProperties;
    case RequestKind::kSetServiceProperties:
      return Operation::kSetServiceProperties;
    case RequestKind::kGetServiceStats:
      return Operation::kGetServiceStats;
    case RequestKind::kBatch:
    case RequestKind::kPreflight:
    case RequestKind::kUnknown:
      break;
  }
  return std::nullopt;
}

std::optional<ServiceError> ReadHeaders(ServiceRequest* request) {
  std::optional<ServiceError> error = ReadConditions(request);
  if (!error) error = CheckDataServiceVersions(request->http);
  if (!error) error = request->query.Timeout(&request->timeout_seconds);
  if (error) return error;
  ReadPreference(request);
  // The answer to a batch is multipart whatever is asked; the Accept of each part counts for that part.
  if (request->ForXml() || request->kind == RequestKind::kBatch) return std::nullopt;
  if (request->json_refused) {
    error = ReadLevel(request);
  } else if (ReadsJsonBody(request->kind)) {
    error = CheckJsonContentType(request->http.Header("Content-Type"));
  }
  // A data resource has its own form of XML, for who did not ask for JSON (spec 13.1).
  if (error) error->as_xml = false;
  return error;
}

std::optional<ServiceError> CheckBody(const ServiceRequest& request) {
  const HttpRequest& http = request.http;
  if (http.body_too_large || http.body.size() > kRequestBodyMax) {
    return ServiceError(ErrorCode::kRequestBodyTooLarge);
  }
  // A Set Table ACL without any body clears the list (recorded).
  const bool needs_body = ReadsJsonBody(request.kind) || request.kind == RequestKind::kBatch ||
                          request.kind == RequestKind::kSetServiceProperties;
  if (needs_body && !http.has_length) return ServiceError(ErrorCode::kMissingContentLengthHeader);
  return CheckMd5(http);
}

std::optional<ServiceError> ReadWrite(const ServiceRequest& request, Write* write) {
  write->action = ActionOf(request.kind);
  write->if_match = request.if_match.value_or("");
  const Resource& resource = request.resource;
  if (request.kind == RequestKind::kDeleteEntity) {
    write->entity.AssignKeys(resource.partition_key, resource.row_key);
    write->entity.ClearProperties();
    return std::nullopt;
  }
  JsonBodyReader& reader = JsonBodyReader::OfThisThread();
  if (request.kind == RequestKind::kInsertEntity) return reader.ReadInsert(request.http.body, &write->entity);
  return reader.ReadUpdate(request.http.body, resource.partition_key, resource.row_key, &write->entity);
}

}  // namespace partita::http

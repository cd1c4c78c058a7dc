#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/authorization.h"
#include "api/http/http_message.h"
#include "api/http/media_type.h"
#include "api/http/query_parameters.h"
#include "api/http/resource.h"
#include "api/http/service_counters.h"
#include "api/http/service_error.h"
#include "api/partita.h"

namespace partita::http {

// `Prefer` of Create Table and Insert Entity.
enum class Preference : uint8_t { kNone, kContent, kNoContent };

// A request of the protocol, or one part of a batch, as far as it is understood: the functions below fill
// it in step by step, in the order of checks of spec 10.9. It views `http`, which must outlive it.
struct ServiceRequest {
  explicit ServiceRequest(const HttpRequest& request) : http(request) {}

  const HttpRequest& http;
  Resource resource;
  QueryParameters query;
  Method method = Method::kOther;  // Behind a tunnel: the one meant.
  RequestKind kind = RequestKind::kUnknown;
  MetadataLevel level = MetadataLevel::kMinimal;
  bool json_refused = false;  // What was asked for is not JSON: errors are XML.
  Preference preference = Preference::kNone;
  std::string_view preference_text;          // As sent, for the echo.
  std::optional<std::string_view> if_match;  // Well-formed.
  uint32_t timeout_seconds = kTimeoutSecondsMax;

  // True for what is answered in XML whatever was asked: ACL, properties, statistics.
  bool ForXml() const;
};

// Step 1, of a plain request: address and query.
std::optional<ServiceError> ReadAddress(const AddressRules& rules, ServiceRequest* request);
// Step 1, of a part of a batch that was addressed to `outer`.
std::optional<ServiceError> ReadInnerAddress(const Resource& outer, ServiceRequest* request);

// Step 2: the protocol version, which `*version` is set to: x-ms-version, else the api-version of a SAS,
// else the newest.
std::optional<ServiceError> ReadVersion(const ServiceRequest& request, std::string_view* version);
inline constexpr std::string_view kNewestVersion = "2020-12-06";

// Looks which metadata level is asked for. Never fails: whether it matters is asked in step 7.
void ReadFormat(ServiceRequest* request);

// Step 5: the operation. Refused with 405, an X-HTTP-Method code, 501, or 400 for an unknown `comp`.
std::optional<ServiceError> ReadKind(ServiceRequest* request);

// What the operation needs to be permitted; nothing where there is nothing to permit (a batch: its parts
// are asked; a preflight).
std::optional<Operation> OperationOf(RequestKind kind);

// Steps 6 and 7: conditions, Prefer, DataServiceVersion, the timeout; then media types.
std::optional<ServiceError> ReadHeaders(ServiceRequest* request);

// Step 8: that there is a body that may be read: 411, 413, Content-Type, Content-MD5.
std::optional<ServiceError> CheckBody(const ServiceRequest& request);
inline constexpr size_t kRequestBodyMax = 4 << 20;

// Step 8, of an entity operation: what it writes. `*write` holds copies. Names, values and sizes are left
// to the write itself.
std::optional<ServiceError> ReadWrite(const ServiceRequest& request, Write* write);

// True for Insert, Update, Merge, the upserts and Delete.
bool IsEntityWrite(RequestKind kind);

}  // namespace partita::http

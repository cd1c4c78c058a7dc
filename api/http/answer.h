#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/http_message.h"
#include "api/http/service_error.h"
#include "api/http/service_request.h"

namespace partita::http {

// Pieces of answers that several operations share (spec 4.2).

// Of an answer from the data layer; a refusal before it has the first alone.
inline constexpr std::string_view kDataLines =
    "X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n";
inline constexpr std::string_view kNoSniffLine = kDataLines.substr(0, kDataLines.find('\n') + 1);

// `Name: value` with its line end. Values that clients sent are echoed only when they are header text, which
// what arrived in a header is.
void AppendHeader(std::string* headers, std::string_view name, std::string_view value);

// `Preference-Applied`, when a preference was sent and understood.
void AppendPreferenceApplied(const ServiceRequest& request, std::string* headers);
// On a refusal: not where a key has forbidden characters, and not with XML (spec 4.2).
void AppendPreferenceApplied(const ServiceRequest& request, const ServiceError& error, std::string* headers);

// The Content-Type of a JSON body at the request's level.
void AppendJsonContentType(MetadataLevel level, std::string* headers);

// 200 with this body, as the operations answer whose errors are XML too.
void AnswerXml(std::string body, HttpResponse* response);

// What tells one answer from another in the text of an error.
struct AnswerIdentity {
  std::string_view request_id;
  uint64_t time_ticks = 0;
};

// Replaces whatever `*response` holds by the refusal: status, the headers that are its own (not those that
// every answer has: request id, version, CORS) and the body (spec 13.1).
void AnswerError(const ServiceRequest& request, const ServiceError& error, const AnswerIdentity& identity,
                 HttpResponse* response);

// The target as it may be logged: the value of a `sig` parameter, however its name is encoded, stands as
// REDACTED.
std::string TargetForLog(std::string_view target);

}  // namespace partita::http

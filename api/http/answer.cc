#include "api/http/answer.h"

#include <algorithm>
#include <utility>

#include "api/http/error_body.h"

namespace partita::http {

namespace {

constexpr uint64_t kMicrosPerSecond = 1'000'000;
constexpr uint64_t kMicrosPerMilli = 1'000;

void AppendErrorBody(const ServiceRequest& request, const ServiceError& error, const AnswerIdentity& identity,
                     HttpResponse* response) {
  const ErrorContext context{identity.request_id, identity.time_ticks, std::nullopt};
  if (error.as_xml || request.ForXml()) {
    AppendHeader(&response->headers, "Content-Type", "application/xml");
    AppendXmlError(&response->body, error, context, XmlErrorForm::kService);
  } else if (request.json_refused) {
    AppendHeader(&response->headers, "Content-Type", "application/xml;charset=utf-8");
    AppendXmlError(&response->body, error, context, XmlErrorForm::kData);
  } else {
    AppendJsonContentType(request.level, &response->headers);
    AppendJsonError(&response->body, error, context);
  }
}

bool NamesSignature(std::string_view raw_name) {
  std::string name;
  return AppendPercentDecoded(&name, raw_name, PlusSign::kSpace) && SameHeaderName(name, "sig");
}

}  // namespace

void AppendHeader(std::string* headers, std::string_view name, std::string_view value) {
  headers->append(name).append(": ").append(value).append("\r\n");
}

void AppendPreferenceApplied(const ServiceRequest& request, std::string* headers) {
  if (request.preference == Preference::kNone) return;
  AppendHeader(headers, "Preference-Applied", request.preference_text);
}

void AppendPreferenceApplied(const ServiceRequest& request, const ServiceError& error, std::string* headers) {
  // A key with forbidden characters is refused without the echo, a table name of a wrong length with it
  // (spec 4.2), and a date out of range, which is not found as early.
  const bool about_name = error.message.starts_with("The specified resource name");
  const bool about_key = error.code == ErrorCode::kOutOfRangeInput && error.early && !about_name;
  if (error.as_xml || about_key) return;
  AppendPreferenceApplied(request, headers);
}

void AppendJsonContentType(MetadataLevel level, std::string* headers) {
  AppendHeader(headers, "Content-Type", JsonContentType(level));
}

void AnswerXml(std::string body, HttpResponse* response) {
  response->status = 200;
  AppendHeader(&response->headers, "Content-Type", "application/xml");
  response->body = std::move(body);
}

void AnswerError(const ServiceRequest& request, const ServiceError& error, const AnswerIdentity& identity,
                 HttpResponse* response) {
  response->Clear();
  response->status = error.status;
  if (!error.as_xml && !request.ForXml()) response->headers.append(error.early ? kNoSniffLine : kDataLines);
  AppendHeader(&response->headers, "x-ms-error-code", ErrorCodeName(error.code));
  AppendPreferenceApplied(request, error, &response->headers);
  if (error.challenge) {
    AppendHeader(&response->headers, "WWW-Authenticate",
                 "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize "
                 "resource_id=https://storage.azure.com");
  }
  if (error.retry_after_us > 0) {
    const auto in_units_of = [&](uint64_t micros) {
      return std::to_string((error.retry_after_us + micros - 1) / micros);
    };
    AppendHeader(&response->headers, "Retry-After", in_units_of(kMicrosPerSecond));
    // Clients that know it come back when there is room, not up to a second later.
    AppendHeader(&response->headers, "x-ms-retry-after-ms", in_units_of(kMicrosPerMilli));
  }
  AppendErrorBody(request, error, identity, response);
}

std::string TargetForLog(std::string_view target) {
  std::string out;
  const size_t query = target.find('?');
  out.append(target.substr(0, query));
  if (query == std::string_view::npos) return out;
  target.remove_prefix(query);
  while (!target.empty()) {
    out.push_back(target[0]);  // '?' or '&'.
    target.remove_prefix(1);
    const std::string_view piece = target.substr(0, target.find('&'));
    const std::string_view name = piece.substr(0, piece.find('='));
    if (name.size() < piece.size() && NamesSignature(name)) {
      out.append(name).append("=REDACTED");
    } else {
      out.append(piece);
    }
    target.remove_prefix(piece.size());
  }
  return out;
}

}  // namespace partita::http

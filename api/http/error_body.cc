#include "api/http/error_body.h"

#include "api/http/http_date.h"
#include "api/http/json_text.h"

namespace partita::http {
namespace {

constexpr std::string_view kXmlNamespace = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";

// Message, request id and time, a line each.
std::string MessageText(const ServiceError& error, const ErrorContext& context) {
  std::string text;
  if (context.batch_index) text.append(std::to_string(*context.batch_index)).push_back(':');
  text.append(error.message).append("\nRequestId:").append(context.request_id).append("\nTime:");
  AppendSevenDigitTime(&text, DateTime{context.time_ticks});
  return text;
}

}  // namespace

void AppendJsonError(std::string* out, const ServiceError& error, const ErrorContext& context) {
  out->append(R"({"odata.error":{"code":")").append(ErrorCodeName(error.code));
  out->append(R"(","message":{"lang":"en-US","value":)");
  AppendJsonString(out, MessageText(error, context));
  out->append("}}}");
}

void AppendXmlError(std::string* out, const ServiceError& error, const ErrorContext& context,
                    XmlErrorForm form) {
  const bool prefixed = form == XmlErrorForm::kService;
  const std::string_view prefix = prefixed ? "m:" : "";
  out->append(R"(<?xml version="1.0" encoding="utf-8"?><)").append(prefix);
  out->append(prefixed ? R"(error xmlns:m=")" : R"(error xmlns=")").append(kXmlNamespace).append("\"><");
  out->append(prefix).append("code>").append(ErrorCodeName(error.code)).append("</").append(prefix);
  out->append("code><").append(prefix).append(R"(message xml:lang="en-US">)");
  AppendXmlText(out, MessageText(error, context));
  out->append("</").append(prefix).append("message></").append(prefix).append("error>");
}

}  // namespace partita::http

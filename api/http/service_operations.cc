#include <utility>

#include "api/http/service_core.h"
#include "api/http/service_properties.h"
#include "api/http/service_stats.h"

// Service properties and statistics (spec 16.1, 16.2). Answers and errors are XML, without the headers of
// data answers.

namespace partita::http {

Task<Answer> AnswerGetServiceProperties(Exchange& exchange) {
  const Result<std::shared_ptr<const ServiceProperties>> found =
      exchange.core.settings.ReadProperties(exchange.request.resource.account);
  if (!found.ok()) co_return ErrorOfStatus(found.status(), /*for_table=*/true).AsXml();
  const ServiceProperties* stored = found->get();
  AnswerXml(WriteServiceProperties(stored == nullptr ? ServiceProperties() : *stored), exchange.response);
  co_return std::nullopt;
}

Task<Answer> AnswerSetServiceProperties(Exchange& exchange) {
  const ServiceRequest& request = exchange.request;
  std::optional<ServiceError> refused = CheckBody(request);
  if (refused) co_return std::move(*refused);
  refused = co_await exchange.core.settings.UpdateProperties(request.resource.account, request.http.body);
  if (refused) co_return std::move(*refused);
  exchange.response->status = 202;
  co_return std::nullopt;
}

Task<Answer> AnswerGetServiceStats(Exchange& exchange) {
  const Resource& resource = exchange.request.resource;
  // The primary refuses (unconfirmed which code), but in path style, where the JavaScript client asks it.
  if (!resource.secondary && !resource.path_style) {
    co_return ServiceError(ErrorCode::kInvalidQueryParameterValue);
  }
  AnswerXml(WriteServiceStats(DateTime{exchange.request.http.arrived_ticks}), exchange.response);
  co_return std::nullopt;
}

}  // namespace partita::http

#pragma once
#include <optional>
#include <string_view>

#include "api/http/http_message.h"
#include "api/http/service_error.h"
#include "api/http/service_properties.h"

namespace partita::http {

// Cross-origin requests by the rules of an account (spec 16.3). `properties` may be null: no rules.

// Answers a preflight, an OPTIONS request: fills in `*response` (200 and its headers), or refuses:
// InvalidHeaderValue when a header is missing, CorsPreflightFailure when no rule allows what is asked.
std::optional<ServiceError> AnswerPreflight(const HttpRequest& request, const ServiceProperties* properties,
                                            HttpResponse* response);

// Adds what the answer to an actual request carries, of whatever status: Access-Control-* when a rule
// matches its Origin and method, and Vary once there are rules.
void AddCorsHeaders(const HttpRequest& request, const ServiceProperties* properties, HttpResponse* response);

// Whether it comes from a web page that no rule lets ask this.
bool ComesFromForeignPage(const HttpRequest& request, const ServiceProperties* properties);

}  // namespace partita::http

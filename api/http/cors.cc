#include "api/http/cors.h"

#include <algorithm>
#include <string>

#include "api/ascii.h"

namespace partita::http {

namespace {

constexpr std::string_view kAll = "*";

bool Lists(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool AllowsOrigin(const CorsRule& rule, std::string_view origin) {
  return Lists(rule.origins, kAll) || Lists(rule.origins, origin);
}

// A header's name ignoring case, or a prefix that ends in '*'.
bool AllowsHeader(const CorsRule& rule, std::string_view header) {
  return std::any_of(rule.allowed_headers.begin(), rule.allowed_headers.end(), [&](std::string_view allowed) {
    if (!allowed.ends_with('*')) return EqualIgnoringCase(allowed, header);
    allowed.remove_suffix(1);
    return header.size() >= allowed.size() && EqualIgnoringCase(allowed, header.substr(0, allowed.size()));
  });
}

// All of a comma list.
bool AllowsHeaders(const CorsRule& rule, std::string_view headers) {
  while (!headers.empty()) {
    const size_t comma = std::min(headers.find(','), headers.size());
    const std::string_view header = TrimBlanks(headers.substr(0, comma));
    if (!header.empty() && !AllowsHeader(rule, header)) return false;
    headers.remove_prefix(std::min(comma + 1, headers.size()));
  }
  return true;
}

// The first rule that matches, in the order of the rules: it decides, for preflights and for what follows
// them.
const CorsRule* FindRule(const ServiceProperties* properties, std::string_view origin,
                         std::string_view method) {
  if (properties == nullptr) return nullptr;
  for (const CorsRule& rule : properties->cors) {
    if (AllowsOrigin(rule, origin) && Lists(rule.methods, method)) return &rule;
  }
  return nullptr;
}

// Calls `visit` with the name of each header line.
template <typename Visit>
void EachHeaderName(std::string_view lines, Visit visit) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find("\r\n"), lines.size());
    visit(lines.substr(0, lines.substr(0, end).find(':')));
    lines.remove_prefix(std::min(end + 2, lines.size()));
  }
}

// Browsers take names, or "*" alone: a prefix is told as the service's headers of this answer that begin so.
std::string ExposedHeaders(const CorsRule& rule, std::string_view headers) {
  std::vector<std::string> names;
  for (const std::string& exposed : rule.exposed_headers) {
    if (!exposed.ends_with('*') || exposed == kAll) {
      names.push_back(exposed);
      continue;
    }
    const std::string_view prefix = std::string_view(exposed).substr(0, exposed.size() - 1);
    EachHeaderName(headers, [&](std::string_view name) {
      const bool is_meant = EqualIgnoringCase(name.substr(0, prefix.size()), prefix);
      if (is_meant && !Lists(names, name)) names.emplace_back(name);
    });
  }
  return CommaSeparated(names);
}

// The origin that is let in: answers differ by it, unless it is everyone.
void AddOrigin(const CorsRule& rule, std::string_view origin, HttpResponse* response) {
  if (Lists(rule.origins, kAll)) {
    response->AddHeader("Access-Control-Allow-Origin", kAll);
    return;
  }
  response->AddHeader("Access-Control-Allow-Origin", origin);
  response->AddHeader("Access-Control-Allow-Credentials", "true");
  response->AddHeader("Vary", "Origin");
}

}  // namespace

bool ComesFromForeignPage(const HttpRequest& request, const ServiceProperties* properties) {
  const std::optional<std::string_view> origin = request.Header("Origin");
  return origin && FindRule(properties, *origin, request.method_text) == nullptr;
}

std::optional<ServiceError> AnswerPreflight(const HttpRequest& request, const ServiceProperties* properties,
                                            HttpResponse* response) {
  const std::optional<std::string_view> origin = request.Header("Origin");
  const std::optional<std::string_view> method = request.Header("Access-Control-Request-Method");
  if (!origin || origin->empty() || !method || method->empty()) {
    return ServiceError(ErrorCode::kInvalidHeaderValue, "A required CORS header is not present.").AsXml();
  }
  std::string joined;
  const std::string_view headers = request.HeaderList("Access-Control-Request-Headers", &joined).value_or("");
  // It goes back into a header.
  if (headers.find_first_of("\r\n") != headers.npos) {
    return ServiceError(ErrorCode::kInvalidHeaderValue).AsXml();
  }
  const CorsRule* rule = FindRule(properties, *origin, *method);
  if (rule == nullptr || !AllowsHeaders(*rule, headers)) {
    return ServiceError(ErrorCode::kCorsPreflightFailure).AsXml();
  }
  response->status = 200;
  AddOrigin(*rule, *origin, response);
  response->AddHeader("Access-Control-Allow-Methods", CommaSeparated(rule->methods));
  // What was asked for, which the rule allows: a prefix among its own would tell a browser nothing.
  if (!headers.empty()) response->AddHeader("Access-Control-Allow-Headers", headers);
  response->AddHeader("Access-Control-Max-Age", std::to_string(rule->max_age_seconds));
  return std::nullopt;
}

void AddCorsHeaders(const HttpRequest& request, const ServiceProperties* properties, HttpResponse* response) {
  if (properties == nullptr || properties->cors.empty()) return;
  const std::optional<std::string_view> origin = request.Header("Origin");
  const CorsRule* rule = origin ? FindRule(properties, *origin, request.method_text) : nullptr;
  if (rule == nullptr) {
    response->AddHeader("Vary", "Origin");
    return;
  }
  AddOrigin(*rule, *origin, response);
  const std::string exposed = ExposedHeaders(*rule, response->headers);
  if (!exposed.empty()) response->AddHeader("Access-Control-Expose-Headers", exposed);
}

}  // namespace partita::http

#include "api/http/service_properties.h"

#include <algorithm>
#include <charconv>

#include "api/ascii.h"
#include "api/http/json_text.h"
#include "api/http/xml_reader.h"

namespace partita::http {

namespace {

using Refusal = std::optional<ServiceError>;

ServiceError InvalidValue() { return ServiceError(ErrorCode::kInvalidXmlNodeValue).AsXml(); }
ServiceError MissingNode() { return ServiceError(ErrorCode::kMissingRequiredXmlNode).AsXml(); }

// ---- Leaves. All are needed.

Refusal ReadText(const XmlElement& parent, const char* name, std::string* text) {
  const XmlElement* node = parent.Child(name);
  if (node == nullptr) return MissingNode();
  std::optional<std::string> found = TrimmedTextOf(*node);
  if (!found) return InvalidDocument();
  *text = std::move(*found);
  return std::nullopt;
}

Refusal ReadBoolean(const XmlElement& parent, const char* name, bool* value) {
  std::string text;
  if (auto refused = ReadText(parent, name, &text)) return refused;
  // Some serializers write True.
  *value = EqualIgnoringCase(text, "true");
  if (!*value && !EqualIgnoringCase(text, "false")) return InvalidValue();
  return std::nullopt;
}

Refusal ReadNumber(const XmlElement& parent, const char* name, const ServiceError& if_too_large,
                   uint32_t* value) {
  std::string text;
  if (auto refused = ReadText(parent, name, &text)) return refused;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return InvalidValue();
  if (error == std::errc::result_out_of_range) return if_too_large;
  return std::nullopt;
}

// ---- Logging and metrics.

Refusal ReadVersion(const XmlElement& parent, std::string* version) {
  if (auto refused = ReadText(parent, "Version", version)) return refused;
  if (*version != "1.0" && *version != "2.0") return InvalidValue();  // The latter of analytics logs.
  return std::nullopt;
}

Refusal ReadRetention(const XmlElement& parent, RetentionPolicy* retention) {
  const XmlElement* node = parent.Child("RetentionPolicy");
  if (node == nullptr) return MissingNode();
  if (!node->HoldsOnly({"Enabled", "Days"})) return InvalidDocument();
  bool enabled = false;
  if (auto refused = ReadBoolean(*node, "Enabled", &enabled)) return refused;
  if (!enabled) return std::nullopt;  // Days beside it mean nothing.
  uint32_t days = 0;
  if (auto refused = ReadNumber(*node, "Days", InvalidDocument(), &days)) return refused;
  if (days < 1 || days > kRetentionDaysMax) return InvalidDocument();  // Recorded for too many.
  retention->days = days;
  return std::nullopt;
}

Refusal ReadLogging(const XmlElement& node, LoggingProperties* logging) {
  if (!node.HoldsOnly({"Version", "Read", "Write", "Delete", "RetentionPolicy"})) return InvalidDocument();
  if (auto refused = ReadVersion(node, &logging->version)) return refused;
  if (auto refused = ReadBoolean(node, "Read", &logging->read)) return refused;
  if (auto refused = ReadBoolean(node, "Write", &logging->write)) return refused;
  if (auto refused = ReadBoolean(node, "Delete", &logging->remove)) return refused;
  return ReadRetention(node, &logging->retention);
}

Refusal ReadMetrics(const XmlElement& node, MetricsProperties* metrics) {
  if (!node.HoldsOnly({"Version", "Enabled", "IncludeAPIs", "RetentionPolicy"})) return InvalidDocument();
  if (auto refused = ReadVersion(node, &metrics->version)) return refused;
  if (auto refused = ReadBoolean(node, "Enabled", &metrics->enabled)) return refused;
  if (metrics->enabled) {
    if (auto refused = ReadBoolean(node, "IncludeAPIs", &metrics->include_apis)) return refused;
  }
  return ReadRetention(node, &metrics->retention);
}

// ---- CORS.

// A comma list; empty parts are skipped. `*bytes` counts the text of all lists.
Refusal ReadList(const XmlElement& parent, const char* name, std::vector<std::string>* list, size_t* bytes) {
  std::string text;
  if (auto refused = ReadText(parent, name, &text)) return refused;
  *bytes += text.size();
  // They come back in the headers of answers.
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(text.begin(), text.end(), is_control)) return InvalidValue();
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = TrimBlanks(rest.substr(0, comma));
    if (!item.empty()) list->emplace_back(item);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return std::nullopt;
}

bool IsPrefix(const std::string& header) { return header.ends_with('*'); }

Refusal ReadHeaderList(const XmlElement& parent, const char* name, std::vector<std::string>* list,
                       size_t* bytes) {
  if (auto refused = ReadList(parent, name, list, bytes)) return refused;
  // Names before prefixes, as they come back (recorded).
  std::vector<std::string> names, prefixes;
  for (std::string& header : *list) (IsPrefix(header) ? prefixes : names).push_back(std::move(header));
  if (names.size() > kCorsLiteralHeadersMax || prefixes.size() > kCorsPrefixHeadersMax) {
    return InvalidDocument();
  }
  *list = std::move(names);
  list->insert(list->end(), prefixes.begin(), prefixes.end());
  return std::nullopt;
}

bool IsCorsMethod(std::string_view method) {
  constexpr std::string_view kMethods[] = {"DELETE", "GET",     "HEAD", "MERGE",
                                           "POST",   "OPTIONS", "PUT",  "PATCH"};
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

Refusal ReadCorsRule(const XmlElement& node, CorsRule* rule, size_t* bytes) {
  if (node.name != "CorsRule" || !node.HoldsOnly({"AllowedOrigins", "AllowedMethods", "AllowedHeaders",
                                                  "ExposedHeaders", "MaxAgeInSeconds"})) {
    return InvalidDocument();
  }
  if (auto refused = ReadList(node, "AllowedOrigins", &rule->origins, bytes)) return refused;
  if (auto refused = ReadList(node, "AllowedMethods", &rule->methods, bytes)) return refused;
  if (auto refused = ReadHeaderList(node, "AllowedHeaders", &rule->allowed_headers, bytes)) return refused;
  if (auto refused = ReadHeaderList(node, "ExposedHeaders", &rule->exposed_headers, bytes)) return refused;
  if (auto refused = ReadNumber(node, "MaxAgeInSeconds", InvalidValue(), &rule->max_age_seconds)) {
    return refused;
  }
  if (rule->origins.empty() || rule->methods.empty()) return InvalidValue();
  for (const std::string& origin : rule->origins) {
    if (origin.size() > kCorsOriginBytesMax) return InvalidDocument();
  }
  if (!std::all_of(rule->methods.begin(), rule->methods.end(), IsCorsMethod)) return InvalidValue();
  return std::nullopt;
}

Refusal ReadCors(const XmlElement& node, std::vector<CorsRule>* rules) {
  if (!node.HoldsElementsOnly()) return InvalidDocument();
  rules->clear();
  size_t bytes = 0;
  for (const XmlElement& child : node.children) {
    CorsRule rule;
    if (auto refused = ReadCorsRule(child, &rule, &bytes)) return refused;
    rules->push_back(std::move(rule));
    if (rules->size() > kCorsRulesMax || bytes > kCorsBytesMax) return InvalidDocument();
  }
  return std::nullopt;
}

// ---- Writing.

void AppendElement(std::string* out, std::string_view name, std::string_view text) {
  out->append("<").append(name).append(">");
  AppendXmlText(out, text);
  out->append("</").append(name).append(">");
}

void AppendBoolean(std::string* out, std::string_view name, bool value) {
  AppendElement(out, name, value ? "true" : "false");
}

void AppendRetention(std::string* out, const RetentionPolicy& retention) {
  out->append("<RetentionPolicy>");
  AppendBoolean(out, "Enabled", retention.days.has_value());
  if (retention.days) AppendElement(out, "Days", std::to_string(*retention.days));
  out->append("</RetentionPolicy>");
}

void AppendLogging(std::string* out, const LoggingProperties& logging) {
  out->append("<Logging>");
  AppendElement(out, "Version", logging.version);
  AppendBoolean(out, "Read", logging.read);
  AppendBoolean(out, "Write", logging.write);
  AppendBoolean(out, "Delete", logging.remove);
  AppendRetention(out, logging.retention);
  out->append("</Logging>");
}

void AppendMetrics(std::string* out, std::string_view name, const MetricsProperties& metrics) {
  out->append("<").append(name).append(">");
  AppendElement(out, "Version", metrics.version);
  AppendBoolean(out, "Enabled", metrics.enabled);
  if (metrics.enabled) AppendBoolean(out, "IncludeAPIs", metrics.include_apis);
  AppendRetention(out, metrics.retention);
  out->append("</").append(name).append(">");
}

void AppendCors(std::string* out, const std::vector<CorsRule>& rules) {
  if (rules.empty()) {
    out->append("<Cors />");
    return;
  }
  out->append("<Cors>");
  for (const CorsRule& rule : rules) {
    out->append("<CorsRule>");
    AppendElement(out, "AllowedMethods", CommaSeparated(rule.methods));
    AppendElement(out, "AllowedOrigins", CommaSeparated(rule.origins));
    AppendElement(out, "AllowedHeaders", CommaSeparated(rule.allowed_headers));
    AppendElement(out, "ExposedHeaders", CommaSeparated(rule.exposed_headers));
    AppendElement(out, "MaxAgeInSeconds", std::to_string(rule.max_age_seconds));
    out->append("</CorsRule>");
  }
  out->append("</Cors>");
}

}  // namespace

std::string CommaSeparated(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& item : list) text.append(text.empty() ? "" : ",").append(item);
  return text;
}

std::optional<ServiceError> UpdateServiceProperties(std::string_view xml, ServiceProperties* properties) {
  XmlElement root;
  if (auto refused = ParseXml(xml, "StorageServiceProperties", &root)) return refused;
  // A DefaultServiceVersion belongs to blobs; whoever sends the properties of one service to all of them
  // is not refused for it.
  if (!root.HoldsOnly({"Logging", "HourMetrics", "MinuteMetrics", "Cors", "DefaultServiceVersion"})) {
    return InvalidDocument();
  }
  ServiceProperties next = *properties;
  if (const XmlElement* node = root.Child("Logging")) {
    next.logging = LoggingProperties();
    if (auto refused = ReadLogging(*node, &next.logging)) return refused;
  }
  if (const XmlElement* node = root.Child("HourMetrics")) {
    next.hour_metrics = MetricsProperties();
    if (auto refused = ReadMetrics(*node, &next.hour_metrics)) return refused;
  }
  if (const XmlElement* node = root.Child("MinuteMetrics")) {
    next.minute_metrics = MetricsProperties();
    if (auto refused = ReadMetrics(*node, &next.minute_metrics)) return refused;
  }
  if (const XmlElement* node = root.Child("Cors")) {
    if (auto refused = ReadCors(*node, &next.cors)) return refused;
  }
  *properties = std::move(next);
  return std::nullopt;
}

std::string WriteServiceProperties(const ServiceProperties& properties) {
  std::string xml = "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>";
  AppendLogging(&xml, properties.logging);
  AppendMetrics(&xml, "HourMetrics", properties.hour_metrics);
  AppendMetrics(&xml, "MinuteMetrics", properties.minute_metrics);
  AppendCors(&xml, properties.cors);
  return xml.append("</StorageServiceProperties>");
}

}  // namespace partita::http

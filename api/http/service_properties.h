#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/service_error.h"

namespace partita::http {

// The properties of the table service of one account (spec 16.1). Logging and metrics are stored and
// given back; nothing acts on them. The CORS rules are acted on: cors.h.

inline constexpr uint32_t kRetentionDaysMax = 365;
inline constexpr size_t kCorsRulesMax = 5;
inline constexpr size_t kCorsBytesMax = 2048;       // Text of all rules together.
inline constexpr size_t kCorsOriginBytesMax = 256;  // Of one origin.
inline constexpr size_t kCorsLiteralHeadersMax = 64;
inline constexpr size_t kCorsPrefixHeadersMax = 2;

struct RetentionPolicy {
  std::optional<uint32_t> days;  // Nothing: not enabled.
  friend bool operator==(const RetentionPolicy&, const RetentionPolicy&) = default;
};

struct LoggingProperties {
  std::string version = "1.0";
  bool read = false;
  bool write = false;
  bool remove = false;
  RetentionPolicy retention;
  friend bool operator==(const LoggingProperties&, const LoggingProperties&) = default;
};

struct MetricsProperties {
  std::string version = "1.0";
  bool enabled = false;
  bool include_apis = false;  // Means something only when enabled.
  RetentionPolicy retention;
  friend bool operator==(const MetricsProperties&, const MetricsProperties&) = default;
};

struct CorsRule {
  std::vector<std::string> origins;          // "*" stands for all.
  std::vector<std::string> methods;          // Upper case, as HTTP spells them.
  std::vector<std::string> allowed_headers;  // Names, or prefixes that end in '*'; names first.
  std::vector<std::string> exposed_headers;
  uint32_t max_age_seconds = 0;
  friend bool operator==(const CorsRule&, const CorsRule&) = default;
};

// "a,b": a list of a rule as headers and XML have it.
std::string CommaSeparated(const std::vector<std::string>& list);

struct ServiceProperties {
  LoggingProperties logging;
  MetricsProperties hour_metrics;
  MetricsProperties minute_metrics;
  std::vector<CorsRule> cors;
  friend bool operator==(const ServiceProperties&, const ServiceProperties&) = default;
};

// From the body of Set Service Properties: changes what the document names and leaves the other top-level
// elements of `*properties` as they are; an error leaves all of them. InvalidXmlDocument,
// InvalidXmlNodeValue or MissingRequiredXmlNode, all 400.
std::optional<ServiceError> UpdateServiceProperties(std::string_view xml, ServiceProperties* properties);

// The body of Get Service Properties, from its byte order mark on. Also the form that is stored.
std::string WriteServiceProperties(const ServiceProperties& properties);

}  // namespace partita::http

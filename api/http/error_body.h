#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/service_error.h"

namespace partita::http {

// Bodies of errors (spec 13.1), appended to a string.

// What the text of an error says besides its message.
struct ErrorContext {
  std::string_view request_id;
  uint64_t time_ticks = 0;              // Written with exactly seven digits of fraction.
  std::optional<uint32_t> batch_index;  // `3:` before the message (spec 12.4).
};

void AppendJsonError(std::string* out, const ServiceError& error, const ErrorContext& context);

// kData: data resources when JSON was not asked for, `<error xmlns=...>`, Content-Type
// application/xml;charset=utf-8. kService: authentication, ACL and properties, `<m:error xmlns:m=...>`,
// Content-Type application/xml.
enum class XmlErrorForm : uint8_t { kData, kService };
void AppendXmlError(std::string* out, const ServiceError& error, const ErrorContext& context,
                    XmlErrorForm form);

}  // namespace partita::http

#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/property_value.h"

namespace partita::http {

// The date form of HTTP headers, RFC 1123: "Wed, 15 Jan 2025 10:20:30 GMT".

// Nothing for another form, a day that no calendar has, or a moment before 1601. The name of the
// weekday is not compared with the date.
std::optional<DateTime> ParseHttpDate(std::string_view text);

// Fractions of a second are left out. Moments above kDateTimeTicksMax: as FormatDateTime.
void AppendHttpDate(std::string* out, DateTime time);
std::string FormatHttpDate(DateTime time);

// The form of dates in XML bodies: `2025-01-15T10:20:30.1234567Z`, always with seven digits of fraction.
void AppendSevenDigitTime(std::string* out, DateTime time);

}  // namespace partita::http

#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/property_value.h"
#include "engine/base/result.h"

namespace partita {

// The text form of each type (spec 6), which JSON bodies, JSON lines and CSV share. Locale-independent.

// Int32, Int64: an optional `-` and digits. Double: a JSON number, `NaN`, `Infinity`, `-Infinity`.
// Boolean: `true`, `false`. DateTime: date_time.h. Guid: hex 8-4-4-4-12, any case. Binary: standard
// base64 with padding, blanks and line ends in it left out. String: any UTF-8. Everything else is
// kInvalidArgument with kInvalidInput, or kOutOfRangeInput for a DateTime outside 1601 to 9999.
Result<PropertyValue> ParseValueText(PropertyType type, std::string_view text);

// The canonical form: what ParseValueText reads back to the same value. Doubles are the shortest text
// that does, always with a point; Guids are lower case.
void AppendValueText(std::string* out, const PropertyValue& value);

// The same of one type, to memory of at least so many bytes; each returns the end of what was written.
inline constexpr size_t kIntegerTextMax = 20;
char* WriteInteger(char* to, int64_t value);
inline constexpr size_t kDoubleTextMax = 32;
char* WriteDouble(char* to, double value);
inline constexpr size_t kGuidTextSize = 36;
char* WriteGuid(char* to, const Guid& guid);
constexpr size_t Base64Size(size_t bytes) { return (bytes + 2) / 3 * 4; }
char* WriteBase64(char* to, std::string_view bytes);

// True for a number of the JSON grammar.
bool IsJsonNumber(std::string_view text);

// The type of a JSON number without annotation: Int32 when it has neither point nor exponent and fits,
// else Double. Nothing when it is no JSON number or beyond the range of Double.
std::optional<PropertyValue> InferJsonNumber(std::string_view text);

}  // namespace partita

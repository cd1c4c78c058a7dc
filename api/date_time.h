#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/property_value.h"
#include "engine/base/result.h"

namespace partita {

// DateTime <-> text as the service writes it (spec 6).

// `YYYY-MM-DDThh:mm[:ss[.f]]` with one or more digits f, of which those behind the seventh are cut off, then
// `Z`, an offset `+hh:mm` or `-hh:mm` (converted to UTC), or nothing (UTC). kInvalidArgument: kInvalidInput
// for text of another form or a moment that no calendar has, kOutOfRangeInput for one before 1601 or after
// 9999.
Result<DateTime> ParseDateTime(std::string_view text);

// How many digits the fraction of such a text has; with more than kFractionDigitsKept the text says more than
// the DateTime.
inline constexpr size_t kFractionDigitsKept = 7;
size_t FractionDigits(std::string_view text);

// UTC with `Z`; up to seven digits of fraction, trailing zeros and an empty fraction left out. What is above
// kDateTimeTicksMax, which only damaged bytes say, is written as that is.
std::string FormatDateTime(DateTime time);
void AppendDateTime(std::string* out, DateTime time);
// The same to memory of at least kDateTimeTextMax bytes; returns the end of what was written.
inline constexpr size_t kDateTimeTextMax = 28;
char* WriteDateTime(char* to, DateTime time);

}  // namespace partita

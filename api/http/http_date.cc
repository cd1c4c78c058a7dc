#include "api/http/http_date.h"

#include <array>

#include "api/date_time.h"
#include "engine/base/clock.h"

namespace partita::http {

namespace {

constexpr std::string_view kForm = "Wed, 15 Jan 2025 10:20:30 GMT";
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
// 1601-01-01 was the first of these.
constexpr std::array<std::string_view, 7> kWeekdays = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

}  // namespace

std::optional<DateTime> ParseHttpDate(std::string_view text) {
  if (text.size() != kForm.size() || !text.ends_with(" GMT")) return std::nullopt;
  if (text[3] != ',' || text[4] != ' ' || text[7] != ' ' || text[11] != ' ' || text[16] != ' ') {
    return std::nullopt;
  }
  size_t month = 0;
  while (month < kMonths.size() && kMonths[month] != text.substr(8, 3)) ++month;
  if (month == kMonths.size()) return std::nullopt;
  // As the calendar of date_time.h reads it: 2025-01-15T10:20:30Z.
  char iso[] = "YYYY-MM-DDThh:mm:ssZ";
  text.copy(iso, 4, 12);
  iso[5] = static_cast<char>('0' + (month + 1) / 10);
  iso[6] = static_cast<char>('0' + (month + 1) % 10);
  text.copy(iso + 8, 2, 5);
  text.copy(iso + 11, 8, 17);
  Result<DateTime> time = ParseDateTime(std::string_view(iso, sizeof iso - 1));
  if (!time.ok()) return std::nullopt;
  return *time;
}

void AppendHttpDate(std::string* out, DateTime time) {
  const std::string iso = FormatDateTime(time);  // YYYY-MM-DDThh:mm:ss, then what is left out.
  const std::string_view text = iso;
  const size_t month = static_cast<size_t>((text[5] - '0') * 10 + (text[6] - '0') - 1);
  const uint64_t days = time.ticks / (uint64_t{86'400} * kTicksPerSecond);
  out->append(kWeekdays[days % kWeekdays.size()]).append(", ").append(text.substr(8, 2)).append(" ");
  out->append(kMonths[month]).append(" ").append(text.substr(0, 4)).append(" ");
  out->append(text.substr(11, 8)).append(" GMT");
}

std::string FormatHttpDate(DateTime time) {
  std::string text;
  AppendHttpDate(&text, time);
  return text;
}

void AppendSevenDigitTime(std::string* out, DateTime time) {
  constexpr size_t kSecondsSize = 19;  // YYYY-MM-DDThh:mm:ss
  char text[kDateTimeTextMax];
  char* end = WriteDateTime(text, time) - 1;  // Without Z.
  if (end == text + kSecondsSize) *end++ = '.';
  out->append(text, end);
  out->append(kDateTimeTextMax - 1 - static_cast<size_t>(end - text), '0').push_back('Z');
}

}  // namespace partita::http

#include "api/http/response_writer.h"

#include <charconv>
#include <chrono>
#include <cstdio>

#include "engine/base/clock.h"

namespace partita::http {

namespace {

constexpr uint64_t kUnixEpochSecond = kUnixEpochTicks / kTicksPerSecond;

struct Reason {
  int status;
  std::string_view text;
};
// The frequent ones first.
constexpr Reason kReasons[] = {
    {200, "OK"},
    {201, "Created"},
    {204, "No Content"},
    {404, "Not Found"},
    {100, "Continue"},
    {202, "Accepted"},
    {206, "Partial Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

void AppendNumber(uint64_t number, std::string* out) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out->append(digits, static_cast<size_t>(end - digits));
}

bool IsInformational(int status) { return status >= 100 && status < 200; }

}  // namespace

std::string_view StatusReason(int status) {
  for (const Reason& reason : kReasons) {
    if (reason.status == status) return reason.text;
  }
  return "";
}

bool ResponseWriter::SendsBody(const HttpResponse& response) {
  return !response.omit_body && !response.body.empty() && response.status != 204 && response.status != 304 &&
         !IsInformational(response.status);
}

void ResponseWriter::AppendHead(const HttpResponse& response, const Framing& framing, std::string* out) {
  const uint64_t second = framing.wall_ticks / kTicksPerSecond;
  if (second != second_) RefreshLines(second);
  out->append("HTTP/1.1 ");
  AppendNumber(static_cast<uint64_t>(response.status), out);
  out->append(" ").append(StatusReason(response.status)).append("\r\n");
  out->append(response.headers);
  out->append(lines_);
  if (response.status != 304 && !IsInformational(response.status)) {
    out->append("Content-Length: ");
    AppendNumber(response.status == 204 ? 0 : response.body.size(), out);
    out->append("\r\n");
  }
  if (!framing.keep_alive) {
    out->append("Connection: close\r\n");
  } else if (framing.http_1_0) {
    out->append("Connection: keep-alive\r\n");
  }
  out->append("\r\n");
}

// RFC 9110, 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT".
void ResponseWriter::RefreshLines(uint64_t second) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  using std::chrono::days;
  using std::chrono::seconds;
  second_ = second;
  const seconds unix_time(static_cast<int64_t>(second) - static_cast<int64_t>(kUnixEpochSecond));
  const std::chrono::sys_days day = std::chrono::floor<days>(std::chrono::sys_seconds(unix_time));
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(std::chrono::sys_seconds(unix_time) - day);
  char text[64];
  std::snprintf(text, sizeof text, "Date: %s, %02u %s %04d %02d:%02d:%02d GMT\r\n",
                kDays[std::chrono::weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
                kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  lines_ = text;
  lines_.append("Server: ").append(server_name_).append("\r\n");
}

}  // namespace partita::http

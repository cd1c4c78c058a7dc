#include "api/cli/figures.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace partita {

namespace {

template <typename... Values>
std::string Printed(const char* format, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

}  // namespace

std::string FormatCount(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? std::to_string(bytes) + " B" : Printed("%.1f %s", value, kUnits[unit]);
}

std::string FormatSeconds(double seconds) {
  if (seconds < 10) return Printed("%.3f s", seconds);
  if (seconds < 60) return Printed("%.1f s", seconds);
  const auto whole = static_cast<unsigned long long>(seconds);
  if (whole < 3600) return Printed("%llu:%02llu", whole / 60, whole % 60);
  return Printed("%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string FormatRate(double count, double seconds, std::string_view unit) {
  const double rate = seconds > 0 ? count / seconds : 0;
  return FormatCount(static_cast<uint64_t>(std::llround(rate))) + " " + std::string(unit) + "/s";
}

std::optional<int64_t> ParseDuration(std::string_view text) {
  if (text.size() < 2 || text.size() > 8) return std::nullopt;
  int64_t number = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  switch (text.back()) {
    case 's':
      return number;
    case 'm':
      return number * 60;
    case 'h':
      return number * 3600;
    case 'd':
      return number * 86'400;
    default:
      return std::nullopt;
  }
}

Result<uint64_t> ParseBytes(std::string_view text) {
  const Status bad =
      Status::InvalidArgument("'" + std::string(text) + "' is no size; write for example 512M, 1G or 1.5GiB");
  const size_t digits_end = text.find_first_not_of("0123456789.");
  const std::string number(text.substr(0, digits_end));
  std::string unit(digits_end == std::string_view::npos ? "" : text.substr(digits_end));
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || end != number.c_str() + number.size()) return bad;
  for (char& c : unit) c = static_cast<char>(c | 32);
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    static constexpr std::string_view kPrefixes = "kmgt";
    const size_t power = kPrefixes.find(unit[0]);
    const std::string rest = unit.substr(1);
    if (power == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) return bad;
    factor = std::ldexp(1.0, static_cast<int>(10 * (power + 1)));
  }
  const double bytes = value * factor;
  if (bytes >= 9e18) return bad;
  return static_cast<uint64_t>(bytes);
}

Status CheckTaskRate(uint64_t bytes_per_second) {
  if (bytes_per_second >= kTaskRateMin) return Status();
  return Status::InvalidArgument(
      "a rate is 64K or more a second, such as 50M: at less a single log file may take a quarter of an hour, "
      "and "
      "nothing seems to go on");
}

}  // namespace partita

#include "api/etag.h"

#include <algorithm>

#include "api/date_time.h"

namespace partita {
namespace {

constexpr std::string_view kOpening = "W/\"";
constexpr std::string_view kTimeOpening = "datetime'";
constexpr std::string_view kEscapedColon = "%3A";
static_assert(kEtagTextMax >=
              kOpening.size() + kTimeOpening.size() + kDateTimeTextMax + 2 * (kEscapedColon.size() - 1) + 2);

std::string_view TrimWhiteSpace(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsOpaqueText(std::string_view text) {
  for (char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte == 0x7F || byte == '"') return false;
  }
  return true;
}

std::string UnescapeColons(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool escaped = text.starts_with(kEscapedColon);
    out.push_back(escaped ? ':' : text[0]);
    text.remove_prefix(escaped ? kEscapedColon.size() : 1);
  }
  return out;
}

}  // namespace

char* WriteEtag(char* to, Version version) {
  const auto write = [&to](std::string_view text) { to = std::copy(text.begin(), text.end(), to); };
  char time[kDateTimeTextMax];
  const char* end = WriteDateTime(time, DateTime{version.value});
  write(kOpening);
  write(kTimeOpening);
  for (const char* from = time; from != end; ++from) {
    if (*from == ':') {
      write(kEscapedColon);
    } else {
      *to++ = *from;
    }
  }
  write("'\"");
  return to;
}

std::string FormatEtag(Version version) {
  char text[kEtagTextMax];
  return std::string(text, WriteEtag(text, version));
}

ParsedEtag ParseEtag(std::string_view text) {
  text = TrimWhiteSpace(text);
  if (text == "*") return {EtagForm::kAny, Version()};
  if (!text.starts_with(kOpening) || text.size() <= kOpening.size() || text.back() != '"') return {};
  std::string_view opaque = text.substr(kOpening.size(), text.size() - kOpening.size() - 1);
  if (!IsOpaqueText(opaque)) return {};

  const ParsedEtag foreign{EtagForm::kForeign, Version()};
  if (!opaque.starts_with(kTimeOpening) || !opaque.ends_with('\'')) return foreign;
  opaque.remove_prefix(kTimeOpening.size());
  if (opaque.empty()) return foreign;
  opaque.remove_suffix(1);
  const Result<DateTime> time = ParseDateTime(UnescapeColons(opaque));
  if (!time.ok()) return foreign;
  const Version version(time->ticks);
  if (FormatEtag(version) != text) return foreign;  // Tags are equal when their bytes are.
  return {EtagForm::kVersion, version};
}

}  // namespace partita

#include "api/http/source_range.h"

#include <arpa/inet.h>

namespace partita::http {

std::optional<SourceRange::Bytes> SourceRange::BytesOf(std::string_view address) {
  // inet_pton wants a zero at the end. No address is longer than this.
  if (address.empty() || address.size() >= INET6_ADDRSTRLEN) return std::nullopt;
  char text[INET6_ADDRSTRLEN] = {};
  address.copy(text, address.size());
  Bytes bytes{};
  if (inet_pton(AF_INET6, text, bytes.data()) == 1) return bytes;
  bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (inet_pton(AF_INET, text, bytes.data() + 12) == 1) return bytes;
  return std::nullopt;
}

std::optional<SourceRange> SourceRange::Parse(std::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<Bytes> first = BytesOf(text.substr(0, dash));
  const std::optional<Bytes> last = dash == text.npos ? first : BytesOf(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  // Ranges are defined for IPv4 alone.
  if (dash != text.npos && text.find(':') != text.npos) return std::nullopt;
  SourceRange range;
  range.first_ = *first;
  range.last_ = *last;
  return range;
}

bool SourceRange::Contains(std::string_view address) const {
  const std::optional<Bytes> bytes = BytesOf(address);
  return bytes.has_value() && first_ <= *bytes && *bytes <= last_;
}

}  // namespace partita::http

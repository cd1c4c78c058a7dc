#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace partita::http {

// The addresses that a SAS may be used from: `sip` (spec 14.4).
class SourceRange {
 public:
  // One IPv4 or IPv6 address, or `a-b` of two IPv4 addresses, both included. Nothing for other text, or
  // when b is below a.
  static std::optional<SourceRange> Parse(std::string_view text);

  // `address` is numeric; an IPv4 address in its IPv6 form (::ffff:10.0.0.1) counts as the former. False
  // for text that is no address.
  bool Contains(std::string_view address) const;

 private:
  // Network order, IPv4 as ::ffff:a.b.c.d.
  using Bytes = std::array<uint8_t, 16>;
  static std::optional<Bytes> BytesOf(std::string_view address);

  Bytes first_;
  Bytes last_;
};

}  // namespace partita::http

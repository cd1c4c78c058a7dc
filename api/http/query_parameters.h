#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/service_error.h"

namespace partita::http {

// Limits of our own; no client comes near.
inline constexpr size_t kQueryBytesMax = 64 << 10;
inline constexpr size_t kQueryParametersMax = 100;
// The service's cap and our default (spec 2.3).
inline constexpr uint32_t kTimeoutSecondsMax = 30;

// The query string of a request, decoded once: `+` and `%20` are spaces, names may be encoded
// (`%24filter`). Names are compared exactly. A name without `=` has the empty value; empty pieces
// (`a=1&&b=2`) are skipped. Unknown names are kept, and mean nothing to the service.
//
// The same name again: with the same value it is as if given once; with another, 400 if the service knows
// the name (spec 2.3, SAS fields included), so that no two readers can see two meanings; of an unknown name
// the first counts.
//
// A value: views that it gives are valid while it lives unchanged.
class QueryParameters {
 public:
  // `query` without its `?`. 400: InvalidUri for too many bytes or parameters or a bad percent sequence,
  // InvalidInput for text that is no UTF-8, InvalidQueryParameterValue for a repeated name. All early.
  std::optional<ServiceError> Parse(std::string_view query);

  // The decoded value; nothing when the name was not given.
  std::optional<std::string_view> Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name).has_value(); }
  // The same with "" when not given.
  std::string_view Get(std::string_view name) const { return Find(name).value_or(std::string_view()); }

  // The value of `comp` as sent, undecoded: what is signed (spec 14.3). Of its first appearance.
  std::optional<std::string> raw_comp() const { return raw_comp_; }

  // In the order given, each name once.
  size_t size() const { return parameters_.size(); }
  std::string_view name(size_t i) const { return Text(parameters_[i].name); }
  std::string_view value(size_t i) const { return Text(parameters_[i].value); }

  // `timeout` in seconds, capped; the cap when not given, empty or 0. InvalidQueryParameterValue when it is
  // no number.
  std::optional<ServiceError> Timeout(uint32_t* seconds) const;

  // NotImplemented when an option is given that tables do not have: $orderby, $skip, $inlinecount, $expand.
  std::optional<ServiceError> CheckSupported() const;

 private:
  // A piece of decoded_. Offsets, because views into a short string would not survive a move.
  struct Piece {
    uint32_t begin = 0;
    uint32_t size = 0;
  };
  struct Parameter {
    Piece name;
    Piece value;
  };
  std::string_view Text(Piece piece) const {
    return std::string_view(decoded_).substr(piece.begin, piece.size);
  }
  // Of a name; most that are looked for were not given, and their bit then seldom is.
  static uint64_t BitOf(std::string_view name) {
    if (name.empty()) return 1;
    const size_t sum =
        7 * name.size() + 3 * static_cast<uint8_t>(name.front()) + static_cast<uint8_t>(name.back());
    return uint64_t{1} << sum % 64;
  }
  std::optional<ServiceError> Add(std::string_view raw_name, std::string_view raw_value);
  std::optional<ServiceError> Decode(std::string_view raw, Piece* piece);

  std::string decoded_;
  std::vector<Parameter> parameters_;
  uint64_t name_bits_ = 0;
  std::optional<std::string> raw_comp_;
};

}  // namespace partita::http

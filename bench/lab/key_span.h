#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/key_template.h"
#include "bench/lab/query_planner.h"

namespace partita::lab {

// Keys from `lower` on, up to and without `upper` (empty: open); with `exact` only `lower`.
struct KeySpan {
  std::string lower, upper;
  bool exact = false;
  size_t parts_known = 0;      // So many parts of the template are known whole.
  bool ends_in_range = false;  // The next one is known to lie in a range, of which these are just the keys.
  KnownFields known;           // And what else is known within the span.
};

// Whether parts of a time in the key stand one by one (a partition each) or as a range.
enum class SpansOfTime : uint8_t { kEnumerated, kRanges };

// Where keys may lie of which that much is known: fans out over buckets, salts, choices and times,
// as long as that makes `ways_max` ways in all at most; what would make more is left open.
inline constexpr uint64_t kWaysMax = 1024;
std::vector<KeySpan> SpansOf(const KeyTemplate& key, const KnownFields& known, SpansOfTime times,
                             uint64_t ways_max = kWaysMax);

// Whether the part rises or falls with its field among the keys of which that much is known.
bool OrdersWithin(const KeyTemplate::Part& part, const KnownFields& known);

// Whether the keys of the span say of a time that is in a range, by the part of their template at this place,
// that it is: as they do where the range begins and ends with a unit of those that they name.
bool TellsRange(const KeyTemplate& key, size_t part, const KeySpan& span);

// A text behind all that begin with this one, the first such of ASCII; empty: there is none. REQUIRES:
// well-formed UTF-8.
std::string BehindPrefix(std::string text);
// The first text behind this one.
inline std::string Behind(std::string text) { return text + '\x01'; }

}  // namespace partita::lab

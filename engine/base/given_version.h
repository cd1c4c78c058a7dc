#pragma once
#include "engine/base/ids.h"

namespace partita {

// No version of a sound store is higher: in the year 8997, behind all that a machine's clock can say, and a
// thousand years before the last moment that a Timestamp and an ETag can (kDateTimeTicksMax). A clock that
// went on above what damaged bytes say would give versions that nobody could be told.
inline constexpr Version kVersionGivenMax{2'334'000'000'000'000'000};

// The higher one, but for one that no clock gave.
constexpr Version HigherGiven(Version highest, Version seen) {
  return seen > highest && seen <= kVersionGivenMax ? seen : highest;
}

}  // namespace partita

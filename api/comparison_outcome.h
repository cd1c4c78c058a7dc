#pragma once
#include <cstddef>
#include <cstdint>

#include "api/filter.h"

namespace partita {

// What a property is to the constant of a comparison, as a bit, so that several may be; values that do not
// compare count as less (spec 11.3).
struct ComparisonOutcome {
  enum Bit : uint8_t { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

  // Those that make a comparison true.
  static constexpr uint8_t Accepted(ComparisonOp op) {
    constexpr uint8_t kAccepted[] = {
        kEqual, kLess | kGreater | kUnordered, kGreater, kGreater | kEqual, kLess, kLess | kEqual};
    return kAccepted[static_cast<size_t>(op)];
  }
};

}  // namespace partita

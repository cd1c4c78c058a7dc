#pragma once
#include <cstdint>

#include "engine/base/property_value.h"

namespace partita {

// How filters compare values by their order-preserving codes (engine/base/property_value.h).

// A set of types has a bit for each.
constexpr uint16_t BitOf(PropertyType type) {
  return static_cast<uint16_t>(1u << static_cast<unsigned>(type));
}

// The two zeros are equal; nothing else shares a value.
inline uint64_t CodeForComparison(double value) { return OrderedCodeOfDouble(value == 0 ? 0.0 : value); }

inline bool IsNanCode(uint64_t double_code) {
  return double_code > kInfinityCode || double_code < kNegativeInfinityCode;
}

}  // namespace partita

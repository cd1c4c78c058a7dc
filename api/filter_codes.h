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

// A constant is widened to the property's type and never the other way (spec 11.3).
struct WidenedConstant {
  uint16_t comparable = 0;   // Bit t: properties of PropertyType t are compared with it by value.
  uint64_t double_code = 0;  // Of a number widened to Double.
};
inline WidenedConstant Widened(const PropertyValue& constant) {
  WidenedConstant widened{.comparable = BitOf(constant.type())};
  if (const int32_t* int32 = constant.if_int32()) {
    widened.comparable |= BitOf(PropertyType::kInt64) | BitOf(PropertyType::kDouble);
    widened.double_code = CodeForComparison(*int32);
  } else if (const int64_t* int64 = constant.if_int64()) {
    widened.comparable |= BitOf(PropertyType::kDouble);
    widened.double_code = CodeForComparison(static_cast<double>(*int64));
  } else if (const double* number = constant.if_double()) {
    widened.double_code = CodeForComparison(*number);
  }
  return widened;
}

}  // namespace partita

#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/property_value.h"

namespace partita {

// The JSON rules of the table service for single values (spec 5.5 and 6), which bodies and JSON lines share.

// `X@odata.type` says the type of X.
inline constexpr std::string_view kTypeAnnotation = "@odata.type";

enum class JsonTokenKind : uint8_t { kAbsent, kString, kNumber, kTrue, kFalse, kNull };

// A string is taken for every type, other tokens for the types they can be.
constexpr bool TokenFits(JsonTokenKind kind, PropertyType type) {
  if (kind == JsonTokenKind::kString) return true;
  if (kind == JsonTokenKind::kNumber)
    return type == PropertyType::kInt32 || type == PropertyType::kInt64 || type == PropertyType::kDouble;
  return type == PropertyType::kBoolean;
}

// Without the white space that a parser's raw token may end in.
constexpr std::string_view TrimTokenEnd(std::string_view token) {
  while (!token.empty() &&
         (token.back() == ' ' || token.back() == '\t' || token.back() == '\r' || token.back() == '\n')) {
    token.remove_suffix(1);
  }
  return token;
}

}  // namespace partita

#pragma once
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "api/entity.h"
#include "api/filter.h"

namespace partita {

// The semantics of spec 11.3 in the slowest and plainest way: by recursion over the tree, on decoded
// values, with texts compared as UTF-16. The oracle of the compiled filter; shares no code with it.

// UTF-16 code units of UTF-8.
inline std::u16string ReferenceUtf16(std::string_view utf8) {
  std::u16string units;
  for (size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    const size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t character = size == 1 ? lead : lead & (0xFFu >> (size + 1));
    for (size_t k = 1; k < size; ++k) {
      character = character << 6 | (static_cast<unsigned char>(utf8[i + k]) & 0x3Fu);
    }
    if (character >= 0x10000) {
      units.push_back(static_cast<char16_t>(0xD800 + ((character - 0x10000) >> 10)));
      units.push_back(static_cast<char16_t>(0xDC00 + ((character - 0x10000) & 0x3FF)));
    } else {
      units.push_back(static_cast<char16_t>(character));
    }
    i += size;
  }
  return units;
}

template <typename T>
bool ReferenceHolds(const T& a, ComparisonOp op, const T& b) {
  switch (op) {
    case ComparisonOp::kEqual:
      return a == b;
    case ComparisonOp::kNotEqual:
      return !(a == b);
    case ComparisonOp::kGreater:
      return a > b;
    case ComparisonOp::kGreaterOrEqual:
      return a >= b;
    case ComparisonOp::kLess:
      return a < b;
    case ComparisonOp::kLessOrEqual:
      return a <= b;
  }
  return false;
}

// Bytes as unsigned numbers, the shorter prefix first.
inline std::u16string ReferenceBytes(std::string_view bytes) {
  std::u16string units;
  for (const char c : bytes) units.push_back(static_cast<unsigned char>(c));
  return units;
}

inline std::string ReferenceGuidBytes(const Guid& guid) {
  return std::string(reinterpret_cast<const char*>(guid.bytes.data()), guid.bytes.size());
}

inline bool ReferenceCompare(const PropertyValue& property, ComparisonOp op, const PropertyValue& constant) {
  const auto integer = [](const PropertyValue& value, int64_t* out) {
    if (const int32_t* small = value.if_int32()) *out = *small;
    if (const int64_t* large = value.if_int64()) *out = *large;
    return value.if_int32() != nullptr || value.if_int64() != nullptr;
  };
  int64_t number = 0;
  if (property.type() == constant.type()) {
    if (const std::string* text = property.if_string()) {
      return ReferenceHolds(ReferenceUtf16(*text), op, ReferenceUtf16(*constant.if_string()));
    }
    if (const int32_t* value = property.if_int32()) return ReferenceHolds(*value, op, *constant.if_int32());
    if (const int64_t* value = property.if_int64()) return ReferenceHolds(*value, op, *constant.if_int64());
    if (const double* value = property.if_double()) return ReferenceHolds(*value, op, *constant.if_double());
    if (const bool* value = property.if_boolean()) {
      return ReferenceHolds<int>(*value, op, *constant.if_boolean());
    }
    if (const DateTime* value = property.if_date_time()) {
      return ReferenceHolds(value->ticks, op, constant.if_date_time()->ticks);
    }
    if (const Guid* value = property.if_guid()) {
      return ReferenceHolds(ReferenceBytes(ReferenceGuidBytes(*value)), op,
                            ReferenceBytes(ReferenceGuidBytes(*constant.if_guid())));
    }
    return ReferenceHolds(ReferenceBytes(property.if_binary()->bytes), op,
                          ReferenceBytes(constant.if_binary()->bytes));
  }
  if (const int64_t* value = property.if_int64(); value != nullptr && constant.if_int32() != nullptr) {
    return ReferenceHolds<int64_t>(*value, op, *constant.if_int32());
  }
  if (const double* value = property.if_double(); value != nullptr && integer(constant, &number)) {
    return ReferenceHolds(*value, op, static_cast<double>(number));
  }
  return op == ComparisonOp::kNotEqual || op == ComparisonOp::kLess || op == ComparisonOp::kLessOrEqual;
}

// Nothing when the entity lacks the property.
inline const PropertyValue* ReferenceProperty(const Entity& entity, std::string_view name,
                                              PropertyValue* system) {
  if (name == "PartitionKey") return &(*system = PropertyValue(entity.partition_key()));
  if (name == "RowKey") return &(*system = PropertyValue(entity.row_key()));
  if (name == "Timestamp") return &(*system = PropertyValue(DateTime{entity.timestamp_ticks()}));
  return entity.Get(name);
}

inline bool ReferenceMatches(const Filter& filter, size_t root, const Entity& entity) {
  const FilterNode& node = filter.nodes()[root];
  PropertyValue system;
  switch (node.kind) {
    case FilterNodeKind::kConstant:
      return node.truth;
    case FilterNodeKind::kNot:
      return !ReferenceMatches(filter, root - 1, entity);
    case FilterNodeKind::kAnd:
    case FilterNodeKind::kOr: {
      const bool right = ReferenceMatches(filter, root - 1, entity);
      const bool left = ReferenceMatches(filter, root - 1 - filter.nodes()[root - 1].size, entity);
      return node.kind == FilterNodeKind::kAnd ? left && right : left || right;
    }
    case FilterNodeKind::kProperty: {
      const PropertyValue* value = ReferenceProperty(entity, node.name, &system);
      return value != nullptr && value->if_boolean() != nullptr && *value->if_boolean();
    }
    case FilterNodeKind::kComparison: {
      const PropertyValue* value = ReferenceProperty(entity, node.name, &system);
      return value != nullptr && ReferenceCompare(*value, node.op, node.value);
    }
  }
  return false;
}

inline bool ReferenceMatches(const Filter& filter, const Entity& entity) {
  return filter.empty() || ReferenceMatches(filter, filter.nodes().size() - 1, entity);
}

}  // namespace partita

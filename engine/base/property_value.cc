#include "engine/base/property_value.h"

#include <bit>

#include "engine/base/coding.h"
#include "engine/base/key_head.h"
#include "engine/base/text.h"

namespace partita {
namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;

constexpr std::string_view kEdmTypeNames[] = {"Edm.String",  "Edm.Int32",    "Edm.Int64", "Edm.Double",
                                              "Edm.Boolean", "Edm.DateTime", "Edm.Guid",  "Edm.Binary"};
static_assert(std::size(kEdmTypeNames) == kPropertyTypeMax - kPropertyTypeMin + 1);

uint64_t HeadCodeOfText(std::string_view utf8) {
  char head[8];
  const std::string_view start = utf8.substr(0, sizeof head);
  CopyAsOrderedText(head, start);
  return HeadCode(std::string_view(head, start.size()));
}

}  // namespace

std::string_view EdmTypeName(PropertyType type) {
  const size_t index = static_cast<size_t>(type) - kPropertyTypeMin;
  return index < std::size(kEdmTypeNames) ? kEdmTypeNames[index] : "?";
}

std::optional<PropertyType> PropertyTypeFromEdmName(std::string_view name) {
  for (size_t i = 0; i < std::size(kEdmTypeNames); ++i) {
    if (kEdmTypeNames[i] == name) return static_cast<PropertyType>(i + kPropertyTypeMin);
  }
  return std::nullopt;
}

bool PropertyValue::Equals(const PropertyValue& other) const {
  if (type() != other.type()) return false;
  if (if_double() != nullptr) {
    return std::bit_cast<uint64_t>(*if_double()) == std::bit_cast<uint64_t>(*other.if_double());
  }
  return value_ == other.value_;
}

uint64_t OrderedCode(const PropertyValue& value) {
  switch (value.type()) {
    case PropertyType::kString:
      return HeadCodeOfText(*value.if_string());
    case PropertyType::kInt32:
      return OrderedCodeOfInt64(*value.if_int32());
    case PropertyType::kInt64:
      return OrderedCodeOfInt64(*value.if_int64());
    case PropertyType::kDouble:
      return OrderedCodeOfDouble(*value.if_double());
    case PropertyType::kBoolean:
      return *value.if_boolean() ? 1 : 0;
    case PropertyType::kDateTime:
      return value.if_date_time()->ticks;
    case PropertyType::kGuid:
      return LoadBe64(value.if_guid()->bytes.data());
    case PropertyType::kBinary:
      return HeadCode(value.if_binary()->bytes);
  }
  return 0;
}

uint64_t OrderedCodeOfInt64(int64_t value) { return static_cast<uint64_t>(value) ^ kSignBit; }

uint64_t OrderedCodeOfDouble(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  return (bits & kSignBit) != 0 ? ~bits : bits ^ kSignBit;
}

uint64_t HeadCode(std::string_view bytes) { return HeadOf(bytes); }

int64_t Int64FromOrderedCode(uint64_t code) { return static_cast<int64_t>(code ^ kSignBit); }

double DoubleFromOrderedCode(uint64_t code) {
  return std::bit_cast<double>((code & kSignBit) != 0 ? code ^ kSignBit : ~code);
}

}  // namespace partita

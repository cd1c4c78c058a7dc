#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace partita {

// The types a property can have. On disk: append only, never renumber.
enum class PropertyType : uint8_t {
  kString = 1,
  kInt32 = 2,
  kInt64 = 3,
  kDouble = 4,
  kBoolean = 5,
  kDateTime = 6,
  kGuid = 7,
  kBinary = 8,
};
inline constexpr uint8_t kPropertyTypeMin = 1;
inline constexpr uint8_t kPropertyTypeMax = 8;

// "Edm.String" and so on: the name that the service gives the type.
std::string_view EdmTypeName(PropertyType type);
// Nothing when the text names none of the eight types.
std::optional<PropertyType> PropertyTypeFromEdmName(std::string_view name);

// A point in time: 100 ns ticks since 1601-01-01T00:00:00Z.
struct DateTime {
  uint64_t ticks = 0;
  friend constexpr auto operator<=>(DateTime, DateTime) = default;
};
// 9999-12-31T23:59:59.9999999Z, the last instant the service can hold.
inline constexpr uint64_t kDateTimeTicksMax = 2'650'467'743'999'999'999;

// 16 bytes in the order of the text form 8-4-4-4-12, so byte order is the order of the lower-case text.
struct Guid {
  std::array<uint8_t, 16> bytes{};
  friend auto operator<=>(const Guid&, const Guid&) = default;
};

// Bytes that are not text.
struct Binary {
  std::string bytes;
  friend auto operator<=>(const Binary&, const Binary&) = default;
};

// One property's value with its type. Value type; not thread-safe. Constructors are implicit for
// the eight types only: no number converts to another width by accident.
//
// Strings are UTF-8. This class does not check them: api/entity.h's ValidateEntity does.
class PropertyValue {
 public:
  PropertyValue() : value_(std::string()) {}
  PropertyValue(std::string value) : value_(std::move(value)) {}         // NOLINT: implicit by intent
  PropertyValue(std::string_view value) : value_(std::string(value)) {}  // NOLINT: implicit by intent
  PropertyValue(const char* value) : value_(std::string(value)) {}       // NOLINT: implicit by intent
  PropertyValue(char* value) : value_(std::string(value)) {}             // NOLINT: implicit by intent
  PropertyValue(int32_t value) : value_(value) {}                        // NOLINT: implicit by intent
  PropertyValue(int64_t value) : value_(value) {}                        // NOLINT: implicit by intent
  PropertyValue(long long value) : value_(int64_t{value}) {}             // NOLINT: another type than int64_t
  PropertyValue(double value) : value_(value) {}                         // NOLINT: implicit by intent
  PropertyValue(bool value) : value_(value) {}                           // NOLINT: implicit by intent
  PropertyValue(DateTime value) : value_(value) {}                       // NOLINT: implicit by intent
  PropertyValue(Guid value) : value_(value) {}                           // NOLINT: implicit by intent
  PropertyValue(Binary value) : value_(std::move(value)) {}              // NOLINT: implicit by intent
  template <typename T>
  PropertyValue(T) = delete;

  // As assigning PropertyValue(text), but what memory a string here has is kept.
  void AssignText(std::string_view text) {
    if (auto* string = std::get_if<std::string>(&value_)) {
      string->assign(text);
    } else {
      value_.emplace<std::string>(text);
    }
  }

  PropertyType type() const { return static_cast<PropertyType>(value_.index() + 1); }

  // The value when it has that type, else null.
  const std::string* if_string() const { return std::get_if<std::string>(&value_); }
  const int32_t* if_int32() const { return std::get_if<int32_t>(&value_); }
  const int64_t* if_int64() const { return std::get_if<int64_t>(&value_); }
  const double* if_double() const { return std::get_if<double>(&value_); }
  const bool* if_boolean() const { return std::get_if<bool>(&value_); }
  const DateTime* if_date_time() const { return std::get_if<DateTime>(&value_); }
  const Guid* if_guid() const { return std::get_if<Guid>(&value_); }
  const Binary* if_binary() const { return std::get_if<Binary>(&value_); }

  // Same type and same value; doubles by their bits, so NaN equals itself and 0.0 differs from -0.0.
  friend bool operator==(const PropertyValue& a, const PropertyValue& b) { return a.Equals(b); }

 private:
  bool Equals(const PropertyValue& other) const;

  // The order of the alternatives is that of PropertyType, from 1 on.
  std::variant<std::string, int32_t, int64_t, double, bool, DateTime, Guid, Binary> value_;
};

// A named value.
struct Property {
  std::string name;
  PropertyValue value;
  friend bool operator==(const Property&, const Property&) = default;
};

// Order-preserving codes: unsigned compare of two codes of one type is the order of the values.
//
//   Int32, Int64   value + 2^63 (so both types share one scale)
//   Double         the bits, all flipped when negative, else the sign bit flipped. Total order:
//                  -NaN < -Infinity < ... < -0.0 < 0.0 < ... < Infinity < NaN. That the zeros are equal
//                  and NaN equals nothing under IEEE is left to who compares: see the constants.
//   Boolean        0, 1
//   DateTime       ticks
//   Guid, Binary   head code: the first 8 bytes, big-endian, filled with zeros
//   String         head code of the *ordered text* (user_key.h)
//
// A head code orders like its value except that equal codes say nothing about the rest.
uint64_t OrderedCode(const PropertyValue& value);

uint64_t OrderedCodeOfInt64(int64_t value);
uint64_t OrderedCodeOfDouble(double value);
// The first 8 bytes, big-endian, filled with zeros.
uint64_t HeadCode(std::string_view bytes);

int64_t Int64FromOrderedCode(uint64_t code);
double DoubleFromOrderedCode(uint64_t code);

// Codes of doubles below -Infinity's or above Infinity's are NaNs.
inline constexpr uint64_t kNegativeInfinityCode = 0x000F'FFFF'FFFF'FFFF;
inline constexpr uint64_t kInfinityCode = 0xFFF0'0000'0000'0000;
inline constexpr uint64_t kNegativeZeroCode = 0x7FFF'FFFF'FFFF'FFFF;
inline constexpr uint64_t kZeroCode = 0x8000'0000'0000'0000;

// True when the code is the whole value: all types but String, Guid and Binary.
constexpr bool CodeIsExact(PropertyType type) {
  return type != PropertyType::kString && type != PropertyType::kGuid && type != PropertyType::kBinary;
}

}  // namespace partita

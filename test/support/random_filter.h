#pragma once
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "api/entity.h"
#include "api/filter.h"

namespace partita {

// Random filters and entities from small pools of names and values, so that they meet often.
class FilterDice {
 public:
  explicit FilterDice(uint64_t seed) : random_(seed) {}

  size_t Below(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }
  bool Chance(size_t percent) { return Below(100) < percent; }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[Below(from.size())];
  }

  // Keys that are prefixes of each other, empty, and on both sides of the surrogates.
  std::string Key() { return Pick(kKeys); }
  std::string Name() { return Pick(kNames); }

  PropertyValue Value() {
    switch (Below(8)) {
      case 0:
        return Pick(kTexts);
      case 1:
        return Pick(kInt32s);
      case 2:
        return Pick(kInt64s);
      case 3:
        return Pick(kDoubles);
      case 4:
        return Chance(50);
      case 5:
        return DateTime{Pick(kTicks)};
      case 6: {
        Guid guid;
        guid.bytes[Below(2) * 15] = static_cast<uint8_t>(Below(3) * 0x7F);
        return guid;
      }
      default:
        return Binary{Pick(kBytes)};
    }
  }

  Entity RandomEntity() {
    Entity entity(Key(), Key());
    for (const std::string& name : kNames) {
      if (Chance(70)) entity.Set(name, Value());
    }
    entity.set_timestamp_ticks(Pick(kTicks));
    return entity;
  }

  // `key_percent`: how many of the comparisons are on keys.
  Filter Leaf(size_t key_percent) {
    if (Chance(5)) return Filter::Constant(Chance(50));
    const auto op = static_cast<ComparisonOp>(Below(6));
    if (Chance(key_percent)) {
      const std::string name = Chance(50) ? "PartitionKey" : "RowKey";
      if (Chance(5)) return Filter::BareProperty(name);
      return Filter::Comparison(name, op, Chance(90) ? PropertyValue(Key()) : Value());
    }
    if (Chance(10)) return Filter::BareProperty(Name());
    if (Chance(10)) return Filter::Comparison("Timestamp", op, Value());
    return Filter::Comparison(Name(), op, Value());
  }

  Filter RandomFilter(size_t leaves, size_t key_percent) {
    Filter filter;
    if (leaves <= 1) {
      filter = Leaf(key_percent);
    } else {
      const size_t left = 1 + Below(leaves - 1);
      Filter a = RandomFilter(left, key_percent);
      Filter b = RandomFilter(leaves - left, key_percent);
      filter = Chance(55) ? Filter::And(std::move(a), std::move(b)) : Filter::Or(std::move(a), std::move(b));
    }
    return Chance(20) ? Filter::Not(std::move(filter)) : filter;
  }

 private:
  std::mt19937_64 random_;
  const std::vector<std::string> kKeys = {
      "", "a", "aa", "ab", "b", "ba", "c", "d", "\xEE\x80\x80", "\xF0\x9F\x98\x80", "~"};
  const std::vector<std::string> kNames = {"a", "B", "b", "long_name_of_a_property", "\xC3\xBCn", "z"};
  const std::vector<std::string> kTexts = {
      "", "a", "ab", "abcdefgh", "abcdefghi", "o'cl", "\xEF\xBD\x9E", "\xF0\x9F\x98\x80", "abcdefghj"};
  const std::vector<int32_t> kInt32s = {
      0, 1, -1, 5, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  const std::vector<int64_t> kInt64s = {0,
                                        1,
                                        -1,
                                        5,
                                        std::numeric_limits<int64_t>::min(),
                                        std::numeric_limits<int64_t>::max(),
                                        9'007'199'254'740'992,
                                        9'007'199'254'740'993};
  const std::vector<double> kDoubles = {0.0,
                                        -0.0,
                                        1.0,
                                        5.0,
                                        2.5,
                                        -1e300,
                                        9'007'199'254'740'992.0,
                                        std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN()};
  const std::vector<uint64_t> kTicks = {0, 1, 133'000'000'000'000'000, kDateTimeTicksMax};
  const std::vector<std::string> kBytes = {"", std::string(1, '\0'), "\x01\x02", "\x01\x02\xFF", "\xFF"};
};

}  // namespace partita

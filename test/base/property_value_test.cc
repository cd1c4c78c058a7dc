#include "engine/base/property_value.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace partita {
namespace {

TEST(PropertyValueTest, TheTypeFollowsFromWhatItWasMadeOf) {
  EXPECT_EQ(PropertyValue("x").type(), PropertyType::kString);
  EXPECT_EQ(PropertyValue(std::string_view("x")).type(), PropertyType::kString);
  char buffer[8] = "x";
  EXPECT_EQ(*PropertyValue(buffer).if_string(), "x");
  EXPECT_EQ(PropertyValue(5).type(), PropertyType::kInt32);
  EXPECT_EQ(PropertyValue(int64_t{5}).type(), PropertyType::kInt64);
  static_assert(!std::is_same_v<int64_t, long long>);
  EXPECT_EQ(*PropertyValue(5LL).if_int64(), 5);
  EXPECT_EQ(PropertyValue(5.0).type(), PropertyType::kDouble);
  EXPECT_EQ(PropertyValue(true).type(), PropertyType::kBoolean);
  EXPECT_EQ(PropertyValue(DateTime{5}).type(), PropertyType::kDateTime);
  EXPECT_EQ(PropertyValue(Guid{}).type(), PropertyType::kGuid);
  EXPECT_EQ(PropertyValue(Binary{"x"}).type(), PropertyType::kBinary);
}

TEST(PropertyValueTest, NoOtherTypeConvertsByAccident) {
  static_assert(!std::is_constructible_v<PropertyValue, uint64_t>);
  static_assert(!std::is_constructible_v<PropertyValue, uint32_t>);
  static_assert(!std::is_constructible_v<PropertyValue, unsigned long long>);
  static_assert(!std::is_constructible_v<PropertyValue, char>);
  static_assert(!std::is_constructible_v<PropertyValue, float>);
  static_assert(!std::is_constructible_v<PropertyValue, void*>);
}

TEST(PropertyValueTest, EqualityAsksForTypeAndBits) {
  EXPECT_EQ(PropertyValue(5), PropertyValue(5));
  EXPECT_FALSE(PropertyValue(5) == PropertyValue(int64_t{5}));
  EXPECT_FALSE(PropertyValue("1") == PropertyValue(Binary{"1"}));
  EXPECT_EQ(PropertyValue(std::nan("")), PropertyValue(std::nan("")));
  EXPECT_FALSE(PropertyValue(0.0) == PropertyValue(-0.0));
}

TEST(PropertyValueTest, EdmNamesRoundTrip) {
  for (int type = kPropertyTypeMin; type <= kPropertyTypeMax; ++type) {
    const auto edm = static_cast<PropertyType>(type);
    EXPECT_EQ(PropertyTypeFromEdmName(EdmTypeName(edm)), edm);
  }
  EXPECT_EQ(EdmTypeName(PropertyType::kDateTime), "Edm.DateTime");
  EXPECT_FALSE(PropertyTypeFromEdmName("Edm.Decimal").has_value());
  EXPECT_FALSE(PropertyTypeFromEdmName("edm.string").has_value());
}

TEST(OrderedCodeTest, IntegersOfBothWidthsShareOneScale) {
  const int64_t values[] = {INT64_MIN, INT64_MIN + 1, INT32_MIN,     -2,       -1, 0, 1,
                            2,         INT32_MAX,     INT64_MAX - 1, INT64_MAX};
  for (size_t i = 0; i < std::size(values); ++i) {
    EXPECT_EQ(Int64FromOrderedCode(OrderedCodeOfInt64(values[i])), values[i]);
    if (i > 0) EXPECT_LT(OrderedCodeOfInt64(values[i - 1]), OrderedCodeOfInt64(values[i]));
  }
  EXPECT_EQ(OrderedCode(PropertyValue(-7)), OrderedCode(PropertyValue(int64_t{-7})));
}

TEST(OrderedCodeTest, DoublesSortFromNegativeNanToNan) {
  using Limits = std::numeric_limits<double>;
  const double values[] = {-Limits::quiet_NaN(),
                           -Limits::infinity(),
                           -Limits::max(),
                           -1.5,
                           -Limits::denorm_min(),
                           -0.0,
                           0.0,
                           Limits::denorm_min(),
                           Limits::min(),
                           1.5,
                           Limits::max(),
                           Limits::infinity(),
                           Limits::quiet_NaN()};
  for (size_t i = 1; i < std::size(values); ++i) {
    EXPECT_LT(OrderedCodeOfDouble(values[i - 1]), OrderedCodeOfDouble(values[i])) << i;
  }
  EXPECT_EQ(OrderedCodeOfDouble(-Limits::infinity()), kNegativeInfinityCode);
  EXPECT_EQ(OrderedCodeOfDouble(Limits::infinity()), kInfinityCode);
  EXPECT_EQ(OrderedCodeOfDouble(0.0), kZeroCode);
  EXPECT_EQ(OrderedCodeOfDouble(-0.0), kNegativeZeroCode);
}

TEST(OrderedCodeTest, RandomDoublesKeepOrderAndBits) {
  const uint64_t seed = 4711;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100'000; ++round) {
    const auto a = std::bit_cast<double>(random());
    const auto b = std::bit_cast<double>(random());
    ASSERT_EQ(std::bit_cast<uint64_t>(DoubleFromOrderedCode(OrderedCodeOfDouble(a))),
              std::bit_cast<uint64_t>(a));
    if (std::isnan(a) || std::isnan(b)) continue;
    ASSERT_EQ(a < b, OrderedCodeOfDouble(a) < OrderedCodeOfDouble(b));
  }
}

TEST(OrderedCodeTest, HeadCodesOrderLikeTheirFirstEightBytes) {
  EXPECT_EQ(HeadCode(""), 0u);
  EXPECT_EQ(HeadCode("a"), 0x6100'0000'0000'0000u);
  EXPECT_EQ(HeadCode("abcdefgh"), HeadCode("abcdefghi"));
  EXPECT_LT(HeadCode("ab"), HeadCode("b"));
  EXPECT_FALSE(CodeIsExact(PropertyType::kString));
  EXPECT_FALSE(CodeIsExact(PropertyType::kGuid));
  EXPECT_TRUE(CodeIsExact(PropertyType::kDateTime));
}

TEST(OrderedCodeTest, TextHeadsSortLikeUtf16) {
  // U+E000 sorts after U+1F600 (D83D DE00) in UTF-16, before it in UTF-8.
  EXPECT_GT(OrderedCode(PropertyValue("\xEE\x80\x80")), OrderedCode(PropertyValue("\xF0\x9F\x98\x80")));
}

}  // namespace
}  // namespace partita

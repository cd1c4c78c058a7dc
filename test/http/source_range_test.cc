#include "api/http/source_range.h"

#include <gtest/gtest.h>

namespace partita::http {
namespace {

TEST(SourceRangeTest, ARangeHoldsBothItsEnds) {
  const auto range = SourceRange::Parse("10.0.0.1-10.0.0.9");
  ASSERT_TRUE(range.has_value());
  for (const char* address : {"10.0.0.1", "10.0.0.5", "10.0.0.9", "::ffff:10.0.0.9"}) {
    EXPECT_TRUE(range->Contains(address)) << address;
  }
  for (const char* address :
       {"10.0.0.0", "10.0.0.10", "10.0.1.5", "9.0.0.5", "::1", "", "10.0.0", "10.0.0.5 "}) {
    EXPECT_FALSE(range->Contains(address)) << address;
  }
}

TEST(SourceRangeTest, OneAddressHoldsItselfInEveryNotation) {
  EXPECT_TRUE(SourceRange::Parse("10.0.0.1")->Contains("10.0.0.1"));
  EXPECT_FALSE(SourceRange::Parse("10.0.0.1")->Contains("10.0.0.2"));
  EXPECT_TRUE(SourceRange::Parse("2001:db8::1")->Contains("2001:0DB8:0::1"));
  EXPECT_FALSE(SourceRange::Parse("2001:db8::1")->Contains("2001:db8::2"));
}

TEST(SourceRangeTest, OtherTextIsNoRange) {
  for (const char* text :
       {"", "-", "10.0.0.1-", "-10.0.0.1", "10.0.0.9-10.0.0.1", "10.0.0.1-10.0.0.2-10.0.0.3", "10.0.0.256",
        "10.0.0.1/8", "2001:db8::1-2001:db8::2", "localhost",
        "1111:2222:3333:4444:5555:6666:7777:8888:9999:1111:2222"}) {
    EXPECT_FALSE(SourceRange::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace partita::http

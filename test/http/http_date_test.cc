#include "api/http/http_date.h"

#include <gtest/gtest.h>

#include <random>

#include "api/date_time.h"

namespace partita::http {
namespace {

TEST(HttpDateTest, DatesAreReadAndWrittenInTheFormOfHeaders) {
  const DateTime time = *ParseDateTime("2025-01-15T10:20:30Z");
  EXPECT_EQ(ParseHttpDate("Wed, 15 Jan 2025 10:20:30 GMT"), time);
  EXPECT_EQ(FormatHttpDate(time), "Wed, 15 Jan 2025 10:20:30 GMT");
  EXPECT_EQ(FormatHttpDate(DateTime{0}), "Mon, 01 Jan 1601 00:00:00 GMT");
  EXPECT_EQ(FormatHttpDate(DateTime{kDateTimeTicksMax}), "Fri, 31 Dec 9999 23:59:59 GMT");
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t ticks = random() % kDateTimeTicksMax;
    EXPECT_EQ(ParseHttpDate(FormatHttpDate(DateTime{ticks})), DateTime{ticks - ticks % 10'000'000});
  }
}

TEST(HttpDateTest, OtherFormsAreNoDates) {
  for (const char* text :
       {"", "Wed, 15 Jan 2025 10:20:30", "Wed, 15 Jan 2025 10:20:30 UTC", "Wed, 15 JAN 2025 10:20:30 GMT",
        "Wed, 32 Jan 2025 10:20:30 GMT", "Wed, 15 Jan 2025 24:20:30 GMT", "Wed, 15 Jan 1600 10:20:30 GMT",
        "Wednesday, 15-Jan-25 10:20:30 GMT", "2025-01-15T10:20:30.000000GMT",
        "Wed, 15 Jan 2025 10-20-30 GMT"}) {
    EXPECT_EQ(ParseHttpDate(text), std::nullopt) << text;
  }
}

TEST(HttpDateTest, TimesInXmlHaveSevenDigits) {
  const auto seven = [](const char* text) {
    std::string out;
    AppendSevenDigitTime(&out, *ParseDateTime(text));
    return out;
  };
  EXPECT_EQ(seven("2025-01-15T10:20:30Z"), "2025-01-15T10:20:30.0000000Z");
  EXPECT_EQ(seven("2025-01-15T10:20:30.12Z"), "2025-01-15T10:20:30.1200000Z");
  EXPECT_EQ(seven("2025-01-15T10:20:30.1234567Z"), "2025-01-15T10:20:30.1234567Z");
}

}  // namespace
}  // namespace partita::http

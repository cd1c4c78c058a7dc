#include "api/etag.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "api/date_time.h"
#include "api/names.h"
#include "engine/base/clock.h"
#include "test/api/vector_file.h"

namespace partita {
namespace {

TEST(EtagVectorTest, TimestampsAndTagsAreSpelledAsTheServiceDoes) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("etag-if-match.json");
  for (const JsonValue& vector : vectors["encoding"].items) {
    const Result<DateTime> time = ParseDateTime(vector["timestamp_ticks_form"].text);
    ASSERT_TRUE(time.ok());
    EXPECT_EQ(FormatDateTime(*time), vector["timestamp_in_json"].text);
    EXPECT_EQ(FormatEtag(Version(time->ticks)), vector["etag_header"].text);
    const ParsedEtag parsed = ParseEtag(vector["etag_header"].text);
    EXPECT_EQ(parsed.form, EtagForm::kVersion);
    EXPECT_EQ(parsed.version, Version(time->ticks));
    ++cases;
  }
  EXPECT_EQ(cases, 5);
}

// The text of each If-Match falls into the form that leads to the recorded status; what the store
// then decides is tested where there is a store.
TEST(EtagVectorTest, EveryIfMatchTextHasTheFormItsStatusNeeds) {
  std::map<std::string, int> cases;
  const JsonValue vectors = LoadVectors("etag-if-match.json");
  for (const JsonValue& vector : vectors["conditions"].items) {
    SCOPED_TRACE(vector["id"].text);
    const JsonValue& if_match = vector["if_match"];
    if (if_match.kind != JsonValue::Kind::kString) {
      ++cases["absent"];  // No text to judge.
    } else if (if_match.text.starts_with('<')) {
      ++cases["placeholder"];  // <current>, <older>: whatever the store gave.
    } else if (if_match.text == "*") {
      ++cases["any"];
      EXPECT_EQ(ParseEtag(if_match.text).form, EtagForm::kAny);
    } else if (vector["status"].number == 400) {
      ++cases["malformed"];
      EXPECT_EQ(ParseEtag(if_match.text).form, EtagForm::kMalformed);
    } else if (vector["status"].number == 412) {
      ++cases["foreign"];
      EXPECT_EQ(ParseEtag(if_match.text).form, EtagForm::kForeign);
    } else {
      ++cases["current"];
      EXPECT_EQ(ParseEtag(if_match.text).form, EtagForm::kVersion);
    }
  }
  int total = 0;
  for (const auto& [form, count] : cases) total += count;
  EXPECT_EQ(total, 69);
  EXPECT_EQ(cases["malformed"], 11);
  EXPECT_EQ(cases["foreign"], 2);
  EXPECT_EQ(cases["current"], 1);
  EXPECT_EQ(vectors["sequences"].items.size(), 8u);  // Through a store: the engine's tests.
}

TEST(EtagTest, EveryVersionComesBack) {
  const uint64_t seed = 31;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50'000; ++round) {
    uint64_t ticks = random() % (kDateTimeTicksMax + 1);
    for (uint64_t zeros = random() % 8; zeros > 0; --zeros)
      ticks = ticks / 10 * 10;  // Often a trailing zero.
    if (round % 7 == 0) ticks = ticks / kTicksPerSecond * kTicksPerSecond;
    const ParsedEtag parsed = ParseEtag(FormatEtag(Version(ticks)));
    ASSERT_EQ(parsed.form, EtagForm::kVersion) << ticks;
    ASSERT_EQ(parsed.version.value, ticks);
  }
}

TEST(EtagTest, OnlyTheExactSpellingIsOurs) {
  const std::string good = "W/\"datetime'2025-01-15T10%3A20%3A30.5Z'\"";
  EXPECT_EQ(ParseEtag(good).form, EtagForm::kVersion);
  EXPECT_EQ(ParseEtag("\t " + good + " ").form, EtagForm::kVersion);
  for (const char* other :
       {"W/\"datetime'2025-01-15T10%3A20%3A30.50Z'\"", "W/\"datetime'2025-01-15T10%3A20%3A30.12345678Z'\"",
        "W/\"datetime'2025-01-15T10%3a20%3a30.5Z'\"", "W/\"datetime'2025-01-15T10%3A20%3A30.5'\"",
        "W/\"datetime''\"", "W/\"datetime'\"", "W/\"\"", "W/\"datetime'1600-01-15T10%3A20%3A30Z'\""}) {
    EXPECT_EQ(ParseEtag(other).form, EtagForm::kForeign) << other;
  }
  for (const char* bad : {"", " ", "W/", "W/\"", "\"", "W/\"a\x01\"", "W/\"a\"b\"", "W/ \"a\"", "*,*"}) {
    EXPECT_EQ(ParseEtag(bad).form, EtagForm::kMalformed) << bad;
  }
}

TEST(DateTimeTest, KnownMoments) {
  EXPECT_EQ(ParseDateTime("1601-01-01T00:00:00Z")->ticks, 0u);
  EXPECT_EQ(ParseDateTime("1970-01-01T00:00:00Z")->ticks, kUnixEpochTicks);
  EXPECT_EQ(ParseDateTime("9999-12-31T23:59:59.9999999Z")->ticks, kDateTimeTicksMax);
  EXPECT_EQ(ParseDateTime("2000-02-29T12:00:00Z")->ticks, kUnixEpochTicks + 951'825'600 * kTicksPerSecond);
  EXPECT_EQ(FormatDateTime(DateTime{1}), "1601-01-01T00:00:00.0000001Z");
  EXPECT_EQ(FormatDateTime(DateTime{kUnixEpochTicks + 5'000'000}), "1970-01-01T00:00:00.5Z");
  for (const uint64_t behind : {kDateTimeTicksMax, kDateTimeTicksMax + 1, UINT64_MAX}) {
    EXPECT_EQ(FormatDateTime(DateTime{behind}), "9999-12-31T23:59:59.9999999Z");
    EXPECT_EQ(FormatEtag(Version(behind)), FormatEtag(Version(kDateTimeTicksMax)));
  }
}

TEST(DateTimeTest, EveryDayOfEveryYearComesBack) {
  std::string previous;
  for (uint64_t day = 0; day * 86'400 * kTicksPerSecond <= kDateTimeTicksMax; ++day) {
    const DateTime time{day * 86'400 * kTicksPerSecond};
    const std::string text = FormatDateTime(time);
    ASSERT_EQ(ParseDateTime(text)->ticks, time.ticks);
    ASSERT_LT(previous, text);  // The text sorts like time.
    previous = text;
  }
  EXPECT_EQ(previous, "9999-12-31T00:00:00Z");
}

TEST(DateTimeTest, DigitsBehindTheSeventhAreCutOff) {
  const DateTime time = *ParseDateTime("2024-01-02T03:04:05.1234567Z");
  for (const char* text :
       {"2024-01-02T03:04:05.12345678Z", "2024-01-02T03:04:05.123456799Z",
        "2024-01-02T05:04:05.12345670000000000000000000+02:00", "2024-01-02T03:04:05.123456789"}) {
    EXPECT_EQ(ParseDateTime(text)->ticks, time.ticks) << text;
  }
  EXPECT_EQ(ParseDateTime("9999-12-31T23:59:59.999999999Z")->ticks, kDateTimeTicksMax);
  EXPECT_EQ(FractionDigits("2024-01-02T03:04:05Z"), 0u);
  EXPECT_EQ(FractionDigits("2024-01-02T03:04:05.123456789+02:00"), 9u);
}

TEST(DateTimeTest, MalformedAndOutOfRangeAreToldApart) {
  for (const char* text : {"",
                           "tomorrow",
                           "2024-02-30T00:00:00Z",
                           "2023-02-29T00:00:00Z",
                           "2024-01-02T24:00:00Z",
                           "2024-01-02T03:60:00Z",
                           "2024-01-02T03:04:60Z",
                           "2024-01-02T03:04:05.12345678x",
                           "2024-01-02T03:04:05.Z",
                           "2024-01-02T03:04:05ZZ",
                           "2024-01-02T03:04:05+2:00",
                           "2024-01-02T03:04:05+15:00",
                           "2024-01-02T03:04:05+02:60",
                           "2024-1-02T03:04:05Z",
                           "2024-01-02 03:04:05Z",
                           "0000-01-01T00:00:00Z",
                           "2024-13-01T00:00:00Z",
                           "2024-00-01T00:00:00Z",
                           "2024-01-00T00:00:00Z",
                           "+024-01-02T03:04:05Z",
                           "2024-01-02"}) {
    EXPECT_EQ(ViolationOf(ParseDateTime(text).status()), Violation::kInvalidInput) << text;
  }
  for (const char* text : {"1600-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "1601-01-01T00:00:00+00:01",
                           "9999-12-31T23:59:59-00:01"}) {
    EXPECT_EQ(ViolationOf(ParseDateTime(text).status()), Violation::kOutOfRangeInput) << text;
  }
  EXPECT_EQ(ParseDateTime("1600-12-31T23:59:59-00:01")->ticks, 59 * kTicksPerSecond);
  EXPECT_EQ(ParseDateTime("2024-01-02T03:04:05+02:00")->ticks, ParseDateTime("2024-01-02T01:04:05Z")->ticks);
}

}  // namespace
}  // namespace partita

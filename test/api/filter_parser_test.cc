#include "api/filter.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "api/names.h"
#include "test/support/random_filter.h"

namespace partita {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGeneric[] = "One of the request inputs is not valid.";
constexpr char kNotImplemented[] = "The requested operation is not implemented on the specified resource.";

std::string Reprinted(std::string_view text) {
  Result<Filter> filter = ParseFilter(text);
  return filter.ok() ? filter->ToString() : filter.status().ToString();
}

std::string Refusal(std::string_view text) {
  Result<Filter> filter = ParseFilter(text);
  EXPECT_FALSE(filter.ok()) << text;
  if (filter.code() == Code::kInvalidArgument) {
    EXPECT_EQ(ViolationOf(filter.status()), Violation::kInvalidInput) << text;
  } else {
    EXPECT_EQ(filter.code(), Code::kUnsupported) << text;
  }
  return filter.status().message();
}

TEST(FilterParserTest, PrecedenceIsComparisonThenNotThenAndThenOr) {
  EXPECT_EQ(Reprinted("a eq 1 or b eq 2 and c eq 3"), "a eq 1 or b eq 2 and c eq 3");
  EXPECT_EQ(Reprinted("a eq 1 or (b eq 2 and c eq 3)"), "a eq 1 or b eq 2 and c eq 3");
  EXPECT_EQ(Reprinted("(a eq 1 or b eq 2) and c eq 3"), "(a eq 1 or b eq 2) and c eq 3");
  EXPECT_EQ(Reprinted("not a eq 1 and b eq 2"), "not (a eq 1) and b eq 2");
  EXPECT_EQ(Reprinted("not(a or b)"), "not (a or b)");
  EXPECT_EQ(Reprinted("a and (b and c)"), "a and (b and c)");
  EXPECT_EQ(Reprinted("a and b and c"), "a and b and c");
}

TEST(FilterParserTest, EveryLiteralKeepsItsType) {
  EXPECT_EQ(Reprinted("a eq -7"), "a eq -7");
  EXPECT_EQ(Reprinted("a eq +7"), "a eq 7");
  EXPECT_EQ(Reprinted("a eq 2147483648"), "a eq 2147483648L");
  EXPECT_EQ(Reprinted("a eq 5l"), "a eq 5L");
  EXPECT_EQ(Reprinted("a eq -9223372036854775808L"), "a eq -9223372036854775808L");
  EXPECT_EQ(Reprinted("a eq 1.5E-3"), "a eq 0.0015");
  EXPECT_EQ(Reprinted("a eq 5d and b eq -7D"), "a eq 5.0 and b eq -7.0");
  EXPECT_EQ(Reprinted("a eq 1.5f and b eq 1E+20F"), "a eq 1.5 and b eq 1.0E+20");
  EXPECT_EQ(Reprinted("a eq 0.1M and b eq 5454161346626m"), "a eq 0.1 and b eq 5454161346626.0");
  EXPECT_EQ(Reprinted("a eq 'O''Brien'"), "a eq 'O''Brien'");
  EXPECT_EQ(Reprinted("a eq ''''"), "a eq ''''");
  EXPECT_EQ(Reprinted("a eq binary'01Ff'"), "a eq X'01ff'");
  EXPECT_EQ(Reprinted("a eq GUID'6F9619FF-8B86-D011-B42D-00C04FC964FF'"),
            "a eq guid'6f9619ff-8b86-d011-b42d-00c04fc964ff'");
  EXPECT_EQ(Reprinted("a eq datetime'2024-05-06'"), "a eq datetime'2024-05-06T00:00:00Z'");
  EXPECT_EQ(Reprinted("a eq datetime'2024-05-06T07:08:09.123456789Z'"),
            "a eq datetime'2024-05-06T07:08:09.1234567Z'");
  EXPECT_EQ(Reprinted("a eq false"), "a eq false");
}

TEST(FilterParserTest, AConstantOnTheLeftIsTurnedRound) {
  EXPECT_EQ(Reprinted("5 lt a"), "a gt 5");
  EXPECT_EQ(Reprinted("5 le a"), "a ge 5");
  EXPECT_EQ(Reprinted("5 gt a"), "a lt 5");
  EXPECT_EQ(Reprinted("5 ge a"), "a le 5");
  EXPECT_EQ(Reprinted("5 ne a"), "a ne 5");
  EXPECT_EQ(Reprinted("(5) eq (a)"), "a eq 5");
}

TEST(FilterParserTest, NamesMayLookLikeOperators) {
  EXPECT_EQ(Reprinted("android eq 1 and note ne 'x' and guid1 eq 2"),
            "android eq 1 and note ne 'x' and guid1 eq 2");
  EXPECT_EQ(Reprinted("sub eq 'x' and mod gt 1 and eq lt 2 and x eq 1"),
            "sub eq 'x' and mod gt 1 and eq lt 2 and x eq 1");
  EXPECT_EQ(Reprinted("length eq 5"), "length eq 5");
}

TEST(FilterParserTest, InfinitiesAndNanAreDoublesBesideANameAndElseNames) {
  EXPECT_EQ(Reprinted("a eq INF and b gt -INF and c ne NaN"), "a eq INF and b gt -INF and c ne NaN");
  EXPECT_EQ(Reprinted("INF gt a or -INF lt b or NaN ne (c)"), "a lt INF or b gt -INF or c ne NaN");
  EXPECT_EQ(Reprinted("a eq INFf or a eq -INFf or a eq NaNf"), "a eq INF or a eq -INF or a eq NaN");
  EXPECT_EQ(Reprinted("INF eq 5 and NaN and 1.5 lt INF"), "INF eq 5 and NaN and INF gt 1.5");
  EXPECT_EQ(Reprinted("INF eq INF and NaN eq -INF"), "INF eq INF and NaN eq -INF");
  EXPECT_EQ(Refusal("a eq inf"), kNotImplemented) << "another property";
  EXPECT_EQ(Refusal("a eq -inf"), "Syntax error at position 5 in 'a eq -inf'.");
  EXPECT_EQ(Refusal("a eq -NaN"), "Syntax error at position 5 in 'a eq -NaN'.");
}

TEST(FilterParserTest, ASyntaxErrorNamesWhereTheParserStopped) {
  EXPECT_EQ(Refusal("aaa bbb ccc"), "Syntax error at position 7 in 'aaa bbb ccc'.");
  EXPECT_EQ(Refusal("property1 eq 1'invalid'"), "Syntax error at position 23 in 'property1 eq 1'invalid''.");
  EXPECT_EQ(Refusal("i eq 5'x'"), "Syntax error at position 9 in 'i eq 5'x''.");
  EXPECT_EQ(Refusal("i eq"), "Syntax error at position 4 in 'i eq'.");
  EXPECT_EQ(Refusal("(i eq 5"), "Syntax error at position 7 in '(i eq 5'.");
  EXPECT_EQ(Refusal("i = 5"), "Syntax error at position 2 in 'i = 5'.");
  EXPECT_EQ(Refusal("i eq 5)"), "Syntax error at position 7 in 'i eq 5)'.");
  EXPECT_EQ(Refusal("i eq 5and j"), "Syntax error at position 9 in 'i eq 5and j'.");
  EXPECT_EQ(Refusal("i eq 5dm"), "Syntax error at position 8 in 'i eq 5dm'.");
  EXPECT_EQ(Refusal("i eq 1.5L"), "Syntax error at position 9 in 'i eq 1.5L'.");
  EXPECT_EQ(Refusal("a eq 1 eq 2"), "Syntax error at position 9 in 'a eq 1 eq 2'.");
  EXPECT_EQ(Refusal("a eq not b"), "Syntax error at position 8 in 'a eq not b'.");
  // Units of UTF-16, not bytes: the emoji counts two.
  EXPECT_EQ(Refusal("s eq '\xF0\x9F\x98\x80' x"),
            "Syntax error at position 11 in 's eq '\xF0\x9F\x98\x80' x'.");
}

TEST(FilterParserTest, MalformedLiteralsAreNamed) {
  EXPECT_EQ(Refusal("l eq 9223372036854775808L"),
            "Unrecognized 'Edm.Int64' literal '9223372036854775808L' at '5' in 'l eq 9223372036854775808L'.");
  EXPECT_THAT(Refusal("l eq 99999999999999999999"), StartsWith("Unrecognized 'Edm.Int32' literal"));
  EXPECT_THAT(Refusal("d eq 1e999"), StartsWith("Unrecognized 'Edm.Double' literal"));
  EXPECT_THAT(Refusal("d eq 1e999f"), StartsWith("Unrecognized 'Edm.Double' literal '1e999f'"));
  EXPECT_THAT(Refusal("t eq datetime'yesterday'"), StartsWith("Unrecognized 'Edm.DateTime' literal"));
  EXPECT_THAT(Refusal("b eq X'010'"), StartsWith("Unrecognized 'Edm.Binary' literal"));
  EXPECT_THAT(Refusal("g eq guid'zzz'"), StartsWith("Unrecognized 'Edm.Guid' literal"));
}

TEST(FilterParserTest, NullIsRefusedByItsOperator) {
  EXPECT_EQ(Refusal("p eq null"), kGeneric);
  EXPECT_EQ(Refusal("null ne p"), kGeneric);
  EXPECT_EQ(Refusal("null"), kGeneric);
  EXPECT_EQ(Refusal("p lt null"),
            "The operator 'LessThan' is not supported for the 'null' literal; only equality checks are "
            "supported.");
  EXPECT_THAT(Refusal("p ge null"), HasSubstr("'GreaterThanOrEqual'"));
}

TEST(FilterParserTest, WhatIsParsedButNotRunIsNotImplemented) {
  for (const char* text : {"a eq b", "1 eq 2", "startswith(s,'he')", "substringof('ell', s) and a eq 1",
                           "length(s) eq 5", "s eq tolower('X')", "i add 1 eq 6", "i mul (2 sub 1) lt 3",
                           "(a eq 1) eq true", "not endswith(trim(s),'x')"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(ParseFilter(text).code(), Code::kUnsupported);
    EXPECT_EQ(Refusal(text), kNotImplemented);
  }
  EXPECT_EQ(ParseFilter("contains(s,'x')").code(), Code::kInvalidArgument);
  EXPECT_EQ(ParseFilter("i in (5,6)").code(), Code::kInvalidArgument);
}

TEST(FilterParserTest, ASyntaxErrorFurtherOnWins) {
  EXPECT_THAT(Refusal("startswith(s,'he') and"), StartsWith("Syntax error"));
  EXPECT_THAT(Refusal("p eq null and )"), StartsWith("Syntax error"));
  EXPECT_THAT(Refusal("startswith(s,"), StartsWith("Syntax error"));
  EXPECT_EQ(Refusal("a eq b and p eq null"), kGeneric);
}

TEST(FilterParserTest, AConstantThatIsNoBooleanIsNoCondition) {
  for (const char* text : {"5", "'abc'", "a eq 1 and 5", "not 'x'", "5 or a eq 1"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(Refusal(text), kGeneric);
  }
}

TEST(FilterParserTest, DepthIsBoundedAndLengthOfChainsIsNot) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '(') + "a eq 1" + std::string(depth, ')');
  };
  EXPECT_TRUE(ParseFilter(nested(500)).ok());
  EXPECT_TRUE(ParseFilter(nested(kFilterDepthMax)).ok());
  EXPECT_EQ(Refusal(nested(kFilterDepthMax + 1)), kGeneric);
  std::string nots;
  for (size_t i = 0; i <= kFilterDepthMax; ++i) nots += "not ";
  EXPECT_EQ(Refusal(nots + "a"), kGeneric);
  std::string chain = "a";
  while (chain.size() + 5 <= kFilterTextMax) chain += " or a";
  Result<Filter> filter = ParseFilter(chain);
  ASSERT_TRUE(filter.ok());
  EXPECT_EQ(filter->ToString(), chain);
  EXPECT_EQ(Refusal(chain + " or a eq 'long'"), kGeneric);
}

TEST(FilterParserTest, TextThatIsNoUtf8IsRefused) { EXPECT_EQ(Refusal("a eq '\xFF'"), kGeneric); }

TEST(FilterParserTest, InOurWordsEveryRefusalSaysWhyAndWhere) {
  const auto ours = [](std::string_view text) {
    const Result<Filter> filter = ParseFilter(text, FilterWords::kOurs);
    EXPECT_EQ(ViolationOf(filter.status()), Violation::kInvalidInput) << text;
    return filter.status().message();
  };
  for (const char* text : {"D eq null", "D lt null"}) {
    EXPECT_THAT(ours(text),
                AllOf(HasSubstr("'null'"), EndsWith(" at position 5 in '" + std::string(text) + "'.")));
  }
  EXPECT_THAT(ours("a eq 'x' or null ne p"), HasSubstr(" at position 12 in "));
  EXPECT_THAT(ours("a eq '\xC3\xA4' and 'x'"), EndsWith(" at position 13 in 'a eq '\xC3\xA4' and 'x''."));
  EXPECT_THAT(ours("a eq 1 and not null"), HasSubstr(" at position 15 in "));
  EXPECT_THAT(ours("a eq 1 and contains(s,'x')"),
              StartsWith("Unknown function 'contains' at position 11 in "));
  EXPECT_THAT(ours(std::string(kFilterDepthMax + 1, '(')),
              HasSubstr("too deep, beyond 1000 at position 1000 in "));
  EXPECT_THAT(ours("a eq '\xFF'"), HasSubstr("UTF-8 at byte 6"));
  EXPECT_EQ(ours(std::string(kFilterTextMax + 1, ' ')), "It has 65537 bytes; allowed are 65536.");
  EXPECT_EQ(ours("a eq"), "Syntax error at position 4 in 'a eq'.") << "as the service says it";
}

TEST(FilterParserTest, WhatIsPrintedParsesToTheSameTree) {
  FilterDice dice(20'240'501);
  for (int i = 0; i < 5'000; ++i) {
    const std::string text = dice.RandomFilter(1 + dice.Below(12), 30).ToString();
    Result<Filter> parsed = ParseFilter(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status().ToString();
    ASSERT_EQ(parsed->ToString(), text);
  }
}

}  // namespace
}  // namespace partita

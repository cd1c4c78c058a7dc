#include "api/query_plan.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "api/entity_codec.h"
#include "api/query_token.h"
#include "engine/base/user_key.h"
#include "test/api/vector_file.h"
#include "test/support/filter_reference.h"
#include "test/support/random_filter.h"

namespace partita {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Explanation Explained(std::string_view filter, const KeyRange& range = {}) {
  Result<Filter> parsed = ParseFilter(filter);
  EXPECT_TRUE(parsed.ok()) << filter;
  return Explain(PlanQuery(*parsed, range));
}

std::string Kind(std::string_view filter) { return Explained(filter).kind; }

bool LiesIn(const QueryPlan& plan, const Entity& entity) {
  const std::string key = EncodeEntityKey(TableId(1), entity).substr(kTableIdSize);
  for (const PlanInterval& interval : plan.intervals) {
    if (key >= interval.lower && (interval.upper.empty() || key < interval.upper)) return true;
  }
  return false;
}

TEST(QueryPlanTest, EveryShapeOfTheVectorsIsRecognised) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("filters.json");
  for (const JsonValue& vector : vectors["plans"].items) {
    SCOPED_TRACE(vector["filter"].text);
    ++cases;
    const Explanation explanation = Explained(vector["filter"].text);
    if (vector["plan"].text.starts_with("partition on the real service")) {
      EXPECT_EQ(explanation.kind, "points");
    } else if (vector["plan"].text.starts_with("table-scan is allowed")) {
      EXPECT_EQ(explanation.kind, "partition");
    } else {
      EXPECT_THAT(vector["plan"].text, StartsWith(explanation.kind));
    }
    if (vector.Has("residual")) EXPECT_EQ(explanation.residual, vector["residual"].text);
  }
  EXPECT_EQ(cases, 12);
}

TEST(QueryPlanTest, BoundsAreExplainedAsConditions) {
  EXPECT_THAT(Explained("PartitionKey gt 'a' and PartitionKey gt 'c' and PartitionKey le 'd'").bounds,
              ElementsAre("PartitionKey gt 'c' and PartitionKey le 'd'"));
  EXPECT_THAT(Explained("PartitionKey eq 'a' and RowKey gt 'b' and RowKey le 'c'").bounds,
              ElementsAre("PartitionKey eq 'a' and RowKey gt 'b' and RowKey le 'c'"));
  EXPECT_THAT(Explained("PartitionKey eq 'a' and (RowKey eq 'c' or RowKey eq 'b')").bounds,
              ElementsAre("PartitionKey eq 'a' and RowKey eq 'b'", "PartitionKey eq 'a' and RowKey eq 'c'"));
  EXPECT_THAT(Explained("PartitionKey ge 'a' and RowKey ge 'm'").bounds,
              ElementsAre("(PartitionKey, RowKey) ge ('a', 'm')"));
  for (const char* filter : {
           "PartitionKey eq 'o''neil'",
           "PartitionKey eq 'a'' or RowKey eq ''b' and RowKey eq '''quoted'''",
           "PartitionKey eq 'p' and RowKey gt '''b' and RowKey le 'c'''",
           "PartitionKey gt '''a' and PartitionKey le 'd''e'",
       }) {
    EXPECT_THAT(Explained(filter).bounds, ElementsAre(filter));
  }
  EXPECT_THAT(Explained("n eq 1").bounds, ElementsAre("all"));
  EXPECT_THAT(Explained("").bounds, ElementsAre("all"));
}

TEST(QueryPlanTest, OrOverKeysBecomesPointsAndRanges) {
  EXPECT_EQ(Kind("PartitionKey eq 'a' and (RowKey lt 'b' or RowKey gt 'x')"), "row-ranges");
  EXPECT_EQ(Kind("PartitionKey eq 'a' and (RowKey lt 'b' or RowKey ge 'b')"), "partition");
  EXPECT_EQ(Kind("PartitionKey eq 'a' or PartitionKey eq 'b'"), "ranges");
  EXPECT_EQ(Kind("(PartitionKey eq 'a' and RowKey eq 'x') or (PartitionKey eq 'b' and RowKey eq 'y')"),
            "points");
  // How clients go on by themselves behind a key they know.
  EXPECT_EQ(Kind("PartitionKey gt 'a' or (PartitionKey eq 'a' and RowKey gt 'b')"), "partition-range");
  EXPECT_EQ(Explained("PartitionKey eq 'a' and RowKey eq 'b' and (n eq 1 or RowKey eq 'b')").residual,
            "n eq 1 or RowKey eq 'b'");
}

TEST(QueryPlanTest, WhatProvesNothingNarrowsNothing) {
  EXPECT_EQ(Kind("PartitionKey lt 5"), "table-scan");
  EXPECT_EQ(Kind("PartitionKey ne 'a'"), "table-scan");
  EXPECT_EQ(Kind("not (PartitionKey eq 'a' and n eq 1)"), "table-scan");
  EXPECT_EQ(Kind("PartitionKey eq 'a' or true"), "table-scan");
  EXPECT_EQ(Kind("PartitionKey ge ''"), "table-scan");
  EXPECT_EQ(Kind("partitionkey eq 'a'"), "table-scan");
}

TEST(QueryPlanTest, ContradictionsNeedNoRead) {
  for (const char* filter :
       {"false", "PartitionKey eq 5", "PartitionKey eq 'a' and PartitionKey eq 'b'", "PartitionKey lt ''",
        "PartitionKey eq 'a' and RowKey lt ''", "PartitionKey gt 'b' and PartitionKey le 'b'", "RowKey",
        "n eq 1 and not (PartitionKey ge '')", "PartitionKey eq 'a' and (RowKey gt 'b' and RowKey lt 'a')"}) {
    EXPECT_EQ(Kind(filter), "empty") << filter;
  }
}

TEST(QueryPlanTest, AKeyRangeCutsThePlan) {
  const KeyRange partition{.start = KeyRange::End{"p", std::nullopt},
                           .end = KeyRange::End{"p", std::nullopt}};
  EXPECT_EQ(Explained("", partition).kind, "partition");
  EXPECT_EQ(Explained("PartitionKey eq 'q'", partition).kind, "empty");
  EXPECT_EQ(Explained("PartitionKey ge 'a'", partition).kind, "partition");
  const KeyRange rows{.start = KeyRange::End{"p", "b"}, .end = KeyRange::End{"p", "d"}};
  EXPECT_THAT(Explained("", rows).bounds,
              ElementsAre("PartitionKey eq 'p' and RowKey ge 'b' and RowKey le 'd'"));
  EXPECT_TRUE(rows.Contains("p", "b"));
  EXPECT_TRUE(rows.Contains("p", "d"));
  EXPECT_FALSE(rows.Contains("p", "a"));
  EXPECT_FALSE(rows.Contains("p", "da"));
  EXPECT_FALSE(rows.Contains("q", "c"));
}

TEST(QueryPlanTest, ManyKeysStayWithinBounds) {
  std::string filter = "PartitionKey eq 'a' and (RowKey eq '0'";
  for (int i = 1; i < 1000; ++i) filter += " or RowKey eq '" + std::to_string(i) + "'";
  const QueryPlan points = PlanQuery(*ParseFilter(filter + ")"));
  EXPECT_EQ(points.kind, PlanKind::kPoints);
  EXPECT_EQ(points.intervals.size(), 1000u);
  EXPECT_TRUE(points.residual.empty());
  // More pairs than the planner looks at: wider intervals, and everything stays in the residual.
  Filter wide;
  for (const char* name : {"PartitionKey", "RowKey"}) {
    Filter keys = Filter::Comparison(name, ComparisonOp::kEqual, "0");
    for (int i = 1; i < 700; ++i) {
      keys = Filter::Or(std::move(keys), Filter::Comparison(name, ComparisonOp::kEqual, std::to_string(i)));
    }
    wide = Filter::And(std::move(wide), std::move(keys));
  }
  EXPECT_EQ(PlanQuery(wide).residual.ToString(), wide.ToString());
}

TEST(QueryPlanTest, AHostileFilterIsPlannedWithBoundedWork) {
  // 64 times 32 boxes, cut again by each of a thousand conditions: 2 million pairs without a bound.
  Filter filter;
  for (const auto& [name, count] : {std::pair("PartitionKey", 64), std::pair("RowKey", 32)}) {
    Filter keys = Filter::Comparison(name, ComparisonOp::kEqual, "0");
    for (int i = 1; i < count; ++i) {
      keys = Filter::Or(std::move(keys), Filter::Comparison(name, ComparisonOp::kEqual, std::to_string(i)));
    }
    filter = Filter::And(std::move(filter), std::move(keys));
  }
  for (int i = 0; i < 1000; ++i) {
    filter = Filter::And(std::move(filter), Filter::Comparison("RowKey", ComparisonOp::kLess, "a"));
  }
  const QueryPlan plan = PlanQuery(filter);
  EXPECT_FALSE(plan.residual.empty());  // Given up on being exact, and right all the same.
  const Entity entity("5", "7");
  EXPECT_TRUE(LiesIn(plan, entity));
}

// ---- Against the oracle.

void ExpectWellFormed(const QueryPlan& plan) {
  for (size_t i = 0; i < plan.intervals.size(); ++i) {
    const PlanInterval& interval = plan.intervals[i];
    if (!interval.upper.empty()) EXPECT_LT(interval.lower, interval.upper);
    if (i > 0) EXPECT_LT(plan.intervals[i - 1].upper, interval.lower);
    if (i + 1 < plan.intervals.size()) EXPECT_FALSE(interval.upper.empty());
  }
  EXPECT_EQ(plan.kind == PlanKind::kNothing, plan.intervals.empty());
}

// The spec's formula, on UTF-16.
bool ReferenceContains(const KeyRange& range, const Entity& entity) {
  const std::u16string partition = ReferenceUtf16(entity.partition_key());
  const std::u16string row = ReferenceUtf16(entity.row_key());
  if (range.start) {
    const std::u16string bound = ReferenceUtf16(range.start->partition_key);
    if (partition < bound) return false;
    if (partition == bound && row < ReferenceUtf16(range.start->row_key.value_or(""))) return false;
  }
  if (range.end) {
    const std::u16string bound = ReferenceUtf16(range.end->partition_key);
    if (partition > bound) return false;
    if (partition == bound && range.end->row_key && row > ReferenceUtf16(*range.end->row_key)) return false;
  }
  return true;
}

KeyRange RandomRange(FilterDice* dice) {
  KeyRange range;
  const auto end = [dice] {
    KeyRange::End end{dice->Key(), std::nullopt};
    if (dice->Chance(50)) end.row_key = dice->Key();
    return end;
  };
  if (dice->Chance(40)) range.start = end();
  if (dice->Chance(40)) range.end = end();
  return range;
}

TEST(QueryPlanTest, PlanAndResidualSelectExactlyWhatTheFilterAndTheRangeDo) {
  FilterDice dice(3);
  size_t narrowed = 0;
  for (int round = 0; round < 4'000; ++round) {
    const Filter filter = dice.RandomFilter(1 + dice.Below(7), 80);
    const KeyRange range = RandomRange(&dice);
    const QueryPlan plan = PlanQuery(filter, range);
    ExpectWellFormed(plan);
    narrowed += plan.kind != PlanKind::kTableScan;
    for (int i = 0; i < 40; ++i) {
      const Entity entity = dice.RandomEntity();
      const bool expected = ReferenceMatches(filter, entity) && ReferenceContains(range, entity);
      const bool selected = LiesIn(plan, entity) && ReferenceMatches(plan.residual, entity);
      ASSERT_EQ(selected, expected) << filter.ToString() << " at (" << entity.partition_key() << ", "
                                    << entity.row_key() << "), plan " << PlanKindName(plan.kind);
      ASSERT_EQ(range.Contains(entity.partition_key(), entity.row_key()), ReferenceContains(range, entity));
    }
  }
  EXPECT_GT(narrowed, 1'000u);
}

TEST(QueryPlanTest, ACutLeavesWhatLiesAtThePositionOrBehindIt) {
  FilterDice dice(4);
  for (int round = 0; round < 2'000; ++round) {
    QueryPlan plan = PlanQuery(dice.RandomFilter(3, 90));
    const QueryPlan whole = plan;
    const QueryPosition position{dice.Key(), dice.Key()};
    CutBefore(&plan, position);
    for (int i = 0; i < 20; ++i) {
      const Entity entity = dice.RandomEntity();
      const KeyRange behind{.start = KeyRange::End{position.partition_key, position.row_key}};
      ASSERT_EQ(LiesIn(plan, entity), LiesIn(whole, entity) && ReferenceContains(behind, entity));
    }
  }
}

// ---- Tokens.

TEST(QueryTokenTest, TokensLookAsTheServiceWritesThem) {
  EXPECT_EQ(EncodeKeyToken("p001"), "1!8!cDAwMQ--");
  EXPECT_EQ(EncodeKeyToken("cust-17"), "1!12!Y3VzdC0xNw--");
  EXPECT_EQ(EncodeKeyToken("0009"), "1!8!MDAwOQ--");
  EXPECT_EQ(EncodeKeyToken(""), "1!0!");
}

TEST(QueryTokenTest, EveryKeyComesBack) {
  for (std::string key :
       {std::string(), std::string("a"), std::string("~~~\?\?\?>>>"), std::string("\xC3\xBE>"),
        std::string("\xF0\x9F\x98\x80"), std::string("r\0", 2), std::string("\xEE\xBE\xBE")}) {
    const std::string token = EncodeKeyToken(key);
    EXPECT_EQ(token.find_first_of("+/=%&? "), token.npos) << token;
    Result<std::string> decoded = DecodeKeyToken(token);
    ASSERT_TRUE(decoded.ok()) << token;
    EXPECT_EQ(*decoded, key);
  }
}

TEST(QueryTokenTest, TokensEscapedOnceTooOftenAreRead) {
  EXPECT_EQ(*DecodeKeyToken("1%218%21cDAwMQ--"), "p001");
  EXPECT_EQ(*DecodeKeyToken("1%210%21"), "");
  EXPECT_EQ(*DecodeKeyToken(""), "");
}

TEST(QueryTokenTest, OtherTextIsRefused) {
  for (const char* text :
       {"x", "1!", "1!8!", "1!7!cDAwMQ--", "2!8!cDAwMQ--", "1!8!cDAwMQ==", "1!-8!cDAwMQ--", "1%2",
        "1%zz8%21cDAwMQ--", "1!4!/w--", "1!4!_w--", "1!4!c***", "1!99999999999999999999!a"}) {
    EXPECT_EQ(DecodeKeyToken(text).code(), Code::kInvalidArgument) << text;
  }
  // The key "p" in other words: blanks, bits that are left over, another length, another padding.
  ASSERT_EQ(*DecodeKeyToken("1!4!cA--"), "p");
  for (const char* text :
       {"1!5!cA --", "1!5!c A--", "1!4!cB--", "1!04!cA--", "1!+4!cA--", "1!4!cA=-", "1!4!!cA--"}) {
    EXPECT_EQ(DecodeKeyToken(text).code(), Code::kInvalidArgument) << text;
  }
}

TEST(QueryTokenTest, PositionsComeFromBothTokens) {
  EXPECT_FALSE(DecodePosition(std::nullopt, std::nullopt)->has_value());
  EXPECT_FALSE(DecodePosition("", "")->has_value());
  EXPECT_EQ(*DecodePosition("1!8!cDAwMQ--", "1!8!MDAwOQ--"), (QueryPosition{"p001", "0009"}));
  EXPECT_EQ(*DecodePosition("1!8!cDAwMQ--", std::nullopt), (QueryPosition{"p001", ""}));
  EXPECT_EQ(*DecodePosition("1!8!cDAwMQ--", ""), (QueryPosition{"p001", ""}));
  EXPECT_EQ(*DecodePosition("1!0!", "1!0!"), (QueryPosition{"", ""}));
  EXPECT_EQ(DecodePosition(std::nullopt, "1!8!MDAwOQ--").code(), Code::kInvalidArgument);
  EXPECT_EQ(DecodePosition("1!8!cDAwMQ--", "nonsense").code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace partita

#include "api/aggregator.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "api/partita.h"
#include "test/support/random_filter.h"
#include "test/support/scratch_directory.h"
#include "test/support/small_database.h"

namespace partita {
namespace {

using ::testing::Eq;
using ::testing::Optional;

// Aggregates over one property V of entities that have these values, taken in `parts` shares.
AggregateAnswer Over(const std::vector<PropertyValue>& values, const std::vector<AggregateOf>& wanted,
                     size_t parts = 1) {
  std::vector<Aggregator> shares(parts, Aggregator(wanted));
  for (size_t i = 0; i < values.size(); ++i) {
    const std::vector<Property> properties = {{"A", "before"}, {"V", values[i]}};
    shares[i % parts].Add("p", "r", Version(1), EncodeEntityRecord(properties));
  }
  Aggregator total(wanted);
  for (const Aggregator& share : shares) total.Merge(share);
  return total.Answer();
}
AggregateValue One(AggregateKind kind, const std::vector<PropertyValue>& values) {
  return Over(values, {{kind, "V"}}).values[0];
}
AggregateValue SumOf(const std::vector<PropertyValue>& values) { return One(AggregateKind::kSum, values); }
AggregateValue LeastOf(const std::vector<PropertyValue>& values) { return One(AggregateKind::kMin, values); }
AggregateValue GreatestOf(const std::vector<PropertyValue>& values) {
  return One(AggregateKind::kMax, values);
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(AggregatorTest, IntegersSumExactlyToAnInt64) {
  const AggregateValue sum = SumOf({int32_t{-5}, int64_t{1} << 60, int32_t{7}});
  EXPECT_THAT(sum.value, Optional(PropertyValue((int64_t{1} << 60) + 2)));
  EXPECT_EQ(sum.taken, 3u);
  EXPECT_TRUE(sum.exact);
}

TEST(AggregatorTest, ASumMayPassTheInt64OnItsWay) {
  EXPECT_THAT(SumOf({kMost, kMost, -kMost}).value, Optional(PropertyValue(kMost)));
}

TEST(AggregatorTest, ASumBeyondTheInt64IsTheNearestDoubleAndSaysSo) {
  const AggregateValue sum = SumOf({kMost, kMost});
  EXPECT_THAT(sum.value, Optional(PropertyValue(18446744073709551614.0)));
  EXPECT_FALSE(sum.exact);
}

TEST(AggregatorTest, OneDoubleMakesTheSumADouble) {
  EXPECT_THAT(SumOf({1, 2.5, int64_t{3}}).value, Optional(PropertyValue(6.5)));
}

TEST(AggregatorTest, SmallDoublesAreNotLostBesideLargeOnes) {
  std::vector<PropertyValue> values = {1e16};
  for (int i = 0; i < 1000; ++i) values.push_back(PropertyValue(1.0));
  values.push_back(-1e16);
  EXPECT_THAT(SumOf(values).value, Optional(PropertyValue(1000.0)));
  EXPECT_THAT(Over(values, {{AggregateKind::kSum, "V"}}, 7).values[0].value, Optional(PropertyValue(1000.0)));
}

TEST(AggregatorTest, InfinitiesSumAsIeeeSays) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(SumOf({infinity, 1.0}).value, Optional(PropertyValue(infinity)));
  EXPECT_TRUE(std::isnan(*SumOf({infinity, -infinity}).value->if_double()));
}

TEST(AggregatorTest, WhatIsNoNumberIsPassedOverInASum) {
  const AggregateValue sum = SumOf({"text", 4, true});
  EXPECT_THAT(sum.value, Optional(PropertyValue(int64_t{4})));
  EXPECT_EQ(sum.taken, 1u);
  EXPECT_EQ(sum.passed_over, 2u);
  EXPECT_FALSE(SumOf({"text"}).value.has_value());
}

TEST(AggregatorTest, ExtremesOfEachType) {
  Guid low, high;
  high.bytes[0] = 1;
  EXPECT_THAT(LeastOf({5, -3, 4}).value, Optional(PropertyValue(-3)));
  EXPECT_THAT(GreatestOf({5, -3, 4}).value, Optional(PropertyValue(5)));
  EXPECT_THAT(LeastOf({2.5, -0.5}).value, Optional(PropertyValue(-0.5)));
  EXPECT_THAT(GreatestOf({false, true}).value, Optional(PropertyValue(true)));
  EXPECT_THAT(LeastOf({DateTime{9}, DateTime{3}}).value, Optional(PropertyValue(DateTime{3})));
  EXPECT_THAT(GreatestOf({low, high}).value, Optional(PropertyValue(high)));
  EXPECT_THAT(LeastOf({Binary{"b"}, Binary{"ab"}}).value, Optional(PropertyValue(Binary{"ab"})));
}

TEST(AggregatorTest, TextsOrderByUtf16AndBeyondTheirHeads) {
  EXPECT_THAT(GreatestOf({"abcdefghi", "abcdefghj", "abcdefgh"}).value, Optional(PropertyValue("abcdefghj")));
  // U+FF5E is above the surrogates that U+1F600 is made of.
  EXPECT_THAT(GreatestOf({"\xEF\xBD\x9E", "\xF0\x9F\x98\x80"}).value,
              Optional(PropertyValue("\xEF\xBD\x9E")));
}

TEST(AggregatorTest, NumbersOfDifferentTypesCompareByTheirExactValue) {
  // As Doubles these two would be equal.
  const int64_t odd = 9'007'199'254'740'993;
  EXPECT_THAT(GreatestOf({odd, 9007199254740992.0}).value, Optional(PropertyValue(odd)));
  EXPECT_THAT(LeastOf({odd, 9007199254740992.0}).value, Optional(PropertyValue(9007199254740992.0)));
  EXPECT_THAT(GreatestOf({kMost, 9.3e18}).value, Optional(PropertyValue(9.3e18)));
  EXPECT_THAT(LeastOf({int64_t{-kMost - 1}, -1e300}).value, Optional(PropertyValue(-1e300)));
  EXPECT_THAT(LeastOf({-2, -2.5}).value, Optional(PropertyValue(-2.5)));
  EXPECT_THAT(GreatestOf({2, 2.5}).value, Optional(PropertyValue(2.5)));
}

TEST(AggregatorTest, OfEqualNumbersTheNarrowerTypeIsGivenInAnyOrder) {
  std::vector<PropertyValue> values = {5.0, int64_t{5}, 5};
  for (int i = 0; i < 3; ++i) {
    std::rotate(values.begin(), values.begin() + 1, values.end());
    EXPECT_THAT(LeastOf(values).value, Optional(PropertyValue(5)));
    EXPECT_THAT(GreatestOf(values).value, Optional(PropertyValue(5)));
  }
}

TEST(AggregatorTest, KindsHaveAnOrderOfTheirOwn) {
  const std::vector<PropertyValue> kinds = {Binary{""}, "", Guid{}, DateTime{0}, 1e300, 5, true};
  EXPECT_THAT(LeastOf(kinds).value, Optional(PropertyValue(true)));
  EXPECT_THAT(GreatestOf(kinds).value, Optional(PropertyValue(Binary{""})));
}

TEST(AggregatorTest, NanIsPassedOverByExtremes) {
  const AggregateValue least = LeastOf({std::nan(""), 3.0, -std::nan("")});
  EXPECT_THAT(least.value, Optional(PropertyValue(3.0)));
  EXPECT_EQ(least.passed_over, 2u);
  EXPECT_FALSE(GreatestOf({std::nan("")}).value.has_value());
}

TEST(AggregatorTest, CountsEntitiesAndThoseThatHaveAProperty) {
  const std::vector<AggregateOf> wanted = {{AggregateKind::kCount, ""},
                                           {AggregateKind::kCount, "V"},
                                           {AggregateKind::kCount, "none"},
                                           {AggregateKind::kMin, "none"}};
  const AggregateAnswer answer = Over({1, "x"}, wanted, 2);
  EXPECT_EQ(answer.count, 2u);
  EXPECT_THAT(answer.values[0].value, Optional(PropertyValue(int64_t{2})));
  EXPECT_THAT(answer.values[1].value, Optional(PropertyValue(int64_t{2})));
  EXPECT_THAT(answer.values[2].value, Optional(PropertyValue(int64_t{0})));
  EXPECT_FALSE(answer.values[3].value.has_value());
}

TEST(AggregatorTest, SharesPutTogetherGiveWhatOnePassGives) {
  FilterDice dice(7);
  const std::vector<AggregateOf> wanted = {
      {AggregateKind::kMin, "V"}, {AggregateKind::kMax, "V"}, {AggregateKind::kCount, "V"}};
  for (int round = 0; round < 200; ++round) {
    std::vector<PropertyValue> values;
    for (size_t i = 0; i < 20; ++i) values.push_back(dice.Value());
    const AggregateAnswer whole = Over(values, wanted);
    const AggregateAnswer parts = Over(values, wanted, 5);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(whole.values[i].value, parts.values[i].value);
  }
}

// ---- Of a store.

class AggregateTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenSmallDatabase(directory_.path() + "/store", 3);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    database_ = std::move(opened).value();
    TableOptions cut;
    cut.split_partition_keys = {"b", "c", "d", "e"};
    table_ = database_->CreateTable("Things", cut).value();
    for (const char* partition : {"a", "b", "c", "d", "e"}) {
      std::vector<Write> writes;
      for (int i = 0; i < 400; ++i) {
        writes.push_back(
            {.action = WriteAction::kInsert, .entity = Entity(partition, "r" + std::to_string(i))});
        writes.back().entity.Set("N", i).Set("Half", i / 2.0);
      }
      for (const WriteResult& written : table_->WriteMany(writes)) ASSERT_TRUE(written.ok());
      if (partition[0] == 'c') ASSERT_TRUE(database_->Flush().ok());
    }
  }
  void TearDown() override { EXPECT_TRUE(database_->Close().ok()); }

  ScratchDirectory directory_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
};

TEST_F(AggregateTest, SeveralValuesInOnePassOverAllShards) {
  const AggregateAnswer answer = table_
                                     ->Aggregate({{AggregateKind::kCount, ""},
                                                  {AggregateKind::kSum, "N"},
                                                  {AggregateKind::kSum, "Half"},
                                                  {AggregateKind::kMin, "PartitionKey"},
                                                  {AggregateKind::kMax, "RowKey"},
                                                  {AggregateKind::kMax, "Timestamp"}},
                                                 {.filter = "N ge 100"})
                                     .value();
  EXPECT_EQ(answer.count, 1500u);
  EXPECT_THAT(answer.values[1].value, Optional(PropertyValue(int64_t{5 * (100 + 399) * 150})));
  EXPECT_THAT(answer.values[2].value, Optional(PropertyValue(5 * (100 + 399) * 75.0)));
  EXPECT_THAT(answer.values[3].value, Optional(PropertyValue("a")));
  EXPECT_THAT(answer.values[4].value, Optional(PropertyValue("r399")));
  EXPECT_GT(answer.values[5].value->if_date_time()->ticks, 0u);
  EXPECT_EQ(answer.cost.returned, 1500u);
  EXPECT_GE(answer.cost.scanned, 1500u);
}

TEST_F(AggregateTest, KeyConditionsCutWhatIsScanned) {
  const AggregateAnswer answer =
      table_->Aggregate({{AggregateKind::kMax, "N"}}, {.filter = "PartitionKey ge 'd'"}).value();
  EXPECT_EQ(answer.count, 800u);
  EXPECT_EQ(answer.cost.scanned, 800u);
  const AggregateAnswer point =
      table_->Aggregate({{AggregateKind::kMax, "N"}}, {.filter = "PartitionKey eq 'd' and RowKey eq 'r7'"})
          .value();
  EXPECT_THAT(point.values[0].value, Optional(PropertyValue(7)));
  EXPECT_EQ(point.cost.scanned, 1u);
}

TEST_F(AggregateTest, CountsByBoundsAndWithoutAnything) {
  EXPECT_EQ(table_->Aggregate({})->count, 2000u);
  EXPECT_EQ(*table_->Count({}), 2000u);
  ScanOptions bounds;
  bounds.partition_lower = "b";
  bounds.partition_upper = "e";
  EXPECT_EQ(*table_->Count(bounds), 1200u);
}

TEST_F(AggregateTest, ProgressTellsWhatWasDone) {
  QueryCost last;
  ASSERT_TRUE(table_
                  ->Aggregate({}, {},
                              [&last](const QueryCost& so_far) {
                                EXPECT_GE(so_far.scanned, last.scanned);
                                last = so_far;
                              })
                  .ok());
  EXPECT_GE(last.scanned, 2000u);
}

TEST_F(AggregateTest, ANamelessMinimumIsRefused) {
  EXPECT_EQ(table_->Aggregate({{AggregateKind::kMin, ""}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(table_->Aggregate({}, {.filter = "N eq"}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace partita

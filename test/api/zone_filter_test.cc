#include "api/zone_filter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/entity.h"
#include "test/support/filter_reference.h"
#include "test/support/random_filter.h"

namespace partita {
namespace {

// What the zone maps of a file say of these entities to who asks for these properties.
struct Zones {
  Zones(std::span<const std::string> names, const std::vector<Entity>& entities) : properties(names.size()) {
    for (size_t i = 0; i < names.size(); ++i) {
      PropertyZone& zone = properties[i];
      zone.known = true;
      for (const Entity& entity : entities) AddTo(&zone, entity.Get(names[i]));
    }
    const auto [oldest, newest] = std::minmax_element(
        entities.begin(), entities.end(),
        [](const Entity& a, const Entity& b) { return a.timestamp_ticks() < b.timestamp_ticks(); });
    whole = {Version(oldest->timestamp_ticks()), Version(newest->timestamp_ticks()), properties};
  }
  static void AddTo(PropertyZone* zone, const PropertyValue* value) {
    if (value == nullptr) {
      zone->absent = true;
      return;
    }
    const uint64_t code = OrderedCode(*value);
    zone->least = zone->types == 0 ? code : std::min(zone->least, code);
    zone->greatest = zone->types == 0 ? code : std::max(zone->greatest, code);
    zone->types = static_cast<uint16_t>(zone->types | 1u << static_cast<unsigned>(value->type()));
  }

  std::vector<PropertyZone> properties;
  BlockZones whole;
};

bool MayMatch(const Filter& filter, const std::vector<Entity>& entities) {
  const ZoneFilter zone_filter(filter);
  const Zones zones(zone_filter.properties(), entities);
  return zone_filter.MayMatch(zones.whole);
}

bool MayMatch(std::string_view filter, const std::vector<Entity>& entities) {
  Result<Filter> parsed = ParseFilter(filter);
  EXPECT_TRUE(parsed.ok()) << filter;
  return parsed.ok() && MayMatch(*parsed, entities);
}

Entity With(std::string name, PropertyValue value) {
  Entity entity("p", "r");
  entity.Set(std::move(name), std::move(value));
  entity.set_timestamp_ticks(1000);
  return entity;
}

TEST(ZoneFilterTest, WhatItRulesOutHasNoMatch) {
  FilterDice dice(20261120);
  int ruled_out = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Filter filter = dice.RandomFilter(1 + dice.Below(6), /*key_percent=*/10);
    std::vector<Entity> entities;
    for (size_t i = 0; i < 1 + dice.Below(4); ++i) entities.push_back(dice.RandomEntity());
    if (MayMatch(filter, entities)) continue;
    ++ruled_out;
    for (const Entity& entity : entities) {
      ASSERT_FALSE(ReferenceMatches(filter, entity)) << "round " << round << ": " << filter.ToString();
    }
  }
  EXPECT_GT(ruled_out, 4000);
}

TEST(ZoneFilterTest, OfOneEntityWithExactCodesItKnowsTheAnswer) {
  FilterDice dice(20261121);
  int answered = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Filter filter = dice.Leaf(/*key_percent=*/0);
    const FilterNode& node = filter.nodes()[0];
    const Entity entity = dice.RandomEntity();
    const PropertyValue* value = entity.Get(node.name);
    if (value != nullptr && !CodeIsExact(value->type())) continue;
    ++answered;
    for (const Filter& asked : {filter, Filter::Not(filter)}) {
      ASSERT_EQ(MayMatch(asked, {entity}), ReferenceMatches(asked, entity)) << asked.ToString();
    }
  }
  EXPECT_GT(answered, 10'000);
}

TEST(ZoneFilterTest, ADateOutsideTheZoneIsRuledOut) {
  std::vector<Entity> day;
  for (uint64_t hour = 0; hour < 24; ++hour) day.push_back(With("At", DateTime{1'000'000 + hour}));
  const auto filter = [](ComparisonOp op, uint64_t ticks) {
    return Filter::Comparison("At", op, DateTime{ticks});
  };
  EXPECT_TRUE(MayMatch(filter(ComparisonOp::kEqual, 1'000'023), day));
  EXPECT_FALSE(MayMatch(filter(ComparisonOp::kEqual, 1'000'024), day));
  EXPECT_TRUE(MayMatch(filter(ComparisonOp::kLessOrEqual, 1'000'000), day));
  EXPECT_FALSE(MayMatch(filter(ComparisonOp::kLess, 1'000'000), day));
  EXPECT_FALSE(MayMatch(
      Filter::And(filter(ComparisonOp::kGreaterOrEqual, 999'990), filter(ComparisonOp::kLess, 1'000'000)),
      day));
  EXPECT_FALSE(MayMatch(Filter::Not(filter(ComparisonOp::kGreaterOrEqual, 1'000'000)), day));
}

TEST(ZoneFilterTest, AMissingPropertyMakesEachComparisonFalseAndItsNegationTrue) {
  const std::vector<Entity> without{With("Other", 1)};
  EXPECT_FALSE(MayMatch("N ne 5", without));
  EXPECT_FALSE(MayMatch("N lt 5", without));
  EXPECT_TRUE(MayMatch("not (N eq 5)", without));
  EXPECT_TRUE(MayMatch("not N", without));
  const std::vector<Entity> mixed{With("Other", 1), With("N", 5)};
  EXPECT_TRUE(MayMatch("not (N eq 5)", mixed));
  EXPECT_FALSE(MayMatch("not (N eq 5)", {With("N", 5)}));
}

TEST(ZoneFilterTest, AMismatchOfTypesCountsAsLess) {
  const std::vector<Entity> numbers{With("N", 5)};
  EXPECT_FALSE(MayMatch("N ge 'a'", numbers));
  EXPECT_TRUE(MayMatch("N lt 'a'", numbers));
  EXPECT_FALSE(MayMatch("N eq 5L", numbers));
  EXPECT_TRUE(MayMatch("N eq 5", {With("N", int64_t{5})}));
  EXPECT_TRUE(MayMatch("N eq 5", {With("N", 5.0)}));
  EXPECT_FALSE(MayMatch("N eq 6", {With("N", 5.0)}));
}

TEST(ZoneFilterTest, TextsAreToldApartByTheirFirstEightBytesOnly) {
  const std::vector<Entity> texts{With("S", "abcdefgh1"), With("S", "abcdefgh3")};
  EXPECT_TRUE(MayMatch("S eq 'abcdefgh9'", texts));
  EXPECT_TRUE(MayMatch("S lt 'abcdefgh0'", texts));
  EXPECT_FALSE(MayMatch("S eq 'abcdefgi'", texts));
  EXPECT_FALSE(MayMatch("S lt 'abcdefgh'", texts));
  EXPECT_TRUE(MayMatch("S gt 'abcdefgh'", texts));
}

TEST(ZoneFilterTest, TimestampsAreComparedWithTheVersions) {
  const std::vector<Entity> rows{With("N", 1)};  // At tick 1000.
  const auto filter = [](ComparisonOp op, uint64_t ticks) {
    return Filter::Comparison("Timestamp", op, DateTime{ticks});
  };
  EXPECT_TRUE(MayMatch(filter(ComparisonOp::kGreaterOrEqual, 1000), rows));
  EXPECT_FALSE(MayMatch(filter(ComparisonOp::kGreater, 1000), rows));
  EXPECT_FALSE(MayMatch(Filter::Comparison("Timestamp", ComparisonOp::kEqual, 5), rows));
}

TEST(ZoneFilterTest, WhatNoZoneTellsRulesNothingOut) {
  const ZoneFilter filter(*ParseFilter("N eq 5"));
  const std::vector<PropertyZone> unknown(1);
  EXPECT_TRUE(filter.useful());
  EXPECT_TRUE(filter.MayMatch({Version(1), Version(2), unknown}));
  EXPECT_FALSE(ZoneFilter(*ParseFilter("PartitionKey ge 'a' and RowKey lt 'b'")).useful());
  EXPECT_FALSE(ZoneFilter(Filter()).useful());
}

TEST(ZoneFilterTest, AFilterThatIsTooDeepOrTooLongIsNotAsked) {
  std::string deep, chain = "N eq 1";
  for (int i = 0; i < 80; ++i) deep += "N eq 1 or (";
  deep += "N eq 1" + std::string(80, ')');
  for (int i = 0; i < 100; ++i) chain += " or N eq 1";
  EXPECT_FALSE(ZoneFilter(*ParseFilter(deep)).useful());
  EXPECT_TRUE(MayMatch(deep, {With("N", 2)}));
  EXPECT_FALSE(MayMatch(chain, {With("N", 2)}));
  for (int i = 0; i < 100; ++i) chain += " or N eq 1";
  EXPECT_FALSE(ZoneFilter(*ParseFilter(chain)).useful());
  EXPECT_TRUE(MayMatch(chain, {With("N", 2)}));
}

}  // namespace
}  // namespace partita

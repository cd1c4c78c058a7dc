#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "api/compiled_filter.h"
#include "api/date_time.h"
#include "api/entity_codec.h"
#include "api/names.h"
#include "api/query.h"
#include "api/value_text.h"
#include "engine/name_index.h"
#include "test/api/vector_file.h"
#include "test/support/filter_reference.h"
#include "test/support/random_filter.h"

namespace partita {
namespace {

// An entity as the store holds it.
class EncodedEntity {
 public:
  explicit EncodedEntity(const Entity& entity, const PropertyNames* names = nullptr)
      : key_(EncodeEntityKey(TableId(1), entity)),
        content_(EncodeEntityContent(entity, names)),
        version_(entity.timestamp_ticks()) {}
  bool Matches(CompiledFilter* filter) const {
    return filter->Matches(*DecodeUserKey(key_), version_, content_);
  }
  KeylessRow keyless() const { return {version_, content_}; }

 private:
  std::string key_;
  std::string content_;
  Version version_;
};

// ---- Vectors.

PropertyValue ValueOfJson(const JsonValue& value, const std::string& type) {
  if (!type.empty()) {
    std::string text = value.text;
    if (value.kind == JsonValue::Kind::kNumber) AppendValueText(&text, PropertyValue(value.number));
    return *ParseValueText(*PropertyTypeFromEdmName(type), text);
  }
  if (value.kind == JsonValue::Kind::kBoolean) return value.boolean;
  if (value.kind == JsonValue::Kind::kString) return value.text;
  // JSON numbers without a fraction are Int32 in these vectors.
  if (value.number == static_cast<int32_t>(value.number)) return static_cast<int32_t>(value.number);
  return value.number;
}

Entity EntityOfVectors(const JsonValue& json) {
  Entity entity(json["PartitionKey"].text, json["RowKey"].text);
  entity.set_timestamp_ticks(ParseDateTime(json["Timestamp"].text)->ticks);
  for (size_t i = 0; i < json.names.size(); ++i) {
    const std::string& name = json.names[i];
    if (IsSystemPropertyName(name) || name.ends_with("@odata.type")) continue;
    entity.Set(name, ValueOfJson(json.items[i], json[name + "@odata.type"].text));
  }
  return entity;
}

bool Lists(const JsonValue& vector, const char* one, const char* any, const JsonValue& what) {
  if (vector.Has(one)) return vector[one].text == what.text && vector[one].number == what.number;
  for (const JsonValue& item : vector[any].items) {
    if (item.text == what.text && item.number == what.number) return true;
  }
  return false;
}

void ExpectRefused(const JsonValue& vector, const Result<Filter>& filter) {
  ASSERT_FALSE(filter.ok());
  const bool not_run = filter.code() == Code::kUnsupported;
  JsonValue status, code;
  status.number = not_run ? 501 : 400;
  code.text = not_run ? "NotImplemented" : std::string(ViolationName(ViolationOf(filter.status())));
  EXPECT_TRUE(Lists(vector, "status", "status_any_of", status)) << filter.status().ToString();
  if (vector.Has("code") || vector.Has("code_any_of")) {
    EXPECT_TRUE(Lists(vector, "code", "code_any_of", code)) << filter.status().ToString();
  }
}

TEST(FilterVectorTest, EveryFilterIsReadAndAnsweredAsTheServiceDoes) {
  const JsonValue vectors = LoadVectors("filters.json");
  const Entity entity = EntityOfVectors(vectors["entity"]);
  const EncodedEntity encoded(entity);
  int cases = 0;
  for (const JsonValue& vector : vectors["cases"].items) {
    SCOPED_TRACE(vector["id"].text + ": " + vector["filter"].text);
    ++cases;
    Result<Filter> filter = ParseFilter(vector["filter"].text);
    if (vector["expect"].text == "error") {
      ExpectRefused(vector, filter);
      continue;
    }
    ASSERT_TRUE(filter.ok()) << filter.status().ToString();
    CompiledFilter compiled(*filter);
    EXPECT_EQ(encoded.Matches(&compiled), vector["expect"].boolean);
    EXPECT_EQ(ReferenceMatches(*filter, entity), vector["expect"].boolean);
  }
  EXPECT_EQ(cases, 188);
}

// Of a catalog that has these of one account.
TableLister ListerOf(const std::vector<std::string>& names) {
  Catalog catalog;
  for (const std::string& name : names) {
    TableDescriptor table;
    table.account = "a";
    table.name = name;
    catalog.InsertTable(std::move(table));
  }
  const auto index = std::make_shared<const NameIndex>(catalog);
  return [index](std::string_view from, size_t limit) { return index->ListTables("a", from, limit); };
}

TEST(FilterVectorTest, TablesAreFilteredByName) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("filters.json");
  for (const JsonValue& vector : vectors["table_filters"].items) {
    SCOPED_TRACE(vector["filter"].text);
    ++cases;
    Result<Filter> filter = ParseFilter(vector["filter"].text);
    if (vector["expect"].text == "error") {
      ExpectRefused(vector, filter);
      continue;
    }
    ASSERT_TRUE(filter.ok());
    std::vector<std::string> tables;
    for (const JsonValue& name : vector["tables"].items) tables.push_back(name.text);
    std::vector<std::string> match;
    for (const JsonValue& name : vector["match"].items) match.push_back(name.text);
    EXPECT_EQ(QueryTables(ListerOf(tables), *filter, std::nullopt, "").names, match);
  }
  EXPECT_EQ(cases, 5);
}

TEST(FilterVectorTest, LongChainsAndDeepNestsAreTaken) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("filters.json");
  for (const JsonValue& vector : vectors["limits"].items) {
    ++cases;
    std::string text = std::string(500, '(') + "i eq 5" + std::string(500, ')');
    if (vector.Has("comparisons")) {
      text = "i eq 5";
      for (int i = 1; i < vector["comparisons"].number; ++i) text += " or i eq 5";
    }
    EXPECT_TRUE(ParseFilter(text).ok()) << vector["id"].text;
  }
  EXPECT_EQ(cases, 3);
}

// ---- Against the oracle.

// Every other name has an id.
class SomeNames : public PropertyNames {
 public:
  uint16_t IdOf(std::string_view name) const override { return name == "B" ? 7 : name == "z" ? 3 : 0; }
  std::string_view NameOf(uint16_t id) const override { return id == 7 ? "B" : id == 3 ? "z" : ""; }
};

constexpr int kEvaluationsOfARound = 40 * 25;

// 300,000 evaluations, or so many as the environment asks for:
//   PARTITA_EVALUATIONS=10000000 bin/test_api --gtest_filter=CompiledFilterTest.AnswersAs*
int RoundsWanted() {
  const char* asked = std::getenv("PARTITA_EVALUATIONS");
  const int evaluations = asked == nullptr ? 300'000 : std::atoi(asked);
  return (evaluations + kEvaluationsOfARound - 1) / kEvaluationsOfARound;
}

TEST(CompiledFilterTest, AnswersAsThePlainReferenceForRandomFiltersAndEntities) {
  const SomeNames names;
  FilterDice dice(1);
  int matched = 0;
  int in_batches = 0;
  const int rounds = RoundsWanted();
  for (int round = 0; round < rounds; ++round) {
    std::vector<Entity> entities;
    std::vector<EncodedEntity> encoded, encoded_with_ids;
    for (int i = 0; i < 40; ++i) {
      entities.push_back(dice.RandomEntity());
      encoded.emplace_back(entities.back());
      encoded_with_ids.emplace_back(entities.back(), &names);
    }
    for (int k = 0; k < 25; ++k) {
      const Filter filter = dice.RandomFilter(1 + dice.Below(6), 20);
      CompiledFilter compiled(filter);
      CompiledFilter compiled_with_ids(filter, CompiledFilter::Target::kEntities, &names);
      uint64_t expected_of_all = 0;
      for (size_t i = 0; i < entities.size(); ++i) {
        const bool expected = ReferenceMatches(filter, entities[i]);
        matched += expected;
        expected_of_all |= uint64_t{expected} << i;
        ASSERT_EQ(encoded[i].Matches(&compiled), expected) << filter.ToString();
        ASSERT_EQ(encoded_with_ids[i].Matches(&compiled_with_ids), expected) << filter.ToString();
      }
      // All at once, where keys are not asked for.
      if (compiled.asks_for_keys()) continue;
      ++in_batches;
      std::vector<KeylessRow> rows, rows_with_ids;
      for (const EncodedEntity& entity : encoded) rows.push_back(entity.keyless());
      for (const EncodedEntity& entity : encoded_with_ids) rows_with_ids.push_back(entity.keyless());
      ASSERT_EQ(compiled.MatchesOf(rows), expected_of_all) << filter.ToString();
      ASSERT_EQ(compiled_with_ids.MatchesOf(rows_with_ids), expected_of_all) << filter.ToString();
    }
  }
  // Neither side is trivial.
  EXPECT_GT(matched, rounds * kEvaluationsOfARound / 6);
  EXPECT_LT(matched, rounds * kEvaluationsOfARound * 5 / 6);
  EXPECT_GT(in_batches, 1'000);
}

TEST(CompiledFilterTest, EveryPairOfValuesComparesAsTheReferenceSays) {
  FilterDice dice(2);
  for (int i = 0; i < 100'000; ++i) {
    Entity entity("p", "r");
    entity.Set("x", dice.Value());
    const Filter filter = Filter::Comparison("x", static_cast<ComparisonOp>(dice.Below(6)), dice.Value());
    CompiledFilter compiled(filter);
    ASSERT_EQ(EncodedEntity(entity).Matches(&compiled), ReferenceMatches(filter, entity))
        << ComparisonText(filter.nodes()[0].op);
  }
}

TEST(CompiledFilterTest, AThousandLevelsNeedNoStack) {
  Filter filter = Filter::Comparison("x", ComparisonOp::kEqual, 1);
  for (int i = 0; i < 100'000; ++i) filter = Filter::Not(std::move(filter));
  CompiledFilter compiled(filter);
  Entity entity("p", "r");
  entity.Set("x", 1);
  EXPECT_TRUE(EncodedEntity(entity).Matches(&compiled));
}

TEST(CompiledFilterTest, ConstantsAloneAreDecidedBeforeAnyRow) {
  EXPECT_TRUE(CompiledFilter(Filter()).matches_all());
  EXPECT_TRUE(CompiledFilter(*ParseFilter("a eq 1 or true")).matches_all());
  EXPECT_TRUE(CompiledFilter(*ParseFilter("false and a eq 1")).matches_none());
  EXPECT_TRUE(CompiledFilter(*ParseFilter("not true")).matches_none());
}

TEST(CompiledFilterTest, FindsPropertiesWhereverTheRowBeforeHadThem) {
  CompiledFilter filter(*ParseFilter("m eq 5"));
  std::vector<std::vector<std::string>> shapes = {{"m"}, {"a", "m"}, {"a", "b", "m", "z"}, {"a", "b"}, {},
                                                  {"z"}, {"m", "z"}, {"a", "z"},           {"a", "m"}};
  for (const auto& names : shapes) {
    Entity entity("p", "r");
    for (const std::string& name : names) entity.Set(name, 5);
    EXPECT_EQ(EncodedEntity(entity).Matches(&filter), entity.Has("m"));
  }
}

// ---- The query for tables.

TEST(TableQueryTest, PagesNameTheNextTableThatMatches) {
  const TableLister tables = ListerOf({"Alpha", "beta", "Gamma", "delta9", "Zeta"});
  const Filter filter = *ParseFilter("TableName ne 'Gamma'");
  std::vector<std::string> names;
  std::string from;
  int pages = 0;
  while (true) {
    const TablePage page = QueryTables(tables, filter, 1, from);
    EXPECT_EQ(page.names.size(), 1u);
    names.insert(names.end(), page.names.begin(), page.names.end());
    ++pages;
    if (!page.next) break;
    from = *page.next;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"Alpha", "beta", "delta9", "Zeta"}));
  EXPECT_EQ(pages, 4);
  EXPECT_TRUE(QueryTables(tables, filter, 0, "").names.empty());
  EXPECT_FALSE(QueryTables(tables, filter, 0, "").next.has_value());
  EXPECT_EQ(QueryTables(tables, Filter(), std::nullopt, "c").names.size(), 3u);
  EXPECT_TRUE(QueryTables(tables, *ParseFilter("PartitionKey ne 'x'"), std::nullopt, "").names.empty());
}

TEST(TableQueryTest, APageLooksAtSoManyTablesAndGoesOn) {
  std::vector<std::string> names;
  for (int i = 0; i < 2 * static_cast<int>(kTablesLookedMax) + 500; ++i) {
    names.push_back("Table" + std::to_string(100'000 + i));
  }
  const TableLister tables = ListerOf(names);
  const Filter last = *ParseFilter("TableName eq '" + names.back() + "'");
  std::string from;
  for (int page = 0; page < 2; ++page) {
    const TablePage none = QueryTables(tables, last, std::nullopt, from);
    EXPECT_TRUE(none.names.empty());
    ASSERT_TRUE(none.next.has_value());
    from = *none.next;
  }
  const TablePage found = QueryTables(tables, last, std::nullopt, from);
  EXPECT_EQ(found.names, std::vector<std::string>{names.back()});
  EXPECT_FALSE(found.next.has_value());
  // All of them, a thousand a page.
  std::vector<std::string> all;
  from.clear();
  for (bool more = true; more;) {
    const TablePage page = QueryTables(tables, Filter(), std::nullopt, from);
    EXPECT_LE(page.names.size(), kPageEntitiesMax);
    all.insert(all.end(), page.names.begin(), page.names.end());
    more = page.next.has_value();
    if (more) from = *page.next;
  }
  EXPECT_EQ(all, names);
}

// A page runs to its end in one go.
TEST(TableQueryTest, TheLongerTheFilterTheFewerTablesAPageLooksAt) {
  std::vector<std::string> names;
  for (size_t i = 0; i < 2 * kTablesLookedMax; ++i) names.push_back("Table" + std::to_string(100'000 + i));
  const TableLister all = ListerOf(names);
  for (const auto& [tests, looked_max] : {std::pair<size_t, size_t>{1, kTablesLookedMax},
                                          {4, 4'000},
                                          {9, 1'000},
                                          {16, 1'000},
                                          {2'000, 1'000}}) {
    std::string text = "TableName eq 'none'";
    for (size_t i = 1; i < tests; ++i) text += " or TableName eq 'none'";
    size_t looked = 0;
    const TableLister counting = [&](std::string_view from, size_t limit) {
      std::vector<TablePtr> tables = all(from, limit);
      looked += tables.size() - 1;  // The last only tells that there are more.
      return tables;
    };
    const TablePage page = QueryTables(counting, *ParseFilter(text), std::nullopt, "");
    EXPECT_EQ(looked, looked_max) << tests;
    EXPECT_EQ(page.next, names[looked_max]) << tests;
  }
}

}  // namespace
}  // namespace partita

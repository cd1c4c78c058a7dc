#include "api/entity.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "api/entity_codec.h"
#include "api/limits.h"
#include "api/names.h"
#include "engine/base/text.h"
#include "test/api/vector_file.h"

namespace partita {
namespace {

PropertyValue ValueOfVector(const JsonValue& property, std::string_view case_id) {
  const auto units = static_cast<size_t>(property["utf16_units"].number);
  switch (PropertyTypeFromEdmName(property["type"].text).value()) {
    case PropertyType::kString: {
      std::string text;
      if (case_id == "z24") {  // Said in its note: surrogate pairs.
        for (size_t i = 0; i < units / 2; ++i) text += "\xF0\x9F\x98\x80";
      } else if (case_id == "z23") {  // Three UTF-8 bytes, one unit.
        for (size_t i = 0; i < units; ++i) text += "\xE6\x9D\xB1";
      } else {
        text.assign(units, 'a');
      }
      return text;
    }
    case PropertyType::kInt32:
      return 1;
    case PropertyType::kInt64:
      return int64_t{1};
    case PropertyType::kDouble:
      return 1.0;
    case PropertyType::kBoolean:
      return true;
    case PropertyType::kDateTime:
      return DateTime{1};
    case PropertyType::kGuid:
      return Guid{};
    case PropertyType::kBinary:
      return Binary{std::string(static_cast<size_t>(property["bytes"].number), 'b')};
  }
  return {};
}

std::string NumberedName(int number) {
  std::string digits = std::to_string(number);
  return "p" + std::string(3 - digits.size(), '0') + digits;
}

Entity EntityOfVector(const JsonValue& vector) {
  Entity entity(vector["PartitionKey"].text, vector["RowKey"].text);
  for (const JsonValue& property : vector["properties"].items) {
    const PropertyValue value = ValueOfVector(property, vector["id"].text);
    if (property.Has("name")) {
      entity.Set(property["name"].text, value);
      continue;
    }
    EXPECT_TRUE(property["name_pattern"].text.starts_with("p000.."));
    for (int i = 0; i < property["count"].number; ++i) entity.Set(NumberedName(i), value);
  }
  return entity;
}

TEST(EntitySizeVectorTest, SizesAndVerdictsAreTheServices) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("entity-sizes.json");
  for (const JsonValue& vector : vectors["cases"].items) {
    SCOPED_TRACE(vector["id"].text);
    const Entity entity = EntityOfVector(vector);
    EXPECT_EQ(EntitySizeBytes(entity), static_cast<size_t>(vector["size"].number));
    EXPECT_GE(EntitySizeBoundBytes(entity), EntitySizeBytes(entity));
    const Status status = ValidateEntity(entity);
    EXPECT_EQ(status.ok(), vector["accepted"].boolean) << status.ToString();
    if (!status.ok()) EXPECT_EQ(ViolationName(ViolationOf(status)), vector["code"].text);

    // The encoded form has the same size, and whole-entity rules judge it alike.
    const std::string content = EncodeEntityContent(entity);
    const EntityView view(content);
    ASSERT_TRUE(view.Check().ok());
    const size_t key_units = Utf16Units(entity.partition_key()) + Utf16Units(entity.row_key());
    EXPECT_EQ(kEntitySizeBase + 2 * key_units + view.BilledSize(), EntitySizeBytes(entity));
    const Status merged = ValidateMergedRecord(entity.partition_key(), entity.row_key(), content);
    EXPECT_EQ(!merged.ok(), vector["code"].text == "EntityTooLarge") << merged.ToString();
    ++cases;
  }
  EXPECT_EQ(cases, 32);
  EXPECT_EQ(vectors["throughput_units"].items.size(), 9u);  // The token buckets' tests have these.
}

TEST(EntityViewTest, TextLiesInARecordOtherwiseAndIsGivenAsUtf8) {
  const std::string text = "\xEE\x80\x80 \xEF\xBF\xBD \xF0\x9F\x98\x80 \xC3\xBC";
  Entity entity("p", "r");
  entity.Set("Text", text);
  const std::string content = EncodeEntityContent(entity);
  const std::optional<PropertyView> view = EntityView(content).Find("Text");
  ASSERT_TRUE(view.has_value());
  EXPECT_FALSE(IsValidUtf8(view->raw()));
  std::string read = "before ";
  view->AppendText(&read);
  EXPECT_EQ(read, "before " + text);
  EXPECT_EQ(view->ToValue(), PropertyValue(text));
}

TEST(EntityTest, SetKeepsThePlaceAndChangesTheType) {
  Entity entity("p", "r");
  entity.Set("a", 1).Set("b", "two").Set("a", 1.5);
  ASSERT_EQ(entity.property_count(), 2u);
  EXPECT_EQ(entity.properties()[0].name, "a");
  EXPECT_EQ(*entity.GetDouble("a"), 1.5);
  EXPECT_EQ(entity.GetInt32("a"), nullptr);
  EXPECT_EQ(*entity.GetString("b"), "two");
  EXPECT_FALSE(entity.Has("B"));
  EXPECT_TRUE(entity.Erase("a"));
  EXPECT_FALSE(entity.Erase("a"));
  EXPECT_EQ(entity.property_count(), 1u);
}

TEST(EntityTest, TakesTextOfABufferAndWholeNumbersOfTheWidestType) {
  char name[16];
  std::snprintf(name, sizeof(name), "device-%d", 7);
  Entity entity("p", "r");
  entity.Set("Name", name).Set("Ticks", 1LL << 40);
  EXPECT_EQ(*entity.GetString("Name"), "device-7");
  EXPECT_EQ(*entity.GetInt64("Ticks"), int64_t{1} << 40);
}

TEST(EntityTest, GetIntegerReadsBothWidthsAndNothingElse) {
  Entity entity;
  entity.Set("small", -5).Set("big", int64_t{1} << 40).Set("text", "7");
  EXPECT_EQ(entity.GetInteger("small"), -5);
  EXPECT_EQ(entity.GetInteger("big"), int64_t{1} << 40);
  EXPECT_FALSE(entity.GetInteger("text").has_value());
  EXPECT_FALSE(entity.GetInteger("none").has_value());
}

TEST(EntityTest, TheEtagIsTheTimestamp) {
  Entity entity("p", "r");
  EXPECT_EQ(entity.etag(), "");
  entity.set_timestamp_ticks(10'000'000);
  EXPECT_EQ(entity.etag(), "W/\"datetime'1601-01-01T00%3A00%3A01Z'\"");
}

TEST(ValidateEntityTest, TheFirstBrokenRuleInTheServicesOrderIsTold) {
  Entity entity("a/b", "r");
  entity.Set("bad-name", Binary{std::string(kBinaryBytesMax + 1, 'x')});
  for (int i = 0; i < 252; ++i) entity.Set("n" + std::to_string(i), std::string(3000, 'x'));
  // Everything is wrong with it; taking away one fault at a time shows the next.
  EXPECT_EQ(ViolationOf(ValidateEntity(entity)), Violation::kTooManyProperties);
  entity.Erase("n0");
  EXPECT_EQ(ViolationOf(ValidateEntity(entity)), Violation::kPropertyNameInvalid);
  entity.Erase("bad-name");
  entity.Set("n0", Binary{std::string(kBinaryBytesMax + 1, 'x')});
  EXPECT_EQ(ViolationOf(ValidateEntity(entity)), Violation::kOutOfRangeInput);
  entity.set_partition_key("ab");
  EXPECT_EQ(ViolationOf(ValidateEntity(entity)), Violation::kPropertyValueTooLarge);
  entity.Set("n0", 1);
  EXPECT_EQ(ViolationOf(ValidateEntity(entity)), Violation::kEntityTooLarge);
  for (int i = 1; i < 252; ++i) entity.Set("n" + std::to_string(i), i);
  EXPECT_TRUE(ValidateEntity(entity).ok());
}

TEST(ValidateEntityTest, SystemNamesTextAndTimesAreChecked) {
  const auto violation = [](std::string_view name, PropertyValue value) {
    return ViolationOf(ValidateEntity(Entity("p", "r").Set(name, std::move(value))));
  };
  EXPECT_EQ(violation("PartitionKey", "x"), Violation::kInvalidInput);
  EXPECT_EQ(violation("Timestamp", "x"), Violation::kInvalidInput);
  EXPECT_EQ(violation("timestamp", "x"), Violation::kNone);
  EXPECT_EQ(violation("a", "\xED\xA0\x80"), Violation::kInvalidInput);
  EXPECT_EQ(violation("a", DateTime{kDateTimeTicksMax + 1}), Violation::kOutOfRangeInput);
  EXPECT_EQ(violation("a", DateTime{kDateTimeTicksMax}), Violation::kNone);
  EXPECT_THAT(
      ValidateEntity(Entity("p", "r").Set("a", std::string(kStringUnitsMax + 1, 'x'))).message(),
      testing::HasSubstr("property \"a\": Edm.String value has 32769 UTF-16 units; allowed are 32768"));
}

TEST(EntityCodecTest, AnEntityComesBackFromItsKeyAndRecord) {
  Entity entity("\xEE\x80\x80p", "r\xF0\x9F\x98\x80");
  entity.Set("text", "\xEF\xBF\xBF").Set("n", 5).Set("blob", Binary{"\xEE"});
  const std::string key = EncodeEntityKey(TableId(3), entity);
  const Result<Entity> decoded = DecodeEntity(key, Version(77), EncodeEntityContent(entity));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(*decoded, entity);
  EXPECT_EQ(decoded->timestamp_ticks(), 77u);
}

// covers: F77
TEST(EntityCodecTest, BytesThatAreNoEntityAreCorruption) {
  const Entity entity("p", "r");
  const std::string key = EncodeEntityKey(TableId(3), entity);
  EXPECT_EQ(DecodeEntity("abc", Version(1), EncodeEntityContent(entity)).code(), Code::kCorruption);
  EXPECT_EQ(DecodeEntity(key + "\xFF", Version(1), EncodeEntityContent(entity)).code(), Code::kCorruption);
  EXPECT_EQ(DecodeEntity(key, Version(1), "").code(), Code::kCorruption);
}

}  // namespace
}  // namespace partita

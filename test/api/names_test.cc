#include "api/names.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "api/entity.h"
#include "engine/base/entity_record.h"
#include "engine/base/text.h"
#include "engine/base/user_key.h"
#include "test/api/vector_file.h"

namespace partita {
namespace {

using ::testing::HasSubstr;

void ExpectAsVector(const JsonValue& vector, const Status& status) {
  EXPECT_EQ(status.ok(), vector["valid"].boolean) << status.ToString();
  if (vector["valid"].boolean) return;
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(ViolationName(ViolationOf(status)), vector["code"].text) << status.ToString();
  EXPECT_FALSE(status.message().empty());
}

TEST(NameVectorTest, EveryKeyIsJudgedAsTheServiceDoes) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("keys.json");
  for (const JsonValue& vector : vectors["keys"].items) {
    SCOPED_TRACE(vector["id"].text);
    const std::string key = TextOrParts(vector, "key");
    for (KeyKind kind : {KeyKind::kPartitionKey, KeyKind::kRowKey}) {
      const Status status = CheckKey(kind, key);
      ExpectAsVector(vector, status);
      if (!status.ok()) EXPECT_THAT(status.message(), HasSubstr(KeyKindName(kind)));
    }
    if (IsValidUtf8(key)) EXPECT_EQ(Utf16Units(key), static_cast<size_t>(vector["utf16_units"].number));
    ++cases;
  }
  EXPECT_EQ(cases, 55);
  // url_keys: 22 cases on the syntax of request paths, which the HTTP face parses.
}

TEST(NameVectorTest, OrderedTextSortsEveryListOfKeys) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("keys.json");
  for (const JsonValue& vector : vectors["ordering"].items) {
    SCOPED_TRACE(vector["id"].text);
    const std::vector<JsonValue>& sorted = vector["sorted"].items;
    for (size_t i = 1; i < sorted.size(); ++i) {
      EXPECT_LT(OrderedText(sorted[i - 1].text), OrderedText(sorted[i].text)) << i;
      EXPECT_LT(EncodeUserKey(TableId(1), "p", OrderedText(sorted[i - 1].text)),
                EncodeUserKey(TableId(1), "p", OrderedText(sorted[i].text)));
      EXPECT_LT(EncodeUserKey(TableId(1), OrderedText(sorted[i - 1].text), "z"),
                EncodeUserKey(TableId(1), OrderedText(sorted[i].text), "a"));
    }
    ++cases;
  }
  EXPECT_EQ(cases, 7);
}

TEST(NameVectorTest, EveryTableNameIsJudgedAsTheServiceDoes) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("table-names.json");
  for (const JsonValue& vector : vectors["names"].items) {
    SCOPED_TRACE(vector["name"].text);
    ExpectAsVector(vector, CheckTableName(vector["name"].text));
    ++cases;
  }
  EXPECT_EQ(cases, 45);
  // case_rules (6) need a catalog, in_other_requests (6) the HTTP face; what both rest on is here:
  EXPECT_EQ(FoldTableName("Orders"), FoldTableName("ORDERS"));
  EXPECT_EQ(FoldTableName("oRDERS2"), "orders2");
}

TEST(NameVectorTest, EveryPropertyNameIsJudgedAsTheServiceDoes) {
  int names = 0;
  int control = 0;
  const JsonValue vectors = LoadVectors("property-names.json");
  for (const JsonValue& vector : vectors["names"].items) {
    const std::string name = TextOrParts(vector, "name");
    SCOPED_TRACE(name);
    if (vector["note"].text.starts_with("control information")) {
      // Accepted in a request body and never stored: JsonLinesTest has them; no table takes the name.
      EXPECT_EQ(ViolationOf(CheckPropertyName(name)), Violation::kPropertyNameInvalid);
      ++control;
      continue;
    }
    ExpectAsVector(vector, CheckPropertyName(name));
    EXPECT_EQ(IsSystemPropertyName(name), vector["note"].text.starts_with("system:"));
    ++names;
  }
  EXPECT_EQ(names, 54);
  EXPECT_EQ(control, 8);
}

TEST(NameVectorTest, SetRulesHoldForEntitiesAndMerges) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("property-names.json");
  for (const JsonValue& vector : vectors["set_rules"].items) {
    SCOPED_TRACE(vector["id"].text);
    ++cases;
    Entity entity("p", "r");
    if (vector.Has("stored")) {
      const auto stored = static_cast<int>(vector["stored"].number);
      Entity patch("p", "r");
      for (int i = 0; i < stored; ++i) entity.Set("s" + std::to_string(i), i);
      for (int i = 0; i < vector["merged_new"].number; ++i) patch.Set("n" + std::to_string(i), i);
      for (int i = 0; i < vector["merged_same"].number; ++i) patch.Set("s" + std::to_string(i), -i);
      const Result<std::string> merged =
          MergeEntityRecords(EncodeEntityRecord(entity.properties()), EncodeEntityRecord(patch.properties()));
      ASSERT_TRUE(merged.ok());
      ExpectAsVector(vector, ValidateMergedRecord("p", "r", *merged));
    } else if (vector.Has("custom_properties")) {
      // A null property never enters an Entity, so it is dropped before counting.
      const double count = vector["custom_properties"].number - vector["null_properties"].number;
      for (int i = 0; i < count; ++i) entity.Set("s" + std::to_string(i), i);
      ExpectAsVector(vector, ValidateEntity(entity));
    } else {
      EXPECT_TRUE(vector.Has("body"));  // c6, c7: JSON bodies; JsonLinesTest has them.
    }
  }
  EXPECT_EQ(cases, 7);
}

TEST(NamesTest, MessagesSayWhatWhereAndWhichRule) {
  const Status key = CheckKey(KeyKind::kRowKey, "a/b");
  EXPECT_EQ(key.message(),
            "RowKey \"a/b\" holds '/' (U+002F) at byte 1; forbidden are / \\ # ? and control characters");
  EXPECT_THAT(CheckKey(KeyKind::kPartitionKey, "a\tb").message(),
              HasSubstr("\"a\\x09b\" holds U+0009 at byte 1"));
  EXPECT_THAT(CheckPropertyName("na\xC3\xAFve-1").message(), HasSubstr("holds '-' (U+002D) at byte 6"));
  EXPECT_THAT(CheckPropertyName(std::string(300, 'x')).message(),
              HasSubstr("has 300 UTF-16 units; allowed are 255"));
  EXPECT_THAT(CheckTableName("a-b").message(), HasSubstr("at byte 1"));
  EXPECT_THAT(CheckKey(KeyKind::kRowKey, "ok\xFF").message(),
              HasSubstr("\"ok\\xFF\" is not well-formed UTF-8 at byte 2"));
}

TEST(NamesTest, AContextKeepsTheViolation) {
  const Status status = CheckPropertyName("1a").WithContext("line 7");
  EXPECT_EQ(ViolationOf(status), Violation::kPropertyNameInvalid);
  EXPECT_THAT(status.message(), testing::StartsWith("line 7: "));
  EXPECT_EQ(ViolationOf(Status::NotFound("x")), Violation::kNone);
  EXPECT_EQ(ViolationOf(Status()), Violation::kNone);
}

TEST(NamesTest, LettersOfEveryScriptButNoXmlMisfits) {
  for (const char* name :
       {"\xD0\x96", "\xE0\xA4\x95", "\xF0\xA0\x80\x80", "\xE2\x85\xA0", "a\xE0\xA5\x80", "x\xD9\xA3"}) {
    EXPECT_TRUE(CheckPropertyName(name).ok()) << name;
  }
  // A digit or a mark first; U+00AA and U+00B5 are letters but in no XML name; U+00B7 is in XML names only.
  for (const char* name : {"\xD9\xA3x", "\xCC\x81x", "\xC2\xAA", "\xC2\xB5", "a\xC2\xB7", "a\xE2\x80\x8B"}) {
    EXPECT_FALSE(CheckPropertyName(name).ok()) << name;
  }
}

}  // namespace
}  // namespace partita

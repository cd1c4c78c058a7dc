#include "api/http/json_reader.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "api/names.h"
#include "test/api/vector_file.h"
#include "test/http/padded_body.h"

namespace partita::http {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kKeys = R"("PartitionKey":"p","RowKey":"r")";

// The entity of an insert; a failure of the test when it is refused.
Entity ReadInsert(std::string_view body) {
  Entity entity("old", "old");
  entity.Set("Old", 1);
  const std::optional<ServiceError> error =
      JsonBodyReader::OfThisThread().ReadInsert(PaddedBody(body), &entity);
  EXPECT_FALSE(error.has_value()) << body << ": " << ErrorCodeName(error->code);
  return entity;
}

Entity ReadMembers(std::string_view members) {
  return ReadInsert("{" + std::string(kKeys) + "," + std::string(members) + "}");
}

// The code of a refusal, "" when there is none.
std::string_view InsertRefusal(std::string_view body) {
  Entity entity;
  const std::optional<ServiceError> error =
      JsonBodyReader::OfThisThread().ReadInsert(PaddedBody(body), &entity);
  if (!error) return "";
  EXPECT_EQ(error->status, 400);
  return ErrorCodeName(error->code);
}

std::string_view MembersRefusal(std::string_view members) {
  return InsertRefusal("{" + std::string(kKeys) + "," + std::string(members) + "}");
}

std::string_view UpdateRefusal(std::string_view body, std::string_view partition_key = "p",
                               std::string_view row_key = "r") {
  Entity entity;
  const std::optional<ServiceError> error =
      JsonBodyReader::OfThisThread().ReadUpdate(PaddedBody(body), partition_key, row_key, &entity);
  return error ? ErrorCodeName(error->code) : "";
}

// ---- Vectors. (json_writer_test.cc has what each value looks like in an answer.)

TEST(JsonReaderVectorTest, EveryPropertyBecomesItsTypeOrIsRefused) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("json-values.json");
  for (const JsonValue& vector : vectors["values"].items) {
    if (IsOutrankedValue(vector)) continue;
    SCOPED_TRACE(vector["id"].text);
    ++cases;
    const std::string& expected = vector["expect"].text;
    const std::string& json = vector["json"].text;
    const bool about_key = json.find("PartitionKey") != json.npos;
    const std::string body = "{" + json + R"(,"RowKey":"r")" + (about_key ? "}" : R"(,"PartitionKey":"p"})");
    if (expected == "error") {
      EXPECT_EQ(InsertRefusal(body), vector["code"].text);
      continue;
    }
    const Entity entity = ReadInsert(body);
    if (expected.starts_with("(")) {
      EXPECT_EQ(entity.property_count(), 0u);
    } else {
      ASSERT_EQ(entity.property_count(), 1u);
      EXPECT_EQ(EdmTypeName(entity.properties()[0].value.type()), expected);
    }
  }
  EXPECT_EQ(cases, 66);
}

TEST(JsonReaderVectorTest, EveryKeyAndNameReachesTheRulesUnchanged) {
  const JsonValue keys = LoadVectors("keys.json");
  int cases = 0;
  for (const JsonValue& vector : keys["keys"].items) {
    SCOPED_TRACE(vector["id"].text);
    const std::string key = TextOrParts(vector, "key");
    // Escaped throughout, so that controls and lone surrogates can stand in a body.
    std::string body = R"({"RowKey":"r","PartitionKey":")";
    for (size_t at = 0; at < key.size();) {
      char unit[16];
      const auto lead = static_cast<uint8_t>(key[at]);
      if (lead == 0xED && static_cast<uint8_t>(key[at + 1]) >= 0xA0) {
        const unsigned code = 0xD000u | (static_cast<uint8_t>(key[at + 1]) & 0x3Fu) << 6 |
                              (static_cast<uint8_t>(key[at + 2]) & 0x3Fu);
        std::snprintf(unit, sizeof unit, "\\u%04x", code);
        at += 3;
      } else if (lead < 0x80) {
        std::snprintf(unit, sizeof unit, "\\u%04X", unsigned{lead});
        ++at;
      } else {
        unit[0] = key[at++];
        unit[1] = 0;
      }
      body += unit;
    }
    body += "\"}";
    ++cases;
    if (vector["code"].text == "InvalidInput") {  // Lone surrogates.
      EXPECT_EQ(InsertRefusal(body), "InvalidInput");
      continue;
    }
    const Entity entity = ReadInsert(body);
    EXPECT_EQ(entity.partition_key(), key);
    EXPECT_EQ(ValidateEntity(entity).ok(), vector["valid"].boolean);
  }
  EXPECT_EQ(cases, 55);
}

TEST(JsonReaderVectorTest, PropertyNamesAreKeptSystemOrIgnored) {
  const JsonValue vectors = LoadVectors("property-names.json");
  int ignored = 0;
  int kept = 0;
  for (const JsonValue& vector : vectors["names"].items) {
    const std::string name = TextOrParts(vector, "name");
    SCOPED_TRACE(name);
    if (IsSystemPropertyName(name)) continue;
    std::string escaped;
    for (const char c : name) {
      escaped += c == '"' || c == '\\' ? std::string("\\") + c : c == '\n' ? "\\n" : std::string(1, c);
    }
    const Entity entity = ReadMembers("\"" + escaped + "\":1");
    if (vector["note"].text.starts_with("control information")) {
      EXPECT_EQ(entity.property_count(), 0u);
      ++ignored;
      continue;
    }
    ASSERT_EQ(entity.property_count(), 1u);
    EXPECT_EQ(entity.properties()[0].name, name);
    const Status status = ValidateEntity(entity);
    EXPECT_EQ(status.ok(), vector["valid"].boolean);
    if (!status.ok()) EXPECT_EQ(ViolationName(ViolationOf(status)), vector["code"].text);
    ++kept;
  }
  EXPECT_EQ(ignored, 8);
  EXPECT_GT(kept, 45);
}

TEST(JsonReaderVectorTest, SetRulesOfBodiesHold) {
  const JsonValue vectors = LoadVectors("property-names.json");
  int bodies = 0;
  for (const JsonValue& vector : vectors["set_rules"].items) {
    SCOPED_TRACE(vector["id"].text);
    std::string body = vector["body"].text;
    if (vector.Has("custom_properties")) {
      body = "{" + std::string(kKeys);
      const auto count = static_cast<int>(vector["custom_properties"].number);
      const auto nulls = static_cast<int>(vector["null_properties"].number);
      for (int i = 0; i < count; ++i) {
        body += ",\"n" + std::to_string(i) + "\":" + (i < nulls ? "null" : "1");
      }
      body += "}";
    }
    if (body.empty()) continue;  // Merges.
    ++bodies;
    Entity entity;
    const std::optional<ServiceError> error =
        JsonBodyReader::OfThisThread().ReadInsert(PaddedBody(body), &entity);
    const std::string code(error ? ErrorCodeName(error->code)
                                 : ViolationName(ViolationOf(ValidateEntity(entity))));
    EXPECT_EQ(code, vector["valid"].boolean ? "None" : vector["code"].text);
  }
  EXPECT_EQ(bodies, 5);
}

// ---- What clients send.

TEST(JsonReaderTest, TheBodyOfThePythonClient) {
  const Entity entity = ReadInsert(
      R"({"PartitionKey": "p'q", "PartitionKey@odata.type": "Edm.String", "RowKey": "r 1+\u00fc", "RowKey@odata.type": "Edm.String",)"
      R"( "s": "str", "s@odata.type": "Edm.String", "i": 5, "l": "1099511627776", "l@odata.type": "Edm.Int64", "d": 3.0,)"
      R"( "d@odata.type": "Edm.Double", "b": true, "bin": "AQI=", "bin@odata.type": "Edm.Binary"})");
  Entity expected("p'q", "r 1+\xC3\xBC");
  expected.Set("s", "str").Set("i", 5).Set("l", int64_t{1099511627776}).Set("d", 3.0).Set("b", true);
  expected.Set("bin", Binary{std::string("\1\2", 2)});
  EXPECT_EQ(entity, expected);
}

TEST(JsonReaderTest, TheBodyOfTheJavaScriptClient) {
  const Entity entity = ReadInsert(
      "{\"PartitionKey\":\"p'q\",\"RowKey\":\"r 1+\xC3\xBC\",\"s\":\"str\",\"i\":5,\"big\":30000000000,"
      R"("l":"1099511627776","l@odata.type":"Edm.Int64","d3":"3.0","d3@odata.type":"Edm.Double",)"
      R"("dt":"2024-05-06T07:08:09.123Z","dt@odata.type":"Edm.DateTime","n":null})");
  EXPECT_EQ(entity.property_count(), 6u);
  EXPECT_EQ(*entity.GetDouble("big"), 3e10);
  EXPECT_EQ(*entity.GetDouble("d3"), 3.0);
  EXPECT_NE(entity.GetDateTime("dt"), nullptr);
  EXPECT_FALSE(entity.Has("n"));
}

// A line of base64 has 60 digits there.
TEST(JsonReaderTest, ABinaryInLinesAsTheRubyClientWritesIt) {
  const Entity entity = ReadInsert(R"({"PartitionKey":"p","RowKey":"r","b@odata.type":"Edm.Binary","b":")" +
                                   std::string(60, 'A') + R"(\nAQI="})");
  Entity expected("p", "r");
  expected.Set("b", Binary{std::string(45, '\0') + "\1\2"});
  EXPECT_EQ(entity, expected);
}

TEST(JsonReaderTest, TheBodyOfTheDotNetClient) {
  const Entity entity = ReadInsert(
      R"({"odata.etag":"W/\u0022datetime\u00272025\u0027\u0022","PartitionKey":"o\u0027neil","RowKey":"","Timestamp":null,)"
      R"("Name@odata.type":"Edm.String","Name":"it\u0027s"})");
  EXPECT_EQ(entity, Entity("o'neil", "").Set("Name", "it's"));
}

TEST(JsonReaderTest, WhatTheServiceIgnoresIsIgnored) {
  const Entity entity = ReadMembers(
      R"("Timestamp":{"x":[1,{"y":null}]},"odata.metadata":"u","odata.x":[],"odata.type@odata.type":7,)"
      R"("a@odata.type":"Edm.Int64","gone@odata.type":"Edm.Nonsense","PartitionKey@odata.type":"Edm.Int32",)"
      R"("Timestamp@odata.type":"Edm.DateTime","a":"1","a@odata.type@odata.type":{"deep":true})");
  EXPECT_EQ(entity, Entity("p", "r").Set("a", int64_t{1}));
}

TEST(JsonReaderTest, PropertiesKeepTheOrderOfTheirValues) {
  const Entity entity = ReadMembers(R"("c@odata.type":"Edm.Int32","b":1,"a":2,"c":"3")");
  ASSERT_EQ(entity.property_count(), 3u);
  EXPECT_EQ(entity.properties()[0].name, "b");
  EXPECT_EQ(entity.properties()[2].name, "c");
}

TEST(JsonReaderTest, AByteOrderMarkAndWhiteSpaceAreTolerated) {
  EXPECT_EQ(ReadInsert("\xEF\xBB\xBF { \"PartitionKey\" : \"p\" ,\r\n\t\"RowKey\":\"r\" , \"a\" : 1 } \n"),
            Entity("p", "r").Set("a", 1));
}

// As the entities of a batch are read.
TEST(JsonReaderTest, AnEntityThatIsReadIntoAgainKeepsNothingOfTheOneBefore) {
  const std::string long_text(100, 'x');
  const std::vector<std::string> bodies = {
      R"({"PartitionKey":"p","RowKey":"r","a":")" + long_text + R"(","b":1,"c":true})",
      R"({"PartitionKey":"q","RowKey":"a row with a longer key than the one before","a":2,"b":"y"})",
      R"({"PartitionKey":"p","RowKey":"r"})",
      R"({"PartitionKey":"p","RowKey":"r","d@odata.type":"Edm.Binary","d":"AAEC","a":null,"e":"","f":1.5})",
      R"({"PartitionKey":"p","RowKey":"r","a":"short","b":"b","c":"c","d":"d"})"};
  Entity again;
  for (const std::string& body : bodies) {
    ASSERT_FALSE(JsonBodyReader::OfThisThread().ReadInsert(PaddedBody(body), &again).has_value()) << body;
    EXPECT_EQ(again, ReadInsert(body)) << body;
    const std::string refused =
        R"({"PartitionKey":"p","RowKey":"r","b":7,"a@odata.type":"Edm.Int64","a":"x"})";
    ASSERT_TRUE(JsonBodyReader::OfThisThread().ReadInsert(PaddedBody(refused), &again).has_value());
  }
}

TEST(JsonReaderTest, NamesMayBeEscaped) {
  EXPECT_EQ(
      ReadInsert(R"({"Partition\u004bey":"p","RowKey":"r","a@odata\u002etype":"Edm.Int64","\u0061":"1"})"),
      Entity("p", "r").Set("a", int64_t{1}));
}

TEST(JsonReaderTest, ANullAnnotationMeansNone) {
  EXPECT_EQ(ReadMembers(R"("a":1,"a@odata.type":null)"), Entity("p", "r").Set("a", 1));
}

TEST(JsonReaderTest, ParsersAreReusedAfterRefusalsAndLargeBodies) {
  EXPECT_EQ(MembersRefusal(R"("a":tru)"), "InvalidInput");
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(*ReadMembers("\"a\":\"" + large + "\"").GetString("a"), large);
  EXPECT_EQ(ReadMembers(R"("a":1)"), Entity("p", "r").Set("a", 1));
  for (int i = 0; i < 70'000; ++i) ASSERT_EQ(InsertRefusal("{}"), "PropertiesNeedValue");  // Stamps wrap.
  EXPECT_EQ(ReadMembers(R"("a":1)"), Entity("p", "r").Set("a", 1));
}

// ---- Refusals.

TEST(JsonReaderTest, WhatIsNoJsonObjectIsInvalidInput) {
  for (const std::string_view body : {"",
                                      " ",
                                      "null",
                                      "1",
                                      "\"x\"",
                                      "[]",
                                      "[{}]",
                                      "{",
                                      "}",
                                      "{}x",
                                      "{}{}",
                                      "{} 1",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{,}",
                                      "{\"a\":1 \"b\":2}",
                                      "{'a':1}",
                                      "{a:1}",
                                      "{\"a\":1",
                                      "{\"a\":\"x}",
                                      "{\"a\":1]",
                                      "{\"a\":tru}",
                                      "{\"a\":truex}",
                                      "{\"a\":nul}",
                                      "{\"a\":+1}",
                                      "{\"a\":01}",
                                      "{\"a\":1.}",
                                      "{\"a\":.5}",
                                      "{\"a\":-}",
                                      "{\"a\":1e}",
                                      "{\"a\":0x1}",
                                      "{\"a\":NaN}",
                                      "{\"a\":1 2}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":\"\\u12\"}",
                                      "{\"a\":\"\\ud83dx\"}",
                                      "{\"a\":\"\\udc00\"}",
                                      "{\"\\udc00\":1}",
                                      "{\"a\":\"\x01\"}",
                                      "{\"a\":\"\xFF\"}",
                                      "{\"a\":\"\xED\xA0\x80\"}",
                                      "{\"\xC3\":1}",
                                      "\xEF\xBB{}",
                                      "{\"odata.x\":[1 2]}",
                                      "{\"odata.x\":[1,]}",
                                      "{\"odata.x\":{\"a\" 1}}",
                                      "{\"Timestamp\":xyz}"}) {
    EXPECT_EQ(InsertRefusal(body), "InvalidInput") << body;
    EXPECT_EQ(UpdateRefusal(body), "InvalidInput") << body;
  }
}

TEST(JsonReaderTest, DeepNestingIsRefusedAtOnce) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(MembersRefusal("\"a\":" + deep), "InvalidInput");
  EXPECT_EQ(MembersRefusal("\"odata.a\":" + deep), "InvalidInput");
  EXPECT_EQ(MembersRefusal("\"odata.a\":[[[[[1]]]]]"), "");
}

TEST(JsonReaderTest, AnyNameTwiceIsADuplicate) {
  for (const std::string_view members :
       {R"("a":1,"a":1)", R"("a":1,"\u0061":2)", R"("a":null,"a":1)", R"("RowKey":"r")",
        R"("a":1,"a@odata.type":"Edm.Int32","a@odata.type":"Edm.Int32")", R"("odata.x":1,"odata.x":1)",
        R"("Timestamp":null,"Timestamp":null)"}) {
    EXPECT_EQ(MembersRefusal(members), "DuplicatePropertiesSpecified") << members;
  }
}

TEST(JsonReaderTest, AnInsertNeedsBothKeysAsStrings) {
  for (const std::string_view body :
       {"{}", R"({"PartitionKey":"p"})", R"({"RowKey":"r"})", R"({"PartitionKey":null,"RowKey":"r"})",
        R"({"PartitionKey":"p","RowKey":null})",
        R"({"PartitionKey@odata.type":"Edm.String","RowKey":"r"})"}) {
    EXPECT_EQ(InsertRefusal(body), "PropertiesNeedValue") << body;
  }
  EXPECT_EQ(InsertRefusal(R"({"PartitionKey":"p","RowKey":5})"), "InvalidInput");
  EXPECT_EQ(InsertRefusal(R"({"PartitionKey":true,"RowKey":"r"})"), "InvalidInput");
}

TEST(JsonReaderTest, AnUpdateTakesItsKeysFromTheUrl) {
  Entity entity;
  for (const std::string_view body :
       {R"({"a":1})", R"({"PartitionKey":"p","RowKey":"r","a":1})", R"({"PartitionKey":null,"a":1})"}) {
    ASSERT_FALSE(JsonBodyReader::OfThisThread().ReadUpdate(PaddedBody(body), "p", "r", &entity).has_value());
    EXPECT_EQ(entity, Entity("p", "r").Set("a", 1)) << body;
  }
  EXPECT_EQ(UpdateRefusal("{}"), "");
  EXPECT_EQ(UpdateRefusal(R"({"PartitionKey":"P"})"), "InvalidInput");
  EXPECT_EQ(UpdateRefusal(R"({"RowKey":"r "})"), "InvalidInput");
  EXPECT_EQ(UpdateRefusal(R"({"RowKey":5})"), "InvalidInput");
}

TEST(JsonReaderTest, ANumberBeyondAnyTypeIsJudgedByItsFirstDigit) {
  const std::string zeros(5'000, '0');
  for (const std::string& huge :
       {"1" + zeros + "e-1", "-1" + zeros + "e-1", "1" + zeros, std::string("1e5000"),
        "0." + zeros + "1e99999", std::string("1e99999999999999999999")}) {
    EXPECT_EQ(MembersRefusal("\"d\":" + huge), "InvalidInput") << huge.substr(0, 30);
  }
  for (const std::string& tiny :
       {"0." + zeros + "1", "-0." + zeros + "1", "0." + zeros + "1e+2", std::string("1e-5000"),
        "1" + zeros + "e-99999", std::string("1e-99999999999999999999"),
        std::string("0e99999999999999999999")}) {
    Entity entity;
    ASSERT_FALSE(JsonBodyReader::OfThisThread()
                     .ReadUpdate(PaddedBody("{\"d\":" + tiny + "}"), "p", "r", &entity)
                     .has_value())
        << tiny.substr(0, 30);
    EXPECT_EQ(entity, Entity("p", "r").Set("d", tiny.starts_with('-') ? -0.0 : 0.0)) << tiny.substr(0, 30);
  }
}

TEST(JsonReaderTest, ATooEarlyDateIsToldWithItsName) {
  Entity entity;
  const std::optional<ServiceError> error = JsonBodyReader::OfThisThread().ReadUpdate(
      PaddedBody(R"({"when":"1600-12-31T23:59:59Z","when@odata.type":"Edm.DateTime"})"), "p", "r", &entity);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kOutOfRangeInput);
  EXPECT_THAT(error->message,
              HasSubstr("The 'when' parameter of value '1600-12-31T23:59:59Z' is out of range."));
}

TEST(JsonReaderTest, ALongDateIsToldInPart) {
  Entity entity;
  const std::string body = R"({"when":"1500-01-01T00:00:00.)" + std::string(100'000, '1') +
                           R"(Z","when@odata.type":"Edm.DateTime"})";
  const std::optional<ServiceError> error =
      JsonBodyReader::OfThisThread().ReadUpdate(PaddedBody(body), "p", "r", &entity);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kOutOfRangeInput);
  EXPECT_THAT(error->message, HasSubstr("of value '1500-01-01T00:00:00.1111"));
  EXPECT_LT(error->message.size(), 200u);
}

TEST(JsonReaderTest, NumberAndNamesAreRefusedBeforeValues) {
  std::string many = R"("x":"y","x@odata.type":"Edm.Int32")";
  EXPECT_EQ(MembersRefusal(many), "InvalidInput");
  EXPECT_EQ(MembersRefusal(many + R"(,"a-b":1)"), "PropertyNameInvalid");
  EXPECT_EQ(MembersRefusal(many + ",\"" + std::string(256, 'n') + "\":1"), "PropertyNameTooLong");
  EXPECT_EQ(InsertRefusal(R"({"PartitionKey":"a/b","RowKey":"r",)" + many + "}"), "OutOfRangeInput");
  for (int i = 0; i < 252; ++i) many += ",\"n" + std::to_string(i) + "\":1";
  EXPECT_EQ(MembersRefusal(many + R"(,"a-b":1)"), "TooManyProperties");
}

TEST(JsonReaderTest, AHostileNumberOfNamesCostsLittle) {
  std::string members = "\"a\":1";
  for (int i = 0; i < 200'000; ++i) members += ",\"n" + std::to_string(i) + "\":null";
  EXPECT_EQ(MembersRefusal(members), "TooManyProperties");
}

// ---- Tables.

std::string TableNameOrRefusal(std::string_view body) {
  std::string name = "old";
  const std::optional<ServiceError> error =
      JsonBodyReader::OfThisThread().ReadTableName(PaddedBody(body), &name);
  return error ? std::string(ErrorCodeName(error->code)) : name;
}

TEST(JsonReaderTest, ATableBodyGivesTheName) {
  EXPECT_EQ(TableNameOrRefusal(R"({"TableName":"orders"})"), "orders");
  EXPECT_EQ(
      TableNameOrRefusal(R"({"odata.type":"x.Tables","TableName":"a","TableName@odata.type":"Edm.String"})"),
      "a");
  EXPECT_EQ(TableNameOrRefusal(R"({"TableName":""})"), "");
  EXPECT_EQ(TableNameOrRefusal("{}"), "PropertiesNeedValue");
  EXPECT_EQ(TableNameOrRefusal(R"({"TableName":null})"), "PropertiesNeedValue");
  EXPECT_EQ(TableNameOrRefusal(R"({"TableName":5})"), "InvalidInput");
  EXPECT_EQ(TableNameOrRefusal(R"({"TableName":"a","TableName":"a"})"), "DuplicatePropertiesSpecified");
  EXPECT_EQ(TableNameOrRefusal("orders"), "InvalidInput");
}

TEST(JsonReaderVectorTest, EveryTableNameArrivesUnchanged) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("table-names.json");
  for (const JsonValue& vector : vectors["names"].items) {
    EXPECT_EQ(TableNameOrRefusal("{\"TableName\":\"" + vector["name"].text + "\"}"), vector["name"].text);
    ++cases;
  }
  EXPECT_EQ(cases, 45);
}

}  // namespace
}  // namespace partita::http

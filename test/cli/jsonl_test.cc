#include "api/cli/jsonl.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <random>

#include "api/names.h"
#include "engine/base/text.h"
#include "test/api/vector_file.h"
#include "test/cli/random_entity.h"

namespace partita {
namespace {

using ::testing::HasSubstr;

std::string WithKeys(std::string_view members) {
  std::string json = R"({"PartitionKey":"p","RowKey":"r")";
  if (!members.empty()) json.append(",").append(members);
  return json + "}";
}

TEST(JsonLinesTest, EveryValueIsReadAndWrittenAsTheServiceDoes) {
  int cases = 0;
  JsonEntityParser parser;
  const JsonValue vectors = LoadVectors("json-values.json");
  for (const JsonValue& vector : vectors["values"].items) {
    if (IsOutrankedValue(vector)) continue;
    const std::string& id = vector["id"].text;
    const std::string& expect = vector["expect"].text;
    SCOPED_TRACE(id);
    ++cases;
    // v65 gives the PartitionKey itself.
    const std::string json =
        id == "v65" ? "{" + vector["json"].text + R"(,"RowKey":"r"})" : WithKeys(vector["json"].text);
    const Result<Entity> entity = parser.Parse(json);
    EXPECT_EQ(entity.ok(), expect != "error") << entity.status().ToString();
    if (!entity.ok()) {
      EXPECT_EQ(ViolationName(ViolationOf(entity.status())), vector["code"].text)
          << entity.status().ToString();
      continue;
    }
    if (expect.starts_with("(")) {  // "(not stored)", "(ignored)"
      EXPECT_EQ(entity->property_count(), 0u);
      continue;
    }
    ASSERT_EQ(entity->property_count(), 1u);
    EXPECT_EQ(EdmTypeName(entity->properties()[0].value.type()), expect);
    std::string written;
    AppendJsonLine(&written, *entity);
    EXPECT_EQ(written, WithKeys(vector["minimal"].text) + "\n");
  }
  EXPECT_EQ(cases, 66);
  EXPECT_EQ(vectors["accept"].items.size(), 7u);  // Media types: the HTTP face.
}

// The control information among the property names, and the JSON bodies among the set rules.
TEST(JsonLinesTest, ControlInformationIsReadAndNotStored) {
  JsonEntityParser parser;
  int cases = 0;
  const JsonValue vectors = LoadVectors("property-names.json");
  for (const JsonValue& vector : vectors["names"].items) {
    if (!vector["note"].text.starts_with("control information")) continue;
    const Result<Entity> entity = parser.Parse(WithKeys("\"" + vector["name"].text + "\":\"x\""));
    ASSERT_TRUE(entity.ok()) << vector["name"].text << entity.status().ToString();
    EXPECT_EQ(entity->property_count(), 0u);
    ++cases;
  }
  EXPECT_EQ(cases, 8);
  for (const char* timestamp : {"null", "5", "\"x\"", "[1,{\"a\":2}]"}) {
    EXPECT_TRUE(parser.Parse(WithKeys("\"Timestamp\":" + std::string(timestamp))).ok()) << timestamp;
  }
  for (const JsonValue& vector : vectors["set_rules"].items) {
    if (!vector.Has("body")) continue;
    const Result<Entity> entity = parser.Parse(vector["body"].text);
    EXPECT_EQ(entity.ok(), vector["valid"].boolean);
    if (!entity.ok()) EXPECT_EQ(ViolationName(ViolationOf(entity.status())), vector["code"].text);
    ++cases;
  }
  EXPECT_EQ(cases, 10);
}

TEST(JsonLinesTest, AnIntegerIsNeverRoundedUnasked) {
  JsonEntityParser parser;
  const auto value_of = [&](std::string_view members) {
    const Result<Entity> entity = parser.Parse(WithKeys(members));
    return entity.ok() ? *entity->Get("D") : PropertyValue(entity.status().message());
  };
  EXPECT_EQ(value_of(R"("D":9007199254740992)"), PropertyValue(9007199254740992.0));
  EXPECT_EQ(value_of(R"("D":-2147483649)"), PropertyValue(-2147483649.0));
  EXPECT_EQ(value_of(R"("D":18446744073709551616)"), PropertyValue(18446744073709551616.0));
  EXPECT_EQ(value_of(R"("D":-0)"), PropertyValue(0));
  EXPECT_EQ(value_of(R"("D":9007199254740993.0)"), PropertyValue(9007199254740992.0)) << "no integer";
  const std::string largest = "179769313486231570814527423731704356798070" + std::string(267, '0');
  for (const std::string& rounded : {std::string("9007199254740993"), std::string("-9007199254740993"),
                                     std::string("9223372036854775807")}) {
    const PropertyValue refusal = value_of("\"D\":" + rounded);
    ASSERT_NE(refusal.if_string(), nullptr) << rounded;
    EXPECT_THAT(*refusal.if_string(), HasSubstr(rounded)) << rounded;
    EXPECT_THAT(*refusal.if_string(), HasSubstr(R"("D@odata.type":"Edm.Int64" beside it)")) << rounded;
    EXPECT_EQ(value_of(R"("D@odata.type":"Edm.Int64","D":)" + rounded),
              PropertyValue(int64_t{std::stoll(rounded)}));
  }
  for (const std::string& rounded : {std::string("18446744073709551617"), largest, "-" + largest}) {
    const PropertyValue refusal = value_of("\"D\":" + rounded);
    ASSERT_NE(refusal.if_string(), nullptr) << rounded;
    EXPECT_THAT(*refusal.if_string(), HasSubstr(R"("D@odata.type":"Edm.Double" beside it)")) << rounded;
    EXPECT_EQ(value_of(R"("D@odata.type":"Edm.Double","D":)" + rounded), PropertyValue(std::stod(rounded)));
  }
}

TEST(JsonLinesTest, NullsAreDroppedBeforeCounting) {
  std::string members;
  for (int i = 0; i < 252; ++i) members += "\"p" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  JsonEntityParser parser;
  EXPECT_TRUE(parser.Parse(WithKeys(members + "\"n\":null")).ok());
  EXPECT_EQ(ViolationOf(parser.Parse(WithKeys(members + "\"n\":1")).status()), Violation::kTooManyProperties);
}

TEST(JsonLinesTest, KeysMustBeThere) {
  JsonEntityParser parser;
  const auto violation = [&](std::string_view json) { return ViolationOf(parser.Parse(json).status()); };
  EXPECT_EQ(violation(R"({"PartitionKey":"p"})"), Violation::kPropertiesNeedValue);
  EXPECT_EQ(violation(R"({"RowKey":"r","PartitionKey":null})"), Violation::kPropertiesNeedValue);
  EXPECT_EQ(violation(R"({"RowKey":"r","PartitionKey":true})"), Violation::kInvalidInput);
  EXPECT_EQ(violation(R"({"RowKey":"a/b","PartitionKey":""})"), Violation::kOutOfRangeInput);
  EXPECT_EQ(violation(R"({"RowKey":"","PartitionKey":""})"), Violation::kNone);
}

TEST(JsonLinesTest, BadJsonIsRefused) {
  JsonEntityParser parser;
  for (const char* json : {"",
                           " ",
                           "{",
                           "}",
                           "[]",
                           "5",
                           "null",
                           "\"x\"",
                           "{} {}",
                           "{},",
                           R"({"PartitionKey":"p","RowKey":"r"} x)",
                           R"({"PartitionKey":"p","RowKey":"r",})",
                           R"({"PartitionKey":"p" "RowKey":"r"})",
                           R"({"PartitionKey":"p","RowKey":"r","a":01})",
                           R"({"PartitionKey":"p","RowKey":"r","a":1.})",
                           R"({"PartitionKey":"p","RowKey":"r","a":tru})",
                           R"({"PartitionKey":"p","RowKey":"r","a":nullx})",
                           R"({"PartitionKey":"p","RowKey":"r","a":1 2})",
                           R"({"PartitionKey":"p","RowKey":"r","a":"x)",
                           R"({"PartitionKey":"p","RowKey":"r","a"})",
                           R"({"PartitionKey":"p","RowKey":"r","a":+1})",
                           R"({"PartitionKey":"p","RowKey":"r","a":.5})",
                           R"({"PartitionKey":"p","RowKey":"r","a":"\x"})",
                           "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":\"\x01\"}",
                           "{\"PartitionKey\":\"\xFF\",\"RowKey\":\"r\"}",
                           R"({"PartitionKey":"p","RowKey":"r","a":NaN})",
                           R"({"PartitionKey":"p","RowKey":"r",a:1})",
                           R"({PartitionKey:"p","RowKey":"r"})",
                           R"({"PartitionKey":"p","RowKey":"r"]})"}) {
    const Result<Entity> entity = parser.Parse(json);
    ASSERT_FALSE(entity.ok()) << json;
    EXPECT_EQ(ViolationOf(entity.status()), Violation::kInvalidInput) << json;
  }
  EXPECT_TRUE(parser.Parse(WithKeys("")).ok()) << "the parser goes on after errors";
  EXPECT_TRUE(parser.Parse("\xEF\xBB\xBF" + WithKeys("")).ok()) << "a byte order mark is tolerated";
}

// The DOM parser checks every byte, so it is the oracle for "is this JSON".
TEST(JsonLinesTest, NothingThatIsNoJsonPassesAfterMutations) {
  const uint64_t seed = 2024;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  JsonEntityParser parser;
  simdjson::dom::parser oracle;
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < 60'000; ++round) {
    std::string json =
        WithKeys(R"("a":-1.5e3,"b@odata.type":"Edm.Int64","b":"5","c":[1,{"x":null}],"d":true)");
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % json.size();
      static constexpr std::string_view kBytes = "{}[]:,\"\\ 0123.eE+-truefalsnl\x01\xC3\n";
      switch (random() % 3) {
        case 0:
          json[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          json.erase(at, 1 + random() % 4);
          break;
        default:
          json.insert(at, 1, kBytes[random() % kBytes.size()]);
      }
      if (json.empty()) json = "{";
    }
    // Half of the time without the array, which is refused whatever its form.
    if (random() % 2 == 0) {
      const size_t array = json.find(",\"c\":[1,{\"x\":null}]");
      if (array != json.npos) json.erase(array, 19);
    }
    const bool is_json = oracle.parse(json).error() == simdjson::SUCCESS;
    const Result<Entity> entity = parser.Parse(json);
    if (entity.ok()) ASSERT_TRUE(is_json) << json;
    (entity.ok() ? accepted : refused) += 1;
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 1000);
}

TEST(JsonLinesTest, RandomEntitiesRoundTrip) {
  const uint64_t seed = 12;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  JsonEntityParser parser;
  for (int round = 0; round < 5'000; ++round) {
    const Entity entity = RandomEntity(&random);
    std::string line;
    AppendJsonLine(&line, entity);
    ASSERT_EQ(line.find('\n'), line.size() - 1) << "one line";
    const Result<Entity> read = parser.Parse(line);
    ASSERT_TRUE(read.ok()) << read.status().ToString() << line;
    ASSERT_EQ(*read, entity) << line;
  }
}

TEST(JsonLinesTest, ABadLineIsToldWithItsNumberAndTheStreamGoesOn) {
  const std::string input = "\xEF\xBB\xBF" + WithKeys("\"n\":1") + "\n\n  \r\n{bad\r\n" +
                            WithKeys("\"a-b\":1") + "\n" + WithKeys("\"n\":3");
  JsonLinesReader reader(std::make_unique<MemorySource>(input, 7));
  EXPECT_EQ(*reader.Next()->value().GetInt32("n"), 1);
  EXPECT_EQ(reader.line_number(), 1u);
  const Result<Entity> bad = *reader.Next();
  EXPECT_THAT(bad.status().message(), HasSubstr("line 4: not a JSON object"));
  const Result<Entity> name = *reader.Next();
  EXPECT_THAT(name.status().message(), HasSubstr("line 5: property name \"a-b\" holds '-'"));
  EXPECT_EQ(ViolationOf(name.status()), Violation::kPropertyNameInvalid);
  EXPECT_EQ(*reader.Next()->value().GetInt32("n"), 3);
  EXPECT_EQ(reader.line_number(), 6u);
  EXPECT_FALSE(reader.Next().has_value());
}

// covers: F77
TEST(JsonLinesTest, AnOverlongLineIsSkippedInBoundedMemory) {
  const std::string input = WithKeys("") + "\n" + std::string(5000, 'x') + "\n" + WithKeys("\"n\":1") + "\n";
  JsonLinesReader reader(std::make_unique<MemorySource>(input, 100), /*record_bytes_max=*/100);
  EXPECT_TRUE(reader.Next()->ok());
  EXPECT_EQ(reader.Next()->status().message(), "line 2: has 5001 bytes; allowed are 100");
  EXPECT_EQ(*reader.Next()->value().GetInt32("n"), 1);
  EXPECT_FALSE(reader.Next().has_value());
}

TEST(JsonLinesTest, ReadingResumesWhereAnEarlierReaderStopped) {
  std::string input;
  for (int i = 0; i < 50; ++i) input += i % 7 == 3 ? "oops\n" : WithKeys("\"n\":" + std::to_string(i)) + "\n";
  for (int stop = 1; stop < 50; ++stop) {
    JsonLinesReader first(std::make_unique<MemorySource>(input));
    for (int i = 0; i < stop; ++i) ASSERT_TRUE(first.Next().has_value());
    JsonLinesReader second(std::make_unique<MemorySource>(input, 13));
    ASSERT_TRUE(second.SkipTo(first.resume_offset(), first.resume_line()).ok());
    while (std::optional<Result<Entity>> expected = first.Next()) {
      const std::optional<Result<Entity>> got = second.Next();
      ASSERT_TRUE(got.has_value());
      ASSERT_EQ(got->ok(), expected->ok());
      ASSERT_EQ(second.line_number(), first.line_number());
      if (got->ok()) ASSERT_EQ(got->value(), expected->value());
    }
    ASSERT_FALSE(second.Next().has_value());
  }
  JsonLinesReader beyond(std::make_unique<MemorySource>(input));
  EXPECT_EQ(beyond.SkipTo(input.size() + 1, 99).code(), Code::kInvalidArgument);
}

class FailingSource : public ByteSource {
 public:
  explicit FailingSource(std::string_view bytes) : memory_(bytes) {}
  Result<size_t> Read(char* to, size_t size) override {
    PARTITA_ASSIGN(const size_t count, memory_.Read(to, size));
    if (count == 0) return Status::IoError("injected");
    return count;
  }

 private:
  MemorySource memory_;
};

TEST(JsonLinesTest, AFailedReadIsAnErrorNeverTheEnd) {
  const std::string input = WithKeys("") + "\n" + WithKeys("");
  JsonLinesReader reader(std::make_unique<FailingSource>(input));
  EXPECT_TRUE(reader.Next()->ok());
  EXPECT_EQ(reader.Next()->code(), Code::kIoError) << "the last line may be cut off";
  EXPECT_FALSE(reader.Next().has_value());
}

}  // namespace
}  // namespace partita

#include "api/http/json_writer.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "api/date_time.h"
#include "api/entity.h"
#include "api/etag.h"
#include "api/http/json_reader.h"
#include "api/http/json_text.h"
#include "engine/base/user_key.h"
#include "test/api/vector_file.h"
#include "test/http/padded_body.h"

namespace partita::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const UrlBase kBase{.secure = true, .host = "HOST"};

uint64_t Ticks(std::string_view time) { return ParseDateTime(time)->ticks; }

// What a client gets of an entity. Keys go in as a scan has them: ordered text.
struct Shown {
  MetadataLevel level = MetadataLevel::kMinimal;
  std::optional<std::string_view> select;
  uint64_t ticks = Ticks("2025-01-15T10:20:30.1234567Z");
  std::string_view table = "orders";
};

std::string Show(const Entity& entity, const Shown& shown = {}) {
  Selection selection;
  EXPECT_FALSE(Selection::Parse(shown.select, &selection).has_value());
  const EntityFormat format(EntityFormat::Shape::kLone, shown.level, kBase, "contoso", shown.table,
                            selection);
  const std::string record = EncodeEntityRecord(entity.properties());
  const std::string partition_key = OrderedText(entity.partition_key());
  const std::string row_key = OrderedText(entity.row_key());
  std::string out;
  format.AppendEntity(&out, {partition_key, row_key, shown.ticks, EntityRecordView(record)});
  return out;
}

Entity Order() {
  Entity order("cust-17", "0001");
  order.Set("item", "lamp").Set("qty", 2).Set("price", 12.0).Set("paid", false);
  order.Set("ref", int64_t{9007199254740993}).Set("due", *ParseDateTime("2025-02-01T00:00:00.000Z"));
  return order;
}

// ---- The worked examples of the reference.

TEST(WorkedExampleTest, InsertWithTheEntityReturned) {  // 22.4
  EXPECT_EQ(
      Show(Order()),
      R"({"odata.metadata":"https://HOST/$metadata#orders/@Element","odata.etag":"W/\"datetime'2025-01-15T10%3A20%3A30.1234567Z'\"","PartitionKey":"cust-17","RowKey":"0001","Timestamp":"2025-01-15T10:20:30.1234567Z","item":"lamp","qty":2,"price":12.0,"paid":false,"ref@odata.type":"Edm.Int64","ref":"9007199254740993","due@odata.type":"Edm.DateTime","due":"2025-02-01T00:00:00Z"})");
}

TEST(WorkedExampleTest, KeysThatNeedCare) {  // 22.4, 22.5
  std::string url;
  AppendEntityUrl(&url, kBase, "orders", "cust-17", "0001");
  EXPECT_EQ(url, "https://HOST/orders(PartitionKey='cust-17',RowKey='0001')");
  url.clear();
  AppendEntityUrl(&url, kBase, "orders", "o'neil", "a b+c");
  EXPECT_EQ(url, "https://HOST/orders(PartitionKey='o''neil',RowKey='a%20b%2Bc')");
}

TEST(WorkedExampleTest, PointGetWithoutMetadata) {  // 22.6
  EXPECT_EQ(Show(Order(), {.level = MetadataLevel::kNone, .select = "item,ref,colour"}),
            R"({"item":"lamp","ref":"9007199254740993","colour":null})");
}

TEST(WorkedExampleTest, PointGetWithFullMetadata) {  // 22.7
  EXPECT_EQ(
      Show(Order(), {.level = MetadataLevel::kFull}),
      R"~({"odata.metadata":"https://HOST/$metadata#orders/@Element","odata.type":"contoso.orders","odata.id":"https://HOST/orders(PartitionKey='cust-17',RowKey='0001')","odata.etag":"W/\"datetime'2025-01-15T10%3A20%3A30.1234567Z'\"","odata.editLink":"orders(PartitionKey='cust-17',RowKey='0001')","PartitionKey":"cust-17","RowKey":"0001","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2025-01-15T10:20:30.1234567Z","item":"lamp","qty":2,"price":12.0,"paid":false,"ref@odata.type":"Edm.Int64","ref":"9007199254740993","due@odata.type":"Edm.DateTime","due":"2025-02-01T00:00:00Z"})~");
}

TEST(WorkedExampleTest, QueryPages) {  // 22.8
  const EntityFormat format(EntityFormat::Shape::kList, MetadataLevel::kNone, kBase, "contoso", "orders",
                            Selection());
  const std::string record = EncodeEntityRecord(Order().properties());
  const EntityRow row{"cust-17", "0001", Ticks("2025-01-15T10:20:30.1234567Z"), EntityRecordView(record)};
  std::string page;
  format.AppendListStart(&page);
  format.AppendListEntity(&page, row);
  AppendListEnd(&page);
  EXPECT_EQ(
      page,
      R"({"value":[{"PartitionKey":"cust-17","RowKey":"0001","Timestamp":"2025-01-15T10:20:30.1234567Z","item":"lamp","qty":2,"price":12.0,"paid":false,"ref":"9007199254740993","due":"2025-02-01T00:00:00Z"}]})");
  page.clear();
  format.AppendListStart(&page);
  AppendListEnd(&page);
  EXPECT_EQ(page, R"({"value":[]})");
}

TEST(WorkedExampleTest, CreateTable) {  // 22.2
  std::string body;
  AppendTable(&body, MetadataLevel::kMinimal, kBase, "contoso", "orders");
  EXPECT_EQ(body, R"({"odata.metadata":"https://HOST/$metadata#Tables/@Element","TableName":"orders"})");
  const UrlBase real{.secure = true, .host = "contoso.table.core.windows.net"};
  body.clear();
  AppendTable(&body, MetadataLevel::kMinimal, real, "contoso", "orders");
  EXPECT_EQ(body.size(), 106u);
  std::string url;
  AppendTableUrl(&url, kBase, "orders");
  EXPECT_EQ(url, "https://HOST/Tables('orders')");
}

TEST(WorkedExampleTest, Errors) {  // 22.3, 22.12, 22.13
  std::string body;
  AppendJsonError(&body, ServiceError(ErrorCode::kTableAlreadyExists),
                  {"5f2c0b1e-1002-0011-2233-445566000001", Ticks("2025-01-15T10:20:31Z"), {}});
  EXPECT_EQ(
      body,
      R"({"odata.error":{"code":"TableAlreadyExists","message":{"lang":"en-US","value":"The table specified already exists.\nRequestId:5f2c0b1e-1002-0011-2233-445566000001\nTime:2025-01-15T10:20:31.0000000Z"}}})");
  body.clear();
  AppendJsonError(&body, ServiceError(ErrorCode::kEntityAlreadyExists),
                  {"5f2c0b1e-1002-0011-2233-445566000009", Ticks("2025-01-15T10:22:01Z"), 0});
  EXPECT_EQ(
      body,
      R"({"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"0:The specified entity already exists.\nRequestId:5f2c0b1e-1002-0011-2233-445566000009\nTime:2025-01-15T10:22:01.0000000Z"}}})");
  body.clear();
  AppendXmlError(&body, ServiceError(ErrorCode::kAuthenticationFailed),
                 {"5f2c0b1e-1002-0011-2233-44556600000a", Ticks("2025-01-15T10:23:00Z"), {}},
                 XmlErrorForm::kService);
  EXPECT_EQ(
      body,
      R"(<?xml version="1.0" encoding="utf-8"?><m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><m:code>AuthenticationFailed</m:code><m:message xml:lang="en-US">Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.
RequestId:5f2c0b1e-1002-0011-2233-44556600000a
Time:2025-01-15T10:23:00.0000000Z</m:message></m:error>)");
}

// ---- Errors.

TEST(ErrorBodyTest, TextOfAnyKindIsEscaped) {
  const ServiceError error(ErrorCode::kInvalidInput, "a \"b\" <c> & \x01\xC3\xA9");
  const ErrorContext context{"id", Ticks("2025-01-15T10:20:30.5Z"), 7};
  std::string json;
  AppendJsonError(&json, error, context);
  EXPECT_THAT(json, HasSubstr(R"("7:a \"b\" <c> & \u0001)"
                              "\xC3\xA9"
                              R"(\nRequestId:id\nTime:2025-01-15T10:20:30.5000000Z")"));
  std::string xml;
  AppendXmlError(&xml, error, context, XmlErrorForm::kData);
  EXPECT_EQ(
      xml,
      R"(<?xml version="1.0" encoding="utf-8"?><error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><code>InvalidInput</code><message xml:lang="en-US">7:a &quot;b&quot; &lt;c&gt; &amp; )"
      "\xEF\xBF\xBD\xC3\xA9\nRequestId:id\nTime:2025-01-15T10:20:30.5000000Z</message></error>");
}

TEST(ErrorBodyTest, TheTimeAlwaysHasSevenDigits) {
  for (const std::string_view time :
       {"2025-01-15T10:20:30.1234567Z", "2025-01-15T10:20:30.12Z", "9999-12-31T23:59:59Z"}) {
    std::string json;
    AppendJsonError(&json, ServiceError(ErrorCode::kInvalidInput), {"id", Ticks(time), {}});
    const size_t at = json.find("Time:");
    ASSERT_NE(at, json.npos);
    EXPECT_EQ(json.substr(at + 5 + 19, 1), ".");
    EXPECT_EQ(json.substr(at + 5 + 27), "Z\"}}}");
  }
}

// ---- Metadata and selections.

TEST(EntityFormatTest, ListsCarryTheirMetadataOnceAndATagPerEntity) {
  Selection selection;
  ASSERT_FALSE(Selection::Parse("a, b", &selection).has_value());
  const UrlBase base{.secure = false, .host = "127.0.0.1:10002", .account_prefix = "/acct1"};
  const EntityFormat format(EntityFormat::Shape::kList, MetadataLevel::kMinimal, base, "acct1", "t",
                            selection);
  const std::string record = EncodeEntityRecord(Entity().Set("b", true).properties());
  std::string page;
  format.AppendListStart(&page);
  for (const std::string_view row_key : {"1", "2"}) {
    format.AppendListEntity(&page, {"p", row_key, Ticks("2025-01-15T10:20:30Z"), EntityRecordView(record)});
  }
  AppendListEnd(&page);
  EXPECT_EQ(
      page,
      R"({"odata.metadata":"http://127.0.0.1:10002/acct1/$metadata#t&$select=a,%20b","value":[{"odata.etag":"W/\"datetime'2025-01-15T10%3A20%3A30Z'\"","a":null,"b":true},{"odata.etag":"W/\"datetime'2025-01-15T10%3A20%3A30Z'\"","a":null,"b":true}]})");
}

TEST(EntityFormatTest, SelectedSystemPropertiesStandInTheOrderAsked) {
  Entity entity("p", "r");
  entity.Set("x", 1);
  const uint64_t ticks = Ticks("2025-01-15T10:20:30Z");
  EXPECT_EQ(Show(entity, {.level = MetadataLevel::kNone, .select = "x,Timestamp,RowKey", .ticks = ticks}),
            R"({"x":1,"Timestamp":"2025-01-15T10:20:30Z","RowKey":"r"})");
  const std::string full =
      Show(entity, {.level = MetadataLevel::kFull, .select = "Timestamp", .ticks = ticks});
  EXPECT_THAT(full, HasSubstr(R"(#orders/@Element&$select=Timestamp",)"));
  EXPECT_THAT(full, HasSubstr(R"("Timestamp@odata.type":"Edm.DateTime","Timestamp":"2025)"));
  EXPECT_THAT(full, Not(HasSubstr(R"("PartitionKey":)")));
  EXPECT_THAT(Show(entity, {.select = "odata.etag,x", .ticks = ticks}), Not(HasSubstr("null")));
  const Entity number = Entity("p", "r").Set("a", int64_t{1});
  for (MetadataLevel level : {MetadataLevel::kMinimal, MetadataLevel::kFull}) {
    const std::string both =
        Show(number, {.level = level, .select = "a,a@odata.type,Timestamp,Timestamp@odata.type"});
    EXPECT_THAT(both, HasSubstr(R"("a@odata.type":"Edm.Int64","a":"1",)"));
    EXPECT_THAT(both, Not(HasSubstr("null")));
  }
  EXPECT_EQ(Show(number, {.level = MetadataLevel::kNone, .select = "a@odata.type"}),
            R"({"a@odata.type":null})");
  // Names that nobody has may hold anything.
  EXPECT_EQ(Show(entity, {.level = MetadataLevel::kNone, .select = "a\"b,\x01"}),
            R"({"a\"b":null,"\u0001":null})");
}

TEST(EntityFormatTest, ABlankSelectionShowsEverything) {
  const Entity entity = Entity("p", "r").Set("x", 1);
  EXPECT_THAT(Show(entity, {.select = ""}), HasSubstr(R"(#orders/@Element&$select=",)"));
  EXPECT_THAT(Show(entity, {.select = " "}), HasSubstr(R"(&$select=%20",)"));
  EXPECT_THAT(Show(entity, {.select = "*"}), HasSubstr(R"("x":1})"));
  for (const std::string_view some : {"*,y", "PartitionKey, * ", "y,*,*"}) {
    const std::string shown = Show(entity, {.select = some});
    EXPECT_THAT(shown, HasSubstr(R"("x":1})")) << some;
    EXPECT_THAT(shown, Not(HasSubstr("null"))) << some;
  }
  EXPECT_THAT(Show(entity, {.select = "*,y"}), HasSubstr(R"(&$select=*,y",)"));
  EXPECT_THAT(Show(entity), Not(HasSubstr("$select")));
}

TEST(SelectionTest, NamesAreSplitTrimmedAndDistinct) {
  Selection selection;
  ASSERT_FALSE(Selection::Parse(" b ,a,b, a", &selection).has_value());
  EXPECT_THAT(selection.names(), testing::ElementsAre("b", "a"));
  std::string names = "n0";
  for (int i = 1; i < 255; ++i) names += ",n" + std::to_string(i);
  EXPECT_FALSE(Selection::Parse(names, &selection).has_value());
  EXPECT_EQ(selection.names().size(), 255u);
  EXPECT_FALSE(Selection::Parse(names + ",n1", &selection).has_value());  // There twice, it counts once.
  EXPECT_EQ(Selection::Parse(names + ",x", &selection)->status, 400);
  std::string mixed;  // All of 254 names, in no order, again and again.
  std::vector<std::string> once;
  for (int i = 0; i < 2'000; ++i) {
    const std::string name = "n" + std::to_string(i * 7 % 254);
    mixed += (i == 0 ? "" : ",") + name;
    if (i < 254) once.push_back(name);
  }
  EXPECT_FALSE(Selection::Parse(mixed, &selection).has_value());
  EXPECT_THAT(selection.names(), testing::ElementsAreArray(once));
  EXPECT_EQ(Selection::Parse("a,,b", &selection)->code, ErrorCode::kInvalidInput);
  EXPECT_EQ(Selection::Parse("a,", &selection)->code, ErrorCode::kInvalidInput);
}

// Two names have ids; one of them was written before it had one.
class TwoNames : public PropertyNames {
 public:
  uint16_t IdOf(std::string_view name) const override { return name == "a" ? 1 : name == "b" ? 2 : 0; }
  std::string_view NameOf(uint16_t id) const override { return id == 1 ? "a" : id == 2 ? "b" : ""; }
};

TEST(EntityFormatTest, PropertiesAreFoundByNameAndById) {
  const TwoNames names;
  const Entity entity = Entity("p", "r").Set("b", 2).Set("c", 3).Set("a", 1);
  Selection selection;
  ASSERT_FALSE(Selection::Parse("a,b,c", &selection).has_value());
  for (const std::string& record :
       {EncodeEntityRecord(entity.properties()), EncodeEntityRecord(entity.properties(), &names)}) {
    const EntityRow row{"p", "r", 1, EntityRecordView(record, &names)};
    std::string out;
    EntityFormat(EntityFormat::Shape::kLone, MetadataLevel::kNone, kBase, "x", "t", selection, &names)
        .AppendEntity(&out, row);
    EXPECT_EQ(out, R"({"a":1,"b":2,"c":3})");
    out.clear();
    EntityFormat(EntityFormat::Shape::kLone, MetadataLevel::kNone, kBase, "x", "t", Selection(), &names)
        .AppendEntity(&out, row);
    EXPECT_THAT(out, testing::EndsWith(R"("b":2,"c":3,"a":1})"));
  }
}

TEST(TableListTest, EntriesHaveWhatTheirLevelWants) {
  for (
      const auto& [level, expected] : std::initializer_list<std::pair<MetadataLevel, std::string_view>>{
          {MetadataLevel::kNone, R"({"value":[{"TableName":"a"},{"TableName":"b"}]})"},
          {MetadataLevel::kMinimal,
           R"({"odata.metadata":"https://HOST/$metadata#Tables","value":[{"TableName":"a"},{"TableName":"b"}]})"},
          {MetadataLevel::kFull,
           R"~({"odata.metadata":"https://HOST/$metadata#Tables","value":[{"odata.type":"acct1.Tables","odata.id":"https://HOST/Tables('a')","odata.editLink":"Tables('a')","TableName":"a"},{"odata.type":"acct1.Tables","odata.id":"https://HOST/Tables('b')","odata.editLink":"Tables('b')","TableName":"b"}]})~"}}) {
    std::string out;
    AppendTableListStart(&out, level, kBase);
    for (const std::string_view name : {"a", "b"}) AppendListTable(&out, level, kBase, "acct1", name);
    AppendListEnd(&out);
    EXPECT_EQ(out, expected);
  }
}

// ---- Values.

TEST(JsonWriterVectorTest, EveryValueIsRenderedAsTheServiceDoes) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("json-values.json");
  for (const JsonValue& vector : vectors["values"].items) {
    if (!vector["expect"].text.starts_with("Edm.")) continue;
    SCOPED_TRACE(vector["id"].text);
    ++cases;
    Entity entity;
    const std::string body = R"({"PartitionKey":"p","RowKey":"r",)" + vector["json"].text + "}";
    ASSERT_FALSE(JsonBodyReader::OfThisThread().ReadInsert(PaddedBody(body), &entity).has_value());
    const std::string shown = Show(entity);
    EXPECT_THAT(shown, testing::EndsWith("567Z\"," + vector["minimal"].text + "}"));
    EXPECT_THAT(Show(entity, {.level = MetadataLevel::kNone}), Not(HasSubstr("odata")));
  }
  EXPECT_EQ(cases, 43);
}

TEST(JsonTextTest, EscapesAtEveryPlaceOfEveryLength) {
  // Block borders are at multiples of 8 and 32; the character stands at each place around them.
  const std::pair<std::string, std::string> kPieces[] = {{"\"", "\\\""},
                                                         {"\\", "\\\\"},
                                                         {"\n", "\\n"},
                                                         {"\x1F", "\\u001f"},
                                                         {std::string(1, '\0'), "\\u0000"},
                                                         {"\x7F", "\x7F"},
                                                         {"\xC3\xA9", "\xC3\xA9"},
                                                         {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
                                                         {"\xEE\x80\x80", "\xEE\x80\x80"},
                                                         {"\xEF\xBF\xBD", "\xEF\xBF\xBD"},
                                                         {"/", "/"}};
  for (const auto& [raw, escaped] : kPieces) {
    for (size_t before = 0; before < 70; ++before) {
      for (const size_t after : {0u, 1u, 7u, 8u, 31u, 32u, 40u}) {
        const std::string text = std::string(before, 'a') + raw + std::string(after, 'b') + raw;
        const std::string expected =
            "[\"" + std::string(before, 'a') + escaped + std::string(after, 'b') + escaped + "\"";
        for (const std::string& form : {text, OrderedText(text)}) {
          std::string out = "[";
          AppendJsonString(&out, form);
          ASSERT_EQ(out, expected) << before << " " << after;
        }
      }
    }
  }
}

TEST(JsonTextTest, TextOfNothingButEscapesGrowsTheBuffer) {
  std::string out;
  AppendJsonString(&out, std::string(10'000, '\x01'));
  EXPECT_EQ(out.size(), 60'002u);
}

TEST(JsonTextTest, UrlKeysAreEncodedFromBothForms) {
  const std::string key = "a'b\"c/\xC3\xA9\xEE\x80\x80\xEF\xBF\xBD\xF0\x9F\x98\x80-._~";
  for (const std::string& form : {key, OrderedText(key)}) {
    std::string out;
    AppendUrlKey(&out, form);
    EXPECT_EQ(out, "a''b%22c%2F%C3%A9%EE%80%80%EF%BF%BD%F0%9F%98%80-._~");
  }
}

TEST(XmlTextTest, CharactersThatXmlCannotHoldAreReplaced) {
  std::string xml;
  AppendXmlText(&xml, "\x01\x1F\t\n|\uFFFE\uFFFF|\xF6\xBF\xBE\xF6\xBF\xBF|\uFFBF\u2FFE\uFFFD");
  EXPECT_EQ(xml, "\uFFFD\uFFFD\t\n|\uFFFD\uFFFD|\uFFFD\uFFFD|\uFFBF\u2FFE\uFFFD");
}

// ---- Round trips: what is written is read back as it was.

class RandomEntities {
 public:
  explicit RandomEntities(uint64_t seed) : random_(seed) {}

  Entity Next() {
    Entity entity(Text(20, /*for_key=*/true), Text(60, true));
    const size_t count = Below(12);
    for (size_t i = 0; i < count; ++i) entity.Set("n" + std::to_string(Below(40)) + Suffix(), Value());
    return entity;
  }

 private:
  size_t Below(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }
  std::string Suffix() { return Below(4) == 0 ? "\xC3\xBC\xE6\x9D\xB1" : ""; }
  std::string Text(size_t size_max, bool for_key) {
    static const std::string kPieces[] = {"a",
                                          "'",
                                          " ",
                                          "+",
                                          "%",
                                          "\xC3\xA9",
                                          "\xE6\x9D\xB1",
                                          "\xF0\x9F\x98\x80",
                                          "\xEE\x80\x80",
                                          "\xEF\xBF\xBF",
                                          "\"",
                                          ",",
                                          "plain text of some length",
                                          "\\",
                                          "\n",
                                          std::string(1, '\0'),
                                          "\x1F",
                                          "/"};
    std::string text;
    const size_t pieces = Below(size_max);
    for (size_t i = 0; i < pieces; ++i) text += kPieces[Below(for_key ? 13 : std::size(kPieces))];
    return text;
  }
  double Number() {
    switch (Below(6)) {
      case 0:
        return std::numeric_limits<double>::infinity() * (Below(2) == 0 ? 1 : -1);
      case 1:
        return std::numeric_limits<double>::quiet_NaN();
      case 2:
        return static_cast<double>(Below(1000));
      case 3:
        return -0.0;
      default: {
        const double number = std::bit_cast<double>(random_());
        return std::isfinite(number) ? number : 0.1;
      }
    }
  }
  PropertyValue Value() {
    switch (Below(8)) {
      case 0:
        return PropertyValue(static_cast<int32_t>(random_()));
      case 1:
        return PropertyValue(static_cast<int64_t>(random_()));
      case 2:
        return PropertyValue(Number());
      case 3:
        return PropertyValue(Below(2) == 0);
      case 4:
        return PropertyValue(DateTime{random_() % (kDateTimeTicksMax + 1)});
      case 5: {
        Guid guid;
        for (uint8_t& byte : guid.bytes) byte = static_cast<uint8_t>(random_());
        return PropertyValue(guid);
      }
      case 6: {
        Binary binary;
        for (size_t i = Below(70); i > 0; --i) binary.bytes.push_back(static_cast<char>(random_()));
        return PropertyValue(binary);
      }
      default:
        return PropertyValue(Text(50, false));
    }
  }
  std::mt19937_64 random_;
};

TEST(JsonRoundTripTest, RandomEntitiesComeBackFromMinimalAndFullMetadata) {
  RandomEntities entities(20250115);
  JsonBodyReader reader;
  for (int i = 0; i < 3'000; ++i) {
    const Entity entity = entities.Next();
    ASSERT_TRUE(ValidateEntity(entity).ok()) << ValidateEntity(entity).ToString();
    for (const MetadataLevel level : {MetadataLevel::kMinimal, MetadataLevel::kFull}) {
      const std::string json = Show(entity, {.level = level});
      Entity back;
      const std::optional<ServiceError> error = reader.ReadInsert(PaddedBody(json), &back);
      ASSERT_FALSE(error.has_value()) << json;
      ASSERT_EQ(back, entity) << json;
    }
    // The link of full metadata leads back to the entity.
    std::string url;
    AppendEntityUrl(&url, kBase, "orders", entity.partition_key(), entity.row_key());
    Resource resource;
    const Resource outer{.account = "contoso"};
    ASSERT_FALSE(ParseInnerResource(url, outer, &resource).has_value()) << url;
    ASSERT_EQ(resource.partition_key, entity.partition_key());
    ASSERT_EQ(resource.row_key, entity.row_key());
  }
}

TEST(JsonRoundTripTest, TheLargestEntityComesBack) {
  Entity entity("p", "r");
  for (int i = 0; i < 14; ++i)
    entity.Set("s" + std::to_string(i), std::string(32'768, static_cast<char>('\x01' + i)));
  entity.Set("b", Binary{std::string(65'536, '\xFF')});
  ASSERT_TRUE(ValidateEntity(entity).ok()) << ValidateEntity(entity).ToString();
  Entity back;
  ASSERT_FALSE(JsonBodyReader::OfThisThread().ReadInsert(PaddedBody(Show(entity)), &back).has_value());
  EXPECT_EQ(back, entity);
}

}  // namespace
}  // namespace partita::http

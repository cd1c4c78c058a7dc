// The vectors of the reference, each asked of the whole service: etag-if-match.json, json-values.json,
// keys.json and batches.json.
#include <gmock/gmock-matchers.h>

#include <map>

#include "api/http/json_writer.h"
#include "test/api/vector_file.h"
#include "test/http/service_client.h"

namespace partita::http {
namespace {

using ::testing::HasSubstr;

std::string JsonText(std::string_view text) {
  std::string json = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      constexpr std::string_view kHex = "0123456789abcdef";
      json.append("\\u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
      continue;
    }
    if (c == '"' || c == '\\') json.push_back('\\');
    json.push_back(c);
  }
  return json + "\"";
}

std::string EntityTarget(std::string_view table, std::string_view partition, std::string_view row) {
  std::string url;
  AppendEntityUrl(&url, {true, "h", ""}, table, partition, row);
  return url.substr(url.find('/', 8));
}

// ---- etag-if-match.json

struct Given {
  std::string target;
  std::string current;
  std::string older;
};

// A row in the state that a condition starts from.
Given Arrange(ServiceWorld& world, const JsonValue& condition) {
  const std::string& row = condition["id"].text;
  Given given{EntityTarget("etags", "p", row), "", ""};
  if (condition["stored"].text != "present") return given;
  given.older = world.Insert("etags", "p", row, ",\"old\":1").Etag();
  given.current = world.Merge(given.target, "{\"older\":2}").Etag();
  return given;
}

Reply RunCondition(ServiceWorld& world, const JsonValue& condition, const Given& given) {
  std::string method = condition["op"].text;
  std::string headers;
  std::string target = given.target;
  std::string body = "{\"new\":3}";
  if (const size_t tunnel = method.find("+X-HTTP-Method:"); tunnel != std::string::npos) {
    headers = "X-HTTP-Method: " + method.substr(tunnel + 15) + "\n";
    method = "POST";
  } else if (method == "POST insert") {
    method = "POST";
    target = "/etags";
    body = "{\"PartitionKey\":\"p\",\"RowKey\":\"" + condition["id"].text + "\"}";
  }
  if (condition["if_match"].kind == JsonValue::Kind::kString) {
    std::string tag = condition["if_match"].text;
    if (tag == "<current>") tag = given.current;
    if (tag == "<older>") tag = given.older;
    if (tag == "<any well-formed>") tag = "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"";
    if (condition["id"].text == "m67") tag = "  " + given.current + " ";
    headers += "If-Match: " + tag + "\n";
  }
  if (condition.Has("if_none_match")) headers += "If-None-Match: W/\"x\"\n";
  if (method == "GET" || method == "DELETE") body.clear();
  return world.Plain(method, target, headers, body);
}

void ExpectStateAfter(ServiceWorld& world, const JsonValue& condition, const Given& given) {
  const std::string& state = condition["state_after"].text;
  const Reply after = world.Get(given.target);
  const bool has_old = after.body.find("\"old\":1") != std::string::npos;
  const bool has_new = after.body.find("\"new\":3") != std::string::npos;
  SCOPED_TRACE(after.body);
  if (state == "created" || state == "replaced") {
    EXPECT_TRUE(!has_old && has_new);
  } else if (state == "merged") {
    EXPECT_TRUE(has_old && has_new);
  } else if (state == "deleted") {
    EXPECT_EQ(after.Outcome(), "404 ResourceNotFound");
  } else if (state == "unchanged" || condition["status"].number >= 400) {
    EXPECT_FALSE(has_new);
    EXPECT_EQ(after.status, condition["stored"].text == "present" ? 200 : 404);
    if (after.status == 200) {
      EXPECT_EQ(after.Etag(), given.current);
    }
  }
}

TEST(EtagVectors, EveryConditionIsDecidedAsTheReferenceSays) {
  ServiceWorld world;
  world.MakeTable("etags");
  const JsonValue vectors = LoadVectors("etag-if-match.json");
  ASSERT_GE(vectors["conditions"].items.size(), 69u);
  for (const JsonValue& condition : vectors["conditions"].items) {
    SCOPED_TRACE(condition["id"].text + " " + condition["note"].text);
    const Given given = Arrange(world, condition);
    const Reply reply = RunCondition(world, condition, given);
    EXPECT_EQ(reply.status, condition["status"].number) << reply.body;
    if (condition.Has("code")) {
      EXPECT_EQ(reply.Code(), condition["code"].text);
    }
    const bool written = reply.status == 204 && condition["state_after"].text != "deleted";
    if (condition["op"].text != "GET") {
      EXPECT_EQ(reply.Has("ETag"), written);
    }
    ExpectStateAfter(world, condition, given);
  }
}

TEST(EtagSequences, AMergeTakesOnlyTheNewestTag) {  // q1
  ServiceWorld world;
  world.MakeTable("etags");
  const std::string first = world.Insert("etags", "p", "r").Etag();
  const std::string target = EntityTarget("etags", "p", "r");
  const Reply second = world.Merge(target, "{\"a\":1}", "If-Match: " + first + "\n");
  EXPECT_EQ(second.status, 204);
  EXPECT_NE(second.Etag(), first);
  EXPECT_EQ(world.Merge(target, "{\"a\":2}", "If-Match: " + first + "\n").status, 412);
  EXPECT_EQ(world.Merge(target, "{\"a\":2}", "If-Match: " + second.Etag() + "\n").status, 204);
}

TEST(EtagSequences, AMergeOfNothingGivesANewTag) {  // q2
  ServiceWorld world;
  world.MakeTable("etags");
  const std::string first = world.Insert("etags", "p", "r").Etag();
  const Reply second = world.Merge(EntityTarget("etags", "p", "r"), "{}", "If-Match: " + first + "\n");
  EXPECT_EQ(second.status, 204);
  EXPECT_NE(second.Etag(), first);
}

TEST(EtagSequences, TheTagOfADeletedRowMatchesNoLaterOne) {  // q3
  ServiceWorld world;
  world.MakeTable("etags");
  const std::string target = EntityTarget("etags", "p", "r");
  const std::string first = world.Insert("etags", "p", "r").Etag();
  EXPECT_EQ(world.Delete(target, "If-Match: " + first + "\n").status, 204);
  world.runtime().StepWallClock(-100'000'000);  // Also when the clock steps back (q5).
  const std::string second = world.Insert("etags", "p", "r").Etag();
  EXPECT_GT(second, first);
  EXPECT_EQ(world.Put(target, "{}", "If-Match: " + first + "\n").status, 412);
}

TEST(EtagSequences, WriteGetAndQueryShowTheSameTag) {  // q4
  ServiceWorld world;
  world.MakeTable("etags");
  const std::string tag = world.Insert("etags", "p", "r").Etag();
  std::string in_json = tag;
  for (size_t at = 0; (at = in_json.find('"', at)) != std::string::npos; at += 2) in_json.insert(at, "\\");
  const Reply get = world.Get(EntityTarget("etags", "p", "r"));
  EXPECT_EQ(get.Etag(), tag);
  EXPECT_THAT(get.body, HasSubstr("\"odata.etag\":\"" + in_json + "\""));
  EXPECT_THAT(world.Get("/etags()").body, HasSubstr("\"odata.etag\":\"" + in_json + "\""));
}

TEST(EtagSequences, ClientsCannotSetTagOrTimestamp) {  // q7
  ServiceWorld world;
  world.MakeTable("etags");
  const Reply reply = world.Insert("etags", "p", "r",
                                   ",\"odata.etag\":\"W/\\\"x\\\"\",\"Timestamp\":\"2001-01-01T00:00:00Z\"");
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.body.find("2001-01-01"), std::string::npos);
  EXPECT_NE(reply.Etag(), "W/\"x\"");
}

// ---- json-values.json

TEST(JsonValueVectors, EveryValueIsStoredAndRenderedAsTheReferenceSays) {
  ServiceWorld world;
  world.MakeTable("vals");
  const JsonValue vectors = LoadVectors("json-values.json");
  ASSERT_GE(vectors["values"].items.size(), 67u);
  for (const JsonValue& value : vectors["values"].items) {
    if (IsOutrankedValue(value)) continue;
    const std::string& id = value["id"].text;
    SCOPED_TRACE(id + " " + value["json"].text);
    const std::string keys =
        id == "v65" ? "{\"RowKey\":\"v65\"," : "{\"PartitionKey\":\"p\",\"RowKey\":\"" + id + "\",";
    const Reply insert = world.Post("/vals", keys + value["json"].text + "}");
    if (value["expect"].text == "error") {
      EXPECT_EQ(insert.status, value["status"].number) << insert.body;
      EXPECT_EQ(insert.Code(), value["code"].text);
      continue;
    }
    ASSERT_EQ(insert.status, 201) << insert.body;
    const std::string get = world.Get(EntityTarget("vals", "p", id)).body;
    std::string custom = get.substr(get.find("\"Timestamp\":") + 12);
    custom = custom.substr(custom.find('"', 1) + 1);  // From behind the Timestamp to the end.
    const std::string expected = value["minimal"].text.empty() ? "}" : "," + value["minimal"].text + "}";
    EXPECT_EQ(custom, expected);
    EXPECT_THAT(insert.body, ::testing::EndsWith(expected));
  }
}

// As recorded (api/date_time.cc), and in place of v51.
TEST(JsonValueVectors, DateTimesOfNineDigitsAreTakenAndSevenKept) {
  ServiceWorld world;
  world.MakeTable("vals");
  world.Insert("vals", "p", "r",
               ",\"at\":\"2023-04-11T21:16:40.331047814Z\",\"at@odata.type\":\"Edm.DateTime\"");
  const std::string target = EntityTarget("vals", "p", "r");
  EXPECT_EQ(world.Get(target + "?$select=at", kNoMetadata).body, "{\"at\":\"2023-04-11T21:16:40.3310478Z\"}");
  const std::string filter = "at%20eq%20datetime'2023-04-11T21:16:40.331047814Z'";
  EXPECT_EQ(world.Get("/vals()?$select=RowKey&$filter=" + filter, kNoMetadata).body,
            "{\"value\":[{\"RowKey\":\"r\"}]}");
}

TEST(JsonValueVectors, EveryAcceptGetsItsContentType) {
  ServiceWorld world;
  world.MakeTable("vals");
  world.Insert("vals", "p", "r", ",\"l\":\"1\",\"l@odata.type\":\"Edm.Int64\"");
  const JsonValue vectors = LoadVectors("json-values.json");
  for (const JsonValue& row : vectors["accept"].items) {
    SCOPED_TRACE(row["accept"].text);
    const bool has_accept = row["accept"].kind == JsonValue::Kind::kString;
    const Reply reply = world.Get(EntityTarget("vals", "p", "r"),
                                  has_accept ? "Accept: " + row["accept"].text + "\n" : std::string());
    const std::string& type = row["content_type"].text;
    if (type.starts_with("(415")) {
      EXPECT_EQ(reply.Outcome(), "415 AtomFormatNotSupported");
      continue;
    }
    EXPECT_EQ(reply.Header("Content-Type"), type);
    const bool full = type.find("fullmetadata") != std::string::npos;
    const bool none = type.find("nometadata") != std::string::npos;
    for (std::string_view name : {"odata.metadata", "odata.etag", "l@odata.type"}) {
      EXPECT_EQ(reply.body.find(name) == std::string::npos, none) << name;
    }
    for (std::string_view name :
         {"odata.type\":\"contoso.vals", "odata.id", "odata.editLink", "Timestamp@odata.type"}) {
      EXPECT_EQ(reply.body.find(name) != std::string::npos, full) << name;
    }
  }
}

// ---- keys.json

TEST(KeyVectors, EveryKeyIsTakenOrRefusedInBodiesAsTheReferenceSays) {
  ServiceWorld world;
  world.MakeTable("keys");
  const JsonValue vectors = LoadVectors("keys.json");
  ASSERT_GE(vectors["keys"].items.size(), 50u);
  for (const JsonValue& vector : vectors["keys"].items) {
    SCOPED_TRACE(vector["id"].text);
    const std::string key = TextOrParts(vector, "key");
    const std::string json = vector["id"].text == "lone-high-surrogate"  ? "\"a\\ud800\""
                             : vector["id"].text == "lone-low-surrogate" ? "\"\\udc00\""
                                                                         : JsonText(key);
    const Reply row = world.Post("/keys", "{\"PartitionKey\":\"row\",\"RowKey\":" + json + "}");
    const Reply partition = world.Post("/keys", "{\"PartitionKey\":" + json + ",\"RowKey\":\"partition\"}");
    if (!vector["valid"].boolean) {
      EXPECT_EQ(row.Outcome(), "400 " + vector["code"].text);
      EXPECT_EQ(partition.Outcome(), "400 " + vector["code"].text);
      if (vector["code"].text == "OutOfRangeInput") {
        EXPECT_THAT(row.Message(), ::testing::StartsWith("The 'RowKey' parameter of value '"));
        EXPECT_THAT(partition.Message(), ::testing::StartsWith("The 'PartitionKey' parameter of value '"));
        EXPECT_FALSE(row.Has("Cache-Control"));
      }
      continue;
    }
    EXPECT_EQ(row.status, 201) << row.body;
    EXPECT_EQ(partition.status, 201) << partition.body;
    EXPECT_EQ(world.Get(EntityTarget("keys", "row", key)).status, 200);
    EXPECT_EQ(world.Get(EntityTarget("keys", key, "partition")).status, 200);
    // The Location is a URL that finds it again.
    const std::string location = partition.Header("Location");
    EXPECT_EQ(world.Get(location.substr(location.find('/', 8))).status, 200) << location;
  }
}

TEST(KeyVectors, EveryUrlIsUnderstoodAsTheReferenceSays) {
  ServiceWorld world;
  world.MakeTable("ttt");
  const JsonValue vectors = LoadVectors("keys.json");
  for (const JsonValue& vector : vectors["url_keys"].items) {
    SCOPED_TRACE(vector["id"].text);
    // The vectors' table `t` is shorter than a name may be.
    std::string path = vector["path"].text;
    if (path.starts_with("/t")) path.insert(1, "tt");
    if (path.starts_with("/Tables(")) path.insert(path.find("t", 8), "tt");
    if (vector.Has("pk")) {
      const std::string body = "{\"PartitionKey\":" + JsonText(vector["pk"].text) +
                               ",\"RowKey\":" + JsonText(vector["rk"].text) + "}";
      world.Post("/ttt", body);  // Several vectors mean the same row.
      EXPECT_THAT(world.Get(path).body, HasSubstr("\"PartitionKey\":" + JsonText(vector["pk"].text) +
                                                  ",\"RowKey\":" + JsonText(vector["rk"].text)));
    } else if (vector.Has("error")) {
      // u15 and u18 are one path; u18 says what a test suite saw.
      const std::string code = vector["id"].text == "u15" ? "InvalidInput" : vector["code"].text;
      EXPECT_EQ(world.Get(path).Outcome(), "400 " + code);
    } else if (vector.Has("collection")) {
      EXPECT_THAT(world.Get(path).body, HasSubstr("#ttt\",\"value\":["));
    } else {
      EXPECT_THAT(world.Get(path).body, HasSubstr("\"TableName\":\"ttt\""));
    }
  }
}

TEST(KeyVectors, QueriesGiveRowsInTheOrderOfTheReference) {
  ServiceWorld world;
  const JsonValue vectors = LoadVectors("keys.json");
  for (const JsonValue& vector : vectors["ordering"].items) {
    SCOPED_TRACE(vector["id"].text);
    const std::string table = "order" + vector["id"].text;
    world.MakeTable(table);
    const std::vector<JsonValue>& sorted = vector["sorted"].items;
    std::string expected;
    for (size_t i = 0; i < sorted.size(); ++i) {
      const std::string& backwards = sorted[sorted.size() - 1 - i].text;
      world.Post("/" + table, "{\"PartitionKey\":\"p\",\"RowKey\":" + JsonText(backwards) + "}");
      world.Post("/" + table, "{\"PartitionKey\":" + JsonText("q" + backwards) + ",\"RowKey\":\"\"}");
      expected += (i > 0 ? "," : "") + ("{\"RowKey\":" + JsonText(sorted[i].text) + "}");
    }
    const Reply rows = world.Get("/" + table + "()?$filter=PartitionKey%20eq%20'p'&$select=RowKey",
                                 "Accept: application/json;odata=nometadata\n");
    EXPECT_EQ(rows.body, "{\"value\":[" + expected + "]}");
    const Reply partitions =
        world.Get("/" + table + "()?$filter=PartitionKey%20ne%20'p'&$select=PartitionKey",
                  "Accept: application/json;odata=nometadata\n");
    std::string names;
    for (const JsonValue& key : sorted) {
      names += (names.empty() ? "" : ",") + ("{\"PartitionKey\":" + JsonText("q" + key.text) + "}");
    }
    EXPECT_EQ(partitions.body, "{\"value\":[" + names + "]}");
  }
}

// ---- batches.json

// The rows that a case takes for given, and those that it names.
const std::map<std::string, std::vector<std::string>> kGivenRows = {
    {"b7", {"1"}}, {"b8", {"2", "3"}}, {"b15", {"taken"}}, {"b16", {"1"}}};

TEST(BatchVectors, EveryBatchIsAnsweredAsTheReferenceSays) {
  const JsonValue vectors = LoadVectors("batches.json");
  ASSERT_EQ(vectors["cases"].items.size(), 25u);
  ServiceWorld world;
  world.MakeTable("other");
  for (const JsonValue& vector : vectors["cases"].items) {
    const std::string& id = vector["id"].text;
    SCOPED_TRACE(id + " " + vector["note"].text);
    world.MakeTable("orders");
    std::string rows_before;
    if (const auto given = kGivenRows.find(id); given != kGivenRows.end()) {
      for (const std::string& row : given->second) ASSERT_EQ(world.Insert("orders", "p", row).status, 201);
    }
    rows_before = world.Get("/orders()").body;
    const Reply reply =
        world.Post("/$batch", vector["body"].text, "Content-Type: " + vector["content_type"].text + "\n");
    const JsonValue& expect = vector["expect"];
    if (expect.Has("status")) {
      EXPECT_EQ(reply.status, expect["status"].number) << reply.body;
    } else {
      EXPECT_TRUE(reply.status == 202 || reply.status == 400) << reply.body;
    }
    if (expect.Has("parts")) {
      std::vector<int> parts;
      for (const JsonValue& part : expect["parts"].items) parts.push_back(static_cast<int>(part.number));
      EXPECT_EQ(PartsOf(reply), parts) << reply.body;
    }
    if (expect.Has("code")) {
      EXPECT_EQ(reply.Code(), expect["code"].text) << reply.body;
    }
    if (expect.Has("index_prefix")) {
      EXPECT_THAT(reply.Message(), ::testing::StartsWith(expect["index_prefix"].text));
    }
    if (expect.Has("code") || expect.Has("status_any_of")) {
      EXPECT_EQ(world.Get("/orders()").body, rows_before);  // Nothing was applied.
      EXPECT_EQ(world.Get("/other()").body.find("PartitionKey"), std::string::npos);
    } else if (id != "b16") {
      EXPECT_NE(world.Get("/orders()").body, rows_before);
    }
    ASSERT_EQ(world.Delete("/Tables('orders')", "").status, 204);
  }
}

}  // namespace
}  // namespace partita::http

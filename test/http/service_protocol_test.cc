// Sections 2 to 5, 7, 8, 10 and 18 of the reference, of the whole service: addresses, tunnels, headers,
// payloads, operations.
#include <gmock/gmock-matchers.h>

#include <set>

#include "test/http/service_client.h"

namespace partita::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kRow = "/orders(PartitionKey='p',RowKey='r')";

class ServiceProtocol : public ::testing::Test {
 protected:
  void SetUp() override { world.MakeTable("orders"); }
  ServiceWorld world;
};

// ---- 2. Addressing.

TEST_F(ServiceProtocol, PathStyleAddressesWorkAsHostStyleOnesDo) {
  const std::string host = "Host: 127.0.0.1:10002\n";
  const Reply created = world.Post("/devstoreaccount1/Tables", "{\"TableName\":\"orders\"}", host);
  EXPECT_EQ(created.status, 201);  // Another account: its own tables.
  world.secure = false;
  const Reply insert = world.Post("/devstoreaccount1/orders", "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}",
                                  host + "Accept: application/json;odata=fullmetadata\n");
  EXPECT_EQ(insert.Header("Location"),
            "http://127.0.0.1:10002/devstoreaccount1/orders(PartitionKey='p',RowKey='r')");
  EXPECT_THAT(insert.body,
              StartsWith("{\"odata.metadata\":\"http://127.0.0.1:10002/devstoreaccount1/"
                         "$metadata#orders/@Element\",\"odata.type\":\"devstoreaccount1.orders\""));
  EXPECT_EQ(world.Get("/devstoreaccount1/orders(PartitionKey='p',RowKey='r')", host).status, 200);
  EXPECT_EQ(world.Get(kRow).Outcome(), "404 ResourceNotFound");
  EXPECT_EQ(world.Get("/devstoreaccount1/orders()", "Host: localhost:10002\n").status, 200);
}

TEST_F(ServiceProtocol, AllFormsOfTheSecondaryAddressAnswer) {
  for (std::string_view target : {"/devstoreaccount1-secondary/?restype=service&comp=stats",
                                  "/devstoreaccount1-secondary/devstoreaccount1/?restype=service&comp=stats",
                                  "/devstoreaccount1/?restype=service&comp=stats"}) {
    const Reply reply = world.Get(target, "Host: 127.0.0.1:10002\n");
    EXPECT_EQ(reply.status, 200) << target << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("<StorageServiceStats><GeoReplication><Status>live</Status>"))
        << target;
    EXPECT_EQ(reply.Header("Content-Type"), "application/xml");
    EXPECT_FALSE(reply.Has("Cache-Control"));
    EXPECT_FALSE(reply.Has("X-Content-Type-Options"));
  }
  EXPECT_EQ(
      world.Get("/?restype=service&comp=stats", "Host: contoso-secondary.table.core.windows.net\n").status,
      200);
  EXPECT_EQ(world.Get("/orders()", "Host: contoso-secondary.table.core.windows.net\n").status, 200);
}

TEST_F(ServiceProtocol, TableNamesMatchInAnyCaseAndKeepTheirOwn) {
  EXPECT_EQ(world.Insert("ORDERS", "p", "r").status, 201);
  EXPECT_EQ(world.Get("/oRdErS(PartitionKey='p',RowKey='r')").status, 200);
  EXPECT_THAT(world.Get("/Tables('ORDERS')").body, HasSubstr("\"TableName\":\"orders\""));
  EXPECT_EQ(world.Delete("/Tables('OrDeRs')", "").status, 204);
  EXPECT_EQ(world.Get("/orders()").Outcome(), "404 TableNotFound");
}

TEST_F(ServiceProtocol, APartitionAloneIsAQueryOfIt) {
  world.Insert("orders", "p", "1");
  world.Insert("orders", "q", "1");
  const Reply reply = world.Get("/orders(PartitionKey='p')?$select=PartitionKey", kNoMetadata);
  EXPECT_EQ(reply.body, "{\"value\":[{\"PartitionKey\":\"p\"}]}");
  EXPECT_EQ(world.Get("/orders(PartitionKey='p')?$filter=RowKey%20eq%20'2'", kNoMetadata).body,
            "{\"value\":[]}");
}

// ---- 3. Operations at a glance, tunnels.

TEST_F(ServiceProtocol, EveryVerbCanBeTunnelled) {
  world.Insert("orders", "p", "r", ",\"a\":1");
  EXPECT_EQ(world.Post(kRow, "{\"b\":1}", "X-HTTP-Method: MERGE\n").status, 204);
  EXPECT_THAT(world.Get(kRow).body, HasSubstr("\"a\":1,\"b\":1"));
  EXPECT_EQ(world.Post(kRow, "{\"c\":1}", "X-HTTP-Method: patch\nIf-Match: *\n").status, 204);
  EXPECT_THAT(world.Get(kRow).body, HasSubstr("\"c\":1"));
  EXPECT_EQ(world.Post(kRow, "{\"d\":1}", "X-HTTP-Method: PUT\n").status, 204);
  EXPECT_THAT(world.Get(kRow).body, Not(HasSubstr("\"a\":1")));
  EXPECT_EQ(world.Post(kRow, "", "X-HTTP-Method: DELETE\nIf-Match: *\n").status, 204);
  EXPECT_EQ(world.Post("/Tables('orders')", "", "X-HTTP-Method: DELETE\n").status, 204);
  EXPECT_EQ(world.Get("/Tables('orders')").status, 404);
}

TEST_F(ServiceProtocol, WhatIsNoEntityHasNoTunnels) {
  EXPECT_EQ(world.Post("/orders?comp=acl", "", "X-HTTP-Method: PUT\n").status, 405);
  EXPECT_EQ(
      world.Post("/?restype=service&comp=properties", "<StorageServiceProperties />", "X-HTTP-Method: PUT\n")
          .status,
      405);
}

TEST_F(ServiceProtocol, CreateTableAnswersWithOrWithoutContent) {
  const Reply with = world.Post("/Tables", "{\"TableName\":\"One\"}", "Prefer: return-content\n");
  EXPECT_EQ(with.status, 201);
  EXPECT_EQ(with.Header("Preference-Applied"), "return-content");
  EXPECT_EQ(with.Header("Location"), "https://contoso.table.core.windows.net/Tables('One')");
  EXPECT_FALSE(with.Has("DataServiceId"));
  EXPECT_FALSE(with.Has("ETag"));
  const Reply without = world.Post("/Tables()", "{\"TableName\":\"Two\"}", "Prefer: return-no-content\n");
  EXPECT_EQ(without.status, 204);
  EXPECT_EQ(without.body, "");
  EXPECT_FALSE(without.Has("Content-Type"));
  EXPECT_EQ(without.Header("DataServiceId"), "https://contoso.table.core.windows.net/Tables('Two')");
  EXPECT_EQ(world.Post("/Tables", "{\"TableName\":\"Tables\"}").Outcome(), "400 InvalidInput");
}

TEST_F(ServiceProtocol, ADeletedTableMayBeMadeAgainAndIsEmpty) {
  world.Insert("orders", "p", "r");
  EXPECT_EQ(world.Delete("/Tables('orders')", "").status, 204);
  EXPECT_EQ(world.Insert("orders", "p", "r").Outcome(), "404 TableNotFound");
  world.MakeTable("orders");
  EXPECT_EQ(world.Get("/orders()", kNoMetadata).body, "{\"value\":[]}");
}

TEST_F(ServiceProtocol, TablesAreListedByNameInPages) {
  for (std::string_view name : {"zebra", "Banana", "apple"}) world.MakeTable(name);
  EXPECT_EQ(world.Get("/Tables", kNoMetadata).body,
            "{\"value\":[{\"TableName\":\"apple\"},{\"TableName\":\"Banana\"},{\"TableName\":\"orders\"},{"
            "\"TableName\":\"zebra\"}]}");
  const Reply page = world.Get("/Tables?$top=3", kNoMetadata);
  EXPECT_THAT(page.body, HasSubstr("orders"));
  EXPECT_THAT(page.body, Not(HasSubstr("zebra")));
  const Reply next = world.Get(
      "/Tables?$top=3&NextTableName=" + page.Header("x-ms-continuation-NextTableName"), kNoMetadata);
  EXPECT_EQ(next.body, "{\"value\":[{\"TableName\":\"zebra\"}]}");
  EXPECT_FALSE(next.Has("x-ms-continuation-NextTableName"));
  EXPECT_EQ(world.Get("/Tables?$filter=TableName%20ge%20'c'%20and%20TableName%20lt%20'q'", kNoMetadata).body,
            "{\"value\":[{\"TableName\":\"orders\"}]}");
  EXPECT_THAT(
      world.Get("/Tables('apple')", "Accept: application/json;odata=fullmetadata\n").body,
      StartsWith("{\"odata.metadata\":\"https://contoso.table.core.windows.net/$metadata#Tables/@Element\","
                 "\"odata.type\":\"contoso.Tables\""));
}

TEST_F(ServiceProtocol, RawTablesAreNoTablesOfTheService) {
  // The API serves the development account.
  ASSERT_TRUE(world.database().CreateRawTable("rawdata").ok());
  const std::string host = "Host: 127.0.0.1:10002\n";
  EXPECT_THAT(world.Get("/devstoreaccount1/Tables", host).body, Not(HasSubstr("rawdata")));
  EXPECT_EQ(world.Get("/devstoreaccount1/rawdata()", host).Outcome(), "404 TableNotFound");
  EXPECT_EQ(world.Delete("/devstoreaccount1/Tables('rawdata')", host).Outcome(), "404 ResourceNotFound");
  EXPECT_TRUE(world.database().OpenRawTable("rawdata").ok());
}

// ---- 4. Headers.

TEST_F(ServiceProtocol, EveryAnswerNamesItselfAndEchoesTheClient) {
  std::set<std::string> ids;
  for (const Reply& reply :
       {world.Get("/Tables", "x-ms-client-request-id: c-1\n"),
        world.Get("/nosuch()", "x-ms-client-request-id: c-1\n"),
        world.Get("/Tables", "x-ms-client-request-id: c-1\nAuthorization: SharedKey contoso:x\n"),
        world.Get("/?restype=service&comp=properties", "x-ms-client-request-id: c-1\n"),
        world.Delete("/orders(PartitionKey='p',RowKey='x')", "x-ms-client-request-id: c-1\nIf-Match: *\n")}) {
    EXPECT_EQ(reply.Header("x-ms-client-request-id"), "c-1");
    EXPECT_EQ(reply.Header("x-ms-version"), "2019-02-02");
    EXPECT_EQ(reply.Header("x-ms-request-id").size(), 36u);
    ids.insert(reply.Header("x-ms-request-id"));
    EXPECT_FALSE(reply.Has("DataServiceVersion"));
  }
  EXPECT_EQ(ids.size(), 5u);
  EXPECT_FALSE(world.Get("/Tables").Has("x-ms-client-request-id"));
  // Whether .NET asks for it or not.
  for (std::string_view asked : {"true", "false"}) {
    const std::string header = "x-ms-return-client-request-id: " + std::string(asked) + "\n";
    EXPECT_EQ(world.Get("/Tables", header + "x-ms-client-request-id: c-1\n").Header("x-ms-client-request-id"),
              "c-1");
    EXPECT_FALSE(world.Get("/Tables", header).Has("x-ms-client-request-id"));
  }
  EXPECT_FALSE(world.Get("/Tables", "x-ms-client-request-id: " + std::string(1025, 'x') + "\n")
                   .Has("x-ms-client-request-id"));
}

TEST_F(ServiceProtocol, TheVersionIsEchoedAndMayBeMissing) {  // 18
  for (std::string_view version : {"2013-08-15", "2020-12-06", "2031-01-01"}) {
    EXPECT_EQ(world.Get("/Tables", "x-ms-version: " + std::string(version) + "\n").Header("x-ms-version"),
              version);
  }
  // Also where the address is refused before anything else is looked at.
  for (std::string_view target : {"/orders(PartitionKey='a%2Fb',RowKey='r')", "/orders(x)", "/orders/x"}) {
    const Reply refused = world.Get(target, "x-ms-version: 2018-03-28\n");
    EXPECT_EQ(refused.status, 400) << target;
    EXPECT_EQ(refused.Header("x-ms-version"), "2018-03-28") << target;
  }
  EXPECT_EQ(world.Get("/Tables", "DataServiceVersion: 3.0;NetFx\nMaxDataServiceVersion: 3.0;NetFx\n").status,
            200);
  EXPECT_EQ(world.Get("/Tables", "DataServiceVersion: 1.0;\nMaxDataServiceVersion: 2.0\n").status, 200);
}

TEST_F(ServiceProtocol, DataAnswersAreNotCachedOrSniffed) {
  world.Insert("orders", "p", "r");
  for (const Reply& reply : {world.Get("/Tables"), world.Get("/orders()"), world.Get(kRow),
                             world.Put(kRow, "{}"), world.Insert("orders", "p", "2"), world.Delete(kRow)}) {
    EXPECT_EQ(reply.Header("Cache-Control"), "no-cache");
    EXPECT_EQ(reply.Header("X-Content-Type-Options"), "nosniff");
  }
  for (const Reply& reply : {world.Get("/orders?comp=acl"), world.Put("/orders?comp=acl", ""),
                             world.Get("/?restype=service&comp=properties")}) {
    EXPECT_FALSE(reply.Has("Cache-Control"));
    EXPECT_FALSE(reply.Has("X-Content-Type-Options"));
  }
}

TEST_F(ServiceProtocol, InsertAnswersWithOrWithoutContent) {
  const Reply plain = world.Insert("orders", "p", "1");
  EXPECT_EQ(plain.status, 201);
  EXPECT_FALSE(plain.Has("Preference-Applied"));
  EXPECT_FALSE(plain.Has("DataServiceId"));
  const Reply content =
      world.Post("/orders()", "{\"PartitionKey\":\"p\",\"RowKey\":\"2\"}", "Prefer: return-content\n");
  EXPECT_EQ(content.status, 201);
  EXPECT_EQ(content.Header("Preference-Applied"), "return-content");
  const Reply none =
      world.Post("/orders", "{\"PartitionKey\":\"p\",\"RowKey\":\"3\"}", "Prefer: return-no-content\n");
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.body, "");
  EXPECT_FALSE(none.Has("Content-Type"));
  EXPECT_EQ(none.Header("DataServiceId"), none.Header("Location"));
  EXPECT_THAT(none.Etag(), StartsWith("W/\"datetime'"));
}

TEST_F(ServiceProtocol, WritesOtherThanInsertsHaveNoBodyAndNoLocation) {
  for (const Reply& reply :
       {world.Put(kRow, "{}", "Prefer: return-content\n"), world.Merge(kRow, "{}"),
        world.Put(kRow, "{}", "If-Match: *\n"), world.Merge(kRow, "{}", "If-Match: *\n")}) {
    EXPECT_EQ(reply.status, 204);
    EXPECT_EQ(reply.body, "");
    EXPECT_TRUE(reply.Has("ETag"));
    EXPECT_FALSE(reply.Has("Location"));
    EXPECT_FALSE(reply.Has("Preference-Applied"));
  }
  EXPECT_FALSE(world.Delete(kRow).Has("ETag"));
}

// ---- 5. Payloads; 6, 7.3 and 8 are in the vectors and the errors.

TEST_F(ServiceProtocol, NullsAreNotStoredAndDoNotRemove) {
  EXPECT_THAT(world.Insert("orders", "p", "r", ",\"a\":1,\"b\":null").body, Not(HasSubstr("\"b\"")));
  EXPECT_EQ(world.Merge(kRow, "{\"a\":null,\"c\":2}").status, 204);
  EXPECT_THAT(world.Get(kRow).body, HasSubstr("\"a\":1,\"c\":2"));
  EXPECT_EQ(world.Put(kRow, "{\"a\":null,\"c\":2}").status, 204);
  EXPECT_THAT(world.Get(kRow).body, Not(HasSubstr("\"a\":")));
}

TEST_F(ServiceProtocol, AMergeMayChangeTypesAndAReplaceLeavesOnlyTheKeys) {
  world.Insert("orders", "p", "r", ",\"a\":1,\"b\":\"x\"");
  EXPECT_EQ(world.Merge(kRow, "{\"a\":\"text\",\"PartitionKey\":\"p\",\"RowKey\":\"r\"}").status, 204);
  EXPECT_THAT(world.Get(kRow, kNoMetadata).body, HasSubstr("\"a\":\"text\",\"b\":\"x\"}"));
  EXPECT_EQ(world.Put(kRow, "{}").status, 204);
  EXPECT_THAT(world.Get(kRow, kNoMetadata).body, ::testing::EndsWith("Z\"}"));
}

TEST_F(ServiceProtocol, TheBodyOfADeleteIsIgnored) {  // 10.6
  for (std::string_view body : {"nonsense", "{\"PartitionKey\":\"other\"}", ""}) {
    world.Insert("orders", "p", "r");
    EXPECT_EQ(world.Plain("DELETE", kRow, "If-Match: *\nContent-Type: text/plain\n", body).Outcome(), "204");
    EXPECT_EQ(world.Get(kRow).status, 404) << body;
  }
}

TEST_F(ServiceProtocol, ByteOrderMarksAndAnyJsonContentTypeAreTaken) {
  EXPECT_EQ(world
                .Put(kRow, "\xEF\xBB\xBF{\"a\":1}",
                     "Content-Type: application/json;odata=fullmetadata; charset=UTF-8\n")
                .status,
            204);
}

TEST_F(ServiceProtocol, SelectedPropertiesThatAreMissingAreNull) {
  world.Insert("orders", "p", "r", ",\"a\":1");
  const Reply reply = world.Get(std::string(kRow) + "?$select=a,%20b,RowKey");
  EXPECT_THAT(reply.body, HasSubstr("#orders/@Element&$select=a,%20b,RowKey\",\"odata.etag\":"));
  EXPECT_THAT(reply.body, HasSubstr("\"a\":1,\"b\":null,\"RowKey\":\"r\"}"));
  EXPECT_EQ(world.Get(std::string(kRow) + "?$select=", kNoMetadata).body, world.Get(kRow, kNoMetadata).body);
  EXPECT_EQ(world.Get(std::string(kRow) + "?$filter=nonsense(").status, 200);  // Ignored there.
}

TEST_F(ServiceProtocol, FormatOverridesAccept) {
  const Reply reply = world.Get("/orders()?$format=application/json;odata=fullmetadata", kNoMetadata);
  EXPECT_EQ(reply.Header("Content-Type"), "application/json;odata=fullmetadata;streaming=true;charset=utf-8");
}

TEST_F(ServiceProtocol, AclPropertiesAndStatsAreXmlWhateverIsAsked) {  // 5.1
  const struct {
    std::string target;
    std::string headers;
  } cases[] = {
      {"/orders?comp=acl", ""},
      {"/?restype=service&comp=properties", ""},
      {"/?restype=service&comp=stats", "Host: contoso-secondary.table.core.windows.net\n"},
  };
  for (const auto& asked : cases) {
    SCOPED_TRACE(asked.target);
    for (std::string_view accept :
         {"", "Accept: application/json;odata=fullmetadata\n", "Accept: text/html\n"}) {
      for (std::string_view format : {"", "&$format=application/json;odata=nometadata"}) {
        const Reply reply =
            world.Get(asked.target + std::string(format), asked.headers + std::string(accept));
        EXPECT_EQ(reply.Outcome(), "200") << accept << format;
        EXPECT_EQ(reply.Header("Content-Type"), "application/xml") << accept << format;
        EXPECT_THAT(reply.body, HasSubstr("<?xml version=\"1.0\" encoding=\"utf-8\"?>"));
      }
    }
  }
}

TEST_F(ServiceProtocol, AcceptMayStandInSeveralLines) {
  const std::string full =
      "Accept: text/html\nX-Between: lines\naccept: application/json;odata=fullmetadata\n";
  EXPECT_EQ(world.Get("/orders()", full + "Accept: application/json\n").Header("Content-Type"),
            "application/json;odata=fullmetadata;streaming=true;charset=utf-8");
  EXPECT_EQ(world.Get("/orders()", "Accept: text/html\nAccept: text/plain\n").Outcome(),
            "415 AtomFormatNotSupported");
}

// ---- Metrics and the access log.

TEST(ServiceLog, SignaturesNeverReachTheLogAndEveryAnswerIsCounted) {
  struct Line {
    std::string text;
    int status;
  };
  std::vector<Line> lines;
  TableServiceOptions options;
  options.access_log = [&lines](const AccessRecord& record) {
    lines.push_back({std::string(RequestKindName(record.kind)) + " " + std::string(record.method) + " " +
                         std::string(record.target) + " " + std::string(record.account) + " " +
                         std::string(record.error_code),
                     record.status});
    EXPECT_EQ(record.request_id.size(), 36u);
    EXPECT_EQ(record.remote_address, "127.0.0.1");
  };
  ServiceWorld world(options);
  world.MakeTable("orders");
  world.Get("/orders()?sv=2019-02-02&sig=SECRET%3D&sp=r&s%69g=SECRET&SIG=SECRET");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, "CreateTable POST /Tables contoso ");
  EXPECT_EQ(lines[1].text.find("SECRET"), std::string::npos) << lines[1].text;
  EXPECT_THAT(lines[1].text,
              HasSubstr("/orders()?sv=2019-02-02&sig=REDACTED&sp=r&s%69g=REDACTED&SIG=REDACTED contoso"));
  EXPECT_GE(lines[1].status, 400);

  world.Insert("orders", "p", "1");
  world.Insert("orders", "p", "1");
  world.Get("/orders()");
  const ServiceCounters::Totals totals = world.service().counters().Sum();
  const auto& inserts = totals.kinds[static_cast<size_t>(RequestKind::kInsertEntity)];
  EXPECT_EQ(inserts.by_status_class[0], 1u);
  EXPECT_EQ(inserts.by_status_class[2], 1u);
  uint64_t timed = 0;
  for (uint64_t bucket : inserts.by_latency) timed += bucket;
  EXPECT_EQ(timed, 2u);
  EXPECT_GE(totals.entities_scanned, 1u);
  EXPECT_GT(totals.bytes_out, 0u);
}

TEST(ServiceLog, ALargeAnswerThatFindsNoRoomIsLoggedAndCountedAsRefused) {
  std::vector<int> statuses;
  TableServiceOptions options;
  options.access_log = [&](const AccessRecord& record) { statuses.push_back(record.status); };
  ServiceWorld world(options);
  world.MakeTable("orders");
  const std::string text = "\"" + std::string(30'000, 'x') + "\"";
  ASSERT_EQ(world.Insert("orders", "p", "r", ",\"a\":" + text + ",\"b\":" + text + ",\"c\":" + text).status,
            201);
  BufferBudget budget(128 << 10);
  BufferShare others(&budget);
  EXPECT_TRUE(others.Set(100 << 10));
  world.buffers = &budget;
  EXPECT_EQ(world.Get(kRow).Outcome(), "503 ServerBusy");
  EXPECT_EQ(budget.held(), others.bytes());
  others.Set(0);
  EXPECT_EQ(world.Get(kRow).Outcome(), "200");
  world.buffers = nullptr;
  EXPECT_THAT(statuses, ElementsAre(201, 201, 503, 200));
  const auto gets = world.service().counters().Sum().kinds[static_cast<size_t>(RequestKind::kGetEntity)];
  EXPECT_THAT(gets.by_status_class, ElementsAre(1, 0, 0, 1));
}

TEST(ServiceLog, WhatTheConnectionRefusesIsWordedByTheService) {
  std::vector<std::string> lines;
  TableServiceOptions options;
  options.access_log = [&lines](const AccessRecord& record) {
    lines.push_back(std::string(RequestKindName(record.kind)) + " " + std::string(record.target) + " " +
                    std::to_string(record.status) + " " + std::string(record.error_code));
    EXPECT_EQ(record.remote_address, "127.0.0.1");
    EXPECT_EQ(record.request_id.size(), 36u);
  };
  ServiceWorld world(options);
  HttpRequest unknown;
  unknown.remote_address = "127.0.0.1";
  HttpResponse response;
  world.service().Refuse(431, "The headers are too large.", unknown, &response);
  EXPECT_EQ(response.status, 431);
  EXPECT_THAT(response.headers, HasSubstr("x-ms-request-id: "));
  EXPECT_THAT(response.body, HasSubstr("The headers are too large."));
  response.Clear();
  world.service().Refuse(503, "Too many connections.", unknown, &response);
  EXPECT_THAT(response.headers, HasSubstr("x-ms-error-code: ServerBusy\r\n"));
  EXPECT_THAT(response.headers, HasSubstr("Retry-After: 1\r\n"));
  world.Refuse(503, "No room.", "POST /$batch?sig=SECRET HTTP/1.1\n\n");
  EXPECT_THAT(lines, ElementsAre("Unknown  431 InvalidInput", "Unknown  503 ServerBusy",
                                 "Batch /$batch?sig=REDACTED 503 ServerBusy"));
}

// 17.2
TEST(ServiceLog, EveryOperationIsDueAndCountedAsTimedOutWhenItIsLate) {
  std::vector<std::string> lines;
  TableServiceOptions options;
  options.access_log = [&lines](const AccessRecord& record) {
    lines.push_back(std::string(RequestKindName(record.kind)) + " " + std::string(record.error_code) + " " +
                    std::to_string(record.microseconds / 1'000'000));
  };
  ServiceWorld world(options);
  world.MakeTable("orders");
  EXPECT_EQ(world.Get("/Tables").due_ms, 31'000u);
  EXPECT_EQ(world.Get("/orders()?timeout=90").due_ms, 31'000u);
  EXPECT_EQ(world.Post("/orders?timeout=7", R"({"PartitionKey":"p","RowKey":"r"})").due_ms, 8'000u);
  EXPECT_EQ(world.Get(std::string(kRow) + "?timeout=2").due_ms, 3'000u);
  EXPECT_EQ(world.Delete(std::string(kRow) + "?timeout=1").due_ms, 2'000u);
  lines.clear();
  EXPECT_EQ(world.Refuse(500, "Too long.", "POST /orders?timeout=7 HTTP/1.1\n\n", 8'000'000'000).Outcome(),
            "500 OperationTimedOut");
  // What goes on behind it is not counted again.
  world.answered = true;
  world.Post("/orders", R"({"PartitionKey":"p","RowKey":"late"})");
  world.answered = false;
  EXPECT_THAT(lines, ElementsAre("InsertEntity OperationTimedOut 8"));
}

TEST(ServiceLog, WhatTheConnectionRefusesOfARequestIsAnAnswerToIt) {
  ServiceWorld world;
  ASSERT_EQ(
      world
          .Put("/?restype=service&comp=properties",
               "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a</AllowedOrigins>"
               "<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><AllowedHeaders>"
               "</AllowedHeaders><ExposedHeaders>x-ms-error-code</ExposedHeaders></CorsRule></Cors>"
               "</StorageServiceProperties>")
          .status,
      202);
  const Reply reply = world.Refuse(503, "The server holds too many large answers.",
                                   "GET /orders() HTTP/1.1\nOrigin: http://a\nx-ms-client-request-id: 17\n"
                                   "x-ms-version: 2018-03-28\nAccept: application/xml\n\n");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.headers, HasSubstr("x-ms-client-request-id: 17\r\n"));
  EXPECT_THAT(reply.headers, HasSubstr("x-ms-version: 2018-03-28\r\n"));
  EXPECT_THAT(reply.headers, HasSubstr("Access-Control-Allow-Origin: http://a\r\n"));
  EXPECT_THAT(reply.headers, HasSubstr("Access-Control-Expose-Headers: x-ms-error-code\r\n"));
  EXPECT_THAT(reply.headers, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(reply.body, HasSubstr("<code>ServerBusy</code>"));
  EXPECT_EQ(world.Refuse(503, "No.", "GET /%zz?x HTTP/1.1\n\n").status, 503) << "whatever is wrong with it";
}

}  // namespace
}  // namespace partita::http

// Section 22 of the reference: the worked examples, byte for byte but for times, tags and ids.
#include <gmock/gmock-matchers.h>

#include "test/http/service_client.h"

namespace partita::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kUrl = "https://contoso.table.core.windows.net";
constexpr std::string_view kCustomerOrder = "/orders(PartitionKey='cust-17',RowKey='0001')";

class Examples : public ::testing::Test {
 protected:
  Reply InsertExample() {  // 22.4
    world.MakeTable("orders");
    return world.Post(
        "/orders",
        "{\"PartitionKey\":\"cust-17\",\"RowKey\":\"0001\",\"item\":\"lamp\",\"qty\":2,\"price\":12.0,"
        "\"paid\":false,\n"
        " \"ref@odata.type\":\"Edm.Int64\",\"ref\":\"9007199254740993\",\"due\":\"2025-02-01T00:00:00.000Z\","
        "\"due@odata.type\":\"Edm.DateTime\",\"note\":null}",
        "Accept: application/json;odata=minimalmetadata\nContent-Type: application/json\n");
  }
  static std::string InJson(std::string tag) {
    for (size_t at = 0; (at = tag.find('"', at)) != std::string::npos; at += 2) tag.insert(at, "\\");
    return tag;
  }

  ServiceWorld world;
};

TEST_F(Examples, CreateATableAndAgain) {  // 22.2, 22.3
  const std::string request =
      "POST /Tables HTTP/1.1\nDataServiceVersion: 3.0\nAccept: application/json;odata=minimalmetadata\n"
      "Content-Type: application/json;odata=nometadata\nx-ms-client-request-id: "
      "7d1f3a52-0001-4a00-9000-000000000001\n"
      "\n{\"TableName\":\"orders\"}";
  const Reply created = world.Ask(request);
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.Header("Cache-Control"), "no-cache");
  EXPECT_EQ(created.Header("Content-Type"),
            "application/json;odata=minimalmetadata;streaming=true;charset=utf-8");
  EXPECT_EQ(created.Header("Location"), kUrl + "/Tables('orders')");
  EXPECT_EQ(created.Header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(created.Header("x-ms-client-request-id"), "7d1f3a52-0001-4a00-9000-000000000001");
  EXPECT_EQ(created.Header("x-ms-version"), "2019-02-02");
  EXPECT_EQ(created.body,
            "{\"odata.metadata\":\"" + kUrl + "/$metadata#Tables/@Element\",\"TableName\":\"orders\"}");
  EXPECT_EQ(created.body.size(), 106u);
  const Reply again = world.Ask(request);
  EXPECT_EQ(again.Outcome(), "409 TableAlreadyExists");
  EXPECT_THAT(
      again.body,
      StartsWith(
          "{\"odata.error\":{\"code\":\"TableAlreadyExists\",\"message\":{\"lang\":\"en-US\",\"value\":"
          "\"The table specified already exists.\\nRequestId:"));
}

TEST_F(Examples, InsertWithTheEntityReturned) {  // 22.4
  const Reply reply = InsertExample();
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.Header("Location"), kUrl + std::string(kCustomerOrder));
  const std::string time = reply.Between("\"Timestamp\":\"", "\"");
  EXPECT_EQ(reply.body,
            "{\"odata.metadata\":\"" + kUrl + "/$metadata#orders/@Element\",\"odata.etag\":\"" +
                InJson(reply.Etag()) +
                "\",\"PartitionKey\":\"cust-17\",\"RowKey\":\"0001\",\"Timestamp\":\"" + time +
                "\",\"item\":\"lamp\",\"qty\":2,\"price\":12.0,\"paid\":false,\"ref@odata.type\":\"Edm."
                "Int64\",\"ref\":"
                "\"9007199254740993\",\"due@odata.type\":\"Edm.DateTime\",\"due\":\"2025-02-01T00:00:00Z\"}");
}

TEST_F(Examples, InsertWithoutContentUnderKeysThatNeedCare) {  // 22.5
  world.MakeTable("orders");
  const Reply reply =
      world.Post("/orders", "{\"PartitionKey\":\"o'neil\",\"RowKey\":\"a b+c\"}",
                 "Prefer: return-no-content\nContent-Type: application/json;odata=nometadata\n");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.Header("Location"), kUrl + "/orders(PartitionKey='o''neil',RowKey='a%20b%2Bc')");
  EXPECT_EQ(reply.Header("DataServiceId"), reply.Header("Location"));
  EXPECT_EQ(reply.Header("Preference-Applied"), "return-no-content");
}

TEST_F(Examples, PointGetWithoutAndWithAllMetadata) {  // 22.6, 22.7
  const Reply insert = InsertExample();
  const Reply none = world.Get(std::string(kCustomerOrder) + "?$select=item,ref,colour",
                               "Accept: application/json;odata=nometadata\n");
  EXPECT_EQ(none.body, "{\"item\":\"lamp\",\"ref\":\"9007199254740993\",\"colour\":null}");
  EXPECT_EQ(none.Etag(), insert.Etag());
  EXPECT_EQ(none.Header("Content-Type"), "application/json;odata=nometadata;streaming=true;charset=utf-8");
  const Reply full = world.Get(kCustomerOrder, "Accept: application/json;odata=fullmetadata\n");
  EXPECT_EQ(full.body,
            "{\"odata.metadata\":\"" + kUrl +
                "/$metadata#orders/@Element\",\"odata.type\":\"contoso.orders\",\"odata.id\":\"" + kUrl +
                std::string(kCustomerOrder) + "\",\"odata.etag\":\"" + InJson(insert.Etag()) +
                "\",\"odata.editLink\":\"orders(PartitionKey='cust-17',RowKey='0001')\",\"PartitionKey\":"
                "\"cust-17\","
                "\"RowKey\":\"0001\",\"Timestamp@odata.type\":\"Edm.DateTime\",\"Timestamp\":\"" +
                insert.Between("\"Timestamp\":\"", "\"") +
                "\",\"item\":\"lamp\",\"qty\":2,\"price\":12.0,\"paid\":false,\"ref@odata.type\":\"Edm."
                "Int64\",\"ref\":"
                "\"9007199254740993\",\"due@odata.type\":\"Edm.DateTime\",\"due\":\"2025-02-01T00:00:00Z\"}");
}

TEST_F(Examples, QueryWithATokenThatIsFollowed) {  // 22.8, looking ahead as the real service does
  InsertExample();
  world.Insert("orders", "cust-17", "0009", ",\"qty\":1");
  const std::string query = "/orders()?$filter=PartitionKey%20eq%20'cust-17'%20and%20qty%20ge%202&$top=1";
  const Reply page = world.Get(query, "Accept: application/json;odata=nometadata\n");
  EXPECT_THAT(page.body,
              StartsWith("{\"value\":[{\"PartitionKey\":\"cust-17\",\"RowKey\":\"0001\",\"Timestamp\":\""));
  EXPECT_THAT(
      page.body,
      EndsWith(
          "\"item\":\"lamp\",\"qty\":2,\"price\":12.0,\"paid\":false,\"ref\":\"9007199254740993\",\"due\":"
          "\"2025-02-01T00:00:00Z\"}]}"));
  EXPECT_FALSE(page.Has("x-ms-continuation-NextPartitionKey"));
  const Reply rest = world.Get(query + "&NextPartitionKey=1%2112%21Y3VzdC0xNw--&NextRowKey=1%218%21MDAwOQ--",
                               "Accept: application/json;odata=nometadata\n");
  EXPECT_EQ(rest.body, "{\"value\":[]}");
  const Reply token = world.Get("/orders()?$top=1");
  EXPECT_EQ(token.Header("x-ms-continuation-NextPartitionKey"), "1!12!Y3VzdC0xNw--");
  EXPECT_EQ(token.Header("x-ms-continuation-NextRowKey"), "1!8!MDAwOQ--");
}

TEST_F(Examples, MergeWithAStaleTagThenWithTheRightOne) {  // 22.9
  const std::string tag = InsertExample().Etag();
  const Reply stale = world.Plain("PATCH", kCustomerOrder,
                                  "If-Match: W/\"datetime'2025-01-15T09%3A00%3A00Z'\"\n", "{\"paid\":true}");
  EXPECT_EQ(stale.Outcome(), "412 UpdateConditionNotSatisfied");
  const Reply right =
      world.Post(kCustomerOrder, "{\"paid\":true}", "X-HTTP-Method: MERGE\nIf-Match: " + tag + "\n");
  EXPECT_EQ(right.status, 204);
  EXPECT_GT(right.Etag(), tag);
}

TEST_F(Examples, UpsertDeleteAndDeleteAgain) {  // 22.10
  world.MakeTable("orders");
  constexpr std::string_view kDesk = "/orders(PartitionKey='cust-18',RowKey='0001')";
  EXPECT_TRUE(world.Put(kDesk, "{\"item\":\"desk\"}").Has("ETag"));
  const Reply deleted = world.Delete(kDesk);
  EXPECT_EQ(deleted.status, 204);
  EXPECT_FALSE(deleted.Has("ETag"));
  EXPECT_EQ(world.Delete(kDesk).Outcome(), "404 ResourceNotFound");
  EXPECT_EQ(world.Delete(kDesk, "").Outcome(), "400 MissingRequiredHeader");
  EXPECT_EQ(world.Delete("/Tables('nosuch')", "").Outcome(), "404 ResourceNotFound");
  EXPECT_EQ(world.Post("/nosuch", "{\"PartitionKey\":\"a\",\"RowKey\":\"b\"}").Outcome(),
            "404 TableNotFound");
}

TEST_F(Examples, ATransactionSentTwice) {  // 22.11, 22.12
  InsertExample();
  const std::string batch =
      "--batch_a1\nContent-Type: multipart/mixed; boundary=changeset_b2\n\n--changeset_b2\nContent-Type: "
      "application/http\n"
      "Content-Transfer-Encoding: binary\n\nPOST https://contoso.table.core.windows.net/orders HTTP/1.1\n"
      "Content-Type: application/json\nAccept: application/json;odata=minimalmetadata\nPrefer: "
      "return-no-content\n\n"
      "{\"PartitionKey\":\"cust-17\",\"RowKey\":\"0002\",\"item\":\"chair\"}\n--changeset_b2\nContent-Type: "
      "application/http\n"
      "Content-Transfer-Encoding: binary\n\nDELETE https://contoso.table.core.windows.net" +
      std::string(kCustomerOrder) + " HTTP/1.1\nIf-Match: *\n\n--changeset_b2--\n--batch_a1--\n";
  const std::string type = "Content-Type: multipart/mixed; boundary=batch_a1\n";
  EXPECT_EQ(PartsOf(world.Post("/$batch", batch, type)), (std::vector<int>{204, 204}));
  const Reply again = world.Post("/$batch", batch, type);
  EXPECT_EQ(again.status, 202);
  EXPECT_EQ(PartsOf(again), std::vector<int>{409});
  EXPECT_EQ(again.Message(), "0:The specified entity already exists.");
}

TEST_F(Examples, AWrongSignature) {  // 22.13
  const Reply reply = world.Get("/Tables", "Authorization: SharedKey contoso:AAAA\n");
  EXPECT_EQ(reply.status, 403);
  EXPECT_EQ(reply.body,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error "
            "xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/"
            "metadata\"><m:code>AuthenticationFailed</m:code><m:message xml:lang=\"en-US\">Server failed to "
            "authenticate the "
            "request. Make sure the value of Authorization header is formed correctly including the "
            "signature.\nRequestId:" +
                reply.Header("x-ms-request-id") + "\nTime:" + reply.Between("\nTime:", "<") +
                "</m:message></m:error>");
}

TEST_F(Examples, ATokenForOnePartition) {  // 22.14
  world.MakeTable("orders");
  world.Insert("orders", "p1", "1");
  world.Insert("orders", "p2", "1");
  const Reply reply = world.Get(
      "/orders()?$select=PartitionKey&$filter=PartitionKey%20ge%20''&sv=2019-02-02&se=2030-01-01T00%3A00%"
      "3A00Z&sp=r&tn=orders&spk=p1&epk=p1&"
      "sig=SGP9IYMkMmRdfFCMIUWAjJUeFtwsLdx7AdyB3GN%2F%2FhI%3D",
      "Accept: application/json;odata=nometadata\n");
  EXPECT_EQ(reply.body, "{\"value\":[{\"PartitionKey\":\"p1\"}]}");
}

}  // namespace
}  // namespace partita::http

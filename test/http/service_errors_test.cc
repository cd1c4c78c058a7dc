// Section 13.2 of the reference: every row of the table of errors that this server can give, by a request
// that gives it. Rows that it never gives are listed at the end, with the reason.
#include <gmock/gmock-matchers.h>

#include "api/http/service_request.h"
#include "engine/base/text.h"
#include "test/http/service_client.h"

namespace partita::http {
namespace {

using ::testing::StartsWith;

constexpr std::string_view kEntity = "/orders(PartitionKey='p',RowKey='r')";

class ServiceErrors : public ::testing::Test {
 protected:
  void SetUp() override {
    world.MakeTable("orders");
    ASSERT_EQ(world.Insert("orders", "p", "r", ",\"a\":1").status, 201);
  }
  std::string Properties(int count) {
    std::string members;
    for (int i = 0; i < count; ++i) members += ",\"p" + std::to_string(i) + "\":1";
    return members;
  }

  ServiceWorld world;
};

TEST_F(ServiceErrors, CommandsInBatchActOnDifferentPartitions) {
  std::string batch = "--b\nContent-Type: multipart/mixed; boundary=c\n\n";
  for (std::string_view partition : {"x", "y"}) {
    batch += "--c\nContent-Type: application/http\n\nPOST /orders HTTP/1.1\n\n{\"PartitionKey\":\"" +
             std::string(partition) + "\",\"RowKey\":\"1\"}\n";
  }
  const Reply reply =
      world.Post("/$batch", batch + "--c--\n--b--", "Content-Type: multipart/mixed; boundary=b\n");
  EXPECT_EQ(reply.Outcome(), "202");
  EXPECT_EQ(PartsOf(reply), std::vector<int>{400});
  EXPECT_EQ(reply.Code(), "CommandsInBatchActOnDifferentPartitions");
  EXPECT_EQ(reply.Message(), "1:All commands in a batch must operate on same entity group.");
  // Of the whole answer, but not of the part.
  EXPECT_EQ(reply.body.find("Cache-Control"), std::string::npos);
}

TEST_F(ServiceErrors, DuplicatePropertiesSpecified) {
  EXPECT_EQ(world.Insert("orders", "p", "x", ",\"a\":1,\"a\":2").Outcome(),
            "400 DuplicatePropertiesSpecified");
}

TEST_F(ServiceErrors, EntityTooLarge) {
  std::string members;
  for (int i = 0; i < 17; ++i) {
    members += ",\"b" + std::to_string(i) + "\":\"" + std::string(32'000, 'x') + "\"";
  }
  const Reply insert = world.Insert("orders", "p", "x", members);
  EXPECT_EQ(insert.Outcome(), "400 EntityTooLarge");
  EXPECT_EQ(insert.Message(), "The entity is larger than the maximum allowed size (1MB).");
  // Two halves that are legal alone.
  members.clear();
  for (int i = 0; i < 9; ++i)
    members += "\"b" + std::to_string(i) + "\":\"" + std::string(32'000, 'x') + "\",";
  std::string others;
  for (int i = 0; i < 9; ++i)
    others += "\"c" + std::to_string(i) + "\":\"" + std::string(32'000, 'x') + "\",";
  EXPECT_EQ(world.Merge(kEntity, "{" + members + "\"z\":1}").status, 204);
  EXPECT_EQ(world.Merge(kEntity, "{" + others + "\"z\":1}").Outcome(), "400 EntityTooLarge");
}

TEST_F(ServiceErrors, HostInformationNotPresent) {
  EXPECT_EQ(world.AskExactly("GET /Tables HTTP/1.1\n\n").Outcome(), "400 HostInformationNotPresent");
}

TEST_F(ServiceErrors, InvalidAuthenticationInfo) {
  EXPECT_EQ(world.Get("/Tables", "Authorization: SharedKeyLite\n").Outcome(),
            "400 InvalidAuthenticationInfo");
  EXPECT_EQ(world.Get("/Tables", "Authorization: Basic a:b\n").Outcome(), "400 InvalidAuthenticationInfo");
  const Reply bearer = world.AskExactly(
      "GET /Tables HTTP/1.1\nHost: contoso.table.core.windows.net\n"
      "x-ms-version: 2020-12-06\n\n");
  EXPECT_EQ(bearer.Outcome(), "401 InvalidAuthenticationInfo");
  EXPECT_THAT(bearer.Header("WWW-Authenticate"), StartsWith("Bearer authorization_uri="));
}

TEST_F(ServiceErrors, InvalidDuplicateRow) {
  std::string batch = "--b\nContent-Type: multipart/mixed; boundary=c\n\n";
  for (std::string_view request : {"POST /orders", "PUT /orders(PartitionKey='x',RowKey='1')"}) {
    batch += "--c\nContent-Type: application/http\n\n" + std::string(request) +
             " HTTP/1.1\n\n{\"PartitionKey\":\"x\",\"RowKey\":\"1\"}\n";
  }
  const Reply reply =
      world.Post("/$batch", batch + "--c--\n--b--", "Content-Type: multipart/mixed; boundary=b\n");
  EXPECT_EQ(reply.Code(), "InvalidDuplicateRow");
  EXPECT_EQ(
      reply.Message(),
      "1:The batch request contains multiple changes with same row key. An entity can appear only once in a "
      "batch request.");
}

TEST_F(ServiceErrors, InvalidHeaderValue) {
  for (std::string_view version : {"2013-08-14", "2011-08-18", "yesterday", "2019-2-2", "2019-13-01", ""}) {
    const Reply reply = world.Get("/Tables", "x-ms-version: " + std::string(version) + "\n");
    EXPECT_EQ(reply.Outcome(), "400 InvalidHeaderValue") << version;
    EXPECT_EQ(reply.Header("x-ms-version"), kNewestVersion) << version;
  }
  EXPECT_EQ(world.Get("/Tables", "DataServiceVersion: new\n").Outcome(), "400 InvalidHeaderValue");
  EXPECT_EQ(world.Get("/Tables", "MaxDataServiceVersion: 3.x\n").Outcome(), "400 InvalidHeaderValue");
  const Reply cors = world.Plain("OPTIONS", "/orders", "", "");
  EXPECT_EQ(cors.Outcome(), "400 InvalidHeaderValue");
  EXPECT_EQ(cors.Message(), "A required CORS header is not present.");
}

TEST_F(ServiceErrors, InvalidInput) {
  for (std::string_view body :
       {"", "[]", "{", "{} x", "nonsense", "\"a\"", "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":[]}"}) {
    EXPECT_EQ(world.Post("/orders", body).Outcome(), "400 InvalidInput") << body;
  }
  EXPECT_EQ(world.Put(kEntity, "{\"PartitionKey\":\"other\"}").Outcome(), "400 InvalidInput");
  EXPECT_EQ(world.Get("/orders()?$filter=aaa%20bbb%20ccc").Message(),
            "Syntax error at position 7 in 'aaa bbb ccc'.");
  EXPECT_EQ(world.Get("/orders()?$top=1001").Outcome(), "400 InvalidInput");
  EXPECT_EQ(world.Get("/orders()?NextPartitionKey=abc").Outcome(), "400 InvalidInput");
  EXPECT_EQ(world.Get("/Tables()?NextTableName=abc").Outcome(), "400 InvalidInput");
  EXPECT_EQ(world.Post("/$batch", "", "Content-Type: multipart/mixed; boundary=b\n").Outcome(),
            "400 InvalidInput");
  const Reply tag = world.Put(kEntity, "{}", "If-Match: abc\n");
  EXPECT_EQ(
      tag.Message(),
      "The etag value 'abc' specified in one of the request headers is not valid. Please make sure only one "
      "etag value is specified and is valid.");
  // A second one is refused, be it the same.
  const std::string etag = world.Get(kEntity).Etag();
  for (const std::string& other : {etag, std::string("*")}) {
    const std::string two = "If-Match: " + etag + "\nIf-Match: " + other + "\n";
    EXPECT_EQ(world.Put(kEntity, "{}", two).Outcome(), "400 InvalidInput");
    EXPECT_EQ(world.Delete(kEntity, two).Outcome(), "400 InvalidInput");
  }
  // What is quoted stays UTF-8.
  EXPECT_TRUE(IsValidUtf8(world.Put(kEntity, "{}", "If-Match: \xFF\xC3x\n").body));
  const std::string long_tag = "If-Match: " + std::string(255, 'x') + "\xC3\xA9\xC3\xA9\n";
  EXPECT_TRUE(IsValidUtf8(world.Put(kEntity, "{}", long_tag).body));
}

TEST_F(ServiceErrors, InvalidMd5AndMd5Mismatch) {
  const std::string body = "{\"PartitionKey\":\"p\",\"RowKey\":\"m\"}";
  EXPECT_EQ(world.Post("/orders", body, "Content-MD5: xyz\n").Outcome(), "400 InvalidMd5");
  EXPECT_EQ(world.Post("/orders", body, "Content-MD5: AQI=\n").Outcome(), "400 InvalidMd5");
  EXPECT_EQ(world.Post("/orders", body, "Content-MD5: AAAAAAAAAAAAAAAAAAAAAA==\n").Outcome(),
            "400 Md5Mismatch");
  // Of the empty object.
  EXPECT_EQ(world.Put("/orders(PartitionKey='p',RowKey='m')", "{}", "Content-MD5: mZFLkyvTelC5g8XnyQrpOw==\n")
                .status,
            204);
}

TEST_F(ServiceErrors, InvalidQueryParameterValue) {
  EXPECT_EQ(world.Get("/orders?comp=other").Outcome(), "400 InvalidQueryParameterValue");
  EXPECT_EQ(world.Get("/?restype=service&comp=other").Outcome(), "400 InvalidQueryParameterValue");
  EXPECT_EQ(world.Get("/").Outcome(), "400 InvalidQueryParameterValue");
  EXPECT_EQ(world.Get("/Tables?timeout=soon").Outcome(), "400 InvalidQueryParameterValue");
  EXPECT_EQ(world.Get("/?restype=service&comp=stats").Outcome(), "400 InvalidQueryParameterValue");
}

TEST_F(ServiceErrors, InvalidResourceName) {
  const std::string message = "The specifed resource name contains invalid characters.";
  const Reply create = world.Post("/Tables", "{\"TableName\":\"bad_name\"}");
  EXPECT_EQ(create.Outcome(), "400 InvalidResourceName");
  EXPECT_EQ(create.Message(), message);
  for (std::string_view method : {"GET", "POST", "PUT", "DELETE", "MERGE"}) {
    const std::string target = method == "POST" ? "/bad_name" : "/bad_name(PartitionKey='p',RowKey='r')";
    const Reply reply =
        world.Plain(method, target, method == "DELETE" ? "If-Match: *\n" : "",
                    method == "GET" || method == "DELETE" ? "" : "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}");
    EXPECT_EQ(reply.Outcome(), "400 InvalidResourceName") << method;
    EXPECT_TRUE(reply.Has("X-Content-Type-Options")) << method;
    EXPECT_FALSE(reply.Has("Cache-Control")) << method;
  }
  EXPECT_EQ(world.Get("/1abc()").Outcome(), "400 InvalidResourceName");
  EXPECT_EQ(world.Post("/Tables", "{\"TableName\":\"\"}").Outcome(), "400 InvalidResourceName");
  const Reply acl = world.Get("/bad_name?comp=acl");
  EXPECT_EQ(acl.Outcome(), "400 InvalidResourceName");
  EXPECT_EQ(acl.Header("Content-Type"), "application/xml");
}

TEST_F(ServiceErrors, InvalidUri) {
  EXPECT_EQ(world.Get("/a%zz").Outcome(), "400 InvalidUri");
  EXPECT_EQ(world.Get("/orders/more").Outcome(), "400 InvalidUri");
}

TEST_F(ServiceErrors, InvalidXmlDocument) {
  for (std::string_view target : {"/orders?comp=acl", "/?restype=service&comp=properties"}) {
    const Reply reply = world.Put(target, "<not xml");
    EXPECT_EQ(reply.Outcome(), "400 InvalidXmlDocument") << target;
    EXPECT_EQ(reply.Message(), "XML specified is not syntactically valid.") << target;
    EXPECT_EQ(reply.Header("Content-Type"), "application/xml") << target;
  }
}

TEST_F(ServiceErrors, XmlNodesOfServiceProperties) {
  const auto put = [&](std::string_view hour) {
    return world
        .Put("/?restype=service&comp=properties", "<StorageServiceProperties><HourMetrics>" +
                                                      std::string(hour) +
                                                      "</HourMetrics></StorageServiceProperties>")
        .Outcome();
  };
  EXPECT_THAT(put("<Version>1.0</Version><Enabled>maybe</Enabled>"
                  "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"),
              StartsWith("400 InvalidXml"));
  EXPECT_EQ(put("<Version>1.0</Version><Enabled>true</Enabled>"), "400 MissingRequiredXmlNode");
}

TEST_F(ServiceErrors, MissingRequiredHeader) {
  EXPECT_EQ(world.Delete(kEntity, "").Outcome(), "400 MissingRequiredHeader");
  EXPECT_EQ(world.Get(kEntity).status, 200);
}

TEST_F(ServiceErrors, OutOfRangeInput) {
  for (std::string_view name : {"ab", "a123456789012345678901234567890123456789012345678901234567890123"}) {
    const Reply create = world.Post("/Tables", "{\"TableName\":\"" + std::string(name) + "\"}");
    EXPECT_EQ(create.Outcome(), "400 OutOfRangeInput") << name;
    EXPECT_EQ(create.Message(), "The specified resource name length is not within the permissible limits.");
  }
  EXPECT_EQ(world.Get("/ab()").Outcome(), "400 OutOfRangeInput");
  const Reply key = world.Insert("orders", "p", "a#b");
  EXPECT_EQ(key.Message(), "The 'RowKey' parameter of value 'a#b' is out of range.");
  // Beside a value that is none the key is told, and in the same way.
  const Reply both = world.Insert("orders", "p", "a#b", ",\"n\":\"x\",\"n@odata.type\":\"Edm.Int32\"");
  EXPECT_EQ(both.Message(), key.Message());
  EXPECT_EQ(both.Has("Cache-Control"), key.Has("Cache-Control"));
  EXPECT_EQ(world.Get("/orders(PartitionKey='a%23b',RowKey='')").Message(),
            "One of the request inputs is out of range.");
}

TEST_F(ServiceErrors, PropertiesNeedValue) {
  const std::string message = "The values are not specified for all properties in the entity.";
  for (std::string_view body :
       {"{}", "{\"PartitionKey\":\"p\"}", "{\"RowKey\":\"r\"}", "{\"PartitionKey\":null,\"RowKey\":\"r\"}"}) {
    const Reply reply = world.Post("/orders", body);
    EXPECT_EQ(reply.Outcome(), "400 PropertiesNeedValue") << body;
    EXPECT_EQ(reply.Message(), message);
  }
  EXPECT_EQ(world.Post("/Tables", "{}").Outcome(), "400 PropertiesNeedValue");
  EXPECT_EQ(world.Post("/Tables", "{\"TableName\":null}").Outcome(), "400 PropertiesNeedValue");
}

TEST_F(ServiceErrors, PropertyNames) {
  EXPECT_EQ(world.Insert("orders", "p", "x", ",\"a-b\":1").Outcome(), "400 PropertyNameInvalid");
  const Reply reply = world.Insert("orders", "p", "x", ",\"" + std::string(256, 'a') + "\":1");
  EXPECT_EQ(reply.Outcome(), "400 PropertyNameTooLong");
  EXPECT_EQ(reply.Message(), "The property name exceeds the maximum allowed length (255).");
  EXPECT_EQ(world.Insert("orders", "p", "x", ",\"" + std::string(255, 'a') + "\":1").status, 201);
}

TEST_F(ServiceErrors, PropertyValueTooLarge) {
  const Reply text = world.Insert("orders", "p", "x", ",\"a\":\"" + std::string(32'769, 'x') + "\"");
  EXPECT_EQ(text.Outcome(), "400 PropertyValueTooLarge");
  EXPECT_EQ(
      text.Message(),
      "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is "
      "UTF-16 encoded and the maximum number of characters should be 32K or less.");
  EXPECT_EQ(world.Insert("orders", "p", "x", ",\"a\":\"" + std::string(32'768, 'x') + "\"").status, 201);
  // An over-long key: where something is written that, but nothing can be there to read or delete.
  const std::string key(513, 'k');
  const std::string target = "/orders(PartitionKey='p',RowKey='" + key + "')";
  EXPECT_EQ(world.Insert("orders", "p", key).Outcome(), "400 PropertyValueTooLarge");
  EXPECT_EQ(world.Put(target, "{}").Outcome(), "400 PropertyValueTooLarge");
  EXPECT_EQ(world.Merge(target, "{}", "If-Match: *\n").Outcome(), "400 PropertyValueTooLarge");
  EXPECT_EQ(world.Delete(target).Outcome(), "404 ResourceNotFound");
  EXPECT_EQ(world.Get(target).Outcome(), "404 ResourceNotFound");
}

TEST_F(ServiceErrors, TooManyProperties) {
  EXPECT_EQ(world.Insert("orders", "p", "x", Properties(252)).status, 201);
  const Reply reply = world.Insert("orders", "p", "y", Properties(253));
  EXPECT_EQ(reply.Outcome(), "400 TooManyProperties");
  EXPECT_THAT(reply.Message(), StartsWith("The entity contains more properties than allowed."));
  EXPECT_EQ(world.Merge("/orders(PartitionKey='p',RowKey='x')", "{\"another\":1}").Outcome(),
            "400 TooManyProperties");
  // More than the 255 that fit the store's own form as well.
  std::string others;
  for (int i = 0; i < 200; ++i) others += (i > 0 ? ",\"other" : "{\"other") + std::to_string(i) + "\":1";
  EXPECT_EQ(world.Merge("/orders(PartitionKey='p',RowKey='x')", others + "}").Outcome(),
            "400 TooManyProperties");
}

TEST_F(ServiceErrors, TunnelledVerbs) {
  EXPECT_EQ(world.Put(kEntity, "{}", "X-HTTP-Method: MERGE\n").Outcome(), "400 XMethodNotUsingPost");
  EXPECT_EQ(world.Post(kEntity, "{}", "X-HTTP-Method: MERGE\nX-HTTP-Method: MERGE\n").Outcome(),
            "400 XMethodIncorrectCount");
  EXPECT_EQ(world.Post(kEntity, "{}", "X-HTTP-Method: GET\n").Outcome(), "400 XMethodIncorrectValue");
}

TEST_F(ServiceErrors, AuthenticationFailed) {
  const Reply reply = world.Get("/Tables", "Authorization: SharedKey contoso:AAAA\n");
  EXPECT_EQ(reply.Outcome(), "403 AuthenticationFailed");
  EXPECT_EQ(reply.Header("Content-Type"), "application/xml");
  EXPECT_EQ(reply.Header("x-ms-error-code"), "AuthenticationFailed");
  EXPECT_EQ(
      world
          .AskExactly(
              "GET /Tables HTTP/1.1\nHost: contoso.table.core.windows.net\nx-ms-version: 2019-02-02\n\n")
          .Outcome(),
      "403 AuthenticationFailed");
  EXPECT_EQ(world.Get("/Tables", "x-ms-date: Wed, 15 Jan 2020 10:20:30 GMT\n").Outcome(),
            "403 AuthenticationFailed");
  // Authentication precedes existence, of tables and of accounts.
  EXPECT_EQ(world.Get("/nosuch()", "Authorization: SharedKey contoso:AAAA\n").Outcome(),
            "403 AuthenticationFailed");
  EXPECT_EQ(world.Get("/Tables", "Host: nobody.table.core.windows.net\n").Outcome(),
            "403 AuthenticationFailed");
}

TEST_F(ServiceErrors, AccountsThatMayNot) {
  EXPECT_EQ(world.Get("/Tables", "Host: closed.table.core.windows.net\n").Outcome(), "403 AccountIsDisabled");
  const std::string secondary = "Host: contoso-secondary.table.core.windows.net\n";
  EXPECT_EQ(world.Post("/Tables", "{\"TableName\":\"abc\"}", secondary).Outcome(),
            "403 InsufficientAccountPermissions");
  EXPECT_EQ(world.Delete(kEntity, secondary + "If-Match: *\n").Outcome(),
            "403 InsufficientAccountPermissions");
  EXPECT_EQ(world.Get(kEntity, secondary).status, 200);
}

TEST_F(ServiceErrors, CorsPreflightFailure) {
  const Reply reply =
      world.Plain("OPTIONS", "/orders", "Origin: http://a.example\nAccess-Control-Request-Method: GET\n", "");
  EXPECT_EQ(reply.Outcome(), "403 CorsPreflightFailure");
}

TEST_F(ServiceErrors, TableNotFound) {
  const std::string body = "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}";
  const std::string target = "/nosuch(PartitionKey='p',RowKey='r')";
  for (const Reply& reply :
       {world.Get("/nosuch()"), world.Get(target), world.Post("/nosuch", body), world.Put(target, body),
        world.Merge(target, body), world.Put(target, body, "If-Match: *\n"), world.Delete(target)}) {
    EXPECT_EQ(reply.Outcome(), "404 TableNotFound");
    EXPECT_EQ(reply.Message(), "The table specified does not exist.");
    EXPECT_FALSE(reply.Has("Cache-Control"));
  }
  for (const Reply& reply : {world.Get("/nosuch?comp=acl"), world.Put("/nosuch?comp=acl", "")}) {
    EXPECT_EQ(reply.Outcome(), "404 TableNotFound");
    EXPECT_EQ(reply.Header("Content-Type"), "application/xml");
    EXPECT_EQ(reply.Header("x-ms-error-code"), "TableNotFound");
  }
}

TEST_F(ServiceErrors, ResourceNotFound) {
  const std::string absent = "/orders(PartitionKey='p',RowKey='absent')";
  for (const Reply& reply :
       {world.Get(absent), world.Delete(absent), world.Put(absent, "{}", "If-Match: *\n"),
        world.Merge(absent, "{}", "If-Match: *\n"), world.Get("/Tables('nosuch')"),
        world.Delete("/Tables('nosuch')", ""), world.Delete("/Tables('bad_name')", ""),
        world.Get("/Tables('x')"), world.Delete("/Tables('tables')", "")}) {
    EXPECT_EQ(reply.Outcome(), "404 ResourceNotFound");
    EXPECT_EQ(reply.Message(), "The specified resource does not exist.");
  }
}

TEST_F(ServiceErrors, MethodNotAllowedAndUnsupportedHttpVerb) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"PUT", "/Tables"},
      {"DELETE", "/Tables"},
      {"HEAD", "/Tables"},
      {"PUT", "/Tables('orders')"},
      {"PUT", "/orders"},
      {"DELETE", "/orders"},
      {"HEAD", "/orders()"},
      {"POST", std::string(kEntity)},
      {"HEAD", std::string(kEntity)},
      {"GET", "/$batch"},
      {"POST", "/$metadata"},
      {"POST", "/?restype=service&comp=properties"},
      {"PUT", "/?restype=service&comp=stats"},
      {"POST", "/orders?comp=acl"},
      {"PUT", "/orders(PartitionKey='p')"}};
  for (const auto& [method, target] : cases) {
    const Reply reply = world.Plain(method, target, "", "");
    EXPECT_EQ(reply.Outcome(), "405 MethodNotAllowed") << method << " " << target;
    EXPECT_EQ(reply.omit_body, method == "HEAD");
  }
  EXPECT_EQ(world.Plain("BREW", "/Tables", "", "").Outcome(), "405 UnsupportedHttpVerb");
}

TEST_F(ServiceErrors, AlreadyExists) {
  const Reply entity = world.Insert("orders", "p", "r");
  EXPECT_EQ(entity.Outcome(), "409 EntityAlreadyExists");
  EXPECT_EQ(entity.Message(), "The specified entity already exists.");
  EXPECT_EQ(entity.Header("Cache-Control"), "no-cache");
  const Reply table = world.Post("/Tables", "{\"TableName\":\"ORDERS\"}");
  EXPECT_EQ(table.Outcome(), "409 TableAlreadyExists");
  EXPECT_EQ(table.Message(), "The table specified already exists.");
}

TEST_F(ServiceErrors, MissingContentLengthHeader) {
  // The request is signed, so it is completed but for its length.
  world.withhold_length = true;
  EXPECT_EQ(world.Post("/orders", "").Outcome(), "411 MissingContentLengthHeader");
  EXPECT_EQ(world.Post("/$batch", "").Outcome(), "411 MissingContentLengthHeader");
  EXPECT_EQ(world.Put("/?restype=service&comp=properties", "").Outcome(), "411 MissingContentLengthHeader");
  EXPECT_EQ(world.Delete(kEntity).status, 204);
  EXPECT_EQ(world.Put("/orders?comp=acl", "").status, 204);
}

TEST_F(ServiceErrors, UpdateConditionNotSatisfied) {
  const Reply reply = world.Put(kEntity, "{}", "If-Match: W/\"wrong\"\n");
  EXPECT_EQ(reply.Outcome(), "412 UpdateConditionNotSatisfied");
  EXPECT_EQ(reply.Message(), "The update condition specified in the request was not satisfied.");
}

TEST_F(ServiceErrors, RequestBodyTooLarge) {
  const std::string body(kRequestBodyMax + 1, ' ');
  for (std::string_view target : {"/orders", "/Tables", "/$batch"}) {
    const Reply reply = world.Post(target, body, "Content-Type: multipart/mixed; boundary=b\n");
    if (target == "/$batch") {
      EXPECT_EQ(reply.Outcome(), "413 RequestBodyTooLarge");
    }
  }
  EXPECT_EQ(world.Post("/orders", body).Outcome(), "413 RequestBodyTooLarge");
  EXPECT_EQ(world.Put("/orders?comp=acl", body).Outcome(), "413 RequestBodyTooLarge");
  world.body_too_large = true;  // What the connection did not even read.
  const Reply unread = world.Post("/orders", "");
  EXPECT_EQ(unread.Outcome(), "413 RequestBodyTooLarge");
  EXPECT_EQ(unread.Message(), "The request body is too large and exceeds the maximum permissible limit.");
  // Who may not write is told that, not the size.
  EXPECT_EQ(world.Post("/orders", "", "Authorization: SharedKey contoso:AAAA\n").Outcome(),
            "403 AuthenticationFailed");
}

TEST_F(ServiceErrors, FormatsNotSupported) {
  EXPECT_EQ(world.Get("/Tables", "Accept: application/atom+xml\n").Outcome(), "415 AtomFormatNotSupported");
  EXPECT_EQ(world.Get("/Tables", "Accept: text/html\n").Outcome(), "415 AtomFormatNotSupported");
  EXPECT_EQ(world.Get("/orders()?$format=application/atom%2Bxml", "Accept: application/json\n").Outcome(),
            "415 AtomFormatNotSupported");
  EXPECT_EQ(world.Get("/Tables", "Accept: application/json;odata=verbose\n").Outcome(),
            "415 JsonFormatNotSupported");
  const std::string body = "{\"PartitionKey\":\"p\",\"RowKey\":\"x\"}";
  EXPECT_EQ(world.Post("/orders", body, "Content-Type: application/atom+xml\n").Outcome(),
            "415 AtomFormatNotSupported");
  EXPECT_EQ(world.Post("/orders", body).status, 201);  // Without a Content-Type.
}

TEST_F(ServiceErrors, NotImplemented) {
  const std::string message = "The requested operation is not implemented on the specified resource.";
  for (std::string_view query : {"$orderby=a", "$skip=1", "$inlinecount=allpages", "$expand=a",
                                 "$filter=startswith(a,'b')", "$filter=a%20eq%20b", "$filter=1%20eq%202"}) {
    const Reply reply = world.Get("/orders()?" + std::string(query));
    EXPECT_EQ(reply.Outcome(), "501 NotImplemented") << query;
    EXPECT_EQ(reply.Message(), message) << query;
  }
  EXPECT_EQ(world.Get("/Tables?$filter=startswith(TableName,'b')").Outcome(), "501 NotImplemented");
  EXPECT_EQ(world.Get("/Tables?$orderby=TableName").Outcome(), "501 NotImplemented");
  EXPECT_EQ(world.Get("/Tables('orders')?$expand=a").Outcome(), "501 NotImplemented");
  EXPECT_EQ(world.Get("/$metadata").Outcome(), "501 NotImplemented");
}

TEST_F(ServiceErrors, InternalError) {
  ASSERT_TRUE(world.database().Flush().ok());
  world.Reopen();
  world.runtime().AddFault({.effect = SimEffect::kError, .operations = SimOps(SimOp::kRead)});
  const Reply unread = world.Get(kEntity);
  EXPECT_EQ(unread.Outcome(), "500 InternalError");
  EXPECT_EQ(unread.Message(), "The server encountered an internal error.");
  EXPECT_EQ(world.Get("/orders()").Outcome(), "500 InternalError");
  world.runtime().ClearFaults();
  EXPECT_EQ(world.Get(kEntity).status, 200);
}

TEST_F(ServiceErrors, OperationTimedOut) {  // 17.2
  world.runtime().AddFault(
      {.effect = SimEffect::kSlow, .operations = SimOps(SimOp::kWrite, SimOp::kFlush), .count = 1});
  const Reply doubtful = world.Insert("orders", "p", "late");
  EXPECT_EQ(doubtful.Outcome(), "500 OperationTimedOut");
  EXPECT_EQ(doubtful.Message(), "The operation could not be completed within the permitted time.");
  world.runtime().AdvanceTime(120'000'000'000);
  EXPECT_EQ(world.Insert("orders", "p", "late").Outcome(), "409 EntityAlreadyExists")
      << "it was written after all";
}

// Rows of the table that never occur here:
//   EmptyMetadataKey, InvalidMetadata, InvalidRange, ConditionNotMet, ResourceAlreadyExists,
//   ResourceTypeMismatch, AccountAlreadyExists, AccountBeingCreated: of other services; tables do not use
//   them (reference). EntityNotFound: the wire shows ResourceNotFound. InvalidValueType: InvalidInput is
//   equally acceptable. InvalidHttpVerb: UnsupportedHttpVerb says it. RequestUrlFailedToParse: InvalidUri.
//   ConditionHeadersNotSupported, MultipleConditionHeadersNotSupported: InvalidInput (section 9.3).
//   NoAuthenticationInformation: InvalidAuthenticationInfo (section 14.6).
//   MissingRequiredQueryParameter, OutOfRangeQueryParameterValue, Unsupported*: InvalidQueryParameterValue or
//   InvalidInput. TableBeingDeleted: only while the engine still removes a table of that name, which no
//   request can hold open; its mapping is tested above.

}  // namespace
}  // namespace partita::http

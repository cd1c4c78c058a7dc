// Sections 14 to 16 of the reference, of the whole service: what tokens may do, stored policies, service
// properties and CORS. Signatures themselves are tested with the authorizer.
#include <gmock/gmock-matchers.h>

#include "test/http/service_client.h"

namespace partita::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Encoded(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-') {
      out.push_back(c);
    } else {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      out.append("%").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  return out;
}

struct TableSas {
  std::string sp = "raud";
  std::string si;
  std::string spk, srk, epk, erk;
};

class ServiceAccess : public ::testing::Test {
 protected:
  void SetUp() override { world.MakeTable("orders"); }

  // The query of a table SAS for `orders`, version 2019-02-02.
  static std::string Token(const TableSas& sas) {
    const std::string se = sas.si.empty() ? "2030-01-01T00:00:00Z" : "";
    const std::string text = sas.sp + "\n\n" + se + "\n/table/contoso/orders\n" + sas.si +
                             "\n\n\n2019-02-02\n" + sas.spk + "\n" + sas.srk + "\n" + sas.epk + "\n" +
                             sas.erk;
    std::string query = "sv=2019-02-02&tn=Orders";
    for (const auto& [name, value] :
         std::initializer_list<std::pair<std::string, std::string>>{{"sp", sas.sp},
                                                                    {"se", se},
                                                                    {"si", sas.si},
                                                                    {"spk", sas.spk},
                                                                    {"srk", sas.srk},
                                                                    {"epk", sas.epk},
                                                                    {"erk", sas.erk}}) {
      if (!value.empty()) query += "&" + name + "=" + Encoded(value);
    }
    return query + "&sig=" + Encoded(SigningKey::FromBase64(kExampleKey)->Sign(text));
  }
  static std::string AccountToken(std::string_view srt, std::string_view sp) {
    const std::string text = "contoso\n" + std::string(sp) + "\nt\n" + std::string(srt) +
                             "\n\n2030-01-01T00:00:00Z\n\n\n2019-02-02\n";
    return "sv=2019-02-02&ss=t&srt=" + std::string(srt) + "&sp=" + std::string(sp) +
           "&se=2030-01-01T00%3A00%3A00Z&sig=" + Encoded(SigningKey::FromBase64(kExampleKey)->Sign(text));
  }
  static std::string Keys(std::string_view partition, std::string_view row) {
    return "{\"PartitionKey\":\"" + std::string(partition) + "\",\"RowKey\":\"" + std::string(row) + "\"}";
  }
  static std::string Row(std::string_view partition, std::string_view row) {
    return "/orders(PartitionKey='" + std::string(partition) + "',RowKey='" + std::string(row) + "')?";
  }
  static std::string Batch(std::string_view parts) {
    return "--b\nContent-Type: multipart/mixed; boundary=c\n\n" + std::string(parts) + "--c--\n--b--\n";
  }
  static std::string InsertPart(std::string_view partition, std::string_view row) {
    return "--c\nContent-Type: application/http\n\nPOST /orders HTTP/1.1\n\n" + Keys(partition, row) + "\n";
  }

  ServiceWorld world;
};

TEST_F(ServiceAccess, EachPermissionOpensItsOperationsAndNoOther) {
  world.Insert("orders", "p", "r");
  const std::string mismatch = "403 AuthorizationPermissionMismatch";
  for (std::string_view sp : {"r", "a", "u", "d", "au"}) {
    SCOPED_TRACE(sp);
    const std::string token = Token({.sp = std::string(sp)});
    const auto has = [&](char c) { return sp.find(c) != std::string_view::npos; };
    EXPECT_EQ(world.Get("/orders()?" + token).Outcome(), has('r') ? "200" : mismatch);
    EXPECT_EQ(world.Get(Row("p", "r") + token).Outcome(), has('r') ? "200" : mismatch);
    EXPECT_EQ(world.Post("/orders?" + token, Keys("p", "n-" + std::string(sp))).Outcome(),
              has('a') ? "201" : mismatch);
    EXPECT_EQ(world.Put(Row("p", "r") + token, "{}", "If-Match: *\n").Outcome(), has('u') ? "204" : mismatch);
    EXPECT_EQ(world.Merge(Row("p", "r") + token, "{}", "If-Match: *\n").Outcome(),
              has('u') ? "204" : mismatch);
    EXPECT_EQ(world.Put(Row("p", "r") + token, "{}").Outcome(), sp == "au" ? "204" : mismatch);
    EXPECT_EQ(world.Merge(Row("p", "r") + token, "{}").Outcome(), sp == "au" ? "204" : mismatch);
    EXPECT_EQ(world.Delete(Row("p", "x") + token).Outcome(), has('d') ? "404 ResourceNotFound" : mismatch);
  }
  const Reply refused = world.Get("/orders()?" + Token({.sp = "a"}));
  EXPECT_EQ(refused.Header("Content-Type"),
            "application/json;odata=minimalmetadata;streaming=true;charset=utf-8");
}

// What the headers alone decide is told before the body is sent; what they allow is told with it.
TEST_F(ServiceAccess, WhoMayNotWriteIsRefusedBeforeHisBody) {
  const std::string head = "POST /orders HTTP/1.1\nContent-Type: application/json\nContent-Length: 4000000\n";
  EXPECT_EQ(world.RefuseBeforeBody(head + "\n").status, 0);
  const Reply forged = world.RefuseBeforeBody(head + "Authorization: SharedKeyLite contoso:AAAA\n\n");
  EXPECT_EQ(forged.Outcome(), "403 AuthenticationFailed");
  EXPECT_FALSE(forged.Header("x-ms-request-id").empty());
  // Neither the body nor its checksum is there yet.
  EXPECT_EQ(world.RefuseBeforeBody(head + "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\n\n").status, 0);
}

TEST_F(ServiceAccess, TheVersionMayStandInTheAddress) {  // 2.3
  const auto get = [&](std::string_view version, std::string_view headers) {
    return world.AskExactly("GET /orders()?" + Token({.sp = "r"}) + "&api-version=" + std::string(version) +
                            " HTTP/1.1\nHost: " + std::string(kExampleHost) + "\n" + std::string(headers) +
                            "\n");
  };
  EXPECT_EQ(get("2018-03-28", "").Outcome(), "200");
  EXPECT_EQ(get("2018-03-28", "").Header("x-ms-version"), "2018-03-28");
  EXPECT_EQ(get("2018-03-28", "x-ms-version: 2020-12-06\n").Header("x-ms-version"), "2020-12-06");
  EXPECT_EQ(get("yesterday", "").Outcome(), "400 InvalidHeaderValue");
  // Who has no token is answered by it, too.
  const auto stranger = [&](std::string_view version) {
    return world.AskExactly("GET /Tables?api-version=" + std::string(version) +
                            " HTTP/1.1\nHost: " + std::string(kExampleHost) + "\n\n");
  };
  EXPECT_EQ(stranger("2019-02-02").status, 403);
  EXPECT_EQ(stranger("2020-12-06").status, 401);
}

TEST_F(ServiceAccess, ATableTokenReachesNothingElse) {
  world.MakeTable("other");
  const std::string token = Token({});
  EXPECT_EQ(world.Get("/other()?" + token).Outcome(), "403 AuthenticationFailed");
  EXPECT_EQ(world.Get("/Tables?" + token).Outcome(), "403 AuthorizationFailure");
  EXPECT_EQ(world.Delete("/Tables('orders')?" + token, "").Outcome(), "403 AuthorizationFailure");
  EXPECT_EQ(world.Get("/?restype=service&comp=properties&" + token).Outcome(), "403 AuthorizationFailure");
  const Reply acl = world.Get("/orders?comp=acl&" + token);
  EXPECT_EQ(acl.Outcome(), "403 AuthorizationFailure");
  EXPECT_EQ(acl.Header("Content-Type"), "application/xml");
}

TEST_F(ServiceAccess, KeyRangesCutQueriesAndBoundWrites) {
  for (std::string_view partition : {"a", "b", "c"}) {
    for (std::string_view row : {"1", "2", "3"}) world.Insert("orders", partition, row);
  }
  const std::string token = Token({.spk = "a", .srk = "3", .epk = "b", .erk = "2"});
  const std::string inside =
      "{\"value\":[{\"PartitionKey\":\"a\",\"RowKey\":\"3\"},{\"PartitionKey\":\"b\",\"RowKey\":\"1\"},"
      "{\"PartitionKey\":\"b\",\"RowKey\":\"2\"}]}";
  EXPECT_EQ(world.Get("/orders()?$select=PartitionKey,RowKey&" + token, kNoMetadata).body, inside);
  EXPECT_EQ(
      world.Get("/orders()?$select=PartitionKey,RowKey&$filter=RowKey%20ge%20'1'&" + token, kNoMetadata).body,
      inside);
  EXPECT_EQ(world.Get("/orders()?$filter=PartitionKey%20eq%20'c'&" + token, kNoMetadata).body,
            "{\"value\":[]}");
  EXPECT_EQ(world.Get("/orders(PartitionKey='c')?" + token, kNoMetadata).body, "{\"value\":[]}");
  // A token that points outside of the range does not widen it.
  EXPECT_EQ(
      world
          .Get("/orders()?$select=PartitionKey,RowKey&NextPartitionKey=1!4!YQ--&NextRowKey=1!4!MQ--&" + token,
               kNoMetadata)
          .body,
      inside);
  const Reply last = world.Get("/orders()?$top=3&" + token);
  EXPECT_FALSE(last.Has("x-ms-continuation-NextPartitionKey"));  // Nothing of what lies behind is told.

  EXPECT_EQ(world.Get(Row("b", "1") + token).status, 200);
  EXPECT_EQ(world.Get(Row("b", "3") + token).Outcome(), "404 ResourceNotFound");
  EXPECT_EQ(world.Put(Row("b", "2") + token, "{}").status, 204);
  for (const Reply& reply :
       {world.Put(Row("b", "3") + token, "{}"), world.Merge(Row("c", "1") + token, "{}", "If-Match: *\n"),
        world.Delete(Row("a", "2") + token), world.Post("/orders?" + token, Keys("b", "4"))}) {
    EXPECT_EQ(reply.Outcome(), "403 AuthorizationFailure");
    EXPECT_EQ(reply.Header("Content-Type"),
              "application/json;odata=minimalmetadata;streaming=true;charset=utf-8");
  }
}

TEST_F(ServiceAccess, EachPartOfABatchIsPermitted) {
  const std::string type = "Content-Type: multipart/mixed; boundary=b\n";
  const std::string token = Token({.sp = "a", .spk = "p", .epk = "p", .erk = "5"});
  EXPECT_EQ(world.Post("/$batch?" + token, Batch(InsertPart("p", "1")), type).status, 202);
  const Reply range =
      world.Post("/$batch?" + token, Batch(InsertPart("p", "2") + InsertPart("p", "6")), type);
  EXPECT_EQ(range.Outcome(), "403 AuthorizationFailure");
  const std::string removal =
      "--c\nContent-Type: application/http\n\nDELETE /orders(PartitionKey='p',RowKey='1') "
      "HTTP/1.1\nIf-Match: *\n\n";
  EXPECT_EQ(world.Post("/$batch?" + token, Batch(InsertPart("p", "3") + removal), type).Outcome(),
            "403 AuthorizationPermissionMismatch");
  const std::string get = "--b\nContent-Type: application/http\n\nGET /orders() HTTP/1.1\n\n--b--\n";
  EXPECT_EQ(world.Post("/$batch?" + token, get, type).Outcome(), "403 AuthorizationPermissionMismatch");
  EXPECT_EQ(world.Get("/orders()?$select=RowKey", kNoMetadata).body, "{\"value\":[{\"RowKey\":\"1\"}]}");
}

TEST_F(ServiceAccess, AccountTokensFollowTheTable) {
  world.Insert("orders", "p", "r");
  const std::string type = "403 AuthorizationResourceTypeMismatch";
  const std::string permission = "403 AuthorizationPermissionMismatch";
  EXPECT_EQ(world.Get("/Tables?" + AccountToken("c", "l")).status, 200);
  EXPECT_EQ(world.Get("/Tables?" + AccountToken("o", "l")).Outcome(), type);
  EXPECT_EQ(world.Get("/Tables?" + AccountToken("c", "r")).Outcome(), permission);
  EXPECT_EQ(world.Post("/Tables?" + AccountToken("c", "w"), "{\"TableName\":\"one\"}").status, 201);
  EXPECT_EQ(world.Post("/Tables?" + AccountToken("c", "c"), "{\"TableName\":\"two\"}").status, 201);
  EXPECT_EQ(world.Delete("/Tables('two')?" + AccountToken("c", "d"), "").status, 204);
  EXPECT_EQ(world.Get("/orders()?" + AccountToken("o", "r")).status, 200);
  EXPECT_EQ(world.Get("/orders()?" + AccountToken("sc", "r")).Outcome(), type);
  EXPECT_EQ(world.Get("/?restype=service&comp=properties&" + AccountToken("s", "r")).status, 200);
  EXPECT_EQ(world.Get("/?restype=service&comp=properties&" + AccountToken("s", "w")).Outcome(), permission);
  const Reply acl = world.Get("/orders?comp=acl&" + AccountToken("sco", "rwdlacup"));
  EXPECT_EQ(acl.Outcome(), "404 ResourceNotFound");
  EXPECT_EQ(acl.Header("Content-Type"), "application/xml");
}

// ---- 15. Stored policies.

TEST_F(ServiceAccess, PoliciesAreStoredGivenBackAndDecide) {
  EXPECT_THAT(world.Get("/orders?comp=acl").body, HasSubstr("<SignedIdentifiers"));
  const std::string xml =
      "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>readers</Id>"
      "<AccessPolicy><Start>2011-10-11</Start><Expiry>2030-01-01T00:00Z</Expiry><Permission>r</Permission>"
      "</AccessPolicy></SignedIdentifier><SignedIdentifier><Id>bare</Id></SignedIdentifier></"
      "SignedIdentifiers>";
  const std::string token = Token({.sp = "", .si = "readers"});
  EXPECT_EQ(world.Get("/orders()?" + token).Outcome(), "403 AuthenticationFailed");
  const Reply put = world.Put("/orders?comp=acl", xml);
  EXPECT_EQ(put.status, 204);
  EXPECT_EQ(put.body, "");
  const Reply get = world.Get("/orders?comp=acl");
  EXPECT_EQ(get.Header("Content-Type"), "application/xml");
  EXPECT_THAT(get.body, HasSubstr("<Id>readers</Id><AccessPolicy><Start>2011-10-11T00:00:00.0000000Z</Start>"
                                  "<Expiry>2030-01-01T00:00:00.0000000Z</Expiry><Permission>r</Permission>"));
  const Reply head = world.Plain("HEAD", "/orders?comp=acl", "", "");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.omit_body);
  EXPECT_EQ(world.Get("/orders()?" + token).status, 200);
  EXPECT_EQ(world.Post("/orders?" + token, Keys("p", "r")).Outcome(), "403 AuthorizationPermissionMismatch");
  EXPECT_EQ(world.Put("/orders?comp=acl", "").status, 204);  // Clears.
  EXPECT_EQ(world.Get("/orders()?" + token).Outcome(), "403 AuthenticationFailed");
}

TEST_F(ServiceAccess, APolicyOfATableInDoubtIsNotCalledUnknown) {  // 17.2
  ASSERT_EQ(
      world
          .Put("/orders?comp=acl",
               "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2030-01-01"
               "</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>")
          .status,
      204);
  const std::string token = Token({.sp = "", .si = "readers"});
  ASSERT_EQ(world.Get("/orders()?" + token).status, 200);
  world.runtime().AddFault({.operations = SimOps(SimOp::kFlushDirectory), .path_prefix = "meta"});
  EXPECT_EQ(world.Delete("/Tables('orders')", "").Outcome(), "500 OperationTimedOut");
  EXPECT_EQ(world.Get("/orders()?" + token).Outcome(), "500 OperationTimedOut");
  world.runtime().ClearFaults();
}

TEST_F(ServiceAccess, MoreThanFivePoliciesAreRefused) {
  std::string xml = "<SignedIdentifiers>";
  for (int i = 0; i < 6; ++i)
    xml += "<SignedIdentifier><Id>" + std::to_string(i) + "</Id></SignedIdentifier>";
  EXPECT_EQ(world.Put("/orders?comp=acl", xml + "</SignedIdentifiers>").Outcome(), "400 InvalidXmlDocument");
}

// ---- 16. Service properties and CORS.

constexpr std::string_view kProperties = "/?restype=service&comp=properties";
constexpr std::string_view kCors =
    "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.example</"
    "AllowedOrigins><AllowedMethods>GET,PUT"
    "</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-request-id</ExposedHeaders>"
    "<MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

TEST_F(ServiceAccess, ServicePropertiesAreStoredAndGivenBack) {
  EXPECT_THAT(
      world.Get(kProperties).body,
      HasSubstr(
          "<StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write>"
          "<Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"));
  const Reply put = world.Put(kProperties, kCors);
  EXPECT_EQ(put.status, 202);
  EXPECT_FALSE(put.Has("Content-Type"));
  const Reply get = world.Get(kProperties);
  EXPECT_EQ(get.Header("Content-Type"), "application/xml");
  EXPECT_THAT(get.body, HasSubstr("<MaxAgeInSeconds>60</MaxAgeInSeconds>"));
  // Another account has its own.
  EXPECT_THAT(world.Get("/devstoreaccount1" + std::string(kProperties), "Host: 127.0.0.1\n").body,
              Not(HasSubstr("a.example")));
}

TEST_F(ServiceAccess, PreflightsAndActualRequestsFollowTheRules) {
  const std::string origin = "Origin: http://a.example\n";
  EXPECT_FALSE(world.Get("/Tables", origin).Has("Vary"));
  ASSERT_EQ(world.Put(kProperties, kCors).status, 202);
  const Reply preflight = world.Plain(
      "OPTIONS", "/orders()",
      origin + "Access-Control-Request-Method: GET\nAccess-Control-Request-Headers: x-ms-date\n", "");
  EXPECT_EQ(preflight.status, 200) << preflight.body;
  EXPECT_EQ(preflight.Header("Access-Control-Allow-Origin"), "http://a.example");
  EXPECT_EQ(preflight.Header("Access-Control-Max-Age"), "60");
  EXPECT_TRUE(preflight.Has("x-ms-request-id"));
  const std::string headers =
      origin + "Access-Control-Request-Method: GET\nAccess-Control-Request-Headers: x-ms-date\n";
  for (const std::string& refused : {origin + "Access-Control-Request-Method: DELETE\n",
                                     headers + "Access-Control-Request-Headers: x-other\n"}) {
    const Reply reply = world.Plain("OPTIONS", "/orders()", refused, "");
    EXPECT_EQ(reply.Outcome(), "403 CorsPreflightFailure") << refused;
    EXPECT_EQ(reply.Header("Vary"), "Origin") << refused;
  }
  EXPECT_EQ(world.Plain("OPTIONS", "/orders()", origin, "").Outcome(), "400 InvalidHeaderValue");
  // Nobody signs it, so nobody may have its body received: it is answered without.
  const std::string with_body = "OPTIONS /orders() HTTP/1.1\nContent-Length: 4000000\n" + origin;
  const Reply early = world.RefuseBeforeBody(with_body + "Access-Control-Request-Method: GET\n\n");
  EXPECT_EQ(early.status, 200);
  EXPECT_EQ(early.Header("Access-Control-Allow-Origin"), "http://a.example");
  EXPECT_TRUE(early.Has("x-ms-request-id"));
  EXPECT_EQ(world.RefuseBeforeBody(with_body + "\n").Outcome(), "400 InvalidHeaderValue");
  for (std::string_view target : {"/Tables", "/Tables('orders')", "/orders(PartitionKey='p',RowKey='r')",
                                  "/orders?comp=acl", "/$batch", "/", "/?restype=service&comp=properties"}) {
    const Reply asked = world.Plain("OPTIONS", target, origin + "Access-Control-Request-Method: GET\n", "");
    EXPECT_EQ(asked.Outcome(), "200") << target;
    EXPECT_EQ(asked.Header("Access-Control-Allow-Origin"), "http://a.example") << target;
  }
  const Reply actual = world.Get("/Tables", origin);
  EXPECT_EQ(actual.Header("Access-Control-Allow-Origin"), "http://a.example");
  EXPECT_EQ(actual.Header("Access-Control-Expose-Headers"), "x-ms-request-id");
  EXPECT_EQ(actual.Header("Vary"), "Origin");
  const Reply refused = world.Get("/nosuch()", origin);
  EXPECT_EQ(refused.Header("Access-Control-Allow-Origin"), "http://a.example");
  const Reply other = world.Get("/Tables", "Origin: http://b.example\n");
  EXPECT_EQ(other.status, 200);
  EXPECT_FALSE(other.Has("Access-Control-Allow-Origin"));
  EXPECT_EQ(other.Header("Vary"), "Origin");
}

// Everybody knows its key, so the Host and the Origin alone tell a page from a client.
TEST(ServiceAccessTest, NoWebPageUsesTheDevelopmentAccountWhereItIsGuarded) {
  TableServiceOptions options;
  options.addresses.path_style_hosts = {"localhost", "box.example"};
  options.guards_development_account = true;
  ServiceWorld world(options);
  const auto ask = [&](std::string_view host, std::string_view path, std::string_view headers = "") {
    return world.Get(path, "Host: " + std::string(host) + "\n" + std::string(headers)).Outcome();
  };
  constexpr std::string_view kPath = "/devstoreaccount1/Tables";
  for (std::string_view host :
       {"127.0.0.1:10002", "[::1]:10002", "10.0.0.7", "localhost", "localhost:10002"}) {
    EXPECT_EQ(ask(host, kPath), "200") << host;
  }
  EXPECT_EQ(ask("devstoreaccount1.localhost:10002", "/Tables"), "200");
  EXPECT_EQ(ask("devstoreaccount1-secondary.localhost", "/Tables"), "200");
  for (std::string_view host : {"devstoreaccount1.evil.example:10002", "DEVSTOREACCOUNT1.evil.example",
                                "devstoreaccount1-secondary.evil.example"}) {
    EXPECT_EQ(ask(host, "/Tables"), "403 AuthorizationFailure") << host;
  }
  EXPECT_EQ(ask("evil", kPath), "403 AuthorizationFailure");
  EXPECT_THAT(world.Get(kPath, "Host: evil\n").Message(), HasSubstr("path-style-hosts"));
  EXPECT_EQ(world.Post("/devstoreaccount1/Tables", "{\"TableName\":\"x\"}", "Host: evil\n").Outcome(),
            "403 AuthorizationFailure");
  EXPECT_EQ(world.RefuseBeforeBody("POST /devstoreaccount1/$batch HTTP/1.1\nHost: evil\n\n").Outcome(),
            "403 AuthorizationFailure");

  constexpr std::string_view kFromPage = "Origin: https://page.example\n";
  EXPECT_EQ(ask("localhost", kPath, kFromPage), "403 AuthorizationFailure");
  EXPECT_EQ(ask("localhost", kPath, "Origin: null\n"), "403 AuthorizationFailure");
  EXPECT_EQ(world
                .Put("/devstoreaccount1" + std::string(kProperties),
                     "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://page.example"
                     "</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5"
                     "</MaxAgeInSeconds><ExposedHeaders></ExposedHeaders><AllowedHeaders></AllowedHeaders>"
                     "</CorsRule></Cors></StorageServiceProperties>",
                     "Host: localhost\n")
                .status,
            202);
  EXPECT_EQ(ask("localhost", kPath, kFromPage), "200");
  EXPECT_EQ(world
                .Post("/devstoreaccount1/Tables", "{\"TableName\":\"x\"}",
                      "Host: localhost\n" + std::string(kFromPage))
                .Outcome(),
            "403 AuthorizationFailure")
      << "the rule is for GET";

  // Nobody knows the key of others.
  EXPECT_EQ(ask("contoso.evil.example", "/Tables", kFromPage), "200");
  ServiceWorld unguarded;
  EXPECT_EQ(unguarded.Get("/Tables", "Host: devstoreaccount1.table.example.net\n").Outcome(), "200");
}

}  // namespace
}  // namespace partita::http

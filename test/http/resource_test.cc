#include "api/http/resource.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "test/api/vector_file.h"

namespace partita::http {
namespace {

constexpr std::string_view kEmulatorHost = "127.0.0.1:10002";
constexpr std::string_view kCloudHost = "contoso.table.core.example";

// What a target means; a failure of the test when it is refused.
Resource Parse(std::string_view target, std::string_view host = kEmulatorHost) {
  Resource resource;
  const std::optional<ServiceError> error = ParseResource(target, host, /*secure=*/false, {}, &resource);
  EXPECT_FALSE(error.has_value()) << target << ": " << ErrorCodeName(error->code);
  return resource;
}

// The code with which a target is refused; "" when it is not.
std::string_view RefusalOf(std::string_view target, std::optional<std::string_view> host = kEmulatorHost) {
  Resource resource;
  const std::optional<ServiceError> error = ParseResource(target, host, false, {}, &resource);
  if (!error) return "";
  EXPECT_EQ(error->status, 400);
  EXPECT_TRUE(error->early);
  return ErrorCodeName(error->code);
}

TEST(ResourceVectorTest, EveryUrlKeyIsParsedAsTheServiceDoes) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("keys.json");
  for (const JsonValue& vector : vectors["url_keys"].items) {
    SCOPED_TRACE(vector["id"].text);
    ++cases;
    // u15 is u18 seen before the suite told the code; the reference has the suite's (spec 7.2).
    const std::string code = vector["id"].text == "u15" ? "InvalidInput" : vector["code"].text;
    for (const bool path_style : {true, false}) {
      const std::string target = (path_style ? "/acct1" : "") + vector["path"].text;
      const std::string_view host = path_style ? kEmulatorHost : kCloudHost;
      if (vector.Has("error")) {
        EXPECT_EQ(RefusalOf(target, host), code);
        continue;
      }
      const Resource resource = Parse(target, host);
      EXPECT_EQ(resource.path, target);
      EXPECT_EQ(resource.account, path_style ? "acct1" : "contoso");
      EXPECT_EQ(resource.table, "t");
      if (vector.Has("collection")) {
        EXPECT_EQ(resource.kind, ResourceKind::kEntities);
      } else if (vector.Has("table_resource")) {
        EXPECT_EQ(resource.kind, ResourceKind::kTable);
      } else {
        EXPECT_EQ(resource.kind, ResourceKind::kEntity);
        EXPECT_EQ(resource.partition_key, vector["pk"].text);
        EXPECT_EQ(resource.row_key, vector["rk"].text);
      }
    }
  }
  EXPECT_EQ(cases, 22);
}

TEST(ResourceTest, EachPathOfTheServiceHasItsKind) {
  const std::pair<std::string_view, ResourceKind> kCases[] = {
      {"/", ResourceKind::kService},
      {"/Tables", ResourceKind::kTables},
      {"/Tables()", ResourceKind::kTables},
      {"/tables", ResourceKind::kTables},
      {"/Tables('orders')", ResourceKind::kTable},
      {"/Tables('bad_name')", ResourceKind::kTable},
      {"/orders", ResourceKind::kEntities},
      {"/orders()", ResourceKind::kEntities},
      {"/bad_name()", ResourceKind::kEntities},
      {"/orders(PartitionKey='a')", ResourceKind::kPartition},
      {"/orders(PartitionKey='a',RowKey='b')", ResourceKind::kEntity},
      {"/$batch", ResourceKind::kBatch},
      {"/%24batch", ResourceKind::kBatch},
      {"/$metadata", ResourceKind::kMetadata},
  };
  for (const auto& [path, kind] : kCases) {
    EXPECT_EQ(Parse(path, kCloudHost).kind, kind) << path;
    EXPECT_EQ(Parse("/acct1" + std::string(path)).kind, kind) << path;
  }
  EXPECT_EQ(Parse("/acct1//$batch").kind, ResourceKind::kBatch) << "as Ruby's client writes it";
  EXPECT_EQ(Parse("/acct1").kind, ResourceKind::kService);
  EXPECT_EQ(Parse("", kCloudHost).kind, ResourceKind::kService);
  EXPECT_EQ(Parse("/acct1/Tables('it%27%27s')").table, "it's");
}

TEST(ResourceTest, PathStyleIsChosenByTheHost) {
  const AddressRules rules{.path_style_hosts = {"localhost", "tables.example.net"}};
  for (const std::string_view host :
       {"127.0.0.1", "[::1]", "localhost", "LocalHost", "partita", "Tables.example.NET"}) {
    EXPECT_TRUE(IsPathStyleHost(host, rules)) << host;
  }
  for (const std::string_view host :
       {"contoso.table.core.example", "a.localhost", "1.example", "127.0.0.1x"}) {
    EXPECT_FALSE(IsPathStyleHost(host, rules)) << host;
  }
  Resource resource;
  ASSERT_FALSE(ParseResource("/acct1/orders", "tables.example.net:8443", true, rules, &resource).has_value());
  EXPECT_TRUE(resource.path_style);
  EXPECT_EQ(resource.account, "acct1");
  std::string url;
  AppendUrlBase(&url, resource.base);
  EXPECT_EQ(url, "https://tables.example.net:8443/acct1");
}

TEST(ResourceTest, HostStyleTakesTheAccountFromTheFirstLabel) {
  const Resource primary = Parse("/orders()?$top=5", "CONTOSO.table.core.example:443");
  EXPECT_EQ(primary.account, "contoso");
  EXPECT_FALSE(primary.secondary);
  EXPECT_FALSE(primary.path_style);
  EXPECT_EQ(primary.path, "/orders()");
  EXPECT_EQ(primary.query, "$top=5");
  std::string url;
  AppendUrlBase(&url, primary.base);
  EXPECT_EQ(url, "http://CONTOSO.table.core.example:443");

  const Resource secondary = Parse("/?comp=stats", "contoso-secondary.table.core.example");
  EXPECT_EQ(secondary.account, "contoso");
  EXPECT_TRUE(secondary.secondary);
}

TEST(ResourceTest, TheSecondaryMayBeNamedAloneOrWithTheAccount) {
  for (const std::string_view target : {"/acct1-secondary/?comp=stats", "/acct1-secondary/acct1/?comp=stats",
                                        "/acct1-secondary?comp=stats"}) {
    const Resource resource = Parse(target);
    EXPECT_EQ(resource.account, "acct1") << target;
    EXPECT_TRUE(resource.secondary) << target;
    EXPECT_EQ(resource.kind, ResourceKind::kService) << target;
    EXPECT_EQ(resource.query, "comp=stats");
    EXPECT_EQ(resource.base.account_prefix, "/acct1-secondary");
  }
  EXPECT_EQ(Parse("/acct1-secondary/acct1/orders()").table, "orders");
  // Only then: on the primary the second segment is a table of that name, and without a slash behind it here.
  EXPECT_EQ(Parse("/acct1/acct1").table, "acct1");
  EXPECT_EQ(Parse("/acct1-secondary/acct1").table, "acct1");
  EXPECT_EQ(Parse("/acct1-secondary/acct1?comp=acl").table, "acct1");
  EXPECT_EQ(Parse("/acct1-secondary/acct1/acct1").table, "acct1");
}

TEST(ResourceTest, AnAbsoluteTargetBringsItsHost) {
  Resource resource;
  ASSERT_FALSE(ParseResource("http://localhost:10002/acct1/orders()?a=b", kCloudHost, false, {}, &resource)
                   .has_value());
  EXPECT_TRUE(resource.path_style);
  EXPECT_EQ(resource.path, "/acct1/orders()");
  EXPECT_EQ(resource.table, "orders");
  EXPECT_EQ(RefusalOf("http:///acct1/orders"), "HostInformationNotPresent");
}

TEST(ResourceTest, AnUnusableHostIsRefused) {
  for (const std::string_view host :
       {"", ":10002", "a b.example", "x\"y.example", "a<b", "e\xC3\xA9.example"}) {
    EXPECT_EQ(RefusalOf("/acct1/orders", host), "HostInformationNotPresent") << host;
  }
  EXPECT_EQ(RefusalOf("/acct1/orders", std::nullopt), "HostInformationNotPresent");
}

TEST(ResourceTest, AHostIsNoLongerThanANameCanBe) {
  const std::string longest(255, 'h');
  EXPECT_EQ(RefusalOf("/acct1/orders", longest), "");
  EXPECT_EQ(RefusalOf("/acct1/orders", longest + ":65535"), "");
  for (const std::string& host : {longest + "h", longest + "h:1", longest + ":655350",
                                  "h:" + longest + "65535", "[::1]" + longest + "65535"}) {
    EXPECT_EQ(RefusalOf("/acct1/orders", host), "HostInformationNotPresent") << host;
    EXPECT_EQ(RefusalOf("http://" + host + "/acct1/orders"), "HostInformationNotPresent") << host;
  }
}

TEST(ResourceTest, PathsThatAreNoneAreRefused) {
  for (const std::string_view target :
       {"/", "", "//orders", "/-secondary/orders", "orders", "*", "/acct1/orders/", "/acct1/orders/x",
        "/acct1//orders", "/acct1/or%zzders", "/acct1/orders%4", "/acct1/orders%", "/acct1/or%-1ders"}) {
    EXPECT_EQ(RefusalOf(target), "InvalidUri") << target;
  }
}

TEST(ResourceTest, AnAccountInThePathOfAFullHostNameIsToldWhatToSet) {
  Resource resource;
  const auto refused = ParseResource("/acct1/orders()", "tables.example.org:10002", false, {}, &resource);
  ASSERT_TRUE(refused.has_value());
  EXPECT_THAT(refused->message, ::testing::HasSubstr("path-style-hosts"));
  EXPECT_THAT(refused->message, ::testing::HasSubstr("'tables.example.org'"));
  EXPECT_EQ(RefusalOf("/orders(PartitionKey='a/b',RowKey='c')", kCloudHost), "InvalidInput");
}

TEST(ResourceTest, BadKeySyntaxIsInvalidInput) {
  for (const std::string_view segment : {"(PartitionKey='a',RowKey='b')",
                                         "t(",
                                         "t(a)",
                                         "t('a')",
                                         "t(RowKey='b')",
                                         "t(PartitionKey=a,RowKey='b')",
                                         "t(PartitionKey='a'RowKey='b')",
                                         "t(PartitionKey='a',RowKey='b'",
                                         "t(PartitionKey='a',RowKey='b)",
                                         "t(PartitionKey='a',RowKey='b')x",
                                         "t(PartitionKey='a',RowKey='b',)",
                                         "t(PartitionKey='a',PartitionKey='b')",
                                         "t(PartitionKey='a',RowKey='b',RowKey='b')",
                                         "t(partitionkey='a',RowKey='b')",
                                         "t(PartitionKey='a',  RowKey='b')",
                                         "t()x",
                                         "t()(PartitionKey='a',RowKey='b')",
                                         "t( PartitionKey='a',RowKey='b')",
                                         "Tables()('t')",
                                         "Tables(t)",
                                         "Tables('t'",
                                         "Tables('t')x",
                                         "Tables(TableName='t')",
                                         "t(PartitionKey='a/b',RowKey='c')",
                                         "t%ED%A0%80",
                                         "t%C3",
                                         "t(PartitionKey='%FF',RowKey='b')",
                                         "t(PartitionKey='a\\b',RowKey='c')"}) {
    EXPECT_EQ(RefusalOf("/acct1/" + std::string(segment)), "InvalidInput") << segment;
  }
}

TEST(ResourceTest, ForbiddenCharactersInKeysHaveTheirCodes) {
  for (const std::string_view character :
       {"%00", "%09", "%1F", "%7F", "%C2%80", "%C2%9F", "%23", "%3F", "#"}) {
    const std::string key = "a" + std::string(character);
    EXPECT_EQ(RefusalOf("/acct1/t(PartitionKey='" + key + "',RowKey='b')"), "OutOfRangeInput") << key;
    EXPECT_EQ(RefusalOf("/acct1/t(PartitionKey='a',RowKey='" + key + "')"), "OutOfRangeInput") << key;
  }
  // A slash is bad syntax, whatever stands before it.
  EXPECT_EQ(RefusalOf("/acct1/t(PartitionKey='%23%2F',RowKey='b')"), "InvalidInput");
  EXPECT_EQ(Parse("/acct1/t(PartitionKey='%C2%A0%25+,)=(',RowKey='%F0%9F%98%80')").partition_key,
            "\xC2\xA0%+,)=(");
}

TEST(ResourceTest, OverlongKeysAreParsedAndLeftToTheOperation) {
  const std::string key(2048, 'k');
  EXPECT_EQ(Parse("/acct1/t(PartitionKey='" + key + "',RowKey='b')").partition_key, key);
}

// ---- URLs of batch parts.

Resource ParseInner(std::string_view url, const Resource& outer) {
  Resource resource;
  const std::optional<ServiceError> error = ParseInnerResource(url, outer, &resource);
  EXPECT_FALSE(error.has_value()) << url << ": " << ErrorCodeName(error->code);
  return resource;
}

TEST(InnerResourceTest, EveryFormThatClientsSendMeansTheSame) {
  for (const Resource& outer : {Parse("/acct1/$batch"), Parse("/$batch", "acct1.table.core.example")}) {
    for (const std::string_view url : {"http://127.0.0.1:10002/acct1/orders", "https://other.example/orders",
                                       "HTTPS://other.example/acct1/orders", "/orders", "/acct1/orders",
                                       "orders", "acct1/orders", "/acct1/orders?sv=x&$format=json"}) {
      const Resource resource = ParseInner(url, outer);
      EXPECT_EQ(resource.kind, ResourceKind::kEntities) << url;
      EXPECT_EQ(resource.table, "orders") << url;
      EXPECT_EQ(resource.account, "acct1");
      EXPECT_EQ(resource.path_style, outer.path_style);
      EXPECT_EQ(resource.base.host, outer.base.host);
      EXPECT_EQ(resource.base.account_prefix, outer.base.account_prefix);
    }
    const Resource entity =
        ParseInner("http://h.example/acct1/t%28PartitionKey%3D%27a%27%2CRowKey%3D%27b%27%29?x=1", outer);
    EXPECT_EQ(entity.kind, ResourceKind::kEntity);
    EXPECT_EQ(entity.row_key, "b");
    EXPECT_EQ(entity.query, "x=1");
    // Alone, the account's name is a table's.
    EXPECT_EQ(ParseInner("/acct1", outer).table, "acct1");
    EXPECT_EQ(ParseInner("/acct1/acct1", outer).table, "acct1");
    EXPECT_EQ(ParseInner("/Tables('t')", outer).kind, ResourceKind::kTable);
  }
}

TEST(InnerResourceTest, TheSecondaryIsNamedAsOutside) {
  for (const Resource& outer : {Parse("/acct1-secondary/acct1/$batch"), Parse("/acct1-secondary/$batch")}) {
    for (const std::string_view url :
         {"http://h.example/acct1-secondary/acct1/orders", "/acct1-secondary/acct1/orders",
          "acct1-secondary/acct1/orders", "/acct1-secondary/orders", "/acct1/orders", "/orders"}) {
      const Resource resource = ParseInner(url, outer);
      EXPECT_EQ(resource.kind, ResourceKind::kEntities) << url;
      EXPECT_EQ(resource.table, "orders") << url;
      EXPECT_TRUE(resource.secondary) << url;
    }
    EXPECT_EQ(ParseInner("/acct1-secondary/acct1", outer).table, "acct1");
    EXPECT_EQ(ParseInner("/acct1-secondary/acct1/acct1", outer).table, "acct1");
    Resource resource;
    for (const std::string_view url :
         {"/acct1/acct1/orders", "/acct1-secondary/acct2/orders", "/acct1-secondary/acct1/acct1/orders"}) {
      EXPECT_TRUE(ParseInnerResource(url, outer, &resource).has_value()) << url;
    }
  }
}

TEST(InnerResourceTest, AnotherAccountAndBadSyntaxAreRefused) {
  const Resource outer = Parse("/acct1/$batch");
  Resource resource;
  for (const std::string_view url :
       {"http://h.example/acct2/orders", "/acct2/orders", "/acct1/orders/x",
        "/orders(PartitionKey='a/b',RowKey='c')", "/t(PartitionKey='a'b',RowKey='c')"}) {
    const std::optional<ServiceError> error = ParseInnerResource(url, outer, &resource);
    ASSERT_TRUE(error.has_value()) << url;
    EXPECT_EQ(error->status, 400) << url;
  }
  EXPECT_EQ(ParseInnerResource("/t(PartitionKey='%23',RowKey='c')", outer, &resource)->code,
            ErrorCode::kOutOfRangeInput);
}

}  // namespace
}  // namespace partita::http

// Section 11 of the reference, of the whole service. Filters against single entities are tested with the
// evaluator; here: that the text arrives there, pages, tokens, projection, and key ranges.
#include <gmock/gmock-matchers.h>

#include "test/http/service_client.h"

namespace partita::http {
namespace {

using ::testing::HasSubstr;

class ServiceQueries : public ::testing::Test {
 protected:
  void SetUp() override { world.MakeTable("ttt"); }

  // The RowKeys of an answer in order, joined by spaces.
  std::string Rows(const Reply& reply) {
    std::string rows;
    constexpr std::string_view kName = "\"RowKey\":\"";
    for (size_t at = reply.body.find(kName); at != std::string::npos; at = reply.body.find(kName, at + 1)) {
      const size_t begin = at + kName.size();
      rows += (rows.empty() ? "" : " ") + reply.body.substr(begin, reply.body.find('"', begin) - begin);
    }
    return rows;
  }
  std::string NextOf(const Reply& reply) {
    return "&NextPartitionKey=" + reply.Header("x-ms-continuation-NextPartitionKey") +
           "&NextRowKey=" + reply.Header("x-ms-continuation-NextRowKey");
  }

  // Rows 10000 and so on.
  void InsertHundreds(int hundreds) {
    std::string batch;
    for (int b = 0; b < hundreds; ++b) {
      batch = "--b\nContent-Type: multipart/mixed; boundary=c\n\n";
      for (int i = 0; i < 100; ++i) {
        batch +=
            "--c\nContent-Type: application/http\n\nPOST /ttt HTTP/1.1\nPrefer: "
            "return-no-content\n\n{\"PartitionKey\":\"p\",\"RowKey\":\"" +
            std::to_string(10'000 + b * 100 + i) + "\"}\n";
      }
      ASSERT_EQ(
          world.Post("/$batch", batch + "--c--\n--b--", "Content-Type: multipart/mixed; boundary=b\n").status,
          202);
    }
  }

  ServiceWorld world;
};

TEST_F(ServiceQueries, FiltersAreDecodedOnceAndRun) {
  world.Insert("ttt", "p", "1", ",\"a\":\"x y\"");
  world.Insert("ttt", "p", "2", ",\"a\":\"x+y\"");
  world.Insert("ttt", "p", "3", ",\"b\":5");
  EXPECT_EQ(Rows(world.Get("/ttt()?$filter=a+eq+'x+y'")), "1");
  EXPECT_EQ(Rows(world.Get("/ttt()?%24filter=a%20eq%20%27x%2By%27")), "2");
  EXPECT_EQ(Rows(world.Get("/ttt()?$filter=b%20gt%204")), "3");
  EXPECT_EQ(Rows(world.Get("/ttt()?$filter=not%20(a%20ge%20'')")), "3");
  EXPECT_EQ(Rows(world.Get("/ttt?$filter=")), "1 2 3");
  EXPECT_EQ(world.Get("/ttt()?$filter=a%20eq%20null").Outcome(), "400 InvalidInput");
}

TEST_F(ServiceQueries, NumbersAsDotNetWritesThemAreFound) {
  world.Insert("ttt", "p", "1", ",\"d\":1.5");
  world.Insert("ttt", "p", "2", ",\"d@odata.type\":\"Edm.Double\",\"d\":\"Infinity\"");
  world.Insert("ttt", "p", "3", ",\"d@odata.type\":\"Edm.Double\",\"d\":\"-Infinity\"");
  world.Insert("ttt", "p", "4", ",\"d@odata.type\":\"Edm.Double\",\"d\":\"NaN\"");
  EXPECT_EQ(Rows(world.Get("/ttt()?$filter=d%20eq%20INF")), "2");
  EXPECT_EQ(Rows(world.Get("/ttt()?$filter=d%20gt%20-INF")), "1 2");
  EXPECT_EQ(Rows(world.Get("/ttt()?$filter=d%20eq%20NaN")), "");
  EXPECT_EQ(Rows(world.Get("/ttt()?$filter=d%20ne%20NaN")), "1 2 3 4");
  EXPECT_EQ(Rows(world.Get("/ttt()?$filter=d%20le%201.5f")), "1 3");
  EXPECT_EQ(Rows(world.Get("/ttt()?$filter=d%20ge%201.5M")), "1 2");
}

TEST_F(ServiceQueries, EveryRowComesOnceOverPages) {
  std::string expected;
  for (int i = 0; i < 25; ++i) {
    const std::string row = std::to_string(100 + i);
    ASSERT_EQ(
        world.Insert("ttt", i < 10 ? "" : "p" + std::to_string(i % 3), row, ",\"n\":" + std::to_string(i))
            .status,
        201);
  }
  const std::string all = Rows(world.Get("/ttt()"));
  ASSERT_EQ(all.size(), 25 * 4 - 1u);
  std::string paged;
  std::string next;
  int pages = 0;
  for (;;) {
    const Reply reply = world.Get("/ttt()?$top=4" + next);
    ASSERT_EQ(reply.status, 200) << reply.body;
    paged += (paged.empty() ? "" : " ") + Rows(reply);
    ASSERT_LT(++pages, 10);
    if (!reply.Has("x-ms-continuation-NextPartitionKey")) break;
    ASSERT_TRUE(reply.Has("x-ms-continuation-NextRowKey"));
    next = NextOf(reply);
  }
  EXPECT_EQ(paged, all);
  EXPECT_EQ(pages, 7);
}

TEST_F(ServiceQueries, PagesHoldAtMostAThousandRows) {
  InsertHundreds(11);
  const Reply first = world.Get("/ttt()?$select=RowKey", kNoMetadata);
  EXPECT_EQ(Rows(first).size(), 1000 * 6 - 1u);
  const Reply second = world.Get("/ttt()?$select=RowKey" + NextOf(first), kNoMetadata);
  EXPECT_EQ(Rows(second).size(), 100 * 6 - 1u);
  EXPECT_FALSE(second.Has("x-ms-continuation-NextPartitionKey"));
}

// The text of a page can be many times what is stored.
TEST_F(ServiceQueries, PagesEndWhenTheirTextIsLarge) {
  InsertHundreds(10);
  std::string select = "RowKey";
  for (int i = 100; i < 350; ++i) select += "," + std::string(50, 'a') + std::to_string(i);
  std::string rows;
  int pages = 0;
  for (std::string next; next.empty() || next.find("(none)") == std::string::npos; ++pages) {
    const Reply page = world.Get("/ttt()?$select=" + select + next, kNoMetadata);
    ASSERT_EQ(page.status, 200) << page.body.substr(0, 200);
    EXPECT_LT(page.body.size(), 9u << 20);
    rows += (rows.empty() ? "" : " ") + Rows(page);
    next = NextOf(page);
  }
  EXPECT_EQ(pages, 2);
  EXPECT_EQ(rows, Rows(world.Get("/ttt()?$select=RowKey")));
}

TEST_F(ServiceQueries, PagesEndEarlyWhileBuffersAreScarceAndMissNothing) {
  const std::string filler = ",\"a\":\"" + std::string(30'000, 'x') + "\"";
  for (int i = 100; i < 130; ++i) world.Insert("ttt", "p", std::to_string(i), filler);
  BufferBudget budget(256 << 10);
  BufferShare others(&budget);
  EXPECT_TRUE(others.Set(200 << 10));
  world.buffers = &budget;
  std::string rows;
  int pages = 0;
  for (std::string next; next.empty() || next.find("(none)") == std::string::npos; ++pages) {
    const Reply page = world.Get("/ttt()?$top=30" + next, kNoMetadata);
    ASSERT_EQ(page.status, 200);
    EXPECT_LT(page.body.size(), 150'000u);
    rows += (rows.empty() ? "" : " ") + Rows(page);
    next = NextOf(page);
    EXPECT_EQ(budget.held(), others.bytes()) << "given back with the answer";
  }
  EXPECT_GE(pages, 8);
  world.buffers = nullptr;
  EXPECT_EQ(rows, Rows(world.Get("/ttt()")));
}

TEST_F(ServiceQueries, ALargeFirstRowThatFindsNoRoomIsToldToComeAgain) {
  world.Insert("ttt", "p", "0", ",\"a\":\"" + std::string(30'000, 'x') + "\"");
  world.Insert("ttt", "q", "0", ",\"a\":\"small\"");
  BufferBudget budget(64 << 10);
  BufferShare others(&budget);
  EXPECT_TRUE(others.Set(60 << 10));
  world.buffers = &budget;
  EXPECT_EQ(world.Get("/ttt()?$filter=PartitionKey%20eq%20'p'").Outcome(), "503 ServerBusy");
  EXPECT_EQ(world.Get("/ttt()?$filter=PartitionKey%20eq%20'q'").status, 200);
  EXPECT_EQ(budget.held(), others.bytes());
  others.Set(0);
  EXPECT_EQ(world.Get("/ttt()?$filter=PartitionKey%20eq%20'p'").status, 200);
  world.buffers = nullptr;
}

TEST_F(ServiceQueries, ATokenComesOnlyWhenAnotherMatchFollows) {
  for (int i = 0; i < 4; ++i) world.Insert("ttt", "p", std::to_string(i), ",\"n\":" + std::to_string(i % 2));
  const Reply first = world.Get("/ttt()?$top=1&$filter=n%20eq%200");
  EXPECT_EQ(Rows(first), "0");
  ASSERT_TRUE(first.Has("x-ms-continuation-NextPartitionKey"));
  const Reply second = world.Get("/ttt()?$top=1&$filter=n%20eq%200" + NextOf(first));
  EXPECT_EQ(Rows(second), "2");
  EXPECT_FALSE(second.Has("x-ms-continuation-NextPartitionKey"));
}

TEST_F(ServiceQueries, TokensAreTakenInEveryFormClientsSendThem) {
  world.Insert("ttt", "cust-17", "0001");
  world.Insert("ttt", "cust-17", "0009");
  // The forms of the reference, encoded not at all, once and twice; without the row; with an empty one.
  for (std::string_view next :
       {"NextPartitionKey=1!12!Y3VzdC0xNw--&NextRowKey=1!8!MDAwOQ--",
        "NextPartitionKey=1%2112%21Y3VzdC0xNw--&NextRowKey=1%218%21MDAwOQ--",
        "NextPartitionKey=1%252112%2521Y3VzdC0xNw--&NextRowKey=1%25218%2521MDAwOQ--"}) {
    EXPECT_EQ(Rows(world.Get("/ttt()?" + std::string(next))), "0009") << next;
  }
  for (std::string_view next :
       {"NextPartitionKey=1!12!Y3VzdC0xNw--", "NextPartitionKey=1!12!Y3VzdC0xNw--&NextRowKey="}) {
    EXPECT_EQ(Rows(world.Get("/ttt()?" + std::string(next))), "0001 0009") << next;
  }
}

TEST_F(ServiceQueries, TopIsBounded) {
  world.Insert("ttt", "p", "1");
  EXPECT_EQ(world.Get("/ttt()?$top=0", kNoMetadata).body, "{\"value\":[]}");
  EXPECT_EQ(Rows(world.Get("/ttt()?$top=1000")), "1");
  for (std::string_view top : {"-1", "1001", "x", "1.5", "99999999999", ""}) {
    EXPECT_EQ(world.Get("/ttt()?$top=" + std::string(top)).Outcome(), "400 InvalidInput") << top;
  }
}

TEST_F(ServiceQueries, ListsHaveTheDocumentedFrame) {
  world.Insert("ttt", "p", "1", ",\"a\":1");
  const Reply minimal = world.Get("/ttt()?$select=a,b");
  EXPECT_THAT(minimal.body,
              ::testing::StartsWith("{\"odata.metadata\":\"https://contoso.table.core.windows.net/"
                                    "$metadata#ttt&$select=a,b\",\"value\":[{\"odata.etag\":\"W/"));
  EXPECT_THAT(minimal.body, HasSubstr("\"a\":1,\"b\":null}]}"));
  EXPECT_THAT(world.Get("/ttt()", "Accept: application/json;odata=fullmetadata\n").body,
              HasSubstr("\"odata.editLink\":\"ttt(PartitionKey='p',RowKey='1')\",\"PartitionKey\":\"p\""));
  EXPECT_FALSE(minimal.Has("ETag"));
}

TEST_F(ServiceQueries, MoreThan255SelectedNamesAreRefused) {
  std::string names = "p0";
  for (int i = 1; i < 255; ++i) names += ",p" + std::to_string(i);
  EXPECT_EQ(world.Get("/ttt()?$select=" + names).status, 200);
  EXPECT_EQ(world.Get("/ttt()?$select=" + names + ",p255").Outcome(), "400 InvalidInput");
}

TEST_F(ServiceQueries, ATimeoutMayBeGiven) {
  world.Insert("ttt", "p", "1");
  EXPECT_EQ(Rows(world.Get("/ttt()?timeout=1")), "1");
  EXPECT_EQ(Rows(world.Get("/ttt()?timeout=9999")), "1");
}

// ---- Our extension: `x-partita-explain: true` (api/http/explain_headers.h).

constexpr std::string_view kExplain = "x-partita-explain: true\n";

TEST_F(ServiceQueries, WhoAsksIsToldThePlanAndItsCostInHeaders) {
  for (int i = 0; i < 9; ++i) {
    world.Insert("ttt", "p", std::to_string(i), ",\"a\":" + std::to_string(i));
  }
  const std::string query =
      "/ttt()?$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20ge%20'4'%20and%20a%20lt%207";
  const Reply plain = world.Get(query);
  const Reply told = world.Get(query, kExplain);
  EXPECT_EQ(told.body, plain.body);
  EXPECT_EQ(told.status, 200);
  EXPECT_EQ(told.Header("x-partita-plan"), "row-range");
  EXPECT_EQ(told.Header("x-partita-bounds"), "PartitionKey eq 'p' and RowKey ge '4'");
  EXPECT_EQ(told.Header("x-partita-residual"), "a lt 7");
  EXPECT_EQ(told.Header("x-partita-zone-maps"), "a");
  EXPECT_THAT(told.Header("x-partita-cost"),
              ::testing::StartsWith("scanned=5, returned=3, density=0.600, blocks-read="));
}

TEST_F(ServiceQueries, OthersGetNoWordOfThePlan) {
  world.Insert("ttt", "p", "1");
  for (std::string_view headers : {"", "x-partita-explain: false\n", "x-partita-explain: \n"}) {
    const Reply reply = world.Get("/ttt()?$filter=a%20eq%201", headers);
    EXPECT_EQ(reply.status, 200);
    for (const char* name : {"plan", "bounds", "residual", "zone-maps", "cost"}) {
      EXPECT_FALSE(reply.Has(std::string("x-partita-") + name)) << name;
    }
  }
}

TEST_F(ServiceQueries, AContradictionAndATableScanAreToldAsSuch) {
  const Reply empty =
      world.Get("/ttt()?$filter=PartitionKey%20eq%20'a'%20and%20PartitionKey%20eq%20'b'", kExplain);
  EXPECT_EQ(empty.Header("x-partita-plan"), "empty");
  EXPECT_FALSE(empty.Has("x-partita-bounds"));
  EXPECT_THAT(empty.Header("x-partita-cost"), ::testing::StartsWith("scanned=0, returned=0, density=1.000"));
  const Reply all = world.Get("/ttt()", kExplain);
  EXPECT_EQ(all.Header("x-partita-plan"), "table-scan");
  EXPECT_EQ(all.Header("x-partita-bounds"), "all");
  EXPECT_FALSE(all.Has("x-partita-residual"));
}

TEST_F(ServiceQueries, ExplanationsAreAsciiAndBounded) {
  const Reply text = world.Get("/ttt()?$filter=a%20eq%20'%C3%BC%25%0D%0Ax'", kExplain);
  EXPECT_EQ(text.Header("x-partita-residual"), "a eq '%C3%BC%25%0D%0Ax'");
  std::string filter = "a%20eq%20'" + std::string(1100, 'x') + "'";
  EXPECT_EQ(world.Get("/ttt()?$filter=" + filter, kExplain).Header("x-partita-residual").size(), 1024u);
  filter = "a%20eq%20'";
  for (int i = 0; i < 500; ++i) filter += "%C3%BC";
  const std::string cut = world.Get("/ttt()?$filter=" + filter + "'", kExplain).Header("x-partita-residual");
  EXPECT_LE(cut.size(), 1024u);
  EXPECT_TRUE(cut.ends_with("%BC...") || cut.ends_with("%C3...")) << cut.substr(cut.size() - 12);
}

TEST_F(ServiceQueries, ARefusalExplainsNothing) {
  const Reply reply = world.Get("/ttt()?$filter=a%20eq", kExplain);
  EXPECT_EQ(reply.Outcome(), "400 InvalidInput");
  EXPECT_FALSE(reply.Has("x-partita-plan"));
}

}  // namespace
}  // namespace partita::http

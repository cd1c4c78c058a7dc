// Sections 17 and 22.15 of the reference: what a client over its throughput target is told.
#include <gmock/gmock-matchers.h>

#include "test/http/service_client.h"

namespace partita::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ServiceThrottle : public ::testing::Test {
 protected:
  void SetUp() override {
    world.MakeTable("orders");
    world.MakeTable("lines");
  }
  void Limit(const ThroughputTargets& targets) {
    ASSERT_TRUE(world.database().SetThroughputTargets(targets).ok());
  }
  // Inserts that pass before one is refused, which is the answer.
  Reply InsertUntilRefused(const std::string& partition, int* passed) {
    for (*passed = 0;; ++*passed) {
      Reply reply = world.Insert("orders", partition, std::to_string(row_++));
      if (reply.status >= 400) return reply;
    }
  }
  void Pass(uint64_t milliseconds) { world.runtime().AdvanceTime(milliseconds * 1'000'000); }

  ServiceWorld world;
  int row_ = 10'000;
};

TEST_F(ServiceThrottle, OverAPartitionsTargetIsServerBusyWithTheWaitInTwoUnits) {
  Limit({.partition_rate = 10});
  int passed = 0;
  const Reply busy = InsertUntilRefused("p", &passed);
  EXPECT_NEAR(passed, 20, 2);
  EXPECT_EQ(busy.Outcome(), "503 ServerBusy");
  EXPECT_EQ(busy.Header("Retry-After"), "1");
  EXPECT_EQ(busy.Message(), "The server is currently unable to receive requests. Please retry your request.");
  const int milliseconds = std::stoi(busy.Header("x-ms-retry-after-ms"));
  EXPECT_GE(milliseconds, 1);
  EXPECT_LE(milliseconds, 100);
  EXPECT_EQ(world.Insert("orders", "other", "1").status, 201);
  Pass(static_cast<uint64_t>(milliseconds));
  EXPECT_EQ(world.Insert("orders", "p", "after").status, 201);
  EXPECT_GE(world.service().counters().Sum().throttled, 1u);
}

TEST_F(ServiceThrottle, OverAnAccountsTargetTheTextSaysSoAndOtherAccountsGoOn) {
  Limit({.account_rate = 10});
  int passed = 0;
  const Reply busy = InsertUntilRefused("p", &passed);
  EXPECT_EQ(busy.Outcome(), "503 ServerBusy");
  EXPECT_EQ(busy.Message(), "Operations per second is over the account limit.");
  EXPECT_EQ(world.Insert("lines", "q", "1").Outcome(), "503 ServerBusy");
  Limit({.rules = {{.account = "devstoreaccount1", .account_rate = 10}}});
  EXPECT_EQ(world.Insert("lines", "q", "1").status, 201);
}

TEST_F(ServiceThrottle, AThrottledBatchIsAPlainAnswerAndNothingOfItIsApplied) {
  std::string parts;
  for (int i = 0; i < 30; ++i) {
    parts +=
        "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        "POST /orders HTTP/1.1\r\nPrefer: return-no-content\r\n\r\n"
        "{\"PartitionKey\":\"p\",\"RowKey\":\"" +
        std::to_string(i) + "\"}\r\n";
  }
  const std::string body =
      "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + parts + "--c--\r\n--b--\r\n";
  const std::string type = "Content-Type: multipart/mixed; boundary=b\n";
  Limit({.partition_rate = 10});
  int passed = 0;
  InsertUntilRefused("p", &passed);
  const Reply busy = world.Post("/$batch", body, type);
  EXPECT_EQ(busy.Outcome(), "503 ServerBusy");
  EXPECT_THAT(busy.Header("Content-Type"), Not(HasSubstr("multipart")));
  // One token will do, behind the one who was refused before; the other 29 are then owed.
  EXPECT_EQ(busy.Header("Retry-After"), "1");
  Pass(std::stoull(busy.Header("x-ms-retry-after-ms")));
  EXPECT_EQ(world.Post("/$batch", body, type).status, 202);
  const Reply owed = InsertUntilRefused("p", &passed);
  EXPECT_EQ(passed, 0);
  EXPECT_NEAR(std::stoi(owed.Header("x-ms-retry-after-ms")), 3'000, 200);
}

TEST_F(ServiceThrottle, AThrottledQueryEndsEarlyWithAContinuationAndThenIsBusy) {
  for (int i = 0; i < 300; ++i) world.Insert("orders", "p", std::to_string(1000 + i));
  Limit({.partition_rate = 50});
  const Reply first = world.Get("/orders()?$filter=PartitionKey%20eq%20'p'");
  EXPECT_EQ(first.status, 200);
  EXPECT_TRUE(first.Has("x-ms-continuation-NextRowKey"));
  EXPECT_THAT(first.body, HasSubstr("\"RowKey\":\"1000\""));
  const Reply second = world.Get("/orders()?$filter=PartitionKey%20eq%20'p'");
  EXPECT_EQ(second.Outcome(), "503 ServerBusy");
  EXPECT_TRUE(second.Has("Retry-After"));
  // Nothing found is no reason to refuse: the page says how far it came.
  Pass(3'000);
  const Reply empty = world.Get("/orders()?$filter=PartitionKey%20eq%20'p'%20and%20Missing%20eq%201");
  EXPECT_EQ(empty.status, 200);
  EXPECT_TRUE(empty.Has("x-ms-continuation-NextRowKey"));
}

TEST_F(ServiceThrottle, PointReadsCountFoundOrNot) {
  world.Insert("orders", "p", "1");
  Limit({.partition_rate = 10});
  int passed = 0;
  while (world.Get("/orders(PartitionKey='p',RowKey='" + std::to_string(passed % 2) + "')").status != 503) {
    ASSERT_LT(++passed, 100);
  }
  EXPECT_NEAR(passed, 20, 1);
}

TEST_F(ServiceThrottle, LargeEntitiesCostByTheirSizeAsTheServiceCountsIt) {
  Limit({.partition_rate = 50});
  // 8,000 characters take two bytes each there: 16 KiB. Of a bucket of 100 six leave four, so one more is
  // given.
  const std::string text = ",\"a\":\"" + std::string(8'000, 'x') + "\"";
  int passed = 0;
  while (world.Insert("orders", "p", std::to_string(passed), text).status < 400) ASSERT_LT(++passed, 100);
  EXPECT_EQ(passed, 7);
}

}  // namespace
}  // namespace partita::http

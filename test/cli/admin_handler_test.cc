#include "api/cli/admin_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/async_database.h"
#include "test/cli/command_fixture.h"

namespace partita {
namespace {

using ::testing::HasSubstr;

class AdminHandlerTest : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    Result<std::unique_ptr<Database>> database = Database::Open(SmallOptions());
    ASSERT_TRUE(database.ok()) << database.status().message();
    database_ = std::move(*database);
    accounts_ = std::make_unique<http::AccountSet>(*http::AccountSet::Create({http::DevelopmentAccount()}));
    service_ = std::make_unique<http::TableService>(*database_, *accounts_);
    handler_ = std::make_unique<AdminHandler>(*database_, *service_, std::vector<const http::HttpServer*>(),
                                              "1.2.3");
  }
  void TearDown() override {
    handler_.reset();
    service_.reset();
    EXPECT_TRUE(database_->Close().ok());
    CommandTest::TearDown();
  }

  http::HttpResponse Ask(http::Method method, std::string_view target) {
    http::HttpRequest request{.method = method, .target = target};
    http::HttpResponse response;
    AsyncDatabase(*database_).runtime().Run(handler_->Handle(request, &response));
    return response;
  }

  std::unique_ptr<Database> database_;
  std::unique_ptr<http::AccountSet> accounts_;
  std::unique_ptr<http::TableService> service_;
  std::unique_ptr<AdminHandler> handler_;
};

TEST_F(AdminHandlerTest, AServerIsReadyUntilItStopsAndAliveUntilItEnds) {
  EXPECT_EQ(Ask(http::Method::kGet, "/readyz").status, 200);
  EXPECT_THAT(Ask(http::Method::kGet, "/metrics").body, HasSubstr("partita_ready 1\n"));
  handler_->NoteStopping();
  const http::HttpResponse unready = Ask(http::Method::kGet, "/readyz?verbose");
  EXPECT_EQ(unready.status, 503);
  EXPECT_EQ(unready.body, "stopping\n");
  EXPECT_EQ(Ask(http::Method::kGet, "/healthz").status, 200);
  EXPECT_THAT(Ask(http::Method::kGet, "/metrics").body, HasSubstr("partita_ready 0\n"));
}

TEST_F(AdminHandlerTest, OnlyItsPagesAreThereAndOnlyForReading) {
  EXPECT_EQ(Ask(http::Method::kGet, "/devstoreaccount1/Tables").status, 404);
  EXPECT_EQ(Ask(http::Method::kPost, "/healthz").status, 405);
  const http::HttpResponse head = Ask(http::Method::kHead, "/healthz");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.omit_body);
}

}  // namespace
}  // namespace partita

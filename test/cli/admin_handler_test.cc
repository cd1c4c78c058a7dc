#include "api/cli/admin_handler.h"

#include <gmock/gmock-matchers.h>
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
    Options options = SmallOptions();
    options.shards = 2;
    options.balance_ranges = false;
    Result<std::unique_ptr<Database>> database = Database::Open(options);
    ASSERT_TRUE(database.ok()) << database.status().message();
    database_ = std::move(*database);
    accounts_ = std::make_unique<http::AccountSet>(*http::AccountSet::Create({http::DevelopmentAccount()}));
    service_ = std::make_unique<http::TableService>(*database_, *accounts_);
    handler_ = std::make_unique<AdminHandler>(*database_, *service_, std::vector<const http::HttpServer*>(),
                                              "1.2.3", std::vector<std::string>{"Store.Example"});
    ASSERT_TRUE(database_->CreateTable("Orders").ok());
  }
  void TearDown() override {
    handler_.reset();
    service_.reset();
    EXPECT_TRUE(database_->Close().ok());
    CommandTest::TearDown();
  }

  http::HttpResponse Ask(http::Method method, std::string_view target) {
    return Send({.method = method, .target = target});
  }
  http::HttpResponse Send(http::HttpRequest request) {
    request.body = body_ = std::string(request.body) + std::string(64, ' ');
    request.body.remove_suffix(64);
    http::HttpResponse response;
    AsyncDatabase(*database_).runtime().Run(handler_->Handle(request, &response));
    return response;
  }
  // A POST as `partita ranges --admin` sends it.
  http::HttpRequest Change(std::string_view target, std::string_view body) const {
    return {.method = http::Method::kPost,
            .target = target,
            .headers = {{"Host", "127.0.0.1:9090"}, {"Content-Type", "application/json"}},
            .body = body,
            .remote_address = "127.0.0.1",
            .remote_is_local = true};
  }

  std::string body_;

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
  const http::HttpResponse unknown = Ask(http::Method::kGet, "/devstoreaccount1/Tables");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("/heat (with seconds, columns, buckets, top, table, by)"));
  EXPECT_EQ(Ask(http::Method::kPost, "/healthz").status, 405);
  const http::HttpResponse head = Ask(http::Method::kHead, "/healthz");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.omit_body);
}

// The answer would be of another time or of all tables, without a word.
TEST_F(AdminHandlerTest, AMisspeltParameterIsRefused) {
  const http::HttpResponse ranges = Ask(http::Method::kGet, "/ranges?tabel=Orders");
  EXPECT_EQ(ranges.status, 400);
  EXPECT_EQ(ranges.body, "there is no parameter 'tabel'; there are: table\n");
  const http::HttpResponse heat = Ask(http::Method::kGet, "/heat?seconds=60&bucket=3");
  EXPECT_EQ(heat.status, 400);
  EXPECT_THAT(heat.body, HasSubstr("no parameter 'bucket'; there are: seconds, columns, buckets"));
  EXPECT_EQ(Ask(http::Method::kGet, "/heat?seconds=60&columns=2&buckets=3&top=1&table=Orders&by=cpu").status,
            200);
  EXPECT_EQ(Ask(http::Method::kGet, "/ranges?table=Orders").status, 200);
}

TEST_F(AdminHandlerTest, RangesAreSplitMovedAndMerged) {
  const std::string at_m = R"({"table":"Orders","partition":"m"})";
  const http::HttpResponse split = Send(Change("/ranges/split", at_m));
  EXPECT_EQ(split.status, 200) << split.body;
  ASSERT_EQ(database_->ListRanges("Orders")->size(), 2u);
  const uint32_t from = database_->ListRanges("Orders")->at(1).shard;
  const std::string to = std::to_string(1 - from);
  const http::HttpResponse moved =
      Send(Change("/ranges/move", R"({"table":"Orders","partition":"zebra","shard":)" + to + "}"));
  EXPECT_EQ(moved.status, 200) << moved.body;
  EXPECT_THAT(moved.body, HasSubstr("\"to_shard\":" + to));
  EXPECT_EQ(database_->ListRanges("Orders")->at(1).shard, 1 - from);
  const http::HttpResponse apart = Send(Change("/ranges/merge", at_m));
  EXPECT_EQ(apart.status, 409);
  EXPECT_THAT(apart.body, HasSubstr(R"({"error":{"code":"PreconditionFailed","message":"the ranges are on)"));
  const std::string back = R"({"table":"Orders","partition":"m","shard":)" + std::to_string(from) + "}";
  EXPECT_EQ(Send(Change("/ranges/move", back)).status, 200);
  EXPECT_EQ(Send(Change("/ranges/merge", at_m)).status, 200);
  EXPECT_EQ(database_->ListRanges("Orders")->size(), 1u);
}

TEST_F(AdminHandlerTest, AChangeOfRangesThatIsWrongSaysWhy) {
  const auto ask = [&](std::string_view target, std::string_view body) { return Send(Change(target, body)); };
  EXPECT_EQ(ask("/ranges/split", R"({"table":"Missing","partition":"m"})").status, 404);
  EXPECT_EQ(ask("/ranges/split", R"({"table":"Orders","partition":""})").status, 400);
  EXPECT_EQ(ask("/ranges/merge", R"({"table":"Orders","partition":"m"})").status, 400);
  EXPECT_EQ(ask("/ranges/move", R"({"table":"Orders","partition":"m","shard":2})").status, 400);
  EXPECT_EQ(ask("/ranges/move", R"({"table":"Orders","partition":"m","shard":-1})").status, 400);
  EXPECT_EQ(ask("/ranges/move", R"({"table":"Orders","partition":"m"})").status, 400);
  for (const char* body : {"", "[]", "7", "{\"table\":\"Orders\"}", "{\"table\":3,\"partition\":\"m\"}"}) {
    const http::HttpResponse refused = ask("/ranges/split", body);
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_THAT(refused.body, HasSubstr("the body must be like")) << body;
  }
  EXPECT_EQ(ask("/ranges/throw", "{}").status, 405);
  EXPECT_EQ(Ask(http::Method::kGet, "/ranges/split").status, 405);
  EXPECT_EQ(database_->ListRanges("Orders")->size(), 1u);
}

TEST_F(AdminHandlerTest, ChangesComeFromThisMachineAndFromNoWebPage) {
  const std::string body = R"({"table":"Orders","partition":"m"})";
  http::HttpRequest page = Change("/ranges/split", body);
  page.headers.push_back({"Origin", "http://127.0.0.1:9090"});
  EXPECT_EQ(Send(page).status, 403);
  http::HttpRequest form = Change("/ranges/split", body);
  form.headers[1].value = "text/plain";
  EXPECT_EQ(Send(form).status, 400);
  http::HttpRequest other = Change("/ranges/split", body);
  other.remote_address = "192.0.2.7";
  other.remote_is_local = false;
  const http::HttpResponse refused = Send(other);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, HasSubstr("for the server's own machine only, not for 192.0.2.7"));
  EXPECT_EQ(database_->ListRanges("Orders")->size(), 1u);
  // This machine has other addresses than loopback ones.
  other.remote_is_local = true;
  EXPECT_EQ(Send(other).status, 200);
}

TEST_F(AdminHandlerTest, ABackupAndAScrubTellWhatWasDone) {
  const std::string backup = directory_ + "/back up";
  const http::HttpResponse made = Send(Change("/backup?to=" + directory_ + "/back%20up", "{}"));
  EXPECT_EQ(made.status, 200) << made.body;
  EXPECT_THAT(made.body, HasSubstr(R"("entries":0,"base_damages":[]})"));
  EXPECT_TRUE(std::filesystem::exists(backup));
  const http::HttpResponse again = Send(Change("/backup?to=" + directory_ + "/back%20up", "{}"));
  EXPECT_EQ(again.status, 409);
  EXPECT_THAT(again.body, HasSubstr("AlreadyExists"));
  const http::HttpResponse scrubbed = Send(Change("/scrub", "{}"));
  EXPECT_EQ(scrubbed.status, 200) << scrubbed.body;
  EXPECT_THAT(scrubbed.body, HasSubstr(R"("meta_values":3)"));
  handler_->NoteStopping();
  EXPECT_EQ(Send(Change("/scrub", "{}")).status, 503);
}

TEST_F(AdminHandlerTest, ABackupThatIsAskedForWronglySaysWhy) {
  const std::string to = "to=" + directory_ + "/backup";
  for (const std::string& target :
       {"/backup?" + std::string(), std::string("/backup?to=backup"), "/backup?" + to + "&base=backup",
        "/backup?" + to + "&bas=/backup", "/backup?" + to + "&copy=0", "/backup?" + to + "&rate=0",
        "/backup?" + to + "&rate=65535", std::string("/scrub?rate=50"), "/backup?" + to + "&rate=5M",
        std::string("/scrub?within=0"), std::string("/scrub?within=1d"), "/scrub?" + to}) {
    EXPECT_EQ(Send(Change(target, "{}")).status, 400) << target;
  }
  EXPECT_EQ(Send(Change("/backup?" + to + "&base=/nowhere", "{}")).status, 404);
  EXPECT_EQ(Ask(http::Method::kGet, "/backup?" + to).status, 405);
  const std::string sound = "/backup?" + to;
  http::HttpRequest form = Change(sound, "");
  form.headers[1].value = "text/plain";
  EXPECT_EQ(Send(form).status, 400);
  http::HttpRequest other = Change(sound, "");
  other.remote_is_local = false;
  EXPECT_EQ(Send(other).status, 403);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/backup"));
}

// The buffers that bodies fill are those of the table service.
TEST_F(AdminHandlerTest, NoBodyIsReceivedThatNobodyMaySend) {
  const auto refusal = [&](const http::HttpRequest& request) {
    http::HttpResponse response;
    return handler_->RefuseBeforeBody(request, &response) ? response.status : 0;
  };
  const http::HeaderField small = {"Content-Length", "4096"}, large = {"Content-Length", "4097"};
  const auto change = [&](const http::HeaderField& framing) {
    http::HttpRequest request = Change("/ranges/split", "");
    request.headers.push_back(framing);
    return request;
  };
  EXPECT_EQ(refusal(change(small)), 0);
  EXPECT_EQ(refusal(change(large)), 413);
  EXPECT_EQ(refusal(change({"Content-Length", "99999999999999999999"})), 413);
  EXPECT_EQ(refusal(change({"Transfer-Encoding", "chunked"})), 413);
  http::HttpRequest other = change(small);
  other.remote_address = "192.0.2.7";
  other.remote_is_local = false;
  EXPECT_EQ(refusal(other), 403);
  EXPECT_EQ(refusal({.method = http::Method::kPost, .target = "/healthz", .headers = {small}}), 405);
  EXPECT_EQ(refusal({.method = http::Method::kGet, .target = "/healthz", .headers = {large}}), 413);
  // What came with its headers is no better.
  EXPECT_EQ(Send(change(large)).status, 413);
  http::HttpRequest too_large = change({"Content-Length", "10000000"});
  too_large.body_too_large = true;
  EXPECT_EQ(Send(too_large).status, 413);
}

TEST_F(AdminHandlerTest, OnlyWhoAsksForThisServerIsAnswered) {
  const auto status_for = [&](std::string_view host) {
    return Send({.method = http::Method::kGet, .target = "/heat", .headers = {{"host", host}}}).status;
  };
  for (const char* own :
       {"127.0.0.1:9090", "127.0.0.1", "[::1]:9090", "[::1]", "192.0.2.7:80", "localhost:9090", "LocalHost",
        "a.localhost:1", "store.example", "STORE.example:9090"}) {
    EXPECT_EQ(status_for(own), 200) << own;
  }
  for (const char* other : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9090", "",
                            "notlocalhost", "my.store.example", "127.0.0.1:9090.evil.example"}) {
    EXPECT_EQ(status_for(other), 403) << other;
  }
}

}  // namespace
}  // namespace partita

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

#include "api/async_database.h"
#include "api/cli/admin_handler.h"
#include "api/cli/heat_picture.h"
#include "api/cli/stalls_json.h"
#include "api/http/admin_client.h"
#include "engine/base/task_group.h"
#include "engine/io/socket_address.h"
#include "test/cli/command_fixture.h"
#include "test/lab/scripted_server.h"
#include "test/support/interrupted_thread.h"

namespace partita {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A server with nothing but its admin address, on a table that was written to.
class HeatCommandTest : public CommandTest {
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
    auto server = http::HttpServer::Open(AsyncDatabase(*database_).runtime(), {}, *handler_);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
    const Result<Table> table = database_->CreateTable("Orders");
    ASSERT_TRUE(table.ok());
    for (int i = 0; i < 40; ++i) {
      const std::string partition = i % 4 != 3 ? "<anna>" : "p" + std::to_string(i);
      ASSERT_TRUE(table->Insert(Entity(partition, std::to_string(i))).ok());
      // Collects: with many samples waiting not every call leaves one.
      if (i % 10 == 9) (void)database_->HotPartitions(HeatMetric::kWrites, 1);
    }
  }
  void TearDown() override {
    server_.reset();
    handler_.reset();
    service_.reset();
    EXPECT_TRUE(database_->Close().ok());
    CommandTest::TearDown();
  }

  CommandOutcome Heat(std::vector<std::string> words) {
    words.insert(words.begin(), {"heat", "--admin", server_->address()});
    return RunAsGiven(words);
  }

  std::unique_ptr<Database> database_;
  std::unique_ptr<http::AccountSet> accounts_;
  std::unique_ptr<http::TableService> service_;
  std::unique_ptr<AdminHandler> handler_;
  std::unique_ptr<http::HttpServer> server_;
};

TEST_F(HeatCommandTest, ItDrawsTheLoadAndNamesTheHottest) {
  const CommandOutcome outcome = Heat({"--by", "writes", "--last", "60s", "--top", "1"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("writes by keys (down) and time (across), each column 1 s"));
  EXPECT_THAT(outcome.out, HasSubstr("@"));
  EXPECT_THAT(outcome.out, ContainsRegex(" 7[3-7]\\.[0-9] %  Orders <anna>\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("Orders p3"))) << "no more than asked for";
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b"))) << "no terminal, no colours";
}

TEST_F(HeatCommandTest, ItWritesAPageThatNeedsNothingElse) {
  const std::string file = directory_ + "/heat.html";
  ASSERT_EQ(Heat({"--by", "reads", "--html", file}).code, ExitCode::kOk);
  const std::string page = Read(file);
  EXPECT_THAT(page, HasSubstr("{\"shown\":\"reads\",\"begin\":"));
  EXPECT_THAT(page, HasSubstr("\"from\":"));
  EXPECT_THAT(page, HasSubstr("\\u003canna>"));
  EXPECT_THAT(page, Not(HasSubstr("<anna>")));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_NE(Heat({"--html", directory_ + "/none/heat.html"}).code, ExitCode::kOk);
}

TEST_F(HeatCommandTest, UntilAPageIsWholeTheEarlierOneStands) {
  const std::string file = Write("heat.html", "earlier"), earlier = directory_ + "/earlier.html";
  std::filesystem::create_hard_link(file, earlier);
  ASSERT_EQ(Heat({"--html", file}).code, ExitCode::kOk);
  EXPECT_THAT(Read(file), HasSubstr("{\"shown\":"));
  EXPECT_EQ(Read(earlier), "earlier") << "it was written beside it, and renamed";
}

TEST_F(HeatCommandTest, ItWritesAPicture) {
  const std::string file = directory_ + "/heat.png";
  ASSERT_EQ(Heat({"--by", "writes", "--last", "60s", "--png", file}).code, ExitCode::kOk);
  const std::string png = Read(file);
  EXPECT_TRUE(png.starts_with("\x89PNG"));
  EXPECT_TRUE(png.ends_with(std::string_view("\0\0\0\0IEND\xAE\x42\x60\x82", 12)));
  EXPECT_EQ(Heat({"--png", file, "--html", file}).code, ExitCode::kUsage);
}

TEST_F(HeatCommandTest, WhatIsAskedForWronglyIsTold) {
  EXPECT_EQ(Heat({"--by", "weather"}).code, ExitCode::kUsage);
  EXPECT_THAT(Heat({"--last", "soon"}).err, HasSubstr("--last takes a time"));
  EXPECT_THAT(Heat({"--last", "15d"}).err, HasSubstr("--last takes a time of 1s to 14d"));
  const CommandOutcome missing = Heat({"--table", "Missing"});
  EXPECT_EQ(missing.code, ExitCode::kFindings);
  EXPECT_THAT(missing.err, HasSubstr("Missing"));
  EXPECT_EQ(RunAsGiven({"heat"}).code, ExitCode::kUsage);
  EXPECT_EQ(RunAsGiven({"heat", "--admin", "nowhere"}).code, ExitCode::kUsage);
  server_->Stop();
  EXPECT_THAT(Heat({}).err, HasSubstr("is 'partita serve --admin' running there?"));
}

TEST_F(HeatCommandTest, TheAdminAddressGivesRangesToo) {
  ASSERT_TRUE(database_->SplitRange("Orders", "m").ok());
  const CommandOutcome outcome = RunAsGiven({"ranges", "list", "Orders", "--admin", server_->address()});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Orders"));
  EXPECT_THAT(outcome.out, HasSubstr("m"));
  EXPECT_EQ(ParseRangesJson(*http::AskAdmin(server_->address(), "/ranges"))->size(), 2u);
}

TEST_F(HeatCommandTest, RangesOfARunningServerAreChanged) {
  const auto ranges = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "ranges");
    words.insert(words.end(), {"--admin", server_->address()});
    return RunAsGiven(words);
  };
  const CommandOutcome split = ranges({"split", "Orders", "q\""});
  EXPECT_EQ(split.code, ExitCode::kOk) << split.err;
  EXPECT_EQ(database_->ListRanges("Orders")->at(1).first_partition_key, "q\"");
  const CommandOutcome again = ranges({"split", "Orders", "q\""});
  EXPECT_EQ(again.code, ExitCode::kFindings);
  EXPECT_THAT(again.err, HasSubstr("a range begins there already"));
  EXPECT_THAT(ranges({"move", "Orders", "r", "5"}).err, HasSubstr("there is no shard 5"));
  const CommandOutcome moved = ranges({"move", "Orders", "r", "0"});
  EXPECT_EQ(moved.code, ExitCode::kOk) << moved.err;
  EXPECT_THAT(moved.out, ContainsRegex("to shard +0"));
  EXPECT_EQ(ranges({"merge", "Orders", "q\""}).code, ExitCode::kOk);
  EXPECT_EQ(database_->ListRanges("Orders")->size(), 1u);
}

// Nobody listens where packets go to nowhere, and what listens may never accept.
TEST_F(HeatCommandTest, AnAddressThatNeverAnswersIsGivenUp) {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&any), sizeof(any)), 0);
  ASSERT_EQ(listen(listening, 0), 0);
  const SocketAddress at = SocketAddress::LocalOf(listening);
  // Its queue is full from here on, and what connects waits.
  std::vector<int> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)connect(waiting.back(), at.get(), at.size());
  }
  const auto begin = std::chrono::steady_clock::now();
  const Result<std::string> answer = http::AskAdmin(at.ToString(), "/healthz");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(answer.code(), Code::kIoError);
  EXPECT_THAT(answer.status().message(), HasSubstr("timed out"));
  EXPECT_GE(took.count(), 9.0);
  EXPECT_LT(took.count(), 60.0);  // A connect alone would go on for two minutes.
  for (const int each : waiting) close(each);
  close(listening);
}

// As by Ctrl-Z and its end: the connection's end would end a backup or scrub there.
TEST(AdminClientTest, AnInterruptedWaitForTheAnswerGoesOn) {
  const InterruptedThread here;
  const lab::ScriptedServer server([&here](const std::string&) {
    here.Interrupt();
    return lab::ScriptedServer::Answer(200, "done");
  });
  const Result<std::string> answer = http::RunOnAdmin(server.address(), "/scrub");
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(*answer, "done");
}

TEST_F(HeatCommandTest, TheAdminAddressTellsOfStallsToo) {
  // What the worker of shard 0 is kept by, at least.
  auto keep_it = []() -> Task<void> {
    co_await Yield();
    const timespec time{0, 3'000'000};
    nanosleep(&time, nullptr);
  };
  TaskGroup group;
  group.Spawn(AsyncDatabase(*database_).runtime().shard_executor(ShardId(0)), keep_it());
  RunBlocking(group.Join());
  const CommandOutcome outcome = RunAsGiven({"stalls", "--admin", server_->address()});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("cli/heat_command_test.cc:[0-9]+ .*TestBody"));
  const std::string metrics = *http::AskAdmin(server_->address(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr("partita_stall_place_seconds_total{place=\"cli/heat_command_test.cc:"));
  const CommandOutcome json = RunAsGiven({"stalls", "--json", "--admin", server_->address()});
  EXPECT_TRUE(ParseStallsJson(json.out).ok());
}

TEST_F(HeatCommandTest, WhatTheServerIsAskedWronglyItRefuses) {
  const auto code = [&](const char* target) { return http::AskAdmin(server_->address(), target).code(); };
  EXPECT_EQ(code("/heat?seconds=x"), Code::kInvalidArgument);
  EXPECT_EQ(code("/heat?seconds=99999999999999"), Code::kInvalidArgument);
  EXPECT_EQ(code("/heat?columns=0"), Code::kInvalidArgument);
  EXPECT_EQ(code("/heat?by=weather"), Code::kInvalidArgument);
  EXPECT_EQ(code("/heat?table=%zz"), Code::kInvalidArgument);
  EXPECT_EQ(code("/ranges?table=Missing"), Code::kNotFound);
  EXPECT_EQ(code("/heat"), Code::kOk);
}

TEST(HeatJsonTest, ComesBackAsItWas) {
  HeatReport report;
  report.picture = {.begin_ticks = 133'000'000'000'000'000,
                    .column_seconds = 10,
                    .columns = 2,
                    .buckets = {{"", ""}, {"Orders", "quote\"d"}},
                    .cells = std::vector<HeatValues>(4)};
  report.picture.cells[3][5] = 1.5e9;
  report.total[0] = 7;
  report.top[0].push_back({"Orders", "p", true, 3.25, 0.5});
  const std::string json = HeatJson(report);
  const Result<HeatReport> back = ParseHeatJson(json);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(HeatJson(*back), json);
  EXPECT_EQ(back->picture.buckets[1].partition_key, "quote\"d");
  for (size_t size = 0; size + 2 < json.size(); size += 7) {
    EXPECT_EQ(ParseHeatJson(json.substr(0, size)).code(), Code::kInvalidArgument);
  }
  for (const char* other :
       {"{}", "[]", "7", "{\"begin\":3}", "{\"begin\":\"2020-01-01T00:00Z\",\"columns\":-1}"}) {
    EXPECT_EQ(ParseHeatJson(other).code(), Code::kInvalidArgument);
    EXPECT_TRUE(std::string(other) == "[]" || !ParseRangesJson(other).ok());
  }
}

TEST(HeatPictureTest, ShadesByTheLogarithmAndColoursOnTerminals) {
  HeatReport report;
  report.picture = {.columns = 4, .buckets = {{"T", "a"}, {"T", "b"}}, .cells = std::vector<HeatValues>(8)};
  report.picture.cells[0][0] = 1000;
  report.picture.cells[2][0] = 30;
  report.picture.cells[4][0] = 1;
  const std::string plain = DrawHeat(report, HeatMetric::kReads, HeatStyle::kPlain);
  EXPECT_THAT(plain, HasSubstr("T a                      @+. \n"));
  EXPECT_THAT(DrawHeat(report, HeatMetric::kReads, HeatStyle::kColour),
              HasSubstr("\x1b[48;5;230m \x1b[48;5;"));
  EXPECT_EQ(HeatRate(HeatMetric::kCpu, 2.5e8), "0.250 cores");
  EXPECT_EQ(HeatRate(HeatMetric::kReads, 12'345), "12,345/s");
}

TEST_F(HeatCommandTest, LocalhostIsThisMachineByEitherAddress) {
  const std::string port = server_->address().substr(server_->address().rfind(':'));
  const auto answer = [](const std::string& address) {
    const Result<std::string> page = http::AskAdmin(address, "/healthz");
    return page.ok() ? *page : page.status().ToString();
  };
  EXPECT_EQ(answer("localhost" + port), "ok\n");
  EXPECT_EQ(answer("http://LocalHost" + port), "ok\n");
  EXPECT_EQ(http::AskAdmin("localhost:", "/healthz").code(), Code::kInvalidArgument);
  EXPECT_EQ(http::AskAdmin("localhost.example" + port, "/healthz").code(), Code::kInvalidArgument);
  auto other = http::HttpServer::Open(AsyncDatabase(*database_).runtime(), {.address = "[::1]:0"}, *handler_);
  if (!other.ok()) GTEST_SKIP() << "there is no IPv6 here: " << other.status().message();
  EXPECT_EQ(answer("localhost:" + std::to_string((*other)->port())), "ok\n");
}

}  // namespace
}  // namespace partita

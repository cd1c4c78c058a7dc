#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "bench/lab/http_store.h"
#include "bench/lab/lab_command.h"
#include "bench/lab/run.h"
#include "test/cli/command_fixture.h"
#include "test/lab/experiments.h"
#include "test/lab/scripted_server.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kSas = "sv=2019-02-02&sig=aB%2Bc";

std::unique_ptr<HttpStore> StoreOn(const ScriptedServer& server, const Experiment& experiment,
                                   std::vector<std::string>* warnings) {
  const Result<Connection> connection = ParseConnection(server.ConnectionString(kSas));
  EXPECT_TRUE(connection.ok());
  Result<std::unique_ptr<HttpStore>> store = HttpStore::Make(
      *connection, experiment.fields, [warnings](const std::string& text) { warnings->push_back(text); });
  return std::move(*store);
}

bool Is(const std::string& request, const std::string& method) { return request.starts_with(method + " "); }

class HostileServiceTest : public CommandTest {
 protected:
  const Experiment experiment_ = ParseSound(ReadingsText(kDeviceLayout));
  std::vector<std::string> warnings_;

  // Runs `text` with a few operations on no records, which is to find something wrong.
  void ExpectFindings(const ScriptedServer& server, std::string text) {
    text.replace(text.find("records = 2000"), 14, "records = 0");
    text.replace(text.find("rate = 1000"), 11, "rate = 100");
    const std::string path = Write("x.toml", text);
    CountdownInterrupts interrupts;
    Console console{.out = out_, .err = err_, .interrupts = interrupts};
    EXPECT_EQ(RunLab({"run", path, "--out", To(), "--target", server.ConnectionString(kSas)}, console),
              ExitCode::kFindings)
        << err_.str();
  }
  std::string To() const { return directory_ + "/out"; }
  std::ostringstream out_, err_;
};

TEST_F(HostileServiceTest, ATableIsDeletedThoughTheServiceIsBusyAtFirst) {
  std::atomic<int> deletes{0};  // Counted on the server's thread.
  ScriptedServer server([&](const std::string& request) {
    if (Is(request, "POST")) return ScriptedServer::Answer(204, "");
    return ++deletes == 1 ? ScriptedServer::Answer(503, "busy")
           : deletes == 2 ? std::string()
                          : ScriptedServer::Answer(204, "");
  });
  {
    const auto store = StoreOn(server, experiment_, &warnings_);
    EXPECT_TRUE(store->MakeTable("Lab", {}).ok());
  }
  EXPECT_EQ(deletes, 3);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(HostileServiceTest, ATableIsMadeThoughTheServiceIsBusyAtFirst) {
  std::atomic<int> posts{0};
  ScriptedServer server([&](const std::string& request) {
    // The second try meets what the first one made all the same.
    return ScriptedServer::Answer(!Is(request, "POST") ? 204 : ++posts == 1 ? 503 : 409, "");
  });
  EXPECT_TRUE(StoreOn(server, experiment_, &warnings_)->MakeTable("Lab", {}).ok());
  EXPECT_EQ(posts, 2);
  EXPECT_THAT(server.requests().back(), StartsWith("DELETE "));
}

TEST_F(HostileServiceTest, ABatchWhosePartIsThrottledIsThrottledForAsLongAsThePartSays) {
  const std::string part =
      "--x\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After: 7\r\n"
      "X-Ms-Retry-After-Ms: 1250\r\n\r\nX-Ms-Retry-After-Ms: 9\r\n--x--\r\n";
  ScriptedServer server([&](const std::string& request) {
    const bool is_batch = request.find("$batch") != std::string::npos;
    return ScriptedServer::Answer(is_batch ? 202 : 204, is_batch ? part : "");
  });
  const auto store = StoreOn(server, experiment_, &warnings_);
  ASSERT_TRUE(store->MakeTable("Lab", {}).ok());
  const std::vector<partita::Write> writes = {
      {.action = WriteAction::kInsert, .entity = Entity("p", "a"), .if_match = {}},
      {.action = WriteAction::kInsert, .entity = Entity("p", "b"), .if_match = {}}};
  const Status status = store->Transact("Lab", writes);
  EXPECT_EQ(status.code(), Code::kThrottled);
  EXPECT_EQ(status.retry_after_us(), 1'250'000u);
}

TEST_F(HostileServiceTest, BeforeTheLoadWhatWasLoadedMayFlowBackAndAWishToStopEndsThat) {
  ScriptedServer server([](const std::string&) { return ScriptedServer::Answer(204, ""); });
  const auto store = StoreOn(server, experiment_, &warnings_);
  ASSERT_TRUE(store->MakeTable("Lab", {}).ok());
  EXPECT_TRUE(store->Settle({}, [] { return false; }).ok()) << "nothing was loaded";
  std::vector<partita::Write> writes = {
      {.action = WriteAction::kInsertOrReplace, .entity = Entity("p", "a"), .if_match = {}}};
  ASSERT_TRUE(store->Load("Lab", writes, [] { return true; }).ok());
  EXPECT_EQ(store->Settle({}, [] { return false; }).code(), Code::kCancelled);
  const auto settled = std::chrono::steady_clock::now();
  EXPECT_TRUE(store->Settle({}, [] { return true; }).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - settled, std::chrono::seconds(2));
}

TEST_F(HostileServiceTest, ATableThatStaysIsNamed) {
  ScriptedServer server([](const std::string& request) {
    return ScriptedServer::Answer(Is(request, "POST") ? 204 : 403, "no: ?sig=aB%2Bc");
  });
  {
    const auto store = StoreOn(server, experiment_, &warnings_);
    EXPECT_TRUE(store->MakeTable("Lab", {}).ok());
  }
  EXPECT_THAT(server.requests(), SizeIs(2)) << "what is forbidden is not tried again";
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("table Labpartitalab"), HasSubstr("left behind"),
                                           Not(HasSubstr("aB")))));
}

TEST_F(HostileServiceTest, ATableThatMayHaveBeenMadeIsDeleted) {
  ScriptedServer server([](const std::string& request) {
    return Is(request, "POST") ? std::string() : ScriptedServer::Answer(404, "");
  });
  {
    const auto store = StoreOn(server, experiment_, &warnings_);
    EXPECT_EQ(store->MakeTable("Lab", {}).code(), Code::kIoError);
  }
  EXPECT_THAT(server.requests(),
              ElementsAre(StartsWith("POST /Tables?sv="), StartsWith("DELETE /Tables('Labpartitalab")));
  EXPECT_THAT(warnings_, IsEmpty()) << "it is not there";
}

TEST_F(HostileServiceTest, ATableThatWasRefusedIsNotAskedForAgain) {
  ScriptedServer server([](const std::string&) { return ScriptedServer::Answer(403, "no"); });
  EXPECT_FALSE(StoreOn(server, experiment_, &warnings_)->MakeTable("Lab", {}).ok());
  EXPECT_THAT(server.requests(), SizeIs(1));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(HostileServiceTest, AWishToStopEndsTheLoadingOfAThrottlingService) {
  ScriptedServer server([](const std::string& request) {
    return ScriptedServer::Answer(Is(request, "POST") && request.find("$batch") != std::string::npos ? 503
                                  : Is(request, "PUT")                                               ? 503
                                                                                                     : 204,
                                  "");
  });
  const RecordGenerator generator(experiment_);
  RunPlace place{.directory = directory_, .kind = TargetKind::kHttp, .connection = {}};
  place.connection = *ParseConnection(server.ConnectionString(kSas));
  std::vector<std::string> told;
  const auto progress = [&](double, double, const std::string& what) {
    told.push_back(what);
    return told.size() < 10;
  };
  // It would try for a fifth of a minute at least.
  EXPECT_EQ(RunExperiment(generator, place, progress).status().code(), Code::kCancelled);
  EXPECT_THAT(told, SizeIs(10));
  EXPECT_THAT(told.back(), StartsWith("device, loading "));
  EXPECT_THAT(server.requests().back(), StartsWith("DELETE "));
}

TEST_F(HostileServiceTest, ARunThatOnlyFailsIsKeptToldAndFails) {
  ScriptedServer server([](const std::string& request) {
    const std::string line = request.substr(0, request.find(" HTTP/"));
    const bool is_table = line.find("/Tables") != std::string::npos;
    return ScriptedServer::Answer(is_table ? 204 : 400, "no\xff\x1b[31m " + line);
  });
  const std::string text = Once(ReadingsText(kDeviceLayout));
  ExpectFindings(server, text);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr(" failed: InvalidArgument: the service answered 400: no"),
                                Not(HasSubstr("aB")), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("operations was completed: InvalidArgument"), Not(HasSubstr("aB")),
                                Not(HasSubstr("\x1b"))));
  for (const char* name : {"/result.json", "/report.html"}) {
    EXPECT_THAT(Read(To() + name), AllOf(HasSubstr("\"first_error\""), Not(HasSubstr("aB%2Bc")))) << name;
  }
}

// As Azurite and the cloud: what a query looked at is told by no header.
std::string AnswerWithoutCost(const std::string& request) {
  if (Is(request, "GET") && request.find("/Lab") != std::string::npos) {
    return ScriptedServer::Answer(200, R"({"value": [{"PartitionKey": "dev-001", "RowKey": "1"}]})");
  }
  const bool is_batch = request.find("$batch") != std::string::npos;
  return is_batch ? ScriptedServer::Answer(202, "HTTP/1.1 204 No Content\r\n\r\n")
                  : ScriptedServer::Answer(204, "");
}

TEST_F(HostileServiceTest, WhatAServiceDoesNotTellThatItLookedAtWasNotMeasured) {
  ScriptedServer server(AnswerWithoutCost);
  const std::string text = Once(ReadingsText(std::string(kDeviceLayout) + R"(
[[expect]]
layout = "device"
op = "latest"
metric = "density"
equals = 1
)"));
  ExpectFindings(server, text);
  EXPECT_THAT(err_.str(),
              ContainsRegex("operation latest: nothing was measured: http://127.0.0.1:[0-9]+ does "
                            "not tell what it looks at"));
  EXPECT_THAT(out_.str(), ContainsRegex("latest +device .* - +1\\.00 +-[ \n]"));
  EXPECT_THAT(Read(To() + "/result.json"),
              AllOf(HasSubstr("\"density\": null"), HasSubstr("\"scanned\": null")));
}

}  // namespace
}  // namespace partita::lab

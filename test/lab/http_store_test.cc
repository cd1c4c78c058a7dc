#include "bench/lab/http_store.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <simdjson.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <regex>
#include <thread>

#include "test/http/tls_client.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"
#include "test/lab/scripted_server.h"
#include "test/support/interrupted_thread.h"
#include "test/support/paths.h"

namespace partita::lab {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The development account's key is the one that everyone knows.
constexpr const char* kKey =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

// Runs a function on the serving thread, then stops the server.
class OneStep final : public InterruptSource {
 public:
  explicit OneStep(std::function<void()> step) : step_(std::move(step)) {}
  Wish Wait() override {
    step_();
    return Wish::kStop;
  }

 private:
  std::function<void()> step_;
};

class HttpStoreTest : public LabCommandTest {
 protected:
  // `partita serve` with these words more; `step` gets a connection string.
  void Serve(std::vector<std::string> words, const std::function<void(const std::string&)>& step) {
    words.insert(words.begin(), {"serve", "--data", store_, "--listen", "http://127.0.0.1:0", "--memory",
                                 "64M", "--shards", "1", "--io"});
    words.insert(words.begin() + 10, backend_ == IoBackend::kUring ? "uring" : "threads");
    std::ostringstream out, err;
    OneStep steps([&] {
      std::smatch found;
      const std::string text = out.str();
      ASSERT_TRUE(std::regex_search(text, found, std::regex(R"(READY.* http://127\.0\.0\.1:(\d+))"))) << text;
      ready_ = text;
      step(std::string("AccountName=devstoreaccount1;AccountKey=") + kKey +
           ";TableEndpoint=http://127.0.0.1:" + found[1].str() + "/devstoreaccount1");
    });
    Console console{.out = out, .err = err, .interrupts = steps};
    EXPECT_EQ(RunCommandLine(words, console), ExitCode::kOk) << err.str();
  }
  std::string ready_;  // What it prints when it serves.
  std::string Io() const { return backend_ == IoBackend::kUring ? "uring" : "threads"; }
};

std::string StreamHashOf(const std::string& json) {
  std::smatch found;
  return std::regex_search(json, found, std::regex(R"x("stream_hash": "(\w+)")x")) ? found[1].str() : "";
}

// Every kind of operation, on a layout with copies in and out of the partition.
std::string AllKinds() {
  std::string text = ReadingsText(R"(
[[layout]]
name = "copies"
pk = "{device}"
rk = "{desc_ticks(ts)}"
[[layout.copy]]
name = "by-type"
table = "Types"
pk = "{type}"
rk = "{ticks(ts)}_{device}"
props = ["type", "device", "ts"]
[[expect]]
layout = "copies"
op = "latest"
metric = "returned"
above = 1
[[expect]]
layout = "copies"
metric = "failed"
equals = 0
[[expect]]
layout = "copies"
metric = "missing"
equals = 0
)");
  const std::string more = R"([[op]]
name = "alarms"
kind = "query"
where = { type = "alarm" }
[[op]]
name = "change"
kind = "merge"
set = ["value"]
[[op]]
name = "again"
kind = "replace"
[[op]]
name = "put"
kind = "upsert"
[arrival])";
  text.replace(text.find("[arrival]"), 9, more);
  // One client: two could meet at a record that one of them is just writing, which would be missing to the
  // other.
  text.replace(text.find("clients = 8"), 11, "clients = 1");
  return Once(text.replace(text.find("rate = 1000"), 11, "rate = 200"));
}

TEST_F(HttpStoreTest, ListsAndReadModifyWritesAreGuardedByETagsThere) {
  std::string text = Once(ReadingsText(std::string(kDeviceLayout) + R"(
[[layout.copy]]
name = "hours"
table = "Hours"
pk = "hour"
rk = "{hour:02}"
list = "ts"
[[expect]]
layout = "device"
metric = "failed"
equals = 0
[[expect]]
layout = "device"
op = "raise"
metric = "missing"
equals = 0
)"));
  text.replace(text.find("[arrival]"), 9,
               "[[op]]\nname = \"raise\"\nkind = \"modify\"\nset = [\"value\"]\n[arrival]");
  text.replace(text.find("records = 2000"), 14, "records = 60");
  text.replace(text.find("batch = 5"), 9, "batch = 1");
  text.replace(text.find("rate = 1000"), 11, "rate = 100");
  const std::string path = Write("x.toml", text);
  Serve({}, [&](const std::string& connection) {
    const CommandOutcome there = Lab({"run", path, "--out", directory_ + "/there", "--target", connection});
    EXPECT_EQ(there.code, ExitCode::kOk) << there.err << there.out;
    const Experiment experiment = ParseSound(text);
    auto store = HttpStore::Make(*ParseConnection(connection), experiment.fields, [](const std::string&) {});
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE((*store)->MakeTable("Hours", {}).ok());
    Entity list("hour", "07");
    list.Set("tsList", "a\nb").Set("value", 2.5);
    partita::Write write{.action = WriteAction::kInsert, .entity = list, .if_match = {}};
    ASSERT_TRUE((*store)->Transact("Hours", {write}).ok());
    const Result<Entity> read = (*store)->Get("Hours", "hour", "07");
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*read->GetString("tsList"), "a\nb");
    const Result<Entity> selected = (*store)->GetSelected("Hours", "hour", "07", {"value", "type"});
    ASSERT_TRUE(selected.ok()) << selected.status().ToString();
    EXPECT_EQ(*selected->GetDouble("value"), 2.5);
    EXPECT_EQ(selected->property_count(), 1u) << "the other is not there, and not asked for";
    EXPECT_EQ((*store)->GetSelected("Hours", "hour", "8", {"value"}).code(), Code::kNotFound);
    write.action = WriteAction::kReplace;
    write.if_match = read->etag();
    EXPECT_TRUE((*store)->Transact("Hours", {write}).ok());
    EXPECT_EQ((*store)->Transact("Hours", {write}).code(), Code::kPreconditionFailed)
        << "it was written since";
  });
}

TEST_F(HttpStoreTest, PagesAreFollowedAndBatchesAreWhole) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  Serve({}, [&](const std::string& text) {
    const Result<Connection> connection = ParseConnection(text);
    ASSERT_TRUE(connection.ok());
    const auto store = HttpStore::Make(*connection, experiment.fields, [](const std::string&) {});
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE((*store)->MakeTable("Lab", {}).ok());
    std::vector<partita::Write> writes;
    for (int i = 0; i < 2'500; ++i) {
      char row[16];
      std::snprintf(row, sizeof(row), "it's %05d", i);
      Entity entity("p'q &%+ä", row);
      entity.Set("device", "dev-001");
      entity.Set("ts", DateTime{130'000'000'000'000'000});
      entity.Set("value", 0.1 + i);
      entity.Set("hour", int64_t{7});
      writes.push_back(
          {.action = WriteAction::kInsertOrReplace, .entity = std::move(entity), .if_match = {}});
    }
    const Status loaded = (*store)->Load("Lab", writes, [] { return true; });
    ASSERT_TRUE(loaded.ok()) << loaded.ToString();
    TableStore::Question question{.filter = {"PartitionKey eq 'p''q &%+ä'"}, .wants_properties = true};
    std::vector<Entity> found;
    size_t pages = 0;
    do {
      const auto answer = (*store)->Query("Lab", question);
      ASSERT_TRUE(answer.ok()) << answer.status().ToString();
      EXPECT_GE(answer->scanned, answer->entities.size());
      found.insert(found.end(), answer->entities.begin(), answer->entities.end());
      question.continuation = answer->continuation;
      ++pages;
    } while (!question.continuation.empty());
    EXPECT_EQ(pages, 3u);
    ASSERT_EQ(found.size(), writes.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].row_key(), writes[i].entity.row_key());
      for (const Property& property : writes[i].entity.properties()) {
        ASSERT_EQ(*found[i].Get(property.name), property.value) << property.name;
      }
    }
    // One that exists refuses the whole batch.
    std::vector<partita::Write> batch(writes.begin(), writes.begin() + 2);
    for (partita::Write& write : batch) write.action = WriteAction::kInsert;
    batch[0].entity = Entity("p'q &%+ä", "new");
    EXPECT_EQ((*store)->Transact("Lab", batch).code(), Code::kAlreadyExists);
    EXPECT_EQ((*store)->Get("Lab", "p'q &%+ä", "new").status().code(), Code::kNotFound);
    EXPECT_TRUE((*store)->Get("Lab", "p'q &%+ä", "it's 00000").ok());
  });
}

TEST_F(HttpStoreTest, WhatTheServiceThrottlesIsCountedAsThrottled) {
  std::string text = Once(ReadingsText(R"(
[[layout]]
name = "one"
pk = "all"
rk = "{device}_{ticks(ts)}"
[[expect]]
layout = "one"
op = "ingest"
metric = "throttled"
above = 0.3
[[expect]]
layout = "one"
metric = "failed"
equals = 0
)"));
  // Without records there is nothing to wait for that was loaded, and without a warm-up the bucket is full.
  text.replace(text.find("records = 2000"), 14, "records = 0");
  text.replace(text.find("warmup = \"100ms\""), 16, "warmup = \"0s\"");
  const std::string path = Write("x.toml", text);
  // Lets 100 through at once, of some 1,600, and few of the others however long it takes.
  Serve({"--throughput", "partition=50"}, [&](const std::string& connection) {
    setenv("PARTITA_LAB_TEST_TARGET", connection.c_str(), 1);
    const CommandOutcome run =
        Lab({"run", path, "--out", directory_ + "/out", "--target", "env:PARTITA_LAB_TEST_TARGET"});
    EXPECT_EQ(run.code, ExitCode::kOk) << run.err << run.out;
  });
}

TEST_F(HttpStoreTest, AnExperimentDoesTheSameByATokenOverTlsAsEmbedded) {
  const http::TestCertificate certificate(directory_, "localhost");
  // What the machine trusts: read when the first connection over TLS is made.
  setenv("SSL_CERT_FILE", certificate.certificate_path().c_str(), 1);
  const std::string path = Write("x.toml", AllKinds());
  const CommandOutcome token = RunAsGiven({"sas", "--key", kKey, "--permissions", "rwdlacu"});
  ASSERT_EQ(token.code, ExitCode::kOk) << token.err;
  const std::string sas = token.out.substr(0, token.out.find('\n'));
  const std::string signature = sas.substr(sas.find("sig="));
  Serve({"--listen", "https://127.0.0.1:0", "--cert", certificate.certificate_path(), "--key-file",
         certificate.key_path()},
        [&](const std::string&) {
          std::smatch found;
          ASSERT_TRUE(std::regex_search(ready_, found, std::regex(R"(https://[^: ]+:(\d+))"))) << ready_;
          const std::string endpoint = "https://localhost:" + found[1].str() + "/devstoreaccount1";
          setenv("PARTITA_LAB_TEST_TARGET",
                 ("TableEndpoint=" + endpoint + ";SharedAccessSignature=" + sas).c_str(), 1);
          const CommandOutcome run =
              Lab({"run", path, "--out", directory_ + "/out", "--target", "env:PARTITA_LAB_TEST_TARGET"});
          EXPECT_EQ(run.code, ExitCode::kOk) << run.err << run.out;
          const std::string result = Read(directory_ + "/out/result.json");
          EXPECT_THAT(result, HasSubstr("\"target\": \"" + endpoint));
          EXPECT_THAT(result, Not(HasSubstr(signature)));
          const CommandOutcome here = Lab({"run", path, "--out", directory_ + "/here", "--io", Io()});
          EXPECT_EQ(here.code, ExitCode::kOk) << here.err << here.out;
          EXPECT_EQ(StreamHashOf(result), StreamHashOf(Read(directory_ + "/here/result.json")));
          // Whom the certificate does not name is not talked to.
          const std::string address = "https://127.0.0.1:" + found[1].str() + "/devstoreaccount1";
          HttpLink link({.secure = true, .host = "127.0.0.1", .port = found[1].str()});
          EXPECT_THAT(link.Ask("GET / HTTP/1.1\r\n\r\n").status().ToString(),
                      HasSubstr("IP address mismatch"));
        });
  EXPECT_THAT(Run({"tables", "--data", store_}).out, Not(HasSubstr("lab"))) << "its tables are gone";
}

TEST_F(HttpStoreTest, TheTargetCanStandInTheFileButNoSecret) {
  const auto text_with = [](const std::string& target) {
    std::string text = Once(Small(ReadingsText(kDeviceLayout), "kind = \"http\"\n" + target));
    // Without records there is nothing to wait for that was loaded.
    text.replace(text.find("records = 2000"), 14, "records = 0");
    return text.replace(text.find("rate = 1000"), 11, "rate = 100");
  };
  Serve({}, [&](const std::string& connection) {
    setenv("PARTITA_LAB_TEST_TARGET", connection.c_str(), 1);
    setenv("PARTITA_LAB_TEST_KEY", kKey, 1);
    const size_t at = connection.find("http://");
    const std::string url = connection.substr(at);
    const std::string whole =
        Write("whole.toml", text_with("connection = \"env:PARTITA_LAB_TEST_TARGET\"\n"));
    const std::string parts =
        Write("parts.toml", text_with("url = \"" + url + "\"\ncredential = \"env:PARTITA_LAB_TEST_KEY\"\n"));
    for (const std::string& path : {whole, parts}) {
      const CommandOutcome run = Lab({"run", path, "--force", "--out", directory_ + "/out"});
      EXPECT_EQ(run.code, ExitCode::kOk) << run.err << run.out;
      EXPECT_THAT(run.out, HasSubstr("on http://127.0.0.1:"));
      EXPECT_THAT(Read(directory_ + "/out/result.json"), Not(HasSubstr(kKey)));
    }
    // The words of the command come first.
    const CommandOutcome here =
        Lab({"run", whole, "--force", "--out", directory_ + "/out", "--target", "embedded", "--io", Io()});
    EXPECT_EQ(here.code, ExitCode::kOk) << here.err;
    EXPECT_THAT(Read(directory_ + "/out/result.json"), HasSubstr("\"target\": \"embedded\""));
  });
  unsetenv("PARTITA_LAB_TEST_KEY");
  for (const auto& [target, complaint] : std::vector<std::pair<std::string, std::string>>{
           {"connection = \"AccountName=a;AccountKey=c2VjcmV0\"\n", "keys do not belong into files"},
           {"url = \"http://a\"\n", "belong together"},
           {"url = \"http://a\"\ncredential = \"c2VjcmV0\"\n", "env:NAME of a variable"},
           {"", "either connection, or url"}}) {
    const CommandOutcome check = Lab({"check", Write("wrong.toml", text_with(target))});
    EXPECT_EQ(check.code, ExitCode::kFindings) << target;
    EXPECT_THAT(check.err, HasSubstr(complaint)) << target;
  }
  const CommandOutcome unset = Lab({"run", directory_ + "/parts.toml", "--out", directory_ + "/none"});
  EXPECT_THAT(unset.err, HasSubstr("there is no variable PARTITA_LAB_TEST_KEY"));
}

TEST_F(HttpStoreTest, WhatAKilledRunLeftThereIsListedAndDeleted) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  Serve({}, [&](const std::string& text) {
    const Result<Connection> connection = ParseConnection(text);
    ASSERT_TRUE(connection.ok());
    const auto other = HttpStore::Make(*connection, experiment.fields, [](const std::string&) {});
    ASSERT_TRUE((*other)->MakeTable("Lab", {}).ok());
    ASSERT_TRUE((*other)->MakeTable("Types", {}).ok());
    const CommandOutcome listed = Lab({"clean", "--target", text});
    EXPECT_EQ(listed.code, ExitCode::kOk) << listed.err;
    EXPECT_THAT(listed.out,
                ContainsRegex("Labpartitalab[0-9a-f]{16}\nTypespartitalab[0-9a-f]{16}\n2 table\\(s\\)"));
    EXPECT_THAT(listed.out, HasSubstr("--apply deletes them"));
    EXPECT_THAT(Lab({"clean", "--target", text, "--apply"}).out, HasSubstr(", deleted 2\n"));
    EXPECT_THAT(Lab({"clean", "--target", text}).out, StartsWith("0 table(s)"));
  });
}

TEST_F(HttpStoreTest, ARunThatGoesOnDropsTheTablesOfTheOneThatWasKilled) {
  std::string text = Once(ReadingsText(kDeviceLayout));
  text.replace(text.find("records = 2000"), 14, "records = 0");
  const std::string path = Write("x.toml", text);
  Serve({}, [&](const std::string& connection) {
    setenv("PARTITA_LAB_TEST_TARGET", connection.c_str(), 1);
    const std::vector<Field> fields;
    const auto store = HttpStore::Make(*ParseConnection(connection), fields, [](const std::string&) {});
    const auto tables = [&] { return (*store)->LabTables()->size(); };
    std::string out;
    // False: too late, it was done.
    const auto kill_amid_run = [&] {
      const pid_t child = fork();
      if (child == 0) {
        execl(kCommandPath, kCommandPath, "lab", "run", path.c_str(), "--out", out.c_str(), "--target",
              "env:PARTITA_LAB_TEST_TARGET", nullptr);
        _exit(127);
      }
      const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (tables() == 0 && std::chrono::steady_clock::now() < patience) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      kill(child, SIGKILL);
      int status = 0;
      waitpid(child, &status, 0);
      return WIFSIGNALED(status) && tables() == 1;
    };
    bool killed = false;
    for (int tries = 0; tries < 3 && !killed; ++tries) {
      out = directory_ + "/out" + std::to_string(tries);
      killed = kill_amid_run();
    }
    ASSERT_TRUE(killed) << "each time too late";
    const CommandOutcome run =
        Lab({"run", path, "--out", out, "--resume", "--target", "env:PARTITA_LAB_TEST_TARGET"});
    EXPECT_EQ(run.code, ExitCode::kOk) << run.err;
    EXPECT_EQ(tables(), 0u);
  });
}

TEST_F(HttpStoreTest, ATargetThatIsNoneIsToldWhatTargetsThereAre) {
  const std::string path = Write("x.toml", ReadingsText(kDeviceLayout));
  const auto said = [&](const std::string& target) {
    const CommandOutcome run = Lab({"run", path, "--out", directory_ + "/out", "--target", target});
    EXPECT_EQ(run.code, ExitCode::kUsage);
    return run.err;
  };
  EXPECT_THAT(said("embeded"), HasSubstr("\"embeded\" is none: embedded, rocksdb, a connection string "
                                         "(AccountName=...;AccountKey=...), or env:NAME"));
  EXPECT_THAT(said("embeded"), HasSubstr("did you mean embedded?"));
  EXPECT_THAT(said("c2VjcmV0"), Not(HasSubstr("c2VjcmV0"))) << "it may be a key";
}

TEST(RemoteTableTest, NobodyElsesTablesAreTakenForTheLabs) {
  EXPECT_TRUE(IsLabTable("Orderspartitalab0123456789abcdef"));
  for (const char* name :
       {"Orders", "gitlab1763868863123456", "Matlab2026112303450012", "partitalab0123456789abcdef",
        "Orderspartitalab0123456789abcdeg", "Orderspartitalab0123456789abcde"}) {
    EXPECT_FALSE(IsLabTable(name)) << name;
  }
}

TEST(RemoteTableTest, ANameThatLeavesNoRoomIsRefusedBeforeTheRun) {
  EXPECT_TRUE(CheckRemoteTable(std::string(37, 'a')).ok());
  const Status status = CheckRemoteTable(std::string(38, 'a'));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("37 are left"));
}

TEST(ConnectionTest, ReadsWhatAzuresToolsWrite) {
  const auto cloud =
      ParseConnection(std::string("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=") + kKey +
                      ";EndpointSuffix=core.windows.net");
  ASSERT_TRUE(cloud.ok()) << cloud.status().ToString();
  EXPECT_EQ(cloud->Endpoint(), "https://acme.table.core.windows.net:443");
  const auto local = ParseConnection("UseDevelopmentStorage=true");
  ASSERT_TRUE(local.ok());
  EXPECT_EQ(local->Endpoint(), "http://127.0.0.1:10002/devstoreaccount1");
  const auto signed_one =
      ParseConnection("TableEndpoint=http://[::1]:80/a/;SharedAccessSignature=?sv=1&sig=x%3D");
  ASSERT_TRUE(signed_one.ok());
  EXPECT_EQ(signed_one->Endpoint(), "http://[::1]:80/a");
  EXPECT_EQ(signed_one->Place(), "[::1]:80") << "so it stands behind Host, too";
  EXPECT_EQ(signed_one->sas, "sv=1&sig=x%3D");
}

TEST(ConnectionTest, RefusesWhatCannotWorkWithoutShowingTheKey) {
  for (const std::string text :
       {"", "x", "AccountName=a", "AccountName=a;AccountKey=se!cret",
        "TableEndpoint=ftp://a;AccountKey=secret", "TableEndpoint=http://a;AccountKey=c2VjcmV0",
        "env:PARTITA_NO_SUCH_VARIABLE"}) {
    const auto connection = ParseConnection(text);
    EXPECT_EQ(connection.status().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(connection.status().message(), Not(HasSubstr("cret"))) << text;
  }
}

TEST(ConnectionTest, RefusesWhatWouldShowASecretOrEndALineOfTheRequest) {
  for (const std::string text : {"TableEndpoint=http://a/t?sv=1&sig=cret;SharedAccessSignature=sig=cret",
                                 "TableEndpoint=http://me:cret@a/t;SharedAccessSignature=sig=cret",
                                 "TableEndpoint=http://a/t#cret;SharedAccessSignature=sig=cret",
                                 "TableEndpoint=http://a/t cret;SharedAccessSignature=sig=cret",
                                 "TableEndpoint=http://a\r\ncret;SharedAccessSignature=sig=cret",
                                 "TableEndpoint=http://a;SharedAccessSignature=sig=x cret",
                                 "TableEndpoint=http://a;SharedAccessSignature=sig=x\r\nHost: cret",
                                 "TableEndpoint=http://a;AccountName=a\ncret;AccountKey=c2VjcmV0"}) {
    const auto connection = ParseConnection(text);
    EXPECT_EQ(connection.status().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(connection.status().message(), Not(HasSubstr("cret"))) << text;
  }
}

TEST(HttpLinkTest, NobodyThereIsAnError) {
  HttpLink link({.host = "127.0.0.1", .port = "1"});
  EXPECT_EQ(link.Ask("GET / HTTP/1.1\r\n\r\n").status().code(), Code::kIoError);
}

// As by Ctrl-Z and its end. A request that were sent again would be done twice.
TEST(HttpLinkTest, AnInterruptedWaitForTheAnswerGoesOn) {
  const InterruptedThread here;
  const ScriptedServer server([&here](const std::string&) {
    here.Interrupt();
    return ScriptedServer::Answer(200, "done");
  });
  HttpLink link(*ParseConnection(server.ConnectionString("sig=x")));
  const Result<HttpAnswer> answer = link.Ask("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->body, "done");
  EXPECT_EQ(server.requests().size(), 1u);
}

}  // namespace
}  // namespace partita::lab

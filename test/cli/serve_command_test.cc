#include <arpa/inet.h>
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>

#include "test/cli/command_fixture.h"
#include "test/http/tls_client.h"

namespace partita {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Runs a function of the test, on the serving thread, whenever the server has nothing to do but wait.
class ScriptedInterrupts final : public InterruptSource {
 public:
  using Step = std::function<Wish()>;
  explicit ScriptedInterrupts(std::vector<Step> steps) : steps_(std::move(steps)) {}
  Wish Wait() override { return next_ < steps_.size() ? steps_[next_++]() : Wish::kStop; }
  bool all_done() const { return next_ == steps_.size(); }

 private:
  std::vector<Step> steps_;
  size_t next_ = 0;
};

class ServeCommandTest : public CommandTest {
 protected:
  // `partita serve` on the small store of the fixture; `steps` see what was printed so far in printed().
  CommandOutcome Serve(std::vector<std::string> words, std::vector<ScriptedInterrupts::Step> steps) {
    for (const char* word : {"--memory", "64M", "--shards", "1", "--io"}) words.emplace_back(word);
    words.emplace_back(backend_ == IoBackend::kUring ? "uring" : "threads");
    words.insert(words.begin(), "serve");
    std::ostringstream err;
    out_.str("");
    ScriptedInterrupts interrupts(std::move(steps));
    Console console{.out = out_, .err = err, .interrupts = interrupts};
    CommandOutcome outcome;
    outcome.code = FinishOutput(console, RunCommandLine(words, console));
    EXPECT_TRUE(interrupts.all_done()) << out_.str() << err.str();
    outcome.out = out_.str();
    outcome.err = err.str();
    return outcome;
  }
  std::string printed() const { return out_.str(); }

  // The port behind `before` on the READY line.
  uint16_t PortBehind(const std::string& before) const {
    const std::regex form("READY.* " + before + R"(127\.0\.0\.1:(\d+))");
    std::smatch found;
    const std::string text = printed();
    return std::regex_search(text, found, form) ? static_cast<uint16_t>(std::stoi(found[1])) : uint16_t{0};
  }

  // Sends a request, and leaves the socket open.
  static int Send(uint16_t port, const std::string& line_and_headers) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      const std::string request = line_and_headers + "Host: 127.0.0.1\r\nConnection: close\r\n\r\n";
      EXPECT_EQ(::write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    }
    return fd;
  }
  // Closes it, too.
  static std::string ReadToEnd(int fd) {
    std::string answer;
    char buffer[4096];
    for (ssize_t size; (size = ::read(fd, buffer, sizeof buffer)) > 0;) answer.append(buffer, size);
    ::close(fd);
    return answer;
  }
  // The whole answer to a GET, or "" when there is none.
  static std::string Get(uint16_t port, const std::string& path) {
    return ReadToEnd(Send(port, "GET " + path + " HTTP/1.1\r\n"));
  }
  static int SendPost(uint16_t port, const std::string& path) {
    return Send(port,
                "POST " + path + " HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 0\r\n");
  }
  static std::string Post(uint16_t port, const std::string& path) { return ReadToEnd(SendPost(port, path)); }

  std::ostringstream out_;
};

using Wish = InterruptSource::Wish;

TEST_F(ServeCommandTest, ItServesUntilItIsAskedToStopAndLeavesTheStoreInOrder) {
  const CommandOutcome outcome = Serve(
      {"--data", store_, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, {[this] {
        EXPECT_THAT(Get(PortBehind("http://"), "/devstoreaccount1/Tables"), StartsWith("HTTP/1.1 401"));
        EXPECT_THAT(Get(PortBehind("admin=http://"), "/healthz"), StartsWith("HTTP/1.1 200"));
        EXPECT_THAT(Get(PortBehind("admin=http://"), "/readyz"), StartsWith("HTTP/1.1 200"));
        EXPECT_THAT(Get(PortBehind("admin=http://"), "/metrics"), HasSubstr("partita_http_requests_total"));
        EXPECT_THAT(Get(PortBehind("admin=http://"), "/"), StartsWith("HTTP/1.1 404"));
        return Wish::kStop;
      }});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("AccountName=devstoreaccount1"));
  EXPECT_THAT(outcome.out, HasSubstr("stopped\n"));
  EXPECT_EQ(Get(PortBehind("http://"), "/"), "") << "the port is closed";

  const Result<std::unique_ptr<Database>> database = Database::Open(SmallOptions());
  ASSERT_TRUE(database.ok()) << database.status().message();
  EXPECT_TRUE((*database)->open_report().clean_shutdown);
}

// Scripts would wait for READY, and then find nobody.
TEST_F(ServeCommandTest, AskedToStopWhileTheStoreIsOpenedItStopsWithoutBeingReady) {
  const CommandOutcome outcome = Run({"serve", "--listen", "127.0.0.1:0"}, /*interrupt_after=*/0);
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("READY")));
  EXPECT_THAT(outcome.out, HasSubstr("stopped\n"));
}

// Nobody else than this machine reaches the default account but by a page that it shows.
TEST_F(ServeCommandTest, ForeignNamesAreNoneOfTheDefaultAccount) {
  const auto host_style = [this] {
    const int fd =
        Send(PortBehind("http://"), "GET http://devstoreaccount1.evil.example/Tables HTTP/1.1\r\n");
    return ReadToEnd(fd).substr(0, 12);
  };
  std::string by_default, configured;
  Serve({"--data", store_, "--listen", "127.0.0.1:0"}, {[&] {
          by_default = host_style();
          return Wish::kStop;
        }});
  Serve({"--data", store_, "--listen", "127.0.0.1:0", "--account", "devstoreaccount1", "--key", "c2VjcmV0"},
        {[&] {
          configured = host_style();
          return Wish::kStop;
        }});
  EXPECT_EQ(by_default, "HTTP/1.1 403");
  EXPECT_EQ(configured, "HTTP/1.1 401");
}

// A 500 would be tried again, for minutes.
TEST_F(ServeCommandTest, AReadOnlyStoreIsReadAndWritesAreRefused) {
  EXPECT_EQ(Run({"create-table", "Orders"}).code, ExitCode::kOk);
  std::string token = RunAsGiven({"sas", "--table", "Orders", "--permissions", "raud"}).out;
  token.pop_back();
  const CommandOutcome outcome = Serve(
      {"--read-only", "--data", store_, "--listen", "127.0.0.1:0"}, {[&] {
        EXPECT_THAT(printed(), HasSubstr("read only"));
        const std::string table = "/devstoreaccount1/Orders";
        EXPECT_THAT(Get(PortBehind("http://"), table + "()?" + token), StartsWith("HTTP/1.1 200"));
        const std::string entity = table + "(PartitionKey='p',RowKey='r')?" + token;
        for (const std::string& line : {"POST " + table + "?" + token, "PUT " + entity, "DELETE " + entity}) {
          const std::string answer = ReadToEnd(
              Send(PortBehind("http://"), line + " HTTP/1.1\r\nIf-Match: *\r\nContent-Length: 0\r\n"));
          EXPECT_THAT(answer, StartsWith("HTTP/1.1 403")) << line;
          EXPECT_THAT(answer, HasSubstr("InsufficientAccountPermissions")) << line;
        }
        return Wish::kStop;
      }});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
}

// covers: F33 F80
TEST_F(ServeCommandTest, ATornLogIsToldAtTheStart) {
  ASSERT_EQ(Run({"create-table", "Orders"}).code, ExitCode::kOk);
  DamageLastFrame();
  const CommandOutcome outcome =
      Serve({"--data", store_, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, {[this] {
              EXPECT_THAT(Get(PortBehind("admin=http://"), "/metrics"),
                          HasSubstr("\npartita_log_torn_bytes 4096\n"));
              return Wish::kStop;
            }});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("partita: shard 0: 4096 bytes of the log behind position "));
}

// ramfs knows no O_DIRECT. covers: F63
TEST_F(ServeCommandTest, WhereFilesGoThroughThePageCacheThatIsToldAtTheStart) {
  std::filesystem::create_directory(store_);
  if (mount("ramfs", store_.c_str(), "ramfs", 0, nullptr) != 0)
    GTEST_SKIP() << "mounting a ramfs needs CAP_SYS_ADMIN";
  const CommandOutcome outcome = Serve({"--data", store_, "--listen", "127.0.0.1:0"}, {});
  const CommandOutcome doctor = Run({"doctor"});
  EXPECT_EQ(umount2(store_.c_str(), MNT_DETACH), 0);
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("  page cache  files go through it"));
  EXPECT_THAT(doctor.out, HasSubstr("a scrub may read from memory"));
  const CommandOutcome elsewhere = Serve({"--data", store_, "--listen", "127.0.0.1:0"}, {});
  EXPECT_THAT(elsewhere.out, Not(HasSubstr("page cache")));
}

TEST_F(ServeCommandTest, ThatNobodyReadsWhatItPrintsBehindReadyIsNoFailure) {
  const CommandOutcome outcome = Serve({"--data", store_, "--listen", "127.0.0.1:0"}, {[this] {
                                         EXPECT_THAT(printed(), HasSubstr("READY"));
                                         out_.setstate(std::ios::badbit);
                                         return Wish::kStop;
                                       }});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(ServeCommandTest, AKeyThatIsNotPublicIsNotPrinted) {
  const CommandOutcome outcome = Serve({"--data", store_, "--listen", "127.0.0.1:0", "--account", "contoso",
                                        "--key", "c29tZSBrZXkgb2Ygc29tZW9uZQ=="},
                                       {});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("AccountName=contoso;AccountKey=YOUR-KEY"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("c29tZSBrZXk")));
}

TEST_F(ServeCommandTest, APortInUseAndALockedStoreAreToldWithAdvice) {
  const CommandOutcome first =
      Serve({"--data", store_, "--listen", "127.0.0.1:0"}, {[this] {
              const std::string address = "127.0.0.1:" + std::to_string(PortBehind("http://"));
              std::vector<std::string> words = {
                  "serve",    "--data", directory_ + "/other",
                  "--memory", "64M",    "--shards",
                  "1",        "--io",   backend_ == IoBackend::kUring ? "uring" : "threads",
                  "--listen", address};
              const CommandOutcome same_port = RunAsGiven(words);
              EXPECT_EQ(same_port.code, ExitCode::kFailed);
              EXPECT_THAT(same_port.err, HasSubstr(address));
              EXPECT_THAT(same_port.err, HasSubstr("--listen"));

              words[2] = store_;
              words.back() = "127.0.0.1:0";
              const CommandOutcome same_store = RunAsGiven(words);
              EXPECT_EQ(same_store.code, ExitCode::kFailed);
              EXPECT_THAT(same_store.err, HasSubstr(store_));
              return Wish::kStop;
            }});
  EXPECT_EQ(first.code, ExitCode::kOk) << first.err;
}

// It is wanted when the service is overloaded.
TEST_F(ServeCommandTest, WhatTheAdminAddressTellsIsToldWhateverClientsHold) {
  {
    const auto database = Database::Open(SmallOptions());
    ASSERT_TRUE(database.ok()) << database.status().message();
    ASSERT_TRUE((*database)->CreateTable("Orders").ok());
    for (int i = 0; i < 150; ++i) {
      ASSERT_TRUE((*database)->SplitRange("Orders", std::to_string(1'000 + i) + std::string(500, 'p')).ok());
    }
  }
  std::string token = RunAsGiven({"sas", "--table", "Orders", "--permissions", "raud"}).out;
  token.pop_back();
  constexpr uint64_t kRoom = (16u << 20) / 3 * 2, kBody = 20'000;
  const std::string post = "POST /devstoreaccount1/Orders?" + token +
                           " HTTP/1.1\r\nContent-Length: " + std::to_string(kBody) + "\r\n";
  const CommandOutcome outcome =
      Serve({"--data", store_, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, {[&] {
              std::vector<int> held;
              for (uint64_t told = 0; told < kRoom + kRoom / 8; told += kBody) {
                held.push_back(Send(PortBehind("http://"), post));
              }
              const std::string name = "\npartita_http_buffer_bytes ";
              for (uint64_t bytes = 0; bytes + 2 * kBody < kRoom;) {
                const std::string metrics = Get(PortBehind("admin=http://"), "/metrics");
                bytes = std::stoull(metrics.substr(metrics.find(name) + name.size()));
              }
              const std::string ranges = Get(PortBehind("admin=http://"), "/ranges");
              EXPECT_THAT(ranges, StartsWith("HTTP/1.1 200"));
              EXPECT_GT(ranges.size(), 64u << 10);
              for (const int fd : held) ::close(fd);
              return Wish::kStop;
            }});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
}

TEST_F(ServeCommandTest, WithNoCreateAMissingStoreIsNoEmptyOne) {
  const CommandOutcome outcome = Serve({"--data", store_, "--listen", "127.0.0.1:0", "--no-create"}, {});
  EXPECT_EQ(outcome.code, ExitCode::kFailed);
  EXPECT_FALSE(std::filesystem::exists(store_));
}

TEST_F(ServeCommandTest, TheAccessLogIsOpenedAnewWhenAsked) {
  const std::string log = directory_ + "/access.log";
  const CommandOutcome outcome = Serve({"--data", store_, "--listen", "127.0.0.1:0", "--access-log", log},
                                       {[&] {
                                          Get(PortBehind("http://"), "/devstoreaccount1/Tables?sig=secret");
                                          std::filesystem::rename(log, log + ".1");
                                          return Wish::kReload;
                                        },
                                        [&] {
                                          EXPECT_THAT(printed(), HasSubstr("access log " + log));
                                          while (Read(log).empty()) {
                                            Get(PortBehind("http://"), "/devstoreaccount1/meanwhile");
                                          }
                                          Get(PortBehind("http://"), "/devstoreaccount1/second");
                                          return Wish::kStop;
                                        }});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  const std::string before = Read(log + ".1"), after = Read(log);
  EXPECT_THAT(before, HasSubstr(" GET /devstoreaccount1/Tables?sig="));
  EXPECT_THAT(before, Not(HasSubstr("secret")));
  EXPECT_THAT(before, Not(HasSubstr("/second ")));
  EXPECT_THAT(after, HasSubstr(" GET /devstoreaccount1/second 401 "));
}

TEST_F(ServeCommandTest, AReloadThatFailsChangesNothing) {
  const std::string logs = directory_ + "/logs";
  std::filesystem::create_directory(logs);
  const http::TestCertificate first(directory_, "first");
  const auto name = [this] {
    const std::string address = "127.0.0.1:" + std::to_string(PortBehind("https://"));
    return http::TlsClient(SocketClient(SocketAddress::Parse(address).value()), TLS1_3_VERSION).peer_name();
  };
  const CommandOutcome outcome =
      Serve({"--data", store_, "--listen", "127.0.0.1:0", "--cert", first.certificate_path(), "--key-file",
             first.key_path(), "--access-log", logs + "/access.log"},
            {[&] {
               EXPECT_EQ(name(), "first");
               const http::TestCertificate second(directory_, "second");
               std::filesystem::remove_all(logs);
               return Wish::kReload;
             },
             [&] {
               EXPECT_THAT(printed(), HasSubstr("reload failed, all stays as it was: access log"));
               EXPECT_EQ(name(), "first");
               std::filesystem::create_directory(logs);
               return Wish::kReload;
             },
             [&] {
               EXPECT_THAT(printed(), HasSubstr("access log " + logs));
               EXPECT_EQ(name(), "second");
               return Wish::kStop;
             }});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
}

TEST_F(ServeCommandTest, ThroughputTargetsAreReadAnewWhenAsked) {
  const std::string file = directory_ + "/settings.toml";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write("throughput = \"storage\"\n");
  const CommandOutcome outcome = Serve(
      {"--data", store_, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--settings", file},
      {[&] {
         EXPECT_THAT(printed(), HasSubstr("throughput  storage\n"));
         write("throughput = \"partition=5\"\n[[throughput-rule]]\ntable = \"Things\"\npartition-rate = 9\n");
         return Wish::kReload;
       },
       [&] {
         EXPECT_THAT(printed(), HasSubstr("throughput: partition=5, 1 rules\n"));
         write("throughput = \"nonsense\"\n");
         return Wish::kReload;
       },
       [&] {
         EXPECT_THAT(printed(), HasSubstr("reload failed, all stays as it was: throughput 'nonsense'"));
         EXPECT_THAT(Get(PortBehind("admin=http://"), "/metrics"),
                     HasSubstr("partita_throttled_calls_total{by=\"partition\"} 0"));
         write("throughput = \"partition=7\"\n");
         return Wish::kReload;
       },
       [&] {
         EXPECT_THAT(printed(), HasSubstr("throughput: partition=7\n")) << "it goes on after a bad one";
         return Wish::kStop;
       }});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
}

TEST_F(ServeCommandTest, AReloadTakesOtherFilesAndSaysWhatWaitsForTheNextStart) {
  const std::string file = directory_ + "/settings.toml";
  std::filesystem::create_directory(directory_ + "/new");
  const http::TestCertificate first(directory_, "first");
  const http::TestCertificate second(directory_ + "/new", "second");
  const auto write = [&](const http::TestCertificate& certificate, const std::string& log, int connections) {
    std::ofstream(file) << "cert = \"" << certificate.certificate_path() << "\"\nkey-file = \""
                        << certificate.key_path() << "\"\naccess-log = \"" << log
                        << "\"\nconnections-max = " << connections
                        << "\nadmin-public = " << (connections > 100 ? "true" : "false")
                        << "\n[[account]]\nname = \"contoso\"\nkeys = [\"c2VjcmV0\"]\ndisabled = true\n";
  };
  const auto name = [this] {
    const std::string address = "127.0.0.1:" + std::to_string(PortBehind("https://"));
    return http::TlsClient(SocketClient(SocketAddress::Parse(address).value()), TLS1_3_VERSION).peer_name();
  };
  const std::string old_log = directory_ + "/old.log", new_log = directory_ + "/new.log";
  write(first, old_log, 100);
  const CommandOutcome outcome = Serve(
      {"--data", store_, "--listen", "127.0.0.1:0", "--settings", file},
      {[&] {
         EXPECT_EQ(name(), "first");
         EXPECT_THAT(printed(), HasSubstr("account     contoso, by the settings file, disabled\n"));
         EXPECT_THAT(printed(), Not(HasSubstr("connect ")));
         write(second, new_log, 200);
         return Wish::kReload;
       },
       [&] {
         EXPECT_THAT(printed(), HasSubstr("; changed, and in force from the next start on: "
                                          "admin-public, connections-max\n"));
         EXPECT_EQ(name(), "second");
         EXPECT_TRUE(std::filesystem::exists(new_log));
         std::ofstream(file) << "connections-max = 0\n";
         return Wish::kReload;
       },
       [&] {
         EXPECT_THAT(printed(), HasSubstr("reload failed, all stays as it was: connections-max is 1 to"));
         EXPECT_EQ(name(), "second");
         return Wish::kStop;
       }});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
}

TEST_F(ServeCommandTest, AnAccountInFrontOfItNamesNobody) {
  const CommandOutcome outcome = Run({"--account", "contoso", "serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(outcome.code, ExitCode::kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--account in front of serve"));
}

TEST_F(ServeCommandTest, WhatIsWrongOnTheCommandLineIsToldBeforeAStoreIsMade) {
  const auto refusal = [this](std::vector<std::string> words) {
    words.insert(words.begin(), {"--data", store_});
    const CommandOutcome outcome = Serve(std::move(words), {});
    EXPECT_NE(outcome.code, ExitCode::kOk);
    EXPECT_FALSE(std::filesystem::exists(store_)) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refusal({"--listen", "0.0.0.0:0"}), HasSubstr("no account is configured"));
  EXPECT_THAT(refusal({"--listen", "nowhere"}), HasSubstr("IP:PORT"));
  EXPECT_THAT(refusal({"--throughput", "much"}), HasSubstr("partition=N,account=N"));
  EXPECT_THAT(refusal({"--cert", directory_ + "/none", "--key-file", directory_ + "/none"}),
              HasSubstr(directory_ + "/none"));
  EXPECT_THAT(refusal({"--lissten", "127.0.0.1:0"}), HasSubstr("did you mean --listen?"));
}

// covers: F50 F68
TEST_F(ServeCommandTest, AServedStoreIsBackedUpAndScrubbed) {
  const std::string backup = directory_ + "/backup", later = directory_ + "/later";
  const CommandOutcome served = Serve(
      {"--data", store_, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, {[&] {
        const std::string admin = "127.0.0.1:" + std::to_string(PortBehind("admin=http://"));
        const CommandOutcome locked = Run({"backup", backup});
        EXPECT_EQ(locked.code, ExitCode::kFailed);
        EXPECT_THAT(locked.err, HasSubstr("'partita backup " + backup + " --admin ADDRESS'"));
        EXPECT_THAT(Run({"scrub"}).err, HasSubstr("'partita scrub --admin ADDRESS'"));

        const CommandOutcome made = RunAsGiven({"backup", backup, "--copy", "--admin", admin});
        EXPECT_EQ(made.code, ExitCode::kOk) << made.err;
        EXPECT_THAT(made.out, HasSubstr("backup of " + admin + " in " + backup));
        const CommandOutcome again = RunAsGiven({"backup", backup, "--admin", admin});
        EXPECT_EQ(again.code, ExitCode::kFailed);
        EXPECT_THAT(again.err, HasSubstr("exists already"));
        // What the server is told does not depend on where it runs.
        const CommandOutcome based =
            RunAsGiven({"backup", std::filesystem::relative(later), "--base",
                        std::filesystem::relative(backup), "--rate", "1G", "--admin", admin});
        EXPECT_EQ(based.code, ExitCode::kOk) << based.err;
        EXPECT_TRUE(std::filesystem::exists(later));

        const CommandOutcome scrubbed = RunAsGiven({"scrub", "--within", "1s", "--json", "--admin", admin});
        EXPECT_EQ(scrubbed.code, ExitCode::kOk) << scrubbed.err;
        EXPECT_THAT(scrubbed.out, HasSubstr("\"meta_values\":2"));
        return Wish::kStop;
      }});
  EXPECT_EQ(served.code, ExitCode::kOk) << served.err;
  store_ = directory_ + "/restored";
  EXPECT_EQ(Run({"restore", backup}).code, ExitCode::kOk);
}

// A scrub that would take a day keeps nobody from anything but another one, and the server from stopping
// least.
TEST_F(ServeCommandTest, ALongTaskEndsWithTheServerAndWithWhoAsked) {
  const std::string long_scrub = "/scrub?within=86400";
  int waiting = -1;
  const CommandOutcome served = Serve(
      {"--data", store_, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, {[&] {
        const uint16_t port = PortBehind("admin=http://");
        // Until the other one has begun.
        const auto refusal = [&] {
          std::string answer;
          do {
            answer = Post(port, "/scrub");
          } while (answer.starts_with("HTTP/1.1 200"));
          return answer;
        };
        const int leaving = SendPost(port, long_scrub);
        EXPECT_THAT(refusal(), StartsWith("HTTP/1.1 409"));
        ::close(leaving);
        std::string answer;
        do {
          answer = Post(port, "/scrub");
        } while (answer.starts_with("HTTP/1.1 409"));
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));

        waiting = SendPost(port, long_scrub);
        EXPECT_THAT(refusal(), HasSubstr("a scrub is under way; there is one backup or scrub at a time"));
        EXPECT_THAT(Post(port, "/backup?to=" + directory_ + "/backup"), StartsWith("HTTP/1.1 409"));
        EXPECT_THAT(Get(port, "/healthz"), StartsWith("HTTP/1.1 200"));
        EXPECT_THAT(Get(port, "/metrics"), StartsWith("HTTP/1.1 200"));
        return Wish::kStop;
      }});
  EXPECT_EQ(served.code, ExitCode::kOk) << served.err;
  const std::string answer = ReadToEnd(waiting);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(answer, HasSubstr(R"({"error":{"code":"Cancelled","message":"the server stops: )"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/backup"));
}

}  // namespace
}  // namespace partita

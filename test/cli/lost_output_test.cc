#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <thread>
#include <utility>

#include "api/cli/console.h"
#include "api/cli/opening_watcher.h"
#include "api/cli/progress.h"
#include "engine/io/socket_address.h"
#include "test/cli/command_fixture.h"
#include "test/support/paths.h"
#include "test/support/socket_client.h"

namespace partita {
namespace {

using ::testing::HasSubstr;

class LostOutputTest : public CommandTest {
 protected:
  // The program itself, with its standard output where `to` says it to the shell; `err` is what it told.
  CommandOutcome RunProgram(const std::string& words, const std::string& to) const {
    const std::string io = backend_ == IoBackend::kUring ? "uring" : "threads";
    const std::string line = std::string(kCommandPath) + " " + words + " --memory 64M --io " + io +
                             " --data '" + store_ + "' 2>&1 " + to;
    std::FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) return {.code = ExitCode::kFailed, .out = {}, .err = "there is no shell"};
    std::string said;
    char chunk[1024];
    for (size_t got; (got = std::fread(chunk, 1, sizeof chunk, pipe)) > 0;) said.append(chunk, got);
    const int status = pclose(pipe);
    return {
        .code = static_cast<ExitCode>(WIFEXITED(status) ? WEXITSTATUS(status) : 99), .out = {}, .err = said};
  }
  void MakeTable() {
    ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
    ASSERT_EQ(Run({"put", "Things", R"({"PartitionKey":"p","RowKey":"r"})"}).code, ExitCode::kOk);
  }

  static constexpr const char* kPrinting[] = {"scan Things --limit 0", "get Things p r --json", "tables",
                                              "sas --table Things", "--version"};
};

TEST_F(LostOutputTest, ACommandWhoseOutputCannotBeWrittenHasFailedAndSaysWhy) {
  MakeTable();
  for (const char* words : kPrinting) {
    EXPECT_EQ(RunProgram(words, "> /dev/null").code, ExitCode::kOk) << words;
    const CommandOutcome lost = RunProgram(words, "> /dev/full");
    EXPECT_EQ(lost.code, ExitCode::kFailed) << words;
    EXPECT_THAT(lost.err, HasSubstr("partita: cannot write to standard output")) << words;
  }
  EXPECT_THAT(RunProgram("tables", "> /dev/full").err, HasSubstr("No space left on device"));
}

// A file of the store must not get the number of standard output, and with it what is printed.
TEST_F(LostOutputTest, AClosedOutputIsALostOneAndTheStoreIsSound) {
  MakeTable();
  for (const char* words : kPrinting) EXPECT_EQ(RunProgram(words, ">&-").code, ExitCode::kFailed) << words;
  const CommandOutcome verified = Run({"verify"});
  EXPECT_EQ(verified.code, ExitCode::kOk) << verified.err;
}

TEST_F(LostOutputTest, WhereNothingIsPrintedNothingIsLost) {
  MakeTable();
  EXPECT_EQ(RunProgram("delete Things p r", "> /dev/full").code, ExitCode::kOk);
}

TEST(FinishOutputTest, OnlyWhatHadNotFailedFailsForItsOutput) {
  std::ostringstream out, err;
  InterruptSource interrupts;
  Console console{.out = out, .err = err, .interrupts = interrupts};
  EXPECT_EQ(FinishOutput(console, ExitCode::kFindings), ExitCode::kFindings);
  EXPECT_EQ(err.str(), "");
  out.setstate(std::ios::badbit);
  EXPECT_EQ(FinishOutput(console, ExitCode::kUsage), ExitCode::kUsage);
  EXPECT_EQ(FinishOutput(console, ExitCode::kFailed), ExitCode::kFailed);
  EXPECT_EQ(err.str(), "") << "it has told what failed";
  EXPECT_EQ(FinishOutput(console, ExitCode::kFindings), ExitCode::kFailed) << "which of them, nobody read";
  EXPECT_EQ(FinishOutput(console, ExitCode::kOk), ExitCode::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("partita: cannot write to standard output\n"));
}

// What a pipe of a reader that hangs has room for is written; its ends are closed with this object.
class UnreadPipe {
 public:
  UnreadPipe() { opened_ = pipe2(ends_, O_CLOEXEC) == 0; }
  ~UnreadPipe() {
    CloseToWrite();
    if (opened_) close(ends_[0]);
  }
  bool opened() const { return opened_; }
  int to_read() const { return ends_[0]; }
  int to_write() const { return ends_[1]; }
  void CloseToWrite() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }

  void Fill() const {
    // An end of its own: whoever writes to another one waits as ever.
    const std::string same = "/proc/self/fd/" + std::to_string(ends_[0]);
    const int end = open(same.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    const std::string block(4096, '.');
    while (write(end, block.data(), block.size()) > 0) continue;
    close(end);
  }
  // What Fill wrote.
  void Drain() const {
    char block[4096];
    for (pollfd end{.fd = ends_[0], .events = POLLIN, .revents = 0}; poll(&end, 1, 0) == 1;) {
      if (read(ends_[0], block, sizeof block) <= 0) return;
    }
  }
  std::string ReadUpTo(char last) const {
    std::string text;
    for (char c; read(ends_[0], &c, 1) == 1 && c != last;) text.push_back(c);
    return text;
  }

 private:
  int ends_[2] = {-1, -1};
  bool opened_ = false;
};

TEST(TellTest, NewsAreLostWhereNobodyReadsThem) {
  const UnreadPipe pipe;
  ASSERT_TRUE(pipe.opened());
  std::ostringstream out, err;
  InterruptSource interrupts;
  Console console{.out = out, .err = err, .interrupts = interrupts, .out_descriptor = pipe.to_write()};
  Tell(console, "first");
  pipe.Fill();
  Tell(console, "second");
  char block[4096];
  ASSERT_EQ(read(pipe.to_read(), block, sizeof block), static_cast<ssize_t>(sizeof block));
  Tell(console, "third");
  EXPECT_EQ(out.str(), "first\nthird\n");
}

// A terminal for the error stream, from which somebody reads, or not.
struct Terminal {
  UnreadPipe pipe;
  std::ostringstream out, err;
  InterruptSource interrupts;
  Console console{.out = out,
                  .err = err,
                  .err_is_terminal = true,
                  .interrupts = interrupts,
                  .err_descriptor = pipe.to_write()};
};

TEST(OpeningWatcherTest, WaitsForNobodyWhoShouldReadIt) {
  Terminal terminal;
  ASSERT_TRUE(terminal.pipe.opened());
  OpeningWatcher watcher(terminal.console, /*long_seconds=*/0);
  size_t before = 0;
  for (uint64_t done = 100; done <= 300; done += 100) {
    if (done == 300) {
      terminal.pipe.Fill();
      before = terminal.err.str().size();
    }
    watcher.Watch(done, 1'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
  }
  watcher.Finish();
  EXPECT_THAT(terminal.err.str(), HasSubstr(" 20 %"));
  EXPECT_EQ(terminal.err.str().size(), before) << "neither is there another bar, nor is that one removed";
}

// As after Ctrl-S, until Ctrl-Q.
TEST(ProgressBarTest, ABarThatCouldNotBeRemovedIsRemovedBeforeWhatFollows) {
  const std::string erased = "\r\x1b[K";
  for (const bool with_line : {true, false}) {
    Terminal terminal;
    ASSERT_TRUE(terminal.pipe.opened());
    std::ostringstream& err = terminal.err;
    Progress progress(terminal.console, "import", Progress::Unit::kRecords, 1'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    progress.Update(100, 100);
    ASSERT_THAT(err.str(), HasSubstr(" 10 %"));
    err.str("");
    terminal.pipe.Fill();
    progress.Finish();
    EXPECT_EQ(err.str(), "");
    if (with_line) progress.Message("line 17: bad record");
    terminal.pipe.Drain();
    progress.Finish();
    EXPECT_EQ(err.str(), with_line ? erased + "line 17: bad record\n" : erased);
  }
}

// As one that logs to a program which hangs but lives.
TEST_F(LostOutputTest, AServerWhoseOutputNobodyReadsStopsInOrder) {
  UnreadPipe pipe;
  ASSERT_TRUE(pipe.opened());
  const char* io = backend_ == IoBackend::kUring ? "uring" : "threads";
  const pid_t server = fork();
  if (server == 0) {
    dup2(pipe.to_write(), STDOUT_FILENO);
    execl(kCommandPath, kCommandPath, "serve", "--data", store_.c_str(), "--memory", "64M", "--shards", "1",
          "--io", io, "--listen", "127.0.0.1:0", "--access-log", "-", nullptr);
    _exit(99);
  }
  ASSERT_GT(server, 0);
  pipe.CloseToWrite();
  const std::string ready = "READY http://";
  std::string line;
  do {
    line = pipe.ReadUpTo('\n');
  } while (!line.empty() && !line.starts_with(ready));
  ASSERT_TRUE(line.starts_with(ready));
  pipe.Fill();
  SocketClient client(SocketAddress::Parse(line.substr(ready.size())).value());
  EXPECT_TRUE(client.Send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
  EXPECT_NE(client.ReceiveAll(), "") << "requests are answered all the same";

  kill(server, SIGTERM);
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 3'000 && ended == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ended = waitpid(server, &status, WNOHANG);
  }
  if (ended == 0) {
    kill(server, SIGKILL);
    waitpid(server, &status, 0);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const auto database = Database::Open(SmallOptions());
  ASSERT_TRUE(database.ok()) << database.status().message();
  EXPECT_TRUE((*database)->open_report().clean_shutdown);
}

}  // namespace
}  // namespace partita

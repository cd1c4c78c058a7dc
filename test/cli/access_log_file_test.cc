#include "api/cli/access_log_file.h"

#include <fcntl.h>
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "test/support/no_threads.h"

namespace partita {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AccessLogFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "partita-log-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Read(const std::string& name) const {
    std::ifstream in(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  // A pipe of that name; returns its reader, which takes nothing unasked.
  int MakePipe(const std::string& path) const {
    if (mkfifo(path.c_str(), 0600) != 0) return -1;
    return open(path.c_str(), O_RDONLY | O_NONBLOCK);
  }

  std::string directory_;
};

std::string ReadAll(int pipe) {
  std::string text;
  char piece[4096];
  for (ssize_t size; (size = read(pipe, piece, sizeof piece)) > 0;) text.append(piece, size);
  return text;
}

struct LineCount {
  size_t written = 0, dropped = 0;
};

LineCount CountLines(const std::string& text) {
  LineCount count;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("# ")) {
      count.dropped += std::stoul(line.substr(2));
    } else {
      ++count.written;
    }
  }
  return count;
}

// Else a reload, and the certificate that is renewed with it, would wait for the reader.
TEST_F(AccessLogFileTest, APipeThatNobodyReadsIsRefusedAtOnce) {
  const std::string path = directory_ + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto refused = AccessLogFile::Open(path);
  EXPECT_EQ(refused.code(), Code::kIoError);
  EXPECT_THAT(refused.status().message(), HasSubstr("pipe: nobody reads the pipe"));
  const auto log = AccessLogFile::Open(directory_ + "/log");
  ASSERT_TRUE(log.ok());
  EXPECT_EQ((*log)->Reopen(path).code(), Code::kIoError);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE((*log)->Reopen(path).ok());
  close(reader);
}

TEST_F(AccessLogFileTest, ARequestIsOneLineOfFields) {
  {
    auto log = AccessLogFile::Open(directory_ + "/log");
    ASSERT_TRUE(log.ok());
    (*log)->Add({.kind = http::RequestKind::kGetEntity,
                 .method = "GET",
                 .target = "/a/t(PartitionKey='p',RowKey='r')",
                 .account = "a",
                 .remote_address = "::1",
                 .request_id = "id-1",
                 .client_request_id = "two words\nand a line",
                 .status = 200,
                 .bytes_out = 181,
                 .microseconds = 57});
  }
  EXPECT_THAT(Read("log"),
              HasSubstr("Z ::1 a GetEntity GET /a/t(PartitionKey='p',RowKey='r') 200 in=0 out=181 "
                        "us=57 error=- id=id-1 client=two%20words%0Aand%20a%20line\n"));
}

TEST_F(AccessLogFileTest, LinesComeInTheOrderTheyWereAddedAndWithoutAskingForThem) {
  auto log = AccessLogFile::Open(directory_ + "/log");
  ASSERT_TRUE(log.ok());
  constexpr int kLines = 5'000;  // More than is gathered for one write.
  for (int i = 0; i < kLines; ++i) {
    const std::string target = "/line/" + std::to_string(i) + "/";
    (*log)->Add({.method = "GET", .target = target});
  }
  // The log is open still: its own thread writes, whether or not more comes.
  std::string text;
  const std::string last = "/line/" + std::to_string(kLines - 1) + "/";
  while (text.find(last) == std::string::npos) text = Read("log");
  size_t at = 0;
  for (int i = 0; i < kLines; ++i) {
    at = text.find("/line/" + std::to_string(i) + "/", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST_F(AccessLogFileTest, AfterReopenLinesGoToTheNewFile) {
  auto log = AccessLogFile::Open(directory_ + "/log");
  ASSERT_TRUE(log.ok());
  std::filesystem::rename(directory_ + "/log", directory_ + "/old");
  (*log)->Add({.method = "GET", .target = "/before"});
  ASSERT_TRUE((*log)->Reopen(directory_ + "/log").ok());
  // A line that is logged while the file changes may go to either.
  while (Read("log").empty()) (*log)->Add({.method = "GET", .target = "/meanwhile"});
  (*log)->Add({.method = "GET", .target = "/later"});
  log->reset();
  EXPECT_THAT(Read("old"), HasSubstr("/before"));
  EXPECT_THAT(Read("log"), HasSubstr("/later"));
  EXPECT_THAT(Read("old"), Not(HasSubstr("/later")));
}

// As when the disk is slower than what is logged: there is always more when a write has ended.
TEST_F(AccessLogFileTest, AReopenedLogLeavesItsOldFileAlsoWhenItCannotKeepUp) {
  const std::string old_path = directory_ + "/old";
  const int reader = MakePipe(old_path);
  ASSERT_GE(reader, 0);
  auto log = AccessLogFile::Open(old_path);
  ASSERT_TRUE(log.ok());
  std::string old_text;
  const auto drain_until = [&](std::string_view end) {
    char piece[512];
    while (old_text.find(end) == std::string::npos) {
      const ssize_t size = read(reader, piece, sizeof piece);
      if (size > 0) old_text.append(piece, static_cast<size_t>(size));
    }
  };
  const auto add_many = [&](const std::string& name) {  // Far more than a pipe holds.
    (*log)->Add({.method = "GET", .target = "/" + name + "-first"});
    for (int i = 0; i < 4'000; ++i) (*log)->Add({.method = "GET", .target = "/" + name});
    (*log)->Add({.method = "GET", .target = "/" + name + "-last"});
  };
  add_many("one");
  drain_until("/one-first");  // The rest waits in the pipe, and in the write.
  ASSERT_TRUE((*log)->Reopen(directory_ + "/new").ok());
  add_many("two");
  drain_until("/two-first");
  (*log)->Add({.method = "GET", .target = "/three"});
  drain_until("/two-last");
  log->reset();
  EXPECT_THAT(Read("new"), HasSubstr("/three"));
  close(reader);
}

// As where a logger that reads the pipe has been stopped.
TEST_F(AccessLogFileTest, ItsEndDoesNotWaitForAReaderThatHangs) {
  const std::string path = directory_ + "/pipe";
  const int reader = MakePipe(path);
  ASSERT_GE(reader, 0);
  auto log = AccessLogFile::Open(path);
  ASSERT_TRUE(log.ok());
  const size_t room = static_cast<size_t>(fcntl(reader, F_GETPIPE_SZ));
  const std::string target = "/" + std::string(200, 'x');
  for (size_t added = 0; added < 2 * room; added += target.size()) {
    (*log)->Add({.method = "GET", .target = target});
  }
  log->reset();
  EXPECT_GT(ReadAll(reader).size(), room / 2) << "what the pipe had room for";
  close(reader);
}

TEST_F(AccessLogFileTest, AReopenedLogGoesOnWhereTheReaderOfItsOldFileHangs) {
  enum class Reopened { kBeforeTheWrite, kAmidTheWrite };
  for (const Reopened when : {Reopened::kBeforeTheWrite, Reopened::kAmidTheWrite}) {
    const std::string name = when == Reopened::kBeforeTheWrite ? "before" : "amid";
    const std::string path = directory_ + "/pipe-" + name;
    const int reader = MakePipe(path);
    ASSERT_GE(reader, 0);
    auto log = AccessLogFile::Open(path);
    ASSERT_TRUE(log.ok());
    const int writer = open(path.c_str(), O_WRONLY | O_NONBLOCK);
    ASSERT_GE(writer, 0);
    size_t added = 0;
    const auto add = [&] {
      (*log)->Add({.method = "GET", .target = "/one"});
      ++added;
    };
    if (when == Reopened::kBeforeTheWrite) {
      while (write(writer, "\n", 1) > 0) ++added;
      add();
    } else {
      const size_t room = static_cast<size_t>(fcntl(reader, F_GETPIPE_SZ));
      for (size_t size = 0; size < 2 * room; size += 100) add();
      pollfd taking{.fd = writer, .events = POLLOUT, .revents = 0};
      while (poll(&taking, 1, /*timeout=*/0) > 0) std::this_thread::yield();
    }
    ASSERT_TRUE((*log)->Reopen(directory_ + "/" + name).ok());
    for (int ms = 0; Read(name).empty() && ms < 30'000; ++ms) {
      add();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(Read(name).empty()) << name;
    log->reset();
    const LineCount in_pipe = CountLines(ReadAll(reader)), in_new = CountLines(Read(name));
    EXPECT_GT(in_new.dropped, 0u) << name;
    EXPECT_EQ(in_pipe.written + in_new.written + in_new.dropped, added) << name;
    close(writer);
    close(reader);
  }
}

TEST_F(AccessLogFileTest, LinesThatAFullDiskLosesAreCounted) {
  auto log = AccessLogFile::Open("/dev/full");
  ASSERT_TRUE(log.ok());
  size_t added = 0;
  const auto add = [&] {
    (*log)->Add({.method = "GET", .target = "/one"});
    ++added;
  };
  for (int i = 0; i < 3; ++i) add();
  ASSERT_TRUE((*log)->Reopen(directory_ + "/log").ok());
  while (Read("log").empty()) add();
  log->reset();
  const LineCount count = CountLines(Read("log"));
  EXPECT_GE(count.dropped, 3u);
  EXPECT_EQ(count.written + count.dropped, added);
}

// Of a thread that takes no signals: one that was sent to it.
bool IsPending(int signal) {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(thread.path() / "status");
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("SigPnd:")) continue;
      if ((std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0) return true;
    }
  }
  return false;
}

TEST_F(AccessLogFileTest, ALineThatWasCutShortGetsItsEnd) {
  auto log = AccessLogFile::Open(directory_ + "/log");
  ASSERT_TRUE(log.ok());
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{.rlim_cur = 1'000, .rlim_max = limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  constexpr size_t kLines = 30;
  for (size_t i = 0; i < kLines; ++i) (*log)->Add({.method = "GET", .target = "/one"});
  while (!IsPending(SIGXFSZ)) std::this_thread::yield();  // A write beyond it has failed.
  setrlimit(RLIMIT_FSIZE, &limit);
  (*log)->Add({.method = "GET", .target = "/last"});
  log->reset();
  std::istringstream in(Read("log"));
  size_t whole = 0, dropped = 0, cut = 0;
  bool has_last = false;
  for (std::string line; std::getline(in, line);) {
    const bool is_whole = line.find("client=-") != std::string::npos;
    if (line.starts_with("# ")) {
      dropped += std::stoul(line.substr(2));
    } else if (is_whole && line.find(" GET /last ") != std::string::npos) {
      has_last = line.find("Z - - ") != std::string::npos && line.find("/one") == std::string::npos;
    } else {
      is_whole ? ++whole : ++cut;
    }
  }
  EXPECT_TRUE(has_last);
  EXPECT_EQ(cut, 1u);
  EXPECT_EQ(whole + dropped, kLines) << "one that was cut is lost";
}

TEST_F(AccessLogFileTest, WhatCannotBeOpenedIsRefused) {
  EXPECT_THAT(AccessLogFile::Open(directory_ + "/no/log").status().message(), HasSubstr("No such file"));
}

TEST_F(AccessLogFileTest, WithoutAThreadThereIsNoLog) {
  const NoThreads none;
  const auto log = AccessLogFile::Open(directory_ + "/log");
  EXPECT_EQ(log.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(log.status().message(), HasSubstr("partita-log"));
}

}  // namespace
}  // namespace partita

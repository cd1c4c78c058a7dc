#include "api/cli/access_log_file.h"

#include <fcntl.h>
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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

  std::string directory_;
};

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
  ASSERT_EQ(mkfifo(old_path.c_str(), 0600), 0);
  const int reader = open(old_path.c_str(), O_RDONLY | O_NONBLOCK);
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

TEST_F(AccessLogFileTest, WhatCannotBeOpenedIsRefused) {
  EXPECT_THAT(AccessLogFile::Open(directory_ + "/no/log").status().message(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace partita

#include "bench/lab/work_directory.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"
#include "test/support/paths.h"

namespace partita::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WorkDirectoryTest : public LabCommandTest {
 protected:
  // One that a process made which is no more; its path.
  std::string Left() const {
    const pid_t child = fork();
    if (child == 0) {
      const Result<WorkDirectory> made = WorkDirectory::Make(directory_);
      std::filesystem::create_directories(made.ok() ? made->path() + "/store" : "");
      _exit(made.ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    const std::vector<std::string> left = WorkDirectory::LeftIn(directory_);
    EXPECT_THAT(left, SizeIs(1));
    return left.empty() ? "" : left[0];
  }
};

TEST_F(WorkDirectoryTest, WhatAProcessThatDiedLeftIsKnownAndGoesWithTheNextOne) {
  const std::string left = Left(), mine = directory_ + "/work-AAAAAA/store";
  std::filesystem::create_directories(mine);
  const Result<WorkDirectory> next = WorkDirectory::Make(directory_);
  ASSERT_TRUE(next.ok()) << next.status().ToString();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(mine)) << "what it did not make it does not remove";
  EXPECT_THAT(WorkDirectory::LeftIn(directory_), IsEmpty());
  EXPECT_EQ(WorkDirectory::RemoveLeft(directory_ + "/work-AAAAAA").code(), Code::kBusy);
}

TEST_F(WorkDirectoryTest, WhatAProcessHoldsIsLeftAlone) {
  std::string path;
  {
    const Result<WorkDirectory> held = WorkDirectory::Make(directory_);
    ASSERT_TRUE(held.ok());
    path = held->path();
    EXPECT_THAT(WorkDirectory::LeftIn(directory_), IsEmpty());
    EXPECT_EQ(WorkDirectory::RemoveLeft(path).code(), Code::kBusy);
    const Result<WorkDirectory> other = WorkDirectory::Make(directory_);
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(WorkDirectoryTest, CleanListsAndRemovesIt) {
  const std::string left = Left();
  const CommandOutcome listed = Lab({"clean", "--out", directory_});
  EXPECT_EQ(listed.code, ExitCode::kOk) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr(left + "\n1 store(s)"));
  EXPECT_TRUE(std::filesystem::exists(left));
  EXPECT_THAT(Lab({"clean", "--out", directory_, "--apply"}).out, HasSubstr(", removed 1\n"));
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(Lab({"clean", "--out", directory_ + "/none"}).code, ExitCode::kFailed);
  EXPECT_EQ(Lab({"clean"}).code, ExitCode::kUsage);
}

TEST_F(WorkDirectoryTest, AKilledSearchForTheCapacityIsCleanedUpBehind) {
  const std::string path =
      Write("x.toml", Small(ReadingsText(std::string(kDeviceLayout) + "[goal]\nthrottled = 1.0\n")));
  const std::string out = directory_ + "/out";
  const pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(126);
    execl(kCommandPath, kCommandPath, "lab", "run", path.c_str(), "--capacity", "--out", out.c_str(),
          nullptr);
    _exit(127);
  }
  const auto has_store = [&] {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(out, ignored)) {
      if (std::filesystem::exists(entry.path() / "store")) return true;
    }
    return false;
  };
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!has_store() && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(has_store());
  EXPECT_THAT(Lab({"clean", "--out", out, "--apply"}).out, HasSubstr(", removed 1\n"));
  EXPECT_FALSE(has_store());
}

}  // namespace
}  // namespace partita::lab

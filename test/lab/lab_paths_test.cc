#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "bench/lab/durable_file.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"
#include "test/support/paths.h"

// Names under which nothing can be looked for are told, with the system's reason.
namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LabPathsTest : public LabCommandTest {
 protected:
  void SetUp() override {
    LabCommandTest::SetUp();
    sound_ = Write("sound.toml", Once(Small(ReadingsText(kDeviceLayout))));
    long_name_ = directory_ + "/" + std::string(300, 'x');
    loop_ = directory_ + "/loop";
    std::filesystem::create_symlink(loop_, loop_);
  }
  // All that takes the name of something to read or to make.
  std::vector<std::vector<std::string>> WordsWith(const std::string& path) const {
    return {{"check", path},
            {"explain", path},
            {"generator", path},
            {"run", path},
            {"report", path},
            {"compare", path, sound_},
            {"compare", sound_, path},
            {"clean", "--out", path},
            {"run", sound_, "--out", path},
            {"run", sound_, "--capacity", "--out", path}};
  }
  void ExpectAllTold(const std::string& path, const std::string& reason) const {
    for (const std::vector<std::string>& words : WordsWith(path)) {
      const CommandOutcome told = Lab(words);
      EXPECT_EQ(told.code, ExitCode::kFailed) << words[0];
      EXPECT_THAT(told.err, AllOf(HasSubstr(path), HasSubstr(reason))) << words[0];
    }
  }

  std::string sound_, long_name_, loop_;
};

TEST_F(LabPathsTest, ANameThatIsTooLongIsTold) {
  ExpectAllTold(long_name_, "File name too long");
  const CommandOutcome made = Lab({"new", long_name_});
  EXPECT_EQ(made.code, ExitCode::kFailed);
  EXPECT_THAT(made.err, AllOf(HasSubstr(long_name_), HasSubstr("File name too long")));
}

TEST_F(LabPathsTest, LinksThatLeadNowhereButBackAreTold) {
  ExpectAllTold(loop_, "symbolic links");
  const CommandOutcome made = Lab({"new", loop_});
  EXPECT_EQ(made.code, ExitCode::kFailed);
  EXPECT_THAT(made.err, HasSubstr("symbolic links"));
}

// As of a script's variable that is not set, which was to name a service.
TEST_F(LabPathsTest, AnEmptyTargetIsNoChoice) {
  const CommandOutcome run = Lab({"run", sound_, "--target", "", "--out", directory_ + "/out"});
  EXPECT_EQ(run.code, ExitCode::kUsage);
  EXPECT_THAT(run.err, HasSubstr("--target: is empty"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/out"));
}

// As another user where this one may enter everything.
TEST_F(LabPathsTest, ADirectoryThatMayNotBeEnteredIsTold) {
  const std::string closed = directory_ + "/closed", inside = closed + "/x.toml";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(directory_, std::filesystem::perms(0755));
  std::filesystem::permissions(closed, std::filesystem::perms(0));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(100);
    ExpectAllTold(inside, "Permission denied");
    const bool is_told = !HasFailure() && Lab({"new", inside}).code == ExitCode::kFailed &&
                         Lab({"clean", "--out", closed}).code == ExitCode::kFailed;
    std::fflush(stdout);
    _exit(is_told ? 0 : 101);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  std::filesystem::permissions(closed, std::filesystem::perms(0700));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(LabPathsTest, WhatIsThereIsToldFromWhatCannotBeLookedFor) {
  EXPECT_TRUE(CheckIsNew(directory_ + "/none").ok());
  EXPECT_TRUE(CheckIsNew(sound_ + "/none").ok()) << "below a file there is nothing";
  EXPECT_EQ(CheckIsNew(sound_).code(), Code::kAlreadyExists);
  EXPECT_EQ(CheckIsNew(loop_).code(), Code::kIoError);
  EXPECT_EQ(ReadWholeFile(directory_).code(), Code::kInvalidArgument);
  EXPECT_EQ(ReadWholeFile(directory_ + "/none").code(), Code::kNotFound);
  // It opens, and its first page cannot be read.
  const CommandOutcome unreadable = Lab({"report", "/proc/self/mem"});
  EXPECT_EQ(unreadable.code, ExitCode::kFailed);
  EXPECT_THAT(unreadable.err, HasSubstr("/proc/self/mem: it cannot be read"));
  EXPECT_EQ(ReadWholeFile(Write("empty", "")).value(), "");
  const CommandOutcome none = Lab({"clean", "--out", directory_ + "/none"});
  EXPECT_THAT(none.err, HasSubstr("there is no such directory"));
}

TEST_F(LabPathsTest, AWrongWordIsAnsweredAsThoseOfOtherCommandsAre) {
  const CommandOutcome unknown = Lab({"rnu"});
  EXPECT_EQ(unknown.code, ExitCode::kUsage);
  EXPECT_EQ(unknown.err, "partita lab: unknown command 'rnu'; did you mean run?\nTry: partita lab --help\n");
  const CommandOutcome missing = Lab({"report"});
  EXPECT_EQ(missing.code, ExitCode::kUsage);
  EXPECT_THAT(missing.err, HasSubstr("Try: partita lab report --help"));
  EXPECT_THAT(Lab({"schema", "--help"}).out, HasSubstr("Example:\n  partita lab schema"));
}

// Of commands that need no store, too: all of the program's output ends in one place.
TEST_F(LabPathsTest, AnOutputThatCannotBeWrittenIsTold) {
  const std::string line = std::string(kCommandPath) + " lab schema 2>&1 > /dev/full";
  std::FILE* pipe = popen(line.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char said[256] = {};
  const size_t size = std::fread(said, 1, sizeof said - 1, pipe);
  const int status = pclose(pipe);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_THAT(std::string(said, size), HasSubstr("cannot write to standard output"));
}

}  // namespace
}  // namespace partita::lab

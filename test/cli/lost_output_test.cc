#include <sys/wait.h>

#include <cstdio>
#include <sstream>

#include "api/cli/console.h"
#include "test/cli/command_fixture.h"
#include "test/support/paths.h"

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

}  // namespace
}  // namespace partita

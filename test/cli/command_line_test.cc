#include "api/cli/figures.h"
#include "api/cli/nearest_name.h"
#include "test/cli/command_fixture.h"

namespace partita {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

using CommandLineTest = CommandTest;

TEST_F(CommandLineTest, EveryCommandExplainsItselfWithAnExample) {
  const std::vector<std::string> commands = CommandNames();
  EXPECT_THAT(commands, AllOf(Contains("import"), Contains("query"), Contains("demo")));
  const CommandOutcome all = RunAsGiven({"--help"});
  EXPECT_EQ(all.code, ExitCode::kOk);
  for (const std::string& command : commands) {
    EXPECT_THAT(all.out, HasSubstr("  " + command));
    const CommandOutcome help = RunAsGiven({command, "--help"});
    EXPECT_EQ(help.code, ExitCode::kOk) << command;
    EXPECT_THAT(help.out, HasSubstr("Example:\n  partita " + command + " "));
  }
}

TEST_F(CommandLineTest, AnUnknownOptionOrCommandNamesTheNearest) {
  const CommandOutcome option = RunAsGiven({"scan", "Things", "--limt", "3"});
  EXPECT_EQ(option.code, ExitCode::kUsage);
  EXPECT_THAT(option.err, AllOf(HasSubstr("'--limt'"), HasSubstr("did you mean --limit?")));
  const CommandOutcome of_store = RunAsGiven({"tables", "--dta=x"});
  EXPECT_THAT(of_store.err, HasSubstr("did you mean --data?"));
  const CommandOutcome command = RunAsGiven({"verfy"});
  EXPECT_EQ(command.code, ExitCode::kUsage);
  EXPECT_THAT(command.err, HasSubstr("did you mean verify?"));
  EXPECT_THAT(RunAsGiven({}).err, HasSubstr("which command?"));
}

TEST_F(CommandLineTest, BadValuesAreUsageErrorsThatNameTheOption) {
  EXPECT_THAT(RunAsGiven({"tables", "--memory", "lots"}).err,
              AllOf(HasSubstr("--memory"), HasSubstr("512M")));
  EXPECT_THAT(RunAsGiven({"tables", "--io", "magic"}).err, HasSubstr("--io"));
  EXPECT_THAT(RunAsGiven({"tables", "--shards", "0"}).err, HasSubstr("--shards"));
  EXPECT_EQ(RunAsGiven({"tables", "--shards", "0"}).code, ExitCode::kUsage);
  EXPECT_EQ(RunAsGiven({"get", "Things", "p"}).code, ExitCode::kUsage);
  const CommandOutcome little = RunAsGiven({"tables", "--memory", "1M", "--data", directory_});
  EXPECT_EQ(little.code, ExitCode::kUsage);
  EXPECT_THAT(little.err, HasSubstr("64 MiB"));
}

TEST(NearestNameTest, FindsSwapsOmissionsAndBeginnings) {
  const std::vector<std::string> names = {"--table", "--format", "--durability"};
  EXPECT_EQ(NearestName("--tabel", names), "--table");
  EXPECT_EQ(NearestName("--fromat", names), "--format");
  EXPECT_EQ(NearestName("--dura", names), "--durability");
  EXPECT_EQ(NearestName("--zebra-crossing", names), "");
}

TEST(FiguresTest, SizesAreReadInPowersOf1024) {
  EXPECT_EQ(*ParseBytes("1048576"), 1048576u);
  EXPECT_EQ(*ParseBytes("64M"), 64u << 20);
  EXPECT_EQ(*ParseBytes("1.5GiB"), 3ull << 29);
  EXPECT_EQ(*ParseBytes("2kb"), 2048u);
  for (const char* bad : {"", "M", "1X", "1MM", "-1", "1.2.3", "99999999T"}) {
    EXPECT_EQ(ParseBytes(bad).code(), Code::kInvalidArgument) << bad;
  }
}

TEST(FiguresTest, AreWrittenForPeople) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatSeconds(0.5), "0.500 s");
  EXPECT_EQ(FormatSeconds(185), "3:05");
  EXPECT_EQ(FormatSeconds(7385), "2:03:05");
}

}  // namespace
}  // namespace partita

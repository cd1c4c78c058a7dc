#include <chrono>
#include <thread>

#include "api/cli/figures.h"
#include "api/cli/nearest_name.h"
#include "api/cli/opening_watcher.h"
#include "api/cli/progress.h"
#include "api/cli/task_watcher.h"
#include "test/cli/command_fixture.h"

namespace partita {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

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
  // What was meant to be a key may be one.
  EXPECT_THAT(RunAsGiven({"sas", "--kye=SECRET"}).err,
              AllOf(HasSubstr("unknown option '--kye'; did you mean --key?"), Not(HasSubstr("SECRET"))));
  const CommandOutcome command = RunAsGiven({"verfy"});
  EXPECT_EQ(command.code, ExitCode::kUsage);
  EXPECT_THAT(command.err, HasSubstr("did you mean verify?"));
  EXPECT_THAT(RunAsGiven({}).err, HasSubstr("which command?"));
}

TEST_F(CommandLineTest, HelpOnAnUnknownCommandIsNone) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"verfy", "--help"},
                                                {"--help", "verfy"},
                                                {"--data", store_, "verfy", "--help"}}) {
    const CommandOutcome outcome = RunAsGiven(words);
    EXPECT_EQ(outcome.code, ExitCode::kUsage);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("unknown command 'verfy'; did you mean verify?"));
  }
  const CommandOutcome inner = RunAsGiven({"ranges", "mvoe", "--help"});
  EXPECT_EQ(inner.code, ExitCode::kUsage);
  EXPECT_THAT(inner.err, HasSubstr("unknown command 'mvoe'; did you mean move?"));
  EXPECT_THAT(RunAsGiven({"drop-table", "Things"}).err, HasSubstr("did you mean delete-table?"));
  EXPECT_EQ(RunAsGiven({"--help", "verify"}).code, ExitCode::kOk);
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

// As of a script's variable that is not set: what was meant to be on would be off.
TEST_F(CommandLineTest, AnEmptyValueIsNoChoice) {
  const std::pair<const char*, std::vector<const char*>> options[] = {
      {"serve", {"--settings", "--admin", "--cert", "--key-file", "--access-log", "--throughput"}},
      {"scrub", {"--within", "--rate"}},
      {"backup", {"--base", "--rate"}},
      {"restore", {"--rate"}},
      {"repair", {"--rate"}},
      {"demo", {"--index"}},
      {"export", {"-o", "--output"}},
      {"heat", {"--html", "--png"}}};
  for (const auto& [command, names] : options) {
    for (const char* name : names) {
      std::vector<std::string> words = {command, name, "", "--data", store_};
      if (words[0] == "export") words.insert(words.end(), {"--table", "Things"});
      if (words[0] == "heat") words.insert(words.end(), {"--admin", "127.0.0.1:1"});
      if (words[0] == "backup" || words[0] == "restore") words.push_back(directory_ + "/monday");
      // Were one taken, it would not serve: the account of this address is missing.
      if (words[0] == "serve") words.insert(words.end(), {"--listen", "0.0.0.0:0"});
      const CommandOutcome outcome = RunAsGiven(words);
      EXPECT_EQ(outcome.code, ExitCode::kUsage) << command << " " << name;
      EXPECT_THAT(outcome.err, AllOf(HasSubstr(name), HasSubstr("is empty"))) << command;
    }
  }
  const CommandOutcome list = RunAsGiven({"ranges", "list", "--admin", "", "--data", store_});
  EXPECT_EQ(list.code, ExitCode::kUsage);
  EXPECT_THAT(list.err, HasSubstr("--admin"));
}

TEST(NearestNameTest, FindsSwapsOmissionsAndBeginnings) {
  const std::vector<std::string> names = {"--table", "--format", "--durability"};
  EXPECT_EQ(NearestName("--tabel", names), "--table");
  EXPECT_EQ(NearestName("--fromat", names), "--format");
  EXPECT_EQ(NearestName("--dura", names), "--durability");
  EXPECT_EQ(NearestName("--zebra-crossing", names), "");
  const std::string endless(10u << 20, 'a');
  EXPECT_EQ(NearestName(endless, names), "");
  EXPECT_EQ(NearestName("--tabel", {endless, "--table"}), "--table");
  EXPECT_EQ(NearestName(endless, {endless + "b"}), "");
}

TEST(ProgressTest, TheTimeLeftGoesByTheRateAndByWhatHoldsItBack) {
  EXPECT_DOUBLE_EQ(SecondsLeft({.done = 25, .total = 100, .seconds = 10}), 30);
  // A log file is counted at once, and then waited for: by its own rate all would be done soon.
  EXPECT_DOUBLE_EQ(SecondsLeft({.done = 60, .total = 100, .seconds = 1, .seconds_min = 100}), 99);
  EXPECT_DOUBLE_EQ(SecondsLeft({.done = 100, .total = 100, .seconds = 80, .seconds_min = 100}), 20);
  // The disk is slower than it may be.
  EXPECT_DOUBLE_EQ(SecondsLeft({.done = 10, .total = 100, .seconds = 50, .seconds_min = 100}), 450);
  EXPECT_DOUBLE_EQ(SecondsLeft({.done = 120, .total = 100, .seconds = 110, .seconds_min = 100}), 0);
}

// As of a task that is held back to a rate.
TEST(ProgressTest, FewStepsThatTakeLongAreDrawnAsWell) {
  std::ostringstream out, err;
  CountdownInterrupts interrupts;
  Console console{.out = out, .err = err, .err_is_terminal = true, .interrupts = interrupts};
  TaskWatcher watcher(console, "scrub");
  const TaskPace pace = watcher.Pace(1'000);
  for (uint64_t done = 0; done <= 1'000; done += 500) {
    EXPECT_TRUE(pace.progress(done, 1'000));
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
  }
  EXPECT_THAT(err.str(), AllOf(HasSubstr(" 50 %"), HasSubstr(" 100 %")));
}

TEST(ProgressTest, AnOpeningIsShownOnlyWhereItTakesLong) {
  for (const bool is_long : {false, true}) {
    std::ostringstream out, err;
    CountdownInterrupts interrupts;
    Console console{.out = out, .err = err, .err_is_terminal = true, .interrupts = interrupts};
    OpeningWatcher watcher(console, /*long_seconds=*/is_long ? 0 : 3600);
    for (uint64_t done = 100; done <= 500; done += 400) {
      watcher.Watch(done, 1'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(110));
    }
    watcher.Watch(700, 1'400);
    watcher.Finish();
    EXPECT_EQ(err.str().find("opening the store [##########..........] 50 %") != std::string::npos, is_long);
    EXPECT_EQ(err.str().empty(), !is_long);
  }
}

TEST(ProgressTest, WhoAsksToStopDuringALongOpeningIsToldOnceThatItIsHeard) {
  std::ostringstream out, err;
  CountdownInterrupts interrupts(/*asked_max=*/0);
  interrupts.Arm();
  Console console{.out = out, .err = err, .interrupts = interrupts};
  OpeningWatcher watcher(console, /*long_seconds=*/0);
  watcher.Watch(100, 1'000);
  watcher.Watch(200, 1'000);
  EXPECT_EQ(err.str(), "stopping once the store is open; again to stop at once\n");
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

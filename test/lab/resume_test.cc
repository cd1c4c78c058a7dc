#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <simdjson.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "bench/lab/unfinished_run.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"
#include "test/support/paths.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two layouts, twice, for 0.2 s each.
std::string FourCells() {
  std::string text = ReadingsText(std::string(kDeviceLayout) + R"(
[[layout]]
name = "one"
pk = "all"
rk = "{device}_{ticks(ts)}"
)");
  text.replace(text.find("repeats = 3"), 11, "repeats = 2");
  text.replace(text.find("warmup = \"100ms\""), 16, "warmup = \"0s\"");
  return Small(text.replace(text.find("400ms"), 5, "200ms"));
}
constexpr size_t kCells = 4;

// A user who interrupts when a file is there.
class InterruptsOnceThere final : public InterruptSource {
 public:
  explicit InterruptsOnceThere(std::string path) : path_(std::move(path)) {}
  bool Requested() override { return std::filesystem::exists(path_); }

 private:
  const std::string path_;
};

class ResumeTest : public LabCommandTest {
 protected:
  void SetUp() override {
    LabCommandTest::SetUp();
    path_ = Write("x.toml", FourCells());
    out_ = directory_ + "/out";
  }
  std::vector<std::string> Words(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"run", path_, "--out", out_, "--io", Io()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string Io() const { return backend_ == IoBackend::kUring ? "uring" : "threads"; }

  // The command itself, in a process of its own; 0 is no process.
  pid_t Start(const std::vector<std::string>& more) const {
    std::vector<std::string> words = Words(more);
    words.insert(words.begin(), {kCommandPath, "lab"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child != 0) return child;
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(126);
    execv(kCommandPath, arguments.data());
    _exit(127);
  }
  // The same, with what it prints.
  CommandOutcome RunProgram(const std::vector<std::string>& more) const {
    std::string line = std::string(kCommandPath) + " lab";
    for (const std::string& word : Words(more)) line += " '" + word + "'";
    FILE* pipe = popen((line + " 2>&1").c_str(), "r");
    std::string said;
    char chunk[4096];
    for (size_t got; (got = fread(chunk, 1, sizeof(chunk), pipe)) > 0;) said.append(chunk, got);
    const int status = pclose(pipe);
    return {
        .code = static_cast<ExitCode>(WIFEXITED(status) ? WEXITSTATUS(status) : 99), .out = {}, .err = said};
  }
  static int WaitFor(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  size_t CellsKept() const {
    size_t cells = 0;
    while (std::filesystem::exists(out_ + "/unfinished/cell-00000" + std::to_string(cells))) ++cells;
    return cells;
  }
  // Interrupts a run, in the loading of its second cell.
  CommandOutcome InterruptWhenOneIsKept() const {
    InterruptsOnceThere interrupts(out_ + "/unfinished/cell-000000");
    return LabUntil(interrupts, Words({}));
  }
  // Kills a run, started with these words more, when it has kept so many cells.
  void KillWhenKept(size_t cells, const std::vector<std::string>& more) {
    const pid_t child = Start(more);
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (CellsKept() < cells && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    kill(child, SIGKILL);
    EXPECT_EQ(WaitFor(child), -SIGKILL);
    EXPECT_GE(CellsKept(), cells);
  }

  std::string path_, out_;
};

TEST_F(ResumeTest, ARunThatIsKilledAgainAndAgainGoesOnAndGivesWhatAWholeOneGives) {
  size_t kept = 0;
  bool has_ended = false;
  for (int k = 0; k < 5; ++k) {
    const pid_t child = Start({"--resume"});
    std::this_thread::sleep_for(std::chrono::milliseconds(40 + 137 * k));
    kill(child, SIGKILL);
    has_ended = WaitFor(child) != -SIGKILL;
    // It was done before, or it was done, all but its end.
    if (has_ended || std::filesystem::exists(out_ + "/result.json")) break;
    EXPECT_GE(CellsKept(), kept) << "no kill takes back what was kept";
    kept = CellsKept();
  }
  const bool was_done = std::filesystem::exists(out_ + "/result.json");
  if (!was_done && kept == 0) KillWhenKept(1, {"--resume"});
  if (!was_done) {
    kept = CellsKept();
    EXPECT_EQ(WaitFor(Start({"--resume"})), 0);
    has_ended = true;
  }
  EXPECT_TRUE(!has_ended || !std::filesystem::exists(out_ + "/unfinished"));
  simdjson::dom::parser parser, whole_parser;
  simdjson::dom::element resumed, whole;
  ASSERT_EQ(parser.load(out_ + "/result.json").get(resumed), simdjson::SUCCESS);
  EXPECT_EQ(resumed["cells_kept"].get_uint64().value(), kept);
  out_ = directory_ + "/whole";
  EXPECT_EQ(WaitFor(Start({})), 0);
  ASSERT_EQ(whole_parser.load(out_ + "/result.json").get(whole), simdjson::SUCCESS);
  EXPECT_EQ(whole["cells_kept"].get_uint64().value(), 0u);
  EXPECT_EQ(resumed["cells"].get_array().size(), kCells);
  for (const auto field : whole.get_object()) {
    EXPECT_EQ(resumed[field.key].error(), simdjson::SUCCESS) << field.key;
  }
  for (const char* same : {"stream_hash", "build", "name"}) {
    EXPECT_EQ(resumed[same].get_string().value(), whole[same].get_string().value()) << same;
  }
  for (size_t i = 0; i < kCells; ++i) {
    const auto one = resumed["cells"].at(i), other = whole["cells"].at(i);
    EXPECT_EQ(one["layout"].get_string().value(), other["layout"].get_string().value()) << i;
    EXPECT_EQ(one["ops"].at(0)["operations"].get_uint64().value(),
              other["ops"].at(0)["operations"].get_uint64().value())
        << i;
    EXPECT_GT(one["ops"].at(0)["latency_us_counts"].get_array().size(), 0u) << i;
  }
}

TEST_F(ResumeTest, AnInterruptedRunSaysHowItGoesOnAndIsNotRunOverUnasked) {
  const CommandOutcome stopped = InterruptWhenOneIsKept();
  EXPECT_EQ(stopped.code, ExitCode::kFailed);
  EXPECT_THAT(stopped.err, HasSubstr("of 4 runs are kept in " + out_ + "/unfinished; --resume goes on"));
  const size_t kept = CellsKept();
  ASSERT_GE(kept, 1u);
  const CommandOutcome plain = Lab(Words({}));
  EXPECT_EQ(plain.code, ExitCode::kFindings);
  EXPECT_THAT(plain.err, AllOf(HasSubstr("--resume goes on with it"), HasSubstr("--force begins anew")));
  EXPECT_EQ(CellsKept(), kept);
  const CommandOutcome resumed = Lab(Words({"--resume"}));
  EXPECT_EQ(resumed.code, ExitCode::kOk) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("lab: " + std::to_string(kept) + " of 4 runs are done already"));
  EXPECT_THAT(resumed.out, HasSubstr("resumed: " + std::to_string(kept) + " of 4 runs were done before"));
  const CommandOutcome again = Lab(Words({"--resume"}));
  EXPECT_EQ(again.code, ExitCode::kFindings);
  EXPECT_THAT(again.err, HasSubstr("there is nothing to resume"));
  EXPECT_EQ(Lab(Words({"--resume", "--force"})).code, ExitCode::kUsage);
}

TEST_F(ResumeTest, WhatHasChangedIsRefusedWithWordsAndCanBeRunAnew) {
  ASSERT_EQ(InterruptWhenOneIsKept().code, ExitCode::kFailed);
  const size_t kept = CellsKept();
  ASSERT_GE(kept, 1u);
  std::string text = FourCells();
  Write("x.toml", text.replace(text.find("weight = 8"), 10, "weight = 7"));
  const CommandOutcome changed = Lab(Words({"--resume"}));
  EXPECT_EQ(changed.code, ExitCode::kFindings);
  EXPECT_THAT(changed.err, HasSubstr("the experiment has changed since"));
  EXPECT_EQ(CellsKept(), kept) << "what was refused is left as it is";
  // Another build of the program began this one.
  Write("x.toml", FourCells());
  const CommandOutcome other = RunProgram({"--resume"});
  EXPECT_EQ(other.code, ExitCode::kFindings);
  EXPECT_THAT(other.err, HasSubstr("this is another build of partita"));
  const CommandOutcome anew = Lab(Words({"--force"}));
  EXPECT_EQ(anew.code, ExitCode::kOk) << anew.err;
  EXPECT_THAT(anew.out, Not(HasSubstr("resumed:")));
}

TEST_F(ResumeTest, AKilledRunLeavesNoStoresToTheOneThatGoesOn) {
  KillWhenKept(1, {});
  const std::string leftover = out_ + "/unfinished/work-AAAAAA/store";
  std::filesystem::create_directories(leftover);
  const std::string mine = out_ + "/unfinished/mine";
  std::filesystem::create_directories(mine);
  EXPECT_EQ(WaitFor(Start({"--resume"})), 0);
  EXPECT_FALSE(std::filesystem::exists(leftover));
  EXPECT_TRUE(std::filesystem::exists(mine)) << "what it did not make it does not remove";
}

TEST_F(ResumeTest, TwoProcessesDoNotRunIntoOneResult) {
  const RunIdentity identity{
      .experiment = "e", .seed = "1", .target = "embedded", .io = "uring", .build = "b"};
  const auto first = UnfinishedRun::Open(out_, identity, UnfinishedRun::Start::kNew);
  ASSERT_TRUE(first.ok());
  const CommandOutcome second = RunProgram({});
  EXPECT_EQ(second.code, ExitCode::kFailed);
  EXPECT_THAT(second.err, HasSubstr("another process runs it just now"));
}

TEST_F(ResumeTest, ARunThatForceBeganGoesOnThoughNoCellOfItWasDone) {
  Write("x.toml", Once(Small(ReadingsText(kDeviceLayout))));
  std::string first;
  bool killed = false;
  // Each time anew, as the one that is killed may be done by then.
  for (int tries = 0; tries < 3 && !killed; ++tries) {
    out_ = directory_ + "/out" + std::to_string(tries);
    const std::string begun = out_ + "/unfinished/run";
    ASSERT_EQ(WaitFor(Start({})), 0);
    first = Read(out_ + "/result.json");
    const pid_t child = Start({"--force"});
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!std::filesystem::exists(begun) && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, SIGKILL);
    killed = WaitFor(child) == -SIGKILL && std::filesystem::exists(begun) && CellsKept() == 0;
  }
  ASSERT_TRUE(killed) << "each time too late";
  const CommandOutcome resumed = RunProgram({"--resume"});
  EXPECT_EQ(resumed.code, ExitCode::kOk) << resumed.err;
  EXPECT_NE(Read(out_ + "/result.json"), first);
}

TEST_F(ResumeTest, AnotherWayToTheDiskIsAnotherRun) {
  RunIdentity identity{.experiment = "e", .seed = "1", .target = "embedded", .io = "uring", .build = "b"};
  {
    auto run = UnfinishedRun::Open(out_, identity, UnfinishedRun::Start::kNew);
    ASSERT_TRUE(run.ok() && run->Keep({}).ok());
  }
  identity.io = "threads";
  const auto resumed = UnfinishedRun::Open(out_, identity, UnfinishedRun::Start::kResume);
  EXPECT_EQ(resumed.status().code(), Code::kPreconditionFailed);
  EXPECT_THAT(resumed.status().message(), HasSubstr("--io is another"));
}

TEST_F(ResumeTest, TablesAreKnownUntilTheyAreGoneWhateverBecomesOfTheCells) {
  const RunIdentity identity{.experiment = "e", .seed = "1", .target = "t", .io = "-", .build = "b"};
  const RemoteTable one{"http://a", "One"}, other{"http://a", "Other"};
  {
    auto run = UnfinishedRun::Open(out_, identity, UnfinishedRun::Start::kNew);
    ASSERT_TRUE(run.ok() && run->NoteTable(one).ok() && run->NoteTable(other).ok());
    run->TableIsGone(one);
  }
  for (const auto start : {UnfinishedRun::Start::kNew, UnfinishedRun::Start::kAnew}) {
    const auto run = UnfinishedRun::Open(out_, identity, start);
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->tables(), std::vector<RemoteTable>{other});
  }
  auto run = UnfinishedRun::Open(out_, identity, UnfinishedRun::Start::kResume);
  ASSERT_TRUE(run.ok());
  run->Remove();
  EXPECT_FALSE(std::filesystem::exists(out_ + "/unfinished"));
}

TEST_F(ResumeTest, ADamagedCellAndWhatFollowsItIsRunAgain) {
  const RunIdentity identity{
      .experiment = "e", .seed = "1", .target = "embedded", .io = "uring", .build = "b"};
  {
    auto run = UnfinishedRun::Open(out_, identity, UnfinishedRun::Start::kNew);
    ASSERT_TRUE(run.ok());
    for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(run->Keep({.layout = i}).ok());
  }
  ASSERT_EQ(CellsKept(), 3u);
  const std::string second = out_ + "/unfinished/cell-000001";
  std::filesystem::resize_file(second, std::filesystem::file_size(second) - 1);
  const auto run = UnfinishedRun::Open(out_, identity, UnfinishedRun::Start::kResume);
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  EXPECT_EQ(run->kept().size(), 1u);
  EXPECT_EQ(CellsKept(), 1u);
}

}  // namespace
}  // namespace partita::lab

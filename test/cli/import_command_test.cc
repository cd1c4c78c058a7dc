#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "api/cli/import_checkpoint.h"
#include "test/cli/command_fixture.h"

namespace partita {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

using ImportCommandTest = CommandTest;

std::string JsonRecord(int i) {
  return R"({"PartitionKey":"p","RowKey":"r)" + std::to_string(100000 + i) + R"(","Number":)" +
         std::to_string(i) + "}\n";
}

std::string JsonRecords(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) text += JsonRecord(i);
  return text;
}

// The number that follows `words` in the text.
int LineAfter(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + words.size());
}

TEST_F(ImportCommandTest, CountsAndListsBadRecordsAndKeepsTheGoodOnes) {
  const std::string file =
      Write("in.jsonl", JsonRecord(1) + "{\"PartitionKey\":\n" + JsonRecord(2) +
                            "{\"PartitionKey\":\"a/b\",\"RowKey\":\"r\"}\n" + JsonRecord(3));
  const CommandOutcome imported = Run({"import", file, "--table", "Things", "--create"});
  EXPECT_EQ(imported.code, ExitCode::kFindings);
  EXPECT_THAT(imported.err, AllOf(HasSubstr("line 2:"), HasSubstr("line 4:"), HasSubstr("PartitionKey")));
  EXPECT_THAT(imported.err, Not(HasSubstr("line 3:")));
  EXPECT_THAT(imported.out, HasSubstr("imported 3 records into 'Things', 2 bad"));
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "3\n");
  EXPECT_FALSE(std::filesystem::exists(CheckpointPath(file)));
}

TEST_F(ImportCommandTest, ListsNoMoreBadRecordsThanAskedForButCountsAll) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "not json\n";
  const std::string file = Write("in.jsonl", text);
  const CommandOutcome imported = Run({"import", file, "--table", "Things", "--create", "--errors", "3"});
  EXPECT_EQ(imported.code, ExitCode::kFindings);
  EXPECT_THAT(imported.err, AllOf(HasSubstr("line 3:"), Not(HasSubstr("line 4:")), HasSubstr("not listed")));
  EXPECT_THAT(imported.out, HasSubstr("30 bad"));
}

TEST_F(ImportCommandTest, StrictStopsAtTheFirstBadRecordAndGoesOnWhenItIsMended) {
  const std::string good = JsonRecords(0, 10);
  const std::string file = Write("in.jsonl", good + "oops\n" + JsonRecords(10, 20));
  const CommandOutcome stopped =
      Run({"import", file, "--table", "Things", "--create", "--strict", "--mode", "insert"});
  EXPECT_EQ(stopped.code, ExitCode::kFindings);
  EXPECT_THAT(stopped.err,
              AllOf(HasSubstr("line 11:"), HasSubstr("before line 11 is done"), HasSubstr("--resume")));
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "10\n");

  Write("in.jsonl", good + JsonRecords(10, 20));
  const CommandOutcome resumed =
      Run({"import", file, "--table", "Things", "--strict", "--resume", "--mode", "insert"});
  EXPECT_EQ(resumed.code, ExitCode::kOk) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("imported 20 records"));
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "20\n");
}

TEST_F(ImportCommandTest, ResumesAfterAnInterruptionWhereItStopped) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 500));
  const CommandOutcome stopped =
      Run({"import", file, "--table", "Things", "--create", "--mode", "insert"}, /*interrupt_after=*/124);
  EXPECT_EQ(stopped.code, ExitCode::kFailed);
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("interrupted"), HasSubstr("is done"), HasSubstr("--resume")));
  EXPECT_TRUE(std::filesystem::exists(CheckpointPath(file)));
  const int line = LineAfter(stopped.err, "before line ");
  ASSERT_THAT(line, AllOf(Ge(2), Le(124))) << stopped.err;
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, std::to_string(line - 1) + "\n");

  // A record that were written again would come back.
  EXPECT_EQ(Run({"delete", "Things", "p", "r100000"}).code, ExitCode::kOk);
  const CommandOutcome resumed = Run({"import", file, "--table", "Things", "--mode", "insert", "--resume"});
  EXPECT_EQ(resumed.code, ExitCode::kOk) << resumed.err;
  EXPECT_EQ(LineAfter(resumed.err, "going on at line "), line);
  EXPECT_THAT(resumed.out, HasSubstr("imported 500 records into 'Things', 0 bad"));
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "499\n");
  EXPECT_FALSE(std::filesystem::exists(CheckpointPath(file)));
}

TEST_F(ImportCommandTest, AnInterruptAtTheEndOfTheInputIsOneAllTheSame) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 3));
  uint64_t asked = 1;
  for (;; ++asked) {
    const CommandOutcome outcome = Run({"import", file, "--table", "Things", "--create"}, asked);
    if (outcome.code == ExitCode::kOk) break;
    EXPECT_EQ(outcome.code, ExitCode::kFailed);
    EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
    const bool goes_on = outcome.err.find("goes on there") != std::string::npos;
    EXPECT_EQ(std::filesystem::exists(CheckpointPath(file)), goes_on);
  }
  EXPECT_GT(asked, 2 * 3 + 2u) << "also when the last record was read, and when all are written";
}

TEST_F(ImportCommandTest, WhatAnImportFromTheStartLeavesIsNeverTheOldCheckpoint) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 500));
  Run({"import", file, "--table", "Things", "--create"}, /*interrupt_after=*/400);
  ASSERT_TRUE(std::filesystem::exists(CheckpointPath(file)));
  ASSERT_EQ(Run({"delete-table", "Things"}).code, ExitCode::kOk);
  // It ends without one of its own, which cannot be written.
  std::filesystem::create_directory(CheckpointPath(file) + ".new");
  const CommandOutcome stopped =
      Run({"import", file, "--table", "Things", "--create"}, /*interrupt_after=*/400);
  EXPECT_THAT(stopped.err, HasSubstr("cannot be resumed"));
  Run({"import", file, "--table", "Things", "--resume"});
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "500\n");
}

TEST_F(ImportCommandTest, ResumesFromTheFirstRecordOfACsvFile) {
  const std::string file = Write("in.csv", "PartitionKey,RowKey,N\n,\np,2,2\n");
  const CommandOutcome stopped = Run({"import", file, "--table", "Things", "--create", "--strict"});
  EXPECT_EQ(stopped.code, ExitCode::kFindings) << stopped.err;
  Write("in.csv", "PartitionKey,RowKey,N\np,1,1\np,2,2\n");
  const CommandOutcome resumed = Run({"import", file, "--table", "Things", "--resume", "--strict"});
  EXPECT_EQ(resumed.code, ExitCode::kOk) << resumed.err;
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "2\n");
}

TEST_F(ImportCommandTest, ResumedInsertsAcceptTheRecordsThatTheyFindWritten) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 300));
  ASSERT_EQ(Run({"import", file, "--table", "Things", "--create"}).code, ExitCode::kOk);
  ASSERT_EQ(Run({"put", "Things", R"({"PartitionKey":"p","RowKey":"r100250","Number":-1})"}).code,
            ExitCode::kOk);
  const auto origin = OriginOfTable(store_, "devstoreaccount1", "Things");
  ASSERT_TRUE(origin.ok()) << origin.status().ToString();
  const ImportCheckpoint checkpoint{
      .table = "Things",
      .store = store_,
      .origin = *origin,
      .account = "devstoreaccount1",
      .mode = "insert",
      .format = "jsonl",
      .position = {.offset = JsonRecords(0, 200).size(), .line = 201, .imported = 200, .bad = 0}};
  ASSERT_TRUE(SaveCheckpoint(file, checkpoint).ok());

  const CommandOutcome resumed = Run({"import", file, "--table", "Things", "--mode", "insert", "--resume"});
  EXPECT_EQ(resumed.code, ExitCode::kFindings);
  EXPECT_THAT(resumed.err,
              AllOf(HasSubstr("line 251:"), HasSubstr("AlreadyExists"), Not(HasSubstr("line 250:"))));
  EXPECT_THAT(resumed.out, HasSubstr("imported 299 records into 'Things', 1 bad"));
}

TEST_F(ImportCommandTest, RefusesToResumeAFileThatHasChangedBeforeThePlace) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 500));
  Run({"import", file, "--table", "Things", "--create"}, /*interrupt_after=*/100);
  Write("in.jsonl", JsonRecords(1, 501));
  const CommandOutcome resumed = Run({"import", file, "--table", "Things", "--resume"});
  EXPECT_EQ(resumed.code, ExitCode::kUsage);
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("has changed"), HasSubstr("remove it and import from the start")));
}

TEST_F(ImportCommandTest, RefusesToResumeIntoAnotherTable) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 500));
  Run({"import", file, "--table", "Things", "--create"}, /*interrupt_after=*/100);
  const CommandOutcome resumed = Run({"import", file, "--table", "Others", "--create", "--resume"});
  EXPECT_EQ(resumed.code, ExitCode::kUsage);
  EXPECT_THAT(resumed.err, HasSubstr("into table 'Things'"));
}

TEST_F(ImportCommandTest, RefusesToResumeIntoAnotherAccountWhichWouldMissWhatTheFirstOneGot) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 2) + "oops\n" + JsonRecords(2, 4));
  const std::vector<std::string> always = {"import", file, "--table", "Things", "--create"};
  const auto with = [&always](std::vector<std::string> more) {
    more.insert(more.begin(), always.begin(), always.end());
    return more;
  };
  Run(with({"--strict", "--account", "alpha"}));
  Write("in.jsonl", JsonRecords(0, 4));
  for (const char* other : {"beta", "devstoreaccount1"}) {
    const CommandOutcome resumed = Run(with({"--resume", "--account", other}));
    EXPECT_EQ(resumed.code, ExitCode::kUsage);
    EXPECT_THAT(resumed.err, AllOf(HasSubstr("of account 'alpha'"), HasSubstr("import from the start")));
    const CommandOutcome scanned = Run({"scan", "Things", "--account", other});
    EXPECT_THAT(scanned.err, HasSubstr("there is no table")) << "it is not even made";
  }
  EXPECT_EQ(Run(with({"--resume"})).code, ExitCode::kUsage) << "which is the development account's";
  const CommandOutcome resumed = Run(with({"--resume", "--account", "alpha"}));
  EXPECT_EQ(resumed.code, ExitCode::kOk) << resumed.err;
  EXPECT_EQ(Run({"scan", "Things", "--count", "--account", "alpha"}).out, "4\n");
}

TEST_F(ImportCommandTest, TheDevelopmentAccountIsTheSameWhetherItIsNamedOrNot) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 2) + "oops\n");
  Run({"import", file, "--table", "Things", "--create", "--strict"});
  Write("in.jsonl", JsonRecords(0, 4));
  const CommandOutcome resumed =
      Run({"import", file, "--table", "Things", "--resume", "--account", "devstoreaccount1"});
  EXPECT_EQ(resumed.code, ExitCode::kOk) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("imported 4 records"));
}

TEST_F(ImportCommandTest, RefusesToResumeInAnotherMode) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 2) + "oops\n" + JsonRecords(2, 4));
  Run({"import", file, "--table", "Things", "--create", "--strict", "--mode", "insert"});
  const CommandOutcome resumed = Run({"import", file, "--table", "Things", "--resume"});
  EXPECT_EQ(resumed.code, ExitCode::kUsage);
  EXPECT_THAT(resumed.err, HasSubstr("with --mode insert"));
}

TEST_F(ImportCommandTest, RefusesACheckpointOfAnEarlierPartitaWhichDoesNotSayAllThatCounts) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 2) + "oops\n");
  Run({"import", file, "--table", "Things", "--create", "--strict"});
  const std::string now = Read(CheckpointPath(file));
  ASSERT_TRUE(now.starts_with("partita-resume 3\n"));
  for (const char* version : {"1", "2"}) {
    std::string earlier = now;
    earlier.replace(now.find('3'), 1, version);
    Write("in.jsonl.partita-resume", earlier);
    const CommandOutcome resumed = Run({"import", file, "--table", "Things", "--resume"});
    EXPECT_EQ(resumed.code, ExitCode::kUsage);
    EXPECT_THAT(resumed.err, AllOf(HasSubstr("by an earlier partita"), HasSubstr("account"),
                                   HasSubstr("remove it and import from the start")));
  }
  std::filesystem::remove(CheckpointPath(file));
  Write("in.jsonl", JsonRecords(0, 2));
  EXPECT_EQ(Run({"import", file, "--table", "Things", "--resume"}).code, ExitCode::kOk);
}

// covers: F80. What the store had of the import is gone with it.
TEST_F(ImportCommandTest, RefusesToResumeIntoAStoreOrATableThatWasMadeAnew) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 500));
  const std::vector<std::string> import = {"import", file, "--table", "Things", "--create"};
  std::vector<std::string> resume = import;
  resume.push_back("--resume");
  Run(import, /*interrupt_after=*/400);
  ASSERT_EQ(Run({"delete-table", "Things"}).code, ExitCode::kOk);
  CommandOutcome resumed = Run(resume);
  EXPECT_EQ(resumed.code, ExitCode::kUsage);
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("another table of this name"), HasSubstr("from the start")));

  Run(import, /*interrupt_after=*/400);
  std::filesystem::remove_all(store_);
  resumed = Run(resume);
  EXPECT_EQ(resumed.code, ExitCode::kUsage);
  EXPECT_THAT(resumed.err, AllOf(HasSubstr("another store"), HasSubstr("from the start")));
}

TEST_F(ImportCommandTest, RefusesToResumeIntoAStoreThatWasRestoredOrPutBack) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 500));
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  const std::string backup = directory_ + "/backup", copy = directory_ + "/copy";
  ASSERT_EQ(Run({"backup", backup}).code, ExitCode::kOk);
  std::filesystem::copy(store_, copy, std::filesystem::copy_options::recursive);
  Run({"import", file, "--table", "Things"}, /*interrupt_after=*/400);
  const auto refuses = [&] {
    EXPECT_EQ(Run({"import", file, "--table", "Things", "--resume"}).code, ExitCode::kUsage);
    // Again: a refusal leaves everything as it was.
    const CommandOutcome resumed = Run({"import", file, "--table", "Things", "--resume"});
    EXPECT_EQ(resumed.code, ExitCode::kUsage);
    EXPECT_THAT(resumed.err, AllOf(HasSubstr("restored, repaired or put back"), HasSubstr("from the start")));
    EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "0\n");
  };
  std::filesystem::remove_all(store_);
  ASSERT_EQ(Run({"restore", backup}).code, ExitCode::kOk);
  refuses();
  std::filesystem::remove_all(store_);
  std::filesystem::rename(copy, store_);
  refuses();
}

TEST_F(ImportCommandTest, RefusesToResumeIntoAStoreThatWasRepaired) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 500));
  Run({"import", file, "--table", "Things", "--create"}, /*interrupt_after=*/400);
  std::filesystem::remove_all(store_ + "/log-1-0");
  ASSERT_EQ(Run({"repair", "--apply"}).code, ExitCode::kOk);
  const CommandOutcome resumed = Run({"import", file, "--table", "Things", "--resume"});
  EXPECT_EQ(resumed.code, ExitCode::kUsage);
  EXPECT_THAT(resumed.err, HasSubstr("restored, repaired or put back"));
}

TEST_F(ImportCommandTest, TheLastOfSeveralRecordsWithOneKeyStays) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += R"({"PartitionKey":"p","RowKey":")" + std::to_string(i % 3) + R"(","Number":)" +
            std::to_string(i) + "}\n";
  }
  const std::string file = Write("in.jsonl", text);
  EXPECT_EQ(Run({"import", file, "--table", "Things", "--create"}).code, ExitCode::kOk);
  const std::string scanned = Run({"scan", "Things"}).out;
  EXPECT_THAT(scanned,
              AllOf(HasSubstr("\"Number\":297"), HasSubstr("\"Number\":298"), HasSubstr("\"Number\":299")));
}

TEST_F(ImportCommandTest, RefusesWithLineNumbersWhatTheTableDoesNotTake) {
  const std::string file = Write("in.jsonl", JsonRecords(0, 3) + JsonRecords(1, 2));
  const CommandOutcome imported = Run({"import", file, "--table", "Things", "--create", "--mode", "insert"});
  EXPECT_EQ(imported.code, ExitCode::kFindings);
  EXPECT_THAT(imported.err, AllOf(HasSubstr("line 4:"), HasSubstr("AlreadyExists")));
}

TEST_F(ImportCommandTest, AnIntegerThatWouldBeRoundedIsABadRecord) {
  const std::string keys = R"({"PartitionKey":"p","RowKey":)";
  const std::string file =
      Write("in.jsonl", keys + "\"1\",\"D\":1}\n" + keys + "\"2\",\"D\":9007199254740993}\n");
  const CommandOutcome imported = Run({"import", file, "--table", "Things", "--create"});
  EXPECT_EQ(imported.code, ExitCode::kFindings);
  EXPECT_THAT(imported.err, AllOf(HasSubstr("line 2:"), HasSubstr("Edm.Int64")));
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "1\n");
  const CommandOutcome put = Run({"put", "Things", keys + "\"2\",\"D\":9007199254740993}"});
  EXPECT_EQ(put.code, ExitCode::kUsage);
  EXPECT_THAT(put.err, HasSubstr("Edm.Int64"));
}

TEST_F(ImportCommandTest, MergeKeepsTheOtherProperties) {
  const std::string first = Write("a.csv", "PartitionKey,RowKey,A,A@type\np,r,1,Edm.Int32\n");
  const std::string second = Write("b.csv", "PartitionKey,RowKey,B\np,r,two\n");
  EXPECT_EQ(Run({"import", first, "--table", "Things", "--create"}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"import", second, "--table", "Things", "--mode", "merge"}).code, ExitCode::kOk);
  EXPECT_THAT(Run({"get", "Things", "p", "r", "--json"}).out,
              AllOf(HasSubstr("\"A\":1"), HasSubstr("\"B\":\"two\"")));
}

TEST_F(ImportCommandTest, CsvReportsTheLineOfABadRecord) {
  const std::string file =
      Write("in.csv", "PartitionKey,RowKey,A,A@type\np,1,7,Edm.Int32\np,2,x,Edm.Int32\np,3,9,Edm.Int32\n");
  const CommandOutcome imported = Run({"import", file, "--table", "Things", "--create"});
  EXPECT_EQ(imported.code, ExitCode::kFindings);
  EXPECT_THAT(imported.err, HasSubstr("line 3"));
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "2\n");
}

TEST_F(ImportCommandTest, SaysOnceThatTheInputCannotBeRead) {
  const int input = ::dup(0);
  const int directory = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::dup2(directory, 0), 0);
  ::close(directory);
  const CommandOutcome imported = Run({"import", "-", "--format", "jsonl", "--table", "Things", "--create"});
  ASSERT_EQ(::dup2(input, 0), 0);
  ::close(input);
  EXPECT_EQ(imported.code, ExitCode::kFailed);
  EXPECT_THAT(imported.err,
              AllOf(HasSubstr("reading the input: "), Not(HasSubstr("reading the input: reading"))));
}

TEST_F(ImportCommandTest, SaysWhatIsMissing) {
  const std::string file = Write("in.jsonl", JsonRecord(1));
  const CommandOutcome no_store = Run({"import", file, "--table", "Things"});
  EXPECT_EQ(no_store.code, ExitCode::kFailed);
  EXPECT_THAT(no_store.err, AllOf(HasSubstr(store_), HasSubstr("--create")));
  EXPECT_FALSE(std::filesystem::exists(store_)) << "a store was made without being asked for";

  EXPECT_EQ(Run({"create-table", "Others"}).code, ExitCode::kOk);
  const CommandOutcome no_table = Run({"import", file, "--table", "Things"});
  EXPECT_EQ(no_table.code, ExitCode::kFindings) << "as of any command for a table";
  EXPECT_THAT(no_table.err,
              AllOf(HasSubstr("no table 'Things'"), HasSubstr("Others"), HasSubstr("--create")));

  const CommandOutcome no_file = Run({"import", directory_ + "/none.csv", "--table", "Others"});
  EXPECT_EQ(no_file.code, ExitCode::kFailed);
  EXPECT_THAT(no_file.err, HasSubstr("none.csv"));

  const CommandOutcome no_format = Run({"import", Write("data.txt", ""), "--table", "Others"});
  EXPECT_EQ(no_format.code, ExitCode::kUsage);
  EXPECT_THAT(no_format.err, HasSubstr("--format"));
}

// Whose interrupt comes right behind the last look before a read that waits.
class LateInterrupts final : public InterruptSource {
 public:
  explicit LateInterrupts(int looks) : looks_left_(looks) { EXPECT_EQ(::pipe(pipe_), 0); }
  ~LateInterrupts() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  bool Requested() override {
    if (looks_left_ == 0) return true;
    if (--looks_left_ == 0) EXPECT_EQ(::write(pipe_[1], "", 1), 1);
    return false;
  }
  int Descriptor() override { return pipe_[0]; }

 private:
  int looks_left_;
  int pipe_[2] = {-1, -1};
};

TEST_F(ImportCommandTest, AnInterruptEndsTheWaitForInput) {
  const std::string fifo = directory_ + "/in";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int writer = ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);  // It never ends.
  const std::string record = JsonRecord(1);
  ASSERT_EQ(::write(writer, record.data(), record.size()), static_cast<ssize_t>(record.size()));
  std::ostringstream out, err;
  LateInterrupts interrupts(/*looks=*/3);  // Before and behind the first record, and before the second one.
  Console console{.out = out, .err = err, .interrupts = interrupts};
  const ExitCode code = RunCommandLine(
      {"import", fifo, "--format", "jsonl", "--table", "Things", "--create", "--memory", "64M", "--shards",
       "1", "--data", store_, "--io", backend_ == IoBackend::kUring ? "uring" : "threads"},
      console);
  ::close(writer);
  EXPECT_EQ(code, ExitCode::kFailed);
  EXPECT_EQ(err.str(), "partita: interrupted\n");
  EXPECT_THAT(out.str(), HasSubstr("imported 1 records"));
}

TEST_F(ImportCommandTest, WhatWritesIsRefusedWithReadOnlyBeforeAnythingIsOpened) {
  const std::string file = Write("in.jsonl", JsonRecord(1));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"import", file, "--table", "Things", "--create"},
        {"put", "Things", "no entity"},
        {"create-table", "Things"},
        {"delete", "Things", "p", "r"},
        {"delete-table", "Things"},
        {"restore", "backup"},
        {"demo"},
        {"ranges", "split", "Things", "p"},
        {"ranges", "merge", "Things", "p"},
        {"ranges", "move", "Things", "p", "0", "--admin", "127.0.0.1:1"}}) {
    std::vector<std::string> read_only = words;
    read_only.push_back("--read-only");
    const CommandOutcome outcome = Run(read_only);
    const std::string command = words[0] == "ranges" ? words[0] + " " + words[1] : words[0];
    EXPECT_EQ(outcome.code, ExitCode::kUsage) << command;
    EXPECT_EQ(outcome.err, "partita: " + command + " changes the store, which --read-only forbids\n");
  }
  EXPECT_FALSE(std::filesystem::exists(store_));
  EXPECT_FALSE(std::filesystem::exists(CheckpointPath(file)));
}

TEST_F(ImportCommandTest, WhereNothingWasDoneThereIsNothingToGoOnFrom) {
  const std::string file = Write("in.jsonl", "oops\n" + JsonRecord(1));
  const CommandOutcome stopped = Run({"import", file, "--table", "Things", "--create", "--strict"});
  EXPECT_EQ(stopped.code, ExitCode::kFindings);
  EXPECT_THAT(stopped.err, HasSubstr("partita: stopped at the first bad record (--strict)\n"));
  EXPECT_FALSE(std::filesystem::exists(CheckpointPath(file)));
}

}  // namespace
}  // namespace partita

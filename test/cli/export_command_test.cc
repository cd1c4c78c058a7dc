#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <set>
#include <sstream>

#include "api/cli/jsonl.h"
#include "api/cli/record_source.h"
#include "test/cli/command_fixture.h"
#include "test/cli/random_entity.h"

namespace partita {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using ExportCommandTest = CommandTest;

// A table of all types with the values that text forms stumble over.
std::string AwkwardRecords() {
  return R"({"PartitionKey":"","RowKey":"","Empty":"","Text":"a,\"b\"\r\nc"})"
         "\n"
         R"({"PartitionKey":"p","RowKey":"1","I":-7,"L@odata.type":"Edm.Int64","L":"-9223372036854775808","D":1.5,"B":true})"
         "\n"
         R"({"PartitionKey":"p","RowKey":"2","T@odata.type":"Edm.DateTime","T":"2025-01-15T10:20:30.1234567Z",)"
         R"("G@odata.type":"Edm.Guid","G":"00112233-4455-6677-8899-aabbccddeeff"})"
         "\n"
         R"({"PartitionKey":"p","RowKey":"3","X@odata.type":"Edm.Binary","X":"AAEC/w==","N@odata.type":"Edm.Double","N":"NaN"})"
         "\n"
         "{\"PartitionKey\":\"\xF0\x9F\x98\x80\",\"RowKey\":\"\xEF\xBC\xA1\",\"\xC3\xA4\":\"\xE2\x82\xAC\"}"
         "\n";
}

// Lines without their timestamps.
std::string WithoutTimestamps(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  JsonEntityParser parser;
  for (std::string line; std::getline(lines, line);) {
    const Result<Entity> entity = parser.Parse(line);
    EXPECT_TRUE(entity.ok()) << line;
    if (entity.ok()) AppendJsonLine(&out, *entity, JsonTimestamp::kOmit);
  }
  return out;
}

TEST_F(ExportCommandTest, JsonLinesComeBackAsTheyWereImported) {
  const std::string file = Write("in.jsonl", AwkwardRecords());
  ASSERT_EQ(Run({"import", file, "--table", "Things", "--create"}).code, ExitCode::kOk);
  const std::string out = directory_ + "/out.jsonl";
  const CommandOutcome exported = Run({"export", "--table", "Things", "-o", out});
  EXPECT_EQ(exported.code, ExitCode::kOk) << exported.err;
  EXPECT_EQ(WithoutTimestamps(Read(out)), WithoutTimestamps(AwkwardRecords()));
  EXPECT_FALSE(std::filesystem::exists(out + ".partita-partial"));
}

TEST_F(ExportCommandTest, CsvExportedAndImportedAgainGivesTheSameTable) {
  const std::string file = Write("in.jsonl", AwkwardRecords());
  ASSERT_EQ(Run({"import", file, "--table", "Things", "--create"}).code, ExitCode::kOk);
  const std::string csv = directory_ + "/out.csv";
  ASSERT_EQ(Run({"export", "--table", "Things", "-o", csv}).code, ExitCode::kOk);
  EXPECT_THAT(Read(csv), HasSubstr("L@type"));
  const CommandOutcome again = Run({"import", csv, "--table", "Again", "--create"});
  EXPECT_EQ(again.code, ExitCode::kOk) << again.err;
  // CSV gives every entity its properties in the order of the columns.
  const std::string first = WithoutTimestamps(Run({"export", "--table", "Things"}).out);
  const std::string second = WithoutTimestamps(Run({"export", "--table", "Again"}).out);
  EXPECT_EQ(first, second);
}

TEST_F(ExportCommandTest, RandomEntitiesSurviveBothFormats) {
  std::mt19937_64 random(20251120);
  std::string text;
  size_t count = 0;
  for (int i = 0; i < 400; ++i) {
    Entity entity = RandomEntity(&random);
    entity.set_row_key("r" + std::to_string(i));
    if (!ValidateEntity(entity).ok()) continue;
    AppendJsonLine(&text, entity, JsonTimestamp::kOmit);
    ++count;
  }
  ASSERT_GT(count, 100u);
  ASSERT_EQ(Run({"import", Write("in.jsonl", text), "--table", "Things", "--create"}).code, ExitCode::kOk);
  const std::string csv = directory_ + "/out.csv";
  ASSERT_EQ(Run({"export", "--table", "Things", "-o", csv}).code, ExitCode::kOk);
  const CommandOutcome again = Run({"import", csv, "--table", "Again", "--create"});
  EXPECT_THAT(again.out, HasSubstr("imported " + std::to_string(count) + " records into 'Again', 0 bad"))
      << again.err;
  const std::string csv_again = directory_ + "/again.csv";
  ASSERT_EQ(Run({"export", "--table", "Again", "-o", csv_again}).code, ExitCode::kOk);
  EXPECT_EQ(Read(csv_again), Read(csv));
  // What went in came out: the order of lines is that of keys, and that of properties, in CSV, that of
  // columns, so lines are compared as a set, each by its characters.
  const auto entities = [](const std::string& lines) {
    std::multiset<std::string> sorted;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) {
      std::sort(line.begin(), line.end());
      sorted.insert(line);
    }
    return sorted;
  };
  EXPECT_EQ(entities(WithoutTimestamps(Run({"export", "--table", "Things"}).out)), entities(text));
  EXPECT_EQ(entities(WithoutTimestamps(Run({"export", "--table", "Again"}).out)), entities(text));
}

TEST_F(ExportCommandTest, WhatReplacesAPrivateFileIsPrivate) {
  ASSERT_EQ(Run({"import", Write("in.jsonl", AwkwardRecords()), "--table", "Things", "--create"}).code,
            ExitCode::kOk);
  const std::string file = Write("private.jsonl", "old\n");
  for (const mode_t mode : {mode_t{0600}, mode_t{0444}}) {  // The latter can be replaced, too.
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    ASSERT_EQ(Run({"export", "--table", "Things", "-o", file}).code, ExitCode::kOk);
    struct stat info {};
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
    EXPECT_FALSE(std::filesystem::exists(file + ".partita-partial"));
  }
  EXPECT_EQ(WithoutTimestamps(Read(file)), WithoutTimestamps(AwkwardRecords()));
}

TEST_F(ExportCommandTest, RefusesAFileThatAnotherExportIsWriting) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  const std::string out = directory_ + "/out.jsonl";
  const std::string partial = Write("out.jsonl.partita-partial", "half");
  const int other = ::open(partial.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  const CommandOutcome refused = Run({"export", "--table", "Things", "-o", out});
  EXPECT_EQ(refused.code, ExitCode::kFailed);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("another command"), HasSubstr(partial)));
  EXPECT_EQ(Read(partial), "half");
  ::close(other);  // It was killed.
  EXPECT_EQ(Run({"export", "--table", "Things", "-o", out}).code, ExitCode::kOk);
  EXPECT_FALSE(std::filesystem::exists(partial));
}

TEST_F(ExportCommandTest, AFileThatSomebodyElseCalledPartialIsLeftAlone) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  const std::string download = Write("out.csv.partial", "half of it");
  EXPECT_EQ(Run({"export", "--table", "Things", "-o", directory_ + "/out.csv"}).code, ExitCode::kOk);
  EXPECT_EQ(Read(download), "half of it");
}

// Puts another file in the place of the one that is being written, when it is asked whether to stop.
class ReplacingInterrupts final : public InterruptSource {
 public:
  explicit ReplacingInterrupts(std::string path) : path_(std::move(path)) {}
  bool Requested() override {
    if (std::filesystem::remove(path_)) std::ofstream(path_) << "of somebody else\n";
    return false;
  }

 private:
  const std::string path_;
};

TEST_F(ExportCommandTest, WhatTookThePlaceOfItsFileIsNotPassedOffAsWhole) {
  std::string records;
  for (int i = 0; i < 1500; ++i)  // More than a page.
    records += R"({"PartitionKey":"p","RowKey":")" + std::to_string(i) + "\"}\n";
  ASSERT_EQ(Run({"import", Write("in.jsonl", records), "--table", "Things", "--create"}).code, ExitCode::kOk);
  const std::string out = directory_ + "/out.jsonl";
  std::ostringstream told, err;
  ReplacingInterrupts interrupts(out + ".partita-partial");
  Console console{.out = told, .err = err, .interrupts = interrupts};
  const ExitCode code = RunCommandLine({"export", "--table", "Things", "-o", out, "--data", store_,
                                        "--memory", "64M", "--shards", "1", "--io", "threads"},
                                       console);
  EXPECT_EQ(code, ExitCode::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("was removed or replaced"));
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(Read(out + ".partita-partial"), "of somebody else\n");
}

TEST_F(ExportCommandTest, WritesToTheConsoleWhenNoFileIsNamed) {
  ASSERT_EQ(Run({"import", Write("in.jsonl", AwkwardRecords()), "--table", "Things", "--create"}).code,
            ExitCode::kOk);
  EXPECT_THAT(Run({"export", "--table", "Things", "--format", "csv"}).out, HasSubstr("PartitionKey,RowKey"));
}

TEST_F(ExportCommandTest, LeavesNoFileWhenItIsInterrupted) {
  ASSERT_EQ(Run({"import", Write("in.jsonl", AwkwardRecords()), "--table", "Things", "--create"}).code,
            ExitCode::kOk);
  const std::string out = directory_ + "/out.csv";
  const CommandOutcome stopped = Run({"export", "--table", "Things", "-o", out}, /*interrupt_after=*/2);
  EXPECT_EQ(stopped.code, ExitCode::kFailed);
  EXPECT_THAT(stopped.err, HasSubstr("interrupted"));
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(out + ".partita-partial"));
}

TEST_F(ExportCommandTest, HowMuchWentOutBeforeAnInterruptIsTold) {
  std::string records;
  for (int i = 0; i < 1500; ++i)  // More than a page.
    records += R"({"PartitionKey":"p","RowKey":")" + std::to_string(i) + "\"}\n";
  ASSERT_EQ(Run({"import", Write("in.jsonl", records), "--table", "Things", "--create"}).code, ExitCode::kOk);
  const CommandOutcome shown = Run({"export", "--table", "Things"}, /*interrupt_after=*/2);
  EXPECT_EQ(shown.code, ExitCode::kFailed);
  EXPECT_EQ(std::count(shown.out.begin(), shown.out.end(), '\n'), 1000);
  EXPECT_THAT(shown.err, HasSubstr("interrupted; 1,000 records were written, the rest was not"));
  const std::string out = directory_ + "/out.jsonl";
  const CommandOutcome file = Run({"export", "--table", "Things", "-o", out}, /*interrupt_after=*/2);
  EXPECT_THAT(file.err, HasSubstr("interrupted; nothing was exported"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(ExportCommandTest, SaysWhyAFileCannotBeWritten) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  const CommandOutcome failed = Run({"export", "--table", "Things", "-o", directory_ + "/none/out.jsonl"});
  EXPECT_EQ(failed.code, ExitCode::kFailed);
  EXPECT_THAT(failed.err, AllOf(HasSubstr("none/out.jsonl"), HasSubstr("No such file")));
}

TEST_F(ExportCommandTest, WhereALinkLeadsToIsWrittenAndTheLinkStays) {
  ASSERT_EQ(Run({"import", Write("in.jsonl", AwkwardRecords()), "--table", "Things", "--create"}).code,
            ExitCode::kOk);
  std::filesystem::create_directory(directory_ + "/real");
  Write("real/there.jsonl", "old");
  for (const char* name : {"there.jsonl", "not-yet.jsonl"}) {
    const std::string link = directory_ + "/" + name;
    std::filesystem::create_symlink(std::string("real/") + name, link + ".second");
    std::filesystem::create_symlink(link + ".second", link);
    const CommandOutcome exported = Run({"export", "--table", "Things", "-o", link});
    EXPECT_EQ(exported.code, ExitCode::kOk) << exported.err;
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_TRUE(std::filesystem::is_symlink(link + ".second"));
    EXPECT_EQ(WithoutTimestamps(Read(directory_ + "/real/" + name)), WithoutTimestamps(AwkwardRecords()));
    EXPECT_FALSE(std::filesystem::exists(directory_ + "/real/" + name + ".partita-partial"));
  }
}

// /dev/stdout, redirected to a file: what is in it stays, and it is not replaced behind who has it open.
TEST_F(ExportCommandTest, WhatSomebodyHasOpenIsAppendedTo) {
  ASSERT_EQ(Run({"import", Write("in.jsonl", AwkwardRecords()), "--table", "Things", "--create"}).code,
            ExitCode::kOk);
  const std::string file = Write("all.jsonl", "head\n");
  const int open = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_GE(open, 0);
  const std::string name = "/proc/self/fd/" + std::to_string(open);
  for (int i = 0; i < 2; ++i) {
    const CommandOutcome exported = Run({"export", "--table", "Things", "-o", name});
    EXPECT_EQ(exported.code, ExitCode::kOk) << exported.err;
  }
  ::close(open);
  const std::string text = Read(file);
  ASSERT_TRUE(text.starts_with("head\n")) << text;
  EXPECT_EQ(WithoutTimestamps(text.substr(5)), WithoutTimestamps(AwkwardRecords() + AwkwardRecords()));
}

// By links: nobody may make a device of his own. What would replace them would, run as root, replace the real
// ones.
TEST_F(ExportCommandTest, ADeviceIsWrittenToAndStays) {
  ASSERT_EQ(Run({"import", Write("in.jsonl", AwkwardRecords()), "--table", "Things", "--create"}).code,
            ExitCode::kOk);
  const std::string null = directory_ + "/null", full = directory_ + "/full";
  std::filesystem::create_symlink("/dev/null", null);
  std::filesystem::create_symlink("/dev/full", full);
  const CommandOutcome swallowed = Run({"export", "--table", "Things", "-o", null});
  EXPECT_EQ(swallowed.code, ExitCode::kOk) << swallowed.err;
  EXPECT_TRUE(std::filesystem::is_character_file(null));
  const CommandOutcome refused = Run({"export", "--table", "Things", "-o", full});
  EXPECT_EQ(refused.code, ExitCode::kFailed);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(full), HasSubstr("No space left")));
  EXPECT_TRUE(std::filesystem::is_character_file(full));
  EXPECT_FALSE(std::filesystem::exists(null + ".partita-partial"));
}

TEST_F(ExportCommandTest, APipeIsWrittenToAndStays) {
  ASSERT_EQ(Run({"import", Write("in.jsonl", AwkwardRecords()), "--table", "Things", "--create"}).code,
            ExitCode::kOk);
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);  // Nobody waits for the other.
  ASSERT_GE(reader, 0);
  const CommandOutcome exported = Run({"export", "--table", "Things", "-o", pipe});
  EXPECT_EQ(exported.code, ExitCode::kOk) << exported.err;
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  char text[4096];
  const ssize_t size = ::read(reader, text, sizeof text);
  ::close(reader);
  ASSERT_GT(size, 0);
  EXPECT_EQ(WithoutTimestamps(std::string(text, static_cast<size_t>(size))),
            WithoutTimestamps(AwkwardRecords()));
}

TEST_F(ExportCommandTest, WhatCanBeNoFileIsRefused) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  const std::string loop = directory_ + "/loop";
  std::filesystem::create_symlink(loop, loop);
  const CommandOutcome endless = Run({"export", "--table", "Things", "-o", loop});
  EXPECT_EQ(endless.code, ExitCode::kFailed);
  EXPECT_THAT(endless.err, AllOf(HasSubstr(loop), HasSubstr("symbolic links")));
  const CommandOutcome directory = Run({"export", "--table", "Things", "-o", directory_});
  EXPECT_EQ(directory.code, ExitCode::kUsage);
  EXPECT_THAT(directory.err, HasSubstr("is a directory; name a file"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + ".partita-partial"));
}

TEST_F(ExportCommandTest, AnEndingThatTellsNoFormatGivesJsonLines) {
  ASSERT_EQ(Run({"import", Write("in.jsonl", AwkwardRecords()), "--table", "Things", "--create"}).code,
            ExitCode::kOk);
  const std::string out = directory_ + "/out.txt";
  const CommandOutcome exported = Run({"export", "--table", "Things", "-o", out});
  EXPECT_EQ(exported.code, ExitCode::kOk) << exported.err;
  EXPECT_EQ(WithoutTimestamps(Read(out)), WithoutTimestamps(AwkwardRecords()));
  EXPECT_THAT(exported.err, HasSubstr("the ending of '" + out + "' tells no format: it has JSON lines"));
  EXPECT_THAT(RunAsGiven({"export", "--help"}).out, HasSubstr("else jsonl"));
  const CommandOutcome bare = Run({"export", "--table", "Things", "-o", directory_ + "/out"});
  EXPECT_THAT(bare.err, Not(HasSubstr("tells no format")));
}

TEST_F(ExportCommandTest, EndingsTellTheFormatInLettersOfEitherCase) {
  EXPECT_EQ(*ChooseExportFormat("", "X.CSV"), RecordFormat::kCsv);
  EXPECT_EQ(*ChooseFormat("", "in.Csv"), RecordFormat::kCsv);
  EXPECT_EQ(*ChooseFormat("", "in.JSONL"), RecordFormat::kJsonLines);
  EXPECT_EQ(ChooseFormat("", "csv").code(), Code::kInvalidArgument);
}

TEST_F(ExportCommandTest, AFormatThatIsOnlyReadIsNotOffered) {
  const Result<RecordFormat> format = ChooseExportFormat("debian", "out.jsonl");
  EXPECT_EQ(format.code(), Code::kInvalidArgument);
  EXPECT_THAT(format.status().message(), HasSubstr("none of jsonl and csv"));
}

}  // namespace
}  // namespace partita

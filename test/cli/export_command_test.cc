#include <random>
#include <sstream>

#include "api/cli/jsonl.h"
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
  EXPECT_FALSE(std::filesystem::exists(out + ".partial"));
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
  EXPECT_FALSE(std::filesystem::exists(out + ".partial"));
}

TEST_F(ExportCommandTest, SaysWhyAFileCannotBeWritten) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  const CommandOutcome failed = Run({"export", "--table", "Things", "-o", directory_ + "/none/out.jsonl"});
  EXPECT_EQ(failed.code, ExitCode::kFailed);
  EXPECT_THAT(failed.err, AllOf(HasSubstr("none/out.jsonl"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace partita

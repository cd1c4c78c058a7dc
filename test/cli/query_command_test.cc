#include "test/cli/command_fixture.h"

// partita query: entities, plans, values.

namespace partita {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class QueryCommandTest : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    std::string text;
    for (int i = 0; i < 150; ++i) {
      const std::string number = std::to_string(1000 + i);
      text += R"({"PartitionKey":"p","RowKey":")" + number + R"(","N":)" + std::to_string(i);
      text += R"(,"Half":)" + std::to_string(i / 2) + (i % 2 == 0 ? ".0" : ".5") + R"(,"Name":"no )" + number;
      text += "\"}\n";
    }
    const CommandOutcome made = Run({"import", Write("things.jsonl", text), "--table", "Things", "--create"});
    ASSERT_EQ(made.code, ExitCode::kOk) << made.err;
  }
};

TEST_F(QueryCommandTest, ShowsWhatMatchesAsJsonLines) {
  const CommandOutcome outcome =
      Run({"query", "Things", "PartitionKey eq 'p' and N ge 148", "--select", "N,Name"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(StartsWith(R"({"PartitionKey":"p","RowKey":"1148",)"),
                                 HasSubstr(R"("N":149,"Name":"no 1149"})"), Not(HasSubstr("Half"))));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(QueryCommandTest, AFilterBehindAListOfNamesIsAFilter) {
  const CommandOutcome selected = Run({"query", "Things", "--select", "N,Name", "N ge 148"});
  EXPECT_EQ(selected.code, ExitCode::kOk) << selected.err;
  EXPECT_EQ(std::count(selected.out.begin(), selected.out.end(), '\n'), 2);
  // An empty one takes no next word either.
  const CommandOutcome none = Run({"query", "Things", "--select=", "N ge 148"});
  EXPECT_EQ(none.code, ExitCode::kUsage);
  EXPECT_THAT(none.err, HasSubstr("--select has an empty value"));
  const CommandOutcome summed = Run({"query", "--count", "--sum", "N", "--max", "N", "Things", "N ge 148"});
  EXPECT_EQ(summed.code, ExitCode::kOk) << summed.err;
  EXPECT_THAT(summed.out, AllOf(HasSubstr("297"), HasSubstr("149")));
}

TEST_F(QueryCommandTest, SaysWhenThereIsMore) {
  const CommandOutcome first = Run({"query", "Things"});
  EXPECT_EQ(std::count(first.out.begin(), first.out.end(), '\n'), 100);
  EXPECT_THAT(first.err, HasSubstr("there may be more; --top N"));
  const CommandOutcome all = Run({"query", "Things", "--top", "0"});
  EXPECT_EQ(std::count(all.out.begin(), all.out.end(), '\n'), 150);
  EXPECT_EQ(all.err, "");
}

TEST_F(QueryCommandTest, ReverseBeginsWithTheLastKey) {
  const CommandOutcome outcome = Run({"query", "Things", "N lt 3", "--reverse", "--format", "csv"});
  EXPECT_EQ(outcome.out,
            "PartitionKey,RowKey,N,N@type,Half,Half@type,Name\r\n"
            "p,1002,2,Edm.Int32,1.0,Edm.Double,no 1002\r\n"
            "p,1001,1,Edm.Int32,0.5,Edm.Double,no 1001\r\n"
            "p,1000,0,Edm.Int32,0.0,Edm.Double,no 1000\r\n");
}

TEST_F(QueryCommandTest, ATimestampThatIsAskedForIsShown) {
  const CommandOutcome csv = Run({"query", "Things", "N eq 3", "--select", "Timestamp,N", "--format", "csv"});
  EXPECT_THAT(csv.out, MatchesRegex("PartitionKey,RowKey,Timestamp,N,N@type\r\n"
                                    "p,1003,20[0-9]+-[0-9]+-[0-9]+T[0-9:.]+Z,3,Edm.Int32\r\n"));
  // Which readers pass over.
  EXPECT_EQ(Run({"import", Write("with.csv", csv.out), "--table", "With", "--create"}).code, ExitCode::kOk);
  const CommandOutcome table =
      Run({"query", "Things", "N eq 3", "--select", "N,Timestamp", "--format", "table"});
  EXPECT_THAT(table.out, MatchesRegex("PartitionKey  RowKey  N  Timestamp\n[- ]+\n"
                                      "p             1003    3  20[0-9]+-[0-9]+-[0-9]+T[0-9:.]+Z\n"));
}

TEST_F(QueryCommandTest, ANumberThatBeginsWithZeroIsDecimal) {
  const CommandOutcome ten = Run({"query", "Things", "--top", "010"});
  EXPECT_EQ(std::count(ten.out.begin(), ten.out.end(), '\n'), 10) << ten.err;
}

TEST_F(QueryCommandTest, PrintsATableForPeople) {
  ASSERT_EQ(Run({"put", "Things", R"({"PartitionKey":"q","RowKey":"\u00fc","Name":"one\ntwo"})"}).code,
            ExitCode::kOk);
  const CommandOutcome outcome =
      Run({"query", "Things", "N eq 7 or PartitionKey eq 'q'", "--select", "Name,N", "--format", "table"});
  EXPECT_EQ(outcome.out,
            "PartitionKey  RowKey  Name        N\n"
            "------------  ------  ----------  -\n"
            "p             1007    no 1007     7\n"
            "q             \u00fc       one\\x0atwo\n");
  const CommandOutcome too_many = Run({"query", "Things", "--format", "table", "--top", "0"});
  EXPECT_EQ(too_many.code, ExitCode::kUsage);
  EXPECT_THAT(too_many.err, HasSubstr("--format csv"));
}

TEST_F(QueryCommandTest, ACellIsCutBetweenCharacters) {
  const auto cell_of = [this](const std::string& name) {
    EXPECT_EQ(Run({"put", "Things", R"({"PartitionKey":"q","RowKey":"r","Name":")" + name + "\"}"}).code,
              ExitCode::kOk);
    const std::string out = Run({"query", "Things", "PartitionKey eq 'q'", "--format", "table"}).out;
    const std::string last = out.substr(out.rfind('\n', out.size() - 2) + 1);
    return last.substr(22, last.size() - 23);  // Behind the keys.
  };
  const auto repeated = [](int times, const std::string& character) {
    std::string text;
    for (int i = 0; i < times; ++i) text += character;
    return text;
  };
  for (const char* character : {"x", "\u00fc", "\U0001F600"}) {
    EXPECT_EQ(cell_of(repeated(40, character)), repeated(40, character));
    EXPECT_EQ(cell_of(repeated(41, character)), repeated(39, character) + "\u2026");
    EXPECT_EQ(cell_of(repeated(500, character)), repeated(39, character) + "\u2026");
  }
}

TEST_F(QueryCommandTest, ANumberIsAskedForInOurWords) {
  for (const std::string option : {"--top", "--limit"}) {
    const std::string command = option == "--top" ? "query" : "scan";
    for (const char* value : {"-1", "abc", "1.5", "1e3", "99999999999999999999", "0x10"}) {
      const CommandOutcome outcome = Run({command, "Things", option + "=" + value});
      EXPECT_EQ(outcome.code, ExitCode::kUsage);
      EXPECT_THAT(outcome.err, HasSubstr(option + ": takes a whole number, 0 or more, not '" + value + "'"));
    }
  }
  EXPECT_EQ(Run({"scan", "Things", "--limit", "-1"}).code, ExitCode::kUsage);
  EXPECT_EQ(Run({"query", "Things", "--top", "18446744073709551615"}).code, ExitCode::kOk);
}

TEST_F(QueryCommandTest, ExplainTellsPlanAndCostBesideTheAnswer) {
  const CommandOutcome outcome =
      Run({"query", "Things", "PartitionKey eq 'p' and RowKey ge '1140' and N lt 142", "--explain"});
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("plan       row-range\n"
                                            "bounds     PartitionKey eq 'p' and RowKey ge '1140'\n"
                                            "residual   N lt 142\n"
                                            "zone maps  N\n"
                                            "scanned    10 entries, 2 given (density 0.200)\n"
                                            "blocks     "),
                                 HasSubstr("\ntime       ")));
  const CommandOutcome plan = Run({"query", "Things", "PartitionKey eq 'p'", "--explain-only"});
  EXPECT_EQ(plan.out, "plan       partition\nbounds     PartitionKey eq 'p'\n");
  EXPECT_EQ(plan.err, "");
}

TEST_F(QueryCommandTest, SaysWhichValuesWerePassedOver) {
  const std::string nan =
      R"({"PartitionKey":"p","RowKey":"nan","Half":"NaN","Half@odata.type":"Edm.Double"})";
  ASSERT_EQ(Run({"import", Write("nan.jsonl", nan + "\n"), "--table", "Things"}).code, ExitCode::kOk);
  const CommandOutcome outcome =
      Run({"query", "Things", "--min", "Half", "--max", "Half", "--max", "Name", "--sum", "Name"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_EQ(outcome.err,
            "partita: min(Half): 1 values that are NaN were passed over\n"
            "partita: max(Half): 1 values that are NaN were passed over\n"
            "partita: sum(Name): 150 values of other types were passed over\n");
}

TEST_F(QueryCommandTest, GivesSeveralValuesInOnePass) {
  const CommandOutcome outcome = Run({"query", "Things", "N ge 100", "--count", "--sum", "N", "--sum", "Half",
                                      "--min", "RowKey", "--max", "Name", "--sum", "Name"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_EQ(
      outcome.out,
      "count  50\nmin(RowKey)  1100\nmax(Name)  no 1149\nsum(N)  6225\nsum(Half)  3112.5\nsum(Name)  none\n");
  EXPECT_THAT(outcome.err, HasSubstr("sum(Name): 50 values of other types were passed over"));
  EXPECT_EQ(Run({"query", "Things", "--count"}).out, "150\n");
  EXPECT_EQ(Run({"query", "Things", "N lt 2", "--count", "--max", "Half", "--json"}).out,
            "{\"count@odata.type\":\"Edm.Int64\",\"count\":\"2\",\"max(Half)\":0.5}\n");
}

TEST_F(QueryCommandTest, ErrorsSayWhatToDo) {
  const CommandOutcome syntax = Run({"query", "Things", "N eq and"});
  EXPECT_EQ(syntax.code, ExitCode::kUsage);
  EXPECT_THAT(syntax.err, AllOf(HasSubstr("filter: "), HasSubstr("position")));
  EXPECT_EQ(Run({"query", "Things", "substringof('a',Name)"}).code, ExitCode::kUsage);
  const CommandOutcome mixed = Run({"query", "Things", "--count", "--top", "5"});
  EXPECT_EQ(mixed.code, ExitCode::kUsage);
  EXPECT_THAT(mixed.err, HasSubstr("leave out"));
  const CommandOutcome missing = Run({"query", "Nothing"});
  EXPECT_EQ(missing.code, ExitCode::kFindings);
  EXPECT_THAT(missing.err, HasSubstr("Things"));
}

TEST_F(QueryCommandTest, CanBeInterrupted) {
  EXPECT_EQ(Run({"query", "Things"}, /*interrupt_after=*/0).code, ExitCode::kFailed);
}

TEST_F(QueryCommandTest, HelpTeachesByExample) {
  const CommandOutcome help = RunAsGiven({"query", "--help"});
  EXPECT_EQ(help.code, ExitCode::kOk);
  EXPECT_THAT(help.out, AllOf(HasSubstr("PartitionKey eq 'anna' and Total gt 100.0"),
                              HasSubstr("--sum Total"), HasSubstr("datetime'2026-01-31T00:00:00Z'")));
}

}  // namespace
}  // namespace partita

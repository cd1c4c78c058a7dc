#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "bench/lab/explain.h"
#include "bench/lab/imported_records.h"
#include "bench/lab/operation_stream.h"
#include "bench/lab/run.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOrders =
    "Customer Id,Total,Placed,Note\r\n"
    "007,12.5,2026-01-31T12:00:00Z,\"a \"\"good\"\" one,\r\nin two lines\"\r\n"
    "008,3,2026-02-01T00:00:00Z,\r\n"
    "007,1000.0,2026-02-02T00:00:00.5Z,é\r\n";

class ImportTest : public LabCommandTest {
 protected:
  std::string WriteExperiment(const std::string& data, const std::string& keys = kKeys,
                              const std::string& ops = kReads) const {
    return Write("x.toml", "name = \"own\"\nrepeats = 1\n[data]\n" + data + ops +
                               "[[layout]]\nname = \"one\"\n" + keys +
                               "[arrival]\nrate = 50\nwarmup = \"0s\"\nduration = \"200ms\"\nclients = 2\n");
  }
  // What is wrong with the experiment in x.toml.
  std::string Findings() const {
    const Result<ExperimentFile> file = ReadExperimentFile(directory_ + "/x.toml");
    EXPECT_TRUE(file.ok());
    return FindingsText("x.toml", file->findings);
  }
  Experiment Sound() const {
    Result<ExperimentFile> file = ReadExperimentFile(directory_ + "/x.toml");
    EXPECT_EQ(FindingsText("x.toml", file->findings), "");
    return std::move(file->experiment);
  }
  uint64_t HashNow() const {
    const Experiment experiment = Sound();
    return HashOfStream(RecordGenerator(experiment), 100);
  }

  static constexpr const char* kKeys = "pk = \"{Customer_Id}\"\nrk = \"{Placed}\"\n";
  static constexpr const char* kReads = "[[op]]\nname = \"read\"\nkind = \"get\"\n";
};

TEST_F(ImportTest, CsvGivesRecordsWithTheNarrowestTypes) {
  Write("orders.csv", kOrders);
  WriteExperiment("import = \"orders.csv\"\n");
  const Experiment experiment = Sound();
  EXPECT_EQ(experiment.records, 3u);
  ASSERT_EQ(experiment.fields.size(), 4u);
  Record record;
  const RecordGenerator generator(experiment);
  generator.Make(0, &record);
  EXPECT_EQ(record.values[0], PropertyValue("007")) << "a zero in front is no number's";
  EXPECT_EQ(record.values[1], PropertyValue(12.5));
  EXPECT_EQ(record.values[2].type(), PropertyType::kDateTime);
  EXPECT_EQ(record.values[3], PropertyValue("a \"good\" one,\r\nin two lines"));
  generator.Make(1, &record);
  EXPECT_EQ(record.values[1], PropertyValue(3.0));
  EXPECT_EQ(record.values[3], PropertyValue(""));
  generator.Make(3 + 2, &record);
  EXPECT_EQ(record.values[3], PropertyValue("é")) << "behind the last row they come again";
}

TEST_F(ImportTest, RowsThatInsertsWillTakeAreCheckedAsThoseThatAreLoaded) {
  const std::string keys = "pk = \"{cust}\"\nrk = \"{id}\"\n",
                    add = "[[op]]\nname = \"add\"\nkind = \"insert\"\n";
  const auto findings = [&](const std::string& third, const std::string& ops) {
    // Ten inserts take all rows behind the first.
    std::string rows = "id,cust\n";
    for (int i = 0; i < 12; ++i) rows += i == 2 ? third : "k" + std::to_string(i) + ",c\n";
    Write("rows.csv", rows);
    WriteExperiment("import = \"rows.csv\"\nrecords = 1\n", keys, ops);
    return Findings();
  };
  EXPECT_EQ(findings("k2,c\n", add), "");
  EXPECT_THAT(findings("k1,c\n", add), HasSubstr("records 1 and 2 have the same keys"));
  EXPECT_THAT(findings(std::string(600, 'k') + ",c\n", add), HasSubstr("(record 2)"));
  EXPECT_EQ(findings("k1,c\n", kReads), "") << "which nobody takes";
}

TEST_F(ImportTest, WhatWouldLoseDigitsIsAText) {
  Write("ids.csv",
        "long,form,kept,small,whole,at\n"
        "12345678901234567890,12e45,12.50,1.5e-07,7,2026-01-31T12:00:00Z\n"
        "12345678901234567891,1e3,100000000000000000000,-2.5E+22,-3,2026-01-31T12:00:00.123456789Z\n");
  WriteExperiment("import = \"ids.csv\"\n", "pk = \"{long}\"\nrk = \"{form}\"\n");
  const Experiment experiment = Sound();
  Record record;
  RecordGenerator(experiment).Make(1, &record);
  EXPECT_EQ(record.values[0], PropertyValue("12345678901234567891"));
  EXPECT_EQ(record.values[1], PropertyValue("1e3"));
  EXPECT_EQ(record.values[2], PropertyValue(1e20)) << "no digit of it is lost";
  EXPECT_EQ(record.values[3], PropertyValue(-2.5e22)) << "as programs write such numbers";
  EXPECT_EQ(record.values[4], PropertyValue(int64_t{-3}));
  EXPECT_EQ(record.values[5], PropertyValue("2026-01-31T12:00:00.123456789Z")) << "a DateTime holds 100 ns";
  Write("ids.jsonl", "{\"id\":12345678901234567890,\"n\":1e3}\n{\"id\":5,\"n\":2.5}\n");
  WriteExperiment("import = \"ids.jsonl\"\n", "pk = \"{id}\"\nrk = \"\"\n");
  const Experiment lines = Sound();
  RecordGenerator(lines).Make(0, &record);
  EXPECT_EQ(record.values[0], PropertyValue("12345678901234567890"));
  EXPECT_EQ(record.values[1], PropertyValue(1000.0)) << "JSON knows numbers from texts";
}

// Each was held against each.
TEST_F(ImportTest, OfMoreColumnsThanAnEntityHasPropertiesTheFieldsAreToBeListed) {
  std::string header, members;
  for (int i = 0; i < 200'000; ++i) {
    header += (i == 0 ? "c" : ",c") + std::to_string(i);
    members += (i == 0 ? "\"c" : ",\"c") + std::to_string(i) + "\":1";
  }
  Write("wide.csv", header + "\n");
  Write("wide.jsonl", "{" + members + "}\n");
  for (const char* file : {"wide.csv", "wide.jsonl"}) {
    WriteExperiment("import = \"" + std::string(file) + "\"\n");
    EXPECT_THAT(Findings(), HasSubstr("has 200000 columns, and an entity at most 252 properties"));
  }
  Write("twice.csv", "b,a,c,a\n");
  WriteExperiment("import = \"twice.csv\"\n");
  EXPECT_THAT(Findings(), HasSubstr("column \"a\" stands twice"));
}

TEST_F(ImportTest, WhatIsNoPlainFileIsRefusedAndNamed) {
  ASSERT_EQ(mkfifo((directory_ + "/pipe.csv").c_str(), 0600), 0);
  for (const auto& [path, kind] : std::vector<std::pair<std::string, std::string>>{
           {directory_ + "/pipe.csv", "a FIFO"}, {"/dev/zero", "a device"}, {directory_, "a directory"}}) {
    WriteExperiment("import = \"" + path + "\"\nformat = \"csv\"\n");
    EXPECT_THAT(Findings(), HasSubstr(path + ": is " + kind + "; rows are read from a plain file"));
  }
}

TEST_F(ImportTest, AZeroWithTheLeastExponentIsAText) {
  Write("zeros.csv", "id,zero\na,0.0e-9223372036854775808\n");
  WriteExperiment("import = \"zeros.csv\"\n", "pk = \"{id}\"\nrk = \"\"\n");
  const Experiment experiment = Sound();
  Record record;
  RecordGenerator(experiment).Make(0, &record);
  EXPECT_EQ(record.values[1], PropertyValue("0.0e-9223372036854775808"));
}

TEST_F(ImportTest, TypesOfTheFileAreTaken) {
  Write(
      "azcopy.csv",
      "PartitionKey,RowKey,Timestamp,Age,Age@type,Id,Id@type,On,On@type\n"
      "p,1,2026-01-31T12:00:00Z,42,Edm.Int32,c9da6455-213d-42c9-9a79-3e9149a57833,Edm.Guid,true,Edm.Boolean\n"
      "p,2,2026-01-31T12:00:00Z,7,Edm.Int32,c9da6455-213d-42c9-9a79-3e9149a57834,Edm.Guid,false,Edm."
      "Boolean\n");
  WriteExperiment(
      "import = \"azcopy.csv\"\n", "pk = \"{PartitionKey_}\"\nrk = \"{Age:03}-{On}\"\n",
      "[[op]]\nname = \"on\"\nkind = \"query\"\nwhere = { On = true, Age = 42, Id = \"@record\" }\n");
  const Experiment experiment = Sound();
  Record record;
  RecordGenerator(experiment).Make(0, &record);
  EXPECT_EQ(experiment.layouts[0].entities[0].row_key.Of(record), "042-true");
  EXPECT_EQ(record.values[3], PropertyValue(int32_t{42}));
  EXPECT_EQ(record.values[4].type(), PropertyType::kGuid);
  EXPECT_THAT(Predict(RecordGenerator(experiment)).layouts[0].ops[0].filter,
              AllOf(HasSubstr("On eq true"), HasSubstr("Id eq guid'c9da6455")));
}

TEST_F(ImportTest, ARangeOfNarrowNumbersInAKeyEndsBelowItsUpperEnd) {
  Write("people.csv", "Id,Age,Age@type\n1,39,Edm.Int32\n2,40,Edm.Int32\n3,30,Edm.Int32\n");
  WriteExperiment(
      "import = \"people.csv\"\n", "pk = \"all\"\nrk = \"{Age:03}-{Id}\"\n",
      "[[op]]\nname = \"thirties\"\nkind = \"query\"\nwhere = { Age = { from = 30, to = 40 } }\n");
  const OpPrediction told = Predict(RecordGenerator(Sound())).layouts[0].ops[0];
  EXPECT_EQ(told.filter, "PartitionKey eq 'all' and RowKey ge '030' and RowKey lt '03:'");
  EXPECT_EQ(told.returned, 2);
}

TEST_F(ImportTest, JsonLinesOfOurExportAreRead) {
  Write("rows.jsonl",
        "{\"PartitionKey\":\"p\",\"Big@odata.type\":\"Edm.Int64\",\"Big\":\"12345678901\",\"N\":3,\"S\":"
        "\"7\"}\n\n"
        "{\"S\":\"\\u00e9\\n\",\"N\":-4,\"Big\":\"5\",\"Big@odata.type\":\"Edm.Int64\",\"PartitionKey\":"
        "\"p\"}\n");
  WriteExperiment(
      "import = \"rows.jsonl\"\n[data.fields]\nbig = { column = \"Big\" }\nn = { column = \"N\" }\n"
      "text = { column = \"S\" }\nseen = { dist = \"clock\" }\n",
      "pk = \"{n}\"\nrk = \"{big}\"\n");
  const Experiment experiment = Sound();
  Record record;
  RecordGenerator(experiment).Make(1, &record);
  EXPECT_EQ(record.values[0], PropertyValue(int64_t{5}));
  EXPECT_EQ(record.values[1], PropertyValue(int64_t{-4}));
  EXPECT_EQ(record.values[2].type(), PropertyType::kDateTime) << "what is not in the file is generated";
  EXPECT_EQ(record.values[3], PropertyValue("é\n")) << "a JSON text is no number, whatever its digits";
}

TEST_F(ImportTest, ATraceWithoutHeaderIsMappedByNumberOfItsTimes) {
  Write("trace.csv", "0;key-1;get\n1500;key-2;set\n");
  WriteExperiment(
      "import = \"trace.csv\"\nseparator = \";\"\ncolumns = [\"at\", \"key\", \"op\"]\n[data.fields]\n"
      "at = { column = \"at\", epoch = \"ms\" }\nkey = { column = \"key\" }\n",
      "pk = \"{key}\"\nrk = \"{at:%H%M%S.%f}\"\n");
  const Experiment experiment = Sound();
  Record record;
  RecordGenerator(experiment).Make(1, &record);
  EXPECT_EQ(experiment.layouts[0].entities[0].row_key.Of(record), "000001.5000000");
}

TEST_F(ImportTest, BadRowsAreToldWithFileLineColumnAndRule) {
  Write("orders.csv",
        "id,total,at\n1,2.5,2026-01-01T00:00:00Z\n2,\"2,5\",yesterday\n3,,2026-01-01T00:00:00Z\n4,1\n");
  WriteExperiment(
      "import = \"orders.csv\"\n[data.fields]\nid = { column = \"id\" }\n"
      "total = { column = \"total\", type = \"Double\" }\nat = { column = \"at\", type = \"DateTime\" }\n",
      "pk = \"{id}\"\nrk = \"\"\n");
  EXPECT_THAT(Findings(),
              AllOf(HasSubstr("orders.csv:3: column \"total\": \"2,5\" is no Edm.Double"),
                    HasSubstr("orders.csv:3: column \"at\": DateTime \"yesterday\" is not YYYY-MM-DD"),
                    HasSubstr("orders.csv:4: column \"total\": has no value"),
                    HasSubstr("orders.csv:5: the row has 2 fields, there are 3 columns")));
  WriteExperiment("import = \"orders.csv\"\nrows = 1\n[data.fields]\nid = { column = \"idd\" }\n",
                  "pk = \"{id}\"\nrk = \"\"\n");
  EXPECT_THAT(Findings(), HasSubstr("has no column \"idd\"; did you mean id?"));
  WriteExperiment("import = \"none.csv\"\n");
  EXPECT_THAT(Findings(), HasSubstr("none.csv: No such file"));
}

TEST_F(ImportTest, WhatIsMissingCanBeGiven) {
  Write("rows.jsonl", "{\"id\":\"a\",\"n\":1}\n{\"id\":\"b\"}\n");
  const auto with = [&](const std::string& more) {
    WriteExperiment(
        "import = \"rows.jsonl\"\n[data.fields]\nid = { column = \"id\" }\n"
        "n = { column = \"n\", type = \"Int64\"" +
            more + " }\n",
        "pk = \"{id}\"\nrk = \"{n}\"\n");
  };
  with("");
  EXPECT_THAT(Findings(), HasSubstr("rows.jsonl:2: column \"n\": has no value"));
  with(", missing = -1");
  const Experiment experiment = Sound();
  Record record;
  RecordGenerator(experiment).Make(1, &record);
  EXPECT_EQ(record.values[1], PropertyValue(int64_t{-1}));
  WriteExperiment(
      "import = \"rows.jsonl\"\n[data.fields]\nid = { column = \"id\" }\n"
      "n = { column = \"n\", type = \"Double\", missing = nan }\n",
      "pk = \"{id}\"\nrk = \"\"\n");
  EXPECT_THAT(Findings(), HasSubstr("is no finite number")) << "which no answer in JSON has";
}

TEST_F(ImportTest, AMemberThatTheFirstRowLacksIsNotDroppedInSilence) {
  Write("rows.jsonl",
        "{\"id\":\"a\",\"n\":1}\n{\"id\":\"b\",\"n\":2,\"odata.etag\":\"x\",\"none\":null}\n"
        "{\"id\":\"c\",\"n\":3,\"Total@odata.type\":\"Edm.Int64\",\"Total\":\"7\"}\n");
  const std::string keys = "pk = \"{id}\"\nrk = \"{n}\"\n";
  WriteExperiment("import = \"rows.jsonl\"\n", keys);
  EXPECT_THAT(Findings(), AllOf(HasSubstr("rows.jsonl:3: member \"Total\" is not in the first row"),
                                HasSubstr("list the fields"), Not(HasSubstr("rows.jsonl:2"))));
  // Who lists them has chosen.
  WriteExperiment(
      "import = \"rows.jsonl\"\n[data.fields]\nid = { column = \"id\" }\nn = { column = \"n\" }\n", keys);
  EXPECT_EQ(Findings(), "");
  WriteExperiment("import = \"rows.jsonl\"\nrows = 2\n", keys);
  EXPECT_EQ(Findings(), "") << "it is in no row that is read";
}

TEST_F(ImportTest, AllRowsAreAskedForOneKeyTwiceAndInsertsForRowsOfTheirOwn) {
  std::string rows = "id,n\n";
  for (int i = 0; i < 5'000; ++i) rows += std::to_string(i == 4'321 ? 1'234 : i) + ",1\n";
  Write("rows.csv", rows);
  WriteExperiment("import = \"rows.csv\"\n", "pk = \"all\"\nrk = \"{id}\"\n");
  EXPECT_THAT(Findings(), HasSubstr("records 1234 and 4321 have the same keys"));
  const std::string insert = "[[op]]\nname = \"more\"\nkind = \"insert\"\n";
  WriteExperiment("import = \"rows.csv\"\nrecords = 4000\n", "pk = \"all\"\nrk = \"{id}\"\n", insert);
  EXPECT_THAT(Findings(), Not(HasSubstr("come again")));
  WriteExperiment("import = \"rows.csv\"\nrows = 4000\n", "pk = \"all\"\nrk = \"{id}\"\n", insert);
  EXPECT_THAT(Findings(), HasSubstr("inserts need 10 more records, and the file has 0 rows behind"));
  WriteExperiment("import = \"rows.csv\"\nrows = 4000\nrecords = 3950\n", "pk = \"all\"\nrk = \"{id}\"\n",
                  insert);
  EXPECT_EQ(Findings(), "");
  WriteExperiment("import = \"rows.csv\"\nrows = 4000\nrecords = 3950\n",
                  "pk = \"all\"\nrk = \"{id}\"\n[layout.arrival]\nrate = 500\n", insert);
  EXPECT_THAT(Findings(), HasSubstr("inserts need 100 more records, and the file has 50 rows behind"))
      << "the layout has ten times the rate";
}

TEST_F(ImportTest, TheStreamHashCoversWhatIsInTheFile) {
  Write("orders.csv", kOrders);
  WriteExperiment("import = \"orders.csv\"\n");
  const uint64_t hash = HashNow();
  EXPECT_EQ(HashNow(), hash);
  Write("orders.csv", std::string(kOrders).replace(std::string(kOrders).find("12.5"), 4, "12.6"));
  EXPECT_NE(HashNow(), hash);
}

TEST_F(ImportTest, ARunFindsEveryRecord) {
  Write("orders.csv", kOrders);
  WriteExperiment(
      "import = \"orders.csv\"\n", kKeys,
      std::string(kReads) +
          "[[op]]\nname = \"recent\"\nkind = \"query\"\nwhere = { Customer_Id = \"@record\", Placed = \"last "
          "365d\" }\n[[op]]\nname = \"note\"\nkind = \"merge\"\nset = [\"Note\"]\n");
  const CommandOutcome checked = Lab({"check", directory_ + "/x.toml"});
  EXPECT_EQ(checked.code, ExitCode::kOk) << checked.err;
  const Experiment experiment = Sound();
  const Result<RunResult> result =
      RunExperiment(RecordGenerator(experiment),
                    {.directory = directory_ + "/run", .io_backend = backend_, .connection = {}},
                    [](double, double, const std::string&) { return true; });
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  for (const OpFigures& figures : result->cells[0].ops) {
    EXPECT_EQ(figures.failed + figures.missing, 0u) << figures.first_error;
    EXPECT_GT(figures.completed, 0u);
  }
  for (size_t op = 0; op < experiment.ops.size(); ++op) {
    const OpFigures& figures = result->cells[0].ops[op];
    if (experiment.ops[op].kind == OpKind::kQuery)
      EXPECT_GE(figures.returned, figures.completed) << experiment.ops[op].name;
  }
}

}  // namespace
}  // namespace partita::lab

#include <gmock/gmock-matchers.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include "bench/lab/advice.h"
#include "bench/lab/report_page.h"
#include "bench/lab/result_text.h"
#include "bench/lab/run.h"
#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A result as a run would leave it, with nothing measured but `operations` of each.
RunResult Unmeasured(const RecordGenerator& generator) {
  const Experiment& experiment = generator.experiment();
  RunResult result{.prediction = Predict(generator), .key_rows = {}, .cells = {}};
  for (size_t layout = 0; layout < experiment.layouts.size(); ++layout) {
    const KeyRows rows(experiment.layouts[layout], generator);
    result.key_rows.push_back(rows.labels());
    for (uint32_t repeat = 0; repeat < experiment.repeats; ++repeat) {
      CellFigures cell{.layout = layout, .repeat = repeat, .ops = {}, .seconds = {}, .timeline = {}};
      cell.ops.resize(experiment.ops.size());
      cell.timeline = Timeline(1, rows.labels().size());
      for (int column = 0; column < 10; ++column) cell.timeline.Due(0.1 * column);
      cell.measured_s = 1;
      result.cells.push_back(std::move(cell));
    }
  }
  return result;
}

std::vector<std::string> TextsFor(const std::string& layouts) {
  const Experiment experiment = ParseSound(ReadingsText(layouts));
  const RecordGenerator generator(experiment);
  std::vector<std::string> texts;
  for (const Advice& advice : AdviceOn(experiment, Unmeasured(generator))) texts.push_back(advice.text);
  return texts;
}

TEST(AdviceTest, ToldIsHowToSpreadAHotPartition) {
  Experiment experiment = ParseSound(ReadingsText(R"(
[[layout]]
name = "one"
pk = "all"
rk = "{device}_{ticks(ts)}"
[limits]
profile = "storage"
)"));
  experiment.ops.resize(1);  // It only writes.
  experiment.arrival.warmup_s = 10;
  const RecordGenerator generator(experiment);
  EXPECT_THAT(AdviceOn(experiment, Unmeasured(generator)),
              ElementsAre(Field(&Advice::text, AllOf(HasSubstr("Partition \"all\" is asked for 5000 units"),
                                                     HasSubstr("{hash(ts) % 5}")))));
}

// Readings on one layout, of which most operations write.
std::vector<std::string> TextsOfWriters(const std::string& layout, const std::string& profile) {
  Experiment experiment = ParseSound(ReadingsText(layout + "[limits]\nprofile = \"" + profile + "\"\n"));
  experiment.ops[1].weight = experiment.ops[2].weight = 1e-6;
  const RecordGenerator generator(experiment);
  std::vector<std::string> texts;
  for (const Advice& advice : AdviceOn(experiment, Unmeasured(generator))) texts.push_back(advice.text);
  return texts;
}

TEST(AdviceTest, AHotPartitionIsSpreadByAFieldThatSufficesAndReadersName) {
  const std::string one = "[[layout]]\nname = \"one\"\npk = \"all\"\n";
  EXPECT_THAT(TextsOfWriters(one + "rk = \"{device}_{ticks(ts)}\"\n", "storage"),
              Contains(HasSubstr("with {hash(device) % ")))
      << "a query names the device";
  EXPECT_THAT(TextsOfWriters(one + "rk = \"{device}_{ticks(ts)}\"\n", "partition=700"),
              Contains(HasSubstr("with {hash(ts) % 15}")))
      << "one device alone has more";
  EXPECT_THAT(TextsOfWriters(one + "rk = \"{type}_{ticks(ts)}\"\n", "storage"),
              Contains(HasSubstr("hash(ts)")))
      << "seven of ten have one type";
  EXPECT_THAT(TextsOfWriters(one + "rk = \"{ticks(ts)}\"\n", "partition=20"),
              Contains(AllOf(HasSubstr("the fullest of 64"), HasSubstr("which is still too much"))));
}

TEST(AdviceTest, WhatIsSpreadIsTheCopyWhosePartitionIsHot) {
  EXPECT_THAT(
      TextsOfWriters("[[layout]]\nname = \"l\"\npk = \"{device}\"\nrk = \"{hour}_{ticks(ts)}\"\n"
                     "[[layout.copy]]\nname = \"by-type\"\ntable = \"Types\"\npk = \"{type}\"\n"
                     "rk = \"{ticks(ts)}\"\n",
                     "partition=2000"),
      Contains(AllOf(HasSubstr("Partition \"temp\" of copy \"by-type\" is asked for"),
                     HasSubstr("{hash(ts) % "), HasSubstr("before the PartitionKey of copy \"by-type\""))));
}

TEST(AdviceTest, WritesThatAnAccountDoesNotGiveAreTold) {
  EXPECT_THAT(TextsOfWriters(kDeviceLayout, "account=500"),
              Contains(AllOf(HasSubstr("All partitions together are asked for 5000 units"),
                             HasSubstr("fewer or smaller entities to write"))));
}

TEST(AdviceTest, WhatWasRefusedIsNotPassedOver) {
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  experiment.ops = {experiment.ops[2]};
  const RecordGenerator generator(experiment);
  RunResult result = Unmeasured(generator);
  EXPECT_THAT(AdviceOn(experiment, result), IsEmpty());
  result.cells[1].ops[0].dropped = 3;
  EXPECT_THAT(AdviceOn(experiment, result),
              ElementsAre(Field(&Advice::text, HasSubstr("3 were not done, and 0 failed"))));
}

TEST(AdviceTest, ARunThatMeasuresWhatATargetLetsThroughFirstIsTold) {
  // 1,000 reads a second of one partition, of which 800 are given: 1,600 of the 200 too many are let through.
  Experiment experiment =
      ParseSound(ReadingsText("[[layout]]\nname = \"one\"\npk = \"all\"\nrk = \"{ticks(ts)}\"\n"
                              "[limits]\nprofile = \"partition=800\"\n"));
  experiment.ops = {experiment.ops[2]};
  const RecordGenerator generator(experiment);
  const RunResult result = Unmeasured(generator);
  const auto told = HasSubstr("target of 800 units/s refuses 1000 only after 8 s");
  EXPECT_THAT(VerdictTable(experiment, result), told);
  EXPECT_THAT(AdviceOn(experiment, result), Contains(Field(&Advice::text, told)));
  experiment.arrival.warmup_s = 8.1;
  EXPECT_THAT(VerdictTable(experiment, result), Not(told));
}

TEST(AdviceTest, APeakThatTheTargetBearsIsNoTrouble) {
  // From 100 to 1,900 a second within four seconds: of the 900 too many none is refused.
  Experiment experiment =
      ParseSound(ReadingsText("[[layout]]\nname = \"one\"\npk = \"all\"\nrk = \"{ticks(ts)}\"\n"
                              "[limits]\nprofile = \"partition=1000\"\n"));
  experiment.ops = {experiment.ops[2]};
  experiment.arrival = {
      .model = ArrivalModel::kRamp, .rates = {100}, .rate_end = 1'900, .warmup_s = 0, .duration_s = 4};
  const RecordGenerator generator(experiment);
  RunResult result = Unmeasured(generator);
  EXPECT_THAT(VerdictTable(experiment, result), Not(HasSubstr("a longer run")));
  EXPECT_THAT(AdviceOn(experiment, result), IsEmpty());
  for (CellFigures& cell : result.cells) cell.ops[0].operations = 4'000, cell.ops[0].throttled = 100;
  EXPECT_THAT(AdviceOn(experiment, result),
              Contains(Field(&Advice::text, AllOf(HasSubstr("Partition \"all\" is asked for 1900 units"),
                                                  HasSubstr("2.5 % of all operations were refused")))))
      << "it was less even than that";
}

TEST(AdviceTest, AnOperationLargerThanABucketIsTold) {
  std::string text = LargeRecordsText("kind = \"query\"\nwhere = { n = 3 }\n");
  text.replace(text.find("rate = 1000"), 11, "rate = 0.1");
  text.replace(text.find("\"storage\""), 9, "\"partition=100\"");
  const Experiment experiment = ParseSound(text);
  const RecordGenerator generator(experiment);
  const auto told =
      Contains(AllOf(Field(&Advice::op, 0u),
                     Field(&Advice::text, HasSubstr("one op alone asks partition 'all' for 320 units"))));
  RunResult result = Unmeasured(generator);
  EXPECT_THAT(AdviceOn(experiment, result), Not(told)) << "none was refused";
  result.cells.back().ops[0].throttled = 1;
  EXPECT_THAT(AdviceOn(experiment, result), told);
}

TEST(AdviceTest, WhereReadingIsTheLoadSpreadingIsNotTheCure) {
  EXPECT_THAT(TextsFor(R"(
[[layout]]
name = "one"
pk = "all"
rk = "{ticks(ts)}"
[limits]
profile = "storage"
)"),
              Contains(AllOf(HasSubstr("looked at, not written"), Not(HasSubstr("hash(")))));
}

// Readings by their day, of which there are 864, in 39 days and a part of today. Each operation writes one,
// but two of a hundred read a day.
std::vector<std::string> TextsOfDays(const std::string& profile) {
  const Experiment experiment = ParseSound(R"(name = "days"
[data]
records = 33_896
[data.fields]
ts = { dist = "clock", start = "2026-01-01T00:00:00Z", step = "100s" }
day = { dist = "template", text = "{ts:%Y%m%d}" }
[[op]]
name = "write"
kind = "insert"
weight = 98
[[op]]
name = "read-day"
kind = "query"
weight = 2
where = { day = "@record" }
[[layout]]
name = "by-day"
pk = "{day}"
rk = "{ticks(ts)}"
[arrival]
rate = 400
[limits]
profile = ")" + profile + "\"\n");
  const RecordGenerator generator(experiment);
  std::vector<std::string> texts;
  for (const Advice& advice : AdviceOn(experiment, Unmeasured(generator))) texts.push_back(advice.text);
  return texts;
}

TEST(AdviceTest, WhoAsksForMostOfTheHottestPartitionIsTold) {
  EXPECT_THAT(TextsOfDays("partition=300"),
              Contains(AllOf(HasSubstr("Partition \"20260209\" is asked for 44"),
                             HasSubstr("Let the load go to more partitions"))))
      << "all days together are rather read, but today is written";
  EXPECT_THAT(TextsOfDays("account=2000"), Contains(HasSubstr("this operation has the largest part, 8")));
}

TEST(AdviceTest, APartitionThatIsReadByItsKeysIsSpread) {
  Experiment experiment =
      ParseSound(ReadingsText("[[layout]]\nname = \"one\"\npk = \"all\"\nrk = \"{device}_{ticks(ts)}\"\n"
                              "[limits]\nprofile = \"partition=800\"\n"));
  experiment.ops = {experiment.ops[2]};
  const RecordGenerator generator(experiment);
  EXPECT_THAT(AdviceOn(experiment, Unmeasured(generator)),
              Contains(Field(&Advice::text, HasSubstr("Let the load go to more partitions"))));
}

TEST(AdviceTest, CopiesThatCouldBeWrittenWithTheRecordAreNamed) {
  const auto copy = [](const std::string& name, const std::string& pk) {
    return "[[layout.copy]]\nname = \"" + name + "\"\npk = \"" + pk + "\"\nrk = \"" + name +
           "_{ticks(ts)}\"\n";
  };
  const auto texts = [&](const std::string& copies) {
    Experiment experiment = ParseSound(ReadingsText(kDeviceLayout + copies));
    experiment.ops.resize(1);
    experiment.ops[0].batch = 1;
    const RecordGenerator generator(experiment);
    std::vector<std::string> all;
    for (const Advice& advice : AdviceOn(experiment, Unmeasured(generator))) all.push_back(advice.text);
    return all;
  };
  EXPECT_THAT(texts(copy("near", "{device}")),
              ElementsAre(AllOf(HasSubstr("Its copies are written one after the other, in 2 transactions"),
                                HasSubstr("lies \"near\": with atomic = true"))));
  EXPECT_THAT(texts(copy("far", "{type}")), ElementsAre(AllOf(HasSubstr("Its copies lie in other partitions"),
                                                              Not(HasSubstr("atomic = true")))));
  EXPECT_THAT(texts(copy("far", "{type}") + copy("near", "{device}") + "atomic = true\n"),
              ElementsAre(Not(HasSubstr("atomic = true"))));
}

TEST(AdviceTest, OfTheHeatMapsRowsNoSizeIsClaimed) {
  // Eleven partitions are a row each, of different sizes.
  Experiment experiment =
      ParseSound(ReadingsText("[[layout]]\nname = \"l\"\npk = \"{hour}\"\nrk = \"{ticks(ts)}\"\n"));
  const RecordGenerator generator(experiment);
  RunResult result = Unmeasured(generator);
  for (CellFigures& cell : result.cells) {
    cell.timeline.Touched(0, {.rows = {.first = 3, .last = 3}, .entities = 100});
  }
  const std::vector<Advice> advice = AdviceOn(experiment, result);
  EXPECT_THAT(advice, Contains(Field(&Advice::text, HasSubstr("of the 24 rows of the heat map, from key"))));
  for (const Advice& one : advice) EXPECT_THAT(one.text, Not(HasSubstr("equal size")));
}

TEST(AdviceTest, OfAServicesOwnLimitsNothingIsSaid) {
  const Experiment experiment = ParseSound(ReadingsText(R"(
[[layout]]
name = "one"
pk = "all"
rk = "{ticks(ts)}"
[limits]
profile = "storage"
)"));
  const RecordGenerator generator(experiment);
  RunResult result = Unmeasured(generator);
  result.target = "http://127.0.0.1:10002";
  result.kind = TargetKind::kHttp;
  for (const Advice& advice : AdviceOn(experiment, result)) {
    EXPECT_THAT(advice.text, AllOf(Not(HasSubstr("a partition gives")), Not(HasSubstr("an account gives"))));
  }
}

TEST(AdviceTest, AScanNamesTheFieldThatNoKeyHolds) {
  EXPECT_THAT(TextsFor(R"(
[[layout]]
name = "by-type"
pk = "{type}"
rk = "{ticks(ts)}"
)"),
              Contains(AllOf(HasSubstr("No key holds device"), HasSubstr("to return"))));
  EXPECT_THAT(TextsFor(R"(
[[layout]]
name = "by-hour"
pk = "{hour}"
rk = "{device}_{ticks(ts)}"
[[layout.copy]]
name = "by-type"
pk = "{type}"
rk = "{ticks(ts)}"
[[op]]
name = "doors-of"
kind = "query"
where = { type = "door", device = "@record" }
)"),
              Contains(AllOf(HasSubstr("(partition of copy \"by-type\")"),
                             HasSubstr("No key of copy \"by-type\" holds device"))));
}

// Of a sensor's readings, folded by days, those of some value are asked for, or those of some days and a
// half.
std::vector<std::string> TextsOfSeries(const std::string& where, const std::string& more = "") {
  const Experiment experiment = ParseSound(R"(name = "series"
[data]
records = 2400
[data.fields]
sensor = { dist = "constant", value = "s1" }
ts = { dist = "clock", start = "2026-01-01T00:30:00Z", step = "1h" }
value = { dist = "normal", mean = 20.0, sd = 2.0 }
[[op]]
name = "some"
kind = "query"
where = { sensor = "@record", )" + where + R"( }
limit = 12
[[layout]]
name = "series"
pk = "{sensor}"
rk = "{ts:%Y%m%d}"
fold = { property = "v{ts:%H}", from = "value" }
[arrival]
rate = 10
)" + more);
  const RecordGenerator generator(experiment);
  std::vector<std::string> texts;
  for (const Advice& advice : AdviceOn(experiment, Unmeasured(generator))) texts.push_back(advice.text);
  return texts;
}

TEST(AdviceTest, OfWhatTheClientFiltersItIsToldThatItIsLookedAt) {
  const std::string value = "value = { from = 23.0, to = 24.0 }";
  EXPECT_THAT(TextsOfSeries(value),
              ElementsAre(AllOf(HasSubstr("looks at 100 entities of which the client filters what it wants"),
                                HasSubstr("No key holds value"))));
  EXPECT_THAT(TextsOfSeries(value, "[limits]\nprofile = \"partition=300\"\n"),
              Contains(HasSubstr("looked at, not written")));
  EXPECT_THAT(TextsOfSeries("ts = { from = \"2026-01-03T12:00:00Z\", to = \"2026-02-20T00:00:00Z\" }"),
              IsEmpty())
      << "its keys name what it asks for";
}

TEST(AdviceTest, ALayoutThatSuitsItsOperationsIsLeftAlone) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  const RecordGenerator generator(experiment);
  for (const Advice& advice : AdviceOn(experiment, Unmeasured(generator))) {
    EXPECT_EQ(experiment.ops[advice.op.value_or(0)].name, "ingest") << advice.text;
    EXPECT_THAT(advice.text, HasSubstr("a batch takes one partition only"));
  }
}

TEST(ReportTest, IsOnePageThatNamesNoOther) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  const RecordGenerator generator(experiment);
  const Result<std::string> page = ReportHtml(ResultJson(experiment, Unmeasured(generator)));
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  EXPECT_THAT(*page,
              AllOf(HasSubstr("default-src 'none'"), HasSubstr("\"stream_hash\""), HasSubstr("</html>")));
  std::string text = *page;
  const std::string name = "http://www.w3.org/2000/svg";  // A name, which is asked for nowhere.
  text.replace(text.find(name), name.size(), "");
  EXPECT_THAT(text, AllOf(Not(HasSubstr("http://")), Not(HasSubstr("https://")), Not(HasSubstr("src=\""))));
}

TEST(ReportTest, ASeedBeyondWhatADoubleHoldsIsAText) {
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout, "9007199254740993"));
  const RecordGenerator generator(experiment);
  EXPECT_THAT(ResultJson(experiment, Unmeasured(generator)),
              HasSubstr("\"seed_text\": \"9007199254740993\""));
}

TEST(ReportTest, OneTryThatWasRefusedThroughoutATableIsInIt) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  const RecordGenerator generator(experiment);
  RunResult result = Unmeasured(generator);
  result.cells.resize(1);
  result.cells[0].timeline = Timeline(1, KeyRows::kRowsMax);
  result.cells[0].timeline.Touched(0, {.rows = {.first = 0, .last = 31}, .entities = 0, .refused = 1});
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_EQ(parser.parse(ResultJson(experiment, result)).get(root), simdjson::SUCCESS);
  simdjson::dom::array parts;
  ASSERT_EQ(root.at_pointer("/cells/0/timeline/refused").get(parts), simdjson::SUCCESS);
  double refused = 0;
  for (const simdjson::dom::element part : parts) {
    double number = 0;
    EXPECT_EQ(part.get(number), simdjson::SUCCESS);
    refused += number;
  }
  EXPECT_NEAR(refused, 1, 0.01);
}

TEST(ReportTest, OfAllFilesOnlyReportsAreReports) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  const RecordGenerator generator(experiment);
  const std::string json = ResultJson(experiment, Unmeasured(generator));
  EXPECT_TRUE(IsReport(*ReportHtml(json)));
  for (const std::string& other : {std::string(), json, std::string("<!doctype html><title>Mine</title>")}) {
    EXPECT_FALSE(IsReport(other)) << other.substr(0, 40);
  }
}

TEST(ReportTest, NoTextOfTheResultEndsTheScript) {
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  experiment.description = "</script><script>alert(1)</script>";
  const RecordGenerator generator(experiment);
  const Result<std::string> page = ReportHtml(ResultJson(experiment, Unmeasured(generator)));
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(*page, Not(HasSubstr("<script>alert")));
}

TEST(ReportTest, TwentyLongRunsFitIntoFiveMegabytes) {
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  experiment.repeats = 20;
  const RecordGenerator generator(experiment);
  RunResult result = Unmeasured(generator);
  for (CellFigures& cell : result.cells) {
    cell.timeline = Timeline(3'600, result.key_rows[0].size());
    for (int i = 0; i < 200'000; ++i) {
      const auto row = static_cast<uint16_t>(i % static_cast<int>(result.key_rows[0].size()));
      cell.timeline.Touched(i * 0.02, {.rows = {.first = row, .last = row}, .entities = 12'345});
      cell.timeline.Completed(i * 0.02, static_cast<uint64_t>(i) * 5'000);
      cell.ops[static_cast<size_t>(i) % cell.ops.size()].latency.Record(static_cast<uint64_t>(i) * 5'000);
    }
  }
  const Result<std::string> page = ReportHtml(ResultJson(experiment, result));
  ASSERT_TRUE(page.ok());
  EXPECT_LT(page->size(), 5u << 20);
}

TEST(ReportTest, WhatIsNoResultIsRefused) {
  for (const char* text :
       {"", "{}", "[1]", "{\"format\": 1}", "{\"format\": 2, \"cells\": [], \"explain\": []}",
        "{\"format\": 1, \"cells\": [{}], \"explain\": [{}]}",
        "{\"format\": 1, \"cells\": [], \"explain\": [{}]}",
        "{\"format\": 1, \"cells\": [{\"timeline\": {}}], \"explain\": []}"}) {
    EXPECT_EQ(ReportHtml(text).status().code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace partita::lab

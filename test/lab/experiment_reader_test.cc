#include "bench/lab/experiment_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

uint64_t RecordsMaxOf(const std::string& text) { return ParseSound(text).fields[0].records_max; }

TEST(ExperimentReaderTest, RecordsMaxIsAboveWhatAnyRunWritesAndGoesByTheWeightOfItsInserts) {
  const uint64_t records_max = RecordsMaxOf(RareBatchesText("rate = 2500\n"));
  EXPECT_GT(records_max, 20'000 + 15'000u);
  EXPECT_LT(records_max, 100'000u) << "not as if each operation inserted a hundred";
  // One a second may well be four or five in one second.
  EXPECT_GT(
      RecordsMaxOf(RareBatchesText("model = \"poisson\"\nrate = 1\nwarmup = \"0s\"\nduration = \"1s\"\n")),
      20'000 + 10 * 100u);
}

TEST(ExperimentReaderTest, RecordsMaxKnowsTheArrivalOfALayout) {
  EXPECT_GT(RecordsMaxOf(RareBatchesText("rate = 2500\n", "[layout.arrival]\nrate = 25_000\n")),
            20'000 + 150'000u);
  EXPECT_GT(RecordsMaxOf(RareBatchesText("rate = 2500\n",
                                         "[layout.arrival]\nmodel = \"ramp\"\nrate = [1]\nto = 50_000\n")),
            20'000 + 150'000u);
}

TEST(ExperimentReaderTest, OfAClosedLoopRecordsMaxGoesByTimeNotByWhatIsThere) {
  const auto with_few = [](const std::string& arrival) {
    std::string text = RareBatchesText("model = \"closed\"\n" + arrival);
    return RecordsMaxOf(text.replace(text.find("20_000"), 6, "100"));
  };
  EXPECT_GT(with_few(""), 1'000'000u);
  // Four clients that think a second each cannot do more than 28 in six seconds, if all were inserts.
  EXPECT_EQ(with_few("clients = 4\nthink = \"1s\"\n"), 100 + 28 * 100u);
}

TEST(ExperimentReaderTest, TimesAreWholeTicks) {
  for (const int micros : {1, 5, 10, 20, 50, 100, 150, 200, 300, 400, 800, 1'000}) {
    const std::string time = "\"" + std::to_string(micros) + "us\"";
    std::string text = ReadingsText(kDeviceLayout);
    text.replace(text.find("\"10s\""), 5, time + ", late_by = " + time);
    text.replace(text.find("device = \"@record\" }"), 20, "ts = { from_record = " + time + " } }");
    const Experiment experiment = ParseSound(text);
    const Field& clock = experiment.fields[2];
    EXPECT_EQ(clock.step, micros * 10) << time;
    EXPECT_EQ(clock.late_ticks, micros * 10) << time;
    EXPECT_EQ(experiment.ops[1].where[0].ticks, micros * 10) << time;
  }
}

}  // namespace
}  // namespace partita::lab

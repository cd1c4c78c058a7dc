#include "bench/lab/record_generator.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string FleetText(const std::string& fields) {
  return "name = \"fleet\"\n[data]\nrecords = 20000\n[data.fields]\n"
         "n = { dist = \"sequence\" }\ndevice = { dist = \"uniform\", n = 50, format = \"d{:02}\" }\n" +
         fields +
         "[[op]]\nname = \"read\"\nkind = \"get\"\n[[layout]]\nname = \"one\"\npk = \"{device}\"\nrk = "
         "\"{n}\"\n"
         "[arrival]\nrate = 10\nduration = \"1s\"\n";
}

std::vector<Record> RecordsOf(const Experiment& experiment, uint64_t count) {
  std::vector<Record> records(count);
  const RecordGenerator generator(experiment);
  for (uint64_t i = 0; i < count; ++i) generator.Make(i, &records[i]);
  return records;
}

size_t FieldOf(const Experiment& experiment, const std::string& name) {
  for (size_t i = 0; i < experiment.fields.size(); ++i) {
    if (experiment.fields[i].name == name) return i;
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(RecordGeneratorTest, WhatBelongsToAnotherFieldIsDrawnOnceForEachOfItsValues) {
  const Experiment experiment =
      ParseSound(FleetText("model = { dist = \"weighted\", values = { A = 50, B = 50 }, per = \"device\" }\n"
                           "storm = { dist = \"template\", text = \"{n / 25:04}-{lower(device)}\" }\n"
                           "type = { dist = \"weighted\", values = { x = 50, y = 50 }, per = \"storm\" }\n"));
  const size_t device = FieldOf(experiment, "device"), model = FieldOf(experiment, "model");
  const size_t storm = FieldOf(experiment, "storm"), type = FieldOf(experiment, "type");
  std::map<std::string, std::set<std::string>> models, types;
  std::set<std::string> all;
  for (const Record& record : RecordsOf(experiment, 5'000)) {
    models[*record.values[device].if_string()].insert(*record.values[model].if_string());
    types[*record.values[storm].if_string()].insert(*record.values[type].if_string());
    all.insert(*record.values[model].if_string());
  }
  EXPECT_EQ(models.size(), 50u);
  EXPECT_EQ(all.size(), 2u) << "and yet not all are alike";
  for (const auto& [of, drawn] : models) EXPECT_EQ(drawn.size(), 1u) << of;
  for (const auto& [of, drawn] : types) EXPECT_EQ(drawn.size(), 1u) << of;
}

TEST(RecordGeneratorTest, ClocksHaveARhythmAndSomeRecordsAreLate) {
  const Experiment even = ParseSound(FleetText(
      "at = { dist = \"clock\", start = \"2026-01-01T00:00:00Z\", step = \"43.2s\", rhythm = 0.5 }\n"));
  std::map<uint64_t, int> by_hour;
  uint64_t last = 0;
  for (const Record& record : RecordsOf(even, 20'000)) {  // Ten days.
    const uint64_t ticks = record.values[FieldOf(even, "at")].if_date_time()->ticks;
    EXPECT_GE(ticks, last) << "rhythm alone keeps their order";
    last = ticks;
    ++by_hour[ticks / 36'000'000'000 % 24];
  }
  // Gaps are 1 + cos(time) / 2 of the step: at midnight 1.5, at noon 0.5.
  EXPECT_NEAR(by_hour[12] + by_hour[11], 2 * 20'000 / 24.0 / 0.5, 150);
  EXPECT_NEAR(by_hour[23] + by_hour[0], 2 * 20'000 / 24.0 / 1.5, 80);

  const Experiment late =
      ParseSound(FleetText("at = { dist = \"clock\", start = \"2026-01-01T00:00:00Z\", step = \"1s\", late = "
                           "0.1, late_by = \"10m\" }\n"));
  int behind = 0;
  double seconds = 0;
  for (const Record& record : RecordsOf(late, 20'000)) {
    const Field& field = late.fields[FieldOf(late, "at")];
    const auto due = static_cast<uint64_t>(field.SteppedValue(record.number));
    const uint64_t ticks = record.values[FieldOf(late, "at")].if_date_time()->ticks;
    EXPECT_LE(ticks, due);
    behind += ticks < due ? 1 : 0;
    seconds += static_cast<double>(due - ticks) / 1e7;
  }
  EXPECT_NEAR(behind, 2'000, 200);
  EXPECT_NEAR(seconds / behind, 600, 60);
}

TEST(RecordGeneratorTest, AMeanSwingsWithTheTimeOfDay) {
  const Experiment experiment = ParseSound(
      FleetText("at = { dist = \"clock\", start = \"2026-01-01T00:00:00Z\", step = \"43.2s\" }\n"
                "value = { dist = \"normal\", mean = 16.0, sd = 1.0, swing = 6.0, clock = \"at\" }\n"));
  double noon = 0, midnight = 0;
  int at_noon = 0, at_midnight = 0;
  for (const Record& record : RecordsOf(experiment, 20'000)) {
    const uint64_t hour =
        record.values[FieldOf(experiment, "at")].if_date_time()->ticks / 36'000'000'000 % 24;
    const double value = *record.values[FieldOf(experiment, "value")].if_double();
    if (hour == 12 && ++at_noon > 0) noon += value;
    if (hour == 0 && ++at_midnight > 0) midnight += value;
  }
  EXPECT_NEAR(noon / at_noon, 22, 0.3);
  EXPECT_NEAR(midnight / at_midnight, 10, 0.3);
}

TEST(RecordGeneratorTest, WhatIsMadeOfItselfIsTold) {
  const auto findings = [](const std::string& fields) {
    return FindingsText("x", ParseExperiment(FleetText(fields), "x").findings);
  };
  EXPECT_THAT(
      findings(
          "a = { dist = \"uniform\", n = 3, per = \"b\" }\nb = { dist = \"uniform\", n = 3, per = \"a\" }\n"),
      HasSubstr("a is made of itself"));
  EXPECT_THAT(
      findings(
          "a = { dist = \"template\", text = \"{b}\" }\nb = { dist = \"uniform\", n = 3, per = \"a\" }\n"),
      HasSubstr("is made of itself"));
  EXPECT_THAT(findings("a = { dist = \"normal\", mean = 1.0, swing = 2.0 }\n"),
              HasSubstr("clock: is missing"));
  EXPECT_THAT(findings("a = { dist = \"sequence\", per = \"n\" }\n"), HasSubstr("per: is for uniform"));
}

TEST(RecordGeneratorTest, TemplatesOfTemplatesAreToldHoweverManyWaysLeadThrough) {
  // Each is made of the one before, twice: two to the power of sixty ways.
  std::string fields = "t0 = { dist = \"template\", text = \"x\" }\n";
  for (int i = 1; i <= 60; ++i) {
    const std::string before = "{t" + std::to_string(i - 1) + "}";
    fields += "t" + std::to_string(i) + " = { dist = \"template\", text = \"" + before + before + "\" }\n";
  }
  const std::string findings = FindingsText("x", ParseExperiment(FleetText(fields), "x").findings);
  EXPECT_THAT(findings, HasSubstr("t59 is a template itself"));
  EXPECT_THAT(findings, Not(HasSubstr("made of itself")));
}

}  // namespace
}  // namespace partita::lab

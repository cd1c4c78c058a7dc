#include "bench/lab/experiment_file.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <fstream>
#include <iterator>

#include "bench/lab/experiment_keys.h"
#include "test/lab/experiments.h"
#include "test/support/paths.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string FindingsIn(const std::string& text) {
  return FindingsText("x.toml", ParseExperiment(text, "x.toml").findings);
}

TEST(ExperimentFileTest, ReadsWhatIsInIt) {
  const Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  EXPECT_EQ(experiment.seed, 42u);
  EXPECT_EQ(experiment.fields.size(), 5u);
  ASSERT_EQ(experiment.ops.size(), 3u);
  EXPECT_EQ(experiment.ops[0].batch, 5u);
  EXPECT_TRUE(experiment.ops[1].order_descending);
  ASSERT_EQ(experiment.layouts.size(), 1u);
  EXPECT_EQ(experiment.layouts[0].entities[0].fields.size(), 5u);
  EXPECT_DOUBLE_EQ(experiment.arrival.warmup_s, 0.1);
}

TEST(ExperimentFileTest, TellsAllThatIsWrongWithLineColumnAndTheNearestName) {
  const std::string findings = FindingsIn(ReadingsText(R"(
[[layout]]
name = "bad"
pk = "{devce}"
rk = "{ts:%q}"
colour = 1
[limits]
profil = "storage"
throttled = "retri"
)"));
  EXPECT_THAT(findings, AllOf(HasSubstr("no field 'devce'; did you mean device?"),
                              HasSubstr("x.toml:35:6: pk: character 2:"), HasSubstr("%Y %m %d %H %M %S %f"),
                              HasSubstr("x.toml:37:1: unknown key 'colour' of layout"),
                              HasSubstr("unknown key 'profil' of limits; did you mean profile?"),
                              HasSubstr("did you mean retry?")));
}

TEST(ExperimentFileTest, TellsWhatTheServiceWouldRefuse) {
  const auto layout = [](const std::string& pk, const std::string& rk, const std::string& more = "") {
    return FindingsIn(
        ReadingsText("[[layout]]\nname = \"x\"\npk = \"" + pk + "\"\nrk = \"" + rk + "\"\n" + more));
  };
  EXPECT_THAT(layout("a/b", "{ts}"), HasSubstr("pk: "));
  EXPECT_THAT(layout("a", "{pad(hour, 600)}"), HasSubstr("rk: "));
  EXPECT_THAT(layout("{device}", "{hour}"), HasSubstr("have the same keys"));
  EXPECT_THAT(layout("{device}", "{ts}", "table = \"a b\""), HasSubstr("table: "));
  EXPECT_THAT(layout("{device}", "{ts}",
                     "[[layout.copy]]\nname = \"c\"\npk = \"{type}\"\nrk = \"c{ts}\"\natomic = true"),
              HasSubstr("a transaction is of one table and one PartitionKey"));
  EXPECT_THAT(layout("{device}", "{ts}", "[[layout.copy]]\nname = \"c\"\npk = \"{device}\"\nrk = \"{ts}\"\n"),
              HasSubstr("has the keys of another entity"));
  EXPECT_THAT(layout("{type}", "{ts}", "props = [\"value\"]"), HasSubstr("do not hold device"));
  EXPECT_EQ(layout("{device}", "{ts}"), "");
}

TEST(ExperimentFileTest, TellsOfAnOperationThatChangesKeys) {
  const std::string findings = FindingsIn(ReadingsText(kDeviceLayout) + R"(
[[op]]
name = "move"
kind = "merge"
set = ["device"]
)");
  EXPECT_THAT(findings, HasSubstr("operation 'move' sets device, which is in a key"));
}

TEST(ExperimentFileTest, TellsOfAnErrorInToml) {
  EXPECT_THAT(FindingsIn("name = \"a\"\nseed = = 3\n"), HasSubstr("x.toml:2:"));
}

TEST(ExperimentFileTest, ThePublishedSchemaIsTheOneInTheTree) {
  std::ifstream file(std::string(kSourceDirectory) + "/bench/lab/experiment.schema.json");
  const std::string published{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(published, ExperimentSchema()) << "partita lab schema > bench/lab/experiment.schema.json";
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  EXPECT_EQ(parser.parse(published).get(element), simdjson::SUCCESS);
}

}  // namespace
}  // namespace partita::lab

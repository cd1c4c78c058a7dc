#include "bench/lab/samples.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "bench/lab/explain.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"

namespace partita::lab {
namespace {

using ::testing::HasSubstr;

class SamplesTest : public LabCommandTest {
 protected:
  static constexpr const char* kIndex =
      "Package: 0ad\nVersion: 0.0.26-3\nInstalled-Size: 28591\nMaintainer: Games <g@d.org>\nArchitecture: "
      "amd64\n"
      "Section: games\nPriority: optional\nDescription: a \"game\"\n with more lines\n\n"
      "Package: libx\nSource: x (1.0)\nVersion: 1.0~b1\nMaintainer: X / Y <x@d.org>\nArchitecture: all\n"
      "Section: contrib/libs\nPriority: optional\n\n"
      "Package: libx\nVersion: 2.0\nMaintainer: X / Y <x@d.org>\nArchitecture: all\nPriority: optional\n";
};

TEST_F(SamplesTest, AllButThatOfPackagesAreSoundAlone) {
  ASSERT_GE(Samples().size(), 8u);
  for (const Sample& sample : Samples()) {
    if (sample.name == std::string("packages")) continue;
    const Experiment experiment = ParseSound(sample.text);
    EXPECT_EQ(experiment.name, sample.name);
    EXPECT_GE(experiment.layouts.size(), 2u) << sample.name;
  }
}

TEST_F(SamplesTest, PackagesAreOneRecordEachAndCanBeKeys) {
  const auto written = WritePackagesOf(Write("Packages", kIndex), directory_ + "/packages.jsonl");
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  EXPECT_EQ(*written, 2u);
  for (const Sample& sample : Samples()) {
    if (sample.name == std::string("packages")) Write("packages.toml", sample.text);
  }
  const auto file = ReadExperimentFile(directory_ + "/packages.toml");
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(FindingsText("", file->findings), "");
  Record record;
  RecordGenerator(file->experiment).Make(1, &record);
  std::vector<std::string> texts;
  for (const PropertyValue& value : record.values) {
    if (value.if_string() != nullptr) texts.push_back(*value.if_string());
  }
  EXPECT_THAT(texts, ::testing::IsSupersetOf({"libx", "1.0~b1", "x", "contrib:libs", "X / Y <x@d.org>"}));
}

TEST_F(SamplesTest, WhereNoPackagesAreKnownThatIsToldAndNoFileIsLeft) {
  const std::string path = directory_ + "/packages.jsonl", none = directory_ + "/none";
  const auto written = WritePackages(path, {.command = "false", .status_file = none});
  EXPECT_EQ(written.status().code(), Code::kNotFound);
  EXPECT_THAT(written.status().message(),
              HasSubstr("no Debian packages: neither `false` nor " + none + " gives any; `apt-get update`"));
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto installed = WritePackages(path, {.command = "false", .status_file = Write("status", kIndex)});
  ASSERT_TRUE(installed.ok()) << installed.status().ToString();
  EXPECT_EQ(*installed, 2u) << "those that are installed, where there is no index";
}

TEST_F(SamplesTest, NewWritesASampleAndNothingOverAFile) {
  const std::string path = directory_ + "/mine.toml";
  EXPECT_EQ(Lab({"new", path, "--sample", "devices"}).code, ExitCode::kOk);
  EXPECT_THAT(Read(path), HasSubstr("name = \"devices\""));
  EXPECT_THAT(Lab({"new", path, "--sample", "orders"}).err, HasSubstr("exists"));
  EXPECT_THAT(Lab({"new", path + "2", "--sample", "ordres"}).err, HasSubstr("ordres"));
}

}  // namespace
}  // namespace partita::lab

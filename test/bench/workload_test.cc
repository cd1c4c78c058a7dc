#include "bench/load/workload.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace partita::bench {
namespace {

TEST(WorkloadTest, EachWorkloadHasItsOwnNameAndAMeaning) {
  std::set<std::string_view> names;
  for (const WorkloadInfo& info : Workloads()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.meaning.empty()) << info.name;
    EXPECT_GE(info.parallel_default, 1u) << info.name;
  }
  EXPECT_EQ(names.size(), 28u);
}

TEST(WorkloadTest, AnUnknownNameOrNumberIsRefusedWithTheKnownNames) {
  LoadConfig config;
  config.value_size = 100;
  LoadRunner runner(config);
  for (const char* wrong :
       {"fill", "", "read-hot:", "read-hot:0", "read-hot:-1", "read-hot:2x", "read-hot:99999"}) {
    const Result<Measurement> result = runner.Run(wrong);
    ASSERT_EQ(result.code(), Code::kInvalidArgument) << wrong;
    EXPECT_NE(result.status().message().find("scan-100"), std::string::npos) << result.status().message();
  }
}

TEST(WorkloadTest, TheSameWorkloadHasOneFullName) {
  const std::vector<std::string> asked = {"recovery",      "async-read", "read-hot:2", "read-hot:02",
                                          "async-read:64", "read-hot:x", "read-hot"};
  const std::vector<std::string> full = {"recovery:1", "async-read:64", "read-hot:2", "read-hot:x",
                                         "read-hot:1"};
  EXPECT_EQ(FullWorkloadNames(asked), full);
}

TEST(MeasurementTest, RatesComeFromTheCounts) {
  Figures figures;
  figures.operations = 500;
  figures.seconds = 2;
  figures.cpu_seconds = 0.001;
  figures.user_bytes = 100;
  figures.written_bytes = 250;
  EXPECT_DOUBLE_EQ(figures.OperationsPerSecond(), 250);
  EXPECT_DOUBLE_EQ(figures.CpuMicrosPerOperation(), 2);
  EXPECT_DOUBLE_EQ(figures.WriteAmplification(), 2.5);
  EXPECT_TRUE(figures.IsCorrect());
  figures.missing = 1;
  EXPECT_FALSE(figures.IsCorrect());
}

TEST(MeasurementTest, JsonEscapesTheEnginesOwnWords) {
  Measurement measurement;
  measurement.engine = "partita";
  measurement.workload = "overwrite";
  measurement.first_error = "file \"a\\b\"\nline";
  const std::string json = ToJson({measurement});
  EXPECT_NE(json.find(R"("first_error": "file \"a\\b\" line")"), std::string::npos) << json;
}

TEST(MeasurementTest, AWrongAnswerStandsInTheTable) {
  Measurement measurement;
  measurement.wrong = 3;
  EXPECT_NE(TableLine(measurement).find("WRONG ANSWERS: 3 wrong"), std::string::npos);
}

}  // namespace
}  // namespace partita::bench

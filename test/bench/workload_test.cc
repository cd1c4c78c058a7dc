#include "bench/load/workload.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "bench/load/batch_load.h"
#include "bench/load/paced_load.h"

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
  for (const char* wrong : {"fill", "", "read-hot:", "read-hot:0", "read-hot:-1", "read-hot:2x",
                            "read-hot:99999", "full-scan-hot:4", "drop:2"}) {
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

// Rows in a map, which remembers what was so when it was last asked to settle.
class SettlingMapEngine : public Engine {
 public:
  Status Put(const RowKeys& keys, std::string_view value, DurabilityLevel) override {
    const std::lock_guard lock(mutex_);
    rows_[Text(keys)] = value;
    ++puts_since_settled;
    return Status();
  }
  Status PutAtomically(std::span<const Row> rows, DurabilityLevel level) override {
    for (const Row& row : rows) PARTITA_TRY(Put(row.keys, row.value, level));
    return Status();
  }
  Status DeleteAtomically(std::span<const RowKeys>, DurabilityLevel) override { return Status(); }
  Status Get(const RowKeys& keys, std::string* value) override {
    const std::lock_guard lock(mutex_);
    const auto found = rows_.find(Text(keys));
    if (found == rows_.end()) return Status::NotFound("no such row");
    *value = found->second;
    return Status();
  }
  Status Scan(const RowKeys&, uint64_t, const RowVisitor&) override { return Status(); }
  Status Settle() override {
    settled = ResourceUse::Now();
    puts_since_settled = 0;
    return Status();
  }
  Status Close() override { return Status(); }

  ResourceUse settled;
  uint64_t puts_since_settled = 0;

 private:
  static std::string Text(const RowKeys& keys) { return std::string(keys.partition()).append(keys.row()); }
  std::mutex mutex_;
  std::map<std::string, std::string> rows_;
};

TEST(WorkloadTest, WhatAWorkloadPreparesSettlesAndDoesNotCount) {
  LoadConfig config;
  config.keys = 200;
  config.value_size = 100;
  config.seconds = 0.03;
  const ValueGenerator values(config.value_size, config.seed);
  SettlingMapEngine engine;
  const LoadContext context{.config = config, .values = values, .engine = engine};
  std::string value;
  for (uint64_t index = 0; index < config.keys; ++index) {
    values.Fill(index, 0, &value);
    ASSERT_TRUE(engine.Put(KeysOf(index), value, DurabilityLevel::kMemory).ok());
  }
  for (const bool paced : {true, false}) {
    Measurement measurement;
    const Status run =
        paced ? RunPaced(0.5, context, &measurement) : RunConditionalBatches(context, &measurement);
    ASSERT_TRUE(run.ok()) << run.ToString();
    EXPECT_GT(engine.settled.cpu_seconds, 0);
    EXPECT_GE(measurement.begun.cpu_seconds, engine.settled.cpu_seconds);
    EXPECT_EQ(measurement.user_bytes, engine.puts_since_settled * (kRowKeyBytes + config.value_size));
    EXPECT_GT(measurement.user_bytes, 0u);
  }
}

// Which stands still from some operation after the last settling on.
class StallingMapEngine final : public SettlingMapEngine {
 public:
  Status Settle() override {
    operations_left_ = 100;
    return SettlingMapEngine::Settle();
  }
  Status Get(const RowKeys& keys, std::string* value) override {
    if (--operations_left_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return SettlingMapEngine::Get(keys, value);
  }

 private:
  std::atomic<int64_t> operations_left_ = INT64_MAX;
};

TEST(WorkloadTest, AStallUntilTheEndFallsOnAllThatWasDueAtAPace) {
  LoadConfig config;
  config.keys = 1;
  config.value_size = 100;
  config.seconds = 0.3;  // Of which the last 0.2 are at a pace.
  const ValueGenerator values(config.value_size, config.seed);
  StallingMapEngine engine;
  const LoadContext context{.config = config, .values = values, .engine = engine};
  std::string value;
  values.Fill(0, 0, &value);
  ASSERT_TRUE(engine.Put(KeysOf(0), value, DurabilityLevel::kMemory).ok());
  Measurement measurement;
  const Status run = RunPaced(0.5, context, &measurement);
  ASSERT_TRUE(run.ok()) << run.ToString();
  ASSERT_TRUE(measurement.IsCorrect()) << measurement.first_error;
  EXPECT_LT(measurement.operations, measurement.latency.count());
  EXPECT_EQ(measurement.latency.count(), measurement.paced_due);
  EXPECT_EQ(measurement.operations, measurement.paced_done);
  EXPECT_GE(measurement.latency.max(), 300'000'000u);
  EXPECT_FALSE(measurement.KeptPace());
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

TEST(MeasurementTest, CoresThatOneIsKeptFromDoNotCount) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(UsableCores(), static_cast<uint32_t>(CPU_COUNT(&before)));
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(UsableCores(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(MeasurementTest, JsonEscapesTheEnginesOwnWords) {
  Measurement measurement;
  measurement.engine = "partita";
  measurement.workload = "overwrite";
  measurement.first_error = "file \"a\\b\"\nline";
  const std::string json = ToJson({measurement});
  EXPECT_NE(json.find(R"("first_error": "file \"a\\b\" line")"), std::string::npos) << json;
}

TEST(MeasurementTest, AWrongAnswerStandsInTheTableInPlaceOfItsSpeed) {
  Measurement measurement;
  measurement.operations = 4711;
  measurement.seconds = 1;
  EXPECT_NE(TableLine(measurement).find("4.7 k"), std::string::npos);
  measurement.wrong = 3;
  EXPECT_NE(TableLine(measurement).find("WRONG ANSWERS: 3 wrong"), std::string::npos);
  EXPECT_EQ(TableLine(measurement).find("4.7 k"), std::string::npos);
}

}  // namespace
}  // namespace partita::bench

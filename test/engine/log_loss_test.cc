#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "wal/log_inspect.h"
#include "wal/segment_format.h"

// covers: F31 F33 F35 F80: a log that lost its newest file ends well in the one before; only what the
// manifest remembers of it tells. In the simulator, where segments are small and rotate often.

namespace partita {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

enum class End { kClose, kKill };

class LogLossTest : public testing::TestWithParam<End> {
 protected:
  StoreOptions SmallSegments() const {
    StoreOptions options;
    options.create_if_missing = true;
    options.memory_bytes = 64u << 20;
    options.shards = shards_;
    options.log_segment_bytes = 64u << 10;
    options.log_tail_bytes = 64u << 10;
    return options;
  }

  // One life: opens, writes `rows` rows of 1 KiB of each table into the log alone, of the first of them to
  // that of the last shard, and ends. Returns what Open said.
  Status Live(uint64_t seed, int rows, DurabilityLevel level = DurabilityLevel::kPower,
              StoreOpenReport* report = nullptr) {
    SimRuntime runtime({.seed = seed, .shards = shards_}, disk_);
    Result<std::unique_ptr<Store>> opened = runtime.RunToEnd(Store::Open(runtime, SmallSegments()));
    if (!opened.ok()) return opened.status();
    Store& store = **opened;
    if (report != nullptr) *report = store.open_report();
    for (const std::string& name : tables_) {
      Result<TableDescriptor> table = store.FindTable("default", name);
      if (!table.ok()) {
        Store::TableSpec spec;
        spec.account = "default";
        spec.name = name;
        spec.raw = true;
        table = runtime.RunToEnd(store.CreateTable(std::move(spec)));
        EXPECT_TRUE(table.ok()) << table.status().ToString();
      }
      std::string value(1000, 'v');
      for (int i = 0; i < rows; ++i) {
        std::string key =
            EncodeUserKey(table->id, "p", std::to_string(seed * 1000 + static_cast<uint64_t>(i)));
        WriteOp op;
        op.user_key = key;
        op.content = value;
        WriteRequest request;
        request.table = table->id;
        request.ops = std::span<const WriteOp>(&op, 1);
        request.durability = level;
        WriteOutcome written = runtime.RunToEnd(store.Write(request));
        EXPECT_TRUE(written.status.ok()) << written.status.ToString();
      }
    }
    if (GetParam() == End::kKill) runtime.CrashNow();
    Status closed = runtime.RunToEnd(store.Close());
    EXPECT_TRUE(closed.ok() || GetParam() == End::kKill) << closed.ToString();
    return Status();
  }

  std::string NewestSegment(const std::string& log = "log-1-0/") const {
    std::string newest;
    uint64_t id = 0;
    for (const std::string& path : disk_.ListFiles(log)) {
      Result<std::string> content = disk_.ReadFile(path);
      if (!path.ends_with(".log") || !content.ok() || content->size() < kSegmentHeaderSize) continue;
      Result<SealedHeader> header =
          DecodeSegmentHeader(std::string_view(*content).substr(0, kSegmentHeaderSize));
      if (!header.ok() || header->header.segment.value <= id) continue;
      id = header->header.segment.value;
      newest = path;
    }
    return newest;
  }

  // Has the last frame of a log rot, which nothing tells from one that was not written to its end.
  void TearEnd(const std::string& log) {
    const std::string path = NewestSegment(log);
    uint64_t last = 0;
    SimRuntime runtime({.seed = 1}, disk_);
    const auto note = [&last](const InspectedFrame& frame) { last = frame.offset; };
    ASSERT_TRUE(runtime.RunToEnd(InspectSegment(runtime.files(), path, note)).ok());
    ASSERT_GT(last, 0u);
    disk_.FlipBit(path, last + 64, 1);
  }

  SimDisk disk_{5};
  uint32_t shards_ = 1;
  std::vector<std::string> tables_ = {"rows"};
};

INSTANTIATE_TEST_SUITE_P(Ends, LogLossTest, testing::Values(End::kClose, End::kKill),
                         [](const auto& info) { return info.param == End::kClose ? "Closed" : "Killed"; });

TEST_P(LogLossTest, TheNewestSegmentOfALifeThatRotatedIsMissed) {
  ASSERT_TRUE(Live(1, 150).ok());  // Some 12 segments, the last one some 10 rows long.
  std::string path = NewestSegment();
  std::string content = *disk_.ReadFile(path);
  disk_.RemoveFile(path);
  Status opened = Live(2, 0);
  EXPECT_EQ(opened.code(), Code::kCorruption) << opened.ToString();
  EXPECT_THAT(opened.message(), AllOf(HasSubstr("log-1-0"), HasSubstr("missing"), HasSubstr("(F35)")));
  disk_.WriteFile(path, content);
  opened = Live(3, 0);
  EXPECT_TRUE(opened.ok()) << opened.ToString();
}

TEST_P(LogLossTest, TheOnlySegmentOfALifeIsMissed) {
  ASSERT_TRUE(Live(1, 10).ok());
  ASSERT_TRUE(Live(2, 10).ok());
  std::string path = NewestSegment();
  disk_.RemoveFile(path);
  Status opened = Live(3, 0);
  EXPECT_EQ(opened.code(), Code::kCorruption) << opened.ToString();
  EXPECT_THAT(opened.message(), HasSubstr("(F35)"));
}

TEST_P(LogLossTest, AMissingTailIsMissed) {
  ASSERT_TRUE(Live(1, 10).ok());
  ASSERT_TRUE(disk_.RemoveFile("log-1-0/tail"));
  Status opened = Live(2, 0);
  EXPECT_EQ(opened.code(), Code::kCorruption) << opened.ToString();
  EXPECT_THAT(opened.message(), AllOf(HasSubstr("log-1-0/tail"), HasSubstr("(F35)")));
}

// Acknowledged at level process, and in the tail alone, where a record in front of it rots.
TEST_P(LogLossTest, WhatIsLostBehindABadRecordOfTheTailIsTold) {
  ASSERT_TRUE(Live(1, 10, DurabilityLevel::kProcess).ok());
  const std::string path = "log-1-0/tail", tail = *disk_.ReadFile(path);
  std::vector<size_t> records;
  for (size_t at = tail.find("PTLT"); at != std::string::npos; at = tail.find("PTLT", at + 1))
    records.push_back(at);
  ASSERT_GE(records.size(), 10u);
  disk_.FlipBit(path, records[records.size() - 4], 1);
  StoreOpenReport report;
  ASSERT_TRUE(Live(2, 0, DurabilityLevel::kPower, &report).ok());
  if (GetParam() == End::kClose) {  // Segments got all of it.
    EXPECT_TRUE(report.clean_shutdown);
    EXPECT_EQ(report.records_stranded, 0u);
    return;
  }
  EXPECT_FALSE(report.clean_shutdown);
  EXPECT_EQ(report.records_stranded, 3u);
  ASSERT_EQ(report.stranded_logs.size(), 1u);
  EXPECT_THAT(report.stranded_logs[0], HasSubstr("shard 0: 3 records up to position"));
}

TEST_P(LogLossTest, ATornEndIsToldOnceByBytesAndPosition) {
  ASSERT_TRUE(Live(1, 10).ok());
  TearEnd("log-1-0/");
  StoreOpenReport report;
  ASSERT_TRUE(Live(2, 0, DurabilityLevel::kPower, &report).ok());
  EXPECT_FALSE(report.clean_shutdown);
  EXPECT_EQ(report.torn_bytes, 4096u);
  // Closed, the last frame holds no record.
  const std::string position = GetParam() == End::kClose ? "10" : "9";
  EXPECT_THAT(report.torn_logs,
              ElementsAre(HasSubstr("shard 0: 4096 bytes of the log behind position " + position + " ")));
  StoreOpenReport next;
  ASSERT_TRUE(Live(3, 0, DurabilityLevel::kPower, &next).ok());
  EXPECT_EQ(next.torn_bytes, 0u);
  EXPECT_THAT(next.torn_logs, IsEmpty());
}

// The cut is made, and no opening finds it again.
TEST_P(LogLossTest, ATornEndIsToldWhereAnotherShardRefuses) {
  shards_ = 2;
  ASSERT_TRUE(Live(1, 10).ok());
  TearEnd("log-1-1/");
  const std::string path = NewestSegment("log-1-0/"), content = *disk_.ReadFile(path);
  disk_.RemoveFile(path);
  const std::string torn = "shard 1: 4096 bytes of the log behind position ";
  const Status refused = Live(2, 0);
  EXPECT_EQ(refused.code(), Code::kCorruption);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("log-1-0"), HasSubstr("(F35)"), HasSubstr(torn)));
  EXPECT_THAT(Live(3, 0).message(), AllOf(HasSubstr("log-1-0"), Not(HasSubstr(torn))));
  disk_.WriteFile(path, content);
  EXPECT_TRUE(Live(4, 0).ok());
}

// Likewise where the shards themselves do not open, for what comes behind their logs: of each of them.
TEST_P(LogLossTest, TornEndsAreToldWhereManifestsCannotBeSaved) {
  shards_ = 2;
  tables_ = {"rows", "others"};
  ASSERT_TRUE(Live(1, 10).ok());
  TearEnd("log-1-0/");
  TearEnd("log-1-1/");
  SimRuntime runtime({.seed = 2, .shards = shards_}, disk_);
  runtime.AddFault(
      {.operations = SimOps(SimOp::kWrite), .path_prefix = "meta/shard-", .code = Code::kIoError});
  const auto opened = runtime.RunToEnd(Store::Open(runtime, SmallSegments()));
  EXPECT_EQ(opened.code(), Code::kIoError);
  EXPECT_THAT(opened.status().message(), AllOf(HasSubstr("shard 0: 4096 bytes of the log behind position "),
                                               HasSubstr("shard 1: 4096 bytes of the log behind position ")));
}

// And of one without which the store is opened.
TEST_P(LogLossTest, ATornEndOfAShardThatIsNotServedIsTold) {
  shards_ = 2;
  ASSERT_TRUE(Live(1, 10).ok());
  TearEnd("log-1-1/");
  SimRuntime runtime({.seed = 2, .shards = shards_}, disk_);
  runtime.AddFault(
      {.operations = SimOps(SimOp::kWrite), .path_prefix = "meta/shard-1-1", .code = Code::kIoError});
  StoreOptions options = SmallSegments();
  options.open_degraded = true;
  const auto opened = runtime.RunToEnd(Store::Open(runtime, options));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  const StoreOpenReport& report = (*opened)->open_report();
  EXPECT_EQ(report.damaged_shards.size(), 1u);
  EXPECT_EQ(report.torn_bytes, 4096u);
  EXPECT_THAT(report.torn_logs, ElementsAre(HasSubstr("shard 1: 4096 bytes of the log behind position ")));
  EXPECT_FALSE(report.clean_shutdown);
  EXPECT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
}

}  // namespace
}  // namespace partita

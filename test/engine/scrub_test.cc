#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/base/user_key.h"
#include "engine/io/local_meta_store.h"
#include "engine/io/sim_runtime.h"
#include "engine/manifest.h"
#include "engine/store.h"
#include "wal/log_inspect.h"
#include "wal/segment_format.h"

// covers: F50 F46 F48

namespace partita {
namespace {

class ScrubTest : public testing::Test {
 protected:
  static StoreOptions SmallStore() {
    StoreOptions options;
    options.create_if_missing = true;
    options.memory_bytes = 64u << 20;
    options.memtable_data_bytes = 8u << 10;
    options.table_file_bytes = 16u << 10;
    options.log_segment_bytes = 64u << 10;
    options.log_tail_bytes = 64u << 10;
    return options;
  }

  void SetUp() override {
    auto opened = runtime_.RunToEnd(Store::Open(runtime_, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "rows";
    spec.raw = true;
    ASSERT_TRUE(runtime_.RunToEnd(store_->CreateTable(std::move(spec))).ok());
    Run(Write(store_.get(), 0, 400));
  }
  void TearDown() override {
    if (store_ == nullptr) return;
    runtime_.AdvanceTime(5'000'000'000);
    EXPECT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
  }

  static Task<bool> Write(Store* store, int first, int count) {
    for (int i = first; i < first + count; ++i) {
      const std::string key = EncodeUserKey(TableId(1), "p", "r" + std::to_string(i * 7919 % 1000));
      const std::string value(100, 'x');
      WriteOp op;
      op.user_key = key;
      op.content = value;
      WriteRequest request;
      request.table = TableId(1);
      request.ops = std::span<const WriteOp>(&op, 1);
      request.durability = DurabilityLevel::kPower;
      const WriteOutcome outcome = co_await store->Write(request);
      if (!outcome.status.ok()) co_return false;
    }
    co_return true;
  }
  static Task<void> WriteBeside(Store* store) { (void)co_await Write(store, 400, 1500); }
  void Run(Task<bool> task) { EXPECT_TRUE(runtime_.RunToEnd(std::move(task))); }

  // With large memtables no flush lets go of what is damaged.
  void ReopenWithSegments(uint64_t segment_bytes, uint64_t memtable_bytes = 1u << 20) {
    ASSERT_TRUE(runtime_.RunToEnd(store_->Close()).ok());
    StoreOptions options = SmallStore();
    options.log_segment_bytes = segment_bytes;
    options.memtable_data_bytes = memtable_bytes;
    auto opened = runtime_.RunToEnd(Store::Open(runtime_, options));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }
  // By their number: those of which the file was not used again.
  std::map<uint64_t, std::string> SegmentsInUse() {
    std::map<uint64_t, std::string> in_use;
    for (const std::string& file : disk_.ListFiles("log-1-0/")) {
      if (!file.ends_with(".log")) continue;
      const auto segment = runtime_.RunToEnd(InspectSegment(runtime_.files(), file, nullptr));
      EXPECT_TRUE(segment.ok()) << segment.status().ToString();
      const bool in_use_now = segment.ok() && segment->header_valid && segment->segment.value != 0;
      if (in_use_now) in_use[segment->segment.value] = file;
    }
    return in_use;
  }

  InspectedSegment Inspect(const std::string& file,
                           std::function<void(const InspectedFrame&)> each = nullptr) {
    auto segment = runtime_.RunToEnd(InspectSegment(runtime_.files(), file, std::move(each)));
    EXPECT_TRUE(segment.ok()) << segment.status().ToString();
    return segment.ok() ? std::move(segment).value() : InspectedSegment();
  }
  static Task<LogPosition> LoadReplayFrom(FileSystem* files, StoreId store) {
    auto meta = co_await LocalMetaStore::Open(*files, store, IfMissing::kFail);
    if (!meta.ok()) co_return LogPosition();
    ManifestStore manifests(**meta, 1, ShardId(0));
    const Result<Manifest> manifest = co_await manifests.Load();
    co_return manifest.ok() ? manifest->replay_from : LogPosition();
  }

  // Of the simulated clock.
  uint64_t SecondsOfScrub(const ScrubOptions& options) {
    const uint64_t began = runtime_.now_ns();
    (void)Scrub(options);
    return (runtime_.now_ns() - began) / 1'000'000'000;
  }
  ScrubReport Scrub(ScrubOptions options = {}) {
    auto report = runtime_.RunToEnd(store_->Scrub(options));
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    return report.ok() ? std::move(report).value() : ScrubReport();
  }

  SimDisk disk_{5};
  SimRuntime runtime_{{.seed = 5, .shards = 1}, disk_};
  std::unique_ptr<Store> store_;
};

TEST_F(ScrubTest, ReadsEverythingOfASoundStore) {
  const ScrubReport report = Scrub();
  EXPECT_THAT(report.damages, testing::IsEmpty());
  EXPECT_GT(report.tables, 0u);
  EXPECT_GT(report.entries, 0u);
  EXPECT_GE(report.log_segments, 1u);
  EXPECT_EQ(report.meta_values, 2u);
}

TEST_F(ScrubTest, FindsNothingWrongWithFilesThatAreWrittenAndRemovedMeanwhile) {
  runtime_.Spawn(WriteBeside(store_.get()));
  ScrubOptions options;
  options.pace.bytes_per_second = 1 << 20;
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Scrub(options).damages, testing::IsEmpty());
}

TEST_F(ScrubTest, FindsTablesThatRotWhereNobodyReads) {
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  runtime_.AdvanceTime(5'000'000'000);
  const std::vector<std::string> tables = disk_.ListFiles("tables/");
  ASSERT_FALSE(tables.empty());
  disk_.FlipBit(tables.front(), 100, 2);
  const uint64_t before = store_->read_faults().damaged_parts.load();
  const ScrubReport report = Scrub();
  ASSERT_EQ(report.damages.size(), 1u);
  EXPECT_THAT(report.damages[0], testing::HasSubstr(tables.front()));
  EXPECT_EQ(store_->read_faults().damaged_parts.load(), before + 1);
}

// covers: F52
TEST_F(ScrubTest, CountsWhatWasBadOnceAndIsNoDamage) {
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  runtime_.AdvanceTime(5'000'000'000);
  const uint64_t before = store_->read_faults().transient.load();
  runtime_.AddFault({.effect = SimEffect::kRotOnce,
                     .operations = SimOps(SimOp::kRead),
                     .path_prefix = "tables/",
                     .probability = 0.1});
  // Now and then the second read is bad as well, and then it is damage.
  uint64_t transient = 0;
  for (int i = 0; i < 20 && transient < 3; ++i) transient += Scrub().transient;
  runtime_.ClearFaults();
  EXPECT_GE(transient, 3u);
  EXPECT_EQ(store_->read_faults().transient.load(), before + transient);
}

// covers: F52
TEST_F(ScrubTest, CountsMetaValuesThatWereBadOnce) {
  for (const std::string file : {"meta/catalog", "meta/shard-1-0"}) {
    const uint64_t before = store_->reads_transient();
    const size_t fault = runtime_.AddFault(
        {.effect = SimEffect::kRotOnce, .operations = SimOps(SimOp::kRead), .path_prefix = file, .count = 1});
    const ScrubReport report = Scrub();
    EXPECT_EQ(runtime_.FaultHits(fault), 1u);
    runtime_.RemoveFault(fault);
    EXPECT_THAT(report.damages, testing::IsEmpty());
    EXPECT_EQ(report.transient, 1u);
    EXPECT_EQ(store_->reads_transient(), before + 1);
  }
}

TEST_F(ScrubTest, FindsRottenManifestsAndCatalogsAndLogs) {
  runtime_.AdvanceTime(5'000'000'000);  // Until nothing is written any more.
  for (const std::string file : {"meta/catalog", "meta/shard-1-0"}) {
    disk_.FlipBit(file, 60, 2);
    EXPECT_THAT(Scrub().damages, testing::ElementsAre(testing::HasSubstr(file)));
    disk_.FlipBit(file, 60, 2);
  }
  // The first frame of a segment: what was flushed behind it proves that it was whole.
  std::string newest;
  for (const std::string& file : disk_.ListFiles("log-1-0/")) {
    if (!file.ends_with(".log")) continue;
    disk_.FlipBit(file, 4096 + 200, 1);
    const ScrubReport report = Scrub();
    disk_.FlipBit(file, 4096 + 200, 1);
    if (report.damages.empty()) continue;
    EXPECT_THAT(report.damages, testing::ElementsAre(testing::HasSubstr(file)));
    newest = file;
  }
  EXPECT_FALSE(newest.empty());
  EXPECT_THAT(Scrub().damages, testing::IsEmpty());
}

// Each group that is flushed meanwhile proves the same damage anew. Also where the log goes on in another
// segment by then, in front of which it is missing.
TEST_F(ScrubTest, FindsDamageInTheSegmentThatIsWrittenTo) {
  for (const uint64_t segment_bytes : {4u << 20, 256u << 10}) {
    SCOPED_TRACE(segment_bytes);
    ReopenWithSegments(segment_bytes);
    Run(Write(store_.get(), 0, 5));
    const std::string file = SegmentsInUse().rbegin()->second;
    disk_.FlipBit(file, 4096 + 200, 1);
    runtime_.Spawn(WriteBeside(store_.get()));
    const ScrubReport report = Scrub();
    EXPECT_GT(runtime_.spawned_running(), 0u) << "it was idle in the end";
    EXPECT_THAT(report.damages, testing::ElementsAre(testing::HasSubstr(file)));
    runtime_.AdvanceTime(60'000'000'000);
    disk_.FlipBit(file, 4096 + 200, 1);
  }
}

// Recovery reads on up to the frame that the next segment names, also where no record ends in it.
TEST_F(ScrubTest, FindsARottenSealOfASegmentThatEnded) {
  ReopenWithSegments(64u << 10);
  Run(Write(store_.get(), 0, 5));
  const std::string file = SegmentsInUse().rbegin()->second;
  ReopenWithSegments(64u << 10);
  InspectedFrame last;
  (void)Inspect(file, [&last](const InspectedFrame& frame) { last = frame; });
  ASSERT_THAT(last.flags, testing::Contains("seal"));
  EXPECT_THAT(Scrub().damages, testing::IsEmpty());
  disk_.FlipBit(file, last.offset + 20, 1);
  EXPECT_THAT(Scrub().damages,
              testing::ElementsAre(testing::HasSubstr(file + ", offset " + std::to_string(last.offset))));
  disk_.FlipBit(file, last.offset + 20, 1);
}

// What is expected of the log moves on with each flush of a memtable; what it lacks stays.
TEST_F(ScrubTest, FindsThatASegmentIsLostWhileMemtablesAreFlushed) {
  constexpr uint64_t kSegmentBytes = 1u << 20, kMemtableBytes = 8u << 10;
  ReopenWithSegments(kSegmentBytes, kMemtableBytes);
  runtime_.AdvanceTime(5'000'000'000);
  SimFault slow{.effect = SimEffect::kSlow, .operations = SimOps(SimOp::kFlush), .path_prefix = "tables/"};
  slow.delay_ns = 10'000'000'000;
  const size_t stuck = runtime_.AddFault(slow);
  const uint64_t first = SegmentsInUse().rbegin()->first;
  for (int i = 0; SegmentsInUse().rbegin()->first < first + 2; i += 20) Run(Write(store_.get(), i, 20));
  const std::string lost = SegmentsInUse()[first + 1];
  const InspectedSegment segment = Inspect(lost);
  runtime_.RemoveFault(stuck);
  slow.delay_ns = 40'000'000;
  runtime_.AddFault(slow);
  const auto replay_from = [&] {
    return runtime_.RunToEnd(LoadReplayFrom(&runtime_.files(), segment.store));
  };
  const LogPosition stood = replay_from();
  while (replay_from() == stood) runtime_.AdvanceTime(10'000'000);

  const LogPosition before = replay_from();
  disk_.FlipBit(lost, 20, 3);
  const ScrubReport report = Scrub();
  const LogPosition after = replay_from();
  EXPECT_GT(after, before);
  EXPECT_LT(after, segment.begin.first_position) << "it is not needed any more";
  EXPECT_THAT(report.damages, testing::ElementsAre(testing::HasSubstr("the log begins at position")));
  disk_.FlipBit(lost, 20, 3);
}

// Recovery would refuse the shard for it, and what is only in memtables is then lost.
TEST_F(ScrubTest, FindsThatTheNewestSegmentIsLost) {
  runtime_.AdvanceTime(5'000'000'000);
  const std::map<uint64_t, std::string> in_use = SegmentsInUse();
  ASSERT_FALSE(in_use.empty());
  const auto& [number, file] = *in_use.rbegin();
  disk_.FlipBit(file, 20, 3);
  EXPECT_THAT(Scrub().damages, testing::ElementsAre(testing::HasSubstr("segment " + std::to_string(number))));
  disk_.FlipBit(file, 20, 3);
  EXPECT_THAT(Scrub().damages, testing::IsEmpty());
}

// A flush fails, though what it was for had arrived, and the process dies before the records are in the next
// segment: it never takes effect, and its file is a spare that has kept its header.
TEST_F(ScrubTest, AMoveToANewSegmentThatWasCutOffIsNoDamage) {
  const auto [number, file] = *SegmentsInUse().rbegin();
  runtime_.AddFault({.operations = SimOps(SimOp::kFlush), .path_prefix = "log-1-0/0", .count = 2});
  EXPECT_FALSE(runtime_.RunToEnd(Write(store_.get(), 400, 1)));
  disk_.WriteFile(file, *disk_.ReadFile(file));
  runtime_.OnCompletion([this, number = number](const SimOperationRecord& done) {
    if (done.op != SimOp::kWrite || !done.path.ends_with(".log") || done.size != kSegmentHeaderSize) return;
    const std::string content = *disk_.ReadFile(done.path);
    const auto header = DecodeSegmentHeader(std::string_view(content).substr(0, kSegmentHeaderSize));
    if (header.ok() && header->header.segment.value > number) runtime_.CrashNow();
  });
  runtime_.AdvanceTime(5'000'000'000);
  ASSERT_TRUE(runtime_.crashed());
  (void)runtime_.RunToEnd(store_->Close());
  store_.reset();
  disk_.CrashProcess();

  SimRuntime next_life({.seed = 6, .shards = 1}, disk_);
  auto opened = next_life.RunToEnd(Store::Open(next_life, SmallStore()));
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  auto report = next_life.RunToEnd((*opened)->Scrub({}));
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  if (report.ok()) EXPECT_THAT(report->damages, testing::IsEmpty());
  EXPECT_TRUE(next_life.RunToEnd((*opened)->Close()).ok());
}

TEST_F(ScrubTest, ALogThatCannotBeReadKeepsNobodyFromTheTables) {
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  const uint64_t tables = Scrub().tables;
  const size_t fault = runtime_.AddFault({.operations = SimOps(SimOp::kRead), .path_prefix = "log-1-0/"});
  const ScrubReport report = Scrub();
  runtime_.RemoveFault(fault);
  EXPECT_THAT(report.damages, testing::Contains(testing::HasSubstr("log-1-0/")));
  EXPECT_EQ(report.tables, tables);
  EXPECT_GT(report.tables, 0u);
}

// The first look takes long, and what it finds may all have passed.
TEST_F(ScrubTest, WhatThePacedLookCouldNotReadHidesNoDamage) {
  ReopenWithSegments(256u << 10);
  Run(Write(store_.get(), 0, 5));
  runtime_.AdvanceTime(5'000'000'000);
  const std::string file = SegmentsInUse().rbegin()->second;
  disk_.FlipBit(file, 4096 + 200, 1);
  runtime_.AddFault({.operations = SimOps(SimOp::kRead), .path_prefix = "log-1-0/", .count = 1});
  EXPECT_THAT(Scrub().damages, testing::ElementsAre(testing::HasSubstr(file + ", offset ")));
  disk_.FlipBit(file, 4096 + 200, 1);
}

TEST_F(ScrubTest, LackOfMemoryIsNoDamage) {
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  runtime_.AdvanceTime(5'000'000'000);
  const size_t fault = runtime_.AddFault(
      {.operations = SimOps(SimOp::kRead), .path_prefix = "tables/", .code = Code::kResourceExhausted});
  EXPECT_EQ(runtime_.RunToEnd(store_->Scrub({})).code(), Code::kResourceExhausted);
  runtime_.RemoveFault(fault);
}

TEST_F(ScrubTest, LackOfMemoryForALogKeepsNobodyFromTheTables) {
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  runtime_.AdvanceTime(5'000'000'000);
  const std::string table = disk_.ListFiles("tables/").front();
  disk_.FlipBit(table, 100, 2);
  const size_t fault = runtime_.AddFault(
      {.operations = SimOps(SimOp::kRead), .path_prefix = "log-1-0/", .code = Code::kResourceExhausted});
  const Status ended = runtime_.RunToEnd(store_->Scrub({})).status();
  runtime_.RemoveFault(fault);
  EXPECT_EQ(ended.code(), Code::kResourceExhausted);
  EXPECT_THAT(ended.message(), testing::HasSubstr(table));
}

TEST_F(ScrubTest, LackOfMemoryForAMetaValueKeepsNobodyFromTheOthers) {
  runtime_.AdvanceTime(5'000'000'000);
  disk_.FlipBit("meta/shard-1-0", 60, 2);
  const size_t fault = runtime_.AddFault(
      {.operations = SimOps(SimOp::kRead), .path_prefix = "meta/catalog", .code = Code::kResourceExhausted});
  const Status ended = runtime_.RunToEnd(store_->Scrub({})).status();
  runtime_.RemoveFault(fault);
  disk_.FlipBit("meta/shard-1-0", 60, 2);
  EXPECT_EQ(ended.code(), Code::kResourceExhausted);
  EXPECT_THAT(ended.message(), testing::HasSubstr("meta/shard-1-0"));
}

// Without its manifest it is not known which segments of a log count.
TEST_F(ScrubTest, NoLogIsSoundForWhichThereWasNoMemory) {
  runtime_.AdvanceTime(5'000'000'000);
  const size_t fault = runtime_.AddFault({.operations = SimOps(SimOp::kRead),
                                          .path_prefix = "meta/shard-1-0",
                                          .skip = 1,
                                          .code = Code::kResourceExhausted});
  EXPECT_EQ(runtime_.RunToEnd(store_->Scrub({})).code(), Code::kResourceExhausted);
  runtime_.RemoveFault(fault);
}

// covers: F50 F80
TEST_F(ScrubTest, WhatItFoundIsToldWhereItEndsEarly) {
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  runtime_.AdvanceTime(5'000'000'000);
  const std::vector<std::string> tables = disk_.ListFiles("tables/");
  ASSERT_GE(tables.size(), 3u);
  disk_.FlipBit(tables.front(), 100, 2);
  disk_.FlipBit(tables.back(), 100, 2);
  const size_t fault = runtime_.AddFault(
      {.operations = SimOps(SimOp::kRead), .path_prefix = tables[1], .code = Code::kResourceExhausted});
  Status ended = runtime_.RunToEnd(store_->Scrub({})).status();
  runtime_.RemoveFault(fault);
  EXPECT_EQ(ended.code(), Code::kResourceExhausted);
  for (const std::string& damaged : {tables.front(), tables.back()})
    EXPECT_THAT(ended.message(), testing::HasSubstr(damaged));
  EXPECT_EQ(store_->scrub_damages(), 2u);

  disk_.FlipBit("meta/catalog", 60, 2);
  ScrubOptions options;
  options.pace.progress = [](uint64_t, uint64_t) { return false; };
  ended = runtime_.RunToEnd(store_->Scrub(options)).status();
  disk_.FlipBit("meta/catalog", 60, 2);
  EXPECT_EQ(ended.code(), Code::kCancelled);
  EXPECT_THAT(ended.message(), testing::HasSubstr("meta/catalog"));
  EXPECT_EQ(store_->scrub_damages(), 3u) << "who asked may have gone";
}

TEST_F(ScrubTest, SpreadsTheReadingOverItsPeriodAndTellsHowFarItIs) {
  ASSERT_TRUE(runtime_.RunToEnd(store_->FlushMemtables()).ok());
  ScrubOptions options;
  options.period_seconds = 100;
  uint64_t last = 0;
  options.pace.progress = [&](uint64_t done, uint64_t due) {
    EXPECT_LE(done, due);
    last = done;
    return true;
  };
  const uint64_t took_s = SecondsOfScrub(options);
  EXPECT_GE(took_s, 90u);
  EXPECT_GT(last, 0u);
}

// Each segment file has its whole size from the beginning, and is read whole.
TEST_F(ScrubTest, KeepsItsPeriodWhereNearlyAllIsLogFilesThatHoldNothing) {
  ReopenWithSegments(4u << 20);
  Run(Write(store_.get(), 0, 1));
  ScrubOptions options;
  options.period_seconds = 100;
  std::vector<uint64_t> shares;
  options.pace.progress = [&](uint64_t done, uint64_t due) {
    shares.push_back(done * 100 / due);
    return true;
  };
  const uint64_t took_s = SecondsOfScrub(options);
  EXPECT_GE(took_s, 90u);
  EXPECT_LE(took_s, 110u);
  EXPECT_GT(std::count(shares.begin(), shares.end(), 100), 0);
  EXPECT_LT(std::count(shares.begin(), shares.end(), 100), shares.size() / 2) << "as if done all the while";
}

TEST_F(ScrubTest, StopsWhenItIsAskedTo) {
  ScrubOptions options;
  options.pace.progress = [](uint64_t, uint64_t) { return false; };
  EXPECT_EQ(runtime_.RunToEnd(store_->Scrub(options)).code(), Code::kCancelled);
}

}  // namespace
}  // namespace partita

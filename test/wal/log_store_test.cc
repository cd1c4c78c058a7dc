#include <gtest/gtest.h>

#include "test/wal/log_harness.h"
#include "wal/frame_format.h"
#include "wal/log_inspect.h"
#include "wal/segment_format.h"

namespace partita {
namespace {

std::vector<std::string> Payloads(uint64_t first, size_t count, size_t size) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.push_back(PayloadFor(first + i, 1, size));
  return out;
}

TEST(LocalLogStoreTest, ANewLogIsEmptyAndBeginsAtPositionOne) {
  SimDisk disk(1);
  LogProcess process(disk, LogProcess::Options());
  Replayed replayed = process.Recover();
  EXPECT_EQ(replayed.report.records, 0u);
  EXPECT_EQ(replayed.report.last, LogPosition{0});
  EXPECT_EQ(process.log().durable_end(), LogPosition{0});
}

TEST(LocalLogStoreTest, FlushedRecordsSurviveThePowerCut) {
  SimDisk disk(2);
  const auto payloads = Payloads(1, 10, 700);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, payloads).ok());
    EXPECT_EQ(process.log().durable_end(), LogPosition{10});
    EXPECT_EQ(process.log().kernel_end(), LogPosition{10});
  }
  disk.CrashPower();
  LogProcess again(disk, LogProcess::Options(2));
  Replayed replayed = again.Recover();
  EXPECT_EQ(replayed.payloads, payloads);
  EXPECT_EQ(replayed.report.first, LogPosition{1});
  EXPECT_EQ(replayed.report.last, LogPosition{10});
  EXPECT_EQ(replayed.report.version_max, Version{1010});
  EXPECT_FALSE(replayed.report.clean);
}

TEST(LocalLogStoreTest, AppendAloneDoesNotRaiseTheDurableEndAndFlushDoes) {
  SimDisk disk(3);
  LogProcess process(disk, LogProcess::Options());
  process.Recover();
  ASSERT_TRUE(process.Append(1, Payloads(1, 3, 10)).ok());
  EXPECT_EQ(process.log().durable_end(), LogPosition{0});
  EXPECT_EQ(process.log().kernel_end(), LogPosition{3});
  ASSERT_TRUE(process.Flush().ok());
  EXPECT_EQ(process.log().durable_end(), LogPosition{3});
}

TEST(LocalLogStoreTest, RecordsRunOverFramesAndSegments) {
  SimDisk disk(4);
  const std::vector<size_t> sizes = {0, 1, 5000, 16'000, 70'000, 3, 300'000, 0, 20};
  std::vector<std::string> payloads;
  for (size_t i = 0; i < sizes.size(); ++i) payloads.push_back(PayloadFor(i + 1, 1, sizes[i]));
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    for (size_t i = 0; i < payloads.size(); ++i)
      ASSERT_TRUE(process.AppendAndFlush(i + 1, {payloads[i]}).ok());
    EXPECT_GT(process.log().stats().segments_started, 6u);
  }
  disk.CrashPower();
  LogProcess again(disk, LogProcess::Options(2));
  EXPECT_EQ(again.Recover().payloads, payloads);
}

TEST(LocalLogStoreTest, ARecordOfManyMegabytesGoesThroughOrdinarySegments) {
  SimDisk disk(5);
  auto options = LogProcess::Options();
  options.segment_size = 2 << 20;
  options.frame_size_max = kFrameSizeMax;
  const std::vector<std::string> payloads = {"before", PayloadFor(2, 1, 9 << 20), "after"};
  {
    LogProcess process(disk, options);
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, payloads).ok());
  }
  disk.CrashPower();
  options.incarnation = Incarnation{2};
  LogProcess again(disk, options);
  EXPECT_EQ(again.Recover().payloads, payloads);
}

TEST(LocalLogStoreTest, ARecordAboveTheLimitIsRefusedAndHarmsNothing) {
  SimDisk disk(6);
  LogProcess process(disk, LogProcess::Options());
  process.Recover();
  std::string tiny = "x";
  const LogRecord record{LogPosition{1}, Version{1}, {tiny.data(), kLogRecordSizeMax + 1}};
  EXPECT_EQ(RunBlocking(process.log().AppendAndFlush({&record, 1})).code(), Code::kInvalidArgument);
  EXPECT_TRUE(process.AppendAndFlush(1, {"fine"}).ok());
}

TEST(LocalLogStoreTest, ReplayBeginsWhereItIsAskedTo) {
  SimDisk disk(7);
  const auto payloads = Payloads(1, 100, 3000);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, payloads).ok());
  }
  for (uint64_t from : {1, 2, 50, 99, 100, 101}) {
    LogProcess again(disk, LogProcess::Options(static_cast<uint32_t>(1 + from)));
    Replayed replayed = again.Recover(from);
    EXPECT_EQ(replayed.payloads, std::vector<std::string>(payloads.begin() + from - 1, payloads.end()));
    EXPECT_EQ(replayed.report.last, LogPosition{100});
  }
  LogProcess beyond(disk, LogProcess::Options(200));
  EXPECT_EQ(beyond.TryRecover(102).code(), Code::kCorruption);
}

TEST(LocalLogStoreTest, TheTailSurvivesTheProcessAndNotThePowerCut) {
  const auto payloads = Payloads(1, 6, 500);
  for (bool power : {false, true}) {
    SimDisk disk(8);
    {
      LogProcess process(disk, LogProcess::Options());
      process.Recover();
      ASSERT_TRUE(process.AppendAndFlush(1, {payloads[0]}).ok());
      ASSERT_TRUE(process.AppendTail(2, {payloads[1], payloads[2]}).ok());
      EXPECT_EQ(process.log().kernel_end(), LogPosition{3});
      EXPECT_EQ(process.log().durable_end(), LogPosition{1});
      ASSERT_TRUE(process.Append(2, {payloads[1], payloads[2], payloads[3]}).ok());
      ASSERT_TRUE(process.AppendTail(5, {payloads[4], payloads[5]}).ok());  // 4 is in a segment.
    }
    power ? disk.CrashPower() : disk.CrashProcess();
    LogProcess again(disk, LogProcess::Options(2));
    Replayed replayed = again.Recover();
    if (!power) {
      EXPECT_EQ(replayed.payloads, payloads);
      EXPECT_EQ(again.log().durable_end(), LogPosition{6});
    }
    EXPECT_GE(replayed.payloads.size(), 1u);
    for (size_t i = 0; i < replayed.payloads.size(); ++i) EXPECT_EQ(replayed.payloads[i], payloads[i]);
  }
}

TEST(LocalLogStoreTest, WhatTheTailGaveBackSurvivesThePowerCutAfterwards) {
  SimDisk disk(9);
  const auto payloads = Payloads(1, 30, 300);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.AppendTail(1, payloads).ok());
  }
  disk.CrashProcess();
  {
    LogProcess again(disk, LogProcess::Options(2));
    EXPECT_EQ(again.Recover().payloads, payloads);
  }
  disk.CrashPower();
  LogProcess third(disk, LogProcess::Options(3));
  EXPECT_EQ(third.Recover().payloads, payloads);
}

// covers: F39
TEST(LocalLogStoreTest, WhoRefusesARecordOfTheTailIsToldWhereItStands) {
  SimDisk disk(9);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.AppendTail(1, Payloads(1, 3, 300)).ok());
  }
  disk.CrashProcess();
  LogProcess again(disk, LogProcess::Options(2));
  ASSERT_TRUE(again.TryOpen().ok());
  const auto refused = RunBlocking(again.log().Recover(LogPosition{1}, [](const LogRecord& record) {
    return record.position == LogPosition{2} ? Status::Corruption("bad") : Status();
  }));
  EXPECT_EQ(refused.code(), Code::kCorruption);
  EXPECT_EQ(refused.status().message(), kTestDirectory + "/tail, record with position 2: bad");
}

// covers: F3 F29. One flush after the other fails while the log is opened after a death: the process that
// comes then still finds what only the tail holds.
TEST(LocalLogStoreTest, WhatOnlyTheTailHoldsSurvivesAnOpeningWhoseFlushesFail) {
  const auto payloads = Payloads(1, 30, 300);
  uint64_t failed_openings = 0;
  for (uint64_t skip = 0; skip < 8; ++skip) {
    SimDisk disk(9);
    {
      LogProcess process(disk, LogProcess::Options());
      process.Recover();
      ASSERT_TRUE(process.AppendTail(1, payloads).ok());
    }
    disk.CrashProcess();
    {
      LogProcess again(disk, LogProcess::Options(2));
      again.runtime().AddFault({.operations = SimOps(SimOp::kFlush), .skip = skip, .count = 1});
      if (!again.TryRecover().ok()) ++failed_openings;
    }
    disk.CrashProcess();
    LogProcess third(disk, LogProcess::Options(3));
    EXPECT_EQ(third.Recover().payloads, payloads) << skip;
  }
  EXPECT_GT(failed_openings, 0u);
}

TEST(LocalLogStoreTest, AFullTailIsBusyUntilAFlushFreesIt) {
  SimDisk disk(10);
  LogProcess process(disk, LogProcess::Options());
  process.Recover();
  uint64_t next = 1;
  Status status;
  while ((status = process.AppendTail(next, Payloads(next, 1, 1000))).ok()) ++next;
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_GT(next, 20u);
  ASSERT_TRUE(process.AppendAndFlush(1, Payloads(1, next - 1, 1000)).ok());
  EXPECT_TRUE(process.AppendTail(next, Payloads(next, 1, 1000)).ok());
  EXPECT_EQ(process.AppendTail(next + 1, Payloads(next + 1, 1, 17'000)).code(), Code::kBusy);
}

TEST(LocalLogStoreTest, TrimRecyclesSegmentsAndOldBytesNeverComeBack) {
  SimDisk disk(11);
  auto options = LogProcess::Options();
  options.segment_size = 16 << 10;
  uint64_t next = 1;
  {
    LogProcess process(disk, options);
    process.Recover();
    for (int i = 0; i < 200; ++i, ++next) {
      ASSERT_TRUE(process.AppendAndFlush(next, Payloads(next, 1, 2000)).ok());
      if (i % 3 == 2) ASSERT_TRUE(process.Trim(next - 4).ok());
    }
    EXPECT_LT(process.log().stats().segments_created, 10u);
    EXPECT_GT(process.log().stats().segments_started, 60u);
    EXPECT_LE(disk.ListFiles(kTestDirectory).size(), 9u);
  }
  disk.CrashPower();
  options.incarnation = Incarnation{2};
  LogProcess again(disk, options);
  Replayed replayed = again.Recover(next - 5);
  EXPECT_EQ(replayed.payloads, Payloads(next - 5, 5, 2000));
}

// covers: F30. Each frame here is whole and in its place; only that the second one follows the first is
// wrong.
TEST(LocalLogStoreTest, AFrameThatFollowsAnotherOneIsNotTakenForTheNext) {
  SimDisk disk(22), other_disk(23);
  for (SimDisk* each : {&disk, &other_disk}) {
    LogProcess process(*each, LogProcess::Options());
    process.Recover();
    const std::string first = each == &disk ? "one history" : "another one";
    ASSERT_TRUE(process.AppendAndFlush(1, {first}).ok());
    ASSERT_TRUE(process.AppendAndFlush(2, {"the same"}).ok());
  }
  const std::string path = disk.ListFiles(kTestDirectory)[0];
  const uint64_t second_frame = kSegmentHeaderSize + kPageSize;
  const std::string others = *other_disk.ReadFile(path);
  ASSERT_GE(others.size(), second_frame + kPageSize);
  disk.WriteFileAt(path, second_frame, std::string_view(others).substr(second_frame, kPageSize));
  auto options = LogProcess::Options();
  options.incarnation = Incarnation{2};
  LogProcess again(disk, options);
  const auto replayed = again.TryRecover(1);
  EXPECT_EQ(replayed.code(), Code::kCorruption);
  EXPECT_NE(replayed.status().message().find("F30"), std::string::npos) << replayed.status().ToString();
}

TEST(LocalLogStoreTest, RecoveringFromBelowTheTrimmedPartIsDamage) {
  SimDisk disk(12);
  auto options = LogProcess::Options();
  options.segment_size = 16 << 10;
  {
    LogProcess process(disk, options);
    process.Recover();
    for (uint64_t p = 1; p <= 60; ++p) {
      ASSERT_TRUE(process.AppendAndFlush(p, Payloads(p, 1, 2000)).ok());
      ASSERT_TRUE(process.Trim(p).ok());
    }
  }
  options.incarnation = Incarnation{2};
  LogProcess again(disk, options);
  auto replayed = again.TryRecover(1);
  EXPECT_EQ(replayed.code(), Code::kCorruption);
  EXPECT_NE(replayed.status().message().find("F34"), std::string::npos) << replayed.status().ToString();
}

// covers: F32
TEST(LocalLogStoreTest, TheWatermarkMovesWithEachFlushedGroupAndWithTheSeal) {
  SimDisk disk(13);
  LogProcess process(disk, LogProcess::Options());
  process.Recover();
  for (uint64_t p = 1; p <= 3; ++p) ASSERT_TRUE(process.AppendAndFlush(p, {"record"}).ok());
  ASSERT_TRUE(process.Seal().ok());
  const uint64_t written = process.log().stats().bytes_written;
  ASSERT_TRUE(process.Seal().ok());  // Nothing new: nothing to write.
  EXPECT_EQ(process.log().stats().bytes_written, written);
  std::vector<uint64_t> watermarks;
  const std::string path = disk.ListFiles(kTestDirectory)[0];
  auto inspected = RunBlocking(InspectSegment(process.runtime().files(), path, [&](const InspectedFrame& f) {
    watermarks.push_back(f.durable_position.value);
  }));
  ASSERT_TRUE(inspected.ok());
  EXPECT_EQ(watermarks, (std::vector<uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(inspected->records_ended, 3u);
  EXPECT_EQ(inspected->last_position, LogPosition{3});
  EXPECT_FALSE(inspected->damaged);
}

TEST(LocalLogStoreTest, ACleanCloseIsSeenAsClean) {
  SimDisk disk(14);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.Append(1, {"one", "two"}).ok());
    ASSERT_TRUE(process.Seal(/*closing=*/true).ok());
    EXPECT_EQ(process.log().durable_end(), LogPosition{2});
    EXPECT_EQ(process.Append(3, {"three"}).code(), Code::kClosed);
  }
  disk.CrashPower();
  LogProcess again(disk, LogProcess::Options(2));
  Replayed replayed = again.Recover();
  EXPECT_TRUE(replayed.report.clean);
  EXPECT_EQ(replayed.report.torn_bytes, 0u);
  EXPECT_EQ(replayed.payloads, (std::vector<std::string>{"one", "two"}));
}

// The idle seal says no more than that nobody wrote just then.
TEST(LocalLogStoreTest, ALogThatOnlyRestedWhenItWasKilledIsNotClean) {
  SimDisk disk(14);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, {"one", "two"}).ok());
    ASSERT_TRUE(process.Seal(/*closing=*/false).ok());
  }
  disk.CrashProcess();
  LogProcess again(disk, LogProcess::Options(2));
  Replayed replayed = again.Recover();
  EXPECT_FALSE(replayed.report.clean);
  EXPECT_EQ(replayed.report.torn_bytes, 0u);
  EXPECT_EQ(replayed.payloads, (std::vector<std::string>{"one", "two"}));
}

TEST(LocalLogStoreTest, ALeasedCeilingIsDurableWithTheNextFlushEvenWithoutRecords) {
  SimDisk disk(15);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    process.log().LeaseCeiling(Version{777});
    EXPECT_LT(process.log().durable_ceiling(), Version{777});
    ASSERT_TRUE(process.Flush().ok());
    EXPECT_GE(process.log().durable_ceiling(), Version{777});
  }
  disk.CrashPower();
  {
    LogProcess again(disk, LogProcess::Options(2));
    EXPECT_EQ(again.Recover().report.version_max, Version{777});
    EXPECT_GE(again.log().durable_ceiling(), Version{777});
  }
  disk.CrashPower();
  LogProcess third(disk, LogProcess::Options(3));
  EXPECT_EQ(third.Recover().report.version_max, Version{777});
}

TEST(LocalLogStoreTest, AfterAFailureTheSegmentIsNotTouchedUntilTheMove) {
  for (SimOp op : {SimOp::kWrite, SimOp::kFlush}) {
    SimDisk disk(16);
    const auto payloads = Payloads(1, 9, 900);
    {
      LogProcess process(disk, LogProcess::Options());
      process.Recover();
      ASSERT_TRUE(process.AppendAndFlush(1, {payloads[0], payloads[1]}).ok());
      ASSERT_TRUE(process.Append(3, {payloads[2]}).ok());
      const size_t fault = process.runtime().AddFault({.operations = SimOps(op), .count = 1});
      const Status failed = process.AppendAndFlush(4, {payloads[3]});
      EXPECT_EQ(failed.code(), Code::kIoError);
      EXPECT_EQ(process.runtime().FaultHits(fault), 1u);
      const uint64_t writes = disk.operation_count(SimOp::kWrite),
                     flushes = disk.operation_count(SimOp::kFlush);
      EXPECT_EQ(process.Append(4, {payloads[3]}).code(), failed.code());
      EXPECT_EQ(process.Flush().code(), failed.code());
      EXPECT_EQ(process.AppendAndFlush(4, {payloads[3]}).code(), failed.code());
      EXPECT_EQ(process.Seal().code(), failed.code());
      EXPECT_EQ(disk.operation_count(SimOp::kWrite), writes);
      EXPECT_EQ(disk.operation_count(SimOp::kFlush), flushes);
      EXPECT_EQ(process.log().durable_end(), LogPosition{2});
      ASSERT_TRUE(process.Move(3, {payloads[2], payloads[3], payloads[4]}).ok());
      EXPECT_EQ(process.log().durable_end(), LogPosition{5});
      ASSERT_TRUE(process.AppendAndFlush(6, {payloads.begin() + 5, payloads.end()}).ok());
    }
    disk.CrashPower();
    LogProcess again(disk, LogProcess::Options(2));
    EXPECT_EQ(again.Recover().payloads, payloads);
  }
}

TEST(LocalLogStoreTest, AMoveLargerThanASegmentTakesEffectAsOne) {
  SimDisk disk(17);
  auto options = LogProcess::Options();
  options.segment_size = 16 << 10;
  const auto payloads = Payloads(1, 40, 3000);
  {
    LogProcess process(disk, options);
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, {payloads[0]}).ok());
    ASSERT_TRUE(process.Append(2, {payloads[1]}).ok());
    process.runtime().AddFault({.operations = SimOps(SimOp::kFlush), .count = 1});
    ASSERT_FALSE(process.Flush().ok());
    ASSERT_TRUE(process.Move(2, {payloads.begin() + 1, payloads.end()}).ok());
  }
  disk.CrashPower();
  options.incarnation = Incarnation{2};
  LogProcess again(disk, options);
  EXPECT_EQ(again.Recover().payloads, payloads);
}

TEST(LocalLogStoreTest, PrepareNextMakesASegmentThatTheRotationThenTakes) {
  SimDisk disk(18);
  auto options = LogProcess::Options();
  options.segment_size = 128 << 10;
  LogProcess process(disk, options);
  process.Recover();
  EXPECT_FALSE(process.log().needs_prepare()) << "nothing was written";
  ASSERT_TRUE(process.AppendAndFlush(1, Payloads(1, 1, 2000)).ok());
  EXPECT_TRUE(process.log().needs_prepare());
  ASSERT_TRUE(RunBlocking(process.log().PrepareNext()).ok());
  EXPECT_FALSE(process.log().needs_prepare());
  const uint64_t created = process.log().stats().segments_created;
  const uint64_t started = process.log().stats().segments_started;
  for (uint64_t p = 2; p <= 36; ++p) ASSERT_TRUE(process.AppendAndFlush(p, Payloads(p, 1, 2000)).ok());
  EXPECT_EQ(process.log().stats().segments_started, started + 1);
  EXPECT_EQ(process.log().stats().segments_created, created);
  EXPECT_TRUE(process.log().needs_prepare());
}

TEST(LocalLogStoreTest, AnIncarnationThatIsNotAboveTheLogsIsRefused) {
  SimDisk disk(19);
  {
    LogProcess process(disk, LogProcess::Options(5));
    process.Recover();
  }
  for (uint32_t incarnation : {4, 5}) {
    LogProcess again(disk, LogProcess::Options(incarnation));
    EXPECT_EQ(again.TryRecover().code(), Code::kCorruption);
  }
}

TEST(LocalLogStoreTest, FilesOfAnotherStoreOrShardAreRefusedAndLeftAlone) {
  SimDisk disk(20);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, {"mine"}).ok());
  }
  const std::string path = disk.ListFiles(kTestDirectory)[0];
  const std::string before = disk.ReadFile(path).value();
  for (bool other_store : {true, false}) {
    auto options = LogProcess::Options(2);
    if (other_store) options.store = StoreId{99};
    if (!other_store) options.shard = ShardId{9};
    LogProcess again(disk, options);
    auto replayed = again.TryRecover();
    EXPECT_EQ(replayed.code(), Code::kCorruption);
    EXPECT_NE(replayed.status().message().find(path), std::string::npos);
  }
  EXPECT_EQ(disk.ReadFile(path).value(), before);
}

TEST(LocalLogStoreTest, ALogOfAnotherSegmentSizeIsReadAndItsFilesAreReplaced) {
  SimDisk disk(25);
  auto options = LogProcess::Options();
  const auto payloads = Payloads(1, 60, 3000);
  {
    LogProcess process(disk, options);
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, {payloads.begin(), payloads.begin() + 50}).ok());
  }
  options.segment_size = 128 << 10;
  options.incarnation = Incarnation{2};
  {
    LogProcess process(disk, options);
    EXPECT_EQ(process.Recover().payloads, std::vector<std::string>(payloads.begin(), payloads.begin() + 50));
    ASSERT_TRUE(process.AppendAndFlush(51, {payloads.begin() + 50, payloads.end()}).ok());
    ASSERT_TRUE(process.Trim(60).ok());
  }
  for (const std::string& path : disk.ListFiles(kTestDirectory + "/0")) {
    EXPECT_EQ(disk.ReadFile(path)->size(), options.segment_size) << path;
  }
  options.incarnation = Incarnation{3};
  LogProcess again(disk, options);
  EXPECT_EQ(again.Recover(60).payloads, std::vector<std::string>{payloads.back()});
}

// F28: a log with a torn group and records that only the tail has, its recovery killed at every
// operation, once and twice.
TEST(LocalLogStoreTest, ARecoveryKilledAnywhereEndsInTheSameState) {
  SimDisk original(26);
  auto options = LogProcess::Options();
  options.segment_size = 16 << 10;
  const auto payloads = Payloads(1, 30, 700);
  {
    LogProcess process(original, options);
    process.Recover();
    for (uint64_t p = 1; p <= 12; ++p) ASSERT_TRUE(process.AppendAndFlush(p, {payloads[p - 1]}).ok());
    ASSERT_TRUE(process.AppendTail(13, {payloads.begin() + 12, payloads.end()}).ok());
  }
  original.CrashProcess();
  for (uint64_t first = 1; first < 200; ++first) {
    auto disk = original.Clone();
    bool crashed = false;
    for (uint32_t round = 0; round < 3; ++round) {
      options.incarnation = Incarnation{2 + round};
      LogProcess process(*disk, options, first);
      // Twice at the same place, then a little further on.
      process.runtime().CrashAtOperation(first + (round == 2 ? 3 : 0),
                                         first % 2 == 0 ? SimCrashMoment::kBefore : SimCrashMoment::kAfter);
      auto replayed = process.TryRecover();
      crashed = process.runtime().crashed();
      if (!crashed) EXPECT_EQ(replayed->payloads, payloads);
      process.Close();
      disk->CrashProcess();
    }
    options.incarnation = Incarnation{9};
    LogProcess last(*disk, options);
    EXPECT_EQ(last.Recover().payloads, payloads) << "killed at operation " << first;
    if (!crashed) {
      EXPECT_GT(first, 20u);
      return;
    }
  }
  FAIL() << "the recovery never ended";
}

TEST(LocalLogStoreTest, AnAbsentLogThatMustExistIsDamage) {
  SimDisk disk(21);
  auto options = LogProcess::Options();
  options.must_exist = true;
  LogProcess process(disk, options);
  EXPECT_EQ(process.TryOpen().code(), Code::kCorruption);
  LogProcess expected(disk, LogProcess::Options(2));
  EXPECT_EQ(expected.TryRecover(10).code(), Code::kCorruption);
}

TEST(LocalLogStoreTest, ABadOptionIsRefused) {
  SimDisk disk(22);
  auto options = LogProcess::Options();
  options.segment_size = 10'000;
  EXPECT_EQ(LogProcess(disk, options).TryOpen().code(), Code::kInvalidArgument);
}

TEST(LocalLogStoreTest, AnErrorFromTheSinkEndsTheRecovery) {
  SimDisk disk(23);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, {"a"}).ok());
  }
  LogProcess again(disk, LogProcess::Options(2));
  ASSERT_TRUE(again.TryOpen().ok());
  auto report = RunBlocking(again.log().Recover(
      LogPosition{1}, [](const LogRecord&) { return Status::ResourceExhausted("full"); }));
  EXPECT_EQ(report.code(), Code::kResourceExhausted);
  EXPECT_FALSE(again.Append(2, {"b"}).ok());
}

TEST(LocalLogStoreTest, AFullDiskFailsTheRotationAndTheLogGoesOnWhenSpaceReturns) {
  SimDisk disk(24);
  const auto payloads = Payloads(1, 40, 3000);
  uint64_t next = 1;
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    disk.set_capacity(disk.used_bytes());
    Status status;
    while (next <= 40 && (status = process.AppendAndFlush(next, {payloads[next - 1]})).ok()) ++next;
    EXPECT_EQ(status.code(), Code::kNoSpace) << status.ToString();
    EXPECT_EQ(process.log().durable_end(), LogPosition{next - 1});
    EXPECT_EQ(process.Move(next, {payloads[next - 1]}).code(), Code::kNoSpace);
    disk.set_capacity(uint64_t{1} << 30);
    ASSERT_TRUE(process.Move(next, {payloads[next - 1]}).ok());
    for (++next; next <= 40; ++next) ASSERT_TRUE(process.AppendAndFlush(next, {payloads[next - 1]}).ok());
  }
  disk.CrashPower();
  LogProcess again(disk, LogProcess::Options(2));
  EXPECT_EQ(again.Recover().payloads, payloads);
}

}  // namespace
}  // namespace partita

#include "wal/log_salvage.h"

#include <gtest/gtest.h>

#include "test/wal/log_harness.h"
#include "wal/log_inspect.h"

// covers: F53 F80
//
// What a repair says of a log that recovery refuses. Whole stores: test/engine/repair_test.cc.

namespace partita {
namespace {

constexpr size_t kCopiedBytes = 10u << 10;  // A frame holds one.

SalvagedLog Salvage(SimDisk& disk, std::vector<std::string>* payloads) {
  SimRuntime runtime({.seed = 1}, disk);
  auto salvaged = RunBlocking(SalvageLog(runtime.files(), runtime.clock(), LogProcess::Options(),
                                         LogPosition{1}, [payloads](const LogRecord& record) {
                                           payloads->emplace_back(record.payload);
                                           return Status();
                                         }));
  EXPECT_TRUE(salvaged.ok()) << salvaged.status().ToString();
  return salvaged.ok() ? std::move(salvaged).value() : SalvagedLog();
}

// The one whose first frame has this position.
InspectedFrame FrameAtPosition(SimDisk& disk, uint64_t position, std::string* path) {
  SimRuntime runtime({.seed = 1}, disk);
  InspectedFrame found;
  SegmentId newest;
  for (const std::string& file : disk.ListFiles(kTestDirectory + "/0")) {
    InspectedFrame in_file;
    const auto segment =
        RunBlocking(InspectSegment(runtime.files(), file, [&in_file, position](const InspectedFrame& frame) {
          if (in_file.size == 0 && frame.first_position.value == position) in_file = frame;
        }));
    if (!segment.ok() || in_file.size == 0 || segment->segment <= newest) continue;
    newest = segment->segment;
    found = in_file;
    *path = file;
  }
  return found;
}

// A flush fails, what is not known flushed is copied to a new segment, and writes of level power go on there;
// then a copied frame in front of the one that takes effect rots.
TEST(LogSalvageTest, DamageAmongCopiedRecordsLosesWhatFollowedThem) {
  constexpr uint64_t kCopied = 3, kLast = 7;
  for (uint64_t rotten = kCopied; rotten < kCopied + 2; ++rotten) {
    SimDisk disk(31);
    std::vector<std::string> payloads;
    for (uint64_t p = 1; p <= kLast; ++p) payloads.push_back(PayloadFor(p, 1, kCopiedBytes));
    {
      LogProcess process(disk, LogProcess::Options());
      process.Recover();
      ASSERT_TRUE(process.AppendAndFlush(1, {payloads[0], payloads[1]}).ok());
      process.runtime().AddFault({.operations = SimOps(SimOp::kFlush), .count = 1});
      ASSERT_FALSE(process.AppendAndFlush(kCopied, {payloads[2]}).ok());
      ASSERT_TRUE(process.Move(kCopied, {payloads[2], payloads[3], payloads[4]}).ok());
      for (uint64_t p = 6; p <= kLast; ++p) ASSERT_TRUE(process.AppendAndFlush(p, {payloads[p - 1]}).ok());
    }
    disk.CrashPower();
    std::string path;
    const InspectedFrame frame = FrameAtPosition(disk, rotten, &path);
    ASSERT_GT(frame.size, kCopiedBytes);
    disk.FlipBit(path, frame.offset + kCopiedBytes / 2, 1);
    ASSERT_EQ(LogProcess(disk, LogProcess::Options(2)).TryRecover().status().code(), Code::kCorruption);

    std::vector<std::string> kept;
    const SalvagedLog salvaged = Salvage(disk, &kept);
    EXPECT_FALSE(salvaged.damages.empty());
    EXPECT_TRUE(salvaged.lost) << rotten;
    EXPECT_EQ(salvaged.lost_to, LogPosition{kLast}) << rotten;
    payloads.resize(rotten - 1);
    EXPECT_TRUE(kept == payloads) << kept.size();
  }
}

// Of level process, also where segments are sound.
TEST(LogSalvageTest, WhatTheTailHoldsBehindAPositionThatIsNowhereIsLost) {
  for (const bool segments_too : {false, true}) {
    SimDisk disk(32);
    {
      LogProcess process(disk, LogProcess::Options());
      process.Recover();
      for (uint64_t p : {1, 2}) ASSERT_TRUE(process.AppendAndFlush(p, {PayloadFor(p, 1, 200)}).ok());
      for (uint64_t p = 3; p <= 10; ++p) ASSERT_TRUE(process.AppendTail(p, {PayloadFor(p, 1, 200)}).ok());
    }
    disk.FlipBit(kTestDirectory + "/tail", 2 * 240 + 60, 2);  // The third record: position 5.
    std::string path;
    const InspectedFrame first = FrameAtPosition(disk, 1, &path);
    if (segments_too) disk.FlipBit(path, first.offset + 100, 1);

    std::vector<std::string> kept;
    const SalvagedLog salvaged = Salvage(disk, &kept);
    EXPECT_EQ(salvaged.damages.size(), 1u);
    EXPECT_TRUE(salvaged.lost);
    EXPECT_EQ(salvaged.lost_to, LogPosition{10});
    EXPECT_EQ(kept.size(), segments_too ? 0u : 4u);
  }
}

// With the end of the file what proved that there was more is gone. covers: F35
TEST(LogSalvageTest, WhatANewestSegmentThatWasCutHeldIsLost) {
  for (const bool header_too : {false, true}) {
    for (const uint64_t behind_frame : {0, 100, 5000}) {  // Between frames, and within the one that goes.
      SCOPED_TRACE(testing::Message() << header_too << " " << behind_frame);
      SimDisk disk(33);
      {
        LogProcess process(disk, LogProcess::Options());
        process.Recover();
        for (uint64_t p = 1; p <= 4; ++p) {
          ASSERT_TRUE(process.AppendAndFlush(p, {PayloadFor(p, 1, kCopiedBytes)}).ok());
        }
      }
      std::string path;
      const InspectedFrame gone = FrameAtPosition(disk, 3, &path);
      disk.TruncateFile(path, gone.offset + behind_frame);
      if (header_too) disk.FlipBit(path, 100, 1);
      ASSERT_EQ(LogProcess(disk, LogProcess::Options(2)).TryRecover().status().code(), Code::kCorruption);

      std::vector<std::string> kept;
      const SalvagedLog salvaged = Salvage(disk, &kept);
      EXPECT_EQ(salvaged.damages.size(), 1u);
      EXPECT_TRUE(salvaged.lost);
      EXPECT_EQ(kept.size(), 2u);
    }
  }
}

TEST(LogSalvageTest, OfACutSegmentThatWasClosedNothingIsLost) {
  for (const bool header_too : {false, true}) {
    SCOPED_TRACE(header_too);
    SimDisk disk(34);
    {
      LogProcess process(disk, LogProcess::Options());
      process.Recover();
      ASSERT_TRUE(process.AppendAndFlush(1, {PayloadFor(1, 1, 200), PayloadFor(2, 1, 200)}).ok());
      ASSERT_TRUE(process.Seal(/*closing=*/true).ok());
    }
    std::string path;
    const InspectedFrame seal = FrameAtPosition(disk, 3, &path);
    disk.TruncateFile(path, seal.offset + seal.size);
    if (header_too) disk.FlipBit(path, 100, 1);
    ASSERT_EQ(LogProcess(disk, LogProcess::Options(2)).TryRecover().status().code(), Code::kCorruption);

    std::vector<std::string> kept;
    const SalvagedLog salvaged = Salvage(disk, &kept);
    EXPECT_EQ(salvaged.damages.size(), 1u);
    EXPECT_FALSE(salvaged.lost);
    EXPECT_EQ(kept.size(), 2u);
  }
}

// The frame that put it in effect was cut off with all that followed.
TEST(LogSalvageTest, ACutSegmentMayHaveTakenEffect) {
  SimDisk disk(35);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    std::vector<std::string> payloads;
    for (uint64_t p = 1; p <= 5; ++p) payloads.push_back(PayloadFor(p, 1, kCopiedBytes));
    ASSERT_TRUE(process.AppendAndFlush(1, {payloads[0], payloads[1]}).ok());
    process.runtime().AddFault({.operations = SimOps(SimOp::kFlush), .count = 1});
    ASSERT_FALSE(process.AppendAndFlush(3, {payloads[2]}).ok());
    ASSERT_TRUE(process.Move(3, {payloads[2], payloads[3], payloads[4]}).ok());
    ASSERT_TRUE(process.AppendAndFlush(6, {PayloadFor(6, 1, kCopiedBytes)}).ok());
  }
  std::string path;
  const InspectedFrame gone = FrameAtPosition(disk, 4, &path);
  disk.TruncateFile(path, gone.offset);
  std::vector<std::string> kept;
  const SalvagedLog salvaged = Salvage(disk, &kept);
  EXPECT_TRUE(salvaged.lost);
  EXPECT_EQ(kept.size(), 3u);
}

}  // namespace
}  // namespace partita

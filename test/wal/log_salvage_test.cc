#include "wal/log_salvage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/wal/log_harness.h"
#include "wal/log_inspect.h"

// covers: F53 F80
//
// What a repair says of a log that recovery refuses. Whole stores: test/engine/repair_test.cc.

namespace partita {
namespace {

constexpr size_t kCopiedBytes = 10u << 10;  // A frame holds one.

// `refused`: a record that cannot be read although its frame is sound.
SalvagedLog Salvage(SimDisk& disk, std::vector<std::string>* payloads, uint64_t from = 1,
                    uint64_t refused = 0) {
  SimRuntime runtime({.seed = 1}, disk);
  auto salvaged = RunBlocking(
      SalvageLog(runtime.files(), LogProcess::Options(), LogPosition{from}, [=](const LogRecord& record) {
        if (record.position.value == refused) return Status::Corruption("it cannot be read");
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

// Lives that write to their first and to their last segment alone; the last one trims what is in front of it,
// and removes the newest of that.
constexpr uint64_t kLives = 6, kFlushedTo = 3, kWrittenTo = 6;

std::vector<std::string> PayloadsOf(uint64_t first, uint64_t last) {
  std::vector<std::string> payloads;
  for (uint64_t p = first; p <= last; ++p) payloads.push_back(PayloadFor(p, 1, kCopiedBytes));
  return payloads;
}

void LiveWithSpares(SimDisk& disk, uint64_t in_tail = 0) {
  for (uint32_t life = 1; life <= kLives; ++life) {
    LogProcess process(disk, LogProcess::Options(life));
    process.Recover();
    if (life == kLives) {
      ASSERT_TRUE(process.Trim(kFlushedTo + 1).ok());
      ASSERT_TRUE(RunBlocking(process.log().RemoveSurplus()).ok());
    }
    uint64_t first = life == 1 ? 1 : kFlushedTo + 1;
    const uint64_t last = life == 1 ? kFlushedTo : life == kLives ? kWrittenTo : 0;
    for (; first <= last; ++first) ASSERT_TRUE(process.AppendAndFlush(first, PayloadsOf(first, first)).ok());
    for (uint64_t i = 1; i <= in_tail && life == kLives; ++i) {
      ASSERT_TRUE(process.AppendTail(kWrittenTo + i, {PayloadFor(kWrittenTo + i, 1, 200)}).ok());
    }
  }
}

// Where nobody says from where on the log counts. Recovery reads the last segment alone, as the one it names
// is gone.
TEST(LogSalvageTest, DamageInASpareThatStandsInCostsNothingOfTheLog) {
  SimDisk disk(36);
  LiveWithSpares(disk);
  std::vector<std::string> kept;
  const SalvagedLog whole = Salvage(disk, &kept, /*from=*/0);
  EXPECT_FALSE(whole.lost);
  EXPECT_TRUE(kept == PayloadsOf(1, kWrittenTo)) << kept.size();

  std::string path;
  const InspectedFrame rotten = FrameAtPosition(disk, kFlushedTo - 1, &path);
  disk.FlipBit(path, rotten.offset + kCopiedBytes / 2, 1);
  kept.clear();
  const SalvagedLog salvaged = Salvage(disk, &kept, /*from=*/0);
  EXPECT_FALSE(salvaged.lost);
  EXPECT_TRUE(salvaged.damages.empty());
  EXPECT_FALSE(salvaged.begins_midway.empty());
  EXPECT_TRUE(kept == PayloadsOf(kFlushedTo + 1, kWrittenTo)) << kept.size();
}

// Its last record had not got to its end, and was written again behind the segment that is gone.
TEST(LogSalvageTest, ASpareThatEndsInATornRecordStandsIn) {
  SimDisk disk(39);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    const std::string torn = PayloadFor(2, 1, 3 * kCopiedBytes);
    ASSERT_TRUE(process.AppendAndFlush(1, {PayloadsOf(1, 1)[0], torn}).ok());
  }
  std::string path;
  const InspectedFrame goes_on = FrameAtPosition(disk, 2, &path);  // It begins in the frame before.
  disk.FlipBit(path, goes_on.offset + 200, 1);
  std::string second;
  for (uint32_t life = 2; life <= 3; ++life) {
    LogProcess process(disk, LogProcess::Options(life));
    ASSERT_EQ(process.Recover().payloads, PayloadsOf(1, 1));
    if (life == 2) second = disk.ListFiles(kTestDirectory + "/0").back();
    if (life == 3) ASSERT_TRUE(process.AppendAndFlush(2, PayloadsOf(2, 3)).ok());
  }
  ASSERT_TRUE(disk.RemoveFile(second));
  std::vector<std::string> kept;
  const SalvagedLog salvaged = Salvage(disk, &kept, /*from=*/0);
  EXPECT_FALSE(salvaged.lost);
  EXPECT_TRUE(salvaged.begins_midway.empty());
  EXPECT_TRUE(kept == PayloadsOf(1, 3)) << kept.size();
}

// It was to take over records, and never took effect: others stand at the same positions.
TEST(LogSalvageTest, ASegmentThatStandsInEndsWhereItsSuccessorBegins) {
  SimDisk disk(41);
  std::string first, cut_off;
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, PayloadsOf(1, 2)).ok());
    (void)FrameAtPosition(disk, 1, &first);
    process.runtime().AddFault({.operations = SimOps(SimOp::kFlush), .count = 1});
    ASSERT_FALSE(process.AppendAndFlush(3, PayloadsOf(3, 3)).ok());
    ASSERT_TRUE(process.Move(3, PayloadsOf(3, 5)).ok());
  }
  // As if it had been killed amid the copying.
  const InspectedFrame copied = FrameAtPosition(disk, 3, &cut_off);
  ASSERT_NE(cut_off, first);
  std::string half = *disk.ReadFile(cut_off);
  std::fill(half.begin() + copied.offset + copied.size, half.end(), '\0');
  disk.WriteFile(cut_off, half);
  {
    LogProcess process(disk, LogProcess::Options(2));
    const uint64_t next = process.Recover().payloads.size() + 1;
    ASSERT_LE(next, 4u);
    ASSERT_TRUE(process.AppendAndFlush(next, PayloadsOf(next, 7)).ok());
  }
  ASSERT_TRUE(disk.RemoveFile(first));
  std::vector<std::string> kept;
  const SalvagedLog salvaged = Salvage(disk, &kept, /*from=*/0);
  EXPECT_FALSE(salvaged.lost);
  EXPECT_FALSE(salvaged.begins_midway.empty());
  ASSERT_FALSE(kept.empty());
  EXPECT_TRUE(kept == PayloadsOf(8 - kept.size(), 7));
}

// Recovery does not go by frames: it begins with the segment behind.
TEST(LogSalvageTest, ASegmentOfWhichOnlyTheHeaderIsBadIsReadWhereNobodySaysFromWhere) {
  SimDisk disk(40);
  std::string first;
  for (uint32_t life = 1; life <= 2; ++life) {
    LogProcess process(disk, LogProcess::Options(life));
    process.Recover();
    for (uint64_t p = life * 3 - 2; p <= life * 3; ++p) {
      ASSERT_TRUE(process.AppendAndFlush(p, PayloadsOf(p, p)).ok());
    }
  }
  const InspectedFrame rotten = FrameAtPosition(disk, 2, &first);
  disk.FlipBit(first, 100, 1);
  std::vector<std::string> kept;
  EXPECT_FALSE(Salvage(disk, &kept, /*from=*/0).lost);
  EXPECT_TRUE(kept == PayloadsOf(1, 6)) << kept.size();

  // What does not reach to the one behind is left out, as if the segment were gone.
  disk.FlipBit(first, rotten.offset + kCopiedBytes / 2, 1);
  kept.clear();
  const SalvagedLog salvaged = Salvage(disk, &kept, /*from=*/0);
  EXPECT_FALSE(salvaged.lost);
  EXPECT_FALSE(salvaged.begins_midway.empty());
  EXPECT_TRUE(kept == PayloadsOf(4, 6)) << kept.size();
}

// covers: F80
TEST(LogSalvageTest, WhatIsLostBehindSparesThatStandInIsSaid) {
  SimDisk disk(37);
  LiveWithSpares(disk, /*in_tail=*/8);
  disk.FlipBit(kTestDirectory + "/tail", 2 * 240 + 60, 2);  // The third record.
  std::vector<std::string> kept;
  const SalvagedLog stranded = Salvage(disk, &kept, /*from=*/0);
  EXPECT_EQ(stranded.damages.size(), 1u);
  EXPECT_TRUE(stranded.lost);
  EXPECT_EQ(stranded.lost_to, LogPosition{kWrittenTo + 8});
  EXPECT_EQ(kept.size(), kWrittenTo + 2);
}

TEST(LogSalvageTest, ARecordThatCannotBeReadBehindSparesThatStandInIsSaid) {
  SimDisk disk(38);
  LiveWithSpares(disk);
  std::vector<std::string> kept;
  const SalvagedLog salvaged = Salvage(disk, &kept, /*from=*/0, /*refused=*/kWrittenTo);
  EXPECT_EQ(salvaged.damages.size(), 1u);
  EXPECT_TRUE(salvaged.lost);
  EXPECT_EQ(kept.size(), kWrittenTo - 1);
}

}  // namespace
}  // namespace partita

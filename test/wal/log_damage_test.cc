#include <gtest/gtest.h>

#include <map>

#include "engine/base/coding.h"
#include "test/wal/log_harness.h"
#include "wal/frame_format.h"
#include "wal/log_inspect.h"
#include "wal/segment_format.h"
#include "wal/segment_reader.h"

namespace partita {
namespace {

constexpr size_t kSector = 512;

struct FrameAt {
  uint64_t offset;
  uint64_t size;
  LogPosition first;
};

std::vector<FrameAt> FramesOf(SimDisk& disk, const std::string& path) {
  SimRuntime runtime({.seed = 1}, disk);
  std::vector<FrameAt> frames;
  auto inspected = RunBlocking(InspectSegment(runtime.files(), path, [&frames](const InspectedFrame& frame) {
    frames.push_back({frame.offset, frame.size, frame.first_position});
  }));
  EXPECT_TRUE(inspected.ok()) << inspected.status().ToString();
  return frames;
}

InspectedSegment Inspect(SimDisk& disk, const std::string& path) {
  SimRuntime runtime({.seed = 1}, disk);
  return RunBlocking(InspectSegment(runtime.files(), path, nullptr)).value();
}

std::map<std::string, std::string> Contents(SimDisk& disk) {
  std::map<std::string, std::string> out;
  for (const std::string& path : disk.ListFiles(kTestDirectory)) out[path] = disk.ReadFile(path).value();
  return out;
}

// Groups of records, each flushed by itself; sealed when `seal`.
std::vector<std::string> WriteGroups(SimDisk& disk, size_t groups, bool seal,
                                     uint64_t segment_size = 256 << 10,
                                     LogDefect planted = LogDefect::kNone) {
  auto options = LogProcess::Options();
  options.segment_size = segment_size;
  options.frame_size_max = 64 << 10;
  options.planted = planted;
  LogProcess process(disk, options);
  process.Recover();
  std::vector<std::string> payloads;
  for (size_t group = 0; group < groups; ++group) {
    const uint64_t first = payloads.size() + 1;
    std::vector<std::string> records;
    for (size_t i = 0; i < 1 + group % 3; ++i)
      records.push_back(PayloadFor(first + i, 1, 100 + 2900 * (group % 4)));
    EXPECT_TRUE(process.AppendAndFlush(first, records).ok());
    payloads.insert(payloads.end(), records.begin(), records.end());
  }
  if (seal) EXPECT_TRUE(process.Seal().ok());
  return payloads;
}

LocalLogOptions Second(uint64_t segment_size = 256 << 10) {
  auto options = LogProcess::Options(2);
  options.segment_size = segment_size;
  return options;
}

std::string NewestSegment(SimDisk& disk) {
  std::string newest;
  SegmentId newest_id;
  for (const std::string& path : disk.ListFiles(kTestDirectory + "/0")) {
    const SegmentId id = Inspect(disk, path).segment;
    if (id <= newest_id) continue;
    newest = path;
    newest_id = id;
  }
  return newest;
}

SegmentHeader SegmentHeaderOf(SimDisk& disk, const std::string& path) {
  SimRuntime runtime({.seed = 1}, disk);
  auto file = RunBlocking(runtime.files().Open(path, OpenMode::kRead, FileIo::kBuffered)).value();
  return RunBlocking(SegmentReader::ReadHeader(*file))->header;
}

TEST(LogDamageTest, TheLastGroupTornAtAnySectorIsCutAndReported) {
  SimDisk original(1);
  const auto payloads = WriteGroups(original, 8, /*seal=*/false);
  const std::string path = original.ListFiles(kTestDirectory)[0];
  const FrameAt last = FramesOf(original, path).back();
  ASSERT_GT(last.size, 2 * kPageSize);
  const uint64_t used = kFrameHeaderSize + LoadLe32(original.ReadFile(path)->data() + last.offset + 52);
  for (size_t sectors = 0; sectors * kSector < used; ++sectors) {
    auto disk = original.Clone();
    disk->WriteFileAt(path, last.offset + sectors * kSector,
                      std::string(last.size - sectors * kSector, '\0'));
    {
      LogProcess process(*disk, Second());
      Replayed replayed = process.Recover();
      EXPECT_EQ(replayed.payloads,
                std::vector<std::string>(payloads.begin(), payloads.begin() + (last.first.value - 1)));
      EXPECT_EQ(replayed.report.torn_bytes > 0, sectors > 0);
      EXPECT_EQ(replayed.report.torn_behind, LogPosition{last.first.value - 1});
      // What comes after the cut stands, and the torn bytes never come back (F33).
      ASSERT_TRUE(process.AppendAndFlush(last.first.value, {"new"}).ok());
    }
    disk->CrashPower();
    auto options = Second();
    options.incarnation = Incarnation{3};
    LogProcess third(*disk, options);
    EXPECT_EQ(third.Recover(last.first.value).payloads, std::vector<std::string>{"new"});
  }
}

TEST(LogDamageTest, DamageBeforeTheLastGroupIsRefusedWithFileAndOffsetAndChangesNothing) {
  for (bool seal : {false, true}) {
    SimDisk original(2);
    WriteGroups(original, 10, seal);
    const std::string path = original.ListFiles(kTestDirectory)[0];
    std::vector<FrameAt> frames = FramesOf(original, path);
    ASSERT_EQ(frames.size(), seal ? 11u : 10u);
    frames.pop_back();  // Of the last group nothing later says that it was flushed; the seal has no record.
    for (const FrameAt& frame : frames) {
      for (uint64_t at : {uint64_t{0}, uint64_t{60}, uint64_t{kFrameHeaderSize + 50}}) {
        auto disk = original.Clone();
        disk->FlipBit(path, frame.offset + at, 3);
        const auto before = Contents(*disk);
        LogProcess process(*disk, Second());
        auto replayed = process.TryRecover();
        EXPECT_EQ(replayed.code(), Code::kCorruption) << "frame at " << frame.offset;
        const std::string& message = replayed.status().message();
        EXPECT_NE(message.find(path + ", offset " + std::to_string(frame.offset)), std::string::npos)
            << message;
        EXPECT_NE(message.find("F31"), std::string::npos) << message;
        EXPECT_EQ(Contents(*disk), before);
        EXPECT_TRUE(Inspect(*disk, path).damaged);
      }
    }
  }
}

TEST(LogDamageTest, ALaterValidFrameThatWasNotFlushedProvesNothing) {
  // Three frames of one unflushed group: the first is lost, the others survive (F31).
  for (LogDefect planted : {LogDefect::kNone, LogDefect::kValidityIsProof}) {
    SimDisk disk(3);
    const std::string flushed = "flushed", lost(9000, 'x'), later = "later";
    {
      LogProcess process(disk, LogProcess::Options());
      process.Recover();
      ASSERT_TRUE(process.AppendAndFlush(1, {flushed}).ok());
      ASSERT_TRUE(process.Append(2, {lost}).ok());
      ASSERT_TRUE(process.Append(3, {later}).ok());
      ASSERT_TRUE(process.Append(4, {later}).ok());
    }
    const std::string path = disk.ListFiles(kTestDirectory)[0];
    const auto frames = FramesOf(disk, path);
    ASSERT_EQ(frames.size(), 4u);
    disk.WriteFileAt(path, frames[1].offset, std::string(kSector, '\0'));
    auto options = LogProcess::Options(2);
    options.planted = planted;
    LogProcess again(disk, options);
    auto replayed = again.TryRecover();
    if (planted == LogDefect::kNone) {
      ASSERT_TRUE(replayed.ok()) << replayed.status().ToString();
      EXPECT_EQ(replayed->payloads, std::vector<std::string>{flushed});
      EXPECT_EQ(replayed->report.torn_bytes, frames[3].offset + frames[3].size - frames[1].offset);
    } else {
      EXPECT_EQ(replayed.code(), Code::kCorruption);  // The planted defect shows.
    }
  }
}

TEST(LogDamageTest, PlantedDefectsThatLoseTheProofLoseData) {
  for (LogDefect planted : {LogDefect::kStuckWatermark, LogDefect::kEveryBadIsTorn}) {
    SimDisk disk(4);
    const auto payloads = WriteGroups(disk, 6, /*seal=*/true, 256 << 10, planted);
    const std::string path = disk.ListFiles(kTestDirectory)[0];
    disk.FlipBit(path, FramesOf(disk, path)[2].offset + 20, 1);
    auto options = Second();
    options.planted = planted;
    LogProcess process(disk, options);
    auto replayed = process.TryRecover();
    ASSERT_TRUE(replayed.ok());  // Without the defect: refused, as shown above.
    EXPECT_LT(replayed->payloads.size(), payloads.size());
  }
}

TEST(LogDamageTest, DamageInASegmentWithASuccessorIsRefusedAtEveryFrame) {
  SimDisk original(5);
  WriteGroups(original, 24, /*seal=*/false, 32 << 10);
  const auto paths = original.ListFiles(kTestDirectory + "/0");
  ASSERT_GT(paths.size(), 4u);
  const std::string newest = NewestSegment(original);
  for (const std::string& path : paths) {
    if (path == newest) continue;
    for (const FrameAt& frame : FramesOf(original, path)) {
      auto disk = original.Clone();
      disk->FlipBit(path, frame.offset + 9, 0);
      LogProcess process(*disk, Second(32 << 10));
      auto replayed = process.TryRecover();
      EXPECT_EQ(replayed.code(), Code::kCorruption) << path << " " << frame.offset;
      EXPECT_NE(replayed.status().message().find(path), std::string::npos);
    }
  }
}

TEST(LogDamageTest, ABadHeaderOfAnySegmentInUseIsDamage) {
  SimDisk original(6);
  WriteGroups(original, 24, /*seal=*/false, 32 << 10);
  for (const std::string& path : original.ListFiles(kTestDirectory + "/0")) {
    ASSERT_GT(Inspect(original, path).frames, 0u);
    auto disk = original.Clone();
    disk->FlipBit(path, 50, 7);
    LogProcess process(*disk, Second(32 << 10));
    auto replayed = process.TryRecover();
    EXPECT_EQ(replayed.code(), Code::kCorruption) << path;
    EXPECT_NE(replayed.status().message().find(path), std::string::npos) << replayed.status().message();
  }
}

// A write of a process that was killed, which the device did last of all: the log would end there.
TEST(LogDamageTest, AHeaderOfAnEarlierLifeOverASegmentOfALaterOneIsDamage) {
  SimDisk disk(6);
  WriteGroups(disk, 4, /*seal=*/false);
  {
    LogProcess process(disk, Second());
    const uint64_t next = process.Recover().payloads.size() + 1;
    ASSERT_TRUE(process.AppendAndFlush(next, {"acknowledged"}).ok());
  }
  const std::string newest = NewestSegment(disk);
  SegmentHeader header = SegmentHeaderOf(disk, newest);
  ASSERT_EQ(header.incarnation, Incarnation{2});
  header.incarnation = Incarnation{1};
  AlignedBuffer page(kSegmentHeaderSize);
  EncodeSegmentHeader({kTestStore, kTestShard}, header, page.span());
  disk.WriteFileAt(newest, 0, std::string(reinterpret_cast<const char*>(page.data()), kSegmentHeaderSize));
  auto options = Second();
  options.incarnation = Incarnation{3};
  LogProcess third(disk, options);
  const auto replayed = third.TryRecover();
  EXPECT_EQ(replayed.code(), Code::kCorruption);
  EXPECT_NE(replayed.status().message().find("of incarnation 1"), std::string::npos)
      << replayed.status().message();
}

TEST(LogDamageTest, AMissingFileIsDamageAndTheNewestOneByWhatTheManifestKnows) {
  SimDisk original(7);
  const auto payloads = WriteGroups(original, 24, /*seal=*/false, 32 << 10);
  const std::string newest = NewestSegment(original);
  for (const std::string& path : original.ListFiles(kTestDirectory + "/0")) {
    auto disk = original.Clone();
    disk->RemoveFile(path);
    LogProcess process(*disk, Second(32 << 10));
    // A newest file that is gone leaves no trace in the log itself.
    const uint64_t from = path == newest ? payloads.size() + 1 : 1;
    EXPECT_EQ(process.TryRecover(from).code(), Code::kCorruption) << path;
  }
}

TEST(LogDamageTest, SwappedFilesAreReadByTheirHeadersAndACopyIsRefused) {
  SimDisk disk(8);
  const auto payloads = WriteGroups(disk, 24, /*seal=*/false, 32 << 10);
  const auto paths = disk.ListFiles(kTestDirectory + "/0");
  disk.RenameFile(paths[0], "aside");
  disk.RenameFile(paths[1], paths[0]);
  disk.RenameFile("aside", paths[1]);
  auto copied = disk.Clone();
  {
    LogProcess process(disk, Second(32 << 10));
    EXPECT_EQ(process.Recover().payloads, payloads);
  }
  copied->WriteFile(kTestDirectory + "/000099.log", copied->ReadFile(paths[2]).value());
  LogProcess process(*copied, Second(32 << 10));
  EXPECT_EQ(process.TryRecover().code(), Code::kCorruption);
}

TEST(LogDamageTest, AMisplacedFrameIsFound) {
  SimDisk disk(9);
  WriteGroups(disk, 6, /*seal=*/true);
  const std::string path = disk.ListFiles(kTestDirectory)[0];
  const auto frames = FramesOf(disk, path);
  const std::string content = disk.ReadFile(path).value();
  disk.WriteFileAt(path, frames[2].offset, content.substr(frames[1].offset, kPageSize));
  LogProcess process(disk, Second());
  EXPECT_EQ(process.TryRecover().code(), Code::kCorruption);
}

TEST(LogDamageTest, AnUnreadableLogIsAnErrorNotItsEnd) {
  SimDisk disk(10);
  WriteGroups(disk, 6, /*seal=*/false);
  for (uint64_t skip = 0; skip < 6; ++skip) {
    auto copy = disk.Clone();
    LogProcess process(*copy, Second());
    ASSERT_TRUE(process.TryOpen().ok());
    const size_t fault =
        process.runtime().AddFault({.operations = SimOps(SimOp::kRead), .skip = skip, .count = 1});
    auto replayed = process.TryRecover();
    if (process.runtime().FaultHits(fault) == 0) break;
    EXPECT_EQ(replayed.code(), Code::kIoError);
  }
}

// F34. Seen in the mapping first, a page that cannot be read would end the process.
TEST(LogDamageTest, AnUnreadableTailIsAnErrorNotTheEndOfTheProcess) {
  SimDisk disk(21);
  const auto payloads = WriteGroups(disk, 6, /*seal=*/false);
  LogProcess process(disk, Second());
  const size_t fault = process.runtime().AddFault(
      {.operations = SimOps(SimOp::kRead), .path_prefix = kTestDirectory + "/tail", .count = 1});
  EXPECT_EQ(process.TryOpen().code(), Code::kIoError);
  EXPECT_EQ(process.runtime().FaultHits(fault), 1u);
  EXPECT_EQ(process.Recover().payloads, payloads);
}

TEST(LogDamageTest, ATransferThatRotsOnceIsReadAgain) {
  SimDisk original(11);
  const auto payloads = WriteGroups(original, 10, /*seal=*/true);
  uint64_t hits = 0;
  for (uint64_t skip = 0; skip < 6; ++skip) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      auto disk = original.Clone();
      LogProcess process(*disk, Second(), seed);
      ASSERT_TRUE(process.TryOpen().ok());
      const size_t fault = process.runtime().AddFault(
          {.effect = SimEffect::kRotOnce, .operations = SimOps(SimOp::kRead), .skip = skip, .count = 1});
      EXPECT_EQ(process.Recover().payloads, payloads) << "skip " << skip << " seed " << seed;
      hits += process.runtime().FaultHits(fault);
    }
  }
  EXPECT_GT(hits, 40u);
}

TEST(LogDamageTest, ALostWriteOfAFlushedFrameOrHeaderIsFound) {
  // The device said ok and wrote nothing; what was written later proves it (F41).
  SimDisk original(12);
  uint64_t found = 0, lost_count = 0;
  for (uint64_t skip = 0; skip < 20; ++skip) {
    auto disk = original.Clone();
    auto options = Second(32 << 10);
    std::vector<std::string> payloads;
    uint64_t hits = 0;
    {
      LogProcess process(*disk, options, skip + 1);
      process.Recover();
      const size_t fault = process.runtime().AddFault(
          {.effect = SimEffect::kLost, .operations = SimOps(SimOp::kWrite), .skip = skip, .count = 1});
      for (uint64_t p = 1; p <= 30; ++p) {
        payloads.push_back(PayloadFor(p, 1, 3000));
        ASSERT_TRUE(process.AppendAndFlush(p, {payloads.back()}).ok());
      }
      ASSERT_TRUE(process.Seal().ok());
      hits = process.runtime().FaultHits(fault);
    }
    options.incarnation = Incarnation{3};
    LogProcess again(*disk, options);
    auto replayed = again.TryRecover();
    lost_count += hits;
    if (replayed.ok()) {
      EXPECT_EQ(replayed->payloads, payloads) << "write " << skip;  // Zeros lost where zeros were.
    } else {
      EXPECT_EQ(replayed.code(), Code::kCorruption);
      found++;
    }
  }
  EXPECT_EQ(lost_count, 20u);
  EXPECT_GT(found, 10u);
}

TEST(LogDamageTest, ANewerFormatIsRefusedBeforeAnythingIsWritten) {
  SimDisk disk(13);
  WriteGroups(disk, 3, /*seal=*/true);
  const std::string path = disk.ListFiles(kTestDirectory)[0];
  disk.WriteFileAt(path, 16, std::string(1, static_cast<char>(kLogFormat + 1)));
  const auto before = Contents(disk);
  LogProcess process(disk, Second());
  EXPECT_EQ(process.TryRecover().code(), Code::kUnsupported);
  EXPECT_EQ(Contents(disk), before);
}

TEST(LogDamageTest, ATornTailRecordEndsTheTailAndWhatIsBehindItStaysVoid) {
  SimDisk original(14);
  std::vector<std::string> payloads;
  {
    LogProcess process(original, LogProcess::Options());
    process.Recover();
    for (uint64_t p = 1; p <= 10; ++p) {
      payloads.push_back(PayloadFor(p, 1, 200));
      ASSERT_TRUE(process.AppendTail(p, {payloads.back()}).ok());
    }
  }
  for (uint64_t torn = 0; torn < 10; ++torn) {
    auto disk = original.Clone();
    disk->FlipBit(kTestDirectory + "/tail", torn * 240 + 60, 2);
    {
      LogProcess process(*disk, LogProcess::Options(2));
      const Replayed replayed = process.Recover();
      EXPECT_EQ(replayed.payloads, std::vector<std::string>(payloads.begin(), payloads.begin() + torn));
      EXPECT_EQ(replayed.report.records_stranded, 9 - torn);
      EXPECT_EQ(replayed.report.stranded_to, LogPosition{torn < 9 ? 10u : 0u});
      ASSERT_TRUE(process.AppendAndFlush(torn + 1, {"other"}).ok());
    }
    disk->CrashProcess();
    LogProcess third(*disk, LogProcess::Options(3));
    Replayed replayed = third.Recover();
    ASSERT_EQ(replayed.payloads.size(), torn + 1);
    EXPECT_EQ(replayed.payloads.back(), "other");
  }
}

// covers: F80. The bad one is in one half, and the other goes on.
TEST(LogDamageTest, WhatStandsBehindABadTailRecordIsCountedAlsoInTheOtherHalf) {
  SimDisk disk(15);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    for (uint64_t p = 1; p <= 12; ++p) ASSERT_TRUE(process.AppendTail(p, {PayloadFor(p, 1, 2008)}).ok());
  }
  disk.FlipBit(kTestDirectory + "/tail", 6 * 2048 + 100, 2);  // Of 8 that the first half holds.
  LogProcess process(disk, LogProcess::Options(2));
  const LogRecovery report = process.Recover().report;
  EXPECT_EQ(report.last, LogPosition{6});
  EXPECT_EQ(report.records_stranded, 5u);
  EXPECT_EQ(report.stranded_to, LogPosition{12});
  EXPECT_FALSE(report.clean);
}

TEST(LogDamageTest, ABadTailRecordThatSegmentsHoldCostsNothing) {
  SimDisk disk(16);
  std::vector<std::string> payloads;
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    for (uint64_t p = 1; p <= 5; ++p) {
      payloads.push_back(PayloadFor(p, 1, 200));
      ASSERT_TRUE(process.AppendTail(p, {payloads.back()}).ok());
    }
    ASSERT_TRUE(process.AppendAndFlush(1, {payloads.begin(), payloads.begin() + 3}).ok());
  }
  disk.FlipBit(kTestDirectory + "/tail", 240 + 60, 2);
  LogProcess process(disk, LogProcess::Options(2));
  const Replayed replayed = process.Recover();
  EXPECT_EQ(replayed.payloads, payloads);
  EXPECT_EQ(replayed.report.records_stranded, 0u);
}

// A prepared file that was cut is not taken into use: what it would then hold could not be read.
TEST(LogDamageTest, AShortenedSpareIsNotUsed) {
  SimDisk disk(17);
  {
    LogProcess process(disk, LogProcess::Options());
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(1, {"first"}).ok());
    ASSERT_TRUE(RunBlocking(process.log().PrepareNext()).ok());
  }
  const std::vector<std::string> files = disk.ListFiles(kTestDirectory + "/0");
  ASSERT_EQ(files.size(), 2u);
  disk.WriteFile(files[1], disk.ReadFile(files[1])->substr(0, 16 << 10));
  {
    LogProcess process(disk, LogProcess::Options(2));
    process.Recover();
    ASSERT_TRUE(process.AppendAndFlush(2, {"second"}).ok());
  }
  disk.CrashPower();
  LogProcess process(disk, LogProcess::Options(3));
  EXPECT_EQ(process.Recover().payloads, (std::vector<std::string>{"first", "second"}));
}

TEST(LogInspectTest, AForeignFileIsDescribedNotTrusted) {
  SimDisk disk(15);
  disk.WriteFile("notes.txt", std::string(10'000, 'n'));
  disk.WriteFile("short", "abc");
  EXPECT_FALSE(Inspect(disk, "notes.txt").header_valid);
  EXPECT_FALSE(Inspect(disk, "short").header_valid);
  SimRuntime runtime({.seed = 1}, disk);
  EXPECT_EQ(RunBlocking(InspectSegment(runtime.files(), "absent", nullptr)).code(), Code::kNotFound);
}

}  // namespace
}  // namespace partita

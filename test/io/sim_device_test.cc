#include "engine/io/sim_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "engine/io/sim_runtime.h"
#include "test/support/bytes.h"

namespace partita {
namespace {

std::unique_ptr<File> OpenFile(SimRuntime& runtime, std::string_view path) {
  auto file = RunBlocking(runtime.files().Open(path, OpenMode::kCreateOrOpen, FileIo::kBuffered));
  EXPECT_TRUE(file.ok()) << file.status().ToString();
  return std::move(file).value();
}

Status Write(File& file, uint64_t offset, std::string_view text) {
  return RunBlocking(file.WriteAt(offset, AsBytes(text)));
}

Result<std::string> Read(File& file, uint64_t offset, size_t size) {
  std::string text(size, '\0');
  const auto count = RunBlocking(file.ReadAt(offset, {reinterpret_cast<uint8_t*>(text.data()), size}));
  if (!count.ok()) return count.status();
  text.resize(*count);
  return text;
}

// Writes "1".."4" to four files in turn, flushing each; notes what was acknowledged.
Task<void> WriteFour(SimRuntime& runtime, std::vector<std::string>& acknowledged) {
  for (const char* name : {"1", "2", "3", "4"}) {
    auto file = co_await runtime.files().Open(name, OpenMode::kCreateOrOpen, FileIo::kBuffered);
    if (!file.ok()) co_return;
    const Status written = co_await (*file)->WriteAndFlush(0, AsBytes(name));
    if (!written.ok()) co_return;
    const Status named = co_await runtime.files().FlushDirectory("");
    if (!named.ok()) co_return;
    if (!runtime.crashed()) acknowledged.push_back(name);
  }
}

TEST(SimDeviceTest, ACrashAtAnyOperationKeepsWhatWasAcknowledged) {
  uint64_t operations = 0;
  {
    SimDisk disk(1);
    SimRuntime runtime({.seed = 1}, disk);
    std::vector<std::string> acknowledged;
    runtime.Run(WriteFour(runtime, acknowledged));
    operations = runtime.operations_completed();
    EXPECT_EQ(acknowledged.size(), 4u);
  }
  EXPECT_EQ(operations, 16u);  // Open, write, flush, flush directory.
  for (const SimCrashMoment moment : {SimCrashMoment::kBefore, SimCrashMoment::kAfter}) {
    for (uint64_t at = 1; at <= operations; ++at) {
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        SimDisk disk(seed);
        std::vector<std::string> acknowledged;
        {
          SimRuntime runtime({.seed = seed}, disk);
          runtime.CrashAtOperation(at, moment);
          runtime.Run(WriteFour(runtime, acknowledged));
          EXPECT_TRUE(runtime.crashed());
          EXPECT_EQ(runtime.operations_completed(), at);
        }
        EXPECT_EQ(acknowledged.size(), (at - 1) / 4);
        if (seed % 2 == 0) disk.CrashProcess();
        disk.CrashPower();
        for (const std::string& name : acknowledged) {
          const auto content = disk.ReadFile(name);
          EXPECT_TRUE(content.ok() && *content == name) << "seed " << seed << ", crash at " << at;
        }
      }
    }
  }
}

TEST(SimDeviceTest, ACrashAfterAWriteKeepsItForTheNextProcessAndOneBeforeMayNot) {
  std::set<std::string> seen[2];
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    for (const SimCrashMoment moment : {SimCrashMoment::kBefore, SimCrashMoment::kAfter}) {
      SimDisk disk(seed);
      disk.WriteFile("1", "o");
      {
        SimRuntime runtime({.seed = seed}, disk);
        runtime.CrashAtOperation(2, moment);
        std::vector<std::string> acknowledged;
        runtime.Run(WriteFour(runtime, acknowledged));
      }
      disk.CrashProcess();
      seen[moment == SimCrashMoment::kAfter].insert(disk.ReadFile("1").value());
    }
  }
  EXPECT_EQ(seen[0], (std::set<std::string>{"o", "1"}));
  EXPECT_EQ(seen[1], (std::set<std::string>{"1"}));
}

Task<void> OneWrite(File& file, std::string text, Status& answer) {
  answer = co_await file.WriteAt(0, AsBytes(text));
}

TEST(SimDeviceTest, AWriteInFlightAtACrashIsThereWhollyPartlyOrNotAtAll) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("f", "oooo");
    {
      SimRuntime runtime({.seed = seed}, disk);
      const auto file = OpenFile(runtime, "f");
      Status answer;
      runtime.Spawn(OneWrite(*file, "nnnn", answer));
      while (runtime.operations_in_flight() == 0) runtime.AdvanceTime(100);
      runtime.CrashNow();
      runtime.RunUntilIdle();
      EXPECT_EQ(answer.code(), Code::kIoError);
      EXPECT_NE(answer.message().find("crashed"), std::string::npos) << answer.ToString();
    }
    disk.CrashProcess();
    seen.insert(disk.ReadFile("f").value());
  }
  EXPECT_EQ(seen, (std::set<std::string>{"oooo", "nooo", "nnoo", "nnno", "nnnn"}));
}

TEST(SimDeviceTest, NothingReachesTheDiskAfterACrash) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  ASSERT_TRUE(Write(*file, 0, "old").ok());
  runtime.CrashNow();
  EXPECT_EQ(Write(*file, 0, "new").code(), Code::kIoError);
  EXPECT_EQ(Read(*file, 0, 3).code(), Code::kIoError);
  EXPECT_EQ(RunBlocking(file->Flush()).code(), Code::kIoError);
  EXPECT_EQ(RunBlocking(file->Truncate(0)).code(), Code::kIoError);
  EXPECT_EQ(RunBlocking(runtime.files().Remove("f")).code(), Code::kIoError);
  EXPECT_EQ(RunBlocking(runtime.files().Open("g", OpenMode::kCreate, FileIo::kBuffered)).code(),
            Code::kIoError);
  EXPECT_EQ(runtime.files().Map("f", 1).code(), Code::kIoError);
  EXPECT_EQ(disk.ReadFile("f").value(), "old");
  EXPECT_FALSE(disk.FileExists("g"));
}

Task<void> FlushFile(File& file, bool& flushed) {
  const Status status = co_await file.Flush();
  flushed = status.ok();
}

TEST(SimDeviceTest, AFlushDoesNotCoverAWriteThatHadNotEndedWhenItBegan) {
  uint64_t lost = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("f", "o");
    {
      SimRuntime runtime({.seed = seed, .flush = {1'000'000, 2'000'000}}, disk);
      const auto file = OpenFile(runtime, "f");
      Status written;
      bool flushed = false;
      runtime.Spawn(OneWrite(*file, "n", written));
      runtime.Spawn(FlushFile(*file, flushed));
      runtime.RunUntilIdle();
      EXPECT_TRUE(written.ok() && flushed);
    }
    disk.CrashPower();
    if (disk.ReadFile("f").value() == "o") ++lost;
  }
  EXPECT_GT(lost, 100u);
}

Task<void> NoteWhenWritten(File& file, uint64_t offset, std::string text, std::string& order) {
  const Status status = co_await file.WriteAt(offset, AsBytes(text));
  EXPECT_TRUE(status.ok());
  order += text;
}

TEST(SimDeviceTest, OperationsInFlightEndInAnyOrder) {
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SimDisk disk(seed);
    SimRuntime runtime({.seed = seed}, disk);
    const auto file = OpenFile(runtime, "f");
    std::string order;
    for (const char* text : {"a", "b", "c"}) runtime.Spawn(NoteWhenWritten(*file, 0, text, order));
    runtime.RunUntilIdle();
    orders.insert(order);
    EXPECT_EQ(disk.ReadFile("f").value(), order.substr(2)) << "the last to end wins";
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(SimDeviceTest, AnErrorHitsTheKindThePathAndTheNumberAskedFor) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  const auto log = OpenFile(runtime, "log.1");
  const auto table = OpenFile(runtime, "table.1");
  const size_t fault =
      runtime.AddFault({.operations = SimOps(SimOp::kWrite), .path_prefix = "log", .skip = 1, .count = 2});
  EXPECT_TRUE(Write(*table, 0, "x").ok());
  EXPECT_TRUE(Write(*log, 0, "x").ok());  // Skipped.
  EXPECT_TRUE(RunBlocking(log->Flush()).ok());
  const Status failed = Write(*log, 7, "xyz");
  EXPECT_EQ(failed.code(), Code::kIoError);
  EXPECT_NE(failed.message().find("write 'log.1' at 7+3"), std::string::npos) << failed.ToString();
  EXPECT_TRUE(Write(*table, 0, "x").ok());
  EXPECT_FALSE(Write(*log, 0, "x").ok());
  EXPECT_TRUE(Write(*log, 0, "x").ok());
  EXPECT_EQ(runtime.FaultHits(fault), 2u);

  const uint64_t next = runtime.operations_begun() + 1;
  runtime.AddFault(
      {.first_operation = next + 1, .last_operation = next + 1, .code = Code::kResourceExhausted});
  EXPECT_TRUE(RunBlocking(table->Size()).ok());
  EXPECT_EQ(RunBlocking(table->Size()).code(), Code::kResourceExhausted);
  EXPECT_TRUE(RunBlocking(table->Size()).ok());

  const size_t forever = runtime.AddFault({.operations = SimOps(SimOp::kRead)});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Read(*table, 0, 1).code(), Code::kIoError);
  runtime.RemoveFault(forever);
  EXPECT_EQ(Read(*table, 0, 1).value(), "x");
  runtime.AddFault({.operations = SimOps(SimOp::kRead)});
  runtime.ClearFaults();
  EXPECT_TRUE(Read(*table, 0, 1).ok());
}

TEST(SimDeviceTest, AProbabilityHitsAboutSoOften) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  const size_t fault = runtime.AddFault({.operations = SimOps(SimOp::kWrite), .probability = 0.1});
  int failures = 0;
  for (int i = 0; i < 10'000; ++i) failures += Write(*file, 0, "x").ok() ? 0 : 1;
  EXPECT_GT(failures, 850);
  EXPECT_LT(failures, 1150);
  EXPECT_EQ(runtime.FaultHits(fault), static_cast<uint64_t>(failures));
}

TEST(SimDeviceTest, AFailedWriteHasHappenedWhollyPartlyOrNotAtAll) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("f", "ooo");
    SimRuntime runtime({.seed = seed}, disk);
    const auto file = OpenFile(runtime, "f");
    runtime.AddFault({.operations = SimOps(SimOp::kWrite)});
    EXPECT_FALSE(Write(*file, 0, "nnn").ok());
    seen.insert(disk.ReadFile("f").value());
  }
  EXPECT_EQ(seen, (std::set<std::string>{"ooo", "noo", "nno", "nnn"}));
}

TEST(SimDeviceTest, AfterAFailedFlushTheNextSucceedsAndProvesNothing) {
  uint64_t lost = 0;
  uint64_t lost_partly = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("f", std::string(2048, 'o'));
    {
      SimRuntime runtime({.seed = seed}, disk);
      const auto file = OpenFile(runtime, "f");
      ASSERT_TRUE(Write(*file, 0, std::string(2048, 'n')).ok());
      runtime.AddFault({.operations = SimOps(SimOp::kFlush), .count = 1});
      EXPECT_EQ(RunBlocking(file->Flush()).code(), Code::kIoError);
      EXPECT_TRUE(RunBlocking(file->Flush()).ok());                     // F20.
      EXPECT_EQ(Read(*file, 0, 2048).value(), std::string(2048, 'n'));  // The page cache shows it.
    }
    disk.CrashPower();
    const std::string content = disk.ReadFile("f").value();
    if (content != std::string(2048, 'n')) ++lost;
    if (content.find('n') != std::string::npos && content.find('o') != std::string::npos) ++lost_partly;
  }
  EXPECT_GT(lost, 200u);
  EXPECT_GT(lost_partly, 100u);
}

TEST(SimDeviceTest, WhatAFailedFlushLostIsGoneOnceTheCacheIsDroppedAndGoodOnceRewritten) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("f", std::string(512, 'o'));
    SimRuntime runtime({.seed = seed}, disk);
    const auto file = OpenFile(runtime, "f");
    ASSERT_TRUE(Write(*file, 0, std::string(512, 'n')).ok());
    runtime.AddFault({.operations = SimOps(SimOp::kFlush), .count = 1});
    EXPECT_FALSE(RunBlocking(file->Flush()).ok());
    const auto clone_seen = [&] { return disk.ReadFile("f").value()[0]; };
    EXPECT_EQ(clone_seen(), 'n');
    if (seed % 2 == 0) {
      ASSERT_TRUE(Write(*file, 0, std::string(512, 'r')).ok());
      ASSERT_TRUE(RunBlocking(file->Flush()).ok());
      ASSERT_TRUE(RunBlocking(file->DropCache()).ok());
      EXPECT_EQ(clone_seen(), 'r');
      disk.CrashPower();
      EXPECT_EQ(clone_seen(), 'r') << "seed " << seed;
    } else {
      ASSERT_TRUE(RunBlocking(file->DropCache()).ok());
      const char dropped = clone_seen();
      disk.CrashPower();
      EXPECT_EQ(clone_seen(), dropped) << "seed " << seed;
    }
  }
}

TEST(SimDeviceTest, DroppingTheCacheKeepsUnflushedBytes) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  ASSERT_TRUE(Write(*file, 0, "unflushed").ok());
  ASSERT_TRUE(RunBlocking(file->DropCache()).ok());
  EXPECT_EQ(disk.ReadFile("f").value(), "unflushed");
}

TEST(SimDeviceTest, AShortTransferIsContinuedToItsEnd) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimDisk disk(seed);
    SimRuntime runtime({.seed = seed}, disk);
    const auto file = OpenFile(runtime, "f");
    runtime.AddFault({.effect = SimEffect::kShort});
    const uint64_t before = runtime.operations_completed();
    std::string text(10'000, '\0');
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
    ASSERT_TRUE(Write(*file, 0, text).ok());
    EXPECT_GT(runtime.operations_completed(), before + 1);
    EXPECT_EQ(Read(*file, 0, 10'000).value(), text);
    EXPECT_EQ(Read(*file, 5'000, 10'000).value(), text.substr(5'000));
    std::string parts[3] = {std::string(100, 'x'), std::string(200, 'x'), std::string(300, 'x')};
    std::vector<FileRead> reads;
    for (std::string& part : parts) {
      reads.push_back({part.size() * 10, {reinterpret_cast<uint8_t*>(part.data()), part.size()}});
    }
    ASSERT_TRUE(RunBlocking(file->ReadBatch(reads)).ok());
    for (const std::string& part : parts) EXPECT_EQ(part, text.substr(part.size() * 10, part.size()));
  }
}

TEST(SimDeviceTest, ACrashBetweenThePiecesOfAShortWriteTearsIt) {
  std::set<size_t> kept;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("f", std::string(8192, 'o'));
    {
      SimRuntime runtime({.seed = seed}, disk);
      const auto file = OpenFile(runtime, "f");
      runtime.AddFault({.effect = SimEffect::kShort});
      runtime.CrashAtOperation(2, SimCrashMoment::kAfter);
      Status answer;
      runtime.Run(OneWrite(*file, std::string(8192, 'n'), answer));
      EXPECT_FALSE(answer.ok());
    }
    disk.CrashProcess();
    const std::string content = disk.ReadFile("f").value();
    kept.insert(static_cast<size_t>(std::count(content.begin(), content.end(), 'n')));
  }
  EXPECT_GT(kept.size(), 20u);
}

TEST(SimDeviceTest, ReadsEndAtTheEndOfTheFileAndBatchesFailThere) {
  SimDisk disk(1);
  disk.WriteFile("f", "0123456789");
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  EXPECT_EQ(Read(*file, 8, 10).value(), "89");
  EXPECT_EQ(Read(*file, 10, 10).value(), "");
  EXPECT_EQ(Read(*file, 1'000'000, 10).value(), "");
  uint8_t buffer[8];
  const FileRead reads[] = {{0, {buffer, 4}}, {8, {buffer + 4, 4}}};
  EXPECT_TRUE(RunBlocking(file->ReadBatch({reads, 1})).ok());
  EXPECT_EQ(RunBlocking(file->ReadBatch({reads + 1, 1})).code(), Code::kIoError);
  EXPECT_EQ(RunBlocking(file->ReadBatch(reads)).code(), Code::kIoError);
}

TEST(SimDeviceTest, SlowIoTakesVirtualMinutes) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  runtime.AddFault(
      {.effect = SimEffect::kSlow, .operations = SimOps(SimOp::kWrite), .delay_ns = 180'000'000'000});
  Status answer = Status::Busy("not yet");
  runtime.Spawn(OneWrite(*file, "x", answer));
  runtime.AdvanceTime(170'000'000'000);
  EXPECT_EQ(answer.code(), Code::kBusy);
  runtime.AdvanceTime(11'000'000'000);
  EXPECT_TRUE(answer.ok());
  EXPECT_EQ(Read(*file, 0, 10).value(), "x");
}

TEST(SimDeviceTest, ALostWriteAtTheEndStillMakesTheFileLonger) {
  SimDisk disk(1);
  disk.WriteFile("f", "old");
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  runtime.AddFault({.effect = SimEffect::kLost, .operations = SimOps(SimOp::kWrite), .count = 1});
  EXPECT_TRUE(Write(*file, 3, "new").ok());
  EXPECT_EQ(disk.ReadFile("f").value(), std::string("old\0\0\0", 6));
  EXPECT_TRUE(disk.lacking().contains("f"));
  EXPECT_TRUE(disk.struck().empty());
}

TEST(SimDeviceTest, ALostWriteAnswersOkAndChangesNothing) {
  SimDisk disk(1);
  disk.WriteFile("f", "old");
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  runtime.AddFault({.effect = SimEffect::kLost, .operations = SimOps(SimOp::kWrite), .count = 1});
  EXPECT_TRUE(Write(*file, 0, "new").ok());
  EXPECT_EQ(disk.ReadFile("f").value(), "old");
  EXPECT_TRUE(Write(*file, 0, "new").ok());
  EXPECT_EQ(disk.ReadFile("f").value(), "new");
}

TEST(SimDeviceTest, ALostFlushAnswersOkAndFlushesNothing) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  ASSERT_TRUE(Write(*file, 0, "new").ok());
  runtime.AddFault({.effect = SimEffect::kLost, .operations = SimOps(SimOp::kFlush)});
  EXPECT_TRUE(RunBlocking(file->Flush()).ok());
  EXPECT_EQ(disk.UnflushedSectors(), 1u);
}

TEST(SimDeviceTest, AMisplacedWriteAnswersOkAndLandsElsewhere) {
  bool in_same_file = false;
  bool in_other_file = false;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("f", std::string(4 * kPageSize, 'o'));
    disk.WriteFile("g", std::string(4 * kPageSize, 'o'));
    SimRuntime runtime({.seed = seed}, disk);
    const auto file = OpenFile(runtime, "f");
    runtime.AddFault({.effect = SimEffect::kMisplaced, .operations = SimOps(SimOp::kWrite)});
    EXPECT_TRUE(Write(*file, kPageSize, std::string(kPageSize, 'n')).ok());
    const std::string f = disk.ReadFile("f").value();
    const std::string g = disk.ReadFile("g").value();
    EXPECT_EQ(f.substr(kPageSize, kPageSize), std::string(kPageSize, 'o')) << "seed " << seed;
    EXPECT_EQ(f.size(), 4 * kPageSize);
    in_same_file = in_same_file || f.find('n') != std::string::npos;
    in_other_file = in_other_file || g.find('n') != std::string::npos;
  }
  EXPECT_TRUE(in_same_file && in_other_file);
}

TEST(SimDeviceTest, RotIsForGoodAndRotOnceIsNot) {
  SimDisk disk(1);
  const std::string content(1000, 'x');
  disk.WriteFile("f", content);
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  runtime.AddFault({.effect = SimEffect::kRotOnce, .count = 1});
  EXPECT_NE(Read(*file, 0, 1000).value(), content);
  EXPECT_EQ(Read(*file, 0, 1000).value(), content);
  runtime.AddFault({.effect = SimEffect::kRot, .count = 1});
  const std::string rotten = Read(*file, 0, 1000).value();
  EXPECT_NE(rotten, content);
  EXPECT_EQ(Read(*file, 0, 1000).value(), rotten);
}

TEST(SimDeviceTest, NamesAnswerAsAFileSystemDoes) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  FileSystem& files = runtime.files();
  const auto open = [&](std::string_view path, OpenMode mode) {
    return RunBlocking(files.Open(path, mode, FileIo::kBuffered)).code();
  };
  EXPECT_EQ(open("f", OpenMode::kRead), Code::kNotFound);
  EXPECT_EQ(open("f", OpenMode::kReadWrite), Code::kNotFound);
  EXPECT_EQ(open("f", OpenMode::kCreate), Code::kOk);
  EXPECT_EQ(open("f", OpenMode::kCreate), Code::kAlreadyExists);
  EXPECT_EQ(open("f", OpenMode::kCreateOrOpen), Code::kOk);
  EXPECT_EQ(open("d/f", OpenMode::kCreate), Code::kNotFound);
  EXPECT_EQ(RunBlocking(files.CreateDirectory("d/e")).code(), Code::kNotFound);
  EXPECT_TRUE(RunBlocking(files.CreateDirectory("d")).ok());
  EXPECT_TRUE(RunBlocking(files.CreateDirectory("d")).ok());
  EXPECT_EQ(open("d", OpenMode::kRead), Code::kIoError);
  EXPECT_EQ(open("d/g", OpenMode::kCreate), Code::kOk);
  EXPECT_EQ(RunBlocking(files.Remove("d/h")).code(), Code::kNotFound);
  EXPECT_EQ(RunBlocking(files.Rename("d/h", "d/i")).code(), Code::kNotFound);
  EXPECT_TRUE(RunBlocking(files.Rename("f", "d/f")).ok());
  EXPECT_FALSE(RunBlocking(files.Exists("f")).value());
  EXPECT_TRUE(RunBlocking(files.Exists("d/f")).value());
  const auto list = RunBlocking(files.List("d"));
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ(list.value()[0].name, "f");
  EXPECT_EQ(RunBlocking(files.List("none")).code(), Code::kNotFound);
  EXPECT_TRUE(RunBlocking(files.List("")).value().empty());
}

TEST(SimDeviceTest, ARemovedFileLivesOnForItsHandles) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  const auto file = OpenFile(runtime, "f");
  ASSERT_TRUE(Write(*file, 0, "text").ok());
  ASSERT_TRUE(RunBlocking(runtime.files().Remove("f")).ok());
  EXPECT_EQ(Read(*file, 0, 10).value(), "text");
  EXPECT_FALSE(disk.FileExists("f"));
}

TEST(SimDeviceTest, TheHookSeesEachCompletionAndMayCrash) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  std::vector<SimOp> seen;
  runtime.OnCompletion([&](const SimOperationRecord& record) {
    seen.push_back(record.op);
    if (record.op == SimOp::kFlush) runtime.CrashNow();
  });
  std::vector<std::string> acknowledged;
  runtime.Run(WriteFour(runtime, acknowledged));
  EXPECT_EQ(seen, (std::vector<SimOp>{SimOp::kOpen, SimOp::kWrite, SimOp::kFlush}));
  EXPECT_TRUE(acknowledged.empty());
}

TEST(SimDeviceDeathTest, UnalignedDirectIoAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  auto file = RunBlocking(runtime.files().Open("f", OpenMode::kCreate, FileIo::kDirect));
  ASSERT_TRUE(file.ok());
  alignas(kPageSize) uint8_t page[kPageSize] = {};
  EXPECT_TRUE(RunBlocking((*file)->WriteAt(0, page)).ok());
  EXPECT_DEATH(RunBlocking((*file)->WriteAt(512, page)).ok(), "not aligned");
  EXPECT_DEATH(RunBlocking((*file)->WriteAt(0, {page, 512})).ok(), "not aligned");
}

}  // namespace
}  // namespace partita

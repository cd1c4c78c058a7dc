#include "wal/segment_pool.h"

#include <gtest/gtest.h>

#include "test/wal/log_harness.h"
#include "wal/segment_format.h"

// covers: F25 F57

namespace partita {
namespace {

// Zeroed in several writes, so that a crash may leave some of them.
constexpr uint64_t kSegmentSize = 2 << 20;
constexpr uint64_t kDraws = 100;

Task<void> PrepareTwo(FileSystem& files) {
  if (!(co_await files.CreateDirectory("log")).ok() || !(co_await files.FlushDirectory("")).ok()) co_return;
  SegmentPool pool(files, "log", {kTestStore, kTestShard}, Incarnation{1}, kSegmentSize);
  for (int i = 0; i < 2; ++i) {
    if (!(co_await pool.PrepareNext()).ok()) co_return;
    if (!(co_await pool.Acquire()).ok()) co_return;
  }
}

// How many files say that they are prepared.
uint64_t CheckPrepared(const SimDisk& disk) {
  uint64_t prepared = 0;
  for (const std::string& path : disk.ListFiles("log")) {
    const std::string content = disk.ReadFile(path).value();
    const std::string_view page = std::string_view(content).substr(0, kSegmentHeaderSize);
    if (page.size() < kSegmentHeaderSize || !DecodeSegmentHeader(page).ok()) continue;
    ++prepared;
    EXPECT_EQ(content.size(), kSegmentSize) << path;
    EXPECT_EQ(content.find_first_not_of('\0', kSegmentHeaderSize), std::string::npos) << path;
  }
  return prepared;
}

// Else a write into it could fail for want of space, or leave a stranger's old bytes behind it.
TEST(SegmentPoolTest, AFileThatSaysItIsPreparedIsZeroToItsEndAfterAnyCrash) {
  uint64_t prepared = 0;
  bool crashed = true;
  for (uint64_t number = 1; crashed; ++number) {
    SimDisk disk(1);
    {
      SimRuntime runtime({.seed = 1}, disk);
      runtime.CrashAtOperation(number, SimCrashMoment::kAfter);
      runtime.Run(PrepareTwo(runtime.files()));
      crashed = runtime.crashed();
    }
    for (uint64_t draw = 1; draw <= kDraws; ++draw) {
      const std::unique_ptr<SimDisk> copy = disk.Clone();
      copy->Reseed(draw);
      copy->CrashPower();
      prepared += CheckPrepared(*copy);
      ASSERT_FALSE(HasFailure()) << "operation " << number << ", draw " << draw;
    }
  }
  EXPECT_GT(prepared, kDraws);
}

// Else each loss of power would have all spare segments written once more.
TEST(SegmentPoolTest, WhatWasPreparedStaysSoAfterALossOfPower) {
  for (uint64_t draw = 1; draw <= kDraws; ++draw) {
    SimDisk disk(draw);
    {
      SimRuntime runtime({.seed = draw}, disk);
      runtime.Run(PrepareTwo(runtime.files()));
    }
    const uint64_t prepared = CheckPrepared(disk);
    ASSERT_GT(prepared, 0u);
    disk.CrashPower();
    ASSERT_EQ(CheckPrepared(disk), prepared) << "draw " << draw;
  }
}

Task<void> AcquireInto(SegmentPool* pool, std::unique_ptr<File>* file) {
  auto acquired = co_await pool->Acquire();
  if (acquired.ok()) *file = std::move(acquired).value();
}

Task<void> Prepare(SegmentPool* pool) { EXPECT_TRUE((co_await pool->PrepareNext()).ok()); }

// Else the disk would make two files at the very time when one is late.
TEST(SegmentPoolTest, WhoNeedsAFileGetsTheOneThatIsBeingMade) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  const auto make_directory = [&]() -> Task<Status> {
    co_return co_await runtime.files().CreateDirectory("log");
  };
  ASSERT_TRUE(runtime.RunToEnd(make_directory()).ok());
  SegmentPool pool(runtime.files(), "log", {kTestStore, kTestShard}, Incarnation{1}, kSegmentSize);
  std::unique_ptr<File> file;
  runtime.Spawn(Prepare(&pool));
  runtime.AdvanceTime(1'000'000);
  EXPECT_EQ(pool.spares(), 0u);
  runtime.Spawn(AcquireInto(&pool, &file));
  runtime.AdvanceTime(10'000'000'000);
  EXPECT_NE(file, nullptr);
  EXPECT_EQ(pool.created(), 1u);
  file.reset();
  pool.Close();
}

TEST(SegmentPoolTest, OnlyANumberNamesASegment) {
  EXPECT_EQ(SegmentPool::NumberOf("000007.log"), 7u);
  EXPECT_EQ(SegmentPool::NumberOf("1234567.log"), 1234567u);
  for (const char* name :
       {"", ".log", "000007", "000007.lo", "a7.log", "7.log.new", "1234567890123456789.log"}) {
    EXPECT_EQ(SegmentPool::NumberOf(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace partita

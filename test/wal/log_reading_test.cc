#include <gtest/gtest.h>

#include "test/wal/log_harness.h"

// A log that is opened for reading only, and one that is read ahead while it is replayed.
//
// covers: F15 F29 F31 F52 F62 F64

namespace partita {
namespace {

// A reader after a kill shows what stands in the kernel's cache alone: from then on it is there for good.
TEST(LogReadingTest, WhatItShowsOfTheTailSurvivesALossOfPower) {
  std::vector<std::string> payloads;
  for (uint64_t position = 1; position <= 30; ++position) payloads.push_back(PayloadFor(position, 1, 300));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimDisk disk(seed);
    {
      LogProcess process(disk, LogProcess::Options());
      process.Recover();
      ASSERT_TRUE(process.AppendTail(1, payloads).ok());
    }
    disk.CrashProcess();
    {
      LocalLogOptions options = LogProcess::Options(2);
      options.read_only = true;
      LogProcess reader(disk, options);
      ASSERT_EQ(reader.Recover().payloads, payloads);
    }
    disk.CrashPower();
    LogProcess again(disk, LogProcess::Options(3));
    ASSERT_EQ(again.Recover().payloads, payloads) << "seed " << seed;
  }
}

constexpr uint64_t kLongSegment = 6u << 20;  // Several windows of the reader.

LocalLogOptions LongOptions(uint32_t incarnation) {
  LocalLogOptions options = LogProcess::Options(incarnation);
  options.segment_size = kLongSegment;
  options.frame_size_max = 256u << 10;
  return options;
}

// Frames of all sizes, so that many of them begin in one window and end in the next.
std::vector<std::string> WriteLongLog(SimDisk& disk, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::string> payloads;
  LogProcess process(disk, LongOptions(1), seed);
  process.Recover();
  for (size_t bytes = 0; bytes < 2 * kLongSegment;) {
    std::vector<std::string> batch;
    const uint64_t first = payloads.size() + 1;
    for (size_t i = 0; i < 1 + random() % 3; ++i) {
      batch.push_back(PayloadFor(first + i, 1, random() % 200'000));
      bytes += batch.back().size();
    }
    EXPECT_TRUE(process.AppendAndFlush(first, batch).ok());
    payloads.insert(payloads.end(), batch.begin(), batch.end());
  }
  return payloads;
}

struct ReplayCourse {
  Status status;
  std::vector<std::string> payloads;
  bool was_reading = false;  // While records were taken.
};

// On an executor, where the log reads ahead.
Task<void> ReplayOn(SimRuntime& runtime, LocalLogOptions options, ReplayCourse* out) {
  auto opened = co_await LocalLogStore::Open(runtime.files(), options);
  if (!opened.ok()) {
    out->status = opened.status();
    co_return;
  }
  auto report = co_await (*opened)->Recover(LogPosition{1}, [&](const LogRecord& record) {
    out->payloads.emplace_back(record.payload);
    out->was_reading |= runtime.operations_in_flight() > 0;
    return Status();
  });
  out->status = report.status();
  Status closed = co_await (*opened)->Close();
  if (out->status.ok()) out->status = closed;
}

ReplayCourse Replay(SimDisk& disk, LocalLogOptions options, uint64_t seed, SimFault fault) {
  SimRuntime runtime({.seed = seed}, disk);
  runtime.AddFault(fault);
  ReplayCourse out;
  runtime.Run(ReplayOn(runtime, std::move(options), &out));
  return out;
}

TEST(LogReadingTest, ALongLogIsReadAheadWhileItIsReplayed) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SimDisk disk(seed);
    const std::vector<std::string> payloads = WriteLongLog(disk, seed);
    SimFault slow{.effect = SimEffect::kSlow, .operations = SimOps(SimOp::kRead)};
    slow.probability = 0.3;
    slow.delay_ns = 10'000'000;
    const ReplayCourse course = Replay(disk, LongOptions(2), seed, slow);
    ASSERT_TRUE(course.status.ok()) << course.status.ToString();
    EXPECT_TRUE(course.payloads == payloads) << "seed " << seed;
    EXPECT_TRUE(course.was_reading);
  }
}

// What is cut short is gone on with, what comes back rotten is read again, and what fails ends the replay, as
// with any other read. Nothing is left in flight then (the runtime would say so).
TEST(LogReadingTest, FaultsOfReadsAheadAreMetAsThoseOfOthers) {
  for (SimEffect effect : {SimEffect::kError, SimEffect::kRotOnce, SimEffect::kShort}) {
    int replayed = 0;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      SimDisk disk(seed);
      const std::vector<std::string> payloads = WriteLongLog(disk, seed);
      SimFault fault{.effect = effect, .operations = SimOps(SimOp::kRead)};
      fault.probability = 0.03;
      const ReplayCourse course = Replay(disk, LongOptions(2), seed, fault);
      ASSERT_LE(course.payloads.size(), payloads.size());
      for (size_t i = 0; i < course.payloads.size(); ++i) ASSERT_TRUE(course.payloads[i] == payloads[i]);
      if (effect == SimEffect::kShort) EXPECT_TRUE(course.status.ok()) << course.status.ToString();
      if (!course.status.ok()) continue;
      EXPECT_EQ(course.payloads.size(), payloads.size());
      ++replayed;
    }
    EXPECT_GT(replayed, 2);
  }
}

}  // namespace
}  // namespace partita

#include <gtest/gtest.h>

#include "test/wal/log_harness.h"

// A log that is opened for reading only.
//
// covers: F15 F29 F64

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

}  // namespace
}  // namespace partita

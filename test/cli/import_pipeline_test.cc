#include "api/cli/import_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "test/support/scratch_directory.h"
#include "test/support/small_database.h"

namespace partita {
namespace {

// Each record costs an insert, which is refused, and a look at what it met; the two together are more than
// is let through at once.
TEST(ImportPipelineTest, AComparisonThatWasThrottledIsMadeAgain) {
  constexpr int kRecords = 150;
  const ScratchDirectory directory;
  auto database = OpenSmallDatabase(directory.path() + "/store", 1);
  ASSERT_TRUE(database.ok());
  Table table = (*database)->CreateTable("Things").value();
  const auto entity = [](int i) { return Entity("p", std::to_string(1'000 + i)).Set("n", i); };
  for (int i = 0; i < kRecords; ++i) ASSERT_TRUE(table.Insert(entity(i)).ok());
  ASSERT_TRUE(table.Replace(Entity("p", "1007").Set("n", -1)).ok());
  ASSERT_TRUE((*database)->SetThroughputTargets({.partition_rate = 100}).ok());

  ImportPipeline::Options options;
  options.action = WriteAction::kInsert;
  options.accept_equal = true;
  ImportPipeline pipeline(**database, table, options, {});
  for (uint64_t i = 0; i < kRecords; ++i) {
    pipeline.Submit(entity(static_cast<int>(i)),
                    {.line = i + 1, .next_offset = (i + 1) * 10, .next_line = i + 2});
  }
  pipeline.Drain();
  EXPECT_TRUE(pipeline.failure().ok()) << pipeline.failure().ToString();
  EXPECT_EQ(pipeline.imported(), uint64_t{kRecords - 1});
  const auto refusals = pipeline.TakeRefusals();
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].line, 8u);
  EXPECT_EQ(refusals[0].status.code(), Code::kAlreadyExists);
  EXPECT_GT((*database)->Stats().throttled_by_partition, 0u);
}

ImportPipeline::Place PlaceOf(uint64_t line) {
  return {.line = line, .next_offset = line * 10, .next_line = line + 1};
}

// As of a pipe that gives nothing for a while.
TEST(ImportPipelineTest, WhatWasThrottledIsWrittenAlsoWhileNothingElseComes) {
  constexpr uint64_t kRecords = 250;
  const ScratchDirectory directory;
  auto database = OpenSmallDatabase(directory.path() + "/store", 1);
  ASSERT_TRUE(database.ok());
  Table table = (*database)->CreateTable("Things").value();
  ASSERT_TRUE((*database)->SetThroughputTargets({.partition_rate = 100}).ok());
  ImportPipeline pipeline(**database, table, {}, {});
  for (uint64_t line = 1; line <= kRecords; ++line) {
    pipeline.Submit(Entity("p", std::to_string(line)), PlaceOf(line));
  }
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (pipeline.imported() < kRecords && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(pipeline.imported(), kRecords);
  EXPECT_EQ(pipeline.position().line, kRecords + 1);
  EXPECT_GT((*database)->Stats().throttled_by_partition, 0u);
}

// One that waits for long, among others that do not, would be followed by ever more that are remembered.
TEST(ImportPipelineTest, TheInputIsNotFarAheadOfTheFirstRecordThatIsNotDone) {
  constexpr uint64_t kHot = 4, kRecords = 400;
  const ScratchDirectory directory;
  auto database = OpenSmallDatabase(directory.path() + "/store", 1);
  ASSERT_TRUE(database.ok());
  Table table = (*database)->CreateTable("Things").value();
  ASSERT_TRUE((*database)->SetThroughputTargets({.partition_rate = 1}).ok());
  ImportPipeline::Options options;
  options.writes_max = 4;
  ImportPipeline pipeline(**database, table, options, {});
  uint64_t ahead_max = 0;
  for (uint64_t line = 1; line <= kRecords; ++line) {
    if (line % 2 == 0) {
      pipeline.SkipBad(PlaceOf(line));
    } else {
      const std::string partition = line < 2 * kHot ? "hot" : std::to_string(line);
      pipeline.Submit(Entity(partition, std::to_string(line)), PlaceOf(line));
    }
    ahead_max = std::max(ahead_max, line + 1 - pipeline.position().line);
  }
  pipeline.Drain();
  EXPECT_EQ(pipeline.imported(), kRecords / 2);
  EXPECT_EQ(pipeline.position().line, kRecords + 1);
  EXPECT_GT((*database)->Stats().throttled_by_partition, 0u);
  EXPECT_LE(ahead_max, 64 * options.writes_max);
}

}  // namespace
}  // namespace partita

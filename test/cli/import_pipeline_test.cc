#include "api/cli/import_pipeline.h"

#include <gtest/gtest.h>

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
  ImportPipeline pipeline(table, options, {});
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

}  // namespace
}  // namespace partita

#include "bench/load/partita_engine.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "api/partita.h"
#include "bench/load/measurement.h"
#include "test/support/scratch_directory.h"

namespace partita::bench {
namespace {

TEST(PartitaEngineTest, WhatIsReplacedIsSpreadOverTheShards) {
  const ScratchDirectory scratch;
  EngineConfig config;
  config.directory = scratch.path() + "/store";
  config.memory_bytes = uint64_t{64} << 20;
  config.partition_count = 40'000;
  Result<std::unique_ptr<Engine>> engine = OpenPartita(config);
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  const std::vector<Row> rows = {{.keys = KeysOf(0), .value = "x"}};
  ASSERT_TRUE((*engine)->InsertForReplacing(rows).ok());
  ASSERT_TRUE((*engine)->Close().ok());

  Options options;
  options.directory = config.directory;
  options.memory_bytes = config.memory_bytes;
  Result<std::unique_ptr<Database>> database = Database::Open(options);
  ASSERT_TRUE(database.ok()) << database.status().ToString();
  const auto ranges = (*database)->ListRanges("BenchEntities");
  ASSERT_TRUE(ranges.ok());
  const auto last = KeysOf((kReplacedPartitionsMax - 1) * kRowsPerPartition);
  std::set<uint32_t> shards;
  for (const RangeDescription& range : *ranges) {
    if (range.first_partition_key <= last.partition()) shards.insert(range.shard);
  }
  EXPECT_EQ(shards.size(), (*database)->Stats().shards.size());
  EXPECT_TRUE((*database)->Close().ok());
}

}  // namespace
}  // namespace partita::bench

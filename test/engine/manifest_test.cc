#include "engine/manifest.h"

#include <gtest/gtest.h>

namespace partita {
namespace {

TEST(ManifestKeyTest, SaysOfWhichLayoutAndShardItIs) {
  for (const uint32_t layout : {1u, 7u, kLayoutMax}) {
    for (const uint32_t shard : {0u, 9u, kShardCountMax - 1}) {
      const std::string key = ManifestKey(layout, ShardId(shard));
      const std::optional<ShardOfLayout> read = ParseManifestKey(key);
      ASSERT_TRUE(read.has_value()) << key;
      EXPECT_EQ(read->layout, layout);
      EXPECT_EQ(read->shard, ShardId(shard));
    }
  }
}

TEST(ManifestKeyTest, OtherNamesAreNoManifests) {
  for (const char* name : {"", "catalog", "shard-", "shard-1", "shard-1-", "shard--1", "shard-1-0x",
                           "shard-1-256", "shard-4294967296-0", "shard-1048577-0", "shard-0-0", "log-1-0"}) {
    EXPECT_FALSE(ParseManifestKey(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace partita

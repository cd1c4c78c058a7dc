#include "engine/repair_reach.h"

#include <gtest/gtest.h>

namespace partita {
namespace {

FileMeta FileWith(std::string first, std::string last, uint64_t version_max) {
  TableInfo info;
  info.smallest = std::move(first);
  info.largest = std::move(last);
  info.version_max = Version(version_max);
  return {.info = std::move(info)};
}

Manifest OfShard(uint32_t shard, std::vector<FileMeta> files) {
  Manifest manifest;
  manifest.shard = ShardId(shard);
  manifest.files = std::move(files);
  return manifest;
}

class RepairReachTest : public testing::Test {
 protected:
  // Shard 0 has a to g in two files, shard 1 m to t.
  void SetUp() override {
    reach_.AddManifest(OfShard(0, {FileWith("a", "g", 10), FileWith("b", "c", 20)}));
    reach_.AddManifest(OfShard(1, {FileWith("m", "t", 15)}));
  }

  RepairReach reach_;
};

TEST_F(RepairReachTest, ShardsWithKeysOfTheirOwnDoNotContradict) {
  reach_.AddLogged(ShardId(0), "b", Version(21));
  reach_.AddLogged(ShardId(0), "b", Version(22));
  reach_.AddLogged(ShardId(0), "d", Version(11));
  reach_.AddLogged(ShardId(0), "h", Version(1));
  reach_.AddLogged(ShardId(1), "i", Version(1));
  reach_.AddLogged(ShardId(1), "m", Version(16));
  EXPECT_FALSE(reach_.Contradicts());
}

TEST_F(RepairReachTest, FilesOfTwoShardsWithTheSameKeysDo) {
  reach_.AddManifest(OfShard(2, {FileWith("g", "h", 1)}));
  EXPECT_TRUE(reach_.Contradicts());
}

TEST_F(RepairReachTest, WhatIsCutOffDoesNotCount) {
  FileMeta file = FileWith("a", "z", 1);
  file.lower = "h";
  file.upper = "m";
  reach_.AddManifest(OfShard(2, {file}));
  EXPECT_FALSE(reach_.Contradicts());
}

TEST_F(RepairReachTest, NeitherDoesWhatHasNoKeyWithinItsBounds) {
  FileMeta before = FileWith("d", "e", 1), behind = before, none = before;
  before.upper = "c";
  behind.lower = "n";
  none.lower = none.upper = "n";
  reach_.AddManifest(OfShard(2, {before, behind, none, FileWith("z", "a", 1)}));
  reach_.AddLogged(ShardId(0), "z", Version(1));
  EXPECT_FALSE(reach_.Contradicts());
}

TEST_F(RepairReachTest, PreparedFilesDo) {
  Manifest manifest = OfShard(2, {});
  manifest.prepared.attempt = 1;
  reach_.AddManifest(manifest);
  EXPECT_TRUE(reach_.Contradicts());
}

TEST_F(RepairReachTest, AKeyInALogAndInAnothersFileDoes) {
  reach_.AddLogged(ShardId(1), "g", Version(100));
  EXPECT_TRUE(reach_.Contradicts());
}

TEST_F(RepairReachTest, AKeyThatALogKnowsOlderThanItsOwnFileDoes) {
  reach_.AddLogged(ShardId(0), "bb", Version(20));
  EXPECT_TRUE(reach_.Contradicts());
}

TEST_F(RepairReachTest, AKeyInTwoLogsDoes) {
  reach_.AddLogged(ShardId(0), "h", Version(30));
  reach_.AddLogged(ShardId(1), "h", Version(30));
  EXPECT_TRUE(reach_.Contradicts());
}

}  // namespace
}  // namespace partita

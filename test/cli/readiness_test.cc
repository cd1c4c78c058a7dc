#include "api/cli/readiness.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

namespace partita {
namespace {

using ::testing::HasSubstr;

class ReadinessTest : public testing::Test {
 protected:
  ReadinessTest() {
    stats_.shards.resize(2);
    stats_.shards[1].shard = 1;
  }
  void ExpectReady(const std::string& text) {
    const Readiness readiness = ReadinessOf(stats_);
    EXPECT_TRUE(readiness.ready);
    EXPECT_THAT(readiness.text, HasSubstr(text));
  }
  void ExpectNotReady(const std::string& text) {
    const Readiness readiness = ReadinessOf(stats_);
    EXPECT_FALSE(readiness.ready);
    EXPECT_THAT(readiness.text, HasSubstr(text));
  }

  DatabaseStats stats_;
};

TEST_F(ReadinessTest, ASoundStoreIsReadyWithoutAWord) { EXPECT_EQ(ReadinessOf(stats_).text, "ready"); }

TEST_F(ReadinessTest, WhoTakesNoWritesIsNotReady) {
  stats_.catalog_in_doubt = true;
  ExpectNotReady("the last change of a table");
  stats_.shards[1].fenced = true;
  ExpectNotReady("shard 1 is fenced");
  stats_.shards[1].stalled = true;
  ExpectNotReady("shard 1 is stalled");
  stats_.reads_overdue = 3;
  ExpectNotReady("3 reads of tables");
}

TEST_F(ReadinessTest, WhoTakesThemInTroubleSaysTheGravest) {
  stats_.shards[1].references_set_aside = 2;
  ExpectReady("but shard 1 leaves 2 damaged tables, or parts of them, out of its merges");
  stats_.shards[0].clock_seconds_ahead = 3600;
  ExpectReady("but Timestamps of shard 0 are 3600 s ahead of the system's clock");
  stats_.shards[1].compaction_error = "EIO";
  ExpectReady("but shard 1 cannot merge its tables, tries again, and slows writes down as they pile up: EIO");
  stats_.shards[1].flush_error = "EIO";
  ExpectReady(
      "but shard 1 cannot make tables of its writes, tries again, and takes no more when its memory "
      "for them is full: EIO");
  stats_.out_of_space = true;
  ExpectReady("but the disk is full: only deletes");
}

TEST_F(ReadinessTest, AClockThatIsFollowedIsNotOff) {
  stats_.shards[1].clock_seconds_ahead = -300;
  EXPECT_EQ(ReadinessOf(stats_).text, "ready");
  stats_.shards[1].clock_seconds_ahead = -301;
  ExpectReady(
      "Timestamps of shard 1 are 301 s behind the system's clock, which jumped: they follow it after a "
      "restart");
}

}  // namespace
}  // namespace partita

#include "engine/repair.h"
#include "test/engine/repair_fixture.h"

// covers: F53 F80. A log whose manifest is lost: whether it is whole, nobody says (engine/repair_doubts.cc).

namespace partita {
namespace {

// Lives in which a shard's log got a segment each: with rows, without, with rows. Their ids, oldest first.
class RepairLivesTest : public RepairTest {
 protected:
  void SetUp() override {
    RepairTest::SetUp();
    for (const int rows : {60, 0, 5}) {
      SimRuntime runtime(NextLife(), *disk_);
      auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
      ASSERT_TRUE(opened.ok()) << opened.status().ToString();
      const int from = static_cast<int>(life_) * 10'000;
      for (int i = 0; i < rows; ++i) WriteRow(runtime, **opened, from + i);
      ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
    }
    const std::vector<std::string> all = Segments(0);
    ASSERT_GE(all.size(), 4u);
    lives_.assign(all.end() - 3, all.end());
  }

  void LoseManifest() { disk_->FlipBit("meta/shard-1-0", 60, 2); }

  // Without the manifest and this segment: some rows are kept, the others listed as lost, for this reason.
  void ExpectDoubt(const std::string& segment, const std::string& reason) {
    LoseManifest();
    ASSERT_TRUE(disk_->RemoveFile(segment));
    const RepairReport listed = Repair();
    ASSERT_EQ(listed.damages.size(), 1u);
    EXPECT_THAT(listed.damages[0].consequence, testing::HasSubstr(reason));
    EXPECT_GT(kept_, rows_.size() / 3);
    EXPECT_LT(kept_, rows_.size());
  }

  std::vector<std::string> lives_;
};

// covers: F80 F34. Nobody but the manifest says where the log has to begin.
TEST_F(RepairLivesTest, WithoutManifestAnOlderSegmentStandsInForOneThatIsGone) {
  LoseManifest();
  ASSERT_TRUE(disk_->RemoveFile(lives_[1]));
  EXPECT_EQ(Repair().damages.size(), 1u);
  EXPECT_EQ(kept_, rows_.size());
}

TEST_F(RepairLivesTest, WithoutManifestAGapInTheLogIsListed) {
  ExpectDoubt(lives_[0], "the log begins at position");
}

TEST_F(RepairLivesTest, WithoutManifestALostEndOfTheLogIsListed) {
  ExpectDoubt(lives_[2], "newer segments are missing");
}

// Nothing of the log is in tables, as with each opening a log that holds nothing begins anew.
TEST_F(RepairLivesTest, WithoutManifestALogThatWasFlushedInTimeIsWhole) {
  for (int life = 0; life < 4; ++life) {
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    ASSERT_TRUE(runtime.RunToEnd((*opened)->FlushMemtables()).ok());
    if (life == 3) {
      for (int i = 0; i < 20; ++i) WriteRow(runtime, **opened, 90'000 + i);
    }
    ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
  }
  LoseManifest();
  EXPECT_EQ(Repair().damages.size(), 1u);
  EXPECT_EQ(kept_, rows_.size());
}

TEST_F(RepairLivesTest, AnOpeningThatALostManifestForbidsCastsNoDoubtOnTheLog) {
  for (const bool remove : {false, true}) {
    remove ? (void)disk_->RemoveFile("meta/shard-1-0") : LoseManifest();
    SimRuntime runtime(NextLife(), *disk_);
    EXPECT_EQ(runtime.RunToEnd(Store::Open(runtime, SmallStore())).code(), Code::kCorruption);
  }
  EXPECT_EQ(Repair().damages.size(), 1u);
  EXPECT_EQ(kept_, rows_.size());
}

// Also those whose manifest is lost: nothing else tells of them.
TEST_F(RepairLivesTest, TheLogsOfTheLayoutBeforeAreEmptiedByTheNextOpening) {
  (void)disk_->RemoveFile("meta/shard-1-0");
  EXPECT_EQ(Repair().damages.size(), 1u);
  ASSERT_FALSE(disk_->ListFiles("log-2-0/").empty());
  for (const char* log : {"log-1-0/", "log-1-1/"}) EXPECT_TRUE(disk_->ListFiles(log).empty()) << log;
}

// What lies there is kept, and no shard goes on in it.
TEST_F(RepairLivesTest, ALayoutOfWhichThereAreLogsIsPassedOver) {
  LoseManifest();
  disk_->WriteFile("log-2-0/000000000001.log", "of a time that the catalog does not know");
  EXPECT_EQ(Repair().damages.size(), 1u);
  EXPECT_TRUE(disk_->ListFiles("log-2-0/").empty());
  EXPECT_FALSE(disk_->ListFiles("log-3-0/").empty());
  EXPECT_EQ(kept_, rows_.size());
}

}  // namespace
}  // namespace partita

#include "engine/repair.h"
#include "test/engine/repair_fixture.h"

// covers: F53 F67. Stores in which a change of the number of shards has not come to its end.

namespace partita {
namespace {

constexpr uint32_t kShardsAfter = 3;

class RepairLayoutsTest : public RepairTest {
 protected:
  static StoreOptions ChangedStore() {
    StoreOptions options = SmallStore();
    options.shards = kShardsAfter;
    return options;
  }
  SimOptions NextChangedLife() {
    SimOptions options = NextLife();
    options.shards = kShardsAfter;
    return options;
  }

  // The new layout's manifests are there, and the catalog does not name it yet.
  void InterruptChange() {
    SimRuntime runtime(NextChangedLife(), *disk_);
    const std::string last = "meta/" + ManifestKey(2, ShardId(kShardsAfter - 1));
    runtime.OnCompletion([&runtime, &last](const SimOperationRecord& done) {
      if (done.op == SimOp::kRename && runtime.disk().FileExists(last)) runtime.CrashNow();
    });
    EXPECT_FALSE(runtime.RunToEnd(Store::Open(runtime, ChangedStore())).ok());
    ASSERT_TRUE(runtime.crashed());
    disk_->CrashProcess();
    ASSERT_TRUE(disk_->FileExists(last));
  }

  // The old layout's files of this name stay, and rows are written to the new one.
  void ChangeAndLeave(const std::string& left) {
    SimRuntime runtime(NextChangedLife(), *disk_);
    runtime.AddFault({.operations = SimOps(SimOp::kRemove), .path_prefix = left});
    auto opened = runtime.RunToEnd(Store::Open(runtime, ChangedStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_THAT((*opened)->open_report().leftovers_kept, testing::HasSubstr(left));
    for (int i = 0; i < 60; ++i) WriteRow(runtime, **opened, 50'000 + i);
    ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
    ASSERT_FALSE(disk_->ListFiles(left).empty());
  }
};

// The next opening removes them.
TEST_F(RepairLayoutsTest, ManifestsOfAnotherLayoutAreKept) {
  InterruptChange();
  disk_->FlipBit("meta/shard-1-0", 60, 2);
  EXPECT_EQ(Repair().damages.size(), 1u);
  EXPECT_TRUE(disk_->ListFiles("meta/shard-2-").empty());
  EXPECT_EQ(kept_, rows_.size());
}

// As long as nothing was written to the new one.
TEST_F(RepairLayoutsTest, WithoutCatalogTheLayoutBeforeAnInterruptedChangeCounts) {
  InterruptChange();
  ASSERT_TRUE(disk_->RemoveFile("meta/catalog"));
  EXPECT_EQ(RepairWithoutCatalog().shards, kShards);
  EXPECT_EQ(kept_, rows_.size());
}

// covers: F80
TEST_F(RepairLayoutsTest, WithoutCatalogTheLayoutThatWasWrittenToCounts) {
  const std::unique_ptr<SimDisk> filled = disk_->Clone();
  const RowsByKey rows = rows_;
  for (const std::string left : {"meta/shard-1-", "log-1-"}) {
    for (const bool manifests_too : {false, true}) {
      SCOPED_TRACE(testing::Message() << left << " " << manifests_too);
      disk_ = filled->Clone();
      rows_ = rows;
      ChangeAndLeave(left);
      ASSERT_TRUE(disk_->RemoveFile("meta/catalog"));
      for (const std::string& path : disk_->ListFiles("meta/shard-2-")) {
        if (manifests_too) ASSERT_TRUE(disk_->RemoveFile(path));
      }
      EXPECT_EQ(RepairWithoutCatalog().shards, kShardsAfter);
      EXPECT_EQ(kept_, rows_.size());
    }
  }
}

// What was in them is lost, and is listed; the older one's are sound, and lack all that was written since.
// covers: F80
TEST_F(RepairLayoutsTest, WithoutCatalogAndLogsTheLayoutThatWasWrittenToCounts) {
  ChangeAndLeave("log-1-");
  ASSERT_TRUE(disk_->RemoveFile("meta/catalog"));
  const std::unique_ptr<SimDisk> changed = disk_->Clone();
  for (const std::string gone : {"log-2-0/", "log-2-"}) {
    SCOPED_TRACE(gone);
    disk_ = changed->Clone();
    for (const std::string& path : disk_->ListFiles(gone)) ASSERT_TRUE(disk_->RemoveFile(path));
    const RepairReport listed = RepairWithoutCatalog();
    EXPECT_EQ(listed.shards, kShardsAfter);
    EXPECT_GT(LostRanges(listed), 0u);
  }
}

// Each manifest of its layout is durable as soon as it is written, and none knows of what the logs have.
// covers: F28 F80
TEST_F(RepairLayoutsTest, WithoutAnyMetaFileARepairThatWasKilledAmidItsManifestsIsBegunAnew) {
  for (const std::string& path : disk_->ListFiles("meta/")) ASSERT_TRUE(disk_->RemoveFile(path));
  const std::unique_ptr<SimDisk> damaged = disk_->Clone();
  const RepairReport listed = List();
  for (uint32_t written = 1; written <= kShards; ++written) {
    SCOPED_TRACE(written);
    disk_ = damaged->Clone();
    {
      SimRuntime runtime(NextLife(), *disk_);
      runtime.OnCompletion([&runtime, &written](const SimOperationRecord& done) {
        const bool named = runtime.disk().FileExists("meta/" + ManifestKey(2, ShardId(written - 1)));
        if (done.op == SimOp::kFlushDirectory && named) runtime.CrashNow();
      });
      EXPECT_FALSE(Run(runtime, /*apply=*/true).ok());
      ASSERT_TRUE(runtime.crashed());
    }
    disk_->CrashPower();
    ASSERT_EQ(disk_->ListFiles("meta/shard-2-").size(), written);
    const RepairReport again = RepairWithoutCatalog();
    EXPECT_EQ(again.damages.size(), listed.damages.size());
    EXPECT_EQ(LostRanges(again), LostRanges(listed));
    EXPECT_EQ(kept_, rows_.size());
  }
}

}  // namespace
}  // namespace partita

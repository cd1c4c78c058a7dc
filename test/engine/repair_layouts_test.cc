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
};

// The next opening removes them.
TEST_F(RepairLayoutsTest, ManifestsOfAnotherLayoutAreKept) {
  InterruptChange();
  disk_->FlipBit("meta/shard-1-0", 60, 2);
  EXPECT_EQ(Repair().damages.size(), 1u);
  EXPECT_TRUE(disk_->ListFiles("meta/shard-2-").empty());
  EXPECT_EQ(kept_, rows_.size());
}

}  // namespace
}  // namespace partita

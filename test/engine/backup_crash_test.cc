#include "test/engine/backup_fixture.h"

// covers: F68 F10 F25 F28. Backups and restores that are killed, or end just before a loss of power.

namespace partita {
namespace {

// Whether the copies' table files are the store's, or copies of them.
class BackupCrashTest : public testing::TestWithParam<FileSharing> {};

// Whatever losses of power leave of `disk`, `directory` is as it was.
void ExpectFilesSurvive(const SimDisk& disk, const std::string& directory) {
  EXPECT_FALSE(FilesIn(disk, directory).empty());
  for (uint64_t draw = 1; draw <= 20; ++draw) {
    std::unique_ptr<SimDisk> copy = disk.Clone();
    copy->Reseed(draw);
    copy->CrashPower();
    EXPECT_EQ(FilesIn(*copy, directory), FilesIn(disk, directory));
  }
}

TEST_P(BackupCrashTest, ACrashAtAnyOperationLeavesNothingThatIsCalledCompleteOrABackupThatIs) {
  SimDisk base(11);
  MakeClosedStore(base);
  uint64_t complete = 0, incomplete = 0;
  bool crashed = true;
  for (uint64_t point = 1; crashed; point += 1 + point / 40) {
    std::unique_ptr<SimDisk> disk = base.Clone();
    disk->Reseed(point);
    bool answered_ok = false;
    {
      World world(*disk, 100 + point);
      world.options.sharing = GetParam();
      world.runtime.CrashAtOperation(point,
                                     point % 2 == 0 ? SimCrashMoment::kAfter : SimCrashMoment::kBefore);
      auto opened = world.runtime.RunToEnd(Store::Open(world.runtime, BackedUpStore()));
      if (opened.ok()) {
        world.store = std::move(opened).value();
        answered_ok = world.BackUp().ok() && !world.runtime.crashed();
        (void)world.Close();
      }
      crashed = world.runtime.crashed();
    }
    disk->CrashPower();
    World after(*disk, 5000 + point);
    const auto restored = after.Restore();
    if (restored.ok()) {
      ++complete;
      auto store = after.OpenRestored();
      ASSERT_TRUE(store.ok()) << "point " << point << ": " << store.status().ToString();
      EXPECT_EQ(ReadPartition(after, **store, 1).numbers, std::set<int>({80})) << "point " << point;
      EXPECT_TRUE(after.runtime.RunToEnd((*store)->Close()).ok());
    } else {
      ++incomplete;
      EXPECT_FALSE(answered_ok) << "point " << point << ": " << restored.status().ToString();
      EXPECT_EQ(restored.code(), Code::kInvalidArgument) << restored.status().ToString();
    }
  }
  EXPECT_GT(complete, 0u);
  EXPECT_GT(incomplete, 30u);
}

TEST_P(BackupCrashTest, ARestoreThatCrashesAnywhereIsNotServedAndCanBeDoneAgain) {
  SimDisk base(12);
  MakeClosedStore(base);
  {
    World world(base, 50);
    world.Open();
    ASSERT_TRUE(world.BackUp().ok());
    ASSERT_TRUE(world.Close().ok());
  }
  uint64_t served = 0, refused = 0;
  bool crashed = true;
  for (uint64_t point = 1; crashed; point += 1 + point / 40) {
    std::unique_ptr<SimDisk> disk = base.Clone();
    disk->Reseed(point);
    {
      World world(*disk, 200 + point);
      world.options.sharing = GetParam();
      world.runtime.CrashAtOperation(point,
                                     point % 2 == 0 ? SimCrashMoment::kAfter : SimCrashMoment::kBefore);
      (void)world.Restore();
      crashed = world.runtime.crashed();
    }
    disk->CrashPower();
    bool whole = false;
    {
      World world(*disk, 6000 + point);
      auto store = world.OpenRestored();
      whole = store.ok();
      if (whole) {
        EXPECT_EQ(ReadPartition(world, **store, 0).numbers, std::set<int>({80})) << "point " << point;
        EXPECT_TRUE(world.runtime.RunToEnd((*store)->Close()).ok());
      }
    }
    ++(whole ? served : refused);
    if (!whole) ExpectRestores(*disk, 7000 + point);
  }
  EXPECT_GT(served, 0u);
  EXPECT_GT(refused, 20u);
}

TEST_P(BackupCrashTest, WhatEndedSurvivesALossOfPower) {
  SimDisk disk(18);
  MakeClosedStore(disk);
  {
    World world(disk, 50);
    world.options.sharing = GetParam();
    world.Open();
    ASSERT_TRUE(world.BackUp().ok());
    ASSERT_TRUE(world.Restore().ok());
    ASSERT_TRUE(world.Close().ok());
  }
  ExpectFilesSurvive(disk, "backup");
  ExpectFilesSurvive(disk, "restored");
}

// The name that BackUpStore gives at last.
TEST_P(BackupCrashTest, ABackupKeepsItsNameInALossOfPower) {
  SimDisk disk(21);
  MakeClosedStore(disk);
  {
    World world(disk, 50);
    world.options.sharing = GetParam();
    world.Open();
    ASSERT_TRUE(world.BackUp().ok());
    ASSERT_TRUE(world.Close().ok());
    ASSERT_TRUE(world.runtime.RunToEnd(TakeBackupName(world.runtime.files(), "backup", "monday")).ok());
  }
  ExpectFilesSurvive(disk, "monday");
}

// And the one that RestoreStore gives at first.
TEST_P(BackupCrashTest, ARestoredStoreKeepsItsNameInALossOfPower) {
  SimDisk disk(22);
  MakeClosedStore(disk);
  {
    World world(disk, 50);
    world.options.sharing = GetParam();
    world.Open();
    ASSERT_TRUE(world.BackUp().ok());
    ASSERT_TRUE(world.Close().ok());
    ASSERT_TRUE(world.runtime.RunToEnd(MakeRestoreDirectory(world.runtime.files(), "again")).ok());
    Subdirectory again(world.runtime.files(), "again");
    const auto restored = world.runtime.RunToEnd(
        RestoreBackup(world.runtime.clock(), 4711, world.backup, again, world.options));
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  }
  ExpectFilesSurvive(disk, "again");
}

// The second one begins by removing what the first one left.
TEST_P(BackupCrashTest, ARestoreThatCrashesTwiceCanBeDoneAgain) {
  SimDisk base(19);
  MakeClosedStore(base);
  {
    World world(base, 50);
    world.Open();
    ASSERT_TRUE(world.BackUp().ok());
    ASSERT_TRUE(world.Close().ok());
  }
  {
    World world(base, 51);
    world.options.sharing = GetParam();
    world.runtime.CrashAtOperation(200, SimCrashMoment::kAfter);
    (void)world.Restore();
    ASSERT_TRUE(world.runtime.crashed());
  }
  base.CrashProcess();
  ASSERT_TRUE(base.FileExists("restored/meta/unfinished"));
  const size_t left = base.ListFiles("restored/").size();
  ASSERT_GT(left, 5u);
  for (uint64_t point = 1; point <= 3 * left; ++point) {
    SCOPED_TRACE(point);
    std::unique_ptr<SimDisk> disk = base.Clone();
    {
      World world(*disk, 100 + point);
      world.runtime.CrashAtOperation(point, SimCrashMoment::kAfter);
      (void)world.Restore();
      ASSERT_TRUE(world.runtime.crashed());
    }
    for (uint64_t draw = 1; draw <= 5; ++draw) {
      std::unique_ptr<SimDisk> copy = disk->Clone();
      copy->Reseed(draw);
      copy->CrashPower();
      ExpectRestores(*copy, 8000 + point);
      if (testing::Test::HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, BackupCrashTest,
                         testing::Values(FileSharing::kNever, FileSharing::kWherePossible),
                         [](const auto& info) {
                           return info.param == FileSharing::kNever ? "OfItsOwn" : "SharedWithTheStore";
                         });

}  // namespace
}  // namespace partita

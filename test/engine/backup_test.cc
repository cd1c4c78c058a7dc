#include "engine/backup.h"

#include <optional>

#include "engine/base/checksum.h"
#include "engine/io/local_object_store.h"
#include "engine/io/meta_format.h"
#include "engine/repair.h"
#include "test/engine/backup_fixture.h"
#include "test/support/former_manifest.h"

// covers: F68 F17 F10 F41. Sharing, and the directories' names: test/api/maintenance_test.cc.

namespace partita {
namespace {

TEST(BackupTest, RestoresAPrefixOfEachShardWithWholeBatchesWhileWritesGoOn) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimDisk disk(seed);
    World world(disk, seed);
    world.Open();
    world.MakeTable();
    Writer writers[2];
    for (int p = 0; p < 2; ++p) {
      world.runtime.RunToEnd([](Task<void> task) -> Task<bool> {
        co_await std::move(task);
        co_return true;
      }(WriteMany(world.store.get(), p, 1, 60, &writers[p])));
      ASSERT_EQ(writers[p].acknowledged, 60);
    }
    for (int p = 0; p < 2; ++p) {
      world.runtime.Spawn(WriteMany(world.store.get(), p, 61, 200, &writers[p]));
    }
    const auto report = world.BackUp();
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_GT(report->files, 0u);
    EXPECT_GT(report->entries, 0u);
    world.runtime.AdvanceTime(30'000'000'000);
    EXPECT_EQ(writers[0].acknowledged, 260);
    const std::vector<ShardStatistics> statistics = world.store->Statistics();
    size_t referenced = 0;
    for (const auto& shard : statistics) {
      for (const auto& level : shard.levels) referenced += level.files;
    }
    EXPECT_LE(disk.ListFiles("tables/").size(), referenced);  // Nothing that was pinned stays behind.
    ASSERT_TRUE(world.Close().ok());

    const auto restored_report = world.Restore();
    ASSERT_TRUE(restored_report.ok()) << restored_report.status().ToString();
    EXPECT_EQ(restored_report->entries, report->entries);
    auto restored = world.OpenRestored();
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    for (int p = 0; p < 2; ++p) {
      const RowsOfPartition rows = ReadPartition(world, **restored, p);
      EXPECT_EQ(rows.rows, kRowsOfABatch);
      ASSERT_EQ(rows.numbers.size(), 1u);    // F10.
      EXPECT_GE(*rows.numbers.begin(), 60);  // Acknowledged before the call.
      // F17: the original went on after the backup and gave versions; none is given again.
      const WriteOutcome next = world.runtime.RunToEnd(WriteBatch(restored->get(), p, 1));
      ASSERT_TRUE(next.status.ok()) << next.status.ToString();
      EXPECT_GT(next.version, std::max(writers[0].version_max, writers[1].version_max));
    }
    EXPECT_TRUE(world.runtime.RunToEnd((*restored)->Close()).ok());
  }
}

// Then it counts on from its last version, and has given some that lie ahead of the clock at the restore.
TEST(BackupTest, GivesNoVersionAgainThoughTheOriginalWasAheadOfTheClock) {
  SimDisk disk(17);
  World world(disk, 50);
  world.runtime.StepWallClock(int64_t{3600} * 10'000'000);
  world.Open();
  world.MakeTable();
  Version highest;
  const auto write = [&](int first, int last) {
    for (int number = first; number <= last; ++number) {
      for (int p = 0; p < 2; ++p) {
        const WriteOutcome outcome =
            world.runtime.RunToEnd(WriteBatch(world.store.get(), p, number, DurabilityLevel::kPower));
        ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
        highest = std::max(highest, outcome.version);
      }
    }
  };
  world.runtime.StepWallClock(-int64_t{3600} * 10'000'000);
  write(1, 10);
  world.runtime.AdvanceTime(uint64_t{2} * 3600 * 1'000'000'000);  // Its clock runs on, though nobody writes.
  ASSERT_TRUE(world.BackUp().ok());
  write(11, 40);
  ASSERT_TRUE(world.Close().ok());
  ASSERT_TRUE(world.Restore().ok());
  auto restored = world.OpenRestored();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  for (int p = 0; p < 2; ++p) {
    const WriteOutcome next = world.runtime.RunToEnd(WriteBatch(restored->get(), p, 1));
    ASSERT_TRUE(next.status.ok()) << next.status.ToString();
    EXPECT_GT(next.version, highest);
  }
  EXPECT_TRUE(world.runtime.RunToEnd((*restored)->Close()).ok());
}

TEST(BackupTest, IsReadWithoutBeingRestoredAndNeverWrittenTo) {
  SimDisk disk(3);
  World world(disk);
  world.Open();
  world.MakeTable();
  ASSERT_TRUE(world.runtime.RunToEnd(WriteBatch(world.store.get(), 0, 7)).status.ok());
  ASSERT_TRUE(world.BackUp().ok());
  EXPECT_EQ(world.BackUp().code(), Code::kAlreadyExists);
  ASSERT_TRUE(world.Close().ok());
  StoreOptions options = BackedUpStore();
  EXPECT_EQ(world.runtime.RunToEnd(Store::Open(world.backup_world, options)).code(), Code::kInvalidArgument);
  options.create_if_missing = false;
  options.read_only = true;
  auto reading = world.runtime.RunToEnd(Store::Open(world.backup_world, options));
  ASSERT_TRUE(reading.ok()) << reading.status().ToString();
  EXPECT_EQ(ReadPartition(world, **reading, 0).rows, kRowsOfABatch);
  EXPECT_TRUE(world.runtime.RunToEnd((*reading)->Close()).ok());
}

// Each is sound, and of this store; together they never were one.
TEST(BackupTest, RefusesToRestorePartsOfTwoBackups) {
  SimDisk base(20);
  MakeClosedStore(base);
  std::map<std::string, std::string> older;
  for (int number : {1, 2}) {
    World world(base, 50 + number);
    world.Open();
    ASSERT_TRUE(world.runtime.RunToEnd(WriteBatch(world.store.get(), 0, 80)).status.ok());
    ASSERT_TRUE(world.runtime.RunToEnd(WriteBatch(world.store.get(), 1, 80)).status.ok());
    ASSERT_TRUE(world.BackUp().ok());
    ASSERT_TRUE(world.Close().ok());
    if (number == 2) break;
    older = FilesIn(base, "backup");
    for (const auto& [path, content] : older) ASSERT_TRUE(base.RemoveFile(path));
  }
  size_t exchanged = 0;
  for (const auto& [path, content] : older) {
    if (!path.starts_with("backup/meta/") || *base.ReadFile(path) == content) continue;
    std::unique_ptr<SimDisk> disk = base.Clone();
    disk->WriteFile(path, content);
    World world(*disk, 60);
    EXPECT_EQ(world.Restore().code(), Code::kCorruption) << path;
    ++exchanged;
  }
  EXPECT_EQ(exchanged, 4u);  // Catalog, record, and a manifest of each shard.
}

// The manifests of a store, or of a backup, in place of what they are, and what the backup says of them.
void WriteFormerManifests(SimDisk& disk, const std::string& directory, uint16_t format) {
  std::optional<BackupRecord> record;
  const std::string record_path = directory + MetaPath(kBackupKey);
  if (const Result<std::string> bytes = disk.ReadFile(record_path); bytes.ok())
    record = *DecodeBackupRecord(DecodeMeta(kBackupKey, record_path, *bytes)->value.bytes);
  StoreId id;
  for (uint32_t shard = 0; shard < 2; ++shard) {
    const std::string key = ManifestKey(1, ShardId(shard)), path = directory + MetaPath(key);
    const MetaRecord meta = *DecodeMeta(key, path, *disk.ReadFile(path));
    const Manifest manifest = *DecodeManifest(meta.value.bytes);
    EXPECT_FALSE(manifest.files.empty());
    const std::string former = EncodeFormerManifest(manifest, format);
    disk.WriteFile(path, EncodeMeta(key, meta.store, meta.value.generation, former));
    if (record) record->manifest_hashes[shard] = Hash64(former);
    id = meta.store;
  }
  if (record) disk.WriteFile(record_path, EncodeMeta(kBackupKey, id, 1, EncodeBackupRecord(*record)));
}

// covers: F66
TEST(BackupTest, WhatAFormerVersionWroteIsBackedUpAndItsBackupsAreRestored) {
  for (const uint16_t format : {uint16_t{3}, uint16_t{4}}) {
    SimDisk disk(21);
    MakeClosedStore(disk);
    WriteFormerManifests(disk, "", format);
    {
      World world(disk, 51);
      world.Open();
      const auto report = world.BackUp();
      ASSERT_TRUE(report.ok()) << report.status().ToString();
      ASSERT_TRUE(world.Close().ok());
    }
    const std::unique_ptr<SimDisk> formerly = disk.Clone();
    ExpectRestores(disk, 52);
    WriteFormerManifests(*formerly, "backup/", format);
    ExpectRestores(*formerly, 53);
  }
}

// Of an earlier backup that has rotted nothing is taken, and it is told.
TEST(BackupTest, WhatIsDamagedInAnEarlierBackupIsTakenFromTheStore) {
  for (const FileSharing sharing : {FileSharing::kNever, FileSharing::kWherePossible}) {
    SimDisk disk(22);
    MakeClosedStore(disk);
    World world(disk, 61);
    world.options.sharing = FileSharing::kNever;
    world.Open();
    ASSERT_TRUE(world.BackUp().ok());
    const std::vector<std::string> tables = disk.ListFiles("backup/tables/");
    ASSERT_GT(tables.size(), 1u);
    disk.FlipBit(tables[0], 100, 3);
    Subdirectory later(world.runtime.files(), "later");
    ASSERT_TRUE(world.runtime.RunToEnd(later.Make()).ok());
    world.options.sharing = sharing;
    const auto made = world.runtime.RunToEnd(world.store->Backup(later, &world.backup, world.options));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    ASSERT_EQ(made->base_damages.size(), 1u);
    EXPECT_THAT(made->base_damages[0], testing::HasSubstr(tables[0].substr(std::string("backup/").size())));
    ASSERT_TRUE(world.Close().ok());
    ASSERT_TRUE(world.runtime.RunToEnd(world.restored.Make()).ok());
    const auto restored = world.runtime.RunToEnd(
        RestoreBackup(world.runtime.clock(), 4711, later, world.restored, world.options));
    EXPECT_TRUE(restored.ok()) << restored.status().ToString();
  }
}

TEST(BackupTest, IsNotCompleteWhenATableFileIsDamaged) {
  SimDisk disk(13);
  MakeClosedStore(disk);
  {
    World first(disk, 59);
    first.Open();
    ASSERT_TRUE(first.runtime.RunToEnd(first.store->FlushMemtables()).ok());
    ASSERT_TRUE(first.Close().ok());
  }
  const std::vector<std::string> tables = disk.ListFiles("tables/");
  ASSERT_FALSE(tables.empty());
  for (const std::string& table : tables) disk.FlipBit(table, 100, 3);
  World world(disk, 60);
  world.Open();
  const auto report = world.BackUp();
  EXPECT_EQ(report.code(), Code::kCorruption) << report.status().ToString();
  EXPECT_FALSE(disk.FileExists("backup/meta/backup"));
  EXPECT_EQ(world.Restore().code(), Code::kInvalidArgument);
  ASSERT_TRUE(world.Close().ok());
}

// covers: F68. What says that it is complete is written last, behind all that is verified.
TEST(BackupTest, IsNotCompleteWhenAWriteOfAMetaValueIsLost) {
  for (const std::string file : {"catalog", "backup", "shard-1-0", "shard-1-1"}) {
    SCOPED_TRACE(file);
    SimDisk disk(13);
    MakeClosedStore(disk);
    World world(disk, 59);
    world.Open();
    const size_t fault = world.runtime.AddFault({.effect = SimEffect::kLost,
                                                 .operations = SimOps(SimOp::kWrite),
                                                 .path_prefix = "backup/meta/" + file,
                                                 .count = 1});
    const auto report = world.BackUp();
    EXPECT_EQ(world.runtime.FaultHits(fault), 1u);
    EXPECT_EQ(report.code(), Code::kCorruption) << report.status().ToString();
    EXPECT_TRUE(disk.FileExists("backup/meta/unfinished"));
    EXPECT_EQ(world.Restore().code(), Code::kInvalidArgument);
    ASSERT_TRUE(world.Close().ok());
  }
}

TEST(BackupTest, RefusesToRestoreADamagedBackup) {
  SimDisk base(14);
  MakeClosedStore(base);
  {
    World world(base, 50);
    world.Open();
    ASSERT_TRUE(world.BackUp().ok());
    ASSERT_TRUE(world.Close().ok());
  }
  for (const std::string& file : base.ListFiles("backup/")) {
    if (file == "backup/LOCK") continue;
    std::unique_ptr<SimDisk> disk = base.Clone();
    // What pads a table's blocks is under no seal: its first block is hit.
    const bool table = file.ends_with(".sst");
    disk->FlipBit(file, table ? 100 : disk->ReadFile(file)->size() / 2, 1);
    World world(*disk, 51);
    EXPECT_FALSE(world.Restore().ok()) << file;
    EXPECT_FALSE(world.OpenRestored().ok()) << file;
    std::unique_ptr<SimDisk> lost = base.Clone();
    lost->RemoveFile(file);
    World other(*lost, 52);
    EXPECT_FALSE(other.Restore().ok()) << file;
    EXPECT_FALSE(other.OpenRestored().ok()) << file;
  }
}

// Not only on the day on which it is needed. covers: F50
TEST(BackupTest, WhatIsWrongWithItsRecordIsToldByAScrubAVerifyAndARepair) {
  SimDisk base(21);
  MakeClosedStore(base);
  {
    World world(base, 50);
    world.Open();
    ASSERT_TRUE(world.BackUp().ok());
    ASSERT_TRUE(world.Close().ok());
  }
  const std::string path = "backup/" + MetaPath(kBackupKey);
  const MetaRecord meta = *DecodeMeta(kBackupKey, path, *base.ReadFile(path));
  BackupRecord another = *DecodeBackupRecord(meta.value.bytes);
  ++another.manifest_hashes[1];
  const std::string whole = *base.ReadFile(path);
  const std::string rotten(whole.size(), 'x');
  for (const std::string& bytes :
       {whole, rotten, std::string(), EncodeMeta(kBackupKey, meta.store, 1, EncodeBackupRecord(another))}) {
    SCOPED_TRACE(bytes.size());
    const size_t damages = bytes == whole ? 0 : 1;
    std::unique_ptr<SimDisk> disk = base.Clone();
    disk->WriteFile(path, bytes);
    World world(*disk, 51);
    StoreOptions options = BackedUpStore();
    options.create_if_missing = false;
    options.read_only = true;
    auto reading = world.runtime.RunToEnd(Store::Open(world.backup_world, options));
    ASSERT_TRUE(reading.ok()) << reading.status().ToString();
    const auto scrubbed = world.runtime.RunToEnd((*reading)->Scrub({}));
    ASSERT_TRUE(scrubbed.ok()) << scrubbed.status().ToString();
    EXPECT_EQ(scrubbed->damages.size(), damages);
    EXPECT_EQ(scrubbed->meta_values, 4u);
    const auto verified = world.runtime.RunToEnd((*reading)->Verify(nullptr));
    ASSERT_TRUE(verified.ok()) << verified.status().ToString();
    EXPECT_EQ(verified->damages.size(), damages);
    EXPECT_TRUE(world.runtime.RunToEnd((*reading)->Close()).ok());
    const auto listed =
        world.runtime.RunToEnd(RepairStore({.files = world.backup, .clock = world.runtime.clock()}, {}));
    ASSERT_TRUE(listed.ok()) << listed.status().ToString();
    EXPECT_EQ(listed->damages.size(), damages);
  }
}

TEST(BackupTest, RefusesToRestoreWithAClockBehindTheBackup) {
  SimDisk disk(15);
  MakeClosedStore(disk);
  World world(disk, 50);
  world.Open();
  ASSERT_TRUE(world.BackUp().ok());
  ASSERT_TRUE(world.Close().ok());
  world.runtime.StepWallClock(-int64_t{3600} * 10'000'000);
  const auto restored = world.Restore();
  EXPECT_EQ(restored.code(), Code::kInvalidArgument);
  EXPECT_THAT(restored.status().message(), testing::HasSubstr("F17"));
}

// The disk may be one that other stores want to write to.
TEST(BackupTest, ARestoreThatFailsRemovesWhatItCopiedOrSaysThatItIsLeft) {
  SimDisk disk(22);
  MakeClosedStore(disk);
  {
    World world(disk, 50);
    world.Open();
    ASSERT_TRUE(world.BackUp().ok());
    ASSERT_TRUE(world.Close().ok());
  }
  for (const bool can_remove : {true, false}) {
    World world(disk, 51);
    const size_t full = world.runtime.AddFault({.operations = SimOps(SimOp::kWrite),
                                                .path_prefix = "restored/tables/",
                                                .skip = 1,
                                                .code = Code::kNoSpace});
    if (!can_remove) {
      world.runtime.AddFault({.operations = SimOps(SimOp::kRemove), .path_prefix = "restored/tables/"});
    }
    const auto report = world.Restore();
    EXPECT_EQ(report.code(), Code::kNoSpace) << report.status().ToString();
    EXPECT_GE(world.runtime.FaultHits(full), 1u);
    EXPECT_EQ(report.status().message().find("is left there") == std::string::npos, can_remove);
    std::map<std::string, std::string> left = FilesIn(disk, "restored");
    left.erase("restored/LOCK");
    EXPECT_EQ(left.empty(), can_remove);
  }
  ExpectRestores(disk, 52);
}

TEST(BackupTest, StopsWhenItIsAskedTo) {
  SimDisk disk(16);
  MakeClosedStore(disk);
  World world(disk, 50);
  world.Open();
  ASSERT_TRUE(world.runtime.RunToEnd(world.backup.Make()).ok());
  BackupOptions options;
  int calls = 0;
  options.pace.progress = [&](uint64_t done, uint64_t due) {
    EXPECT_LE(done, due);
    return ++calls < 3;
  };
  EXPECT_EQ(world.runtime.RunToEnd(world.store->Backup(world.backup, nullptr, options)).code(),
            Code::kCancelled);
  EXPECT_FALSE(disk.FileExists("backup/meta/backup"));
  ASSERT_TRUE(world.Close().ok());
}

TEST(BackupTest, KeepsToItsRate) {
  SimDisk disk(17);
  MakeClosedStore(disk);
  World world(disk, 50);
  world.Open();
  ASSERT_TRUE(world.runtime.RunToEnd(world.backup.Make()).ok());
  BackupOptions options;
  options.pace.bytes_per_second = 10'000;
  const uint64_t began = world.runtime.now_ns();
  const auto report = world.runtime.RunToEnd(world.store->Backup(world.backup, nullptr, options));
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  // Copied, then read back.
  EXPECT_GE(world.runtime.now_ns() - began, 2 * report->bytes * 100'000);
  ASSERT_TRUE(world.Close().ok());
}

TEST(BackupRecordTest, ComesBackFromItsBytesAndNothingElseDoes) {
  BackupRecord record{1, 2, 3, 4, 5, {6, 7}};
  const std::string bytes = EncodeBackupRecord(record);
  const auto decoded = DecodeBackupRecord(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(EncodeBackupRecord(*decoded), bytes);
  EXPECT_THAT(decoded->manifest_hashes, testing::ElementsAre(6u, 7u));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeBackupRecord(std::string_view(bytes).substr(0, size)).code(), Code::kCorruption);
  }
  EXPECT_EQ(DecodeBackupRecord(bytes + "x").code(), Code::kCorruption);
  std::string newer = bytes;
  newer[0] = kBackupFormat + 1;
  EXPECT_EQ(DecodeBackupRecord(newer).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace partita

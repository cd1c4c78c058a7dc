#include "engine/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/base/user_key.h"
#include "engine/io/runtime_over.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/subdirectory.h"

// covers: F68 F17 F10. Sharing, and the directories' names: test/api/maintenance_test.cc.

namespace partita {
namespace {

constexpr int kRowsOfABatch = 4;

StoreOptions SmallStore() {
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = 2;
  options.memtable_data_bytes = 8u << 10;
  options.table_file_bytes = 16u << 10;
  options.log_segment_bytes = 256u << 10;
  options.log_tail_bytes = 64u << 10;
  options.lock_wait_ns = 0;
  return options;
}

// A store on a simulated disk, beside "backup" and "restored".
struct World {
  explicit World(SimDisk& disk, uint64_t seed = 1)
      : runtime(
            {.seed = seed, .shards = 2, .wall_ticks_start = 133'800'000'000'000'000 + seed * kTicksPerSecond},
            disk),
        backup(runtime.files(), "backup"),
        restored(runtime.files(), "restored"),
        restored_world(runtime, restored),
        backup_world(runtime, backup) {}

  void Open() {
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store = std::move(opened).value();
  }
  void MakeTable() {
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "rows";
    spec.raw = true;
    spec.split_partitions = {"p1"};
    auto made = runtime.RunToEnd(store->CreateTable(std::move(spec)));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
  }
  Status Close() {
    Status closed = runtime.RunToEnd(store->Close());
    store.reset();
    return closed;
  }
  Result<BackupReport> BackUp() {
    PARTITA_TRY(runtime.RunToEnd(backup.Make()));
    return runtime.RunToEnd(store->Backup(backup, nullptr, BackupOptions()));
  }
  Result<BackupReport> Restore() {
    PARTITA_TRY(runtime.RunToEnd(restored.Make()));
    return runtime.RunToEnd(RestoreBackup(runtime.clock(), 4711, backup, restored, BackupOptions()));
  }
  Result<std::unique_ptr<Store>> OpenRestored() {
    StoreOptions options = SmallStore();
    options.create_if_missing = false;
    return runtime.RunToEnd(Store::Open(restored_world, options));
  }

  SimRuntime runtime;
  Subdirectory backup, restored;
  RuntimeOver restored_world, backup_world;
  std::unique_ptr<Store> store;
};

std::string KeyOf(int partition, int row) {
  return EncodeUserKey(TableId(1), "p" + std::to_string(partition), "r" + std::to_string(row));
}

// Writes batch `number` of a partition: all its rows get the number. Coroutine: by value or living longer.
Task<WriteOutcome> WriteBatch(Store* store, int partition, int number) {
  std::vector<std::string> keys;
  const std::string value = std::to_string(number) + "/" + std::string(150, 'x');
  std::vector<WriteOp> ops(kRowsOfABatch);
  for (int i = 0; i < kRowsOfABatch; ++i) keys.push_back(KeyOf(partition, i));
  for (int i = 0; i < kRowsOfABatch; ++i) {
    ops[i].user_key = keys[i];
    ops[i].content = value;
  }
  WriteRequest request;
  request.table = TableId(1);
  request.ops = ops;
  request.durability = DurabilityLevel::kProcess;
  co_return co_await store->Write(request);
}

struct Writer {
  int acknowledged = 0;
  Version version_max;
};

Task<void> WriteMany(Store* store, int partition, int first, int count, Writer* writer) {
  for (int i = first; i < first + count; ++i) {
    const WriteOutcome outcome = co_await WriteBatch(store, partition, i);
    if (!outcome.status.ok()) co_return;
    writer->acknowledged = i;
    writer->version_max = std::max(writer->version_max, outcome.version);
  }
}

struct RowsOfPartition {
  std::set<int> numbers;  // One, when the batch is whole.
  int rows = 0;
  Version version;
};

RowsOfPartition ReadPartition(World& world, Store& store, int partition) {
  RowsOfPartition out;
  for (int i = 0; i < kRowsOfABatch; ++i) {
    std::string content;
    auto read = world.runtime.RunToEnd(store.Get(KeyOf(partition, i), &content));
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    if (!read.ok() || read->state != Shard::ReadState::kFound) continue;
    ++out.rows;
    out.numbers.insert(std::stoi(content));
    out.version = std::max(out.version, read->version);
  }
  return out;
}

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

TEST(BackupTest, IsReadWithoutBeingRestoredAndNeverWrittenTo) {
  SimDisk disk(3);
  World world(disk);
  world.Open();
  world.MakeTable();
  ASSERT_TRUE(world.runtime.RunToEnd(WriteBatch(world.store.get(), 0, 7)).status.ok());
  ASSERT_TRUE(world.BackUp().ok());
  EXPECT_EQ(world.BackUp().code(), Code::kAlreadyExists);
  ASSERT_TRUE(world.Close().ok());
  StoreOptions options = SmallStore();
  EXPECT_EQ(world.runtime.RunToEnd(Store::Open(world.backup_world, options)).code(), Code::kInvalidArgument);
  options.create_if_missing = false;
  options.read_only = true;
  auto reading = world.runtime.RunToEnd(Store::Open(world.backup_world, options));
  ASSERT_TRUE(reading.ok()) << reading.status().ToString();
  EXPECT_EQ(ReadPartition(world, **reading, 0).rows, kRowsOfABatch);
  EXPECT_TRUE(world.runtime.RunToEnd((*reading)->Close()).ok());
}

// A disk with a closed store in it, of which every number of writes is known.
void MakeClosedStore(SimDisk& disk) {
  World world(disk);
  world.Open();
  world.MakeTable();
  for (int i = 1; i <= 80; ++i) {
    for (int p = 0; p < 2; ++p) {
      ASSERT_TRUE(world.runtime.RunToEnd(WriteBatch(world.store.get(), p, i)).status.ok());
    }
  }
  ASSERT_TRUE(world.Close().ok());
}

void ExpectRestores(SimDisk& disk, uint64_t seed) {
  World world(disk, seed);
  const auto report = world.Restore();
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  auto restored = world.OpenRestored();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  for (int p = 0; p < 2; ++p) EXPECT_EQ(ReadPartition(world, **restored, p).numbers, std::set<int>({80}));
  EXPECT_TRUE(world.runtime.RunToEnd((*restored)->Close()).ok());
}

TEST(BackupTest, ACrashAtAnyOperationLeavesNothingThatIsCalledCompleteOrABackupThatIs) {
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
      world.runtime.CrashAtOperation(point,
                                     point % 2 == 0 ? SimCrashMoment::kAfter : SimCrashMoment::kBefore);
      auto opened = world.runtime.RunToEnd(Store::Open(world.runtime, SmallStore()));
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

TEST(BackupTest, ARestoreThatCrashesAnywhereIsNotServedAndCanBeDoneAgain) {
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

TEST(BackupTest, IsNotCompleteWhenATableFileIsDamaged) {
  SimDisk disk(13);
  MakeClosedStore(disk);
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

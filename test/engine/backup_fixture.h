#pragma once
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/backup.h"
#include "engine/base/user_key.h"
#include "engine/io/runtime_over.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"
#include "test/support/small_store.h"
#include "test/support/subdirectory.h"

// A store on a simulated disk to be backed up and restored beside itself.
namespace partita {

inline constexpr int kRowsOfABatch = 4;

inline StoreOptions BackedUpStore() {
  StoreOptions options = SmallStoreOptions(/*shards=*/2, /*memtable_data_bytes=*/8u << 10);
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
    auto opened = runtime.RunToEnd(Store::Open(runtime, BackedUpStore()));
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
    return runtime.RunToEnd(store->Backup(backup, nullptr, options));
  }
  Result<BackupReport> Restore() {
    PARTITA_TRY(runtime.RunToEnd(restored.Make()));
    return runtime.RunToEnd(RestoreBackup(runtime.clock(), 4711, backup, restored, options));
  }
  Result<std::unique_ptr<Store>> OpenRestored() {
    StoreOptions options = BackedUpStore();
    options.create_if_missing = false;
    return runtime.RunToEnd(Store::Open(restored_world, options));
  }

  SimRuntime runtime;
  BackupOptions options{.sharing = FileSharing::kNever};
  Subdirectory backup, restored;
  RuntimeOver restored_world, backup_world;
  std::unique_ptr<Store> store;
};

inline std::string KeyOf(int partition, int row) {
  return EncodeUserKey(TableId(1), "p" + std::to_string(partition), "r" + std::to_string(row));
}

// Writes batch `number` of a partition: all its rows get the number. Coroutine: by value or living longer.
inline Task<WriteOutcome> WriteBatch(Store* store, int partition, int number,
                                     DurabilityLevel durability = DurabilityLevel::kProcess) {
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
  request.durability = durability;
  co_return co_await store->Write(request);
}

struct Writer {
  int acknowledged = 0;
  Version version_max;
};

inline Task<void> WriteMany(Store* store, int partition, int first, int count, Writer* writer) {
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

inline RowsOfPartition ReadPartition(World& world, Store& store, int partition) {
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

// A disk with a closed store in it, of which every number of writes is known.
inline void MakeClosedStore(SimDisk& disk) {
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

inline void ExpectRestores(SimDisk& disk, uint64_t seed) {
  World world(disk, seed);
  const auto report = world.Restore();
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  auto restored = world.OpenRestored();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  for (int p = 0; p < 2; ++p) EXPECT_EQ(ReadPartition(world, **restored, p).numbers, std::set<int>({80}));
  EXPECT_TRUE(world.runtime.RunToEnd((*restored)->Close()).ok());
}

inline std::map<std::string, std::string> FilesIn(const SimDisk& disk, const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const std::string& path : disk.ListFiles(directory + "/")) files[path] = *disk.ReadFile(path);
  return files;
}

}  // namespace partita

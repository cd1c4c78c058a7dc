#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "test/support/scratch_directory.h"
#include "test/support/small_database.h"

namespace partita {
namespace {

constexpr int kPartitions = 40;

std::string PartitionOf(int index) { return "p" + std::to_string(100 + index); }

Entity NewEntity(int partition, int row) {
  Entity entity(PartitionOf(partition), std::to_string(row));
  entity.Set("Text", std::string(2000, static_cast<char>('a' + row % 26)));
  return entity;
}

// Inserts into all partitions until `done`. Returns how many rows each has.
int WriteUntil(Table& table, const std::function<bool()>& done, std::chrono::seconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  int row = 0;
  for (; !done() && std::chrono::steady_clock::now() < end; ++row) {
    for (int partition = 0; partition < kPartitions; ++partition) {
      const Status written = table.Insert(NewEntity(partition, row)).status;
      EXPECT_TRUE(written.ok()) << written.ToString();
    }
  }
  return row;
}

std::set<uint32_t> OwnersOf(const Database& database) {
  std::set<uint32_t> owners;
  const auto ranges = database.ListRanges("Hot");
  EXPECT_TRUE(ranges.ok());
  for (const RangeDescription& range : *ranges) owners.insert(range.shard);
  return owners;
}

TEST(BalanceTest, AHotTableIsSpreadWhileItIsWrittenTo) {
  ScratchDirectory directory;
  auto database = OpenSmallDatabase(directory.path() + "/store", 2);
  ASSERT_TRUE(database.ok()) << database.status().ToString();
  auto table = (*database)->CreateTable("Hot");
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(OwnersOf(**database).size(), 1u);
  const int rows = WriteUntil(
      *table, [&] { return (*database)->Stats().ranges_moved > 0; }, std::chrono::seconds(120));
  EXPECT_EQ(OwnersOf(**database).size(), 2u);
  const DatabaseStats stats = (*database)->Stats();
  EXPECT_GE(stats.ranges_split, 1u);
  EXPECT_GE(stats.ranges_moved, 1u);
  for (int partition = 0; partition < kPartitions; ++partition) {
    for (int row = 0; row < rows; ++row) {
      const auto found = table->Get(PartitionOf(partition), std::to_string(row));
      ASSERT_TRUE(found.ok()) << partition << " " << row << ": " << found.status().ToString();
    }
  }
  EXPECT_TRUE((*database)->Close().ok());
}

TEST(BalanceTest, NothingMovesWhereItIsNotWanted) {
  ScratchDirectory directory;
  Options options;
  options.directory = directory.path() + "/store";
  options.allow_volatile_storage = true;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = 2;
  options.durability = Durability::kMemory;
  options.io_backend = IoBackend::kThreads;
  options.balance_ranges = false;
  auto database = Database::Open(options);
  ASSERT_TRUE(database.ok());
  auto table = (*database)->CreateTable("Hot");
  ASSERT_TRUE(table.ok());
  WriteUntil(
      *table, [] { return false; }, std::chrono::seconds(3));
  EXPECT_EQ((*database)->ListRanges("Hot")->size(), 1u);
  EXPECT_TRUE((*database)->Close().ok());
}

}  // namespace
}  // namespace partita

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "api/partita.h"
#include "test/support/scratch_directory.h"

// RawTable::ForEach: the rows that Scan gives in pages, shown one by one.

namespace partita {
namespace {

using testing::ElementsAre;

class RawRowsTest : public testing::Test {
 protected:
  static constexpr int kPartitions = 5, kRows = 40;

  void Open() {
    Options options;
    options.directory = directory_.path() + "/store";
    options.allow_volatile_storage = true;
    options.create_if_missing = true;
    options.memory_bytes = 64u << 20;
    options.shards = 2;
    options.io_backend = IoBackend::kThreads;
    Result<std::unique_ptr<Database>> opened = Database::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    database_ = std::move(opened).value();
  }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Open());
    TableOptions cut;
    cut.split_partition_keys = {"p2"};
    table_.emplace(*database_->CreateRawTable("Rows", cut));
    for (int p = 0; p < kPartitions; ++p) {
      for (int r = 0; r < kRows; ++r) {
        // Of many sizes, some beyond a piece of the memory that rows are shown from.
        const std::string value(static_cast<size_t>((p * kRows + r) * 997 % 90'000),
                                static_cast<char>('a' + p));
        ASSERT_TRUE(table_->Put("p" + std::to_string(p), std::to_string(100 + r), value).ok());
      }
    }
  }

  std::vector<std::string> Pages(ScanOptions options) {
    std::vector<std::string> rows;
    do {
      Result<RawPage> page = table_->Scan(options);
      EXPECT_TRUE(page.ok()) << page.status().ToString();
      for (const RawRow& row : page->rows)
        rows.push_back(row.partition_key + "/" + row.row_key + "/" + row.value);
      options.continuation = page->continuation;
    } while (!options.continuation.empty());
    return rows;
  }

  std::vector<std::string> Shown(const ScanOptions& options) {
    std::vector<std::string> rows;
    Result<QueryCost> cost = table_->ForEach(options, [&](const RawRowView& row) {
      rows.push_back(std::string(row.partition_key) + "/" + std::string(row.row_key) + "/" +
                     std::string(row.value));
      return true;
    });
    EXPECT_TRUE(cost.ok()) << cost.status().ToString();
    EXPECT_EQ(cost->returned, rows.size());
    return rows;
  }

  ScratchDirectory directory_;
  std::unique_ptr<Database> database_;
  std::optional<RawTable> table_;
};

TEST_F(RawRowsTest, ShowsWhatPagesGiveInBothOrders) {
  for (const ScanOrder order : {ScanOrder::kAscending, ScanOrder::kDescending}) {
    ScanOptions options;
    options.order = order;
    for (const uint32_t limit : {1u, 7u, 1000u}) {
      options.limit = limit;
      const std::vector<std::string> rows = Shown(options);
      EXPECT_EQ(rows.size(), static_cast<size_t>(kPartitions * kRows));
      EXPECT_EQ(rows, Pages(options));
    }
    options.partition_lower = "p1";
    options.partition_upper = "p3";
    EXPECT_EQ(Shown(options), Pages(options));
  }
}

TEST_F(RawRowsTest, EndsWhereTheVisitorSaysSo) {
  ScanOptions options;
  options.partition = "p3";
  options.row_lower = "110";
  options.limit = 2;
  std::vector<std::string> keys;
  Result<QueryCost> cost = table_->ForEach(options, [&](const RawRowView& row) {
    keys.emplace_back(row.row_key);
    return keys.size() < 3;
  });
  ASSERT_TRUE(cost.ok()) << cost.status().ToString();
  EXPECT_THAT(keys, ElementsAre("110", "111", "112"));
}

TEST_F(RawRowsTest, TheVisitorMayWriteAndBeginAnother) {
  ScanOptions options;
  options.partition = "p0";
  options.limit = 5;
  uint64_t seen = 0;
  Result<QueryCost> cost = table_->ForEach(options, [&](const RawRowView& row) {
    EXPECT_TRUE(table_->Delete(row.partition_key, row.row_key).ok());
    if (seen++ == 0) EXPECT_EQ(Shown({.partition = "p4"}).size(), static_cast<size_t>(kRows));
    return true;
  });
  ASSERT_TRUE(cost.ok()) << cost.status().ToString();
  EXPECT_EQ(seen, static_cast<uint64_t>(kRows));
  EXPECT_TRUE(Shown(options).empty());
}

// Of what is shown from cached blocks nothing changes while the cache is filled with others, the rows are
// overwritten and their files merged away.
TEST_F(RawRowsTest, RowsStayWhileTheyAreShown) {
  ASSERT_TRUE(database_->CompactAll().ok());
  std::optional<RawTable> other = *database_->CreateRawTable("Other");
  const std::string filler(100'000, 'x');
  for (int r = 0; r < 1'000; ++r) ASSERT_TRUE(other->Put("p", std::to_string(1'000 + r), filler).ok());
  ASSERT_TRUE(database_->CompactAll().ok());
  for (const ScanOrder order : {ScanOrder::kAscending, ScanOrder::kDescending}) {
    ScanOptions options;
    options.partition = "p4";
    options.order = order;
    EXPECT_EQ(Shown(options).size(), static_cast<size_t>(kRows));  // The blocks are cached now.
    uint64_t seen = 0;
    Result<QueryCost> cost = table_->ForEach(options, [&](const RawRowView& row) {
      const std::string before(row.value);
      if (seen++ % 10 == 0) {
        EXPECT_TRUE(table_->Put("p4", row.row_key, before).ok());
        EXPECT_TRUE(database_->CompactAll().ok());
        EXPECT_TRUE(other->ForEach({}, [](const RawRowView& one) { return one.value[0] == 'x'; }).ok());
      }
      EXPECT_EQ(row.value, before);
      EXPECT_EQ(row.value.find_first_not_of('e'), row.value.npos);
      return true;
    });
    ASSERT_TRUE(cost.ok()) << cost.status().ToString();
    EXPECT_EQ(seen, static_cast<uint64_t>(kRows));
  }
}

TEST_F(RawRowsTest, CachedRowsAreShownWhereTheyLie) {
  ASSERT_TRUE(database_->CompactAll().ok());
  EXPECT_EQ(Shown({}).size(), static_cast<size_t>(kPartitions * kRows));  // They are cached now.
  std::map<std::string, int, std::less<>> in_place;                       // Two shards have them.
  Result<QueryCost> cost = table_->ForEach({}, [&](const RawRowView& row) {
    ScanOptions same;
    same.partition = std::string(row.partition_key);
    same.row_lower = std::string(row.row_key);
    const auto compare = [&](const RawRowView& again) {
      in_place[std::string(row.partition_key)] += again.value.data() == row.value.data();
      return false;
    };
    EXPECT_TRUE(table_->ForEach(same, compare).ok());
    return true;
  });
  ASSERT_TRUE(cost.ok()) << cost.status().ToString();
  for (int p = 0; p < kPartitions; ++p) EXPECT_GT(in_place["p" + std::to_string(p)], kRows / 2) << p;
}

TEST_F(RawRowsTest, WhatWasCachedIsStillCachedAfterAMerge) {
  TableOptions unflushed;
  unflushed.durability = Durability::kProcess;
  std::optional<RawTable> even = *database_->CreateRawTable("Even", unflushed);
  constexpr int kCount = 10'000;
  const auto key = [](int row) { return std::to_string(100'000 + row); };
  for (int row = 0; row < kCount; ++row) {
    std::mt19937_64 random(static_cast<uint64_t>(row));
    std::string value(1'000, '\0');  // Cannot be compressed.
    for (char& c : value) c = static_cast<char>(random());
    ASSERT_TRUE(even->Put("p", key(row), value).ok());
  }
  ASSERT_TRUE(database_->CompactAll().ok());
  even.reset();
  table_.reset();
  ASSERT_TRUE(database_->Close().ok());
  ASSERT_NO_FATAL_FAILURE(Open());  // With nothing in memory.
  even = *database_->OpenRawTable("Even");
  const auto misses_of_reading = [&] {
    const uint64_t before = database_->Stats().cache_misses;
    std::string value;
    for (int row = 0; row < kCount; ++row) EXPECT_TRUE(even->Get("p", key(row), &value).ok()) << row;
    return database_->Stats().cache_misses - before;
  };
  const auto rewritten = [&] {
    uint64_t sum = 0;
    for (const ShardStats& shard : database_->Stats().shards) sum += shard.bytes_read_compaction;
    return sum;
  };
  const uint64_t cold = misses_of_reading();
  EXPECT_GT(cold, 500u);
  EXPECT_EQ(misses_of_reading(), 0u);
  for (int round = 0; round < 10; ++round) {  // As many as make level 0 so deep that it is merged.
    for (int row = 0; row < kCount; row += 20) ASSERT_TRUE(even->Put("p", key(row), "changed").ok());
    ASSERT_TRUE(database_->CompactAll().ok());
  }
  EXPECT_GT(rewritten(), kCount * 500u);
  EXPECT_LT(misses_of_reading(), cold / 10);  // The few blocks that the new rows lie in.
}

TEST_F(RawRowsTest, SaysWhyItCannot) {
  const auto visit = [](const RawRowView&) { return true; };
  EXPECT_EQ(table_->ForEach({.skip_damage = true}, visit).code(), Code::kInvalidArgument);
  EXPECT_EQ(table_->ForEach({.continuation = "nonsense"}, visit).code(), Code::kInvalidArgument);
  ASSERT_TRUE(database_->DeleteTable("Rows").ok());
  EXPECT_EQ(table_->ForEach({}, visit).code(), Code::kNotFound);
}

}  // namespace
}  // namespace partita

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/partita.h"
#include "test/support/scratch_directory.h"
#include "test/support/small_database.h"

namespace partita {
namespace {

// With 1 a second allowed, who wrote these owes 98 s.
std::vector<Write> HundredWrites(const std::string& partition) {
  std::vector<Write> writes;
  for (int i = 0; i < 100; ++i) {
    writes.push_back({WriteAction::kInsertOrReplace, Entity(partition, std::to_string(1'000 + i)), ""});
  }
  return writes;
}

class ThroughputTest : public testing::Test {
 protected:
  ThroughputTest()
      : database_(std::move(OpenSmallDatabase(directory_.path() + "/store", 2)).value()),
        table_(database_->CreateTable("Orders").value()) {}
  void Limit(const ThroughputTargets& targets) { ASSERT_TRUE(database_->SetThroughputTargets(targets).ok()); }
  void Fill(const std::string& partition, int rows) {
    for (int i = 0; i < rows; ++i) {
      ASSERT_TRUE(table_.Insert(Entity(partition, std::to_string(1'000 + i)).Set("n", i)).ok());
    }
  }

  ScratchDirectory directory_;
  std::unique_ptr<Database> database_;
  Table table_;
};

TEST_F(ThroughputTest, EveryKindOfCallAnswersThrottledWithTheWait) {
  Fill("p", 200);
  Limit({.partition_rate = 1});
  const std::vector<Write> batch = HundredWrites("p");
  ASSERT_TRUE(table_.Transact(batch).ok());  // It owes 98 s.
  const auto is_throttled = [](const Status& status) {
    EXPECT_EQ(status.code(), Code::kThrottled) << status.ToString();
    EXPECT_GT(status.retry_after_us(), 90'000'000u);
    EXPECT_EQ(status.detail(), static_cast<uint16_t>(ThrottledBy::kPartition));
  };
  is_throttled(table_.Insert(Entity("p", "new")).status);
  is_throttled(table_.Delete("p", "1001").status);
  is_throttled(table_.Transact(batch).status);
  is_throttled(table_.WriteMany(batch)[0].status);
  is_throttled(table_.Get("p", "1001").status());
  is_throttled(table_.Get("p", "missing").status());
  const Table::Key key{"p", "1001"};
  is_throttled(table_.GetMany({&key, 1})[0].status());
  is_throttled(table_.Query({.filter = "PartitionKey eq 'p'"}).status());
  is_throttled(table_.Query({.filter = "PartitionKey eq 'p' and RowKey eq '1001'"}).status());
  is_throttled(table_.Query({.filter = "PartitionKey eq 'p'", .order = ScanOrder::kDescending}).status());
  is_throttled(table_.Count({.partition = "p"}).status());
  EXPECT_TRUE(table_.Insert(Entity("other", "new")).ok());
  EXPECT_GE(database_->Stats().throttled_by_partition, 8u);
  Limit(ThroughputTargets::Off());
  EXPECT_TRUE(table_.Get("p", "1001").ok());
  EXPECT_EQ(table_.Get("p", "new").code(), Code::kNotFound);
}

TEST_F(ThroughputTest, AnIntervalInFrontOfAllPartitionsIsEmpty) {
  Fill("p", 10);
  Limit({.partition_rate = 1'000});
  const Result<Page> page = table_.Query({.filter = "PartitionKey lt ''"});
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  EXPECT_TRUE(page->entities.empty());
  for (const ScanOrder order : {ScanOrder::kAscending, ScanOrder::kDescending}) {
    const Result<Page> scanned = table_.Scan({.partition_upper = "", .order = order});
    ASSERT_TRUE(scanned.ok()) << scanned.status().ToString();
    EXPECT_TRUE(scanned->entities.empty());
  }
  EXPECT_EQ(table_.Count({.partition_upper = ""}).value(), 0u);
}

TEST_F(ThroughputTest, ADescendingPageIsRefusedByNoPartitionThatItDoesNotComeTo) {
  Fill("a", 10);
  Fill("m", 200);
  Limit({.partition_rate = 1});
  ASSERT_TRUE(table_.Transact(HundredWrites("m")).ok());  // It owes 98 s.
  const auto descending = [&](const std::string& filter) {
    return table_.Query({.filter = filter, .order = ScanOrder::kDescending, .limit = 1});
  };
  EXPECT_TRUE(descending("PartitionKey lt 'm'").ok())
      << descending("PartitionKey lt 'm'").status().ToString();
  EXPECT_EQ(descending("PartitionKey le 'm'").code(), Code::kThrottled);
  EXPECT_EQ(descending("PartitionKey eq 'm' and RowKey lt '1050'").code(), Code::kThrottled);
}

// Though its bounds name no partition: before anything is read, also where nothing would be found.
TEST_F(ThroughputTest, AScanIsRefusedForItsAccountAndItsTableAlone) {
  Fill("m", 200);
  Table behind = database_->CreateTable("Behind").value();
  ASSERT_TRUE(behind.Insert(Entity("", "row")).ok());
  Limit({.partition_rate = 1});
  ASSERT_TRUE(behind.Transact(HundredWrites("")).ok());  // Its first partition owes 98 s.
  const QueryOptions all{.order = ScanOrder::kDescending, .limit = 1};
  EXPECT_TRUE(table_.Query(all).ok()) << table_.Query(all).status().ToString();
  Limit({.account_rate = 1});
  ASSERT_TRUE(table_.Transact(HundredWrites("m")).ok());  // The account owes 98 s.
  Table empty = database_->CreateTable("Nothing").value();
  EXPECT_EQ(empty.Query({}).code(), Code::kThrottled);
  EXPECT_EQ(empty.Query(all).code(), Code::kThrottled);
}

TEST_F(ThroughputTest, PagesThatEndEarlyTogetherGiveEverythingOnce) {
  Fill("p", 300);
  QueryOptions options{.filter = "n ge 100"};
  std::vector<std::string> rows;
  Limit({.partition_rate = 50});
  int throttled = 0;
  while (true) {
    Result<Page> page = table_.Query(options);
    if (page.code() == Code::kThrottled) {
      ++throttled;
      Limit(ThroughputTargets::Off());
      continue;
    }
    ASSERT_TRUE(page.ok()) << page.status().ToString();
    for (const Entity& entity : page->entities) rows.push_back(entity.row_key());
    if (page->continuation.empty()) break;
    options.continuation = page->continuation;
  }
  EXPECT_EQ(throttled, 1);
  ASSERT_EQ(rows.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(rows[static_cast<size_t>(i)], std::to_string(1'100 + i));
}

TEST_F(ThroughputTest, BadTargetsAreRefusedAtOpenAndLater) {
  EXPECT_EQ(database_->SetThroughputTargets({.account_rate = 1'000'000'000}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(database_->throughput_targets().IsOff());
  Options options;
  options.directory = directory_.path() + "/other";
  options.throughput.rules.emplace_back();
  Result<std::unique_ptr<Database>> opened = Database::Open(options);
  EXPECT_EQ(opened.code(), Code::kInvalidArgument);
  EXPECT_NE(opened.status().message().find("throughput rule 1"), std::string::npos);
}

}  // namespace
}  // namespace partita

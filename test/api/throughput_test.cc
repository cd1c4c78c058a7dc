#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
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

  // Makes calls of which one has to wait, as it is refused at first. Where they take longer than kRefill by
  // themselves none may be: what they lack flows in meanwhile.
  static constexpr std::chrono::milliseconds kRefill{200};
  template <typename Calls>
  auto Waiting(const Calls& calls) {
    const auto refused = [this] {
      const DatabaseStats stats = database_->Stats();
      return stats.throttled_by_partition + stats.throttled_by_account;
    };
    const uint64_t before = refused();
    const auto started = std::chrono::steady_clock::now();
    auto result = calls();
    const bool was_slow = std::chrono::steady_clock::now() - started >= kRefill;
    EXPECT_TRUE(was_slow || refused() > before) << "nothing had to be waited for";
    return result;
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

// Calls that go through pages by themselves. A full bucket of 400 a second gives 800 entities, and a slice
// more: for those behind it has to be waited. Each call has a partition of its own, so none pays for another.
TEST_F(ThroughputTest, WhatGoesThroughPagesByItselfWaitsForTheNextOne) {
  for (const char* partition : {"counted", "summed", "walked"}) Fill(partition, 960);
  Limit({.partition_rate = 400});
  const Result<uint64_t> counted = Waiting([&] { return table_.Count({.partition = "counted"}); });
  ASSERT_TRUE(counted.ok()) << counted.status().ToString();
  EXPECT_EQ(*counted, 960u);
  const Result<AggregateAnswer> summed = Waiting([&] {
    return table_.Aggregate({{AggregateKind::kSum, "n"}}, {.filter = "PartitionKey eq 'summed' and n ge 10"});
  });
  ASSERT_TRUE(summed.ok()) << summed.status().ToString();
  EXPECT_EQ(summed->count, 950u);
  EXPECT_EQ(*summed->values[0].value->if_int64(), 959 * 960 / 2 - 9 * 10 / 2);
  int next = 1'000;
  const auto in_order = [&next](const Entity& entity) { return entity.row_key() == std::to_string(next++); };
  const Result<QueryCost> walked =
      Waiting([&] { return table_.ForEach({.filter = "PartitionKey eq 'walked'"}, in_order); });
  ASSERT_TRUE(walked.ok()) << walked.status().ToString();
  EXPECT_EQ(walked->returned, 960u);
  EXPECT_EQ(next, 1'960);
}

TEST_F(ThroughputTest, AWalkThroughRawRowsWaitsForTheNextPage) {
  const RawTable raw = database_->CreateRawTable("Raw").value();
  for (int i = 0; i < 960; ++i) ASSERT_TRUE(raw.Put("p", std::to_string(1'000 + i), "v").ok());
  Limit({.partition_rate = 400});
  int next = 1'000;
  const auto in_order = [&next](const RawRowView& row) { return row.row_key == std::to_string(next++); };
  const Result<QueryCost> walked = Waiting([&] { return raw.ForEach({}, in_order); });
  ASSERT_TRUE(walked.ok()) << walked.status().ToString();
  EXPECT_EQ(walked->returned, 960u);
  EXPECT_EQ(next, 1'960);
}

// Each shard has a share of the count. Where only one of them gets on at first the others wait for it; where
// none does the call is refused.
TEST_F(ThroughputTest, ACountOnSeveralShardsIsRefusedOrWaitsAsAWhole) {
  const Table split = database_->CreateTable("Split", {.split_partition_keys = {"m"}}).value();
  for (int i = 0; i < 260; ++i) {
    ASSERT_TRUE(split.Insert(Entity(i % 2 == 0 ? "a" : "z", std::to_string(1'000 + i))).ok());
  }
  const std::vector<RangeDescription> ranges = database_->ListRanges("Split").value();
  ASSERT_EQ(ranges.size(), 2u);
  ASSERT_NE(ranges[0].shard, ranges[1].shard);
  Limit({.account_rate = 200});
  const Result<uint64_t> counted = Waiting([&] {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(table_.Transact(HundredWrites("p")).ok());  // 100 are left.
    return split.Count({});
  });
  ASSERT_TRUE(counted.ok()) << counted.status().ToString();
  EXPECT_EQ(*counted, 260u);
  Limit({.account_rate = 1});
  (void)table_.Transact(HundredWrites("p"));  // The account owes.
  EXPECT_EQ(split.Count({}).code(), Code::kThrottled);
}

// With 1 a second the first slice leaves a debt of a minute.
TEST_F(ThroughputTest, WhoWaitsForAPageLooksAtTheTimeLimitAndAtCancelled) {
  for (const char* partition : {"1", "2", "3", "4"}) Fill(partition, 200);
  Limit({.partition_rate = 1});
  const auto all = [](const Entity&) { return true; };
  QueryOptions options{.time_limit = std::chrono::milliseconds(50)};
  const auto started = std::chrono::steady_clock::now();
  options.filter = "PartitionKey eq '1'";
  EXPECT_EQ(table_.ForEach(options, all).code(), Code::kDeadlineExceeded);
  options.filter = "PartitionKey eq '2'";
  EXPECT_EQ(table_.Aggregate({}, options).code(), Code::kDeadlineExceeded);

  options.time_limit = {};
  for (const bool walks : {true, false}) {
    std::atomic<bool> cancelled = false;
    options.cancelled = &cancelled;
    options.filter = walks ? "PartitionKey eq '3'" : "PartitionKey eq '4'";
    const uint64_t refused_before = database_->Stats().throttled_by_partition;
    std::atomic<bool> ended = false;
    std::thread canceller([&] {  // Once it waits.
      while (database_->Stats().throttled_by_partition == refused_before && !ended) std::this_thread::yield();
      cancelled.store(true);
    });
    EXPECT_EQ(walks ? table_.ForEach(options, all).code() : table_.Aggregate({}, options).code(),
              Code::kCancelled);
    ended.store(true);
    canceller.join();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
}

TEST_F(ThroughputTest, BadTargetsAreRefusedAtOpenAndLater) {
  EXPECT_EQ(database_->SetThroughputTargets({.account_rate = 1'000'000'000}).code(), Code::kInvalidArgument);
  // They would be in force nowhere.
  for (const ThroughputRule& rule : {ThroughputRule{.account = "Contoso", .partition_rate = 1},
                                     ThroughputRule{.table = "Ord-ers", .partition_rate = 1}}) {
    const Status refused = database_->SetThroughputTargets({.rules = {{.account_rate = 5}, rule}});
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_NE(refused.message().find("throughput rule 2"), std::string::npos) << refused.ToString();
  }
  EXPECT_TRUE(database_->throughput_targets().IsOff());
  Options options;
  options.directory = directory_.path() + "/other";
  options.throughput.rules.emplace_back();
  Result<std::unique_ptr<Database>> opened = Database::Open(options);
  EXPECT_EQ(opened.code(), Code::kInvalidArgument);
  EXPECT_NE(opened.status().message().find("throughput rule 1"), std::string::npos);
  options.throughput.rules = {{.table = "no name", .partition_rate = 1}};
  EXPECT_EQ(Database::Open(options).code(), Code::kInvalidArgument);
  // A table that is not there yet is limited when it is made.
  EXPECT_TRUE(database_->SetThroughputTargets({.rules = {{.table = "Later", .partition_rate = 1}}}).ok());
}

}  // namespace
}  // namespace partita

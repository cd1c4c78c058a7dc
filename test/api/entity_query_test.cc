#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "api/continuation.h"
#include "api/partita.h"
#include "engine/base/user_key.h"
#include "test/support/filter_reference.h"
#include "test/support/random_filter.h"
#include "test/support/scratch_directory.h"

// Queries by the public header: Table::Query, ForEach, Explain. Execution itself: query_test.cc.
// covers: F14, F78.

namespace partita {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EntityQueryTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void TearDown() override { EXPECT_TRUE(database_->Close().ok()); }

  void Open() {
    Options options;
    options.directory = directory_.path() + "/store";
    options.allow_volatile_storage = true;  // Wherever the tests run.
    options.create_if_missing = true;
    options.memory_bytes = 64u << 20;
    options.shards = 2;
    options.durability = Durability::kProcess;
    options.io_backend = IoBackend::kThreads;
    Result<std::unique_ptr<Database>> opened = Database::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    database_ = std::move(opened).value();
  }
  Table Make(std::vector<std::string> splits = {}) {
    TableOptions options;
    options.split_partition_keys = std::move(splits);
    return database_->CreateTable("Things", options).value();
  }
  static void Put(const Table& table, const std::string& partition, int rows) {
    std::vector<Write> writes;
    for (int i = 0; i < rows; ++i) {
      writes.push_back({.action = WriteAction::kInsert, .entity = Entity(partition, Row(i))});
      writes.back().entity.Set("N", i).Set("Text", "number " + std::to_string(i)).Set("Odd", i % 2 == 1);
    }
    for (const WriteResult& written : table.WriteMany(writes)) ASSERT_TRUE(written.ok());
  }
  static std::string Row(int i) {
    const std::string digits = std::to_string(i);
    return std::string(4 - digits.size(), '0') + digits;
  }
  static std::vector<std::string> RowsOf(const std::vector<Entity>& entities) {
    std::vector<std::string> rows;
    for (const Entity& entity : entities) rows.push_back(entity.row_key());
    return rows;
  }
  // All pages, with a hold on how many.
  static std::vector<Entity> AllPages(const Table& table, QueryOptions options) {
    std::vector<Entity> all;
    for (int pages = 0; pages < 10'000; ++pages) {
      Result<Page> page = table.Query(options);
      EXPECT_TRUE(page.ok()) << page.status().ToString();
      if (!page.ok()) break;
      EXPECT_LE(page->entities.size(), options.limit);
      EXPECT_EQ(page->cost.returned, page->entities.size());
      for (Entity& entity : page->entities) all.push_back(std::move(entity));
      options.continuation = page->continuation;
      if (options.continuation.empty()) return all;
    }
    ADD_FAILURE() << "the pages do not end";
    return all;
  }

  ScratchDirectory directory_;
  std::unique_ptr<Database> database_;
};

TEST_F(EntityQueryTest, GivesWhatMatchesTextAndPartsInTheOrderOfKeys) {
  const Table table = Make();
  Put(table, "p", 20);
  Result<Page> page = table.Query({.filter = "PartitionKey eq 'p' and N ge 15",
                                   .where = Filter::Comparison("Odd", ComparisonOp::kEqual, true)});
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(RowsOf(page->entities), ElementsAre("0015", "0017", "0019"));
  EXPECT_EQ(page->continuation, "");
  EXPECT_EQ(page->entities[0].GetString("Text")->substr(0), "number 15");
  EXPECT_EQ(page->entities[0].etag(), table.Get("p", "0015")->etag());
}

TEST_F(EntityQueryTest, AConstantFromElsewhereNeedsNoQuoting) {
  const Table table = Make();
  const std::string hostile = "x' or PartitionKey ne 'x";
  ASSERT_TRUE(table.Insert(Entity(hostile, "mine")).ok());
  ASSERT_TRUE(table.Insert(Entity("other", "not mine")).ok());
  QueryOptions options;
  options.where = Filter::Comparison("PartitionKey", ComparisonOp::kEqual, hostile);
  EXPECT_THAT(RowsOf(table.Query(options)->entities), ElementsAre("mine"));
}

TEST_F(EntityQueryTest, GivesOnlyTheSelectedPropertiesInTheOrderOfTheInsert) {
  const Table table = Make();
  Put(table, "p", 1);
  Result<Page> page = table.Query({.select = {"Odd", "N", "no such name", "N"}});
  ASSERT_EQ(page->entities.size(), 1u);
  const Entity& entity = page->entities[0];
  ASSERT_EQ(entity.property_count(), 2u);
  EXPECT_EQ(entity.properties()[0].name, "N");
  EXPECT_EQ(entity.properties()[1].name, "Odd");
  EXPECT_EQ(entity.row_key(), "0000");
  EXPECT_GT(entity.timestamp_ticks(), 0u);
}

TEST_F(EntityQueryTest, BackwardGivesTheTailOfALogFirst) {
  const Table table = Make();
  Put(table, "log", 300);
  Put(table, "zone", 3);
  Result<Page> page = table.Query(
      {.filter = "PartitionKey eq 'log' and Odd eq true", .order = ScanOrder::kDescending, .top = 3});
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(RowsOf(page->entities), ElementsAre("0299", "0297", "0295"));
  EXPECT_LE(page->cost.scanned, 10u);
  EXPECT_NE(page->continuation, "");
}

TEST_F(EntityQueryTest, BackwardGoesThroughSeveralIntervalsAndShards) {
  const Table table = Make({"m"});
  Put(table, "a", 10);
  Put(table, "p", 10);
  QueryOptions options;
  options.filter =
      "(PartitionKey eq 'a' and (RowKey eq '0003' or RowKey ge '0008')) or (PartitionKey eq 'p' and RowKey "
      "lt '0002')";
  options.order = ScanOrder::kDescending;
  options.limit = 1;
  EXPECT_THAT(RowsOf(AllPages(table, options)), ElementsAre("0001", "0000", "0009", "0008", "0003"));
}

TEST_F(EntityQueryTest, PagesSurviveReopeningAndCompaction) {
  Put(Make(), "p", 100);
  for (const ScanOrder order : {ScanOrder::kAscending, ScanOrder::kDescending}) {
    QueryOptions options;
    options.filter = "Odd eq true";
    options.limit = 20;
    options.order = order;
    Page first = database_->OpenTable("Things")->Query(options).value();
    ASSERT_TRUE(database_->CompactAll().ok());
    ASSERT_TRUE(database_->Close().ok());
    Open();
    options.continuation = first.continuation;
    std::vector<Entity> all = std::move(first.entities);
    for (Entity& entity : AllPages(*database_->OpenTable("Things"), options))
      all.push_back(std::move(entity));
    std::vector<std::string> rows = RowsOf(all);
    if (order == ScanOrder::kDescending) std::reverse(rows.begin(), rows.end());
    ASSERT_EQ(rows.size(), 50u);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
    EXPECT_EQ(std::unique(rows.begin(), rows.end()), rows.end());
  }
}

TEST_F(EntityQueryTest, AContinuationOfAnotherOrderTableOrHandIsRefused) {
  const Table table = Make();
  Put(table, "p", 10);
  const Table other = database_->CreateTable("Others").value();
  QueryOptions options;
  options.limit = 3;
  options.continuation = table.Query(options)->continuation;
  ASSERT_NE(options.continuation, "");
  EXPECT_TRUE(table.Query(options).ok());
  EXPECT_EQ(other.Query(options).code(), Code::kInvalidArgument);
  ScanOptions scan;
  scan.continuation = options.continuation;
  EXPECT_EQ(RowsOf(table.Scan(scan)->entities).front(), "0003");
  options.order = ScanOrder::kDescending;
  EXPECT_EQ(table.Query(options).code(), Code::kInvalidArgument);
  options.continuation = "made up";
  EXPECT_EQ(table.Query(options).code(), Code::kInvalidArgument);
}

TEST_F(EntityQueryTest, AForgedContinuationStaysInItsTable) {
  const Table table = Make();
  Put(table, "p", 3);
  ASSERT_TRUE(database_->CreateTable("Others")->Insert(Entity("a", "foreign")).ok());
  QueryOptions options;
  options.limit = 1;
  const Continuation real = DecodeContinuation(table.Query(options)->continuation).value();
  for (const std::string& key :
       {std::string(), std::string("\0\0\0\0", 4), TableUpperBound(real.table), TableLowerBound(real.table),
        TableLowerBound(real.table) + "\xFF\xFF", TableLowerBound(real.table) + std::string("\0\0\0", 3)}) {
    options.continuation = EncodeContinuation({Direction::kForward, real.table, key});
    options.limit = 100;
    Result<Page> page = table.Query(options);
    if (!page.ok()) {
      EXPECT_EQ(page.code(), Code::kInvalidArgument);
      continue;
    }
    for (const Entity& entity : page->entities) EXPECT_EQ(entity.partition_key(), "p");
  }
}

TEST_F(EntityQueryTest, ForEachGoesOverPagesUntilTopOrTheVisitorHasEnough) {
  const Table table = Make();
  Put(table, "p", 250);
  QueryOptions options;
  options.limit = 40;
  std::vector<std::string> rows;
  auto take = [&rows](Entity entity) {
    rows.push_back(entity.row_key());
    return true;
  };
  Result<QueryCost> cost = table.ForEach(options, take);
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(rows.size(), 250u);
  EXPECT_EQ(cost->returned, 250u);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));

  rows.clear();
  options.top = 90;
  EXPECT_EQ(table.ForEach(options, take)->returned, 90u);
  EXPECT_EQ(rows.size(), 90u);

  int seen = 0;
  ASSERT_TRUE(table.ForEach(options, [&seen](Entity) { return ++seen < 50; }).ok());
  EXPECT_EQ(seen, 50);
}

TEST_F(EntityQueryTest, TopZeroGivesNothing) {
  const Table table = Make();
  Put(table, "p", 3);
  Result<Page> page = table.Query({.top = 0});
  EXPECT_THAT(page->entities, IsEmpty());
  EXPECT_EQ(page->continuation, "");
}

TEST_F(EntityQueryTest, CancelledCallsSayThatTheyAre) {
  const Table table = Make();
  Put(table, "p", 10);
  std::atomic<bool> cancelled{true};
  QueryOptions options;
  options.cancelled = &cancelled;
  EXPECT_EQ(table.Query(options).code(), Code::kCancelled);
  EXPECT_EQ(table.ForEach(options, [](Entity) { return true; }).code(), Code::kCancelled);
  EXPECT_EQ(table.Aggregate({{}}, options).code(), Code::kCancelled);
}

TEST_F(EntityQueryTest, CallsCancelledInTheMiddleStopAndSayThatTheyAre) {
  const Table table = Make();
  Put(table, "p", 2000);
  std::atomic<bool> cancelled{false};
  QueryOptions options;
  options.cancelled = &cancelled;
  options.limit = 100;
  uint64_t seen = 0;
  const auto take_ten = [&](const Entity&) {
    cancelled = ++seen >= 10;
    return true;
  };
  EXPECT_EQ(table.ForEach(options, take_ten).code(), Code::kCancelled);
  EXPECT_EQ(seen, 10u);

  // The last page, too, though nothing is read any more.
  options.limit = 2000;
  seen = 0;
  cancelled = false;
  EXPECT_EQ(table.ForEach(options, take_ten).code(), Code::kCancelled);
  EXPECT_EQ(seen, 10u);
}

TEST_F(EntityQueryTest, VisitsThatTakeLongEndWithTheTimeLimitThoughTheirPageIsRead) {
  const Table table = Make();
  Put(table, "p", 200);
  QueryOptions options;
  options.time_limit = std::chrono::milliseconds(100);
  const auto started = std::chrono::steady_clock::now();
  uint64_t seen = 0;
  const auto take_all_the_time = [&](const Entity&) {
    while (std::chrono::steady_clock::now() - started < options.time_limit) {
    }
    ++seen;
    return true;
  };
  const Result<QueryCost> cost = table.ForEach(options, take_all_the_time);
  EXPECT_EQ(cost.code(), Code::kDeadlineExceeded);
  EXPECT_GE(seen, 1u);
  EXPECT_LE(seen, 64u);
  EXPECT_THAT(cost.status().message(), HasSubstr(std::to_string(seen) + " entities were given"));
}

TEST_F(EntityQueryTest, OutOfTimeAPageGoesOnAndTheRestSaysSo) {
  const Table table = Make();
  Put(table, "p", 1000);
  QueryOptions options;
  options.filter = "N eq 999";
  options.time_limit = std::chrono::nanoseconds(1);
  const std::vector<Entity> found = AllPages(table, options);
  EXPECT_THAT(RowsOf(found), ElementsAre("0999"));
  EXPECT_EQ(table.ForEach(options, [](Entity) { return true; }).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(table.Aggregate({{}}, options).code(), Code::kDeadlineExceeded);
}

// As `deadline - now` is once the deadline has passed; an hour too many for the type, too.
TEST_F(EntityQueryTest, ATimeLimitThatIsUsedUpIsNoLackOfOne) {
  const Table table = Make();
  Put(table, "p", 10);
  for (const auto used_up : {std::chrono::nanoseconds(-1), std::chrono::nanoseconds::min()}) {
    const QueryOptions options{.time_limit = used_up};
    uint64_t seen = 0;
    EXPECT_EQ(table.Query(options).code(), Code::kDeadlineExceeded);
    EXPECT_EQ(table.ForEach(options, [&](Entity) { return ++seen > 0; }).code(), Code::kDeadlineExceeded);
    EXPECT_EQ(table.Aggregate({{}}, options).code(), Code::kDeadlineExceeded);
    Code told = Code::kOk;
    table.QueryAsync(options, [&](const Result<Page>& page) { told = page.code(); });
    EXPECT_EQ(told, Code::kDeadlineExceeded);
    EXPECT_EQ(seen, 0u);
  }
  EXPECT_EQ(AllPages(table, {.time_limit = std::chrono::nanoseconds(0)}).size(), 10u);
}

TEST_F(EntityQueryTest, ABrokenFilterOrLimitIsToldWithPlaceAndRule) {
  const Table table = Make();
  const Status syntax = table.Query({.filter = "N eq 5 and and"}).status();
  EXPECT_EQ(syntax.code(), Code::kInvalidArgument);
  EXPECT_THAT(syntax.message(), HasSubstr("filter: "));
  EXPECT_THAT(syntax.message(), HasSubstr("14"));
  EXPECT_THAT(table.Query({.filter = "N eq null"}).status().message(),
              HasSubstr(" at position 5 in 'N eq null'"));
  EXPECT_EQ(table.Explain({.filter = "substringof('a', Text)"}).code(), Code::kUnsupported);
  EXPECT_EQ(table.Query({.limit = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(table.Query({.limit = 100'001}).code(), Code::kInvalidArgument);
}

// U+E000 is EE 80 80 in UTF-8 and F5 80 80 as it is stored: no text, so nobody may find it by that.
TEST_F(EntityQueryTest, BytesThatAreNoTextAreNoBoundAndNoConstant) {
  const Table table = Make();
  const std::string key = "\xEE\x80\x80";
  const std::string stored = "\xF5\x80\x80";
  ASSERT_TRUE(table.Insert(Entity(key, key)).ok());
  const auto code_of = [&](const ScanOptions& options) {
    const Code code = table.Scan(options).code();
    EXPECT_EQ(table.Count(options).code(), code);
    return code;
  };
  EXPECT_EQ(code_of({.partition = key, .row_lower = key}), Code::kOk);
  EXPECT_EQ(code_of({.partition_lower = key, .partition_upper = "\xF4\x8F\xBF\xBF"}), Code::kOk);
  EXPECT_EQ(code_of({.partition = stored}), Code::kInvalidArgument);
  EXPECT_EQ(code_of({.partition = "a/b"}), Code::kInvalidArgument);
  EXPECT_EQ(code_of({.partition = key, .row_lower = stored}), Code::kInvalidArgument);
  EXPECT_EQ(code_of({.partition = key, .row_upper = stored}), Code::kInvalidArgument);
  EXPECT_EQ(code_of({.partition_lower = stored}), Code::kInvalidArgument);
  EXPECT_EQ(code_of({.partition_upper = stored}), Code::kInvalidArgument);
  EXPECT_THAT(table.Scan({.partition_upper = "a\xFF"}).status().message(),
              testing::AllOf(HasSubstr("partition_upper"), HasSubstr("UTF-8 at byte 1")));

  for (const char* property : {"PartitionKey", "Text"}) {
    QueryOptions options;
    options.where = Filter::Not(Filter::Comparison(property, ComparisonOp::kEqual, stored));
    const Status refused = table.Query(options).status();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.message(),
                testing::AllOf(HasSubstr("where"), HasSubstr(property), HasSubstr("UTF-8")));
    EXPECT_EQ(table.Aggregate({{}}, options).code(), Code::kInvalidArgument);
    EXPECT_EQ(table.Explain(options).code(), Code::kInvalidArgument);
  }
}

TEST_F(EntityQueryTest, ADeletedTableIsNotFound) {
  const Table table = Make();
  Put(table, "p", 3);
  ASSERT_TRUE(database_->DeleteTable("Things").ok());
  EXPECT_EQ(table.Query({}).code(), Code::kNotFound);
  EXPECT_EQ(table.Aggregate({{}}).code(), Code::kNotFound);
}

TEST_F(EntityQueryTest, ExplainTakesAnOpenEndOfTimeAsQueryDoes) {
  Table table = database_->CreateTable("openend").value();
  QueryOptions options;
  options.where = Filter::Comparison("due", ComparisonOp::kLess, DateTime{UINT64_MAX});
  EXPECT_TRUE(table.Query(options).ok());
  const Result<Explanation> explained = table.Explain(options);
  ASSERT_TRUE(explained.ok()) << explained.status().ToString();
  EXPECT_EQ(explained->residual, "due lt datetime'9999-12-31T23:59:59.9999999Z'");
}

TEST_F(EntityQueryTest, ExplainTellsKindBoundsResidualAndZoneMaps) {
  const Table table = Make();
  const Explanation plan =
      table.Explain({.filter = "PartitionKey eq 'a' and RowKey ge 'b' and Total gt 100.0"}).value();
  EXPECT_EQ(plan.kind, "row-range");
  EXPECT_THAT(plan.bounds, ElementsAre("PartitionKey eq 'a' and RowKey ge 'b'"));
  EXPECT_EQ(plan.residual, "Total gt 100.0");
  EXPECT_THAT(plan.zone_maps, ElementsAre("Total"));
  EXPECT_EQ(table.Explain({.filter = "PartitionKey eq 'a' and PartitionKey eq 'b'"})->kind, "empty");
  EXPECT_EQ(table.Explain({})->kind, "table-scan");
}

TEST_F(EntityQueryTest, TheCostCountsWhatWasReadAndWhatZoneMapsSpared) {
  const Table table = Make();
  std::vector<Write> writes;
  for (int i = 0; i < 3000; ++i) {
    writes.push_back({.action = WriteAction::kInsert, .entity = Entity("p", Row(i))});
    writes.back().entity.Set("N", i).Set("Filler", std::string(200, 'x'));
  }
  for (const WriteResult& written : table.WriteMany(writes)) ASSERT_TRUE(written.ok());
  ASSERT_TRUE(database_->CompactAll().ok());
  Result<Page> page = table.Query({.filter = "PartitionKey eq 'p' and N ge 2990"});
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->cost.returned, 10u);
  EXPECT_GT(page->cost.blocks.blocks_read, 0u);
  EXPECT_GT(page->cost.blocks.blocks_skipped, page->cost.blocks.blocks_read);
  EXPECT_LT(page->cost.scanned, 1000u);
  EXPECT_GT(page->cost.density(), 0.0);
}

// The whole way: text, plan, bounds, residual, projection, pages, either direction.
TEST_F(EntityQueryTest, PagesJoinedAreWhatAReferenceGives) {
  FilterDice dice(20261120);
  const Table table = Make({"ab", "c"});
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(table.InsertOrReplace(dice.RandomEntity()).ok());
  std::vector<Entity> entities = AllPages(table, {});
  const auto key = [](const Entity& e) {
    return std::pair(ReferenceUtf16(e.partition_key()), ReferenceUtf16(e.row_key()));
  };
  ASSERT_TRUE(std::is_sorted(entities.begin(), entities.end(),
                             [&key](const Entity& a, const Entity& b) { return key(a) < key(b); }));
  for (int round = 0; round < 300; ++round) {
    QueryOptions options;
    const Filter filter = dice.RandomFilter(1 + dice.Below(6), /*key_percent=*/50);
    if (dice.Chance(50)) {
      options.filter = filter.ToString();
    } else {
      options.where = filter;
    }
    std::vector<Entity> expected;
    std::copy_if(entities.begin(), entities.end(), std::back_inserter(expected),
                 [&filter](const Entity& entity) { return ReferenceMatches(filter, entity); });
    const AggregateAnswer counted = table.Aggregate({}, options).value();
    EXPECT_EQ(counted.count, expected.size()) << filter.ToString();
    if (dice.Chance(50)) {
      options.order = ScanOrder::kDescending;
      std::reverse(expected.begin(), expected.end());
    }
    options.limit = static_cast<uint32_t>(1 + dice.Below(30));
    ASSERT_EQ(AllPages(table, options), expected)
        << filter.ToString() << (options.order == ScanOrder::kDescending ? ", backward" : "");
  }
}

}  // namespace
}  // namespace partita

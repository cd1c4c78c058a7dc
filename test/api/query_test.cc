#include "api/query.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "api/query_token.h"
#include "engine/base/task_group.h"
#include "test/support/filter_reference.h"
#include "test/support/random_filter.h"
#include "test/support/scratch_directory.h"
#include "test/support/small_database.h"

// covers: F14 for queries, and pages as spec 11.7 has them.

namespace partita {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Key = std::pair<std::string, std::string>;

struct Collected {
  std::vector<Key> keys;
  std::vector<int32_t> numbers;  // Of property N, where it is.
};

class Collector : public QueryRowSink {
 public:
  explicit Collector(Collected* out, size_t enough = SIZE_MAX) : out_(out), enough_(enough) {}
  bool Add(const QueryRow& row) override {
    out_->keys.emplace_back(Utf8FromOrdered(row.partition_key), Utf8FromOrdered(row.row_key));
    EntityRecordView record(row.content);
    EXPECT_TRUE(record.Check().ok());
    if (auto number = record.Find("N")) out_->numbers.push_back(*number->ToValue().if_int32());
    if (cancel_ != nullptr) cancel_->store(true);
    return out_->keys.size() < enough_;
  }
  void CancelAtFirstRow(std::atomic<bool>* cancel) { cancel_ = cancel; }

 private:
  Collected* out_;
  size_t enough_;
  std::atomic<bool>* cancel_ = nullptr;
};

class QueryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenSmallDatabase(directory_.path() + "/store", 2);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    database_ = std::move(opened).value();
    MakeTable("Things", {});
  }
  void TearDown() override {
    table_.reset();
    async_table_.reset();
    EXPECT_TRUE(database_->Close().ok());
  }

  void MakeTable(const std::string& name, std::vector<std::string> splits) {
    TableOptions options;
    options.split_partition_keys = std::move(splits);
    Result<Table> made = database_->CreateTable(name, options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    table_ = *made;
    AsyncDatabase async(*database_);
    async_table_ = *async.FindTable(Options().account, name);
  }

  void Put(std::string partition, std::string row, int32_t n) {
    Entity entity(std::move(partition), std::move(row));
    entity.Set("N", n);
    ASSERT_TRUE(table_->InsertOrReplace(entity).ok());
  }
  static std::string Row(int i) {
    std::string digits = std::to_string(i);
    return std::string(5 - digits.size(), '0') + digits;
  }
  void PutMany(int count, int every) {
    std::vector<Write> writes;
    for (int i = 0; i < count; ++i) {
      writes.push_back({.action = WriteAction::kInsert, .entity = Entity("p", Row(i))});
      writes.back().entity.Set("N", i % every);
    }
    for (const WriteResult& written : table_->WriteMany(writes)) ASSERT_TRUE(written.ok());
  }

  // Whatever the content.
  void PutContent(const std::string& row, const std::string& content) {
    const std::string key = EncodeUserKey(async_table_->id(), "p", row);
    WriteOp op;
    op.kind = WriteKind::kPut;
    op.user_key = key;
    op.content = content;
    WriteRequest request;
    request.table = async_table_->id();
    request.ops = std::span<const WriteOp>(&op, 1);
    request.durability = DurabilityLevel::kMemory;
    Runtime& runtime = AsyncDatabase(*database_).runtime();
    const Status put = runtime.RunToEnd(async_table_->store().Write(request)).status;
    ASSERT_TRUE(put.ok()) << put.ToString();
  }

  Result<QueryPage> Run(const Query& query, QueryRowSink* sink) {
    return AsyncDatabase(*database_).runtime().RunToEnd(RunQuery(*async_table_, query, sink));
  }
  QueryPage RunOk(const Query& query, Collected* rows) {
    Collector sink(rows);
    Result<QueryPage> page = Run(query, &sink);
    EXPECT_TRUE(page.ok()) << page.status().ToString();
    return page.ok() ? *page : QueryPage();
  }

  ScratchDirectory directory_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
  std::optional<AsyncTable> async_table_;
};

Query QueryOf(std::string_view filter) {
  Result<Filter> parsed = ParseFilter(filter);
  EXPECT_TRUE(parsed.ok()) << filter;
  Query query;
  query.filter = *parsed;
  return query;
}

TEST_F(QueryTest, TheContinuationNamesTheNextRowThatMatches) {
  for (int i = 0; i < 4; ++i) Put("p", Row(i), i % 2);
  Query query = QueryOf("PartitionKey eq 'p' and N eq 0");
  query.top = 1;
  Collected rows;
  QueryPage page = RunOk(query, &rows);
  EXPECT_EQ(page.rows, 1u);
  ASSERT_TRUE(page.next.has_value());
  EXPECT_EQ(*page.next, (QueryPosition{"p", Row(2)}));
  query.from = page.next;
  page = RunOk(query, &rows);
  EXPECT_FALSE(page.next.has_value());
  EXPECT_THAT(rows.keys, ElementsAre(Key("p", Row(0)), Key("p", Row(2))));
}

// As a plain read of it does. covers: F42 F66 F77
TEST_F(QueryTest, AContentThatIsNoRecordEndsEachQueryThatLooksIntoIt) {
  std::string newer = EncodeEntityRecord(std::vector<Property>{{"N", 1}});
  newer[0] = 2;
  const std::string cut = {1, 3}, counter = {44, 1};
  const std::pair<std::string, Code> contents[] = {
      {cut, Code::kCorruption}, {counter, Code::kUnsupported}, {newer, Code::kUnsupported}};
  PutMany(100, 7);
  for (const auto& [content, code] : contents) {
    PutContent("00050", content);
    for (const bool flushed : {false, true}) {
      if (flushed) ASSERT_TRUE(database_->Flush().ok());
      for (const char* filter : {"N eq 5", "not (N eq 5)", "not (M eq 5)", "RowKey gt '00010' and N eq 5",
                                 "PartitionKey eq 'p' and RowKey eq '00050' and N eq 1"}) {
        const Result<Page> page = table_->Query({.filter = filter});
        EXPECT_EQ(page.code(), code) << filter;
        EXPECT_NE(page.status().message().find("'00050'"), std::string::npos) << page.status().message();
        const Result<AggregateAnswer> count =
            table_->Aggregate({{AggregateKind::kCount, ""}}, {.filter = filter});
        EXPECT_EQ(count.code(), code) << filter;
      }
      for (const AggregateKind kind : {AggregateKind::kSum, AggregateKind::kMin, AggregateKind::kCount}) {
        for (const char* filter : {"", "RowKey gt '00010'"}) {
          const Result<AggregateAnswer> answer = table_->Aggregate({{kind, "N"}}, {.filter = filter});
          EXPECT_EQ(answer.code(), code) << filter;
          EXPECT_NE(answer.status().message().find("'00050'"), std::string::npos)
              << answer.status().message();
        }
      }
      // What does not look into it does not mind.
      EXPECT_EQ(table_->Count(ScanOptions()).value(), 100u);
    }
  }
}

TEST_F(QueryTest, TopZeroIsAnEmptyPageAndTheEnd) {
  Put("p", "r", 1);
  Query query;
  query.top = 0;
  Collected rows;
  const QueryPage page = RunOk(query, &rows);
  EXPECT_EQ(page.rows, 0u);
  EXPECT_EQ(page.scanned, 0u);
  EXPECT_FALSE(page.next.has_value());
}

TEST_F(QueryTest, AnEmptyTableHasOneEmptyPage) {
  Collected rows;
  EXPECT_FALSE(RunOk(Query(), &rows).next.has_value());
  EXPECT_THAT(rows.keys, IsEmpty());
}

TEST_F(QueryTest, APageHoldsAThousandRowsAndThatManyNeedNoSecondPage) {
  PutMany(1000, 7);
  Collected rows;
  EXPECT_FALSE(RunOk(Query(), &rows).next.has_value());
  EXPECT_EQ(rows.keys.size(), 1000u);
  Put("p", "99999", 1);
  const QueryPage page = RunOk(Query(), &rows);
  EXPECT_EQ(page.rows, 1000u);
  EXPECT_EQ(page.next, (QueryPosition{"p", "99999"}));
}

TEST_F(QueryTest, ScannedCountsWhatWasLookedAtNotWhatWasGiven) {
  PutMany(1000, 200);
  Collected rows;
  const QueryPage page = RunOk(QueryOf("PartitionKey eq 'p' and N eq 3"), &rows);
  EXPECT_EQ(page.rows, 5u);
  EXPECT_EQ(page.scanned, 1000u);
}

TEST_F(QueryTest, LookingAheadIsBounded) {
  PutMany(3000, 3000);
  Query query = QueryOf("N eq 0");
  query.top = 1;
  query.limits.look_ahead_rows = 100;
  Collected rows;
  QueryPage page = RunOk(query, &rows);
  EXPECT_EQ(page.rows, 1u);
  EXPECT_LE(page.scanned, 102u);
  ASSERT_TRUE(page.next.has_value());
  query.from = page.next;
  page = RunOk(query, &rows);
  EXPECT_EQ(page.rows, 0u);
  EXPECT_FALSE(page.next.has_value());
}

TEST_F(QueryTest, KeysJoinedByOrAreReadAsPoints) {
  PutMany(100, 7);
  ASSERT_TRUE(database_->Flush().ok());
  Collected rows;
  const QueryPage page = RunOk(
      QueryOf("PartitionKey eq 'p' and (RowKey eq '00050' or RowKey eq '00007' or RowKey eq 'none')"), &rows);
  EXPECT_THAT(rows.keys, ElementsAre(Key("p", "00007"), Key("p", "00050")));
  EXPECT_EQ(page.scanned, 3u);
  EXPECT_FALSE(page.next.has_value());
}

TEST_F(QueryTest, AContradictionReadsNothing) {
  Put("p", "r", 1);
  Collected rows;
  EXPECT_EQ(RunOk(QueryOf("PartitionKey eq 'p' and PartitionKey eq 'q'"), &rows).scanned, 0u);
  EXPECT_EQ(RunOk(QueryOf("N eq 1 and false"), &rows).scanned, 0u);
  EXPECT_THAT(rows.keys, IsEmpty());
}

TEST_F(QueryTest, BytesEndAPageAndOneRowIsAlwaysGiven) {
  PutMany(10, 7);
  Query query;
  query.limits.bytes = 1;
  Collected rows;
  const QueryPage page = RunOk(query, &rows);
  EXPECT_EQ(page.rows, 1u);
  EXPECT_GT(page.bytes, 1u);
  EXPECT_EQ(page.next, (QueryPosition{"p", Row(1)}));
}

TEST_F(QueryTest, ASinkThatHasEnoughEndsThePageBehindItsRow) {
  PutMany(10, 7);
  Collected rows;
  Collector sink(&rows, /*enough=*/3);
  Result<QueryPage> page = Run(Query(), &sink);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->rows, 3u);
  EXPECT_EQ(page->next, (QueryPosition{"p", Row(3)}));
}

TEST_F(QueryTest, PagesOutOfTimeGoOnAndLoseNothing) {
  PutMany(1000, 5);
  Query query = QueryOf("N eq 0");
  query.limits.nanos = 0;
  query.limits.look_ahead_nanos = 0;
  Collected rows;
  int pages = 0;
  do {
    const QueryPage page = RunOk(query, &rows);
    EXPECT_LE(page.scanned, 64u);
    query.from = page.next;
    ASSERT_LE(++pages, 1000);
  } while (query.from);
  EXPECT_EQ(rows.keys.size(), 200u);
  EXPECT_EQ(std::set<Key>(rows.keys.begin(), rows.keys.end()).size(), 200u);
  EXPECT_GT(pages, 10);
}

TEST_F(QueryTest, ACancelledQueryStops) {
  PutMany(2000, 5);
  std::atomic<bool> cancelled{false};
  Query query;
  query.cancelled = &cancelled;
  Collected rows;
  Collector sink(&rows);
  sink.CancelAtFirstRow(&cancelled);
  EXPECT_EQ(Run(query, &sink).code(), Code::kCancelled);
  EXPECT_LE(rows.keys.size(), 64u);
  EXPECT_EQ(Run(query, &sink).code(), Code::kCancelled);
}

TEST_F(QueryTest, ADroppedTableIsNotFound) {
  Put("p", "r", 1);
  ASSERT_TRUE(database_->DeleteTable("Things").ok());
  Collected rows;
  Collector sink(&rows);
  EXPECT_EQ(Run(Query(), &sink).code(), Code::kNotFound);
}

TEST_F(QueryTest, TheKeyRangeOfATokenCutsSilently) {
  for (const char* partition : {"a", "b", "c"}) {
    for (int i = 0; i < 3; ++i) Put(partition, Row(i), i);
  }
  Query query;
  query.range.start = KeyRange::End{"a", Row(2)};
  query.range.end = KeyRange::End{"c", Row(0)};
  Collected rows;
  RunOk(query, &rows);
  EXPECT_THAT(rows.keys, ElementsAre(Key("a", Row(2)), Key("b", Row(0)), Key("b", Row(1)), Key("b", Row(2)),
                                     Key("c", Row(0))));
}

// ---- Against the oracle, over pages.

// Some rows stay throughout; others come and go between the pages.
class PagedQueries : public QueryTest {
 protected:
  void Fill(FilterDice* dice) {
    for (int i = 0; i < 60; ++i) {
      const Entity entity = dice->RandomEntity();
      const Key key(entity.partition_key(), entity.row_key());
      const WriteResult written = table_->InsertOrReplace(entity);
      ASSERT_TRUE(written.ok()) << written.status.ToString();
      Entity stored = entity;
      stored.set_timestamp_ticks(written.timestamp_ticks);
      rows_[key] = stored;
      if (i == 30 && dice->Chance(30)) ASSERT_TRUE(database_->Flush().ok());
    }
    for (const auto& [key, entity] : rows_) {
      if (dice->Chance(30)) volatile_.insert(key);
    }
  }

  void Disturb(FilterDice* dice) {
    for (const Key& key : volatile_) {
      if (dice->Chance(70)) continue;
      if (dice->Chance(50)) {
        WriteResult ignored = table_->Delete(key.first, key.second);
      } else {
        EXPECT_TRUE(table_->InsertOrReplace(Entity(key.first, key.second)).ok());
      }
    }
  }

  // What all pages give, joined.
  void ExpectPagesGiveTheMatches(Query query, FilterDice* dice, bool disturb) {
    Collected found;
    for (int pages = 0;; ++pages) {
      ASSERT_LT(pages, 500);
      query.top = 1 + dice->Below(5);
      query.limits.look_ahead_rows = dice->Chance(50) ? 1000 : 1;
      const size_t before = found.keys.size();
      const QueryPage page = RunOk(query, &found);
      ASSERT_EQ(found.keys.size() - before, page.rows);
      ASSERT_LE(page.rows, *query.top);
      if (!page.next) break;
      // As the client carries it.
      query.from =
          *DecodePosition(EncodeKeyToken(page.next->partition_key), EncodeKeyToken(page.next->row_key));
      ASSERT_EQ(query.from, page.next);
      if (disturb) Disturb(dice);
    }
    const auto in_order = [](const Key& a, const Key& b) {
      return std::pair(ReferenceUtf16(a.first), ReferenceUtf16(a.second)) <
             std::pair(ReferenceUtf16(b.first), ReferenceUtf16(b.second));
    };
    for (size_t i = 1; i < found.keys.size(); ++i) ASSERT_TRUE(in_order(found.keys[i - 1], found.keys[i]));
    const std::set<Key> given(found.keys.begin(), found.keys.end());
    for (const auto& [key, entity] : rows_) {
      if (disturb && volatile_.count(key) != 0) continue;
      const bool expected =
          ReferenceMatches(query.filter, entity) && query.range.Contains(key.first, key.second);
      ASSERT_EQ(given.count(key), expected ? 1u : 0u)
          << query.filter.ToString() << " at (" << key.first << ", " << key.second << ")";
    }
    if (!disturb) ASSERT_LE(given.size(), rows_.size());
  }

  std::map<Key, Entity> rows_;
  std::set<Key> volatile_;
};

TEST_F(PagedQueries, PagesJoinedAreTheMatchesWhileOtherRowsComeAndGo) {
  FilterDice dice(5);
  for (int round = 0; round < 12; ++round) {
    rows_.clear();
    volatile_.clear();
    MakeTable("Round" + std::to_string(round),
              round % 2 == 0 ? std::vector<std::string>{} : std::vector<std::string>{"aa", "b", "c"});
    Fill(&dice);
    if (HasFatalFailure()) return;
    for (int k = 0; k < 60; ++k) {
      Query query;
      query.filter = dice.RandomFilter(1 + dice.Below(5), 60);
      if (dice.Chance(30)) query.range.start = KeyRange::End{dice.Key(), dice.Key()};
      if (dice.Chance(30)) query.range.end = KeyRange::End{dice.Key(), std::nullopt};
      ExpectPagesGiveTheMatches(std::move(query), &dice, /*disturb=*/k >= 30);
      if (HasFatalFailure()) return;
    }
  }
}

// ---- Under real concurrency.

TEST_F(QueryTest, SeveralPointsOfAPartitionAreOnePointInTime) {
  for (const char* row : {"a", "b"}) Put("p", row, 0);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int32_t n = 1; !stop.load(); ++n) {
      std::vector<Write> writes;
      for (const char* row : {"a", "b"}) {
        writes.push_back({.action = WriteAction::kReplace, .entity = Entity("p", row)});
        writes.back().entity.Set("N", n);
      }
      EXPECT_TRUE(table_->Transact(writes).ok());
    }
  });
  const Query query = QueryOf("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'b')");
  for (int i = 0; i < 2000; ++i) {
    Collected rows;
    RunOk(query, &rows);
    EXPECT_EQ(rows.numbers.size(), 2u);
    if (rows.numbers.size() == 2) EXPECT_EQ(rows.numbers[0], rows.numbers[1]);
    if (HasFailure()) break;
  }
  stop.store(true);
  writer.join();
}

Task<void> CountOnWorker(const AsyncTable* table, const Query* query, uint64_t* rows) {
  Query rest = *query;
  do {
    Collected collected;
    Collector sink(&collected);
    Result<QueryPage> page = co_await RunQuery(*table, rest, &sink);
    EXPECT_TRUE(page.ok());
    if (!page.ok()) co_return;
    *rows += page->rows;
    rest.from = page->next;
  } while (rest.from);
}

Task<bool> RunOnWorkers(Store* store, const AsyncTable* table, const Query* query,
                        std::vector<uint64_t>* rows) {
  TaskGroup group;
  for (uint64_t& count : *rows) {
    group.Spawn(store->ExecutorFor(TableLowerBound(table->id())), CountOnWorker(table, query, &count));
  }
  co_await group.Join();
  co_return true;
}

TEST_F(QueryTest, QueriesShareAWorker) {
  PutMany(5000, 5);
  ASSERT_TRUE(database_->Flush().ok());
  const Query query = QueryOf("N eq 0");
  std::vector<uint64_t> rows(8);
  AsyncDatabase async(*database_);
  async.runtime().RunToEnd(RunOnWorkers(&async.store(), &*async_table_, &query, &rows));
  EXPECT_THAT(rows, testing::Each(1000u));
}

}  // namespace
}  // namespace partita

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "api/query.h"
#include "api/query_token.h"
#include "test/support/random_filter.h"
#include "test/support/scratch_directory.h"
#include "test/support/small_database.h"

// Queries with zone maps beside the same queries without them: the rows are the same, whatever was written
// over what, and fewer blocks are read.

namespace partita {
namespace {

using Row = std::tuple<std::string, std::string, uint64_t>;  // Keys and version.

constexpr uint64_t kTicksFirst = 638'000'000'000'000'000;
constexpr int kRowsOfPartition = 700;

class ZoneMapQueryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenSmallDatabase(directory_.path() + "/store", 2);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    database_ = std::move(opened).value();
    TableOptions split;
    split.split_partition_keys = {"m"};
    Result<Table> made = database_->CreateTable("Days", split);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    table_ = *made;
    async_table_ = *AsyncDatabase(*database_).FindTable(Options().account, "Days");
  }
  void TearDown() override {
    table_.reset();
    async_table_.reset();
    EXPECT_TRUE(database_->Close().ok());
  }

  // Keys whose fences end within characters, too.
  static std::string RowKey(int i) {
    const std::string digits = std::to_string(10'000 + i);
    return i % 3 == 0 ? "\xE5\xAD\x97" + digits + "\xEE\x80\x80" : "\xC3\xA9" + digits;
  }
  static const std::vector<std::string>& Partitions() {
    static const std::vector<std::string> kPartitions = {"a", "b\xF0\x9F\x98\x80", "z\xEF\xBD\x9E"};
    return kPartitions;
  }

  // A day that grows with the key; some rows have none, another one, or a number for it.
  Entity RandomDay(const std::string& partition, int i) {
    Entity entity(partition, RowKey(i));
    const uint64_t ticks = kTicksFirst + static_cast<uint64_t>(i) * 1000 + dice_.Below(1500);
    if (dice_.Chance(98)) entity.Set("Day", DateTime{ticks});
    if (dice_.Below(1000) == 0) entity.Set("Day", DateTime{kTicksFirst + dice_.Below(700'000)});
    if (dice_.Below(1000) == 0) entity.Set("Day", static_cast<int64_t>(i));
    if (dice_.Chance(80)) entity.Set("N", dice_.Chance(95) ? PropertyValue(i / 10) : dice_.Value());
    entity.Set("Name", "name-" + std::to_string(i / 50));
    entity.Set("Text", std::string(300, 'x'));
    return entity;
  }
  void WriteRows(size_t percent, bool deletes) {
    std::vector<Write> writes;
    for (const std::string& partition : Partitions()) {
      for (int i = 0; i < kRowsOfPartition; ++i) {
        if (!dice_.Chance(percent)) continue;
        const bool remove = deletes && dice_.Chance(20);
        writes.push_back({.action = remove ? WriteAction::kDelete : WriteAction::kInsertOrReplace,
                          .entity = remove ? Entity(partition, RowKey(i)) : RandomDay(partition, i)});
      }
    }
    for (const WriteResult& written : table_->WriteMany(writes)) {
      ASSERT_TRUE(written.ok() || written.status.code() == Code::kNotFound) << written.status.ToString();
    }
  }

  Filter RandomCondition() {
    const auto op = static_cast<ComparisonOp>(dice_.Below(6));
    const uint64_t ticks = kTicksFirst + dice_.Below(800'000);
    switch (dice_.Below(9)) {
      case 0:
        return Filter::Comparison(
            "N", op, dice_.Chance(80) ? PropertyValue(static_cast<int32_t>(dice_.Below(70))) : dice_.Value());
      case 1:
        return Filter::Comparison("Name", op, "name-" + std::to_string(dice_.Below(20)));
      case 2:
        return dice_.Chance(20)
                   ? Filter::Comparison("Timestamp", op, DateTime{ticks})
                   : Filter::Comparison("RowKey", op, RowKey(static_cast<int>(dice_.Below(700))));
      default:
        return Filter::And(
            Filter::Comparison("Day", ComparisonOp::kGreaterOrEqual, DateTime{ticks}),
            Filter::Comparison("Day", ComparisonOp::kLess, DateTime{ticks + dice_.Below(40'000)}));
    }
  }
  Filter RandomFilter() {
    Filter filter = RandomCondition();
    for (size_t more = dice_.Below(3); more > 0; --more) {
      Filter other = RandomCondition();
      filter = dice_.Chance(70) ? Filter::And(std::move(filter), std::move(other))
                                : Filter::Or(std::move(filter), std::move(other));
      if (dice_.Chance(10)) filter = Filter::Not(std::move(filter));
    }
    if (dice_.Chance(30)) filter = Lengthened(std::move(filter));
    return filter;
  }
  // `condition` or'ed with many that nothing meets: zone maps take long to ask it.
  static Filter Lengthened(Filter condition) {
    for (int i = 0; i < 300; ++i) {
      condition = Filter::Or(std::move(condition), Filter::Comparison("N", ComparisonOp::kEqual, -100 - i));
    }
    return condition;
  }

  struct Pages {
    std::vector<Row> rows;
    BlockCounts blocks;
    int count = 0;
  };
  Pages RunAll(Query query) {
    class Sink : public QueryRowSink {
     public:
      explicit Sink(std::vector<Row>* rows) : rows_(rows) {}
      bool Add(const QueryRow& row) override {
        rows_->emplace_back(Utf8FromOrdered(row.partition_key), Utf8FromOrdered(row.row_key),
                            row.version.value);
        return true;
      }

     private:
      std::vector<Row>* rows_;
    };
    Pages pages;
    while (true) {
      Sink sink(&pages.rows);
      Result<QueryPage> page =
          AsyncDatabase(*database_).runtime().RunToEnd(RunQuery(*async_table_, query, &sink));
      EXPECT_TRUE(page.ok()) << page.status().ToString();
      if (!page.ok()) return pages;
      pages.blocks += page->blocks;
      ++pages.count;
      if (!page->next || pages.count > 5000) break;
      // As the client carries it.
      query.from =
          *DecodePosition(EncodeKeyToken(page->next->partition_key), EncodeKeyToken(page->next->row_key));
    }
    EXPECT_LE(pages.count, 5000);
    return pages;
  }

  ScratchDirectory directory_;
  FilterDice dice_{77};
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
  std::optional<AsyncTable> async_table_;
};

TEST_F(ZoneMapQueryTest, TheRowsAreTheSameWithZoneMapsAndWithout) {
  uint64_t read = 0, read_without = 0, skipped = 0;
  for (int round = 0; round < 5; ++round) {
    WriteRows(round == 0 ? 100 : 15, /*deletes=*/round > 0);
    if (HasFatalFailure()) return;
    const Status settled = round % 3 == 1 ? database_->CompactAll() : database_->Flush();
    ASSERT_TRUE(settled.ok()) << settled.ToString();
    if (round == 4) WriteRows(10, /*deletes=*/true);  // Stays in memory.
    for (int k = 0; k < 25; ++k) {
      Query query;
      query.filter = RandomFilter();
      query.direction = dice_.Chance(50) ? Direction::kForward : Direction::kBackward;
      if (dice_.Chance(50)) query.top = 20 + dice_.Below(300);
      query.use_zone_maps = false;
      const Pages without = RunAll(query);
      query.use_zone_maps = true;
      if (dice_.Chance(30)) query.limits.nanos = 1;  // A page ends as soon as it may.
      const Pages with = RunAll(query);
      ASSERT_EQ(with.rows, without.rows) << query.filter.ToString();
      ASSERT_EQ(without.blocks.blocks_skipped, 0u);
      if (query.limits.nanos == 1) continue;  // Blocks are read again by each page.
      read += with.blocks.blocks_read;
      read_without += without.blocks.blocks_read;
      skipped += with.blocks.blocks_skipped;
    }
  }
  EXPECT_GT(skipped, 500u);
  EXPECT_LT(4 * read, 3 * read_without);
}

TEST_F(ZoneMapQueryTest, APageMayEndWithinALongStretchThatIsPassedOverAndTheNextGoesOnThere) {
  WriteRows(100, /*deletes=*/false);
  ASSERT_TRUE(database_->CompactAll().ok());
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    Query query;
    query.filter = Lengthened(Filter::Comparison("N", ComparisonOp::kEqual, 5000));
    query.direction = direction;
    const Pages whole = RunAll(query);
    EXPECT_EQ(whole.count, 1);
    query.limits.nanos = 1;
    const Pages pages = RunAll(query);
    EXPECT_EQ(pages.rows, whole.rows);
    EXPECT_GE(pages.count, 3);
    // None began again at the front: that would be quadratic.
    EXPECT_LE(pages.blocks.blocks_skipped, 3 * whole.blocks.blocks_skipped);
  }
}

}  // namespace
}  // namespace partita

#include "api/cli/stats_report.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace partita {
namespace {

using ::testing::ElementsAre;

TEST(StatsReportTest, FailuresAreListedOfShardsThatHaveAny) {
  DatabaseStats stats;
  stats.shards.resize(2);
  ShardStats& failing = stats.shards[1];
  failing.shard = 1;
  failing.fences = 2;
  failing.stalls = 3;
  failing.flushes_failed = 4;
  failing.compactions_failed = 5;
  failing.saves_failed = 6;
  failing.references_set_aside = 7;
  failing.compaction_error = "EIO";
  const Report report = DescribeStats(stats, "store");
  const auto failures = std::find_if(report.tables.begin(), report.tables.end(),
                                     [](const ReportTable& table) { return table.name == "failures"; });
  ASSERT_NE(failures, report.tables.end());
  const std::vector<ReportValue> row = {uint64_t{1}, uint64_t{2},     uint64_t{3},
                                        uint64_t{4}, uint64_t{5},     uint64_t{6},
                                        uint64_t{7}, std::string(""), std::string("EIO")};
  EXPECT_THAT(failures->rows, ElementsAre(row));
  EXPECT_EQ(failures->columns.size(), row.size());
}

}  // namespace
}  // namespace partita

#include "api/cli/metrics_text.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

namespace partita {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ServerMetrics SomeMetrics() {
  http::ServiceCounters counters;
  counters.CountRequest(http::RequestKind::kGetEntity, 200, 3, 10, 20);
  counters.CountRequest(http::RequestKind::kGetEntity, 404, 100'000'000, 10, 20);
  ServerMetrics metrics{.service = counters.Sum(), .accepting = true, .version = "1.2.3"};
  metrics.http.connections_open = 7;
  metrics.heap = {.used_bytes = 123, .held_bytes = 456};
  metrics.database.shards.resize(2);
  metrics.database.shards[1].shard = 1;
  metrics.database.shards[1].fenced = true;
  metrics.database.shards[1].stalled = true;
  metrics.database.shards[1].stalls = 3;
  metrics.database.shards[1].flush_error = "EIO";
  metrics.database.shards[1].compaction_error = "EIO";
  metrics.database.shards[1].fences = 41;
  metrics.database.shards[1].flushes_failed = 42;
  metrics.database.shards[1].compactions_failed = 43;
  metrics.database.shards[1].saves_failed = 44;
  metrics.database.shards[1].references_set_aside = 45;
  metrics.database.shards[1].clock_seconds_ahead = -3600.5;
  metrics.database.durability_in_force = Durability::kProcess;
  metrics.database.reads_overdue = 4;
  metrics.database.reads_overdue_total = 6;
  metrics.database.reads_transient = 21;
  metrics.database.damaged_parts = 22;
  metrics.database.damaged_filters = 23;
  metrics.database.scrub_damages = 25;
  metrics.database.log_torn_bytes = 8192;
  metrics.database.log_records_stranded = 24;
  metrics.database.out_of_space = true;
  metrics.database.times_out_of_space = 2;
  metrics.database.reserve_bytes = 77;
  metrics.database.reserve_wanted = 88;
  metrics.database.throttled_by_partition = 11;
  metrics.database.throttled_by_account = 12;
  metrics.database.throttled_partitions_active = 13;
  metrics.database.ranges_split = 21;
  metrics.database.ranges_merged = 22;
  metrics.database.ranges_moved = 23;
  metrics.database.ranges_failed = 24;
  metrics.database.load_samples_lost = 14;
  metrics.database.memory_beside_cache = 31;
  metrics.database.memory_beyond_budget = 32;
  metrics.load[static_cast<size_t>(HeatMetric::kBytes)] = 2.5;
  metrics.database.shards[1].background[1] = {99, 1.5, {7, 0.25}, {3, 0.125}};
  metrics.hottest[0] = {{.table = "Orders", .partition_key = "p", .per_second = 30}, {.per_second = 20}};
  metrics.stalls.shards.push_back({5, 4, 30, 20, 9});
  for (int i = 0; i < 30; ++i) {
    metrics.stalls.places.push_back(
        {"engine/shard.cc:" + std::to_string(i) + " Shard::Do", {.lasted_ms = 3}});
  }
  metrics.database.shards[1].levels.push_back({.files = 5});
  return metrics;
}

TEST(MetricsTextTest, CountsAreToldByOperationAndClassOfStatus) {
  const std::string text = MetricsText(SomeMetrics());
  EXPECT_THAT(text, HasSubstr("partita_http_requests_total{operation=\"GetEntity\",status=\"2xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("partita_http_requests_total{operation=\"GetEntity\",status=\"4xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("partita_http_connections_open 7\n"));
  EXPECT_THAT(text, HasSubstr("partita_heap_used_bytes 123\n"));
  EXPECT_THAT(text, HasSubstr("partita_heap_held_bytes 456\n"));
  EXPECT_THAT(text, HasSubstr("partita_shard_fenced{shard=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("partita_shard_stalled{shard=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("partita_shard_stalls_total{shard=\"1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("partita_shard_flush_fails{shard=\"0\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("partita_shard_flush_fails{shard=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("partita_shard_compaction_fails{shard=\"0\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("partita_shard_compaction_fails{shard=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("partita_shard_fences_total{shard=\"1\"} 41\n"));
  EXPECT_THAT(text, HasSubstr("partita_flushes_failed_total{shard=\"1\"} 42\n"));
  EXPECT_THAT(text, HasSubstr("partita_compactions_failed_total{shard=\"1\"} 43\n"));
  EXPECT_THAT(text, HasSubstr("partita_saves_failed_total{shard=\"1\"} 44\n"));
  EXPECT_THAT(text, HasSubstr("partita_tables_set_aside{shard=\"1\"} 45\n"));
  EXPECT_THAT(text, HasSubstr("partita_shard_clock_ahead_seconds{shard=\"1\"} -3600.5\n"));
  EXPECT_THAT(text, HasSubstr("partita_reads_overdue 4\n"));
  EXPECT_THAT(text, HasSubstr("partita_reads_overdue_total 6\n"));
  EXPECT_THAT(text, HasSubstr("partita_reads_transient_total 21\n"));
  EXPECT_THAT(text, HasSubstr("partita_damaged_parts_total 22\n"));
  EXPECT_THAT(text, HasSubstr("partita_damaged_filters_total 23\n"));
  EXPECT_THAT(text, HasSubstr("partita_scrub_damages_total 25\n"));
  EXPECT_THAT(text, HasSubstr("partita_log_torn_bytes 8192\n"));
  EXPECT_THAT(text, HasSubstr("partita_log_stranded_records 24\n"));
  EXPECT_THAT(text, HasSubstr("partita_catalog_in_doubt 0\n"));
  EXPECT_THAT(text, HasSubstr("partita_out_of_space 1\n"));
  EXPECT_THAT(text, HasSubstr("partita_out_of_space_total 2\n"));
  EXPECT_THAT(text, HasSubstr("partita_reserve_bytes 77\n"));
  EXPECT_THAT(text, HasSubstr("partita_reserve_wanted_bytes 88\n"));
  EXPECT_THAT(text, HasSubstr("partita_throttled_calls_total{by=\"partition\"} 11\n"));
  EXPECT_THAT(text, HasSubstr("partita_throttled_calls_total{by=\"account\"} 12\n"));
  EXPECT_THAT(text, HasSubstr("partita_throttled_partitions_active 13\n"));
  EXPECT_THAT(text, HasSubstr("partita_range_steps_total{step=\"split\"} 21\n"));
  EXPECT_THAT(text, HasSubstr("partita_range_steps_total{step=\"merge\"} 22\n"));
  EXPECT_THAT(text, HasSubstr("partita_range_steps_total{step=\"move\"} 23\n"));
  EXPECT_THAT(text, HasSubstr("partita_range_steps_total{step=\"failed\"} 24\n"));
  EXPECT_THAT(text, HasSubstr("partita_load_samples_lost_total 14\n"));
  EXPECT_THAT(text, HasSubstr("partita_beside_cache_bytes 31\n"));
  EXPECT_THAT(text, HasSubstr("partita_beyond_budget_bytes 32\n"));
  EXPECT_THAT(text, HasSubstr("partita_load_per_second{of=\"bytes\"} 2.5\n"));
  EXPECT_THAT(text, HasSubstr("partita_durability_info{level=\"power\",in_force=\"process\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("partita_level_files{shard=\"1\",level=\"0\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("partita_worker_stalls_total{shard=\"0\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("partita_worker_stalls_own_total{shard=\"0\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("partita_worker_stalls_seconds_total{shard=\"0\"} 0.03\n"));
  EXPECT_THAT(text, HasSubstr("partita_worker_stalls_ran_seconds_total{shard=\"0\"} 0.02\n"));
  EXPECT_THAT(text, HasSubstr("partita_hot_partition_per_second{of=\"reads\",rank=\"1\"} 30\n"));
  EXPECT_THAT(text, HasSubstr("partita_hot_partition_per_second{of=\"reads\",rank=\"2\"} 20\n"));
  EXPECT_THAT(text, Not(HasSubstr("Orders"))) << "a series for each partition that was ever hot";
  const std::string compaction = "{shard=\"1\",work=\"compaction\"} ";
  EXPECT_THAT(text, HasSubstr("partita_background_bytes_total" + compaction + "99\n"));
  EXPECT_THAT(text, HasSubstr("partita_background_cpu_seconds_total" + compaction + "1.5\n"));
  EXPECT_THAT(text, HasSubstr("partita_background_bytes_per_second" + compaction + "7\n"));
  EXPECT_THAT(text, HasSubstr("partita_background_bytes_per_second_of_minute" + compaction + "3\n"));
  EXPECT_THAT(text, HasSubstr("partita_background_cores" + compaction + "0.25\n"));
  EXPECT_THAT(text, HasSubstr("partita_background_cores_of_minute" + compaction + "0.125\n"));
  const std::string at = "partita_stall_place_seconds_total{place=\"engine/shard.cc:";
  EXPECT_THAT(text, HasSubstr(at + "19 Shard::Do\"} 0.003\n"));
  EXPECT_THAT(text, Not(HasSubstr(at + "20"))) << "as many labels as there are stalls";
  EXPECT_THAT(text, HasSubstr("partita_build_info{version=\"1.2.3\"} 1\n"));
}

TEST(MetricsTextTest, AHistogramIsCumulativeAndEndsWithEverything) {
  const std::string text = MetricsText(SomeMetrics());
  const auto bucket = [](const char* le, int count) {
    return "partita_http_request_duration_seconds_bucket{operation=\"GetEntity\",le=\"" + std::string(le) +
           "\"} " + std::to_string(count) + "\n";
  };
  EXPECT_THAT(text, HasSubstr(bucket("0.000002", 0)));
  EXPECT_THAT(text, HasSubstr(bucket("0.000004", 1)));
  EXPECT_THAT(text, HasSubstr(bucket("+Inf", 2)));
  EXPECT_THAT(text, HasSubstr("partita_http_request_duration_seconds_count{operation=\"GetEntity\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("duration_seconds_count{operation=\"InsertEntity\"}")));
}

TEST(MetricsTextTest, EveryLineIsACommentOrASample) {
  const std::regex form(R"((# (HELP|TYPE) partita_[a-z0-9_]+ .+|partita_[a-z0-9_]+(\{[^}]*\})? [0-9.e+-]+))");
  std::istringstream lines(MetricsText(SomeMetrics()));
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_TRUE(std::regex_match(line, form)) << line;
  EXPECT_GT(count, 100u);
}

}  // namespace
}  // namespace partita

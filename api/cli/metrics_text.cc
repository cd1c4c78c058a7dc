#include "api/cli/metrics_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "api/cli/open_store.h"

namespace partita {

namespace {

using http::RequestKind;
using http::ServiceCounters;
using KindTotals = ServiceCounters::KindTotals;

constexpr std::array<std::string_view, ServiceCounters::kStatusClasses> kClassNames = {"2xx", "3xx", "4xx",
                                                                                       "5xx"};

class Writer {
 public:
  // Opens a family: its samples follow.
  void Family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_.append("# HELP partita_").append(name).append(" ").append(help);
    text_.append("\n# TYPE partita_").append(name).append(" ").append(type).append("\n");
  }
  void Sample(uint64_t value, std::string_view labels = {}, std::string_view suffix = {}) {
    Begin(labels, suffix);
    text_.append(std::to_string(value)).append("\n");
  }
  void Sample(double value, std::string_view labels = {}, std::string_view suffix = {}) {
    Begin(labels, suffix);
    std::array<char, 40> number{};
    std::snprintf(number.data(), number.size(), "%.9g", value);
    text_.append(number.data()).append("\n");
  }
  void Gauge(std::string_view name, std::string_view help, uint64_t value) {
    Family(name, "gauge", help);
    Sample(value);
  }
  void Counter(std::string_view name, std::string_view help, uint64_t value) {
    Family(name, "counter", help);
    Sample(value);
  }
  std::string Take() { return std::move(text_); }

 private:
  void Begin(std::string_view labels, std::string_view suffix) {
    text_.append("partita_").append(name_).append(suffix);
    if (!labels.empty()) text_.append("{").append(labels).append("}");
    text_.append(" ");
  }

  std::string name_;
  std::string text_;
};

std::string Label(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + std::string(value) + "\"";
}

uint64_t CountOf(const KindTotals& kind) {
  uint64_t count = 0;
  for (const uint64_t of_class : kind.by_status_class) count += of_class;
  return count;
}

void WriteRequests(const ServiceCounters::Totals& totals, Writer* out) {
  out->Family("http_requests_total", "counter", "Answered requests by operation and class of status.");
  for (size_t kind = 0; kind < totals.kinds.size(); ++kind) {
    const std::string operation = Label("operation", http::RequestKindName(static_cast<RequestKind>(kind)));
    for (size_t i = 0; i < kClassNames.size(); ++i) {
      out->Sample(totals.kinds[kind].by_status_class[i], operation + "," + Label("status", kClassNames[i]));
    }
  }
  out->Family("http_request_duration_seconds", "histogram",
              "From the whole request read to its answer made, by operation.");
  for (size_t kind = 0; kind < totals.kinds.size(); ++kind) {
    const KindTotals& of_kind = totals.kinds[kind];
    if (CountOf(of_kind) == 0) continue;
    const std::string operation = Label("operation", http::RequestKindName(static_cast<RequestKind>(kind)));
    uint64_t so_far = 0;
    for (size_t i = 0; i < of_kind.by_latency.size(); ++i) {
      so_far += of_kind.by_latency[i];
      std::array<char, 40> bound{};
      std::snprintf(bound.data(), bound.size(), "%.6f", static_cast<double>(uint64_t{1} << i) / 1e6);
      const bool last = i + 1 == of_kind.by_latency.size();
      out->Sample(so_far, operation + "," + Label("le", last ? "+Inf" : bound.data()), "_bucket");
    }
    out->Sample(static_cast<double>(of_kind.microseconds) / 1e6, operation, "_sum");
    out->Sample(so_far, operation, "_count");
  }
  out->Counter("entities_scanned_total", "Entities that queries looked at.", totals.entities_scanned);
  out->Counter("batch_operations_total", "Operations within transactions.", totals.batch_operations);
  out->Counter("throttled_total", "Answers that said 503 Server Busy.", totals.throttled);
}

void WriteConnections(const http::HttpCounters& http, Writer* out) {
  out->Gauge("http_connections_open", "Connections now.", http.connections_open);
  out->Counter("http_connections_accepted_total", "Connections taken.", http.connections_accepted);
  out->Counter("http_connections_refused_total", "Connections over the limit.", http.connections_refused);
  out->Counter("http_accept_failures_total", "No descriptor or memory to accept with.", http.accept_failures);
  out->Counter("http_tls_failures_total", "TLS handshakes that failed.", http.tls_failures);
  out->Counter("http_framing_errors_total", "Bytes that are no request.", http.framing_errors);
  out->Counter("http_timeouts_total", "Connections closed as too slow; idle ones are none of them.",
               http.timeouts);
  out->Counter("http_received_bytes_total", "Bytes from clients.", http.bytes_received);
  out->Counter("http_sent_bytes_total", "Bytes to clients.", http.bytes_sent);
  out->Gauge("http_buffer_bytes", "Memory of large requests and answers under way.", http.buffer_bytes);
}

using ShardField = uint64_t ShardStats::*;
struct ShardFamily {
  std::string_view name, type, help;
  ShardField field;
};
constexpr std::array<ShardFamily, 14> kShardFamilies = {{
    {"memtable_bytes", "gauge", "Writes in memory that no table holds yet.", &ShardStats::memtable_bytes},
    {"memtable_entries", "gauge", "Entries among them.", &ShardStats::memtable_entries},
    {"memtables_frozen", "gauge", "Memtables that wait to be written out.", &ShardStats::frozen_memtables},
    {"log_live_bytes", "gauge", "Log that a restart would read.", &ShardStats::log_live_bytes},
    {"writes_total", "counter", "Writes decided.", &ShardStats::writes},
    {"flushes_total", "counter", "Memtables written out.", &ShardStats::flushes},
    {"compactions_total", "counter", "Merges done.", &ShardStats::compactions},
    {"compactions_given_up_total", "counter", "Merges that got no core, and were begun anew.",
     &ShardStats::compactions_given_up},
    {"compaction_debt_bytes", "gauge", "What merges still have to move.", &ShardStats::compaction_debt_bytes},
    {"shard_fences_total", "counter", "Writes of the log that failed, so that it went on in another file.",
     &ShardStats::fences},
    {"flushes_failed_total", "counter", "Tries to write memtables out that failed.",
     &ShardStats::flushes_failed},
    {"compactions_failed_total", "counter", "Merges that failed, or found no room.",
     &ShardStats::compactions_failed},
    {"saves_failed_total", "counter", "Tries to save the list of the shard's tables that failed.",
     &ShardStats::saves_failed},
    {"tables_set_aside", "gauge", "Tables, or parts of them, that merges leave out as damaged.",
     &ShardStats::references_set_aside},
}};

void WriteLevels(const DatabaseStats& stats, Writer* out) {
  using LevelField = uint64_t ShardStats::Level::*;
  const auto family = [&](std::string_view name, std::string_view help, LevelField field) {
    out->Family(name, "gauge", help);
    for (const ShardStats& shard : stats.shards) {
      for (size_t level = 0; level < shard.levels.size(); ++level) {
        out->Sample(shard.levels[level].*field, Label("shard", std::to_string(shard.shard)) + "," +
                                                    Label("level", std::to_string(level)));
      }
    }
  };
  family("level_files", "Table files by shard and level.", &ShardStats::Level::files);
  family("level_bytes", "Their bytes on disk.", &ShardStats::Level::bytes);
  family("level_entries", "Their entries.", &ShardStats::Level::entries);
  family("level_tombstones", "Their deletions.", &ShardStats::Level::tombstones);
}

// Rates over a second are for who looks; a monitoring system has them from the sums.
void WriteBackground(const DatabaseStats& stats, Writer* out) {
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    out->Family(name, type, help);
    for (const ShardStats& shard : stats.shards) {
      for (size_t i = 0; i < kBackgroundKinds; ++i) {
        out->Sample(value(shard.background[i]), Label("shard", std::to_string(shard.shard)) + "," +
                                                    Label("work", kBackgroundKindNames[i]));
      }
    }
  };
  family("background_bytes_total", "counter", "Bytes that work behind the writers wrote, read back or read.",
         [](const BackgroundStats& work) { return work.bytes; });
  family("background_cpu_seconds_total", "counter", "CPU time of that work.",
         [](const BackgroundStats& work) { return work.cpu_seconds; });
  family("background_bytes_per_second", "gauge", "Over the last whole second.",
         [](const BackgroundStats& work) { return work.last_second.bytes_per_second; });
  family("background_bytes_per_second_of_minute", "gauge", "Over the last 60 whole seconds.",
         [](const BackgroundStats& work) { return work.last_minute.bytes_per_second; });
  family("background_cores", "gauge", "CPU seconds a second, over the last whole second.",
         [](const BackgroundStats& work) { return work.last_second.cores; });
  family("background_cores_of_minute", "gauge", "CPU seconds a second, over the last 60 whole seconds.",
         [](const BackgroundStats& work) { return work.last_minute.cores; });
}

void WriteShards(const DatabaseStats& stats, Writer* out) {
  for (const ShardFamily& family : kShardFamilies) {
    out->Family(family.name, family.type, family.help);
    for (const ShardStats& shard : stats.shards)
      out->Sample(shard.*family.field, Label("shard", std::to_string(shard.shard)));
  }
  out->Family("written_bytes_total", "counter", "Bytes accepted from users, and written for them.");
  for (const ShardStats& shard : stats.shards) {
    const std::string of = Label("shard", std::to_string(shard.shard)) + ",";
    out->Sample(shard.bytes_written_user, of + Label("to", "user"));
    out->Sample(shard.bytes_written_log, of + Label("to", "log"));
    out->Sample(shard.bytes_written_flush, of + Label("to", "flush"));
    out->Sample(shard.bytes_written_compaction, of + Label("to", "compaction"));
  }
  WriteBackground(stats, out);
  out->Family("write_delay_seconds_total", "counter", "Time that writes were held back for merges.");
  for (const ShardStats& shard : stats.shards) {
    out->Sample(static_cast<double>(shard.write_delay_us_total) / 1e6,
                Label("shard", std::to_string(shard.shard)));
  }
  out->Family("shard_fenced", "gauge", "1: the shard refuses writes, because its log failed or is stalled.");
  for (const ShardStats& shard : stats.shards)
    out->Sample(uint64_t{shard.fenced}, Label("shard", std::to_string(shard.shard)));
  out->Family("shard_stalled", "gauge",
              "1: the disk has not answered the shard's log, or reads of tables, for 30 s.");
  for (const ShardStats& shard : stats.shards)
    out->Sample(uint64_t{shard.stalled}, Label("shard", std::to_string(shard.shard)));
  out->Family("shard_stalls_total", "counter", "How often that was so for the shard's log.");
  for (const ShardStats& shard : stats.shards)
    out->Sample(shard.stalls, Label("shard", std::to_string(shard.shard)));
  out->Family("shard_flush_fails", "gauge", "1: writes cannot be made tables, which is tried again.");
  for (const ShardStats& shard : stats.shards)
    out->Sample(uint64_t{!shard.flush_error.empty()}, Label("shard", std::to_string(shard.shard)));
  out->Family("shard_compaction_fails", "gauge", "1: tables cannot be merged, which is tried again.");
  for (const ShardStats& shard : stats.shards)
    out->Sample(uint64_t{!shard.compaction_error.empty()}, Label("shard", std::to_string(shard.shard)));
  out->Family(
      "shard_clock_ahead_seconds", "gauge",
      "Timestamps of new writes, ahead of the system's clock; below 0: behind it, which is not followed.");
  for (const ShardStats& shard : stats.shards)
    out->Sample(shard.clock_seconds_ahead, Label("shard", std::to_string(shard.shard)));
  out->Gauge("reads_overdue", "Reads that were given up after 30 s, and that the disk has not answered yet.",
             stats.reads_overdue);
  out->Counter("reads_overdue_total", "Reads that were given up after 30 s.", stats.reads_overdue_total);
  out->Counter("reads_transient_total",
               "Reads of tables, catalog and manifests that were bad once, and good when repeated.",
               stats.reads_transient);
  out->Counter("damaged_parts_total", "Reads of tables that were bad twice: their keys answer an error.",
               stats.damaged_parts);
  out->Counter("damaged_filters_total", "Filters of tables that were bad twice: lookups go on without them.",
               stats.damaged_filters);
  out->Counter("scrub_damages_total",
               "What scrubs found damaged, in tables, logs, catalog and manifests: 'partita scrub' names it.",
               stats.scrub_damages);
  out->Gauge("log_torn_bytes", "Cut off the ends of the logs as the store was opened.", stats.log_torn_bytes);
  out->Gauge("log_stranded_records", "Records that were lost behind others then, of level process.",
             stats.log_records_stranded);
  out->Gauge("catalog_in_doubt", "1: how the last change of a table ended is not known yet.",
             uint64_t{stats.catalog_in_doubt});
  out->Gauge("out_of_space", "1: the disk is full, and only deletes and drops of tables are accepted.",
             uint64_t{stats.out_of_space});
  out->Counter("out_of_space_total", "How often that was so.", stats.times_out_of_space);
  out->Gauge("reserve_bytes", "Space on the disk set aside for when it is full.", stats.reserve_bytes);
  out->Gauge("reserve_wanted_bytes", "How much of it there should be.", stats.reserve_wanted);
  out->Family("durability_info", "gauge",
              "Always 1; the level of new tables, and what it comes to on this disk.");
  out->Sample(uint64_t{1}, Label("level", DurabilityName(stats.durability)) + "," +
                               Label("in_force", DurabilityName(stats.durability_in_force)));
  WriteLevels(stats, out);
}

// By rank, as a label for each partition that was ever hot would be a series for each.
void WriteHottest(const ServerMetrics& metrics, Writer* out) {
  out->Family("hot_partition_per_second", "gauge",
              "Of the 10 hottest partitions, as load_per_second; which they are, /heat tells.");
  for (size_t i = 0; i < kHeatMetrics; ++i) {
    for (size_t rank = 0; rank < metrics.hottest[i].size(); ++rank) {
      out->Sample(metrics.hottest[i][rank].per_second,
                  Label("of", kHeatMetricNames[i]) + "," + Label("rank", std::to_string(rank + 1)));
    }
  }
}

// By place only the first kStallPlaces, so that the sets of labels stay small.
void WriteStalls(const StallSummary& stalls, Writer* out) {
  constexpr size_t kStallPlaces = 20;
  const auto family = [&](std::string_view name, std::string_view help, auto value) {
    out->Family("worker_" + std::string(name), "counter", help);
    for (size_t i = 0; i < stalls.shards.size(); ++i) {
      out->Sample(value(stalls.shards[i]), Label("shard", std::to_string(i)));
    }
  };
  family("stalls_total", "Slices of work on the shard's worker that lasted 1 ms or more.",
         [](const StallCount& count) { return count.stalls; });
  family("stalls_own_total", "Of them, those that had their core for so long.",
         [](const StallCount& count) { return count.own; });
  family("stalls_seconds_total", "How long they lasted.",
         [](const StallCount& count) { return count.lasted_ms / 1e3; });
  family("stalls_ran_seconds_total", "Of that, how long they had their core.",
         [](const StallCount& count) { return count.ran_ms / 1e3; });
  out->Family("stall_place_seconds_total", "counter", "How long they lasted, by place; the longest 20.");
  for (size_t i = 0; i < std::min(stalls.places.size(), kStallPlaces); ++i) {
    out->Sample(stalls.places[i].count.lasted_ms / 1e3, Label("place", stalls.places[i].place));
  }
}

}  // namespace

std::string MetricsText(const ServerMetrics& metrics) {
  Writer out;
  out.Family("build_info", "gauge", "Always 1; the label tells the version.");
  out.Sample(uint64_t{1}, Label("version", metrics.version));
  out.Gauge("uptime_seconds", "Since the service began to listen.", metrics.uptime_seconds);
  out.Gauge("ready", "1: /readyz says 200.", metrics.accepting ? uint64_t{1} : uint64_t{0});
  WriteRequests(metrics.service, &out);
  WriteConnections(metrics.http, &out);
  const DatabaseStats& stats = metrics.database;
  out.Gauge("cache_bytes", "Blocks in memory.", stats.cache_bytes);
  out.Gauge("cache_capacity_bytes", "Room for blocks.", stats.cache_capacity);
  out.Counter("cache_hits_total", "Blocks found in memory.", stats.cache_hits);
  out.Counter("cache_misses_total", "Blocks read from the disk.", stats.cache_misses);
  out.Gauge("memory_budget_bytes", "The one number for memory.", stats.memory_budget);
  out.Gauge("resident_set_bytes", "Memory of the process.", stats.resident_set_bytes);
  out.Gauge("heap_used_bytes", "What the program holds beside the pools for memtables and blocks.",
            metrics.heap.used_bytes);
  out.Gauge("heap_held_bytes", "What malloc took from the system for it.", metrics.heap.held_bytes);
  out.Gauge("memtable_pool_bytes", "Room for memtables.", stats.memtable_pool_bytes);
  out.Gauge("table_index_bytes", "Of open tables, held outside the room for blocks.",
            stats.resident_table_bytes);
  out.Gauge("beside_cache_bytes",
            "Ranges, names, and the former: what the room for blocks is smaller by, as far as it can be.",
            stats.memory_beside_cache);
  out.Gauge("beyond_budget_bytes", "What of these is beyond the memory budget once memtables are full.",
            stats.memory_beyond_budget);
  out.Family("throttled_calls_total", "counter",
             "Calls refused, by the throughput target that was exceeded.");
  out.Sample(stats.throttled_by_partition, Label("by", "partition"));
  out.Sample(stats.throttled_by_account, Label("by", "account"));
  out.Sample(stats.throttled_by_total, Label("by", "total"));
  out.Gauge("throttled_partitions_active", "Partitions whose entities are being counted.",
            stats.throttled_partitions_active);
  out.Family("range_steps_total", "counter",
             "What was done with ranges for the load's sake, and what failed.");
  out.Sample(stats.ranges_split, Label("step", "split"));
  out.Sample(stats.ranges_merged, Label("step", "merge"));
  out.Sample(stats.ranges_moved, Label("step", "move"));
  out.Sample(stats.ranges_failed, Label("step", "failed"));
  out.Family("load_per_second", "gauge",
             "Estimated from samples, over about the last 43 s: entities, bytes, and CPU nanoseconds.");
  for (size_t i = 0; i < kHeatMetrics; ++i) out.Sample(metrics.load[i], Label("of", kHeatMetricNames[i]));
  WriteHottest(metrics, &out);
  out.Counter("load_samples_total", "Calls looked at closely.", stats.load_samples);
  out.Counter("load_samples_lost_total", "Of them for which there was no room.", stats.load_samples_lost);
  WriteShards(stats, &out);
  WriteStalls(metrics.stalls, &out);
  return out.Take();
}

void AddCounters(http::HttpCounters* sum, const http::HttpCounters& one) {
  sum->connections_open += one.connections_open;
  sum->connections_accepted += one.connections_accepted;
  sum->connections_refused += one.connections_refused;
  sum->accept_failures += one.accept_failures;
  sum->tls_failures += one.tls_failures;
  sum->requests += one.requests;
  sum->framing_errors += one.framing_errors;
  sum->timeouts += one.timeouts;
  sum->bytes_received += one.bytes_received;
  sum->bytes_sent += one.bytes_sent;
  sum->buffer_bytes = std::max(sum->buffer_bytes, one.buffer_bytes);  // All addresses share one budget.
}

}  // namespace partita
